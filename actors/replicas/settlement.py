"""What holds after a parameter shard, or its standby, is gone: which open steps are done, and who has fallen behind.

A shard and its standby apply the same steps. When one of them is gone, open steps may have come further on some of the
others than on the rest. A step counts as done if at least one of each pair has applied it; otherwise it is not done if
one of each pair has not. Whoever of a pair says otherwise is given up too. If neither holds, a part of the variables
would be a step ahead of the others: then only a checkpoint helps.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Settlement(NamedTuple):
    """What holds.

    Attributes:
        done: By open step, in their order, whether it is done.
        gone: The devices that are gone, or given up.
    """

    done: tuple[bool, ...]
    gone: frozenset[str]


class Parted(NamedTuple):
    """Shards and standbys without which training can go on.

    Attributes:
        gone: Those that are gone.
        behind: Those that are there, but have not made an update which the others have made.
    """

    gone: frozenset[str]
    behind: frozenset[str]


def settlement(
    pairs: Collection[frozenset[str]], applied: Sequence[Collection[str]], gone: Collection[str]
) -> Settlement | None:
    """What holds, or None if nothing does that all agree on.

    Args:
        pairs: Each shard with its standby, or alone.
        applied: By open step, in their order, the devices that have applied it or go on until they have.
        gone: Devices that are gone.
    """
    left, done = [pair.difference(gone) for pair in pairs], []
    for devices in applied:
        is_done = all(not pair.isdisjoint(devices) for pair in left)
        left = [pair.intersection(devices) if is_done else pair.difference(devices) for pair in left]
        done.append(is_done)
    if not all(left):
        return None
    return Settlement(tuple(done), frozenset[str]().union(*pairs) - frozenset[str]().union(*left))
