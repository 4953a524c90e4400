"""Parts of tensors: Python indexing, `strided_slice` and `slice`.

An index such as ``x[i, 1:n, ..., tf.newaxis]`` becomes one `StridedSlice` operation whose attribute ``key`` is its
text, ``"$,1:$,...,new"``: ``$`` stands for the next of the scalar tensors among the inputs. A key without tensors is
parsed once and costs a dictionary lookup in each step.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.arguments import none_is_default
from tfray.framework.constant_value import operations_before
from tfray.framework.convert import add_op, constant_tensor, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph, register_operator
from tfray.framework.op_def import Array, KernelContext, OpDef, on_every_device, out_kernel, register
from tfray.framework.tensor_operators import operate
from tfray.framework.tensor_shape import UNKNOWN, TensorShape
from tfray.framework.type_aliases import SliceKey, TensorLike, VariableOrHandle
from tfray.ops.arrays.shape_ops import cast, host_int, host_ints, index_tensor, known_entries, sizes_from_input
from tfray.ops.arrays.shape_ops import shape as shape_of
from tfray.ops.kernels import batch_rules
from tfray.ops.kernels.copies import fill

newaxis: Final = None
"""In an index, a new dimension of size 1."""

# -- keys ----------------------------------------------------------------------------------------------


class _Bound:
    """Stands in a parsed key for a bound that is a tensor."""

    def __repr__(self) -> str:
        return "$"


_BOUND: Final = _Bound()


@lru_cache(maxsize=4096)
def _parse_key(key: str) -> tuple[Any, ...]:
    """The index that a key's text describes, with `_BOUND` where it takes a tensor."""
    return tuple(_parse_item(item) for item in key.split(","))


def _parse_item(item: str) -> Any:
    if item == "...":
        return Ellipsis
    if item == "new":
        return None
    if not re.fullmatch(r"-?\d+|\$|(-?\d+|\$)?:(-?\d+|\$)?(:(-?\d+|\$)?)?", item):
        raise InvalidArgumentError(f"StridedSlice: {item!r} is not a part of a key")
    parts = [_BOUND if part == "$" else int(part) if part else None for part in item.split(":")]
    return slice(*parts) if len(parts) > 1 else parts[0]


def _substitute(key: tuple[Any, ...], bounds: Sequence[object]) -> tuple[Any, ...]:
    """A parsed key with `bounds` in place of its tensors, in order."""
    values = iter(bounds)
    parts: list[Any] = []
    for item in key:
        if isinstance(item, slice):
            triple = item.start, item.stop, item.step
            parts.append(slice(*[next(values) if part is _BOUND else part for part in triple]))
        else:
            parts.append(next(values) if item is _BOUND else item)
    return tuple(parts)


