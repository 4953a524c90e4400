"""Streams between the processes of a cluster: what is small goes straight from one to another, in a tenth of the time
of an actor call.

Every device actor listens on a Unix socket, for peers on its node, and on a TCP port, for the others. Both ends prove
that they hold the cluster's key, which Ray hands out, before anything else is read; a stranger is refused. A frame is
a length, a JSON header, and raw buffers: nothing is unpickled, and a malformed frame closes the stream. Each stream has
a reader thread at both ends, so that two processes that send to each other at once cannot block one another; a stream
that closes is a peer that is gone.
"""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Final

import numpy as np

from tfray.errors import DataLossError
from tfray.framework.dtypes import as_dtype

MAX_FRAME_BYTES: Final = 1 << 30
MAX_TENSOR_BYTES: Final = 1 << 18
"""Larger tensors go through the object store: there they are copied once, however many receive them."""

HANDSHAKE_S: Final = 5.0
"""How long a peer may take to connect and prove that it holds the key."""

_LENGTH: Final = struct.Struct("<I")
_ALIGNMENT: Final = 16
_TIMEVAL: Final = struct.Struct("ll")

Header = Mapping[str, Any]
Tensors = Sequence[Any]


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


# -- frames ----------------------------------------------------------------------------------------------


def fits(value: Any) -> bool:
    """Whether a tensor can travel in a frame: a small array of numbers, bools or strings."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value) if np.isscalar(value) else None
    if array is None or array.nbytes > MAX_TENSOR_BYTES:
        return False
    if array.dtype.kind != "O":
        return array.dtype.kind not in "SUVMm" or array.dtype.name == "bfloat16"
    return all(isinstance(item, bytes) for item in array.reshape(-1))


def encode(header: Header, tensors: Tensors = ()) -> bytes:
    """A frame of a header, which JSON can hold, and tensors that `fits` admits."""
    specs: list[Any] = []
    buffers: list[bytes] = []
    for array in map(np.asarray, tensors):
        if array.dtype.kind == "O":
            items = list(array.reshape(-1))
            specs.append(("string", array.shape, [len(item) for item in items]))
            data = b"".join(items)
        else:
            specs.append((as_dtype(array.dtype).name, array.shape, None))
            data = array.tobytes()
        buffers += [data, bytes(-len(data) % _ALIGNMENT)]
    text = json.dumps([header, specs], separators=(",", ":")).encode()
    text += b" " * (-(_LENGTH.size + len(text)) % _ALIGNMENT)
    return b"".join([_LENGTH.pack(len(text)), text, *buffers])


def decode(data: bytes) -> tuple[dict[str, Any], list[Any]]:
    """What `encode` was given, the tensors read-only views of `data`, those of rank 0 NumPy scalars.

    Raises:
        DataLossError: The frame is malformed.
    """
    try:
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size + length
        header, specs = json.loads(data[_LENGTH.size : start])
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
        tensors = []
        for name, shape, lengths in specs:
            tensor, size = _tensor(data, start, str(name), tuple(map(int, shape)), lengths)
            tensors.append(tensor)
            start += size + -size % _ALIGNMENT
        if start != len(data):
            raise ValueError(f"{len(data)} bytes have come, where {start} were said")
        return header, tensors
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError, OverflowError) as error:
        raise DataLossError(f"malformed frame on a link between actors: {error}") from error


def _tensor(data: bytes, start: int, name: str, shape: tuple[int, ...], lengths: Any) -> tuple[Any, int]:
    """The tensor that begins at `start`, and the number of its bytes."""
    count = math.prod(shape)
    if any(size < 0 for size in shape) or count > len(data):
        raise ValueError(f"a tensor of shape {list(shape)} is not in {len(data)} bytes")
    if name != "string":
        dtype = as_dtype(name).numpy
        if dtype.hasobject:
            raise ValueError(f"a frame cannot carry {name}")
        array = np.frombuffer(data, dtype, count, start).reshape(shape)
        return array if shape else array[()], count * dtype.itemsize
    if len(lengths) != count or min(lengths, default=0) < 0 or start + sum(lengths) > len(data):
        raise ValueError("strings do not have the lengths that are said")
    strings = np.empty(count, object)
    first = start
    for index, length in enumerate(lengths):
        strings[index] = data[start : start + length]
        start += length
    return strings.reshape(shape), start - first


# -- streams ---------------------------------------------------------------------------------------------

Handle = Callable[["Link", dict[str, Any], list[Any]], None]
"""Called on the reader thread of a link with each frame that arrives."""

Ended = Callable[["Link"], None]
"""Called once when a link has closed, on either side."""


class Link:
    """One end of a stream. Any thread may send.

    Args:
        connection: The stream, after the handshake.
        handle: Takes what arrives.
        ended: Told when the stream has closed.
    """

    def __init__(self, connection: Connection, handle: Handle, ended: Ended) -> None:
        self._connection = connection
        self._handle = handle
        self._ended = ended
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to read, on a thread of its own."""
        threading.Thread(target=self.read, name="tfray-link", daemon=True).start()

    def send(self, header: Header, tensors: Tensors = ()) -> None:
        """Send a frame. Raises `OSError` when the peer is gone."""
        data = encode(header, tensors)
        with self._lock:
            self._connection.send_bytes(data)

    def read(self) -> None:
        """Take frames until the stream closes."""
        try:
            while True:
                self._handle(self, *decode(self._connection.recv_bytes(MAX_FRAME_BYTES)))
        except DataLossError as error:
            print(f"tfray: closed a link: {error}", file=sys.stderr)
        except (EOFError, OSError):
            pass  # the peer is gone
        finally:
            with self._lock:
                self._connection.close()
            self._ended(self)

    def close(self) -> None:
        """Close the stream: readers at both ends come to their end."""
        try:
            # Closing the descriptor would not wake the thread that reads from it; and a sender may hold the lock.
            stream = socket.socket(fileno=os.dup(self._connection.fileno()))
        except OSError:
            return  # closed already
        with stream, suppress(OSError):
            stream.shutdown(socket.SHUT_RDWR)


