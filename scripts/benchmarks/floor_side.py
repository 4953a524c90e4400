"""The side of what cannot be undercut: the machine's memory, and Ray by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.side import serve


class FloorBackend:
    """Neither graphs nor sessions."""

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


if __name__ == "__main__":
    serve(FloorBackend())
