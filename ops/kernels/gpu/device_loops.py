"""Elementwise computations of several operations, on arrays of several sizes, as one kernel of a GPU.

A kernel has sections. Each is a loop over the elements of its own results: it loads an element of every input, carries
out assignments (see `element_loops`), and stores what is wanted. The threads of the first section come first, then
those of the second. So the updates of all variables, or a chain of elementwise operations, are one launch each.

Halves are computed in float32: an element becomes float32 where it is loaded, and a half again where it is stored.
What stays within a kernel is not rounded, but for a conversion to halves, which an operation asks for by name.

The source is C++ of a simple form, with one statement a line; `float32(0.5)`, `where(c, x, y)` and the like are
functions of the preamble.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import ArrayModule, NumpyDType
from tfray.ops.kernels.element_loops import UFUNC_ELEMENTS, Assignment, SignsAsCalls
from tfray.ops.kernels.precision import is_half, working_dtype

MAX_PARAMETER_BYTES: Final = 4000
"""CUDA passes 4096 bytes of parameters to a kernel; CuPy has a few of its own."""

NUMBER_BYTES: Final = 8
"""A number as a parameter."""


def array_bytes(rank: int) -> int:
    """Bytes of an array as a parameter: its pointer, its number of elements, its sizes and strides."""
    return 16 + 16 * rank


_TYPES: Final = frozenset(("float32", "float64", "int32", "int64", "bool"))
_HALVES: Final = ("float16", "bfloat16")
"""Classes of CuPy's headers, which convert from float32, to the nearest, and to it."""
_FUNCTIONS: Final = frozenset(("absolute", "negative", "invert", "maximum", "minimum", "where", "convert"))
_PLAIN: Final = ("exp2", "expm1", "log1p", "log2", "sin", "cos", "tan", "sinh", "cosh", "sigmoid")
_FLOAT_FUNCTIONS: Final = frozenset((*_PLAIN, "sqrt", "rint", "floor", "ceil", "exp", "log", "tanh", "power"))

DEVICE_ELEMENTS: Final[Mapping[str, str]] = {
    **UFUNC_ELEMENTS,
    **{name: f"{name}({{0}})" for name in _PLAIN},
    "power": "power({0}, {1})",
}
"""The expressions of ufuncs, by name; of some there is no loop for a CPU."""

_PREAMBLE: Final = """
typedef float float32;
typedef double float64;
typedef int int32;
typedef long long int64;
typedef bool bool_;
__device__ float32 absolute(float32 x) { return fabsf(x); }
__device__ float64 absolute(float64 x) { return fabs(x); }
__device__ int32 absolute(int32 x) { return x < 0 ? -x : x; }
__device__ int64 absolute(int64 x) { return x < 0 ? -x : x; }
__device__ bool invert(bool x) { return !x; }
template <typename T> __device__ T negative(T x) { return -x; }
template <typename T> __device__ T maximum(T x, T y) { return x > y || x != x ? x : y; }
template <typename T> __device__ T minimum(T x, T y) { return x < y || x != x ? x : y; }
template <typename T> __device__ T where(bool c, T x, T y) { return c ? x : y; }
template <typename T> __device__ T power(T x, T y) { return pow(x, y); }
template <typename T> __device__ T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <typename T, typename U> __device__ T quotient(T j, U width) { return j / width; }
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Lanes {
  T v[N];
  __device__ T& operator[](int k) { return v[k]; }
  __device__ const T& operator[](int k) const { return v[k]; }
};
template <typename T, int D, bool C, bool I> __device__ Lanes<T, 4> load4(const CArray<T, D, C, I>& a, ptrdiff_t i) {
  return *reinterpret_cast<const Lanes<T, 4>*>(&a[i]);
}
template <typename T, int D, bool C, bool I> __device__ Lanes<T, 8> load8(const CArray<T, D, C, I>& a, ptrdiff_t i) {
  return *reinterpret_cast<const Lanes<T, 8>*>(&a[i]);
}
template <typename T, int D, bool C, bool I> __device__ Lanes<T, 4> lanes4(const CArray<T, D, C, I>&) {
  return Lanes<T, 4>();
}
template <typename T, int D, bool C, bool I> __device__ Lanes<T, 8> lanes8(const CArray<T, D, C, I>&) {
  return Lanes<T, 8>();
}
template <typename T, int D, bool C, bool I, int N>
__device__ void store(CArray<T, D, C, I>& a, ptrdiff_t i, const Lanes<T, N>& values) {
  *reinterpret_cast<Lanes<T, N>*>(&a[i]) = values;
}
"""

