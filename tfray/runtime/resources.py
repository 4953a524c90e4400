"""State that lives on a device between steps: variables, random streams, queues, iterators and the like."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, TypeVar

from tfray.errors import FailedPreconditionError

Resource = TypeVar("Resource")


class ResourceContainer:
    """Resources found by key: those of a device, which its sessions share, or those of one session on it.

    Attributes:
        drops: How often resources have been dropped.
    """

    def __init__(self) -> None:
        self.drops = 0
        self._resources: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def lookup_or_create(self, key: Hashable, factory: Callable[[], Resource]) -> Resource:
        """The resource of that key. `factory` makes it if there is none."""
        found = self._resources.get(key)
        if found is None:
            with self._lock:
                found = self._resources.get(key)
                if found is None:
                    found = self._resources[key] = factory()
        return found

    def variable(self, name: str, container: str = "") -> VariableResource:
        """The variable of that name in a container. It is made if there is none, and then has no value yet."""
        key = ("variable", name, container) if container else ("variable", name)
        # Steps call this often, so look first: only a new variable needs a factory.
        return self._resources.get(key) or self.lookup_or_create(key, lambda: VariableResource(name))

    def find(self, key: Hashable) -> Any | None:
        """The resource of that key, or None."""
        return self._resources.get(key)

    def __iter__(self) -> Iterator[Hashable]:
        # Of a copy: other threads may add resources meanwhile.
        return iter(list(self._resources))

    def remove(self, key: Hashable) -> None:
        """Drop a resource, if it is there."""
        with self._lock:
            self._resources.pop(key, None)
            self.drops += 1

    def clear(self, containers: Collection[str] | None = None) -> None:
        """Drop resources. Those with threads of their own have a method `release`, which ends the threads.

        Args:
            containers: Those whose resources to drop, ``""`` for what is in none; all resources when None.
        """
        with self._lock:
            dropped = [key for key in self._resources if containers is None or _container(key) in containers]
            resources = [self._resources.pop(key) for key in dropped]
            self.drops += 1
        for resource in resources:
            release = getattr(resource, "release", None)
            if release is not None:
                release()


def _container(key: Hashable) -> str:
    """The container of a resource, by its key."""
    match key:
        case ("variable", _, container) | ("shared", container, _):
            return str(container)
    return ""


class VariableResource:
    """A variable's storage: one array, updated in place.

    Updates hold `lock`: two steps never mix their updates of one variable. Reads do not hold it: a step that reads
    while another step updates may see part of the update, as in the asynchronous training of the TensorFlow paper.

    Attributes:
        name: Name of the variable.
        array: The value; None before initialisation.
        lock: Held by every update.
    """

    __slots__ = ("__weakref__", "array", "lock", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.array: Any = None
        self.lock = threading.Lock()

    def read(self) -> Any:
        """The array itself, not a copy. Raises `FailedPreconditionError` before initialisation."""
        if self.array is None:
            raise FailedPreconditionError(
                f"Attempting to use uninitialized value {self.name}: run tf.global_variables_initializer() "
                f"(or restore a checkpoint) in this session first"
            )
        return self.array