class _KeyWriter:
    """Collects the text of a key and the tensors in it."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.bounds: list[Tensor] = []

    def add(self, item: Any) -> None:
        if item is Ellipsis:
            self.items.append("...")
        elif item is None:
            self.items.append("new")
        elif isinstance(item, slice):
            parts = [self._part(part) for part in (item.start, item.stop)]
            self.items.append(":".join(parts if item.step is None else [*parts, self._part(item.step)]))
        else:
            self.items.append(self._part(item))

    def _part(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, (bool, np.bool_)):
            raise TypeError("a bool is not an index: use tf.boolean_mask for masks")
        try:
            return str(operator.index(value))
        except TypeError:
            bound = index_tensor(value)
            if bound.dtype not in dtypes.INDICES or bound.shape.rank not in (None, 0):
                raise ArgumentError(
                    "StridedSlice: Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
                    f"tf.int32/tf.int64 tensors are valid indices, got {value!r}; "
                    "tf.gather takes many indices"
                ) from None
            self.bounds.append(bound)
            return "$"

    def key(self) -> tuple[str, list[Tensor]]:
        """The text, and the tensors in it, which have one dtype."""
        if len({bound.dtype for bound in self.bounds}) > 1:
            self.bounds = [cast(bound, dtypes.int64) for bound in self.bounds]
        return ",".join(self.items) or "...", self.bounds

    def apply(self, tensor: Tensor, name: str | None, var: Any = None) -> Tensor:
        key, _ = self.key()
        part: Tensor = add_op(STRIDED_SLICE, tensor, self.bounds, name=name, key=key)
        if var is not None:
            part.assign = partial(var._assign_part, key, self.bounds)
        return part


# -- indexing ------------------------------------------------------------------------------------------


def getitem(tensor: Tensor, key: SliceKey, var: Any = None) -> Tensor:
    """Python indexing, ``tensor[key]``.

    Args:
        tensor: Any shape and dtype.
        key: An integer, a slice, ``...``, `tf.newaxis`, or a tuple of these. Integers and bounds of slices may be
            scalar int32 or int64 tensors. Or a mask, a bool tensor or array: then it is `tf.boolean_mask`. For lists of
            indices there is `tf.gather`.
        var: The variable whose value `tensor` is. The result then has the method ``assign``, which sets the part.

    Returns:
        The shape that NumPy's indexing gives.

    Raises:
        InvalidArgumentError: An integer is out of range, or there are more items than dimensions.
    """
    if isinstance(key, (Tensor, np.ndarray)) and key.dtype == (dtypes.bool_ if isinstance(key, Tensor) else bool):
        masked: Tensor = operate("mask", tensor, key)
        return masked
    writer = _KeyWriter()
    for item in key if isinstance(key, (tuple, list)) else (key,):
        writer.add(item)
    known = _known_part(tensor, writer)
    return writer.apply(tensor, "strided_slice", var) if known is None else known


def _known_part(tensor: Tensor, writer: _KeyWriter) -> Tensor | None:
    """A constant when `tensor` is a shape or the like of which the graph knows the wanted entries.

    So ``tf.shape(x)[1]`` is a constant where dimension 1 is known although dimension 0 is not.
    """
    if writer.bounds or tensor.shape.rank != 1 or tensor.dtype not in dtypes.INDICES:
        return None
    entries = known_entries(tensor)
    part = None if entries is None else _part_of_entries(entries, _parse_key(",".join(writer.items) or "..."))
    if part is None or None in part[0]:
        return None
    graph, before = get_default_graph(), operations_before(tensor)
    if any(op.graph is not graph for op in before):
        return None
    with graph.control_dependencies(before):
        return constant_tensor(np.array(part[0], tensor.dtype.numpy).reshape(part[1]), "strided_slice")


def _part_of_entries(
    entries: list[int | None], key: tuple[Any, ...]
) -> tuple[list[int | None], tuple[int, ...]] | None:
    """Entries that `key` selects from a vector, and the shape in which it gives them; None if it cannot."""
    try:
        part = np.asarray(np.array(entries, dtype=object)[key], dtype=object)
    except (IndexError, ValueError):
        return None  # the operation's shape function says what is wrong
    return part.ravel().tolist(), part.shape


register_operator("getitem", getitem)


@none_is_default
def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: VariableOrHandle | None = None,
    name: str | None = None,
) -> Tensor:
    """Take ``begin[i]:end[i]:strides[i]`` of each dimension. Python indexing says the same more readably.

    Args:
        input_: Any shape and dtype.
        begin: Integer vector of known length.
        end: Integer vector of that length.
        strides: Integer vector of that length; ones when None.
        begin_mask: Bit ``i`` set: ``begin[i]`` is ignored, the part starts at the end where the stride comes from.
        end_mask: The same for ``end[i]``.
        ellipsis_mask: Bit ``i`` set: item ``i`` stands for as many whole dimensions as are needed.
        new_axis_mask: Bit ``i`` set: item ``i`` makes a new dimension of size 1.
        shrink_axis_mask: Bit ``i`` set: item ``i`` is the integer ``begin[i]``, and its dimension disappears.
        var: The variable, of any shape, whose value `input_` is. The result then has the method
            ``assign(value, name=None)``, which sets the part and returns the variable's new value.
        name: Name of the operation.

    Returns:
        The shape has ``ceil((end[i] - begin[i]) / strides[i])`` in dimension ``i``, and the sizes of `input_` in those
        beyond the vectors.

    Examples:
        >>> session.run(tf.strided_slice([0, 1, 2, 3, 4, 5], [1], [5], [2]))
        array([1, 3], dtype=int32)
    """
    masks = map(math.trunc, (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask))
    writer = _strided_writer(begin, end, strides, *masks)
    return writer.apply(convert_to_tensor(input_), name or "StridedSlice", var)


def strided_key(
    begin: TensorLike, end: TensorLike, strides: TensorLike | None, **masks: int
) -> tuple[str, list[Tensor]]:
    """The attribute ``key``, and the tensors it takes, for the part that `strided_slice` describes so."""
    writer = _strided_writer(begin, end, strides, **masks)
    return writer.key()


def _strided_writer(
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> _KeyWriter:
    begins = _entries_or_tensors(begin, "begin")
    ends = _entries_or_tensors(end, "end")
    steps = [None] * len(begins) if strides is None else _entries_or_tensors(strides, "strides")
    if not len(begins) == len(ends) == len(steps):
        raise InvalidArgumentError(
            f"strided_slice: begin, end and strides have {len(begins)}, {len(ends)} and {len(steps)} entries"
        )
    writer = _KeyWriter()
    for i, (first, last, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            writer.add(Ellipsis)
        elif new_axis_mask & bit:
            writer.add(None)
        elif shrink_axis_mask & bit:
            writer.add(first)
        else:
            writer.add(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return writer


def _entries_or_tensors(vector: TensorLike, what: str) -> list[Any]:
    """Entries of an integer vector: integers where the graph knows them, scalar tensors elsewhere."""
    tensor = index_tensor(vector)
    entries = known_entries(tensor)
    if entries is None or tensor.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"strided_slice: {what} must be a vector of known length, not {tensor!r}")
    return [getitem(tensor, i) if entry is None else entry for i, entry in enumerate(entries)]


def _strided_slice_kernel(ctx: KernelContext, input: Array, *bounds: Array) -> Array:
    result = _read(input, run_time_key(ctx, bounds))
    if isinstance(result, (bytes, str)):  # NumPy takes an object out of its array
        return np.array(result, dtype=object)
    return result


def key_items(key: str, bounds: Sequence[Any]) -> tuple[Any, ...]:
    """The index that the attribute ``key`` describes, with `bounds` in the places of its tensors."""
    return _substitute(_parse_key(key), bounds)


def run_time_key(ctx: KernelContext, bounds: Sequence[Array]) -> tuple[Any, ...]:
    """The index that the attribute ``key`` of an operation describes, with the values of its tensors."""
    key = _parse_key(ctx.attr("key"))
    return _substitute(key, [host_int(ctx, bound) for bound in bounds]) if bounds else key


def _read(input: Array, key: tuple[Any, ...]) -> Array:
    try:
        return input[key]
    except (IndexError, ValueError) as error:
        raise InvalidArgumentError(
            f"cannot take {_key_text(key)} of a tensor of shape {input.shape}, it is out of range: {error}"
        ) from error


def _key_text(key: tuple[Any, ...]) -> str:
    def text(part: Any) -> str:
        return "" if part is None else str(part)

    items = (
        f"{text(item.start)}:{text(item.stop)}" + (f":{item.step}" if item.step is not None else "")
        if isinstance(item, slice)
        else {None: "newaxis", Ellipsis: "..."}.get(item, str(item))
        for item in key
    )
    return f"[{', '.join(items)}]"


def _strided_slice_shape(op: Operation) -> list[TensorShape]:
    for bound in op.inputs[1:]:
        if bound.shape.rank not in (None, 0):
            raise ValueError(f"an index must be a scalar, not {bound.shape}: tf.gather takes many indices")
    return [shape_of_part(op.inputs[0].shape, op.attr("key"), op.inputs[1:])]


def shape_of_part(source: TensorShape, key: str, bounds: Sequence[Tensor]) -> TensorShape:
    """Shape of the part that a key takes of a tensor of shape `source`; `bounds` are the key's tensors."""
    index = _build_time_key(key, bounds)
    return UNKNOWN if source.rank is None else TensorShape(list(_sizes_of_part(source, index)))


