"""Python functions as operations: `py_func`.

A graph holds no code. The operation holds only a token. `Graph.functions` of the graph that made it, and a table of
this process, map the token to the function. To run such a graph in another process, send the functions along and call
`register_function` there.
"""

from __future__ import annotations

import time
import traceback
import uuid
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from tfray.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    is_interrupt,
)
from tfray.framework.convert import add_op, convert_to_tensor, make_array
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.op_def import (
    Array,
    KernelContext,
    OpDef,
    Reach,
    not_differentiable,
    on_cpu,
    on_every_device,
    register,
)
from tfray.framework.shape_functions import unknown
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}


def register_function(token: str, function: Callable[..., Any]) -> None:
    """Let operations with this token call `function` in this process."""
    _FUNCTIONS[token] = function


def unregister_function(token: str) -> None:
    """Forget a function; a token that is not known is ignored."""
    _FUNCTIONS.pop(token, None)


def lookup_function(token: str) -> Callable[..., Any]:
    """The function of that token.

    Raises:
        NotFoundError: No function was registered under it in this process.
    """
    try:
        return _FUNCTIONS[token]
    except KeyError:
        raise NotFoundError(
            f"the Python function {_function_name(token)!r} is not known in this process: "
            "a graph that is loaded from a file or sent elsewhere carries no functions"
        ) from None


def _function_name(token: str) -> str:
    return token.rpartition("@")[0]


def function_token(function: Callable[..., Any]) -> str:
    """A token by which operations of the current graph call `function`, as long as the graph exists."""
    token = f"{getattr(function, '__qualname__', type(function).__qualname__)}@{uuid.uuid4().hex}"
    graph = get_default_graph().root
    graph.functions[token] = function
    register_function(token, function)
    weakref.finalize(graph, unregister_function, token)
    return token


