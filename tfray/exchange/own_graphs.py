"""Which messages of graphs were made in this process: these may use what they like when they are imported again."""

from __future__ import annotations

import hashlib
from typing import Final

from tfray.formats.graph_proto import GraphDef
from tfray.formats.stand_in import pieces_of, with_marks

_made_here: Final[dict[tuple[int, str], set[bytes]]] = {}
"""Digests of graphs that use files or Python, by `_outline`. Others need no permission anyway."""


def remember(message: GraphDef) -> None:
    """Let a graph use what it likes, as long as its message stays as it is."""
    _made_here.setdefault(_outline(message), set()).add(_digest(message))


def is_own(message: GraphDef) -> bool:
    """Whether `remember` knows it."""
    digests = _made_here.get(_outline(message))
    return digests is not None and _digest(message) in digests


def forget(message: GraphDef) -> None:
    """Take a graph for a stranger's: it was read from bytes, which anybody may have written."""
    digests = _made_here.get(_outline(message))
    if digests:
        digests.discard(_digest(message))


def _outline(message: GraphDef) -> tuple[int, str]:
    """What tells most graphs apart at once: a digest takes all bytes of the message."""
    nodes = with_marks(message).node
    return len(nodes), nodes[-1].name if nodes else ""


def _digest(message: GraphDef) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces_of(message):
        digest.update(piece)
    return digest.digest()
