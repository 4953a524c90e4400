"""Einstein summation: products of tensors, with sums over the dimensions that the result lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, ArrayModule, KernelContext, OpDef, on_every_device, register
from tfray.framework.tensor_shape import UNKNOWN, TensorShape, broadcast_shapes
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.broadcast_ops import ones, sum_to_shape
from tfray.ops.arrays.construction_ops import eye
from tfray.ops.arrays.join_ops import concat, size_along
from tfray.ops.arrays.shape_ops import index_tensor, shape
from tfray.ops.arrays.slice_ops import getitem
from tfray.ops.kernels.cpu_threads import one_blas_thread
from tfray.ops.kernels.precision import is_half
from tfray.ops.kernels.products import matrix_product
from tfray.ops.math.arithmetic_ops import conj


def einsum(equation: str, *inputs: TensorLike, name: str | None = None) -> Tensor:
    """Multiply tensors and sum, as ``"ij,jk->ik"`` says: one letter per dimension, summed if not in the result.

    Args:
        equation: The letters of each input, separated by commas; after ``->`` those of the result. Without
            ``->`` the result has the letters that occur once, in alphabetical order. ``...`` stands for leading
            or inner dimensions that broadcast. A letter twice in one input takes the diagonal.
        *inputs: One tensor per group of letters, whose rank is the number of its letters; all of one number dtype.
        name: Name of the operation.

    Returns:
        The shape has the sizes of the dimensions named after ``->``; the dtype of the inputs.

    Raises:
        InvalidArgumentError: The equation is malformed, or does not fit the inputs.

    Examples:
        >>> a, b = tf.ones([2, 3, 4]), tf.ones([2, 4, 5])
        >>> tf.einsum("bij,bjk->bik", a, b).shape.as_list()  # products of batches of matrices
        [2, 3, 5]
        >>> session.run(tf.einsum("ii->", tf.constant([[1, 2], [3, 4]])))  # the trace
        np.int32(5)
    """
    operands, result = _parse(equation)
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    if len(operands) != len(inputs):
        raise InvalidArgumentError(f"einsum: {equation!r} has {len(operands)} inputs, got {len(inputs)}")
    if "." not in result:  # then the inputs have no dimensions there
        operands = tuple(operand.replace(".", "") for operand in operands)
    dtype = next((value.dtype for value in inputs if isinstance(value, Tensor)), None)
    tensors = [convert_to_tensor(value, dtype) for value in inputs]
    return _add_einsum(operands, tensors, result, name or "einsum")


def _add_einsum(operands: Sequence[str], tensors: Sequence[Tensor], result: str, name: str | None = None) -> Tensor:
    equation = f"{','.join(operands)}->{result}".replace(".", "...")
    return add_op(EINSUM, tensors, name=name, equation=equation)


@lru_cache(maxsize=512)
def _parse(equation: str) -> tuple[tuple[str, ...], str]:
    """The letters of each input and of the result, with ``...`` written as ``.``."""
    if not isinstance(equation, str):
        raise InvalidArgumentError(f"einsum: the equation is {equation!r}, expected a string such as 'ij,jk->ik'")
    bare = equation.replace(" ", "")
    if "." in bare.replace("...", ""):
        raise InvalidArgumentError(f"einsum: {equation!r} has a '.' that is no part of '...'")
    short = bare.replace("...", ".")
    left, arrow, result = short.partition("->")
    operands = tuple(left.split(","))
    letters = Counter(left.replace(",", "").replace(".", ""))
    if not arrow:
        once = "".join(sorted(letter for letter, count in letters.items() if count == 1))
        result = ("." if "." in left else "") + once
    for part in (*operands, result):
        if part.count(".") > 1 or not all(character in ascii_letters or character == "." for character in part):
            raise InvalidArgumentError(f"einsum: {equation!r} is malformed at {part!r}: expected letters and one '...'")
    if len(set(result)) != len(result) or not set(result) <= {*left, "."}:
        raise InvalidArgumentError(f"einsum: in {equation!r} the result must name letters of the inputs, each once")
    return operands, result


def _without_diagonals(operands: Sequence[str], tensors: Sequence[Tensor]) -> tuple[list[str], list[Tensor]]:
    """Replace a letter's second occurrence in an input by a new one, tied to the first by a unit matrix."""
    free = iter(letter for letter in ascii_letters if not any(letter in operand for operand in operands))
    renamed, all_tensors = list(operands), list(tensors)
    for index, operand in enumerate(operands):
        for position, letter in enumerate(operand):
            if letter != "." and letter in operand[:position]:
                other = next(free)
                part = renamed[index]
                renamed[index] = part[:position] + other + part[position + 1 :]
                renamed.append(letter + other)
                offset = position - len(operand) if "." in operand[:position] else position
                all_tensors.append(_unit_matrix(tensors[index], offset))
    return renamed, all_tensors