def _build_time_key(text: str, bounds: Sequence[Tensor]) -> tuple[Any, ...]:
    """The key with tensors replaced by their values where the graph knows them."""
    key = _parse_key(text)
    if len(bounds) != text.count("$"):
        raise ValueError(f"key {text!r} does not take {len(bounds)} tensors")
    values = [known_entries(bound) for bound in bounds]
    return _substitute(key, [_BOUND if not value or value[0] is None else value[0] for value in values])


def _sizes_of_part(source: TensorShape, key: tuple[Any, ...]) -> Iterator[int | None]:
    taken = sum(item is not None and item is not Ellipsis for item in key)
    if source.rank is None or taken > source.rank:
        raise ValueError(f"{_key_text(key)} indexes {taken} dimensions of {source}: Index out of range")
    if sum(item is Ellipsis for item in key) > 1:
        raise ValueError(f"{_key_text(key)} has more than one ellipsis: Multiple ellipses not allowed")
    rest = source.rank - taken
    sizes = iter(source.sizes)
    for item in key if Ellipsis in key else (*key, Ellipsis):
        if item is None:
            yield 1
        elif item is Ellipsis:
            for _ in range(rest):
                yield next(sizes)
        elif isinstance(item, slice):
            yield _size_of_slice(next(sizes), item)
        else:
            _check_index(item, next(sizes))


