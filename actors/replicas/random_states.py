"""The states of the devices' random streams: collected for a checkpoint, and restored."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tfray.actors.clusters.cluster import Cluster
from tfray.actors.links.awaited_answers import unpack
from tfray.actors.links.ray_calls import ended
from tfray.actors.links.silence import SILENT
from tfray.errors import DeadlineExceededError, UnavailableError
from tfray.ops.kernels.random_streams import RANDOM_STATE

POLL_S: Final = 0.25
"""Seconds after which a wait for answers ends in any case, to see who is gone."""

LATECOMER_S: Final = 2.0
"""Seconds to wait for workers beyond those needed. They answer in milliseconds, unless they are frozen or cut off."""

SHARD: Final = "/job:ps/"
"""Beginning of the names of shards."""


def collect(
    cluster: Cluster, session: str, shards: Sequence[str], workers: Sequence[str], needed: int, timeout_s: float | None
) -> dict[str, Any]:
    """The streams of a session on its devices, as arrays by their names in checkpoints.

    A worker that is gone has none. Those of one that is late or frozen are left out: after a restore they begin anew.

    Args:
        cluster: The cluster.
        session: The session.
        shards: Devices that must answer.
        workers: Devices that may be gone.
        needed: How many workers must answer.
        timeout_s: Seconds to wait for these and the shards; None for no limit.

    Raises:
        UnavailableError: A shard is gone, or answers nothing at all.
        DeadlineExceededError: A shard, or a worker that is needed, has not answered in time, though it is not frozen.
    """
    devices = [device for device in (*shards, *workers) if device in cluster.devices]
    calls = {cluster.actor(device).random_states.remote(session): device for device in devices}
    found: dict[str, Any] = {}
    for device, states in answers(cluster, calls, workers, needed, timeout_s):
        found.update({f"{RANDOM_STATE}{device}@{name}": array for name, array in states.items()})
    return found


def restore(
    cluster: Cluster,
    session: str,
    shards: Sequence[str],
    workers: Sequence[str],
    arrays: Mapping[str, Any],
    needed: int,
    timeout_s: float | None,
    homes: Mapping[str, str],
) -> None:
    """Restore the streams of a session on its devices. Those that were not saved, and those of new workers, begin anew.

    The other arguments, and errors, are those of `collect`. A worker that is late restores its streams before it does
    anything else that it is asked by a call.

    Args:
        homes: By operation of the shards, the shard on which it runs now: there its stream goes on.
    """
    own: dict[str, dict[str, Any]] = {device: {} for device in {*shards, *workers}.intersection(cluster.devices)}
    for name, array in arrays.items():
        if name.startswith(RANDOM_STATE):
            device, _, stream = name.removeprefix(RANDOM_STATE).partition("@")
            home = homes.get(stream.rsplit("|", 2)[0], device) if device.startswith(SHARD) else device
            own.get(home, {})[stream] = array
    calls = {cluster.actor(device).restore_random_states.remote(session, each): device for device, each in own.items()}
    for _ in answers(cluster, calls, workers, needed, timeout_s):
        pass


def copy(cluster: Cluster, session: str, standbys: Mapping[str, str], timeout_s: float | None) -> None:
    """Put the streams of a session on standbys where those of their shards are.

    Args:
        standbys: By shard, its standby.

    Other arguments and errors are those of `collect`.
    """
    calls = {cluster.actor(shard).random_states.remote(session): shard for shard in standbys}
    states = dict(answers(cluster, calls, (), 0, timeout_s))
    calls = {
        cluster.actor(standby).restore_random_states.remote(session, states[shard]): standby
        for shard, standby in standbys.items()
    }
    for _ in answers(cluster, calls, (), 0, timeout_s):
        pass


def answers(
    cluster: Cluster,
    calls: Mapping[Any, str],
    workers: Sequence[str],
    needed: int,
    timeout_s: float | None,
    latecomer_s: float = LATECOMER_S,
) -> Iterator[tuple[str, Any]]:
    """Yield answers of devices as they come: of all shards, of the needed workers, and of others within a moment.

    A worker that is gone, or to which the link is lost, is not waited for. A shard of which this is true ends the wait
    with `UnavailableError`. Who has answered nothing at all in `timeout_s` counts as gone from then on.
    """
    waiting = dict(calls)
    ends = None if timeout_s is None else time.monotonic() + timeout_s
    left_out = max(0, sum(device in workers for device in calls.values()) - needed)
    are_latecomers = False
    while waiting:
        late = list(waiting.values())
        if not are_latecomers and len(late) <= left_out and all(device in workers for device in late):
            are_latecomers, ends = True, time.monotonic() + latecomer_s
        left_s = math.inf if ends is None else max(0.0, ends - time.monotonic())
        done = ended(list(waiting), min(left_s, POLL_S))
        if not done and left_s <= POLL_S:
            if are_latecomers:
                return
            silent = set(late).difference(cluster.answering(late, LATECOMER_S))
            for device in silent.difference(workers):
                raise UnavailableError(_late([device], timeout_s), device=device)
            if not silent:
                raise DeadlineExceededError(_late(late, timeout_s))
            for device in silent:
                cluster.peer(device).died()
        cluster.watch()
        for ref, device in list(waiting.items()):
            if ref not in done and cluster.peer(device).is_lost:
                del waiting[ref]
                if device not in workers:
                    raise UnavailableError(f"{device} died, or the connection to it is lost", device=device)
        for ref in done:
            device = waiting.pop(ref)
            try:
                yield device, unpack(ref, device)
            except UnavailableError:
                if device not in workers:
                    raise


def _late(devices: Sequence[str], timeout_s: float | None) -> str:
    return f"{', '.join(devices)} did not answer within {timeout_s:g} s: {SILENT}"
