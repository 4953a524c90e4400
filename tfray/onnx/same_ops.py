"""The operators that are the same on both sides but for names: one table for export and for loading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Same:
    """How a type of tfray's is an operator of ONNX.

    Attributes:
        theirs: The operator there.
        attrs: Name of an attribute here to the name there.
        fixed: Attributes there that have no counterpart here, with the value that the type here implies.
        elementwise: Whether an element of the result depends on the same element of each input alone.
    """

    theirs: str
    attrs: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    elementwise: bool = True


_SAME_NAMES: Final = (
    "Abs Acos Acosh Add Asin Asinh Atan Atanh BitwiseAnd BitwiseOr BitwiseXor Ceil Cos Cosh Equal Erf Exp Floor "
    "Greater Identity Less Log Mul Neg Pow Reciprocal Relu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Tan Tanh"
)

SAME: Final[dict[str, Same]] = {
    **{name: Same(name) for name in _SAME_NAMES.split()},
    "Einsum": Same("Einsum", {"equation": "equation"}, elementwise=False),
    "Elu": Same("Elu", fixed={"alpha": 1.0}),
    "GreaterEqual": Same("GreaterOrEqual"),
    "Invert": Same("BitwiseNot"),
    "IsInf": Same("IsInf", fixed={"detect_negative": 1, "detect_positive": 1}),
    "IsNan": Same("IsNaN"),
    "LeakyRelu": Same("LeakyRelu", {"alpha": "alpha"}),
    "LessEqual": Same("LessOrEqual"),
    "LogicalAnd": Same("And"),
    "LogicalNot": Same("Not"),
    "LogicalOr": Same("Or"),
    "MatrixDeterminant": Same("Det", elementwise=False),
    "Rint": Same("Round"),
    "Selu": Same("Selu", fixed={"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}),
}
"""By the type here."""

BY_OPERATOR: Final = {same.theirs: (ours, same) for ours, same in SAME.items()}
"""The type here and the entry, by the operator there."""
