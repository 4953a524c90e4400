"""Vectors of 16 numbers for compiled kernels, and the types of their arguments.

A vector is as long on every CPU: the compiler makes as many instructions of it as the CPU needs. So sums have one order
everywhere. Vectors are read from memory, computed with by Python's operators and the functions below, and written back.
All arguments of one operation are vectors of one type; `fill` makes a vector of a number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, MutableSequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic, overload

LANES: Final = 16
"""Numbers in a vector: a cache line of float32, and the widest register of an x86 CPU."""

_INT: Final = ir.IntType(32)
_BIT: Final = ir.IntType(1)
_ELEMENTS: Final = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.int32: _INT,
    types.int64: ir.IntType(64),
    types.uint8: ir.IntType(8),
    types.boolean: _BIT,
}
_SUFFIX: Final = {
    types.float32: "f32",
    types.float64: "f64",
    types.int32: "i32",
    types.int64: "i64",
    types.uint8: "i8",
}


ARGUMENT_TYPES: Final = {
    "Int": types.int64,
    "Thread": types.int64,
    "Float": types.float32,
    "Double": types.float64,
    "Ints": types.CPointer(types.int32),
    "Longs": types.CPointer(types.int64),
    "Floats": types.CPointer(types.float32),
    "Doubles": types.CPointer(types.float64),
    "Bools": types.CPointer(types.boolean),
    "Octets": types.CPointer(types.uint8),
}
"""The types of a kernel's arguments, by the names that annotations use: numbers, and arrays."""

Int = int
Thread = int
"""Which of the threads that take part computes, counted from 0. Callers do not pass it."""
Float = float
Double = float
Ints = MutableSequence[int]
Longs = MutableSequence[int]
Floats = MutableSequence[float]
Doubles = MutableSequence[float]
Bools = MutableSequence[bool]
Octets = MutableSequence[int]


class Vector(types.Type):
    """The type of a vector.

    Args:
        element: The type of its numbers.
    """

    def __init__(self, element: types.Type) -> None:
        self.element = element
        super().__init__(f"vector({element})")

    @property
    def llvm(self) -> ir.VectorType:
        """Its type in LLVM."""
        return ir.VectorType(_ELEMENTS[self.element], LANES)

    @property
    def is_float(self) -> bool:
        """Whether its numbers are floats."""
        return self.element in (types.float32, types.float64)


@register_default(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.llvm)


_BITS: Final = Vector(types.boolean)
_OCTETS: Final = Vector(types.uint8)


# -- what the compiler writes ----------------------------------------------------------------------------


def _zeros(kind: ir.VectorType) -> ir.Constant:
    return ir.Constant(kind, [0] * LANES)


def _spread(builder: ir.IRBuilder, number: ir.Value, kind: ir.VectorType) -> ir.Value:
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, _zeros(ir.VectorType(_INT, LANES)))


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, arguments: list[ir.Value]) -> ir.Value:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _math(builder: ir.IRBuilder, name: str, kind: Vector, arguments: list[ir.Value]) -> ir.Value:
    return _call(builder, f"llvm.{name}.v{LANES}{_SUFFIX[kind.element]}", kind.llvm, arguments)


def _place(builder: ir.IRBuilder, pointer: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())


