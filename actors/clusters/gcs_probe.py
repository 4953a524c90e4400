"""Finds out within seconds what answers at the address of a Ray cluster. Ray itself would retry for long.

It asks for the cluster's identity over gRPC, which is HTTP/2 (RFC 9113) with headers in HPACK (RFC 7541). It has only
those parts of both that one call without arguments needs.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from enum import Enum
from typing import Final

CONNECT_TIMEOUT_S: Final = 5.0
"""Seconds for the connection and the answer. Ray itself would retry for much longer."""

HTTP2_DATA, HTTP2_HEADERS, HTTP2_SETTINGS, HTTP2_GOAWAY = 0, 1, 4, 7
"""Types of HTTP/2 frames. Both sides begin with their settings (RFC 9113, section 3.4)."""

HTTP2_HEADER_BYTES: Final = 9
"""Bytes of a frame's header: three for its length, one for its type, one for its flags, four for its stream."""

_END_STREAM, _END_HEADERS, _ACKNOWLEDGED = 1, 4, 1

_MAX_FRAME_BYTES: Final = 1 << 14
"""Bytes that a peer may send in one frame unless it was told otherwise (RFC 9113, section 4.2)."""

_METHOD: Final = b"/ray.rpc.NodeInfoGcsService/GetClusterId"
_EMPTY_MESSAGE: Final = bytes(5)

_UNAUTHENTICATED: Final = b"\x0bgrpc-status\x0216"
"""The status of a refused call, as gRPC writes headers: lengths and plain text."""


class Answer(Enum):
    """What answers at an address."""

    CLUSTER = "a cluster, which takes the token, or asks for none"
    REFUSED = "a cluster, which asks for another token"
    OTHER = "something else"


def probe(address: str, token: str | None = None) -> Answer:
    """Ask what answers at ``host:port``.

    Args:
        address: The address.
        token: The token to show.

    Raises:
        OSError: Nothing answers.
    """
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    with socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return Answer.CLUSTER  # only Ray knows the certificates
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(HTTP2_SETTINGS))
        frames = _frames(connection, deadline)
        first = next(frames, None)
        if first is None or first[0] != HTTP2_SETTINGS:
            return Answer.OTHER
        connection.sendall(
            _frame(HTTP2_SETTINGS, _ACKNOWLEDGED)
            + _frame(HTTP2_HEADERS, _END_HEADERS, 1, _headers(address, token))
            + _frame(HTTP2_DATA, _END_STREAM, 1, _EMPTY_MESSAGE)
        )
        answered = b""
        for kind, flags, stream, payload in frames:
            answered += payload if kind == HTTP2_HEADERS and stream == 1 else b""
            if kind == HTTP2_GOAWAY or (stream == 1 and flags & _END_STREAM):
                break
    return Answer.REFUSED if _UNAUTHENTICATED in answered else Answer.CLUSTER


def _frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _frames(connection: socket.socket, deadline: float) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, flags, stream and content of each frame, until the peer ends, sends nonsense, or the deadline is over."""

    def take(size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            received = connection.recv(size - len(taken))
            if not received:
                raise ConnectionResetError
            taken += received
        return taken

    try:
        while True:
            header = take(HTTP2_HEADER_BYTES)
            size = int.from_bytes(header[:3], "big")
            if size > _MAX_FRAME_BYTES:
                return
            yield header[3], header[4], int.from_bytes(header[5:], "big"), take(size)
    except (TimeoutError, ConnectionResetError):
        return


def _headers(address: str, token: str | None) -> bytes:
    """The headers of the call: names by their numbers in HPACK's table where they have one, values as plain text."""
    post, http = b"\x83", b"\x86"
    named = b"\x04" + _text(_METHOD) + b"\x01" + _text(address.encode()) + b"\x0f\x10" + _text(b"application/grpc")
    headers = post + http + named + b"\x00" + _text(b"te") + _text(b"trailers")
    if token is not None:
        headers += b"\x00" + _text(b"authorization") + _text(b"Bearer " + token.encode())
    return headers


def _text(text: bytes) -> bytes:
    """A text after its length; the length is written in groups of seven bits."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, length = len(text) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + text
