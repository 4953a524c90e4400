"""How both ends of a stream prove that they hold the cluster's key, before anything else is read from it.

Each end sends random bytes, and then their HMAC under the key, together with who it is and which channel this is. The
channel is the address that Ray has handed out for the listening end, and the addresses of both ends as each of them
sees them. So a proof is worth nothing on another stream: a third party that passes on what both ends say, from one
stream to another, is refused. What is read before the proof has a fixed, small length.

    connecting end   -> purpose of the stream, nonce
    listening end    -> nonce, proof
    connecting end   -> proof
    listening end    -> accepted
"""

from __future__ import annotations

import hmac
import os
import socket
import threading
import time
from dataclasses import dataclass
from enum import Enum
from multiprocessing import AuthenticationError
from typing import Final

from tfray.actors.links.notices import notice

NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32  # of SHA-256
_ACCEPTED: Final = b"\x06"
_NONCES_ONLY: Final = b"tfray link 2"

LOG_EVERY_S: Final = 60.0
"""Refusals are printed at most once in this many seconds: strangers can cause any number of them."""


@dataclass(frozen=True)
class LinkAddress:
    """Where an actor listens.

    Attributes:
        node: Ray's identity of its node.
        path: Name of its Unix socket, in the namespace that leaves no file; empty where there is none.
        host: Address of its node.
        port: Its TCP port.
    """

    node: str
    path: str
    host: str
    port: int


class Purpose(bytes, Enum):
    """What a stream is for. The proofs hold for that purpose alone."""

    LINK = b"l"
    TENSORS = b"t"


def connect(
    stream: socket.socket, address: LinkAddress, key: bytes, within_s: float, purpose: Purpose = Purpose.LINK
) -> None:
    """Prove the key to the actor that listens at `address`, and check its proof.

    Raises:
        AuthenticationError: The other end does not hold the key, or is not the one that listens there.
        OSError, EOFError: The other end does not answer in time, or has closed the stream.
    """
    conversation = _Conversation(stream, within_s)
    own = os.urandom(NONCE_BYTES)
    stream.sendall(purpose + own)
    other = conversation.receive(NONCE_BYTES)
    channel = _channel(purpose, address, stream.getsockname(), stream.getpeername())
    _check(conversation.receive(PROOF_BYTES), _proof(key, b"listening", own, other, channel))
    stream.sendall(_proof(key, b"connecting", own, other, channel))
    if conversation.receive(len(_ACCEPTED)) != _ACCEPTED:
        raise AuthenticationError("the other end of the link refuses it")


def accept(stream: socket.socket, address: LinkAddress, key: bytes, within_s: float) -> Purpose:
    """Prove the key to the process that has connected to `address`, and check its proof. Raises as `connect` does.

    Returns:
        What the stream is for.
    """
    conversation = _Conversation(stream, within_s)
    asked = conversation.receive(1 + NONCE_BYTES)
    other = asked[1:]
    try:
        purpose = Purpose(asked[:1])
    except ValueError:
        raise AuthenticationError("the other end of the link does not speak as this version of tfray does") from None
    own = os.urandom(NONCE_BYTES)
    channel = _channel(purpose, address, stream.getpeername(), stream.getsockname())
    stream.sendall(own + _proof(key, b"listening", other, own, channel))
    _check(conversation.receive(PROOF_BYTES), _proof(key, b"connecting", other, own, channel))
    stream.sendall(_ACCEPTED)
    return purpose


def _channel(purpose: Purpose, address: LinkAddress, connecting: object, listening: object) -> bytes:
    ends = [end[:2] for end in (connecting, listening) if isinstance(end, tuple)]  # those of a Unix socket say nothing
    return purpose + repr((address.node, address.path, address.host, address.port, ends)).encode()


def _proof(key: bytes, role: bytes, connecting: bytes, listening: bytes, channel: bytes) -> bytes:
    return hmac.digest(key, b"|".join((_NONCES_ONLY, role, connecting, listening, channel)), "sha256")


def _check(proof: bytes, wanted: bytes) -> None:
    if not hmac.compare_digest(proof, wanted):
        raise AuthenticationError("the other end of a link does not hold the cluster's key, or passes on another link")


class _Conversation:
    """Receives what the other end says, within `within_s` seconds in all."""

    def __init__(self, stream: socket.socket, within_s: float) -> None:
        self._stream = stream
        self._ends = time.monotonic() + within_s
        stream.settimeout(within_s)

    def receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            remaining = self._ends - time.monotonic()
            if remaining <= 0:
                raise TimeoutError("no answer in time")
            self._stream.settimeout(remaining)
            piece = self._stream.recv(count - len(data))
            if not piece:
                raise EOFError("the other end closed the stream")
            data += piece
        return data


class RefusalLog:
    """Prints refused links on standard error: the first at once, further ones together, once a minute."""

    def __init__(self, every_s: float = LOG_EVERY_S) -> None:
        self._every_s = every_s
        self._refused = 0
        self._reason = ""
        self._resting: threading.Timer | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def close(self) -> None:
        """Print what is counted, and no more: who is refused by a listener that ends is no news."""
        with self._lock:
            if self._resting is not None:
                self._resting.cancel()
            if not self._is_closed:
                self._is_closed = True
                self._tell()

    def refused(self, reason: object) -> None:
        """Note a refusal."""
        with self._lock:
            if self._is_closed:
                return
            self._refused += 1
            self._reason = str(reason)
            if self._resting is None:
                self._tell()

    def _tell(self) -> None:
        """Print refusals, if there are any, and wait before the next time. Call with the lock held."""
        self._resting = None
        if not self._refused:
            return
        count, self._refused = self._refused, 0
        what = "a link" if count == 1 else f"{count} links in {self._every_s:.0f} s, the last"
        notice(f"refused {what}: {self._reason}")
        if self._is_closed:
            return
        self._resting = threading.Timer(self._every_s, self._wake)
        self._resting.daemon = True
        self._resting.start()

    def _wake(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._tell()
