"""`tf.py_function`: a Python function that runs while a step runs, on tensors that have values already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tfray.framework.convert import convert_to_tensor, make_array
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.op_def import Array
from tfray.framework.type_aliases import TensorLike
from tfray.gradients import custom_gradient, gradients
from tfray.ops.arrays.broadcast_ops import zeros_like
from tfray.ops.arrays.source_ops import constant
from tfray.ops.system.script_ops import py_func
from tfray.session import Session


class ValueTensor(Tensor):
    """A tensor within a function of `py_function`: its value can be asked for at once."""

    __slots__ = ()

    def numpy(self) -> Any:
        """The value, as an array or a NumPy scalar."""
        return cast("_ImmediateGraph", self.graph).value_of(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numpy(), dtype)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __index__(self) -> int:
        return int(self.numpy())

    def __len__(self) -> int:
        return len(self.numpy())


class _ImmediateGraph(Graph):
    """The graph of one call: its tensors are computed when they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._session: Session | None = None
        self._values: dict[Tensor, Any] = {}

    def add_operation(self, *args: Any, **kwargs: Any) -> Operation:
        op = super().add_operation(*args, **kwargs)
        for tensor in op.outputs:
            tensor.__class__ = ValueTensor
        return op

    def value_of(self, tensor: Tensor) -> Any:
        """The value of a tensor of this graph; it is computed once."""
        if tensor not in self._values:
            if self._session is None:
                self._session = Session(graph=self)
            self._values[tensor] = self._session.run(tensor)
        return self._values[tensor]

    def close(self) -> None:
        """Forget everything."""
        if self._session is not None:
            self._session.close()


def py_function(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    name: str | None = None,
) -> Any:
    """Call a Python function of tensors while a step runs, with gradients.

    As for `py_func`, the function runs in the process of the device. Its arguments are tensors that have values:
    ``numpy()`` gives them, they can stand in conditions, and functions of this library that are applied to them have
    values likewise. It cannot use tensors or variables of the graph around, other than its arguments.

    Args:
        func: Takes one tensor for each of `inp`. Returns a tensor or what converts to one, or a list of them, or None
            when `Tout` is empty.
        inp: A list of tensors of any shape and dtype.
        Tout: Dtype of the result, or a list of dtypes.
        name: Name of the operation.

    Returns:
        A tensor when `Tout` is one dtype, else a list of them, of unknown shape; the operation when `Tout` is empty.
        Gradients flow through; for them the function is called once more.

    Raises:
        ValueError: `func` is not a function.
        OpError: At run time, as for `py_func`.

    Examples:
        >>> def norm(x):
        ...     return x if x.numpy().max() == 0 else x / tf.reduce_sum(x)
        >>> session.run(tf.py_function(norm, [[1.0, 3.0]], tf.float32))
        array([0.25, 0.75], dtype=float32)
    """
    if not callable(func):
        raise ValueError(f"py_function: Expected func to be callable, not {func!r}")
    many = isinstance(Tout, (list, tuple))
    wanted = [as_dtype(dtype) for dtype in (cast("Sequence[DTypeLike]", Tout) if many else [cast("DTypeLike", Tout)])]
    inputs = [convert_to_tensor(value) for value in inp]
    types = [tensor.dtype for tensor in inputs]

    def call(*arrays: Any) -> list[Any]:
        return _in_a_graph_of_its_own(lambda tensors: _results(func(*tensors), wanted), arrays, types)

    def call_gradient(*arrays: Any) -> list[Any]:
        count = len(types)

        def build(tensors: Sequence[Tensor]) -> list[Tensor]:
            results = _results(func(*tensors[:count]), wanted)
            d_results = list(tensors[count:])
            differentiable = [index for index, result in enumerate(results) if result.dtype.is_floating]
            found = gradients(
                [results[index] for index in differentiable],
                list(tensors[:count]),
                grad_ys=[d_results[index] for index in differentiable],
            )
            return [
                zeros_like(tensor) if slope is None else convert_to_tensor(slope)
                for slope, tensor in zip(found, tensors, strict=False)
            ]

        return _in_a_graph_of_its_own(build, arrays, [*types, *wanted])

    if not wanted:
        return py_func(call, inputs, [], name=name or "EagerPyFunc")

    @custom_gradient
    def differentiable(*tensors: Tensor) -> Any:
        def gradient(*d_results: Tensor) -> list[Tensor]:
            slopes: list[Tensor] = py_func(call_gradient, [*tensors, *d_results], types)
            for slope, tensor in zip(slopes, tensors, strict=True):
                slope.set_shape(tensor.shape)
            return slopes

        return py_func(call, tensors, wanted, name=name or "EagerPyFunc"), gradient

    results = differentiable(*inputs)
    return results if many else results[0]


def _results(returned: Any, wanted: Sequence[DType]) -> list[Tensor]:
    values = list(returned) if isinstance(returned, (list, tuple)) else [] if returned is None else [returned]
    if len(values) != len(wanted):
        raise ValueError(f"the function returned {len(values)} values, expected {len(wanted)}")
    return [
        value if isinstance(value, Tensor) else constant(make_array(value, dtype))
        for value, dtype in zip(values, wanted, strict=True)
    ]


def _in_a_graph_of_its_own(
    build: Callable[[Sequence[Tensor]], list[Tensor]], arrays: Sequence[Any], types: Sequence[DType]
) -> list[Any]:
    """The values of what `build` makes of constants with the values of `arrays`."""
    graph = _ImmediateGraph()
    try:
        with graph.as_default(), graph.device(None):
            tensors = [constant(array, dtype) for array, dtype in zip(arrays, types, strict=True)]
            return [graph.value_of(result) for result in build(tensors)]
    finally:
        graph.close()
