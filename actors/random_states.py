"""Where the random streams of devices are: collected for a checkpoint, and put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfray.actors.answers import unpack
from tfray.actors.cluster import Cluster
from tfray.errors import UnavailableError
from tfray.ops.random_streams import RANDOM_STATE


def collect(cluster: Cluster, devices: Sequence[str]) -> dict[str, Any]:
    """The streams of devices, as arrays by their names in checkpoints. A worker that is gone has none."""
    calls = {device: cluster.actor(device).random_states.remote() for device in devices if device in cluster.devices}
    found = {}
    for device, ref in calls.items():
        try:
            states = unpack(ref, device)
        except UnavailableError:
            if not device.startswith("/job:worker/"):
                raise
            continue
        found.update({f"{RANDOM_STATE}{device}@{name}": array for name, array in states.items()})
    return found


def restore(cluster: Cluster, devices: Sequence[str], arrays: Mapping[str, Any]) -> None:
    """Put the streams of devices where they were; those that were not saved, and those of new workers, begin anew."""
    calls = {}
    for device in set(devices).intersection(cluster.devices):
        start = f"{RANDOM_STATE}{device}@"
        own = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        calls[cluster.actor(device).restore_random_states.remote(own)] = device
    for ref, device in calls.items():
        try:
            unpack(ref, device)
        except UnavailableError:
            if not device.startswith("/job:worker/"):
                raise
