"""Parameter servers that a run has asked of Ray, and that have not joined it yet."""

from __future__ import annotations

import itertools
import time
from typing import Any, Final

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.links import ray_calls
from tfray.actors.links.notices import notice
from tfray.errors import OpError

LOOK_S: Final = 0.25
"""Seconds between two looks at the actors that are starting."""

MOST_DEATHS: Final = 4
"""How many actors may die in turn before they have started. After that no more are asked for: so might the next."""

WAITING_S: Final = 5.0
"""Seconds after which the user is told that actors wait for room."""


class ShardStarts:
    """Actors of further tasks of a job that start while the others are at work. Nobody waits for them.

    Args:
        cluster: Makes the actors.
        job: Name of the job.
    """

    def __init__(self, cluster: Cluster, job: str) -> None:
        self._cluster = cluster
        self._job = job
        self._starting: dict[Any, tuple[int, Any]] = {}
        """By the call that ends when it has started: the task, and its actor."""
        self._started: dict[int, tuple[Any, Any]] = {}
        """By task: the actor that has started, and its link address."""
        self._looked_at = 0.0
        self._asked_at = self._came_at = 0.0
        self._deaths = 0
        self._is_said = False

    @property
    def started(self) -> int:
        """How many have started."""
        return len(self._started)

    @property
    def quiet_s(self) -> float:
        """Seconds since the last one has started."""
        return time.monotonic() - self._came_at

    def want(self, count: int) -> None:
        """Have `count` actors that start or have started: ask for one if some are missing, or give up those beyond it.

        To ask Ray for an actor takes the caller's time. So this asks for one; call it again for the next.
        """
        while len(self._starting) + len(self._started) > count:
            if self._starting:
                _, (_, actor) = self._starting.popitem()
            else:
                _, (actor, _) = self._started.popitem()
            ray_calls.end_actor(actor)
        if len(self._starting) + len(self._started) < count and self._deaths < MOST_DEATHS:
            self._asked_at, self._is_said = time.monotonic(), False
            task = self._free_task()
            actor = self._cluster.create_actor(self._device(task))
            self._starting[actor.ready.remote()] = task, actor

    def look(self) -> None:
        """See who has started. This takes no time."""
        now = time.monotonic()
        if not self._starting or now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        while self._starting and (ended := ray_calls.ended(list(self._starting), 0)):
            task, actor = self._starting.pop(ended[0])
            try:
                self._started[task] = actor, ray_calls.outcome(ended[0], self._device(task)).address
            except OpError as error:
                self._deaths += 1
                notice(f"a parameter server did not start: {error.message}")
            else:
                self._deaths, self._came_at = 0, now
        if self._starting and not self._is_said and now - self._asked_at > WAITING_S:
            self._is_said = True
            notice(f"training goes on while {len(self._starting)} more parameter servers wait for room or start")

    def take(self, count: int) -> list[int]:
        """Let up to `count` of those that have started join the cluster, and introduce all to one another.

        Returns:
            Their tasks.
        """
        tasks = sorted(self._started)[:count]
        if tasks:
            self._cluster.join({self._device(task): self._started.pop(task) for task in tasks})
        return tasks

    def end(self) -> None:
        """Give up all that have not joined."""
        if self._cluster.connected:
            self.want(0)

    def _free_task(self) -> int:
        """The first number that no task has, nor an actor that lives on."""
        known = {*self._cluster.known, *self._cluster.devices_of(self._job)}
        taken = {*self._started, *(task for task, _ in self._starting.values())}
        return next(task for task in itertools.count() if task not in taken and self._device(task) not in known)

    def _device(self, task: int) -> str:
        return self._cluster.jobs[self._job].devices(self._job, task)[0]