ALIGNMENT: Final = 16
"""Bytes at whose multiples arrays begin from which a thread loads several elements at once."""


@dataclass(frozen=True)
class Load:
    """An array, or number, from which a section loads.

    Attributes:
        name: Its name. Sections that name the same array load from one.
        dtype: Its dtype.
        form: ``whole``, ``row``, ``column`` or ``scalar``, as in `element_loops.Input`; ``at`` another `index`; or
            ``number``: a number that the host passes.
        width: Elements of a row, for ``row`` and ``column``.
        index: For ``at``, which element of the array, as an expression of ``j``, the number of the section's element,
            and of `Section.places`. ``{name}`` stands for an array of that name.
        array: The array's name, if it is not that of the value.
    """

    name: str
    dtype: NumpyDType
    form: str = "whole"
    width: int = 0
    index: str = ""
    array: str = ""

    @property
    def source(self) -> str:
        """The name of the array."""
        return self.array or self.name


@dataclass(frozen=True)
class Section:
    """A loop over elements.

    Attributes:
        size: The number of elements.
        loads: What it reads.
        assignments: What it computes, in order.
        stored: Values, and the names of the arrays to which they go; these may be among `loads`. A third entry is the
            index at which they go there, if it is not ``j``.
        places: Names of integers, and the expressions from which they are computed first.
        run: Consecutive elements, from a multiple of this number on, that have consecutive indices where one is given,
            and the same places, but for such as only indices are computed from. 0 if there are none.
    """

    size: int
    loads: tuple[Load, ...]
    assignments: tuple[Assignment, ...]
    stored: tuple[tuple[str, ...], ...]
    places: tuple[tuple[str, str], ...] = ()
    run: int = 0

    def can_take(self, lanes: int) -> bool:
        """Whether a thread can compute so many consecutive elements."""
        has_places = bool(self.places) or any(load.form == "at" for load in self.loads)
        if has_places or any(len(entry) > 2 for entry in self.stored):
            has_run = bool(self.run) and self.run % lanes == 0
        else:
            has_run = True
        widths = [load.width for load in self.loads if load.form in ("row", "column")]
        return has_run and self.size < 1 << 31 and all(size % lanes == 0 for size in (self.size, *widths))


def has_loop(xp: ArrayModule, dtype: NumpyDType, size: int) -> bool:
    """Whether `xp` compiles kernels, and those that know of floats, and of indices of 32 bits, compute an array."""
    compiles = xp is not np and hasattr(xp, "ElementwiseKernel")
    return compiles and working_dtype(dtype) in (np.float32, np.float64) and 0 < size < 1 << 31


class Unknown(Exception):
    """The kernel would need something that is not there."""


