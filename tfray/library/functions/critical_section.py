"""`tf.CriticalSection`: functions whose operations run while no others of the section do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from tfray.framework import dtypes, nest
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.region import Region, outermost
from tfray.framework.scopes import current_container
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.shape_ops import identity
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.dataflow.mutex_ops import MUTEX, consume_mutex_lock, mutex, mutex_lock

CRITICAL_SECTIONS = "critical_sections"
"""Name of the collection of a graph's sections."""

CRITICAL_SECTION_EXECUTIONS = "critical_section_executions"
"""Name of the collection of what their calls use: each with its lock as ``op``."""


@dataclass(frozen=True)
class _Execution:
    """What a call of `CriticalSection.execute` uses: its lock, resources, and whether no other section may use them."""

    op: Operation
    handle: Tensor
    resources: Collection[Tensor]
    is_exclusive: bool


class CriticalSection:
    """Lets the functions given to `execute` run one after the other, also those of other steps.

        section = tf.CriticalSection()
        count = section.execute(lambda: v.assign_add(1))

    Args:
        name: Name of the operation; ``CriticalSection``, made unique, when None.
        shared_name: Sections of one shared name are one section; `name` when None.
        critical_section_def: None: sections have no other form.
        import_scope: Accepted, as `critical_section_def`.

    Raises:
        ValueError: `critical_section_def` is given.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: object = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None:
            raise ValueError("a critical section cannot be made from a critical_section_def; give a name")
        with (
            outermost() as graph,
            graph.control_dependencies(None),
            graph.name_scope(name or "CriticalSection") as scope,
        ):
            own = scope.rstrip("/")
            self._handle = mutex(current_container(), own if shared_name is None else shared_name, name=scope)
        get_default_graph().add_to_collection(CRITICAL_SECTIONS, self)

    @property
    def name(self) -> str:
        """Name of the operation."""
        return self._handle.op.name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """Call `fn`, and let what it builds run while nothing else of the section does.

        What its operations take from outside is computed before. A step that fails leaves the section.

        Args:
            fn: Function without arguments that builds operations, and returns tensors in any structure.
            exclusive_resource_access: Whether no other section may use the variables, queues and so on that `fn` uses.
            name: Name scope of the operations; ``critical_section_execute`` when None.

        Returns:
            What `fn` returned. Each part is there only after all of them, and after the section has been left.

        Raises:
            ValueError: `fn` uses this section itself, which would wait for ever; or another section uses the same
                resources, and one of the two wants them for itself; or `fn` returned no tensor.
        """
        graph = get_default_graph()
        with graph.name_scope(name or "critical_section_execute"):
            lock = mutex_lock(self._handle, "MutexLock")
            before = set(graph.get_operations())
            with graph.control_dependencies([lock.op]):
                returned = fn()
            created = [op for op in graph.get_operations() if op not in before]
            taken = {tensor for op in created for tensor in op.inputs if tensor.dtype is dtypes.resource}
            resources = {graph.origin(tensor) if isinstance(graph, Region) else tensor for tensor in taken}
            if any(map(self._is_own, resources)):
                raise ValueError(
                    f"the function attempts to directly access the CriticalSection in which it would be running: "
                    f"it uses critical section {self.name!r}, in which it is to run itself"
                )
            self._check_exclusive(resources, exclusive_resource_access)
            _finish_before(lock.op, created)
            values = [_identity(value) for value in nest.flatten(returned)]
            with graph.control_dependencies([getattr(value, "flow", value) for value in values]):
                left = consume_mutex_lock(lock)
            with graph.control_dependencies([left]):
                results = [_identity(value) for value in values]
        execution = _Execution(lock.op, self._handle, resources, exclusive_resource_access)
        graph.add_to_collection(CRITICAL_SECTION_EXECUTIONS, execution)
        return nest.pack_sequence_as(returned, results)

    def _is_own(self, resource: Tensor) -> bool:
        op, own = resource.op, self._handle.op
        return op.type == MUTEX.name and op.attrs["shared_name"] == own.attrs["shared_name"]

    def _check_exclusive(self, resources: Collection[Tensor], is_exclusive: bool) -> None:
        for other in get_default_graph().get_collection(CRITICAL_SECTION_EXECUTIONS):
            shared = [tensor.name for tensor in resources if tensor in other.resources]
            if shared and not self._is_own(other.handle) and (is_exclusive or other.is_exclusive):
                raise ValueError(
                    f"critical section {other.handle.op.name!r} uses {', '.join(sorted(shared))} too, and one of the "
                    "two requested exclusive resource access: use one section, or exclusive_resource_access=False in "
                    "both"
                )


def _identity(value: Any) -> Any:
    """`value` after the control dependencies of the current scope."""
    if isinstance(value, TensorArray):
        return value.identity()
    return group(value) if isinstance(value, Operation) else identity(value)


def _finish_before(lock: Operation, created: Collection[Operation]) -> None:
    """Let what the `created` operations take from elsewhere be computed before the lock is taken.

    It may itself depend on an execution of the same section.
    """
    inner = {lock, *created}
    needed = {tensor.op for op in created for tensor in op.inputs} | {
        each for op in created for each in op.control_inputs
    }
    lock.add_control_inputs(sorted(needed - inner, key=lambda op: op.id))
