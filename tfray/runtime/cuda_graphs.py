"""CUDA graphs: what a body launches on a GPU, captured once and then launched as one.

A launch takes the host 5 to 50 microseconds, and a step has hundreds. A body whose operations do nothing but launch
kernels, on arrays that stay where they are, is captured in its fourth run; from then on a run is one launch. What could
differ from step to step has its place: inputs are copied into arrays of the graph's own, variables are looked at before
each launch, and a graph is thrown away when one of them lies elsewhere than it did. Memory comes from a pool of the
graph's own, so that nothing else ever lies in it.

A loop is captured turn by turn, and a branch as it was taken, if what decides is computed on the host: from constants
and from the shapes of inputs, which are the same in every run of a graph. A decision by a value on the device would
have to be waited for, which ends the capture.

Random numbers are drawn before, where their shapes are known, and are inputs of the graph: see `draws_first`.

Bodies with such decisions, queues, or anything else that the host takes part in, run as they are; so does everything
with ``TFRAY_CUDA_GRAPHS=0`` in the environment.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tfray.framework import dtypes
from tfray.framework.effects import access_of, resource_name, uses_step
from tfray.framework.graph import Operation
from tfray.framework.region import regions_of
from tfray.ops.kernels.updated_arrays import locked
from tfray.runtime.device import Device
from tfray.runtime.segment_body import Body

GRAPHS_VARIABLE: Final = "TFRAY_CUDA_GRAPHS"
"""The environment variable that turns graphs off, where it is ``0``."""

_PLAIN_RUNS: Final = 3
"""Runs before a capture. In the first, kernels are compiled and cuDNN's engines measured, which no graph can hold."""

_MOST_CAPTURES: Final = 4
"""A body whose variables have moved this often is not captured again."""

_COPY_NODE: Final = "memcpy"
_ON_DEVICE: Final = "device to device"

_log = logging.getLogger(__name__)

Function = Callable[..., tuple[Any, ...]]


def can_capture(body: Body, device: Device) -> bool:
    """Whether the operations of a body do nothing but launch kernels on a GPU that knows graphs."""
    if device.type != "GPU" or os.environ.get(GRAPHS_VARIABLE) == "0":
        return False
    if not hasattr(device.xp.cuda.Stream, "begin_capture"):
        return False
    if any(tensor.dtype is dtypes.variant for tensor in body.outputs):
        return False  # a list would go on to hold what the next launch writes
    launched = [op for op in body.ops if not op.outputs or not all(tensor in body.constants for tensor in op.outputs)]
    return bool(launched) and all(map(_only_launches, launched))


def draws_first(body: Body, device: Device) -> tuple[Body, Body] | None:
    """A body in two parts: what draws random numbers of known shapes, and the rest, which takes them and is captured.

    None if there is nothing to part. Operations that draw read nothing but their own streams, so they may run first.
    """
    draws = [op for op in body.ops if _draws(op, body)]
    drawn = [tensor for op in draws for tensor in op.outputs]
    if not draws:
        return None
    sizes = {tensor.op for op in draws for tensor in op.inputs}  # they are constants
    rest = Body([op for op in body.ops if op not in set(draws)], [*body.inputs, *drawn], body.outputs, body.constants)
    first = Body([*sizes, *draws], [], drawn, body.constants)
    return (first, rest) if can_capture(rest, device) else None


def _draws(op: Operation, body: Body) -> bool:
    return (
        op.op_def.stateful
        and "seed2" in op.op_def.attrs
        and all(tensor in body.constants for tensor in op.inputs)
        and all(tensor.dtype not in (dtypes.resource, dtypes.variant, dtypes.string) for tensor in op.outputs)
    )


def _only_launches(op: Operation) -> bool:
    if op.type in ("Variable", "RegionInput"):
        return True
    definition = op.op_def
    if definition.blocking or definition.defers_regions or uses_step(op):
        return False
    if any(tensor.dtype is dtypes.string for tensor in (*op.inputs, *op.outputs)):
        return False
    if definition.regions:
        return all(_only_launches(inner) for region in regions_of(op) for inner in region.get_operations())
    # A list of tensors has a state, but one of its own in each run: a device has kernels for no other variants.
    is_of_lists = any(tensor.dtype is dtypes.variant for tensor in (*op.inputs, *op.outputs))
    return definition.access is not None or is_of_lists or not definition.stateful


@dataclass
class _Captured:
    """A graph, and what it works on.

    Attributes:
        graph: The graph.
        memory: Keeps the stream and the pool.
        inputs: The arrays that it reads inputs from.
        outputs: The results, which each launch writes anew.
        variables: The variables, each with the array that the graph reads and updates.
    """

    graph: Any
    memory: tuple[Any, ...]
    inputs: list[Any]
    outputs: tuple[Any, ...]
    variables: list[tuple[Any, Any]]


