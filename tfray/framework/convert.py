"""From Python values to tensors, and from a call of an op's function to an operation."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.op_def import Argument, OpDef, lookup, variant_name
from tfray.framework.tensor_operators import register_operator
from tfray.framework.tensor_shape import Dimension, TensorShape

ConversionFunction = Callable[..., Tensor | None]
"""``function(value, dtype, name, as_ref)``: a tensor, or None to decline. ``dtype`` may be None."""

_CONVERSIONS: Final[list[tuple[int, type | tuple[type, ...], ConversionFunction]]] = []


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: ConversionFunction, priority: int = 100
) -> None:
    """Let `convert_to_tensor` accept objects of `base_type`.

    Args:
        base_type: Type or types to convert.
        conversion_func: ``function(value, dtype=None, name=None, as_ref=False)`` returning a `Tensor`, or None or
            `NotImplemented` to leave the value to the next function.
        priority: Lower runs earlier.

    Raises:
        TypeError: `base_type` is no type, or `conversion_func` cannot be called.
    """
    if not all(isinstance(each, type) for each in (base_type if isinstance(base_type, tuple) else (base_type,))):
        raise TypeError(f"base_type is {base_type!r}, expected a type or a tuple of types")
    if not callable(conversion_func):
        raise TypeError(f"conversion_func is {conversion_func!r}, expected a function")
    _CONVERSIONS.append((priority, base_type, conversion_func))
    _CONVERSIONS.sort(key=lambda entry: entry[0])


def convert_to_tensor(
    value: Any,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred_dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
) -> Tensor:
    """Return `value` as a `Tensor` of the current graph.

    Args:
        value: A tensor, a variable, a number, a string, a NumPy array, or nested lists of these. Lists that
            contain tensors are packed.
        dtype: Required dtype; None keeps the value's own (``float32`` and ``int32`` for Python numbers).
        name: Name of the constant, if one is made.
        preferred_dtype: Dtype to take when `dtype` is None and the value allows it.
        dtype_hint: The newer name of `preferred_dtype`.

    Raises:
        ArgumentError: The value does not convert to `dtype`, or a list is ragged. It is a `TypeError` and `ValueError`.
        RuntimeError: A registered function returns something else than a tensor.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    preferred_dtype = preferred_dtype if dtype_hint is None else dtype_hint
    preferred_dtype = dtype_hint if preferred_dtype is None else preferred_dtype
    tensor = _convert(value, wanted, name)
    if tensor is None and wanted is None and preferred_dtype is not None:
        try:
            tensor = _constant(value, as_dtype(preferred_dtype), name)
        except InvalidArgumentError:
            tensor = None
    if tensor is None:
        tensor = _constant(value, wanted, name)
    if wanted is not None and tensor.dtype is not wanted:
        raise ArgumentError(
            f"{tensor!r} has dtype {tensor.dtype.name}, expected {wanted.name}; use tf.cast", op_name=tensor.op.name
        )
    return tensor


def convert_alike(*values: Any) -> list[Tensor]:
    """The values as tensors of one dtype: that of the first tensor among them, or of the first value.

    Raises:
        ArgumentError: A value that is no tensor is of another kind.
    """
    dtypes_found = [_dtype_of(value) for value in values]
    dtype = next(filter(None, dtypes_found), None)
    tensors: list[Tensor] = []
    for index, (value, found) in enumerate(zip(values, dtypes_found, strict=True)):
        if dtype is not None and not any(dtypes_found[: index + 1]):
            _check_kind(_abbreviate(value), value, dtype)
        tensors.append(convert_to_tensor(value, None if found else dtype))
        dtype = dtype or tensors[0].dtype
    return tensors


def _check_kind(what: str, value: Any, dtype: DType) -> None:
    """Refuse a NumPy value in the place before a tensor of another kind, which TensorFlow refuses in any case."""
    if isinstance(value, (np.ndarray, np.generic)) and not np.can_cast(value.dtype, dtype.numpy, "same_kind"):
        raise ArgumentError(f"{what} is {value.dtype}, and the tensors beside it are {dtype.name}; use tf.cast")


def _convert(value: Any, dtype: DType | None, name: str | None) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    for _, base_type, function in _CONVERSIONS:
        if isinstance(value, base_type):
            tensor = function(value, dtype=dtype, name=name, as_ref=False)
            if isinstance(tensor, Tensor):
                return tensor
            if tensor is not None and tensor is not NotImplemented:
                raise RuntimeError(f"conversion function {function!r} returned {tensor!r}, which is no tensor")
    if isinstance(value, (list, tuple)) and contains_tensor(value):
        return _pack(value, dtype, name)
    return None


def is_plain(value: Any) -> bool:
    """Whether a value holds no tensor, and nothing that becomes one by a conversion of its own."""
    return not contains_tensor(value)


