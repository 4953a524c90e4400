"""Elementwise computations of several operations, on arrays of several sizes, as one kernel of a GPU.

A kernel has sections. Each is a loop over the elements of its own results: it loads an element of every input, carries
out assignments (see `element_loops`), and stores what is wanted. The threads of the first section come first, then
those of the second. So the updates of all variables, or a chain of elementwise operations, are one launch each.

The source is C++ of a simple form, with one statement a line; `float32(0.5)`, `where(c, x, y)` and the like are
functions of the preamble.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import ArrayModule, NumpyDType
from tfray.ops.kernels.element_loops import UFUNC_ELEMENTS, Assignment

MAX_PARAMETER_BYTES: Final = 4000
"""CUDA passes 4096 bytes of parameters to a kernel; CuPy has a few of its own."""

_TYPES: Final = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long", "bool": "bool"}
_FUNCTIONS: Final = frozenset(("absolute", "negative", "invert", "maximum", "minimum", "where", "convert"))
_FLOAT_FUNCTIONS: Final = frozenset(("sqrt", "rint", "floor", "ceil", "exp", "log", "tanh", "sigmoid"))

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
template <typename T> __device__ T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <typename T> __device__ T quotient(T j, T width) { return j / width; }
"""


@dataclass(frozen=True)
class Load:
    """An array, or number, from which a section loads.

    Attributes:
        name: Its name. Sections that name the same array load from one.
        dtype: Its dtype.
        form: ``whole``, ``row``, ``column`` or ``scalar``, as in `element_loops.Input`; or ``number``: a number that
            the host passes.
        width: Elements of a row, for ``row`` and ``column``.
    """

    name: str
    dtype: NumpyDType
    form: str = "whole"
    width: int = 0


@dataclass(frozen=True)
class Section:
    """A loop over elements.

    Attributes:
        size: The number of elements.
        loads: What it reads.
        assignments: What it computes, in order.
        stored: Values, and the names of the arrays to which they go; these may be among `loads`.
    """

    size: int
    loads: tuple[Load, ...]
    assignments: tuple[Assignment, ...]
    stored: tuple[tuple[str, str], ...]


class Unknown(Exception):
    """The kernel would need something that is not there."""


