"""A cluster: named jobs of tasks, each task's devices hosted by Ray actors.

A parameter server is nothing special: it is the job ``ps``, whose tasks are ordinary devices to which a placement
policy sends the variables (OSDI 2016, section 4.4).
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tfray.actors.clusters.directory import ActorDirectory
from tfray.actors.clusters.ray_runtime import connect
from tfray.actors.links.notices import notice
from tfray.errors import InvalidArgumentError, UnavailableError
from tfray.formats.files import current_folder
from tfray.framework.arguments import Count, NonNegative, Positive, Seconds, checked
from tfray.framework.device_spec import DeviceSpec, short_name

if TYPE_CHECKING:
    from tfray.actors.clusters.remote_runner import RemoteRunner
    from tfray.actors.clusters.room import Room
    from tfray.actors.links.handshake import LinkAddress
    from tfray.actors.links.peers import PeerHandle

NOTICE_AFTER_S: Final = 5.0
"""Seconds to wait for room before saying so: a longer silence would look like a hang."""

ANSWER_S: Final = 2.0
"""Seconds to wait for an actor's answer. One that takes longer counts as alive but busy."""

REPLACING_ATTEMPTS: Final = 4
"""How many times in turn dead actors are replaced, if others or their replacements die meanwhile."""


@checked
@dataclass(frozen=True)
class JobSpec:
    """One job of a cluster.

    Attributes:
        count: Number of tasks.
        num_cpus: CPUs that each task's CPU device asks of Ray, possibly a fraction.
        num_gpus: GPUs of each task; each becomes a device ``GPU:i`` with an actor of its own.
        own_gpus: GPUs of each task that its CPU device keeps for itself, for replicas that it runs: a whole number, or
            a fraction below 1 of one that others use too. They are no devices of the cluster.
        resources: Custom Ray resources that each task asks for.
        scheduling_strategy: Ray's scheduling strategy, such as ``"SPREAD"`` or a placement group strategy. A list or
            tuple has one for each task; None, as for tasks beyond it, is Ray's default.
        memory_bytes: Memory that each task asks of Ray.
        store_bytes: Bytes of its node's object store that each device may hold for the tensors that it sends to others.
            A tensor beyond that is a `ResourceExhaustedError`, and the others that use the store keep their room. A
            tensor may still be held when the next step sends it anew: count each twice. None sets no limit.
        runtime_env: Ray runtime environment of each task.
    """

    count: Positive
    num_cpus: NonNegative = 1.0
    num_gpus: Count = 0
    resources: Mapping[str, NonNegative] = field(default_factory=dict)
    scheduling_strategy: Any = None
    memory_bytes: Positive | None = None
    runtime_env: Mapping[str, Any] | None = None
    store_bytes: Positive | None = None
    own_gpus: NonNegative = 0

    def __post_init__(self) -> None:
        if self.own_gpus > 1 and self.own_gpus != int(self.own_gpus):
            raise InvalidArgumentError(f"own_gpus is {self.own_gpus}: expected a whole number, or a fraction below 1")

    def devices(self, job: str, task: int) -> list[str]:
        """Full names of the devices of one task."""
        prefix = f"/job:{job}/task:{task}/device:"
        return [f"{prefix}CPU:0"] + [f"{prefix}GPU:{i}" for i in range(self.num_gpus)]

    def actor_options(self, device: str) -> dict[str, Any]:
        """Options of the Ray actor of one device."""
        is_gpu = DeviceSpec.from_string(device).device_type == "GPU"
        options: dict[str, Any] = {
            "num_cpus": 0 if is_gpu else self.num_cpus,
            "num_gpus": 1 if is_gpu else self.own_gpus,
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        if self.resources and not is_gpu:
            options["resources"] = dict(self.resources)
        strategy = self.scheduling_strategy
        if isinstance(strategy, (list, tuple)):
            task = DeviceSpec.from_string(device).task or 0
            strategy = strategy[task] if task < len(strategy) else None
        if strategy is not None:
            options["scheduling_strategy"] = strategy
        if self.memory_bytes is not None and not is_gpu:
            options["memory"] = self.memory_bytes
        if self.runtime_env is not None:
            options["runtime_env"] = dict(self.runtime_env)
        return options


class Cluster(ActorDirectory):
    """Jobs of tasks whose devices are Ray actors. Use it as a context manager, or call `close`.

    Args:
        jobs: Job name to number of tasks, or to a `JobSpec`.
        address: Where Ray is; see `tfray.actors.clusters.ray_runtime.connect`.
        start_timeout_s: Seconds to wait for Ray to find room for every actor. An actor that has its room may take
            another 4 minutes to start: so long it takes on a very busy machine.
        init_options: Further arguments of ``ray.init``, if this call connects to Ray.
        op_modules: Modules that every actor imports because they register operations of your own.
        name: What its actors are called in Ray's dashboard: ``tfray/<name>-<random>/worker/0``. The random part keeps
            clusters of one name apart. An actor that takes the place of a dead one has ``#2`` behind its name.
        silence_s: Seconds after which a step of a session raises `UnavailableError` if a device for which it waits
            answers nothing at all, as a frozen process does. A device that is at work answers, however long that takes,
            unless a Python function of the graph lets no other thread run. None for no limit.

    Raises:
        InvalidArgumentError: The description is inconsistent.
        UnavailableError: Ray cannot be reached.
        ResourceExhaustedError: Ray has no room for the actors and none came in time.

    Example:
        >>> with tf.Cluster({"ps": 2, "worker": 3}) as cluster, tf.Session(cluster) as session:
        ...     session.run(train_op)
    """

    @checked
    def __init__(
        self,
        jobs: Mapping[str, Positive | JobSpec],
        address: str | None = None,
        *,
        start_timeout_s: Seconds = 60.0,
        init_options: dict[str, Any] | None = None,
        op_modules: Sequence[str] = (),
        name: str | None = None,
        silence_s: Seconds | None = None,
    ) -> None:
        if not jobs:
            raise InvalidArgumentError("a cluster needs at least one job, such as {'worker': 1}")
        for job in jobs:
            if not re.fullmatch(r"[A-Za-z_]\w*", job):
                raise InvalidArgumentError(f"{job!r} is not the name of a job: use letters, digits and '_'")
        self._jobs = {job: spec if isinstance(spec, JobSpec) else JobSpec(spec) for job, spec in jobs.items()}
        self._tasks = {job: list(range(spec.count)) for job, spec in self._jobs.items()}
        self._op_modules = tuple(op_modules)
        self._name = f"tfray/{name or 'cluster'}-{os.urandom(4).hex()}"
        self._made: Counter[str] = Counter()
        """By device: how many actors have been started."""
        self._key = os.urandom(32)
        self._addresses: dict[str, LinkAddress] = {}
        asked = sum(spec.num_cpus * spec.count for spec in self._jobs.values())
        self._owns_ray = connect(address, init_options, local_cpus=math.ceil(asked))
        super().__init__(silence_s)
        from tfray.actors.clusters.room import KnownNodes

        self._nodes = KnownNodes()
        try:
            self.replace_dead(start_timeout_s)
        except BaseException:
            self.close()
            raise

    @property
    def jobs(self) -> dict[str, JobSpec]:
        """The jobs by name."""
        return dict(self._jobs)

    @property
    def devices(self) -> list[str]:
        """Full names of the devices; the default device comes first, parameter servers last."""
        return sorted(self._actors, key=lambda name: DeviceSpec.from_string(name).job == "ps")

    def devices_of(self, job: str) -> list[str]:
        """Full names of the devices of a job, in the order of its tasks."""
        return [device for task in self._tasks[job] for device in self._jobs[job].devices(job, task)]

    def tasks_of(self, job: str) -> list[int]:
        """The numbers of a job's tasks: 0, 1, ... unless `set_tasks` has chosen others."""
        return list(self._tasks[job])

    def set_tasks(self, job: str, tasks: Collection[int]) -> None:
        """Say which tasks a job has from now on.

        The actors of those that it had before live on until they are forgotten; `replace_dead` starts those that it
        lacks.
        """
        self._tasks[job] = sorted(tasks)
        self._jobs[job] = replace(self._jobs[job], count=len(tasks))

    def answering(self, devices: Sequence[str], timeout_s: float) -> list[str]:
        """The devices among these whose actors answer within so many seconds."""
        calls = {self._actors[name].ready.remote(): name for name in devices if name in self._actors}
        done, _ = self._ray.wait(list(calls), num_returns=len(calls), timeout=timeout_s) if calls else ([], [])
        found = []
        for call in done:
            with suppress(self._ray.exceptions.RayError):
                self._ray.get(call)
                found.append(calls[call])
        return found

    def only(self, *jobs: str) -> ClusterPart:
        """Some jobs of the cluster, as a session's target: ``tf.Session(cluster.only("ps"))`` uses no other devices."""
        unknown = [job for job in jobs if job not in self._jobs]
        if unknown or not jobs:
            raise InvalidArgumentError(f"the cluster has no job {', '.join(unknown) or '?'}; it has {list(self._jobs)}")
        return ClusterPart(self, frozenset(jobs))

    # -- starting and replacing actors -----------------------------------------------------------

    def handle(self, device: str) -> PeerHandle:
        """How processes reach the actor of a device."""
        from tfray.actors.links.peers import PeerHandle

        return PeerHandle(self._actors[device], self._addresses[device], self._key)

    def runner(self, jobs: Collection[str] | None = None) -> RemoteRunner:
        """A new `Runner` over the devices of `jobs`, or over all; every session has its own."""
        from tfray.actors.clusters.remote_runner import RemoteRunner

        runner = RemoteRunner(self, jobs)
        self._opened(runner)
        return runner

    def introduce(self, devices: Sequence[str]) -> None:
        """Do nothing: actors are introduced to one another when they start."""

    def create_actor(self, device: str) -> Any:
        """Start an actor for `device`; it may wait for room."""
        from tfray.actors.devices.device_actor import CONCURRENT_CALLS, DeviceActor

        self._made[device] += 1
        again = f"#{self._made[device]}" if self._made[device] > 1 else ""  # Ray may still know the one before
        name = f"{self._name}/{short_name(device)}{again}"
        options = self._actor_options(device) | {"max_concurrency": CONCURRENT_CALLS, "name": name}
        try:
            return (
                self._ray.remote(DeviceActor)
                .options(**options)
                .remote(device, self._key, self._op_modules, current_folder(), self._job_of(device).store_bytes)
            )
        except (TypeError, ValueError) as error:
            job = DeviceSpec.from_string(device).job
            raise InvalidArgumentError(f"Ray refuses what job {job!r} asks for: {error}", device=device) from error

    def _actor_options(self, device: str) -> dict[str, Any]:
        return self._job_of(device).actor_options(device)

    def _job_of(self, device: str) -> JobSpec:
        return self._jobs[DeviceSpec.from_string(device).job or ""]

    def _wait_until_ready(self, actors: Mapping[str, Any], timeout_s: float, room: Room) -> dict[str, UnavailableError]:
        """Wait for new actors, with a notice when it takes long. Returns the errors of those that died meanwhile."""
        started, said = time.monotonic(), ""
        died: dict[str, UnavailableError] = {}
        waiting = {actor.ready.remote(): name for name, actor in actors.items()}
        while waiting:
            elapsed = time.monotonic() - started
            if room.is_late(elapsed, timeout_s):
                missing = list(waiting.values())
                fewer = "ask for fewer tasks or fewer CPUs per task (tf.JobSpec(count, num_cpus=0.5))"
                raise room.late(", ".join(missing), elapsed, fewer, "start_timeout_s", missing[0])
            left = timeout_s - elapsed
            done, _ = self._ray.wait(list(waiting), timeout=min(1.0, left) if left > 0 else 1.0)
            if not done:
                self._nodes.look()
                room.look()
            for ref in done:
                name = waiting.pop(ref)
                try:
                    self._addresses[name] = self._ray.get(ref).address
                except self._ray.exceptions.RayError as error:
                    died[name] = UnavailableError(f"the actor of {name} did not start: {error}", device=name)
                    if not isinstance(error, self._ray.exceptions.RayActorError) or error.actor_init_failed:
                        raise died[name] from error  # so would the next one
            if not waiting or time.monotonic() - started <= NOTICE_AFTER_S:
                continue
            what = "room for" if room.is_missing() else "the start of"
            if what != said:
                said = what
                gone = self._nodes.gone()
                notice(
                    f"waiting for {what} {len(waiting)} of {len(actors)} actors ({room}); giving up after "
                    f"{room.limit_s(timeout_s):.0f} s{'; ' if gone else ''}{gone}"
                )
        return died

    def adopt(self, started: Mapping[str, tuple[Any, LinkAddress]]) -> dict[str, Any]:
        """Take started actors, each with its link address, as those of their devices, and introduce all to one another.

        Returns:
            By device, Ray's reference to its introduction. When that has ended, the device can reach all others.
        """
        for device, (actor, address) in started.items():
            self._actors[device] = actor
            self._addresses[device] = address
        handles = {name: self.handle(name) for name in self._actors}
        fresh = {name: handles[name] for name in started}
        return {name: actor.connect.remote(handles if name in fresh else fresh) for name, actor in self._actors.items()}

    def join(self, started: Mapping[str, tuple[Any, LinkAddress]]) -> None:
        """As `adopt`, and wait until all have been introduced."""
        introductions = list(self.adopt(started).values())
        # A frozen actor is not waited for longer: it takes its introduction when it goes on, before any later call.
        self._ray.wait(introductions, num_returns=len(introductions), timeout=ANSWER_S)

    def forget(self, device: str) -> None:
        """Drop the actor of a device, and end it, because it is dead or does not answer."""
        actor = self._actors.pop(device, None)
        if self._peers is not None:
            self._peers.forget(device)
        if actor is not None:
            self._ray.kill(actor)

    def replace_dead(self, timeout_s: float = 60.0, jobs: Collection[str] | None = None) -> list[str]:
        """Start actors anew for the devices whose actors have died. What was in their memory is lost.

        Args:
            timeout_s: Seconds to wait for Ray to find room for them.
            jobs: Jobs whose dead actors are replaced; dead actors of other jobs are forgotten. None for all jobs.

        Returns:
            Full names of the devices whose actors were replaced.

        Raises:
            UnavailableError: A new actor did not start.
            ResourceExhaustedError: Ray has no room.
        """
        self.check_connected()
        ends = time.monotonic() + timeout_s
        replaced: list[str] = []
        for attempts_left in reversed(range(REPLACING_ATTEMPTS)):
            dead = self._forget_dead(jobs)
            if not dead:
                break
            died = self._replace(dead, timeout_s)  # others may have died meanwhile, too
            if died and (not attempts_left or time.monotonic() > ends):
                raise next(iter(died.values()))
            replaced += dead
        return list(dict.fromkeys(replaced))

    def _forget_dead(self, jobs: Collection[str] | None) -> list[str]:
        """Forget the actors that have died. Returns the devices of `jobs` that have no actor."""
        known = dict.fromkeys([*self._all_devices(), *self._actors])
        dead = [name for name in known if name not in self._actors or not self._lives(name)]
        for name in dead:
            self.forget(name)
        return [name for name in dead if jobs is None or DeviceSpec.from_string(name).job in jobs]

    def _replace(self, devices: Sequence[str], timeout_s: float) -> dict[str, UnavailableError]:
        """Start an actor for each device. Returns the errors of actors that died before they were ready."""
        from tfray.actors.clusters.room import Room

        room = Room(self._nodes, map(self._actor_options, devices))
        actors = {name: self.create_actor(name) for name in devices}
        try:
            died = self._wait_until_ready(actors, timeout_s, room)
        except BaseException:
            for actor in actors.values():
                self._ray.kill(actor)
            raise
        self.join({name: (actor, self._addresses[name]) for name, actor in actors.items() if name not in died})
        return died

    def _all_devices(self) -> list[str]:
        return [device for job in self._jobs for device in self.devices_of(job)]

    def _lives(self, device: str) -> bool:
        """Whether a device's actor is not known to be dead. One that does not answer may be busy."""
        call = self._actors[device].ready.remote()
        done, _ = self._ray.wait([call], timeout=ANSWER_S)
        try:
            if done:
                self._ray.get(call)
        except self._ray.exceptions.RayActorError:
            return False
        return True

    # -- the end ---------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """End every actor; shut Ray down if this cluster started it."""
        for device in list(self._actors):
            self.forget(device)
        if self._owns_ray:
            self._ray.shutdown()


@dataclass(frozen=True)
class ClusterPart:
    """Some jobs of a cluster; see `Cluster.only`."""

    cluster: Cluster
    jobs: frozenset[str]

    def runner(self) -> RemoteRunner:
        """A new `Runner` over the devices of these jobs."""
        return self.cluster.runner(self.jobs)

    def replace_dead(self) -> list[str]:
        """As `Cluster.replace_dead`, for all jobs."""
        return self.cluster.replace_dead()