def _first_lanes(builder: ir.IRBuilder, count: ir.Value) -> ir.Value:
    """Bits that are set for the first `count` lanes."""
    lanes = ir.Constant(ir.VectorType(_INT, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, _spread(builder, builder.trunc(count, _INT), lanes.type))


def _in_memory(kind: Vector) -> ir.VectorType:
    """Booleans lie in bytes."""
    return ir.VectorType(ir.IntType(8), LANES) if kind == _BITS else kind.llvm


def _memory_name(kind: Vector) -> str:
    return f"v{LANES}{'i8' if kind == _BITS else _SUFFIX[kind.element]}.p0"


def _from_memory(builder: ir.IRBuilder, value: ir.Value, kind: Vector) -> ir.Value:
    return builder.icmp_unsigned("!=", value, _zeros(value.type)) if kind == _BITS else value


def _to_memory(builder: ir.IRBuilder, value: ir.Value, kind: Vector) -> ir.Value:
    return builder.zext(value, _in_memory(kind)) if kind == _BITS else value


def _alignment(kind: Vector) -> int:
    return {types.boolean: 1, types.uint8: 1, types.float64: 8, types.int64: 8}.get(kind.element, 4)


# -- memory ----------------------------------------------------------------------------------------------


@intrinsic
def load(context: Any, pointer: Any, index: Any) -> Any:
    """The 16 numbers from ``pointer[index]`` on."""
    kind = Vector(pointer.dtype)

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        place = _place(builder, arguments[0], arguments[1], _in_memory(kind))
        return _from_memory(builder, builder.load(place, align=_alignment(kind)), kind)

    return kind(pointer, types.int64), write


@intrinsic
def load_part(context: Any, pointer: Any, index: Any, count: Any, other: Any) -> Any:
    """The `count` numbers from ``pointer[index]`` on, 0 to 16 of them; in the other lanes the number `other`."""
    kind = Vector(pointer.dtype)

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        address, first, size, rest = arguments
        stored = _in_memory(kind)
        rest = context.cast(builder, rest, other, kind.element)
        rest = builder.zext(rest, stored.element) if kind == _BITS and rest.type == _BIT else rest
        operands = [
            _place(builder, address, first, stored),
            ir.Constant(_INT, _alignment(kind)),
            _first_lanes(builder, size),
            _spread(builder, rest, stored),
        ]
        value = _call(builder, f"llvm.masked.load.{_memory_name(kind)}", stored, operands)
        return _from_memory(builder, value, kind)

    return kind(pointer, types.int64, types.int64, other), write


@intrinsic
def store(context: Any, pointer: Any, index: Any, vector: Any) -> Any:
    """Write 16 numbers to ``pointer[index]`` and on."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        address, first, value = arguments
        builder.store(
            _to_memory(builder, value, vector),
            _place(builder, address, first, _in_memory(vector)),
            align=_alignment(vector),
        )
        return context.get_dummy_value()

    return types.void(pointer, types.int64, vector), write


@intrinsic
def at_line(context: Any, pointer: Any, index: Any) -> Any:
    """Whether a cache line (64 bytes) begins at ``pointer[index]``."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        place = builder.ptrtoint(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64))
        rest = builder.and_(place, ir.Constant(place.type, 63))
        return builder.icmp_unsigned("==", rest, ir.Constant(place.type, 0))

    return types.boolean(pointer, types.int64), write


@intrinsic
def store_past(context: Any, pointer: Any, index: Any, vector: Any) -> Any:
    """Write 16 numbers to ``pointer[index]`` and on, past the caches: their lines are not read before.

    A cache line begins there, see `at_line`. Other threads see the numbers after a `fence`.
    """

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        address, first, value = arguments
        written = builder.store(value, _place(builder, address, first, vector.llvm), align=64)
        written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_INT, 1)]))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, vector), write


@intrinsic
def fence(context: Any) -> Any:
    """Let other threads see all that has been written."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), write


@intrinsic
def store_part(context: Any, pointer: Any, index: Any, vector: Any, count: Any) -> Any:
    """Write the first `count` numbers, 0 to 16, to ``pointer[index]`` and on."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        address, first, value, size = arguments
        operands = [
            _to_memory(builder, value, vector),
            _place(builder, address, first, _in_memory(vector)),
            ir.Constant(_INT, _alignment(vector)),
            _first_lanes(builder, size),
        ]
        _call(builder, f"llvm.masked.store.{_memory_name(vector)}", ir.VoidType(), operands)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, vector, types.int64), write


