"""Parameter servers with standbys: who stands by for whom, what happens when one dies, and how the next one comes.

A run of ``replicated_shards=True`` has twice as many parameter servers as shards. Half of them hold the variables of
which replicas are sent the values. Each of the others is the *standby* of one of these: every update goes to both
(`tfray.placement.standbys`).

1. At the start each standby is given the values of its shard's variables. It is on another node, if that can be.
2. When one of the two dies, the driver brings the open steps to an end on those that are left. A standby takes the
   place of its shard: the graph asks for its device from then on. No value moves, and no step is lost.
3. Ray is asked for another parameter server. When it has started, it becomes the standby of the shard without one,
   between two steps. One that lacks an update becomes a standby at once, with the values of the shard.

If a shard and its standby die together, the run goes back to its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.replicas.driver import ReplicaDriver
from tfray.actors.replicas.settlement import Parted
from tfray.actors.replicas.shard_starts import ShardStarts
from tfray.errors import FailedPreconditionError, UnavailableError
from tfray.placement.replicate import CompiledReplicaStep
from tfray.session import Session
from tfray.training.trainer.run_checkpoints import RunCheckpoints
from tfray.training.trainer.shard_placement import JOB, Move, ShardPlacement, device_of, move_variables, task_of


class ShardStandbys:
    """The parameter servers of one run with standbys.

    Args:
        cluster: Its actors: twice as many parameter servers as shards.
        placement: The places of its variables.
        checkpoints: They are written and read where the variables live.
        count: Number of shards.
        told: Called with a sentence about each change.

    Raises:
        InvalidArgumentError: The program has put something on a parameter server that is no variable of the trainer's:
            a standby would not have it.
    """

    def __init__(
        self,
        cluster: Cluster,
        placement: ShardPlacement,
        checkpoints: RunCheckpoints,
        count: int,
        told: Callable[[str], None],
    ) -> None:
        placement.check_all_movable()
        self._cluster = cluster
        self._placement = placement
        self._checkpoints = checkpoints
        self._told = told
        self._tasks = cluster.tasks_of(JOB)[:count]
        """The shards, in the order in which variables are spread over them."""
        self._standbys: dict[int, int] = {}
        """By shard: its standby."""
        self._spares: list[int] = []
        """Those that have fallen behind. Given the values of a shard, each can be a standby again."""
        self._starts = ShardStarts(cluster, JOB)

    @property
    def devices(self) -> list[str]:
        """Full names of the shards' devices."""
        return [device_of(task) for task in self._tasks]

    @property
    def standbys(self) -> dict[str, str]:
        """By shard, the device of its standby, if it has one."""
        return {device_of(shard): device_of(standby) for shard, standby in self._standbys.items()}

    def wish(self, count: int) -> None:
        """Refuse another number of parameter servers."""
        raise FailedPreconditionError(
            f"scale({count}): the run has replicated_shards=True, and keeps its {len(self._tasks)} parameter servers"
        )

    def begin(self) -> None:
        """Give each standby the values of its shard. Call it when the variables have them, and no step is open."""
        others = [task for task in self._cluster.tasks_of(JOB) if task not in self._tasks]
        nodes = {task: self._cluster.handle(device_of(task)).address.node for task in (*self._tasks, *others)}
        self._spares.clear()
        self._standbys = _paired(self._tasks, others, nodes)
        self._copy(self._standbys)

    def is_due(self) -> bool:
        """Whether to hold the driver because another standby has started. Call it after each step."""
        missing = len(self._tasks) - len(self._standbys)
        self._starts.want(max(0, missing - len(self._spares)))
        self._starts.look()
        return bool(missing and (self._spares or self._starts.started)) and not self._checkpoints.is_saving

    def change(self, session: Session, driver: ReplicaDriver, compiled: Callable[[], CompiledReplicaStep]) -> None:
        """Take the standbys that have started. The driver is held.

        Args:
            session: The session of the parameter servers.
            driver: Runs the steps.
            compiled: Compiles the step for the parameter servers that there are.

        Raises:
            UnavailableError: A parameter server has died.
        """
        self._checkpoints.wait()
        vacant = [shard for shard in self._tasks if shard not in self._standbys]
        fresh = [self._spares.pop() for _ in vacant[: len(self._spares)]]
        fresh += self._starts.take(len(vacant) - len(fresh))
        self._cluster.set_tasks(JOB, [*self._tasks, *self._standbys.values(), *fresh])
        session._forget_homes()
        begun: dict[int, int] = {}
        for shard, standby in zip(vacant, fresh, strict=False):
            try:
                self._copy({shard: standby})
            except UnavailableError as error:
                if error.device != device_of(standby):
                    raise
                self._cluster.forget(device_of(standby))  # it has died meanwhile
            else:
                begun[shard] = standby
        self._standbys |= begun
        self._set_tasks()
        if not begun:
            return
        driver.change_shards(compiled())
        for shard, standby in begun.items():
            self._told(f"{device_of(standby)} is the standby of {device_of(shard)} now")

    def take_over(self, session: Session, parted: Parted) -> None:
        """Do without some parameter servers: standbys take the places of their shards.

        Args:
            session: The session of the parameter servers.
            parted: Those that are gone, and those that have fallen behind. Of each shard and its standby, one is left.
        """
        for shard, standby in list(self._standbys.items()):
            if device_of(shard) in parted.gone | parted.behind:
                self._tasks[self._tasks.index(shard)] = standby
                self._tell_of(shard, f"its standby {device_of(standby)} takes its place", parted)
                self._drop(shard, shard, parted)
            elif device_of(standby) in parted.gone | parted.behind:
                self._tell_of(standby, f"it was the standby of {device_of(shard)}", parted)
                self._drop(shard, standby, parted)
        self._set_tasks()
        self._placement.place(self._tasks)
        self._checkpoints.rebuild()
        session._forget_homes()

    def _tell_of(self, task: int, what: str, parted: Parted) -> None:
        why = "is gone" if device_of(task) in parted.gone else "lacks an update that the others have made"
        self._told(f"{device_of(task)} {why}: {what}")

    def _drop(self, shard: int, task: int, parted: Parted) -> None:
        """Drop one of a shard and its standby."""
        del self._standbys[shard]
        if device_of(task) in parted.behind:
            self._spares.append(task)
        else:
            self._cluster.forget(device_of(task))

    def tidy(self, driver: ReplicaDriver) -> None:
        """Do nothing: no change leaves anything behind."""

    def recover(self) -> None:
        """Do nothing: those that have died are started anew, and the run goes back to a checkpoint."""

    def end(self) -> None:
        """Ask for no more."""
        self._starts.end()

    def _set_tasks(self) -> None:
        self._cluster.set_tasks(JOB, [*self._tasks, *self._standbys.values(), *self._spares])

    def _copy(self, standbys: Mapping[int, int]) -> None:
        moves = [
            Move(variable, device_of(shard), device_of(standbys[shard]))
            for variable in self._placement.variables()
            if (shard := task_of(variable.device)) is not None and shard in standbys
        ]
        move_variables(self._cluster, moves)


def _paired(shards: Sequence[int], others: Sequence[int], nodes: Mapping[int, str]) -> dict[int, int]:
    """By shard, one of the others, so that as many pairs as possible are on two nodes."""

    def by_node(task: int) -> tuple[str, int]:
        return nodes[task], task

    ordered, rest = sorted(shards, key=by_node), sorted(others, key=by_node)
    turned = [dict(zip(ordered, [*rest[turn:], *rest[:turn]], strict=False)) for turn in range(max(1, len(rest)))]
    return max(turned, key=lambda pairs: sum(nodes[shard] != nodes[other] for shard, other in pairs.items()))
