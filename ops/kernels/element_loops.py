"""Elementwise computations of several operations as one compiled loop, which reads every input once.

Each operation says in one expression how an element of its result comes from those of its inputs: ``{0} * {1}``. What
is added, multiplied, divided or compared has the bits that NumPy computes; ``exp``, ``log``, ``tanh`` and ``sigmoid``
have functions of their own (see `ops.compiled.vectors`), for float32.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from tfray.framework.op_def import NumpyDType
from tfray.ops.kernels.compiling import CompiledKernel, can_compile, kernel_of_source

_ARRAYS: Final = {"float32": "Floats", "float64": "Doubles", "int32": "Ints", "int64": "Longs", "bool": "Bools"}
_FUNCTIONS: Final = frozenset(("absolute", "negative", "invert", "maximum", "minimum", "sqrt", "where", "convert"))
_FLOAT_FUNCTIONS: Final = frozenset(("rint", "floor", "ceil", "exp", "log", "tanh", "sigmoid"))
_FLOAT32_ONLY: Final = frozenset(("exp", "log", "tanh", "sigmoid"))

AHEAD: Final = 8
"""Rows between the one that a loop over groups reads and the one that it asks the memory for."""

_PAGES_AHEAD: Final = 2048
"""Elements between those that a loop reads and those that it asks the memory for: two pages of float32."""


@dataclass(frozen=True)
class Input:
    """An array that a loop reads.

    Attributes:
        dtype: Its dtype.
        form: ``whole`` (one element for each of the results), ``row`` (the same row for every row), ``column`` (one
            element for each row) or ``scalar``. In a loop over groups of rows (see `fast_rows.Groups`): ``picked``
            (the row of each group) or ``summed`` (the sum of its members), but not ``whole`` or ``column``.
    """

    dtype: NumpyDType
    form: str = "whole"


@dataclass(frozen=True)
class Assignment:
    """One operation of a loop.

    Attributes:
        target: Name of its result.
        element: An element of the result as an expression of those of the inputs, ``{0}``, ``{1}``, ...
        inputs: Names of the inputs: of arrays, or of earlier results.
        dtype: Dtype of the result.
    """

    target: str
    element: str
    inputs: tuple[str, ...]
    dtype: NumpyDType


def has_own_functions(element: str) -> bool:
    """Whether an expression calls a function whose last bits are not NumPy's."""
    return any(f"{name}(" in element for name in _FLOAT32_ONLY)


def element_loop(
    inputs: Mapping[str, Input], assignments: Sequence[Assignment], stored: Sequence[str], *, past_caches: bool = False
) -> CompiledKernel | None:
    """A kernel that carries out assignments for every element.

    Args:
        inputs: The arrays by name.
        assignments: What to compute, in order.
        stored: Names of the results to write, each to an array of its own.
        past_caches: Write past the caches, where arrays begin at cache lines. That takes less time if no cache has room
            for all arrays: the memory is not read before it is written.

    Returns:
        The kernel; None if it cannot be compiled: there is no compiler, or a dtype or function that it does not know.
        If an input is a row or a column, its items are rows, and its arguments the length of a row, the arrays of
        `inputs`, then those of `stored`. If none is, its items are elements, and the length of a row is left out. An
        array of `stored` may be one of `inputs`.
        In a loop over groups the items are groups. After the length of a row come the arrays ``rows``, ``order`` and
        ``starts`` of `fast_rows.Groups`; the row of each group is written.
    """
    if not can_compile():
        return None
    dtypes = {name: one.dtype for name, one in inputs.items()}
    try:
        return _loop_of_source(_Writer(inputs, assignments, dtypes).source(stored, past_caches))
    except _Unknown:
        return None


@cache
def _loop_of_source(source: str) -> CompiledKernel:
    return kernel_of_source(source, "elements")


class _Unknown(Exception):
    """The compiled loop would need something that is not there."""