def _size_of_slice(size: int | None, item: slice) -> int | None:
    if item.step == 0 and item.step is not None:
        raise ValueError("a slice cannot have step 0")
    if item.start is None and item.stop is None and item.step in (None, 1, -1):
        return size
    if size is None or _BOUND in (item.start, item.stop, item.step):
        return None
    return len(range(*item.indices(size)))


def _check_index(index: Any, size: int | None) -> None:
    if size is not None and index is not _BOUND and not -size <= index < size:
        raise ValueError(f"slice index {index} of a dimension of size {size} out of bounds")


def _strided_slice_value(op: Operation) -> list[int | None] | None:
    entries, key = known_entries(op.inputs[0]), _build_time_key(op.attr("key"), op.inputs[1:])
    known = all(
        _BOUND not in ((item.start, item.stop, item.step) if isinstance(item, slice) else (item,)) for item in key
    )
    if entries is None or op.inputs[0].shape.rank != 1 or not known:
        count = op.outputs[0].shape.num_elements()
        return None if count is None else [None] * count
    part = _part_of_entries(entries, key)
    return None if part is None else part[0]


def _strided_slice_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    d_input = add_op(STRIDED_SLICE_GRAD, d_output, shape_of(op.inputs[0]), list(op.inputs[1:]), key=op.attr("key"))
    d_input.set_shape(op.inputs[0].shape)
    return [d_input, *[None] * (len(op.inputs) - 1)]


STRIDED_SLICE = register(
    OpDef(
        name="StridedSlice",
        inputs=("input: T", "bounds: Tidx*"),
        outputs=("output: T",),
        host_inputs=("bounds",),
        types={"T": (*dtypes.VALUES, dtypes.variant), "Tidx": dtypes.INDICES},
        attrs=("key",),
        shape=_strided_slice_shape,
        kernels=on_every_device(_strided_slice_kernel),
        gradient=_strided_slice_gradient,
        shape_value=_strided_slice_value,
        over_batch=batch_rules.sliced,
    )
)


def _strided_slice_grad_kernel(
    ctx: KernelContext, dy: Array, shape: Array, *bounds: Array, out: Array | None = None
) -> Array:
    d_input = empty_or(ctx, out, host_ints(ctx, shape))
    fill(d_input, 0)
    d_input[run_time_key(ctx, bounds)] = dy
    return d_input


def empty_or(ctx: KernelContext, out: Array | None, sizes: Sequence[int]) -> Array:
    """`out` when the kernel was given it, else new memory of that shape and the output's dtype."""
    return ctx.xp.empty(sizes, ctx.output_dtype()) if out is None else out


def _shape_from_second(op: Operation) -> list[TensorShape]:
    return [sizes_from_input(op, 1)]


def _strided_slice_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    part = add_op(STRIDED_SLICE, d_output, list(op.inputs[2:]), key=op.attr("key"))
    return [part, *[None] * (len(op.inputs) - 1)]


STRIDED_SLICE_GRAD = register(
    OpDef(
        name="StridedSliceGrad",
        inputs=("dy: T", "shape: Tshape", "bounds: Tidx*"),
        outputs=("output: T",),
        host_inputs=("shape", "bounds"),
        types={"T": dtypes.NUMERIC, "Tidx": dtypes.INDICES, "Tshape": dtypes.INDICES},
        attrs=("key",),
        shape=_shape_from_second,
        kernels=on_every_device(out_kernel(_strided_slice_grad_kernel)),
        gradient=_strided_slice_grad_gradient,
    )
)


def slice_(input_: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None) -> Tensor:
    """Take ``size[i]`` elements from ``begin[i]`` on, in each dimension. Public as ``tf.slice``.

    Args:
        input_: Any shape and dtype.
        begin: Integer vector with one entry per dimension.
        size: Integer vector with one entry per dimension; -1 takes all that remain.
        name: Name of the operation.

    Returns:
        Shape `size`, with what remains in place of -1.

    Raises:
        InvalidArgumentError: The part reaches outside `input_`.

    Examples:
        >>> session.run(tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]))
        array([[2, 3],
               [5, 6]], dtype=int32)
    """
    begin, size = index_tensor(begin), index_tensor(size)
    if {begin.dtype, size.dtype} == {dtypes.int32, dtypes.int64}:
        begin, size = cast(begin, dtypes.int64), cast(size, dtypes.int64)
    return add_op(SLICE, input_, begin, size, name=name)


