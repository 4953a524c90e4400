"""The side of what cannot be undercut: the machine's memory, its streams between processes, and Ray by itself."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable, Iterator
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


def _send_back(stream: socket.socket) -> None:
    while data := stream.recv(1 << 16):
        stream.sendall(data)


if __name__ == "__main__":
    serve(FloorBackend())