class SignsAsCalls(ast.NodeTransformer):
    """Puts the calls ``negative`` and ``invert`` in place of ``-`` and ``~``."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        name = {ast.USub: "negative", ast.Invert: "invert"}[type(node.op)]
        return ast.Call(ast.Name(name), [self.visit(node.operand)], [])


class _Writer(SignsAsCalls):
    """Writes the source of a loop."""

    def __init__(
        self, inputs: Mapping[str, Input], assignments: Sequence[Assignment], dtypes: dict[str, NumpyDType]
    ) -> None:
        self._inputs = inputs
        self._dtypes = dtypes
        self._names = {name: f"x{index}" for index, name in enumerate(inputs)}
        self._constants: dict[str, str] = {}
        self._body: list[str] = []
        for assignment in assignments:
            self._assign(assignment)

    def _assign(self, assignment: Assignment) -> None:
        dtypes = [self._dtypes[name] for name in assignment.inputs]
        floats = [dtype for dtype in (*dtypes, assignment.dtype) if dtype.kind != "b"]
        self._number = floats[0] if floats else np.dtype(bool)
        names = [self._names[name] for name in assignment.inputs]
        tree = ast.parse(assignment.element.format(*names), mode="eval")
        target = f"y{len(self._body)}"
        self._names[assignment.target] = target
        self._dtypes[assignment.target] = assignment.dtype
        expression = ast.unparse(self.visit(tree))
        if "convert" in assignment.element:
            expression = f"convert({names[0]}, {self._constant(0, assignment.dtype)})"
        self._body.append(f"{target} = {expression}")

    def source(self, stored: Sequence[str], past_caches: bool) -> str:
        """The whole source."""
        in_groups = bool(self._of_form("picked") or self._of_form("summed"))
        in_rows = in_groups or bool(self._of_form("row") or self._of_form("column"))
        arrays = [(self._names[name], one.dtype) for name, one in self._inputs.items()]
        results = [(f"out{index}", self._dtypes[name]) for index, name in enumerate(stored)]
        arguments = ["first: Int", "last: Int", *(["width: Int"] if in_rows else [])]
        arguments += ["rows: Longs", "order: Longs", "starts: Longs"] if in_groups else []
        for name, dtype in [*((f"{name}_", dtype) for name, dtype in arrays), *results]:
            arguments.append(f"{name}: {_array_type(dtype)}")
        writes = {result: self._names[name] for (result, _), name in zip(results, stored, strict=True)}
        past = [result for result, dtype in results if past_caches and dtype.kind != "b"]
        lines = [f"def elements({', '.join(arguments)}) -> None:"]
        lines += [f"    {name} = fill({value})" for value, name in self._constants.items()]
        lines += [f"    {self._names[name]} = fill({self._names[name]}_[0])" for name in self._of_form("scalar")]
        indent = "    "
        if in_rows:
            lines.append("    for row in range(first, last):")
            lines += [
                f"        {self._names[name]} = fill({self._names[name]}_[row])" for name in self._of_form("column")
            ]
            lines.append(f"        start = {'rows[row]' if in_groups else 'row'} * width")
            if in_groups:
                lines.append(f"        ahead = rows[row + {AHEAD}] * width")
                lines.append("        begin, end = starts[row], starts[row + 1]")
            indent += "    "
        begin, end = ("0", "width") if in_rows else ("first", "last")
        lines.append(f"{indent}whole = {begin} + ({end} - {begin}) // 16 * 16")
        if past:
            here = "start" if in_rows else "first"
            lines.append(f"{indent}is_past = {' and '.join(f'at_line({result}, {here})' for result in past)}")
            lines.append(f"{indent}if is_past:")
            lines.append(f"{indent}    for j in range({begin}, whole, 16):")
            lines += [f"{indent}        {line}" for line in self._pass(in_rows, writes, past=past)]
        # What has been written past the caches is not written again.
        rest = f"whole if is_past else {begin}" if past else begin
        lines.append(f"{indent}for j in range({rest}, whole, 16):")
        lines += [f"{indent}    {line}" for line in self._pass(in_rows, writes)]
        lines.append(f"{indent}if whole < {end}:")
        lines.append(f"{indent}    j, n = whole, {end} - whole")
        lines += [f"{indent}    {line}" for line in self._pass(in_rows, writes, is_part=True)]
        if past:
            lines.append("    fence()")
        return "\n".join(lines) + "\n"

    def _pass(
        self, in_rows: bool, writes: Mapping[str, str], *, is_part: bool = False, past: Collection[str] = ()
    ) -> list[str]:
        """The lines for 16 elements, or for less.

        Args:
            in_rows: Whether the loop goes over the elements of a row.
            writes: What to write to each array.
            is_part: Whether they are for less than 16.
            past: The arrays that are written past the caches. Then the memory is asked for what will be read: the
                processor itself does so no further than to the end of a page.
        """
        lines = ["i = start + j" if in_rows else "i = j"]
        lines += [f"prefetch({self._names[name]}_, i + {_PAGES_AHEAD})" for name in self._of_form("whole") if past]
        for form, index in (("whole", "i"), ("row", "j")):
            for name in self._of_form(form):
                own = self._names[name]
                lines.append(
                    f"{own} = load_part({own}_, {index}, n, 0)" if is_part else f"{own} = load({own}_, {index})"
                )
        for name in self._of_form("picked"):
            own = self._names[name]
            lines.append(f"prefetch({own}_, ahead + j)")
            lines.append(f"{own} = load_part({own}_, i, n, 0)" if is_part else f"{own} = load({own}_, i)")
        for name in self._of_form("summed"):
            own = self._names[name]
            member = (
                f"load_part({own}_, order[k] * width + j, n, 0)" if is_part else f"load({own}_, order[k] * width + j)"
            )
            lines += ["k = begin", f"{own} = {member}", "for k in range(begin + 1, end):"]
            lines += [f"    prefetch({own}_, order[k + {AHEAD}] * width + j)", f"    {own} = {own} + {member}"]
        lines += self._body
        for result, value in writes.items():
            store = "store_past" if result in past else "store"
            lines.append(f"store_part({result}, i, {value}, n)" if is_part else f"{store}({result}, i, {value})")
        return lines

    def _of_form(self, form: str) -> list[str]:
        return [name for name, one in self._inputs.items() if one.form == form]

    def _constant(self, value: float, dtype: NumpyDType) -> str:
        """The name of a vector of that number."""
        text = repr(float(value)) if math.isfinite(value) else f"np.{value}"
        return self._constants.setdefault(f"np.{_known(dtype)}({text})", f"k{len(self._constants)}")

    # -- expressions -----------------------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        assert isinstance(node.value, int | float)
        return ast.Name(self._constant(node.value, self._number))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        is_float32 = self._number == np.float32
        known = name in _FUNCTIONS or (name in _FLOAT_FUNCTIONS and self._number.kind == "f")
        if not known or (name in _FLOAT32_ONLY and not is_float32):
            raise _Unknown(name)
        if name == "absolute" and self._number.kind != "f":
            raise _Unknown(name)
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])


def _known(dtype: NumpyDType) -> str:
    if dtype.name not in _ARRAYS:
        raise _Unknown(dtype.name)
    return "bool_" if dtype.kind == "b" else dtype.name


def _array_type(dtype: NumpyDType) -> str:
    _known(dtype)
    return _ARRAYS[dtype.name]


# -- formulas of array operations ------------------------------------------------------------------------


UFUNC_ELEMENTS: Final[Mapping[str, str]] = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "reciprocal": "1 / {0}",
    "square": "{0} * {0}",
    "sqrt": "sqrt({0})",
    "absolute": "absolute({0})",
    "maximum": "maximum({0}, {1})",
    "minimum": "minimum({0}, {1})",
    "exp": "exp({0})",
    "log": "log({0})",
    "tanh": "tanh({0})",
    "rint": "rint({0})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "logical_and": "{0} & {1}",
    "logical_or": "{0} | {1}",
    "logical_not": "~{0}",
    "isnan": "{0} != {0}",
    "clip": "minimum(maximum({0}, {1}), {2})",
    "sign": "where({0} > 0, 1, where({0} < 0, -1, {0}))",
}
"""The expressions of ufuncs, by name."""


class _Recorded:
    """An array of a formula while its operations are recorded: what its name stands for changes as it is written."""

    def __init__(self, value: str, dtype: NumpyDType) -> None:
        self.value = value
        self.dtype = dtype


class _Recorder:
    """Stands for the array module in a formula, and records the ufuncs that it calls."""

    def __init__(self) -> None:
        self.assignments: list[Assignment] = []

    def __getattr__(self, name: str) -> Any:
        element = UFUNC_ELEMENTS.get(name)
        if element is None:
            raise _Unknown(name)

        def record(*operands: Any, out: _Recorded) -> _Recorded:
            if not all(isinstance(operand, _Recorded) for operand in operands):
                raise _Unknown(name)
            target = f"value {len(self.assignments)}"
            inputs = tuple(operand.value for operand in operands)
            self.assignments.append(Assignment(target, element, inputs, out.dtype))
            out.value = target
            return out

        return record


@cache
def formula_loop(
    formula: Callable[..., None], dtype: NumpyDType, arrays: int, scalars: int, *, of_groups: bool = False
) -> tuple[CompiledKernel, Sequence[int]] | None:
    """A kernel for a formula of ufuncs that updates arrays in place.

    Args:
        formula: ``formula(xp, (t, u), *arrays, *scalars)``. It calls ufuncs of `xp` with ``out=``; ``t`` and ``u`` are
            working memory. It takes the same course for all values.
        dtype: Dtype of all its arrays.
        arrays: How many arrays it takes.
        scalars: How many scalars.
        of_groups: Make a loop over groups of rows: the first array has their members, which are added up before; the
            others are updated in the rows of the groups.

    Returns:
        The kernel, whose arguments are the arrays, the scalars, and the arrays to write (for groups, after those that
        `element_loop` names); and which these are. None if it cannot be compiled.
    """
    recorder = _Recorder()
    names = [f"array {index}" for index in range(arrays)] + [f"scalar {index}" for index in range(scalars)]
    operands = [_Recorded(name, dtype) for name in names]
    temporaries = _Recorded("unset", dtype), _Recorded("unset", dtype)
    forms = ["summed" if of_groups else "whole"] + ["picked" if of_groups else "whole"] * (arrays - 1)
    forms += ["scalar"] * scalars
    inputs = {name: Input(dtype, form) for name, form in zip(names, forms, strict=True)}
    try:
        formula(recorder, temporaries, *operands)
    except _Unknown:
        return None
    written = [index for index in range(arrays) if operands[index].value != names[index]]
    loop = element_loop(inputs, recorder.assignments, [operands[index].value for index in written])
    return None if loop is None else (loop, written)