def py_func(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a Python function while a step runs.

    The operation runs on the CPU, in the process of the device on which it is placed. Gradients do not flow through
    it, and the static shapes of its results are unknown: use `Tensor.set_shape`.

    A function is called on the thread of the step as long as nothing else in the step can go on meanwhile. Otherwise,
    and in a step with a timeout, it has a thread of its own: several that are ready are called one after another, and
    beside one that takes its time, so that they may wait for one another. In one branch or one turn of a loop they
    always follow one another. Nothing can end a function that runs. At its timeout, or when its session is closed, a
    step does not wait for functions on threads of their own any more, and drops what they return.

    Args:
        func: Takes one NumPy array for each of `inp`, which it may change, a scalar as a NumPy scalar, a string as
            bytes. Returns one value, or a list or tuple with one value for each dtype in `Tout`.
        inp: A list of tensors of any shape and dtype.
        Tout: Dtype of the result, or a list of dtypes when there are several, or none.
        stateful: False promises that `func` always returns the same for the same arguments: then the operation
            may be folded, or merged with an equal one.
        name: Name of the operation.

    Returns:
        A tensor when `Tout` is one dtype, else a list of them, each of the shape that `func` returns; the operation
        when `Tout` is empty.

    Raises:
        ValueError: `func` is not a function.
        OpError: At run time, when `func` raises something: of the kind that TensorFlow gives it, `InvalidArgumentError`
            for a `ValueError` or `TypeError`, mostly `UnknownError`, for `SystemExit` too. Ctrl-C passes.
        InvalidArgumentError: At run time, when `func` does not return what `Tout` says.

    Examples:
        >>> session.run(tf.py_func(lambda x, y: x + y, [[1, 2], [10, 20]], tf.int32))
        array([11, 22], dtype=int32)
    """
    if not callable(func):
        raise ValueError(f"py_func: Expected func to be callable, not {func!r}")
    many = isinstance(Tout, (list, tuple))
    wanted = [as_dtype(dtype) for dtype in (cast("Sequence[DTypeLike]", Tout) if many else [cast("DTypeLike", Tout)])]
    graph = get_default_graph()
    token = function_token(func)
    inputs = [convert_to_tensor(value) for value in inp]
    definition = PY_FUNC if stateful else PY_FUNC_STATELESS
    op = graph.add_operation(definition.name, inputs, {"token": token, "Tout": wanted}, name)
    if not wanted:
        return op
    return list(op.outputs) if many else op.outputs[0]


def numpy_function(
    func: Callable[..., Any], inp: Sequence[TensorLike], Tout: DTypeLike | Sequence[DTypeLike], name: str | None = None
) -> Any:
    """`py_func` of a function with state: the result has the shape that `func` returns."""
    return py_func(func, inp, Tout, True, name)


def _py_func_kernel(ctx: KernelContext, *inputs: Array) -> list[Array]:
    def call() -> list[Array]:
        return _called(ctx, inputs)

    outputs: list[Array] = call() if ctx.step is None else ctx.step.call(ctx.op_name, call)
    return outputs


def _called(ctx: KernelContext, inputs: Sequence[Array]) -> list[Array]:
    """What the function of an operation returns for these inputs, as arrays of the dtypes that it declares."""
    token, wanted = ctx.attr("token"), ctx.attr("Tout")
    function = lookup_function(token)
    try:
        results = function(*(_argument(ctx, array) for array in inputs))
    except OpError:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        message = f"py_func: the function {_function_name(token)!r} raised {type(error).__name__}: {error}"
        # As the user's lines may be in another process, they are told in text too.
        where = error.__traceback__.tb_next if error.__traceback__ else None
        message += "\n" + "".join(traceback.format_exception(type(error), error, where))
        raise _kind_of(error)(message) from error
    values = list(results) if isinstance(results, (list, tuple)) else [results] if wanted else []
    if len(values) != len(wanted) and wanted:
        raise InvalidArgumentError(
            f"py_func: the function {_function_name(token)!r} returns {len(values)} values, but expects to see "
            f"{len(wanted)} values"
        )
    return [
        _result(token, index, value, dtype) for index, (value, dtype) in enumerate(zip(values, wanted, strict=False))
    ]


def _argument(ctx: KernelContext, array: Array) -> Any:
    """What the function gets: a copy, because it may write into it, and other operations read the array."""
    argument = np.asarray(ctx.to_host(array))
    return argument[()] if argument.ndim == 0 else argument.copy()


def _result(token: str, index: int, value: TensorLike, dtype: DType) -> Array:
    try:
        if isinstance(value, (np.ndarray, np.generic)) and not np.can_cast(value.dtype, dtype.numpy, "same_kind"):
            raise InvalidArgumentError(f"it is {value.dtype}")
        return make_array(value, dtype)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"py_func: {index}-th value returned by the function {_function_name(token)!r} is of another type, but "
            f"expects {dtype.name}: {error.message}"
        ) from error


def _kind_of(error: BaseException) -> type[OpError]:
    kinds: list[tuple[type[Exception] | tuple[type[Exception], ...], type[OpError]]] = [
        (StopIteration, OutOfRangeError),
        (MemoryError, ResourceExhaustedError),
        (NotImplementedError, UnimplementedError),
        ((TypeError, ValueError), InvalidArgumentError),
    ]
    return next((kind for types, kind in kinds if isinstance(error, types)), UnknownError)


PY_FUNC = register(
    OpDef(
        name="PyFunc",
        inputs=("input: any*",),
        outputs=("output: Tout*",),
        attrs=("token", "Tout"),
        shape=unknown,
        kernels=on_cpu(_py_func_kernel),
        gradient=not_differentiable,
        blocking=True,
        uses_step=True,
        stateful=True,
        keeps_inputs=True,
        reach=Reach("python"),
    )
)
PY_FUNC_STATELESS = register(replace(PY_FUNC, name="PyFuncStateless", stateful=False))


# -- the time ------------------------------------------------------------------------------------------


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since the epoch on the device's clock when the operation runs: a float64 scalar.

    Examples:
        >>> session.run(tf.timestamp()) > 1.7e9
        np.True_
    """
    return add_op(TIMESTAMP, name=name)


def _timestamp_kernel(ctx: KernelContext) -> Array:
    return ctx.asarray(np.float64(time.time()))


TIMESTAMP = register(
    OpDef(
        name="Timestamp",
        inputs=(),
        outputs=("ts: float64",),
        shape=lambda op: [TensorShape([])],
        kernels=on_every_device(_timestamp_kernel),
        gradient=not_differentiable,
        stateful=True,
    )
)