@intrinsic
def prefetch(context: Any, pointer: Any, index: Any) -> Any:
    """Ask for the cache line of ``pointer[index]``, which is read soon. The place need not exist."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        place = _place(builder, arguments[0], arguments[1], ir.IntType(8))
        operands = [place, *(ir.Constant(_INT, number) for number in (0, 3, 1))]  # to read, into all caches, data
        _call(builder, "llvm.prefetch.p0", ir.VoidType(), operands)
        return context.get_dummy_value()

    return types.void(pointer, types.int64), write


@intrinsic
def transpose_block(
    context: Any, source: Any, first: Any, stride: Any, target: Any, target_first: Any, target_stride: Any
) -> Any:
    """Write a square block of a matrix transposed: as many rows and columns as numbers fill a cache line.

    Row ``i`` of the block begins at ``source[first + i * stride]``, column ``i`` is written to
    ``target[target_first + i * target_stride]`` and on. Numbers have 32 or 64 bits.
    """
    element = _ELEMENTS[source.dtype]
    side = 512 // source.dtype.bitwidth
    kind = ir.VectorType(element, side)
    align = source.dtype.bitwidth // 8

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        read, first, stride, written, target_first, target_stride = arguments

        def place(pointer: ir.Value, begin: ir.Value, step: ir.Value, row: int) -> ir.Value:
            index = builder.add(begin, builder.mul(step, ir.Constant(ir.IntType(64), row)))
            return _place(builder, pointer, index, kind)

        rows = [builder.load(place(read, first, stride, row), align=align) for row in range(side)]
        half = 1
        while half < side:  # exchange squares of that side across the diagonal, in every square of twice the side
            low = [lane if not lane & half else side + lane - half for lane in range(side)]
            high = [lane + half if not lane & half else side + lane for lane in range(side)]
            masks = [ir.Constant(ir.VectorType(_INT, side), lanes) for lanes in (low, high)]
            for row in range(side):
                if not row & half:
                    pair = rows[row], rows[row + half]
                    rows[row], rows[row + half] = (builder.shuffle_vector(*pair, mask) for mask in masks)
            half *= 2
        for row in range(side):
            builder.store(rows[row], place(written, target_first, target_stride, row), align=align)
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64, types.int64), write


@intrinsic
def take(context: Any, counter: Any) -> Any:
    """The number at `counter`, which becomes one greater; several threads may ask at once."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return builder.atomic_rmw("add", arguments[0], ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), write


@intrinsic
def behind(context: object, pointer: Any, count: object) -> Any:
    """An array without its first `count` elements."""

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), write


@intrinsic
def call(context: object, function: object, a: object, b: object, c: object, d: object) -> Any:
    """The whole number that the C function at an address returns for up to four numbers or addresses."""

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        word = ir.IntType(64)
        kind = ir.FunctionType(_INT, [word] * 4)
        return builder.sext(builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:]), word)

    return types.int64(*[types.int64] * 5), write


@intrinsic
def argument(context: object, block: object, index: object, kind: Any) -> Any:
    """The argument of that type that lies in ``block[index]``, in eight bytes."""
    wanted = kind.instance_type

    def write(context: BaseContext, builder: ir.IRBuilder, signature: object, arguments: list[ir.Value]) -> ir.Value:
        word = builder.load(builder.gep(arguments[0], [arguments[1]]))
        if isinstance(wanted, types.CPointer):
            return builder.inttoptr(word, context.get_value_type(wanted))
        if wanted == types.float32:
            return builder.bitcast(builder.trunc(word, _INT), ir.FloatType())
        return builder.bitcast(word, ir.DoubleType()) if wanted == types.float64 else word

    return wanted(block, types.int64, kind), write


