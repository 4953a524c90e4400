"""Which messages of graphs were made in this process: these may use what they like when they are imported again."""

from __future__ import annotations

import hashlib
from typing import Final

from tfray.formats.graph_proto import GraphDef

_made_here: Final[set[bytes]] = set()
"""Digests of graphs that use files or Python. Others need no permission anyway."""


def remember(message: GraphDef) -> None:
    """Let a graph use what it likes, as long as its message stays as it is."""
    _made_here.add(_digest(message))


def is_own(message: GraphDef) -> bool:
    """Whether `remember` knows it."""
    return bool(_made_here) and _digest(message) in _made_here


def forget(message: GraphDef) -> None:
    """Take a graph for a stranger's: it was read from bytes, which anybody may have written."""
    if _made_here:
        _made_here.discard(_digest(message))


def _digest(message: GraphDef) -> bytes:
    return hashlib.blake2b(message.SerializeToString(), digest_size=16).digest()