class DeviceLoop:
    """The sections as one kernel. Arrays may have any memory layout, but for what is stored.

    Where sizes and addresses allow it, a thread computes several consecutive elements, which it loads and stores at
    once: memory is at its full speed only then.

    Attributes:
        inputs: Names of the arrays and numbers that it takes first, in order.
        outputs: Names of the arrays that it writes, which follow.
        source: What a thread does, in C++.

    Raises:
        Unknown: A dtype or function is not known here.
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        stored = {array: _dtype_of(section, value) for section in sections for value, array, *_ in section.stored}
        loads = {load.source: load for section in sections for load in section.loads if load.source not in stored}
        self.inputs, self.outputs = list(loads), list(stored)
        names = {name: f"in{i}" for i, name in enumerate(loads)} | {name: f"out{i}" for i, name in enumerate(stored)}
        self._numbers = [load.form == "number" for load in loads.values()]
        declared = [
            f"{working_dtype(load.dtype)} {names[name]}"
            if load.form == "number"
            else f"raw {load.dtype.name} {names[name]}"
            for name, load in loads.items()
        ]
        self._in = ", ".join(declared)
        self._out = ", ".join(f"raw {dtype.name} {names[name]}" for name, dtype in stored.items())
        dtypes = [*stored.values(), *(load.dtype for load in loads.values())]
        self._plain = _Text(sections, names, 1)
        self._wide = _Text(sections, names, 8 if any(map(is_half, dtypes)) else 4)
        self.source = self._plain.source

    def __call__(self, xp: ArrayModule, *arrays: Any) -> None:
        """Run on the arrays of `inputs`, then those of `outputs`."""
        count = len(self.inputs)
        text = self._plain
        if self._wide.is_wide and all(
            is_number or (array.flags.c_contiguous and array.data.ptr % ALIGNMENT == 0)
            for is_number, array in zip((*self._numbers, *(False for _ in self.outputs)), arrays, strict=True)
        ):
            text = self._wide
        kernel = _kernel(xp, f"{self._in}, {text.integers}" if self._in else text.integers, self._out, text.source)
        kernel(*arrays[:count], *text.sizes, *arrays[count:], size=text.threads)


class _Text:
    """The source of a kernel.

    Args:
        sections: The sections.
        names: The names of the arrays in it.
        lanes: Elements that a thread computes, in the sections that allow it.

    Attributes:
        source: What a thread does.
        is_wide: Whether a thread computes several elements anywhere.
        threads: The number of threads.
        sizes: Integers that it is given.
        integers: Their declarations.
    """

    def __init__(self, sections: Sequence[Section], names: dict[str, str], lanes: int) -> None:
        taken = [lanes if lanes > 1 and section.can_take(lanes) else 1 for section in sections]
        self.is_wide = max(taken) > 1
        self.sizes = [section.size // lanes for section, lanes in zip(sections, taken, strict=True)]
        self.threads = sum(self.sizes)
        widths: dict[int, str] = {}
        body = [f"{'int' if self.threads < 1 << 31 else 'int64'} j = i;"]
        for number, section in enumerate(sections):
            body.append(f"{'if (j' if not number else '} else if ((j -= n' + str(number - 1) + ')'} < n{number}) {{")
            body += [f"  {line}" for line in _Writer(section, names, widths, taken[number]).lines]
        self.sizes += list(widths)
        kind = "int32" if max(sum(section.size for section in sections), self.threads) < 1 << 31 else "int64"
        integers = [f"{kind} n{i}" for i in range(len(sections))] + [f"{kind} {name}" for name in widths.values()]
        self.integers = ", ".join(integers)
        self.source = "\n".join([*body, "}"])


@cache
def _kernel(xp: Any, inputs: str, outputs: str, body: str) -> Any:
    return xp.ElementwiseKernel(inputs, outputs, body, "tfray_elements", preamble=preamble(body))


def preamble(*texts: str) -> str:
    """What the source begins with; CuPy includes the header of a half only where an array has this dtype."""
    headers = [f'#include "cupy/{half}.cuh"\n' for half in _HALVES if any(re.search(rf"\b{half}\b", t) for t in texts)]
    return "".join(headers) + _PREAMBLE


def _dtype_of(section: Section, value: str) -> NumpyDType:
    found = [assignment.dtype for assignment in section.assignments if assignment.target == value]
    return found[-1] if found else next(load.dtype for load in section.loads if load.name == value)


def known_type(dtype: NumpyDType) -> str:
    """The name of the dtype in which the source computes values of `dtype`. Raises `Unknown`."""
    name = working_dtype(dtype).name
    if name not in _TYPES:
        raise Unknown(dtype.name)
    return "bool_" if name == "bool" else name


def element_of(text: str, dtype: NumpyDType) -> str:
    """An element of an array as the source computes with it."""
    return f"{known_type(dtype)}({text})" if is_half(dtype) else text


def rounded(text: str, dtype: NumpyDType) -> str:
    """A value as an element of an array of `dtype`."""
    return f"{dtype.name}({text})" if is_half(dtype) else text


def _from(first: str, text: str) -> str:
    """An expression of ``j``, for the first of a thread's elements."""
    return text if first == "j" else re.sub(r"\bj\b", first, text)