class ReplayedFunction:
    """The function of a body, which becomes a graph once it has run a few times.

    Args:
        function: The function. It has buffers of its own, so that no other thread runs it at the same time.
        body: The body.
        device: The GPU.
    """

    def __init__(self, function: Function, body: Body, device: Device) -> None:
        self._function = function
        self._device = device
        variables = [op for op in body.ops if op.type == "Variable"]
        self._names = [(resource_name(op), op.attrs.get("_container", "")) for op in variables]
        self._updates = any(access_of(op) == "update" for op in body.ops)
        self._captured: _Captured | None = None
        self._forms: list[Any] = []
        self._runs = self._captures = 0

    def __call__(self, step: Any, *inputs: Any) -> tuple[Any, ...]:
        """Run the body."""
        forms = [(value.shape, value.dtype) for value in inputs] if self._are_arrays(inputs) else None
        if forms is None or self._captures > _MOST_CAPTURES:
            return self._function(step, *inputs)
        if forms != self._forms:
            self._forms, self._captured, self._runs = forms, None, 0
        if self._captured is not None and not self._is_valid(self._captured):
            self._captured = None
        if self._captured is None:
            self._runs += 1
            if self._runs <= _PLAIN_RUNS or not self._capture(step, inputs):
                return self._function(step, *inputs)
        assert self._captured is not None
        return self._replayed(self._captured, step, inputs)

    def _are_arrays(self, inputs: Sequence[Any]) -> bool:
        return all(isinstance(value, self._device.xp.ndarray) for value in inputs)

    def _variables(self) -> list[tuple[Any, Any]]:
        found = [self._device.resources.variable(*name) for name in self._names]
        return [(resource, resource.array) for resource in found]

    def _is_valid(self, captured: _Captured) -> bool:
        """Whether every variable is the one that was captured, and lies where it did."""
        variable = self._device.resources.variable
        return all(
            variable(*name) is resource and resource.array is array
            for name, (resource, array) in zip(self._names, captured.variables, strict=True)
        )

    def _capture(self, step: Any, inputs: Sequence[Any]) -> bool:
        """Capture a run, which computes nothing. Returns whether that was possible."""
        self._captures += 1
        cuda = self._device.xp.cuda
        pool, stream = cuda.MemoryPool(), cuda.Stream(non_blocking=True)
        shared = self._device.xp.get_default_memory_pool()
        if shared.get_limit():
            pool.set_limit(size=max(shared.get_limit() - shared.total_bytes(), 1))
        before = self._variables()
        if not self._are_arrays([array for _, array in before]):
            self._captures = _MOST_CAPTURES + 1
            return False  # the host may compute with a variable that it holds
        try:
            with cuda.using_allocator(pool.malloc):
                kept = [value.copy() for value in inputs]
                with stream:
                    stream.begin_capture()
                    try:
                        outputs = self._function(step, *kept)
                    finally:
                        graph = stream.end_capture()
            reason = "it copies to or from the host" if _meets_host(graph, cuda.runtime) else ""
            if any(resource.array is not array for resource, array in before):
                reason = "a variable gets another array in every step"
        except Exception as error:  # noqa: BLE001 (whatever it is, the run that follows meets it again, or does without)
            reason = f"{type(error).__name__}: {error}"
        if reason:
            _log.info("%s: a step is not captured as a CUDA graph: %s", self._device.name, reason)
            for resource, array in before:
                resource.array = array
            self._captures = _MOST_CAPTURES + 1
            return False
        self._captured = _Captured(graph, (pool, stream), kept, outputs, self._variables())
        return True

    def _replayed(self, captured: _Captured, step: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        if step.may_have_ended:
            step.raise_if_ended()
        xp = self._device.xp
        for target, value in zip(captured.inputs, inputs, strict=True):
            xp.copyto(target, value)
        if self._updates:
            locked([resource for resource, _ in captured.variables], captured.graph.launch)
        else:
            captured.graph.launch()
        return tuple(value.copy() if isinstance(value, xp.ndarray) else value for value in captured.outputs)


def _meets_host(graph: Any, runtime: Any) -> bool:
    """Whether a graph copies between host and device: from memory that may be something else's when it is launched."""
    text = graph.debug_dot_str(runtime.cudaGraphDebugDotFlagsMemcpyNodeParams)
    nodes = [node for node in text.split("];") if _COPY_NODE in node.lower()]
    return any(_ON_DEVICE not in node.lower() for node in nodes)