class DeviceLoop:
    """The sections as one kernel. Arrays may have any memory layout, but for what is stored.

    Attributes:
        inputs: Names of the arrays and numbers that it takes first, in order.
        outputs: Names of the arrays that it writes, which follow.
        source: What a thread does, in C++.

    Raises:
        Unknown: A dtype or function is not known here.
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        stored = {array: _dtype_of(section, value) for section in sections for value, array in section.stored}
        loads = {load.name: load for section in sections for load in section.loads if load.name not in stored}
        self.inputs, self.outputs = list(loads), list(stored)
        self._size = sum(section.size for section in sections)
        self._sizes = [section.size for section in sections]
        names = {name: f"in{i}" for i, name in enumerate(loads)} | {name: f"out{i}" for i, name in enumerate(stored)}
        widths: dict[int, str] = {}
        body = [f"{'int' if self._size < 1 << 31 else 'int64'} j = i;"]
        for number, section in enumerate(sections):
            body.append(f"{'if (j' if not number else '} else if ((j -= n' + str(number - 1) + ')'} < n{number}) {{")
            body += [f"  {line}" for line in _Writer(section, names, widths).lines]
        self._sizes += list(widths)
        integers = [f"int32 n{i}" for i in range(len(sections))] + [f"int32 {name}" for name in widths.values()]
        if self._size >= 1 << 31:
            integers = [text.replace("int32", "int64") for text in integers]
        declared = [
            f"{'' if load.form == 'number' else 'raw '}{load.dtype.name} {names[name]}" for name, load in loads.items()
        ]
        self._in = ", ".join([*declared, *integers])
        self._out = ", ".join(f"raw {dtype.name} {names[name]}" for name, dtype in stored.items())
        self.source = "\n".join([*body, "}"])
        self.parameter_bytes = 32 * (len(loads) + len(stored)) + 8 * len(integers)

    def __call__(self, xp: ArrayModule, *arrays: Any) -> None:
        """Run on the arrays of `inputs`, then those of `outputs`."""
        count = len(self.inputs)
        kernel = _kernel(xp, self._in, self._out, self.source)
        kernel(*arrays[:count], *self._sizes, *arrays[count:], size=self._size)


@cache
def _kernel(xp: Any, inputs: str, outputs: str, body: str) -> Any:
    return xp.ElementwiseKernel(inputs, outputs, body, "tfray_elements", preamble=_PREAMBLE)


def _dtype_of(section: Section, value: str) -> NumpyDType:
    found = [assignment.dtype for assignment in section.assignments if assignment.target == value]
    return found[-1] if found else next(load.dtype for load in section.loads if load.name == value)


def known_type(dtype: NumpyDType) -> str:
    """The name of a dtype in the source. Raises `Unknown`."""
    if dtype.name not in _TYPES:
        raise Unknown(dtype.name)
    return "bool_" if dtype.name == "bool" else dtype.name


class _Writer(ast.NodeTransformer):
    """Writes the lines of a section."""

    def __init__(self, section: Section, arrays: dict[str, str], widths: dict[int, str]) -> None:
        self.lines: list[str] = []
        self._dtypes: dict[str, NumpyDType] = {}
        self._names: dict[str, str] = {}
        for number, load in enumerate(section.loads):
            array = arrays[load.name]
            self._dtypes[load.name] = load.dtype
            if load.form == "number":
                self._names[load.name] = array
                known_type(load.dtype)
                continue
            width = widths.setdefault(load.width, f"w{len(widths)}") if load.form in ("row", "column") else ""
            index = {"whole": "j", "scalar": "0", "row": f"j % {width}", "column": f"quotient(j, {width})"}[load.form]
            self._names[load.name] = f"x{number}"
            self.lines.append(f"const {known_type(load.dtype)} x{number} = {array}[{index}];")
        for number, assignment in enumerate(section.assignments):
            self._assign(assignment, f"y{number}")
        for value, array in section.stored:
            self.lines.append(f"{arrays[array]}[j] = {self._names[value]};")

    def _assign(self, assignment: Assignment, target: str) -> None:
        dtypes = [self._dtypes[name] for name in assignment.inputs]
        numbers = [dtype for dtype in (*dtypes, assignment.dtype) if dtype.kind != "b"]
        self._number = numbers[0] if numbers else np.dtype(bool)
        names = [self._names[name] for name in assignment.inputs]
        result = known_type(assignment.dtype)
        if "convert" in assignment.element:
            is_bool = assignment.dtype.kind == "b"
            text = f"{names[0]} != {known_type(dtypes[0])}(0)" if is_bool else f"{result}({names[0]})"
        else:
            text = ast.unparse(self.visit(ast.parse(assignment.element.format(*names), mode="eval")))
        self.lines.append(f"const {result} {target} = {text};")
        self._names[assignment.target] = target
        self._dtypes[assignment.target] = assignment.dtype

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        assert isinstance(node.value, int | float)
        if not math.isfinite(node.value):
            raise Unknown("a number that is not finite")
        value = float(node.value) if self._number.kind == "f" else int(node.value)
        return ast.Call(ast.Name(known_type(self._number)), [ast.Constant(value)], [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        name = {ast.USub: "negative", ast.Invert: "invert"}[type(node.op)]
        return ast.Call(ast.Name(name), [self.visit(node.operand)], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name not in _FUNCTIONS and not (name in _FLOAT_FUNCTIONS and self._number.kind == "f"):
            raise Unknown(name)
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])


# -- formulas that update arrays in place ----------------------------------------------------------------


class _Value:
    """An array or a number of a formula, while its operations are recorded."""

    def __init__(self, trace: Trace, name: str, dtype: NumpyDType) -> None:
        self.trace, self.name, self.dtype = trace, name, dtype

    def astype(self, dtype: Any) -> _Value:
        """The value in another dtype."""
        wanted = np.dtype(dtype)
        return self if wanted == self.dtype else self.trace.record("convert({0})", [self], wanted)

    def __neg__(self) -> _Value:
        return self.trace.record("-{0}", [self], self.dtype)

    def __bool__(self) -> bool:
        raise Unknown("what the formula does depends on a value")


def _operator(element: str, reflected: bool = False) -> Callable[[_Value, Any], _Value]:
    def method(self: _Value, other: Any) -> _Value:
        return self.trace.record(element, [other, self] if reflected else [self, other], self.dtype)

    return method


for _name, _element in {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "truediv": "{0} / {1}"}.items():
    setattr(_Value, f"__{_name}__", _operator(_element))
    setattr(_Value, f"__r{_name}__", _operator(_element, reflected=True))


class Trace:
    """Stands for the array module in a formula, and for the context of its kernel; records what it computes.

    Attributes:
        assignments: What has been computed.
    """

    float32, float64 = np.float32, np.float64

    def __init__(self, attrs: Any) -> None:
        self.assignments: list[Assignment] = []
        self._attrs = attrs

    @property
    def xp(self) -> Trace:
        """The array module: this one."""
        return self

    def attr(self, name: str) -> Any:
        """An attribute of the operation."""
        return self._attrs[name]

    def value(self, name: str, dtype: NumpyDType) -> _Value:
        """An array or a number that the formula takes."""
        return _Value(self, name, dtype)

    def asarray(self, value: _Value, dtype: Any) -> _Value:
        """As of the array module."""
        return value.astype(dtype)

    def record(self, element: str, operands: Sequence[Any], dtype: NumpyDType, out: _Value | None = None) -> _Value:
        """Note an assignment; numbers among its operands become part of it."""
        values = [operand for operand in operands if isinstance(operand, _Value)]
        places = iter(f"{{{index}}}" for index in range(len(values)))
        texts = [next(places) if isinstance(operand, _Value) else repr(float(operand)) for operand in operands]
        target = f"value {len(self.assignments)}"
        self.assignments.append(Assignment(target, element.format(*texts), tuple(v.name for v in values), dtype))
        if out is None:
            return _Value(self, target, dtype)
        out.name = target
        return out

    def __getattr__(self, name: str) -> Any:
        element = UFUNC_ELEMENTS.get(name)
        if element is None:
            raise Unknown(name)

        def ufunc(*operands: Any, out: _Value | None = None) -> _Value:
            dtype = out.dtype if out is not None else next(o.dtype for o in operands if isinstance(o, _Value))
            return self.record(element, operands, dtype, out)

        return ufunc
