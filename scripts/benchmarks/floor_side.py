"""The side of what cannot be undercut: the machine's memory, its streams between processes, and Ray by itself."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.side import serve

_MESSAGE: Final = bytes(128)


class FloorBackend:
    """Neither graphs nor sessions."""

    versions: Final = {}

    @contextmanager
    def actor(self) -> Iterator[Callable[[], Any]]:
        """An actor that does nothing; gives the function that calls it and waits for its answer."""
        import ray

        @ray.remote(num_cpus=1)
        class Actor:
            def answer(self) -> None:
                pass

        ray.init(address="local", num_cpus=1, include_dashboard=False, logging_level="error")
        try:
            actor = Actor.remote()
            yield lambda: ray.get(actor.answer.remote())
        finally:
            ray.shutdown()

    @contextmanager
    def echo(self) -> Iterator[Callable[[], Any]]:
        """A process that sends back what it gets over a stream of the kind that links use between neighbours."""
        ours, theirs = socket.socketpair()
        process = multiprocessing.get_context("spawn").Process(target=_send_back, args=(theirs,), daemon=True)
        process.start()
        theirs.close()

        def round_trip() -> None:
            ours.sendall(_MESSAGE)
            missing = len(_MESSAGE)
            while missing:
                missing -= len(ours.recv(missing))

        try:
            round_trip()  # it has started
            yield round_trip
        finally:
            ours.close()
            process.join()

    @contextmanager
    def streams(self, count: int, size: int) -> Iterator[Callable[[], Any]]:
        """A process that takes bytes over TCP streams, and sends as many back; `size` bytes in all each way."""
        share = size // count
        with socket.create_server(("127.0.0.1", 0)) as listener:
            process = multiprocessing.get_context("spawn").Process(
                target=_exchange, args=(listener.getsockname(), count, share), daemon=True
            )
            process.start()
            streams = [listener.accept()[0] for _ in range(count)]
        memory = [bytearray(share) for _ in streams]
        with ThreadPoolExecutor(count) as pool:
            yield lambda: list(pool.map(_give_and_take, streams, memory))
        for stream in streams:
            stream.close()
        process.join()


def _exchange(address: tuple[str, int], count: int, size: int) -> None:
    with ThreadPoolExecutor(count) as pool:
        for _ in range(count):
            pool.submit(_take_and_give, socket.create_connection(address), size)


def _take_and_give(stream: socket.socket, size: int) -> None:
    data = bytearray(size)
    while _filled(stream, data):
        stream.sendall(data)


def _give_and_take(stream: socket.socket, data: bytearray) -> None:
    stream.sendall(data)
    _filled(stream, data)


def _filled(stream: socket.socket, data: bytearray) -> bool:
    """Fill `data` from a stream. Returns False at its end."""
    rest = memoryview(data)
    while rest:
        count = stream.recv_into(rest)
        if not count:
            return False
        rest = rest[count:]
    return True


def _send_back(stream: socket.socket) -> None:
    while data := stream.recv(1 << 16):
        stream.sendall(data)


if __name__ == "__main__":
    serve(FloorBackend())