def contains_tensor(value: Any) -> bool:
    """Whether a value is something of the graph, or a list that holds such."""
    if isinstance(value, (list, tuple)):
        return any(map(contains_tensor, value))
    return isinstance(value, Tensor) or any(isinstance(value, base_type) for _, base_type, _ in _CONVERSIONS)


def _cast_leaves(value: Any, dtype: DType) -> Any:
    """A nested list whose tensors have this dtype; what else is in it stays."""
    if not contains_tensor(value):
        return value
    if isinstance(value, (list, tuple)):
        return [_cast_leaves(each, dtype) for each in value]
    tensor = convert_to_tensor(value)
    if tensor.dtype is dtype:
        return tensor
    return get_default_graph().add_operation("Cast", [tensor], {"DstT": dtype}, "Cast").outputs[0]


def _pack(values: Sequence[Any], dtype: DType | None, name: str | None) -> Tensor:
    own = _dtype_of(values)
    if dtype is not None and dtype is not own and own is not None:
        # TensorFlow casts what is in a list, and no tensor by itself.
        values = [_cast_leaves(value, dtype) for value in values]
    dtype = dtype or own
    elements = [convert_to_tensor(value, None if _dtype_of(value) else dtype) for value in values]
    other = next((element for element in elements if dtype is not None and element.dtype is not dtype), None)
    if other is not None:
        raise ArgumentError(f"{other!r} cannot be packed as {dtype and dtype.name}; use tf.cast", op_name=other.op.name)
    return get_default_graph().add_operation("Pack", elements, {"axis": 0}, name or "packed").outputs[0]


def _dtype_of(value: Any) -> DType | None:
    if isinstance(value, (list, tuple)):
        return next((found for item in value if (found := _dtype_of(item)) is not None), None)
    dtype = getattr(value, "dtype", None)
    return dtype if isinstance(dtype, DType) else None


def _constant(value: Any, dtype: DType | None, name: str | None) -> Tensor:
    return constant_tensor(make_array(value, dtype), name, quantized_type(value, dtype))


def quantized_type(value: Any, dtype: DType | None) -> DType | None:
    """The quantized type that `dtype`, or an array with a named field, says; its elements are stored as integers."""
    if dtype is None and isinstance(value, (np.ndarray, np.generic)) and value.dtype.names:
        dtype = as_dtype(value.dtype)
    return dtype if dtype is not None and dtype.is_quantized else None


def constant_tensor(array: np.ndarray[Any, Any], name: str | None = None, dtype: DType | None = None) -> Tensor:
    """A constant of the current graph with this value, which is copied unless it is read-only.

    Its dtype is the array's, or the quantized type `dtype`.
    """
    if array.flags.writeable:
        array = array.copy()  # the caller may change its array later
        array.flags.writeable = False
    attrs = {"value": array, "dtype": dtype or as_dtype(array.dtype)}
    return get_default_graph().add_operation("Const", [], attrs, name or "Const").outputs[0]


_HOLDERS_OF_ARRAYS: Final[dict[type, Callable[[Any], np.ndarray[Any, Any]]]] = {}


def register_holder_of_arrays(kind: type, array_of: Callable[[Any], np.ndarray[Any, Any]]) -> None:
    """Let objects of a class be values of tensors: those of the arrays that `array_of` takes out of them."""
    _HOLDERS_OF_ARRAYS[kind] = array_of


