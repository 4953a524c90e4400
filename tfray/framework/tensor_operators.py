"""The Python operators of tensors.

The modules of `ops` register the function behind each operator, because modules of `framework` do not import `ops`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

ResultT = TypeVar("ResultT")

_OPERATORS: Final[dict[str, Callable[..., Any]]] = {}

_NAMED: Final = frozenset(
    ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")  # and their reflections
)
"""Operators after which their operations are named; the others' have the names that their functions give them."""


def register_operator(name: str, function: Callable[..., Any]) -> None:
    """Set the function behind the Python operator `name` (``"add"`` for ``+``, ``"getitem"`` for indexing)."""
    if name in _OPERATORS:
        raise ValueError(f"operator {name!r} is registered already")
    _OPERATORS[name] = function


def operate(name: str, *operands: Any) -> Any:
    """Call the function that is registered for the Python operator `name`, and return its result."""
    try:
        function = _OPERATORS[name]
    except KeyError:
        raise TypeError(f"no operation is registered for the operator {name!r}") from None
    return function(*operands, name=name) if name in _NAMED else function(*operands)


class TensorOperators(Generic[ResultT]):
    """Base class that has the Python operators. Each makes an operation and returns its output, a `ResultT`.

    ``a + b`` is named ``add``, ``a / b`` ``truediv``, as in TensorFlow. There is no ``==``, because tensors are
    compared by identity.
    """

    __slots__ = ()

    # Any number above 0, that of NumPy's arrays, makes NumPy leave ``array + tensor`` to `__radd__`.
    __array_priority__ = 100

    def __add__(self, other: Any) -> ResultT:
        return operate("add", self, other)

    def __radd__(self, other: Any) -> ResultT:
        return operate("add", other, self)

    def __sub__(self, other: Any) -> ResultT:
        return operate("sub", self, other)

    def __rsub__(self, other: Any) -> ResultT:
        return operate("sub", other, self)

    def __mul__(self, other: Any) -> ResultT:
        return operate("mul", self, other)

    def __rmul__(self, other: Any) -> ResultT:
        return operate("mul", other, self)

    def __truediv__(self, other: Any) -> ResultT:
        return operate("truediv", self, other)

    def __rtruediv__(self, other: Any) -> ResultT:
        return operate("truediv", other, self)

    def __floordiv__(self, other: Any) -> ResultT:
        return operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> ResultT:
        return operate("floordiv", other, self)

    def __mod__(self, other: Any) -> ResultT:
        return operate("mod", self, other)

    def __rmod__(self, other: Any) -> ResultT:
        return operate("mod", other, self)

    def __pow__(self, other: Any) -> ResultT:
        return operate("pow", self, other)

    def __rpow__(self, other: Any) -> ResultT:
        return operate("pow", other, self)

    def __matmul__(self, other: Any) -> ResultT:
        return operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> ResultT:
        return operate("matmul", other, self)

    def __lt__(self, other: Any) -> ResultT:
        return operate("lt", self, other)

    def __le__(self, other: Any) -> ResultT:
        return operate("le", self, other)

    def __gt__(self, other: Any) -> ResultT:
        return operate("gt", self, other)

    def __ge__(self, other: Any) -> ResultT:
        return operate("ge", self, other)

    def __and__(self, other: Any) -> ResultT:
        return operate("and", self, other)

    def __rand__(self, other: Any) -> ResultT:
        return operate("and", other, self)

    def __or__(self, other: Any) -> ResultT:
        return operate("or", self, other)

    def __ror__(self, other: Any) -> ResultT:
        return operate("or", other, self)

    def __xor__(self, other: Any) -> ResultT:
        return operate("xor", self, other)

    def __rxor__(self, other: Any) -> ResultT:
        return operate("xor", other, self)

    def __invert__(self) -> ResultT:
        return operate("invert", self)

    def __neg__(self) -> ResultT:
        return operate("neg", self)

    def __abs__(self) -> ResultT:
        return operate("abs", self)

    def __getitem__(self, key: Any) -> ResultT:
        return operate("getitem", self, key)