def turned(channels: int) -> Callable[..., Any]:
    """The function that puts the pixels of a vector, each of so many neighbouring numbers, into reverse order.

    A vector has ``16 // channels`` pixels; the numbers behind the last one stay in their places.
    """
    pixels = LANES // channels
    lanes = [(pixels - 1 - i // channels) * channels + i % channels for i in range(pixels * channels)]
    mask = ir.Constant(ir.VectorType(_INT, LANES), [*lanes, *range(len(lanes), LANES)])

    @intrinsic
    def turn(context: Any, vector: Any) -> Any:
        def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            return builder.shuffle_vector(arguments[0], ir.Constant(vector.llvm, ir.Undefined), mask)

        return vector(vector), write

    turn_vector: Callable[..., Any] = turn
    return turn_vector


QUAD: Final = 4
"""Numbers that `mix_quads` computes at a time: a pixel of up to 4 channels, and what comes behind it."""


@intrinsic
def mix_quads(context: Any, x: Any, first: Any, weight: Any, second: Any, other: Any, target: Any, index: Any) -> Any:
    """Write ``weight * x[first + i] + other * x[second + i]``, rounded as by `fused`, to ``target[index + i]``, i < 4.

    The second part is left out where `second` is negative.
    """
    kind = ir.VectorType(_ELEMENTS[x.dtype], QUAD)
    align = x.dtype.bitwidth // 8

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        read, one, weight, two, other, written, index = arguments

        def spread(number: ir.Value) -> ir.Value:
            undefined = ir.Constant(kind, ir.Undefined)
            whole = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
            return builder.shuffle_vector(whole, undefined, ir.Constant(ir.VectorType(_INT, QUAD), [0] * QUAD))

        def quad(place: ir.Value) -> ir.Value:
            return builder.load(_place(builder, read, place, kind), align=align)

        total = builder.fmul(spread(weight), quad(one))
        sole = builder.block
        with builder.if_then(builder.icmp_signed(">=", two, ir.Constant(two.type, 0))):
            name = f"llvm.fma.v{QUAD}{_SUFFIX[x.dtype]}"
            both = _call(builder, name, kind, [spread(other), quad(two), total])
            mixed = builder.block
        result = builder.phi(kind)
        result.add_incoming(total, sole)
        result.add_incoming(both, mixed)
        builder.store(result, _place(builder, written, index, kind), align=align)
        return context.get_dummy_value()

    return types.void(x, types.int64, x.dtype, types.int64, x.dtype, target, types.int64), write


# -- arithmetic ------------------------------------------------------------------------------------------


@intrinsic
def fill(context: Any, number: Any) -> Any:
    """A vector of one number in all lanes."""
    kind = Vector(number)

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return _spread(builder, arguments[0], kind.llvm)

    return kind(number), write


def _of_two(write: Callable[..., ir.Value], result: Vector | None = None) -> Callable[..., Any]:
    @intrinsic
    def operation(context: Any, x: Any, y: Any) -> Any:
        def written(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            return write(builder, x, *arguments)

        return (result or x)(x, y), written

    return operation


def _arithmetic(for_floats: str, for_ints: str) -> Callable[..., ir.Value]:
    return lambda builder, kind, x, y: getattr(builder, for_floats if kind.is_float else for_ints)(x, y)


def _comparison(sign: str) -> Callable[..., ir.Value]:
    def write(builder: ir.IRBuilder, kind: Vector, x: ir.Value, y: ir.Value) -> ir.Value:
        if not kind.is_float:
            return builder.icmp_signed(sign, x, y)
        compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        return compare(sign, x, y)

    return write


def _extreme(for_floats: str, for_ints: str) -> Callable[..., ir.Value]:
    return lambda builder, kind, x, y: _math(builder, for_floats if kind.is_float else for_ints, kind, [x, y])


maximum = _of_two(_extreme("maximum", "smax"))
"""The greater of two; NaN where one of them is."""
minimum = _of_two(_extreme("minimum", "smin"))
"""The smaller of two; NaN where one of them is."""
greater_of = _of_two(lambda builder, kind, x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y))
"""The greater of two, faster than `maximum`; the second where one of them is NaN."""
lesser_of = _of_two(lambda builder, kind, x, y: builder.select(builder.fcmp_ordered("<", x, y), x, y))
"""The smaller of two, faster than `minimum`; the second where one of them is NaN."""

unordered = _of_two(lambda builder, kind, x, y: builder.fcmp_unordered("uno", x, y), _BITS)
"""Where one of two is NaN."""

_OPERATORS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    operator.add: _of_two(_arithmetic("fadd", "add")),
    operator.sub: _of_two(_arithmetic("fsub", "sub")),
    operator.mul: _of_two(_arithmetic("fmul", "mul")),
    operator.truediv: _of_two(_arithmetic("fdiv", "sdiv")),
    operator.and_: _of_two(lambda builder, kind, x, y: builder.and_(x, y)),
    operator.or_: _of_two(lambda builder, kind, x, y: builder.or_(x, y)),
    operator.lshift: _of_two(lambda builder, kind, x, y: builder.shl(x, y)),
    operator.rshift: _of_two(lambda builder, kind, x, y: builder.ashr(x, y)),
    operator.lt: _of_two(_comparison("<"), _BITS),
    operator.le: _of_two(_comparison("<="), _BITS),
    operator.gt: _of_two(_comparison(">"), _BITS),
    operator.ge: _of_two(_comparison(">="), _BITS),
    operator.eq: _of_two(_comparison("=="), _BITS),
    operator.ne: _of_two(_comparison("!="), _BITS),
}


def _define_operator(python_operator: Callable[..., Any], operation: Callable[..., Any]) -> None:
    @overload(python_operator)
    def _of_vectors(x, y):  # type: ignore[no-untyped-def]  # numba wants the signature of the function below
        if isinstance(x, Vector) and x == y:
            return lambda x, y: operation(x, y)
        return None


for _python_operator, _operation in _OPERATORS.items():
    _define_operator(_python_operator, _operation)


def _of_one(write: Callable[..., ir.Value]) -> Callable[..., Any]:
    @intrinsic
    def operation(context: Any, x: Any) -> Any:
        def written(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            return write(builder, x, arguments[0])

        return x(x), written

    return operation


def _math_of_one(name: str) -> Callable[..., Any]:
    return _of_one(lambda builder, kind, x: _math(builder, name, kind, [x]))


sqrt = _math_of_one("sqrt")
absolute = _math_of_one("fabs")
rint = _math_of_one("rint")
floor = _math_of_one("floor")
ceil = _math_of_one("ceil")
negative = _of_one(lambda builder, kind, x: builder.fneg(x) if kind.is_float else builder.neg(x))
invert = _of_one(lambda builder, kind, x: builder.not_(x))


@intrinsic
def where(context: Any, bits: Any, x: Any, y: Any) -> Any:
    """`x` in the lanes whose bit is set, `y` in the others."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return builder.select(*arguments)

    return x(bits, x, y), write


@intrinsic
def fused(context: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``, rounded once."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return _math(builder, "fma", x, list(arguments))

    return x(x, y, z), write


# -- between types ---------------------------------------------------------------------------------------


def _conversion(source: Vector, target: Vector) -> str:
    if source in (_BITS, _OCTETS):
        return "uitofp" if target.is_float else "zext"
    if source.is_float and target.is_float:
        return "fpext" if target.element == types.float64 else "fptrunc"
    if source.is_float or target.is_float:
        return "fptosi" if source.is_float else "sitofp"
    return "sext" if target.element == types.int64 else "trunc"


@intrinsic
def convert(context: Any, x: Any, like: Any) -> Any:
    """`x` with numbers of the type of the vector `like`; floats are cut off towards 0."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return arguments[0] if x == like else getattr(builder, _conversion(x, like))(arguments[0], like.llvm)

    return like(x, like), write


@intrinsic
def bits_as(context: Any, x: Any, like: Any) -> Any:
    """The same bits as numbers of the type of the vector `like`."""

    def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return builder.bitcast(arguments[0], like.llvm)

    return like(x, like), write


# -- across lanes ----------------------------------------------------------------------------------------


def _across(float_name: str, int_name: str, start: bool) -> Callable[..., Any]:
    @intrinsic
    def operation(context: Any, x: Any) -> Any:
        def write(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            element = x.llvm.element
            name = f"llvm.vector.reduce.{float_name if x.is_float else int_name}.v{LANES}{_SUFFIX[x.element]}"
            operands = [ir.Constant(element, -0.0)] if start and x.is_float else []
            operands.append(arguments[0])
            kind = ir.FunctionType(element, [operand.type for operand in operands])
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            # In pairs, the same pairs on every CPU; otherwise the lanes would be added one after another.
            return builder.call(function, operands, fastmath=["reassoc"] if start else [])

        return x.element(x), write

    return operation


sum_of = _across("fadd", "add", start=True)
"""The sum of the lanes."""
greatest_of = _across("fmaximum", "smax", start=False)
"""The greatest of the lanes; NaN if one is."""


# -- functions -------------------------------------------------------------------------------------------


@njit(inline="always")
def exp(x: Any) -> Any:
    """e to the power `x`, float32, to about 1 unit in the last place (the polynomial of Cephes' expf).

    What is less than the smallest normal number may be 0.
    """
    n = rint(x * fill(np.float32(1.44269504088896341)))
    n = lesser_of(greater_of(n, fill(np.float32(-150))), fill(np.float32(129)))  # of NaN, too
    p = exp_beyond(x, n)
    whole = convert(n, fill(np.int32(0)))
    half = whole >> fill(np.int32(1))  # 2**128 is not a float: scale twice
    y = p * power_of_two(half) * power_of_two(whole - half)
    y = where(x > fill(np.float32(88.722839)), fill(np.float32(np.inf)), y)
    return where(x < fill(np.float32(-104.0)), fill(np.float32(0)), y)


@njit(inline="always")
def exp_beyond(x: Any, n: Any) -> Any:
    """``exp(x) / 2**n``, where `n` is the whole number nearest to ``x / log(2)``, or beyond the range of floats."""
    r = fused(n, fill(np.float32(-0.693359375)), x)
    r = fused(n, fill(np.float32(2.12194440e-4)), r)
    p = fused(fill(np.float32(1.9875691500e-4)), r, fill(np.float32(1.3981999507e-3)))
    p = fused(p, r, fill(np.float32(8.3334519073e-3)))
    p = fused(p, r, fill(np.float32(4.1665795894e-2)))
    p = fused(p, r, fill(np.float32(1.6666665459e-1)))
    p = fused(p, r, fill(np.float32(5.0000001201e-1)))
    return fused(p, r * r, r + fill(np.float32(1)))


@njit(inline="always")
def power_of_two(n: Any) -> Any:
    """2 to the power `n`, for int32 from -126 to 127, as float32."""
    return bits_as((n + fill(np.int32(127))) << fill(np.int32(23)), fill(np.float32(0)))


@njit(inline="always")
def log(x: Any) -> Any:
    """The natural logarithm of `x`, float32, to about 1 unit in the last place (the polynomial of Cephes' logf)."""
    tiny = x < fill(np.float32(1.17549435e-38))
    scaled = where(tiny, x * fill(np.float32(16777216.0)), x)
    bits = bits_as(scaled, fill(np.int32(0)))
    exponent = (bits >> fill(np.int32(23))) - fill(np.int32(126))
    m = bits_as((bits & fill(np.int32(0x007FFFFF))) | fill(np.int32(0x3F000000)), fill(np.float32(0)))
    e = convert(exponent, m) - where(tiny, fill(np.float32(24)), fill(np.float32(0)))
    low = m < fill(np.float32(0.707106781186547524))
    e = where(low, e - fill(np.float32(1)), e)
    m = where(low, m + m, m) - fill(np.float32(1))
    z = m * m
    p = fused(fill(np.float32(7.0376836292e-2)), m, fill(np.float32(-1.1514610310e-1)))
    p = fused(p, m, fill(np.float32(1.1676998740e-1)))
    p = fused(p, m, fill(np.float32(-1.2420140846e-1)))
    p = fused(p, m, fill(np.float32(1.4249322787e-1)))
    p = fused(p, m, fill(np.float32(-1.6668057665e-1)))
    p = fused(p, m, fill(np.float32(2.0000714765e-1)))
    p = fused(p, m, fill(np.float32(-2.4999993993e-1)))
    p = fused(p, m, fill(np.float32(3.3333331174e-1)))
    y = fused(e, fill(np.float32(-2.12194440e-4)), m * z * p)
    y = fused(z, fill(np.float32(-0.5)), y)
    y = fused(e, fill(np.float32(0.693359375)), m + y)
    y = where(x == fill(np.float32(np.inf)), x, y)
    y = where(x == fill(np.float32(0)), fill(np.float32(-np.inf)), y)
    return where(x >= fill(np.float32(0)), y, fill(np.float32(np.nan)))


@njit(inline="always")
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of `x`, float32, to 5 units in the last place.

    A ratio of polynomials, fitted to the least relative error (2e-8) up to 9, from where on float32 rounds to 1.
    """
    limit = fill(np.float32(9))
    x = lesser_of(limit, greater_of(negative(limit), x))
    s = x * x
    p = fused(fill(np.float32(1.3354357022e-08)), s, fill(np.float32(2.0608855805e-05)))
    p = fused(p, s, fill(np.float32(3.4955742291e-03)))
    p = fused(p, s, fill(np.float32(1.3381013953e-01)))
    p = fused(p, s, fill(np.float32(9.9999997948e-01)))
    q = fused(fill(np.float32(7.7764314422e-07)), s, fill(np.float32(3.2856121469e-04)))
    q = fused(q, s, fill(np.float32(2.5876929339e-02)))
    q = fused(q, s, fill(np.float32(4.6714329554e-01)))
    one = fill(np.float32(1))
    y = x * p / fused(q, s, one)
    return lesser_of(one, greater_of(negative(one), y))


@njit(inline="always")
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, float32."""
    one = fill(np.float32(1))
    return one / (one + exp(negative(x)))


# -- rows and other ranges -------------------------------------------------------------------------------


@njit(inline="always")
def load_upto(pointer: Any, index: Any, count: Any) -> Any:
    """Up to 16 numbers from ``pointer[index]`` on: `count`, if that is less, and 0 in the other lanes."""
    return load(pointer, index) if count >= LANES else load_part(pointer, index, count, 0)


@njit(inline="always")
def store_upto(pointer: Any, index: Any, vector: Any, count: Any) -> None:
    """Write up to 16 numbers to ``pointer[index]`` and on: `count`, if that is less."""
    if count >= LANES:
        store(pointer, index, vector)
    else:
        store_part(pointer, index, vector, count)