class LinkServer:
    """The listening side of one actor.

    Args:
        key: The cluster's key.
        node: Ray's identity of this node.
        host: Address of this node that others can reach.
        handle: Called on a reader thread with each frame, and the link to answer on.
        ended: Told when a link has closed.
    """

    def __init__(self, key: bytes, node: str, host: str, handle: Handle, ended: Ended) -> None:
        self._key = key
        self._handle = handle
        self._ended = ended
        path = f"\0tfray-{uuid.uuid4().hex}" if sys.platform == "linux" else ""
        self._listeners = [socket.create_server((host, 0))]
        if path:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(path)
            listener.listen(128)
            self._listeners.append(listener)
        self.address = LinkAddress(node, path, host, self._listeners[0].getsockname()[1])
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), name="tfray-accept", daemon=True).start()

    def close(self) -> None:
        """Stop listening; links that are open stay so."""
        for listener in self._listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return  # closed
            if stream.family != socket.AF_UNIX:
                _notice_silence(stream)
            # The handshake waits for the other side: it must not keep further peers waiting.
            threading.Thread(target=self._serve, args=(stream,), name="tfray-link", daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        _set_patience(stream, HANDSHAKE_S)
        connection = Connection(stream.detach())
        try:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
        except (AuthenticationError, EOFError, OSError) as error:
            print(f"tfray: refused a link: {error or 'no answer'}", file=sys.stderr)
            connection.close()
            return
        _set_patience(connection, 0)
        Link(connection, self._handle, self._ended).read()


def open_link(address: LinkAddress, key: bytes, node: str, handle: Handle, ended: Ended) -> Link:
    """Connect to an actor, and begin to read.

    Args:
        address: Where it listens.
        key: The cluster's key.
        node: Ray's identity of this node.
        handle: Called on the reader thread with each frame.
        ended: Told when the link has closed.

    Raises:
        OSError, EOFError: The peer cannot be reached.
        AuthenticationError: It does not hold the key.
    """
    if address.path and address.node == node:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.connect(address.path)
    else:
        stream = socket.create_connection((address.host, address.port), timeout=HANDSHAKE_S)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_silence(stream)
        stream.settimeout(None)
    _set_patience(stream, HANDSHAKE_S)
    connection = Connection(stream.detach())
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    _set_patience(connection, 0)
    link = Link(connection, handle, ended)
    link.start()
    return link


def _notice_silence(stream: socket.socket) -> None:
    """Let the stream close when the other node has vanished."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _set_patience(end: socket.socket | Connection, timeout_s: float) -> None:
    """How long a read may wait; 0 for as long as it takes."""
    stream = socket.socket(fileno=end.fileno()) if isinstance(end, Connection) else end
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(int(timeout_s), int(timeout_s % 1 * 1e6)))
    if stream is not end:
        stream.detach()
