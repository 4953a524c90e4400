"""How many parameter servers a run has while it goes on: when that number changes, and what a change does.

A run of ``parameter_servers=(least, most)`` asks Ray for room for the missing ones all the time. When some have come,
and no more come for a moment, it takes them. `Trainer.scale` sets a number instead.

A change is made between two steps:

1. The driver holds: no step is open.
2. Variables and slots are spread over the new set, as if the model had been built for it, and those that have to move
   are copied from shard to shard (`shard_placement.py`). Random streams move along.
3. The step is compiled for the new set. Shards and workers get their plans; the workers' inputs stay open.
4. Actors without variables end, once no replica that is late can ask them for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.links.ray_calls import outcome
from tfray.actors.links.silence import SILENCE_S
from tfray.actors.replicas.driver import ReplicaDriver
from tfray.actors.replicas.settlement import Parted
from tfray.actors.replicas.shard_starts import ShardStarts
from tfray.errors import InternalError, InvalidArgumentError, UnavailableError
from tfray.framework.effects import resource_name
from tfray.placement.replicate import CompiledReplicaStep
from tfray.session import Session
from tfray.training.trainer.run_checkpoints import RunCheckpoints
from tfray.training.trainer.shard_placement import JOB, Move, ShardPlacement, device_of, move_variables, task_of

MOMENT_S: Final = 2.0
"""Seconds for which a run waits for more parameter servers when one has come: each change costs a pause."""

ANSWER_S: Final = 10.0
"""Seconds to wait for the answers of parameter servers when one has died. On a machine that has died none answers, and
Ray may take a minute to find that out."""


class ShardScaling:
    """The parameter servers of one run.

    Args:
        cluster: Its actors.
        placement: The places of its variables.
        checkpoints: They are written and read where the variables live.
        least: The run goes on while it has so many.
        most: It takes no more than that.
        told: Called with how many there were and how many there are, after each change.
    """

    def __init__(
        self,
        cluster: Cluster,
        placement: ShardPlacement,
        checkpoints: RunCheckpoints,
        least: int,
        most: int,
        told: Callable[[int, int], None],
    ) -> None:
        self._cluster = cluster
        self._placement = placement
        self._checkpoints = checkpoints
        self._bounds = least, most
        self._told = told
        self._starts = ShardStarts(cluster, JOB)
        self._left: list[tuple[int, Sequence[Move], Sequence[str]]] = []
        """Of each change that is not done with: the newest step before it, what has moved, and devices that end."""

    @property
    def devices(self) -> list[str]:
        """Full names of the shards' devices."""
        return self._cluster.devices_of(JOB)

    @property
    def standbys(self) -> dict[str, str]:
        """By shard, the device of its standby: no shard has one."""
        return {}

    def begin(self) -> None:
        """Do nothing: the variables have values where they live."""

    def wish(self, count: int) -> None:
        """From now on have that number. Any thread may call this.

        Raises:
            InvalidArgumentError: The program has put operations on parameter servers that would end.
        """
        tasks = self._cluster.tasks_of(JOB)
        if count < len(tasks):
            self._placement.check(tasks[:count])
        self._bounds = count, count

    def is_due(self) -> bool:
        """Whether to hold the driver for a change. Call it after each step."""
        least, most = self._bounds
        has = len(self._cluster.tasks_of(JOB))
        self._starts.want(max(0, most - has))
        if has > most:
            return not self._checkpoints.is_saving
        if has == most:
            return False
        self._starts.look()
        could = has + self._starts.started
        is_time = could == most or (could >= least and self._starts.quiet_s > MOMENT_S)
        return could > has and is_time and not self._checkpoints.is_saving

    def change(self, session: Session, driver: ReplicaDriver, compiled: Callable[[], CompiledReplicaStep]) -> None:
        """Go over to the parameter servers that are wanted and there. The driver is held.

        Args:
            session: The session of the parameter servers.
            driver: Runs the steps.
            compiled: Compiles the step for the parameter servers that there are.

        Raises:
            UnavailableError: A parameter server has died.
        """
        self._checkpoints.wait()
        _, most = self._bounds
        before, devices = self._cluster.tasks_of(JOB), self._cluster.devices_of(JOB)
        tasks = before[:most]
        tasks += self._starts.take(most - len(tasks))
        if tasks == before:
            return  # another thread has wished for that meanwhile
        self._cluster.set_tasks(JOB, tasks)
        ending = [device for device in devices if device not in self._cluster.devices_of(JOB)]
        moves = self._place()
        self._left.append((0, moves, ending))  # now already, for `recover`
        session._forget_homes()
        move_variables(self._cluster, moves)
        self._left[-1] = driver.change_shards(compiled()), moves, ending
        self.tidy(driver)
        self._told(len(before), len(tasks))

    def _place(self) -> list[Move]:
        """Place the variables on the parameter servers that there are. Returns those that have to move."""
        moves = self._placement.place(self._cluster.tasks_of(JOB))
        self._checkpoints.rebuild()
        return moves

    def tidy(self, driver: ReplicaDriver) -> None:
        """End the actors, and free the memory, that changes have left behind, as far as no replica needs them."""
        while self._left and driver.is_past(self._left[0][0]):
            _, moves, ending = self._left.pop(0)
            _forget_moved(self._cluster, moves)
            for device in ending:
                self._cluster.forget(device)

    def recover(self) -> None:
        """Do without parameter servers that have died, where enough are left. The run goes back to a checkpoint."""
        for _, _, ending in self._left:
            for device in ending:
                self._cluster.forget(device)
        moves = [move for _, moves, _ in self._left for move in moves]
        self._left.clear()
        moves += self._do_without_dead()
        with suppress(UnavailableError):  # one more has died, which is noticed later
            _forget_moved(self._cluster, moves)

    def _do_without_dead(self) -> list[Move]:
        """Place the variables on the parameter servers that are left. Returns those that now live elsewhere."""
        (least, most), tasks, devices = self._bounds, self._cluster.tasks_of(JOB), self._cluster.devices_of(JOB)
        if least == most:
            return []
        living = self._cluster.answering(devices, ANSWER_S)
        for device in devices:
            if device not in living:
                self._cluster.forget(device)
        kept = [task for task in tasks if task == tasks[0] or device_of(task) in living]
        missing = [task for task in tasks if task not in kept]
        kept = sorted(kept + missing[: max(0, least - len(kept))])
        try:
            self._placement.check(kept)
        except InvalidArgumentError:
            return []  # the program has put something on one of them: it is started anew
        if kept == tasks:
            return []
        self._cluster.set_tasks(JOB, kept)
        self._told(len(tasks), len(kept))
        return self._place()

    def take_over(self, session: Session, parted: Parted) -> None:
        """Raise: no shard has a standby."""
        raise InternalError(f"{', '.join(parted.gone)} cannot be done without")

    def end(self) -> None:
        """Ask for no more."""
        self._starts.end()


def _forget_moved(cluster: Cluster, moves: Sequence[Move]) -> None:
    """Free the memory of variables on the shards that they have left, unless they have come back."""
    left: dict[str, list[str]] = {}
    for move in moves:
        task = task_of(move.variable.device)
        if task is None or device_of(task) != move.source:
            left.setdefault(move.source, []).append(resource_name(move.variable))
    calls = {
        device: cluster.actor(device).forget_variables.remote(names)
        for device, names in left.items()
        if device in cluster.devices
    }
    for device, call in calls.items():
        outcome(call, device, SILENCE_S)  # later they may come back