def _slice_kernel(ctx: KernelContext, input: Array, begin: Array, size: Array) -> Array:
    begins, sizes = host_ints(ctx, begin), host_ints(ctx, size)
    parts, wrong = [], "" if len(begins) == len(sizes) == input.ndim else "begin and size have an entry per dimension"
    for axis, (first, count, whole) in enumerate(zip(begins, sizes, input.shape, strict=False)):
        last = whole if count == -1 else first + count
        if not wrong and not 0 <= first <= whole:
            wrong = f"Expected begin[{axis}] in [0, {whole}], but got {first}"
        elif not wrong and not first <= last <= whole:
            wrong = f"Expected size[{axis}] in [0, {whole - first}], but got {count}"
        parts.append(slice(first, last))
    if wrong:
        raise InvalidArgumentError(f"{wrong}: slice from {begins} of sizes {sizes} reaches outside shape {input.shape}")
    return input[tuple(parts)]


def _slice_shape(op: Operation) -> list[TensorShape]:
    source, begin, size = op.inputs
    begin.shape.assert_has_rank(1)
    size.shape.assert_has_rank(1)
    begins, sizes = known_entries(begin), known_entries(size)
    rank = source.shape.rank
    for entries in (begins, sizes):
        if entries is not None:
            rank = len(entries) if rank is None else rank
            if len(entries) != rank:
                raise ValueError(f"slice: {len(entries)} entries for {rank} dimensions")
    if rank is None:
        return [UNKNOWN]
    whole = source.shape.with_rank(rank).sizes
    return [TensorShape(list(map(_slice_size, begins or [None] * rank, sizes or [None] * rank, whole)))]


def _slice_size(begin: int | None, size: int | None, whole: int | None) -> int | None:
    if size == -1:
        size = None if whole is None or begin is None else whole - begin
    if (begin is not None and begin < 0) or (size is not None and size < 0):
        raise ValueError(f"slice from {begin} of size {size} reaches outside a dimension of size {whole}")
    if whole is not None and begin is not None and begin + (size or 0) > whole:
        raise ValueError(f"slice from {begin} of size {size} reaches outside a dimension of size {whole}")
    return size


def _slice_value(op: Operation) -> list[int | None] | None:
    entries, begin, size = (known_entries(tensor) for tensor in op.inputs)
    if entries is None or not begin or not size or begin[0] is None or size[0] is None or len(begin) != 1:
        return None
    return entries[begin[0] : None if size[0] == -1 else begin[0] + size[0]]


def _slice_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    d_input = add_op(SLICE_GRAD, d_output, shape_of(op.inputs[0]), op.inputs[1])
    d_input.set_shape(op.inputs[0].shape)
    return [d_input, None, None]


SLICE = register(
    OpDef(
        name="Slice",
        inputs=("input: T", "begin: Index", "size: Index"),
        outputs=("output: T",),
        host_inputs=("begin", "size"),
        types={"T": dtypes.VALUES, "Index": dtypes.INDICES},
        shape=_slice_shape,
        kernels=on_every_device(_slice_kernel),
        gradient=_slice_gradient,
        shape_value=_slice_value,
    )
)


def _slice_grad_kernel(ctx: KernelContext, dy: Array, shape: Array, begin: Array, out: Array | None = None) -> Array:
    d_input = empty_or(ctx, out, host_ints(ctx, shape))
    fill(d_input, 0)
    d_input[tuple(slice(b, b + n) for b, n in zip(host_ints(ctx, begin), dy.shape, strict=True))] = dy
    return d_input


def _slice_grad_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    return [slice_(d_output, op.inputs[2], shape_of(op.inputs[0])), None, None]


SLICE_GRAD = register(
    OpDef(
        name="SliceGrad",
        inputs=("dy: T", "shape: Tshape", "begin: Index"),
        outputs=("output: T",),
        host_inputs=("shape", "begin"),
        types={"T": dtypes.NUMERIC, "Index": dtypes.INDICES, "Tshape": dtypes.INDICES},
        shape=_shape_from_second,
        kernels=on_every_device(out_kernel(_slice_grad_kernel)),
        gradient=_slice_grad_gradient,
    )
)