class _Writer(SignsAsCalls):
    """Writes the lines of a section, of which a thread computes so many consecutive elements."""

    def __init__(self, section: Section, arrays: dict[str, str], widths: dict[int, str], lanes: int) -> None:
        self.lines: list[str] = []
        self._dtypes: dict[str, NumpyDType] = {}
        self._names: dict[str, str] = {}
        self._inner: list[str] = []
        """What is done for each of the elements."""
        first = "j" if lanes == 1 else "c"
        if lanes > 1:
            self.lines.append(f"const int32 c = j * {lanes};")
        self.lines += [f"const int32 {name} = {_from(first, text)};" for name, text in section.places]
        for number, load in enumerate(section.loads):
            array = arrays[load.source]
            self._dtypes[load.name] = load.dtype
            if load.form == "number":
                self._names[load.name] = array
                known_type(load.dtype)
                continue
            width = widths.setdefault(load.width, f"w{len(widths)}") if load.form in ("row", "column") else ""
            forms = {
                "whole": first,
                "scalar": "0",
                "row": f"{first} % {width}",
                "column": f"quotient({first}, {width})",
            }
            index = forms.get(load.form) or _from(first, load.index.format(**arrays))
            self._names[load.name] = f"x{number}"
            kind = known_type(load.dtype)
            if lanes == 1 or load.form in ("scalar", "column"):
                self.lines.append(f"const {kind} x{number} = {element_of(f'{array}[{index}]', load.dtype)};")
            else:
                self.lines.append(f"const auto p{number} = load{lanes}({array}, {index});")
                self._inner.append(f"const {kind} x{number} = {element_of(f'p{number}[k]', load.dtype)};")
        self._names |= {name: name for name, _ in section.places}
        self._dtypes |= {name: np.dtype(np.int32) for name, _ in section.places}
        for number, assignment in enumerate(section.assignments):
            self._assign(assignment, f"y{number}")
        for number, (value, array, *places) in enumerate(section.stored):
            element = rounded(self._names[value], self._dtypes[value])
            index = _from(first, places[0]) if places else first
            if lanes == 1:
                self._inner.append(f"{arrays[array]}[{index}] = {element};")
            else:
                self.lines.append(f"auto q{number} = lanes{lanes}({arrays[array]});")
                self._inner.append(f"q{number}[k] = {element};")
        if lanes == 1:
            self.lines += self._inner
            return
        self.lines.append(f"for (int32 k = 0; k < {lanes}; ++k) {{")
        self.lines += [f"  {line}" for line in self._inner]
        self.lines.append("}")
        for number, (_, array, *places) in enumerate(section.stored):
            self.lines.append(f"store({arrays[array]}, {_from(first, places[0]) if places else first}, q{number});")

    def _assign(self, assignment: Assignment, target: str) -> None:
        dtypes = [self._dtypes[name] for name in assignment.inputs]
        numbers = [working_dtype(dtype) for dtype in (*dtypes, assignment.dtype) if dtype.kind != "b"]
        self._number = numbers[0] if numbers else np.dtype(bool)
        names = [self._names[name] for name in assignment.inputs]
        result = known_type(assignment.dtype)
        if "convert" in assignment.element:
            is_bool = assignment.dtype.kind == "b"
            text = f"{names[0]} != {known_type(dtypes[0])}(0)" if is_bool else f"{result}({names[0]})"
            if is_half(assignment.dtype) and dtypes[0] != assignment.dtype:
                text = f"{result}({rounded(text, assignment.dtype)})"
        else:
            text = ast.unparse(self.visit(ast.parse(assignment.element.format(*names), mode="eval")))
        self._inner.append(f"const {result} {target} = {text};")
        self._names[assignment.target] = target
        self._dtypes[assignment.target] = assignment.dtype

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        assert isinstance(node.value, int | float)
        if not math.isfinite(node.value):
            raise Unknown("a number that is not finite")
        value = float(node.value) if self._number.kind == "f" else int(node.value)
        return ast.Call(ast.Name(known_type(self._number)), [ast.Constant(value)], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name not in _FUNCTIONS and not (name in _FLOAT_FUNCTIONS and self._number.kind == "f"):
            raise Unknown(name)
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])


# -- formulas that update arrays in place ----------------------------------------------------------------


def _operator(element: str, reflected: bool = False) -> Callable[[Value, Any], Value]:
    def method(self: Value, other: Any) -> Value:
        return self.trace.record(element, [other, self] if reflected else [self, other], self.dtype)

    return method


class Value:
    """An array or a number of a formula, while its operations are recorded."""

    def __init__(self, trace: Trace, name: str, dtype: NumpyDType) -> None:
        self.trace, self.name, self.dtype = trace, name, dtype

    def astype(self, dtype: Any) -> Value:
        """The value in another dtype."""
        wanted = np.dtype(dtype)
        return self if wanted == self.dtype else self.trace.record("convert({0})", [self], wanted)

    __add__, __radd__ = _operator("{0} + {1}"), _operator("{0} + {1}", reflected=True)
    __sub__, __rsub__ = _operator("{0} - {1}"), _operator("{0} - {1}", reflected=True)
    __mul__, __rmul__ = _operator("{0} * {1}"), _operator("{0} * {1}", reflected=True)
    __truediv__, __rtruediv__ = _operator("{0} / {1}"), _operator("{0} / {1}", reflected=True)

    def __neg__(self) -> Value:
        return self.trace.record("-{0}", [self], self.dtype)

    def __bool__(self) -> bool:
        raise Unknown("what the formula does depends on a value")