def _held_array(array: np.ndarray[Any, Any], value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    if dtype not in (None, as_dtype(array.dtype)):
        raise ArgumentError(f"cannot make a {dtype} tensor of a {type(value).__name__} of {as_dtype(array.dtype)}")
    return array


def make_array(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """`value` as a NumPy array of a tfray dtype; strings become bytes.

    NumPy values are cast to `dtype`, whatever they hold, as in TensorFlow 1: 2.5 becomes the integer 2. Python values
    have to be of its kind: a fraction is no integer, and an integer must fit.

    Raises:
        InvalidArgumentError: The value is None or ragged, has no tfray dtype, or does not fit `dtype`. An
            `ArgumentError`, which is a `TypeError` too, where it is ragged or of another kind than `dtype`.
    """
    if value is None:
        raise InvalidArgumentError("cannot make a tensor of None")
    for kind, array_of in _HOLDERS_OF_ARRAYS.items():
        if isinstance(value, kind):
            return _held_array(array_of(value), value, dtype)
    is_numpy = isinstance(value, (np.ndarray, np.generic))
    try:
        if is_numpy and dtype is not None and dtype.kind in _NUMERIC_KINDS and not value.dtype.names:
            return np.asarray(value).astype(dtype.numpy)
        if dtype is not None and dtype.is_quantized and not is_numpy:  # numbers, or tuples of one as NumPy prints them
            return np.array(value, dtype.as_numpy_dtype).view(dtype.numpy)
        if isinstance(value, TensorShape):
            if dtype not in (None, *dtypes.INDICES):
                raise TypeError(f"Cannot convert a TensorShape to dtype {dtype}")
            value = [operator.index(Dimension(size)) for size in value.sizes] or np.zeros(0, np.int32)
        elif isinstance(value, Dimension):
            value = int(value)
        # NumPy's own string arrays would give each string as much memory as the longest takes.
        array = np.asarray(value, dtype=object) if isinstance(_first_leaf(value), (str, bytes)) else np.asarray(value)
        if array.dtype.kind == "O" and array.size:
            array = _demote_objects(array, dtype)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"cannot make a tensor of {_abbreviate(value)}: {error}") from error
    try:
        natural = as_dtype(array.dtype)
    except TypeError as error:
        raise ArgumentError(f"cannot make a tensor of {_abbreviate(value)}: {error}") from error
    if natural.is_quantized:
        array = array.view(natural.numpy)
    if dtype is None:
        # NumPy reads Python numbers as float64 and int64; TensorFlow as float32 and int32.
        is_numpy = is_numpy or isinstance(_first_leaf(value), np.ndarray)
        dtype = natural if is_numpy else _PYTHON_DEFAULTS.get(natural, natural)
        if dtype is dtypes.int32 and array.size and natural is dtypes.int64 and not _fits(array, np.int32):
            dtype = dtypes.int64
    if dtype is dtypes.string:
        return _as_bytes(array, value)
    return _cast_checked(array, natural, dtype, value)


_NUMERIC_KINDS: Final = ("bool", "int", "uint", "float", "complex", "quantized")
_PYTHON_DEFAULTS: Final = {dtypes.float64: dtypes.float32, dtypes.int64: dtypes.int32}


def is_rank0_number(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number, not an array."""
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def is_text(value: Any) -> bool:
    """Whether `value` is a string, a tensor of strings, or a list of strings."""
    value = _first_leaf(value)
    return isinstance(value, (str, bytes)) or getattr(value, "dtype", None) == dtypes.string


def _first_leaf(value: Any) -> Any:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _demote_objects(array: np.ndarray[Any, Any], dtype: DType | None) -> np.ndarray[Any, Any]:
    if any(isinstance(item, (str, bytes)) for item in array.flat):
        return array  # strings, which the caller takes if all items are
    numbers = np.array([operator.index(item) for item in array.flat]).reshape(array.shape)
    if numbers.dtype.kind == "O":
        if dtype is None or not dtype.is_differentiable:
            raise TypeError("an integer does not fit 64 bits")
        numbers = numbers.astype(dtype.numpy)
    return numbers


def _fits(array: np.ndarray[Any, Any], numpy_type: Any) -> bool:
    limits = np.iinfo(numpy_type)
    return bool(array.min() >= limits.min and array.max() <= limits.max)


def _as_bytes(array: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in "OSU" and array.size:
        raise ArgumentError(f"{_abbreviate(value)} is not a string")
    result = np.empty(array.shape, dtype=object)
    source = array if array.dtype.kind == "O" or not array.size else np.asarray(value, dtype=object)
    items = source.reshape(-1).tolist()
    if not all(isinstance(item, (str, bytes)) for item in items):
        raise ArgumentError(f"cannot make a tensor of {_abbreviate(value)}: strings and other values are mixed")
    result.reshape(-1)[:] = [item.encode() if isinstance(item, str) else bytes(item) for item in items]
    return result


def _cast_checked(array: np.ndarray[Any, Any], natural: DType, dtype: DType, value: Any) -> np.ndarray[Any, Any]:
    if natural is dtype:
        return array
    if array.size == 0:
        return array.astype(dtype.numpy)
    ranks = _NUMBER_RANKS.get(natural.kind, math.inf), _NUMBER_RANKS.get(dtype.kind, -math.inf)
    if ranks[0] > ranks[1]:
        raise ArgumentError(
            f"{_abbreviate(value)} is {natural.name}, expected {dtype.name}; convert it first, or use tf.cast"
        )
    if dtype.is_integer and not _fits(array, dtype.numpy):
        raise ArgumentError(f"{_abbreviate(value)} does not fit {dtype.name}")
    return array.astype(dtype.numpy)


_NUMBER_RANKS: Final = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
"""Python numbers of a kind are numbers of each kind of the same rank, or a higher one."""


def _abbreviate(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _beside(value: Any, tensor: Tensor) -> Any:
    """The left operand of an operator whose right one is a tensor."""
    return convert_to_tensor(value, tensor.dtype) if isinstance(value, (np.ndarray, np.generic)) else value


register_operator("beside", _beside)


# -- building operations -------------------------------------------------------------------------------


def add_op(definition: OpDef, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
    """Add an operation to the current graph, converting Python values among its inputs.

    Args:
        definition: The operation's type.
        *inputs: One value per declared input; a variadic input takes one list.
        name: Name under the current scope; the type's name when None.
        **attrs: Attribute values, type variables included where inputs do not determine them. The attribute
            `OpDef.late` may be a tensor.

    Returns:
        The output tensor; a list of tensors when there are several; the operation when there are none.

    Raises:
        ArgumentError: An input of wrong dtype, or that is no tensor and does not become one; see `Graph.add_operation`.
    """
    if definition.late is not None and isinstance(attrs[definition.late], Tensor):
        name, inputs = name or definition.name, (attrs.pop(definition.late), *inputs)
        definition = lookup(variant_name(definition))
    graph = _graph_of(inputs)
    if all(isinstance(value, Tensor) for value in _flat(inputs)):
        tensors = _convert_inputs(definition, inputs, attrs)
    else:
        with graph.name_scope(name or definition.name) as name:  # constants are made under the operation's name
            tensors = _convert_inputs(definition, inputs, attrs)
    op = graph.add_operation(definition.name, tensors, attrs, name)
    return result_of(op)


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, (list, tuple)) else (value,)


def result_of(op: Operation) -> Any:
    """What a public function returns for an operation: a tensor, a list of tensors, or the operation."""
    declared = op.op_def.output_arguments
    if not declared:
        return op
    if len(declared) == 1 and declared[0].count is None:
        return op.outputs[0]
    return list(op.outputs)


def _graph_of(inputs: Sequence[Any]) -> Graph:
    current = get_default_graph()
    for item in _flat(inputs):
        graph = getattr(item, "graph", None)
        if isinstance(graph, Graph) and graph is not current and not current.admits(graph):
            raise InvalidArgumentError(current.refusal(item))
    return current


def _convert_inputs(definition: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Tensor]:
    arguments = definition.input_arguments
    if len(inputs) != len(arguments):
        raise ArgumentError(f"{definition.name} takes {len(arguments)} inputs, got {len(inputs)}")
    flat: list[tuple[Argument, Any, str]] = []
    for argument, value in zip(arguments, inputs, strict=True):
        if argument.count is None:
            flat.append((argument, value, argument.name))
        else:
            flat.extend((argument, item, f"{argument.name}_{index}") for index, item in enumerate(value))
    # Tensors decide the type variables. Other values are converted afterwards, to the types so found. Those before the
    # first tensor TensorFlow refuses unless they are of its dtype: at least their kind has to be right here.
    bound: dict[str, DType] = {k: v for k, v in attrs.items() if isinstance(v, DType)}
    early: list[tuple[Argument, Any]] = []
    for argument, value, _ in flat:
        dtype = _dtype_of(value)
        if argument.type in definition.types and argument.type not in bound:
            if dtype is None:
                early.append((argument, value))
            else:
                bound[argument.type] = dtype
    for argument, value in early:
        if argument.type in bound:
            _check_kind(f"{definition.name}: input {argument.name!r}", value, bound[argument.type])
    tensors: list[Tensor] = []
    for argument, value, name in flat:
        tensor = _convert_input(definition, argument, value, bound, name)
        if argument.type in definition.types:
            bound.setdefault(argument.type, tensor.dtype)
        tensors.append(tensor)
    return tensors


def _convert_input(definition: OpDef, argument: Argument, value: Any, bound: dict[str, DType], name: str) -> Tensor:
    tensor = None if _dtype_of(value) is None else _convert(value, None, name)
    if tensor is not None:
        return tensor  # Graph.add_operation checks its dtype
    expected = bound.get(argument.type)
    allowed = definition.types.get(argument.type)
    if expected is None and argument.type not in ("any", *definition.types, *definition.attrs):
        expected = as_dtype(argument.type)
    try:
        if expected is None and allowed:
            return _convert_to_allowed(value, allowed, name)
        return convert_to_tensor(value, expected, name)
    except InvalidArgumentError as error:
        raise type(error)(f"{definition.name}: input {argument.name!r}: {error.message}") from error


def _convert_to_allowed(value: Any, allowed: Sequence[DType], name: str) -> Tensor:
    tensor = _convert(value, None, name)
    if tensor is not None:
        return tensor
    if len(allowed) == 1 and isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return _constant(value, allowed[0], name)  # NumPy values are cast to what is needed
    if len(allowed) == 1 and not make_array(value).size:
        return _constant(value, allowed[0], name)  # a list of nothing is one of what is needed
    return _constant(value, None, name)