def _unit_matrix(like: Tensor, axis: int) -> Tensor:
    return eye(size_along(like, axis), dtype=like.dtype)


# -- kernel --------------------------------------------------------------------------------------------


class _Product(NamedTuple):
    """How two arrays are multiplied as matrices.

    Attributes:
        sums: For each array the dimensions that only it has and the result lacks.
        orders: For each array its remaining dimensions as (shared, free, summed) or (shared, summed, free).
        counts: How many are shared, free of the first, free of the second, summed.
        order: Dimensions of the product in the order of the result.
    """

    sums: tuple[tuple[int, ...], tuple[int, ...]]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    counts: tuple[int, int, int, int]
    order: tuple[int, ...]


@lru_cache(maxsize=512)
def _product(a: str, b: str, result: str) -> _Product:
    sums = (
        tuple(i for i, letter in enumerate(a) if letter not in b + result),
        tuple(i for i, letter in enumerate(b) if letter not in a + result),
    )
    a = "".join(letter for letter in a if letter in b + result)
    b = "".join(letter for letter in b if letter in a + result)
    shared = [letter for letter in a if letter in b and letter in result]
    summed = [letter for letter in a if letter in b and letter not in result]
    free_a = [letter for letter in a if letter not in b]
    free_b = [letter for letter in b if letter not in a]
    made = shared + free_a + free_b
    return _Product(
        sums,
        (
            tuple(a.index(letter) for letter in shared + free_a + summed),
            tuple(b.index(letter) for letter in shared + summed + free_b),
        ),
        (len(shared), len(free_a), len(free_b), len(summed)),
        tuple(made.index(letter) for letter in result),
    )


def _einsum_kernel(ctx: KernelContext, *arrays: Array) -> Array:
    dtype = ctx.output_dtype()
    if is_half(dtype):
        arrays = tuple(array.astype(np.float32) for array in arrays)
    equation = ctx.attr("equation")
    try:
        *parts, result = _spelled_out(equation, *(array.ndim for array in arrays))
        if len(arrays) == 2:
            (a, first), (b, second) = (_diagonal(ctx.xp, *pair) for pair in zip(arrays, parts, strict=True))
            value = _multiply(ctx.xp, a, b, _product(first, second, result))
        else:
            with one_blas_thread():
                value = ctx.xp.einsum(f"{','.join(parts)}->{result}", *arrays, optimize=len(arrays) > 2)
    except ValueError as error:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InvalidArgumentError(f"{equation!r} does not fit shapes {shapes}: {error}") from error
    return value.astype(dtype, copy=False)


@lru_cache(maxsize=512)
def _spelled_out(equation: str, *ranks: int) -> tuple[str, ...]:
    """The equation's parts for inputs of these ranks, with letters in place of each ellipsis."""
    operands, result = _parse(equation)
    unused = [letter for letter in ascii_letters if letter not in equation]
    spans = [rank - len(part) + 1 for part, rank in zip(operands, ranks, strict=True) if "." in part]
    for part, rank in zip(operands, ranks, strict=True):
        if rank < len(part.replace(".", "")) or ("." not in part and rank != len(part)):
            raise ValueError(f"{part.replace('.', '...')!r} does not name {rank} dimensions")
    widest = max(spans, default=0)
    # Aligned at the last dimension, as broadcasting is.
    names = "".join(unused[:widest])
    spelled = [
        part.replace(".", names[widest - (rank - len(part) + 1) :] if "." in part else "")
        for part, rank in zip(operands, ranks, strict=True)
    ]
    return (*spelled, result.replace(".", names))


def _diagonal(xp: ArrayModule, array: Array, part: str) -> tuple[Array, str]:
    """An array of which each letter names one dimension: what the array has where the others of a letter are equal."""
    once = "".join(dict.fromkeys(part))
    return (array, part) if once == part else (xp.einsum(f"{part}->{once}", array), once)


def _multiply(xp: ArrayModule, a: Array, b: Array, product: _Product) -> Array:
    a = a.sum(axis=product.sums[0], dtype=a.dtype) if product.sums[0] else a
    b = b.sum(axis=product.sums[1], dtype=b.dtype) if product.sums[1] else b
    a, b = a.transpose(product.orders[0]), b.transpose(product.orders[1])
    shared, free_a, free_b, summed = product.counts
    if a.shape[shared + free_a :] != b.shape[shared : shared + summed]:
        a, b = _sum_repeated(a, b, shared + free_a, shared, summed)
    rows, terms = a.shape[shared : shared + free_a], a.shape[shared + free_a :]
    columns = b.shape[shared + summed :]
    a = a.reshape(*a.shape[:shared], prod(rows), prod(terms))
    b = b.reshape(*b.shape[:shared], prod(terms), prod(columns))
    # BLAS has nothing to gain from single rows or terms.
    if summed == 0:
        result = a * b
    elif free_a == 0 and free_b == 0 and xp is np:
        result = np.einsum("...k,...k->...", a[..., 0, :], b[..., 0])
    else:
        result = matrix_product(xp, a, b)
    sizes = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return result.reshape(sizes + rows + columns).transpose(product.order)