class Trace:
    """Stands for the array module in a formula, and for the context of its kernel; records what it computes.

    Attributes:
        assignments: What has been computed.
    """

    float32, float64 = np.float32, np.float64

    def __init__(self, attrs: Any = None) -> None:
        self.assignments: list[Assignment] = []
        self._attrs = attrs

    @property
    def xp(self) -> Trace:
        """The array module: this one."""
        return self

    def attr(self, name: str) -> Any:
        """An attribute of the operation."""
        return self._attrs[name]

    def value(self, name: str, dtype: NumpyDType) -> Value:
        """An array or a number that the formula takes."""
        return Value(self, name, dtype)

    def values(self, loads: Sequence[Load]) -> list[Value]:
        """What is loaded."""
        return [Value(self, load.name, load.dtype) for load in loads]

    def compute(self, element: str, *operands: Any, dtype: Any = None) -> Value:
        """The value of an expression; of the dtype of its first operand, if none is named."""
        return self.record(element, operands, dtype or operands[0].dtype)

    def asarray(self, value: Any, dtype: Any) -> Any:
        """As of the array module; a number stays one."""
        return value.astype(dtype) if isinstance(value, Value) else value

    def record(self, element: str, operands: Sequence[Any], dtype: NumpyDType, out: Value | None = None) -> Value:
        """Note an assignment; numbers among its operands become part of it."""
        values = [operand for operand in operands if isinstance(operand, Value)]
        places = iter(f"{{{index}}}" for index in range(len(values)))
        texts = [next(places) if isinstance(operand, Value) else repr(float(operand)) for operand in operands]
        target = f"value {len(self.assignments)}"
        self.assignments.append(Assignment(target, element.format(*texts), tuple(v.name for v in values), dtype))
        if out is None:
            return Value(self, target, np.dtype(dtype))
        out.name = target
        return out

    def __getattr__(self, name: str) -> Any:
        element = DEVICE_ELEMENTS.get(name)
        if element is None:
            raise Unknown(name)

        def ufunc(*operands: Any, out: Value | None = None) -> Value:
            dtype = out.dtype if out is not None else next(o.dtype for o in operands if isinstance(o, Value))
            return self.record(element, operands, dtype, out)

        return ufunc


# -- sums of what is computed from elements --------------------------------------------------------------


def device_sum(
    xp: ArrayModule,
    element: str,
    arrays: Sequence[Any],
    axis: int | tuple[int, ...],
    scale: float = 1.0,
    dtype: NumpyDType | None = None,
) -> Any:
    """The sum of an expression of the elements of arrays, ``{0}``, ``{1}``, ..., times `scale`, in one kernel.

    The arrays are broadcast against each other. They have one dtype, float32 or float64, or are halves and float32, of
    which the sum is float32; it may be rounded to another `dtype` at the end. Dimensions that are summed over have
    size 1 in the result.
    """
    dtypes = tuple(array.dtype for array in arrays)
    total = working_dtype(dtypes[0])
    return _sum_kernel(xp, element, dtypes, dtype or total)(*arrays, total.type(scale), axis=axis, keepdims=True)


@cache
def _sum_kernel(xp: Any, element: str, dtypes: tuple[NumpyDType, ...], result: NumpyDType) -> Any:
    total = working_dtype(dtypes[0])
    kind = known_type(total)
    parameters = ", ".join([*(f"{dtype.name} x{index}" for index, dtype in enumerate(dtypes)), f"{kind} scale"])
    text = element.format(*(element_of(f"x{index}", dtype) for index, dtype in enumerate(dtypes)))
    # CuPy would add up in the dtype of the result.
    options = {
        "reduce_type": {"float32": "float", "float64": "double"}[kind],
        "preamble": preamble(parameters, result.name),
    }
    last = f"total = {rounded('a * scale', result)}"
    return xp.ReductionKernel(parameters, f"{result.name} total", text, "a + b", last, "0", "tfray_sum", **options)