def _sum_repeated(a: Array, b: Array, first_of_a: int, first_of_b: int, summed: int) -> tuple[Array, Array]:
    """Sum in one array what meets a dimension of size 1 of the other, so that all summed sizes agree."""
    for i in range(summed):
        m, n = a.shape[first_of_a + i], b.shape[first_of_b + i]
        if m == 1:
            b = b.sum(axis=first_of_b + i, keepdims=True, dtype=b.dtype)
        elif n == 1:
            a = a.sum(axis=first_of_a + i, keepdims=True, dtype=a.dtype)
        elif m != n:
            raise ValueError(f"summed dimensions of sizes {m} and {n} differ")
    return a, b


# -- shape and gradient --------------------------------------------------------------------------------


def _einsum_shape(op: Operation) -> list[TensorShape]:
    operands, result = _parse(op.attr("equation"))
    sizes: dict[str, int | None] = {}
    ellipsis = TensorShape([])
    for part, tensor in zip(operands, op.inputs, strict=True):
        known = tensor.shape.rank is not None
        ellipsis = _note_sizes(part, tensor.shape, sizes, ellipsis) if known else (UNKNOWN if "." in part else ellipsis)
    if "." in result and ellipsis.rank is None:
        return [UNKNOWN]
    before, dot, after = result.partition(".")
    shape_of = [TensorShape([sizes.get(letter) for letter in part]) for part in (before, after)]
    return [shape_of[0].concatenate(ellipsis if dot else []).concatenate(shape_of[1])]


def _note_sizes(part: str, source: TensorShape, sizes: dict[str, int | None], ellipsis: TensorShape) -> TensorShape:
    before, dot, after = part.partition(".")
    rank = len(source.sizes)
    if rank < len(before) + len(after) or (not dot and rank != len(before)):
        raise ValueError(f"{part.replace('.', '...')!r} does not name the dimensions of {source}")
    ends = [*zip(before, source.sizes, strict=False), *zip(after, source.sizes[rank - len(after) :], strict=True)]
    for letter, extent in ends:
        if extent is not None and sizes.setdefault(letter, extent) not in (extent, None):
            raise ValueError(f"dimension {letter!r} has sizes {sizes[letter]} and {extent}")
        if sizes.get(letter) is None:
            sizes[letter] = extent
    return broadcast_shapes(ellipsis, source[len(before) : rank - len(after)]) if dot else ellipsis


def _einsum_gradient(op: Operation, d_output: Tensor) -> list[Tensor | None]:
    operands, result = _parse(op.attr("equation"))
    parts, tensors = _without_diagonals(operands, op.inputs)
    return [_operand_gradient(tensors, d_output, parts, result, index) for index in range(len(operands))]


def _operand_gradient(
    inputs: Sequence[Tensor], d_output: Tensor, operands: Sequence[str], result: str, index: int
) -> Tensor:
    source, part = inputs[index], operands[index]
    others = [i for i in range(len(operands)) if i != index]
    around = [result, *(operands[i] for i in others)]
    letters = part.replace(".", "")
    kept = [letter for letter in letters if any(letter in other for other in around)]
    # What broadcasts comes first, so that it can be summed to the size that it has in this input.
    front = "." * ("." in part) + "".join(kept)
    d_source = _add_einsum(around, [d_output, *(conj(inputs[i]) for i in others)], front)
    if "." in part:
        d_source = sum_to_shape(d_source, _sizes_in_front(source, part, kept))
    if front == part:
        d_source.set_shape(source.shape)
        return d_source
    # Dimensions that were summed in this input alone get the same gradient all along.
    alone = [letter for letter in letters if letter not in kept]
    along = [ones([_size_of(source, part, letter)], source.dtype) for letter in alone]
    return _add_einsum([front, *alone], [d_source, *along], part)


def _sizes_in_front(source: Tensor, part: str, kept: Sequence[str]) -> Tensor:
    before, _, after = part.partition(".")
    ellipsis = getitem(shape(source), slice(len(before), -len(after) or None))
    return (
        concat([ellipsis, index_tensor([_size_of(source, part, letter) for letter in kept])], 0) if kept else ellipsis
    )


def _size_of(source: Tensor, part: str, letter: str) -> Any:
    position = part.index(letter)
    return size_along(source, position - len(part) if "." in part[:position] else position)


EINSUM = register(
    OpDef(
        name="Einsum",
        inputs=("inputs: T*",),
        outputs=("output: T",),
        types={"T": dtypes.NUMERIC},
        attrs=("equation",),
        shape=_einsum_shape,
        kernels=on_every_device(_einsum_kernel),
        gradient=_einsum_gradient,
    )
)
