"""Maps of single numbers (`Bijector`): powers, exponentials, and those whose inverses are cumulative distributions."""

from __future__ import annotations

import math

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions.bijector import Bijector, nothing_like
from tfray.library.distributions.checks import after
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.checks.check_ops import (
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_none_equal,
    assert_positive,
)
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import abs as absolute
from tfray.ops.math.math_ops import asinh, exp, expm1, log, log1p, sinh, sqrt, square
from tfray.ops.nn.activation_ops import softplus


def softplus_inverse(x: TensorLike, name: str | None = None) -> Tensor:
    """What has the softplus `x`, elementwise: ``log(exp(x) - 1)``, with all digits where `x` is small or large."""
    with get_default_graph().name_scope(name or "softplus_inverse"):
        x = convert_to_tensor(x, name="x")
        limit = math.log(float(np.finfo(x.dtype.as_numpy_dtype).eps)) + 2.0
        small, large = x < math.exp(limit), x > -limit
        between = where_v2(math_ops.logical_or(small, large), array_ops.ones_like(x), x)
        return where_v2(small, log(x), where_v2(large, x, between + log(-expm1(-between))))


class _Elementwise(Bijector):
    """Base of the maps of single numbers, with parameters that are tensors."""

    def __init__(self, validate_args: bool, name: str, *parents: Tensor, is_constant_jacobian: bool = False) -> None:
        super().__init__(list(parents), is_constant_jacobian, validate_args, None, 0, 0, name)

    def _checked(
        self,
        value: Tensor,
        low: float | None = None,
        high: float | None = None,
        open_ended: bool = False,
        what: str = "Inverse transformation input",
    ) -> Tensor:
        """`value`, checked to lie from `low` to `high`, with `validate_args`; between them if `open_ended`."""
        if not self.validate_args:
            return value
        above, below = (assert_greater, assert_less) if open_ended else (assert_greater_equal, assert_less_equal)
        more, less = ("greater than", "less than") if open_ended else ("at least", "less than or equal to")
        checks = []
        for limit, check, words in ((low, above, more), (high, below, less)):
            if limit is not None:
                claim = f"{what} must be {words} {limit:g}."
                checks.append(check(value, convert_to_tensor(limit, value.dtype), message=claim))
        return after(checks, value)


def _parameter(value: TensorLike, name: str, positive: bool) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    message = f"Argument {name} was not positive"
    return after([assert_positive(tensor, message=message)], tensor) if positive else tensor


class AffineScalar(_Elementwise):
    """``x * scale + shift``, elementwise.

    Args:
        shift: What is added; nothing when None.
        scale: The factor, not 0; 1 when None.
        validate_args: Check that no factor is 0.
        name: See `Bijector`.
    """

    def __init__(
        self,
        shift: TensorLike | None = None,
        scale: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "affine_scalar",
    ) -> None:
        self.shift = None if shift is None else convert_to_tensor(shift, name="shift")
        self.scale = None if scale is None else convert_to_tensor(scale, name="scale")
        if self.scale is not None and validate_args:
            self.scale = after([assert_none_equal(self.scale, array_ops.zeros_like(self.scale))], self.scale)
        parents = [parent for parent in (self.shift, self.scale) if parent is not None]
        super().__init__(validate_args, name, *parents, is_constant_jacobian=True)

    def _forward(self, x: Tensor) -> Tensor:
        y = x if self.scale is None else x * self.scale
        return array_ops.identity(y) if self.shift is None else y + self.shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self.shift is None else y - self.shift
        return array_ops.identity(x) if self.scale is None else x / self.scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return nothing_like(x) if self.scale is None else log(absolute(self.scale))


class PowerTransform(_Elementwise):
    """``(1 + x * power) ** (1 / power)``, elementwise, and ``exp(x)`` for the power 0.

    Args:
        power: Not negative.
        validate_args: Check that values are where the map is defined.
        name: See `Bijector`.

    Raises:
        ValueError: `power` is negative.
    """

    def __init__(self, power: float = 0.0, validate_args: bool = False, name: str = "power_transform") -> None:
        if not isinstance(power, (int, float, np.number)) or power < 0:
            raise ValueError(f"`power` must be a non-negative number, not {power!r}.")
        self.power = float(power)
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        if not self.power:
            return exp(x)
        x = self._checked(x, -1.0 / self.power, what="Forward transformation input")
        return exp(log1p(x * self.power) / self.power)

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._checked(y, 0.0, open_ended=True)
        return expm1(log(y) * self.power) / self.power if self.power else log(y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return (self.power - 1.0) * log(self._checked(y, 0.0, open_ended=True))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return (1.0 / self.power - 1.0) * log1p(x * self.power) if self.power else x


class Exp(PowerTransform):
    """``exp(x)``, elementwise.

    Args:
        validate_args: See `PowerTransform`.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "exp") -> None:
        super().__init__(0.0, validate_args, name)


class Sigmoid(_Elementwise):
    """``1 / (1 + exp(-x))``, elementwise.

    Args:
        validate_args: See `Bijector`.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "sigmoid") -> None:
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return math_ops.sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y) - log1p(-y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -log(y) - log1p(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class Softplus(_Elementwise):
    """``hinge_softness * log(1 + exp(x / hinge_softness))``, elementwise.

    Args:
        hinge_softness: How round the hinge is, not 0; 1 when None.
        validate_args: Check that it is not 0.
        name: See `Bijector`.
    """

    def __init__(
        self, hinge_softness: TensorLike | None = None, validate_args: bool = False, name: str = "softplus"
    ) -> None:
        self.hinge_softness = None
        if hinge_softness is not None:
            softness = convert_to_tensor(hinge_softness, name="hinge_softness")
            checks = [assert_none_equal(softness, array_ops.zeros_like(softness))] if validate_args else []
            self.hinge_softness = after(checks, softness)
        super().__init__(validate_args, name, *([] if self.hinge_softness is None else [self.hinge_softness]))

    def _scaled(self, value: Tensor) -> Tensor:
        return value if self.hinge_softness is None else value / array_ops.cast(self.hinge_softness, value.dtype)

    def _unscaled(self, value: Tensor) -> Tensor:
        return value if self.hinge_softness is None else value * array_ops.cast(self.hinge_softness, value.dtype)

    def _forward(self, x: Tensor) -> Tensor:
        return self._unscaled(softplus(self._scaled(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._unscaled(softplus_inverse(self._scaled(y)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -log(-expm1(-self._scaled(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -softplus(-self._scaled(x))


class Softsign(_Elementwise):
    """``x / (1 + abs(x))``, elementwise.

    Args:
        validate_args: Check that images are between -1 and 1.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "softsign") -> None:
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return x / (1.0 + absolute(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._checked(y, -1.0, 1.0, open_ended=True)
        return y / (1.0 - absolute(y))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -2.0 * log1p(-absolute(self._checked(y, -1.0, 1.0, open_ended=True)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -2.0 * log1p(absolute(x))


class Square(_Elementwise):
    """``x ** 2`` of numbers that are not negative, elementwise.

    Args:
        validate_args: Check that they are not.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "square") -> None:
        super().__init__(validate_args, name)

    def _not_negative(self, value: Tensor) -> Tensor:
        return self._checked(value, 0.0, what="All elements")

    def _forward(self, x: Tensor) -> Tensor:
        return square(self._not_negative(x))

    def _inverse(self, y: Tensor) -> Tensor:
        return sqrt(self._not_negative(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return math.log(2.0) + log(self._not_negative(x))


class AbsoluteValue(_Elementwise):
    """``abs(x)``, elementwise. `inverse` gives a tuple ``(-y, y)``, and its determinant a tuple too.

    Args:
        validate_args: Check that images are not negative.
        name: See `Bijector`.
    """

    _is_injective = False

    def __init__(self, validate_args: bool = False, name: str = "absolute_value") -> None:
        super().__init__(validate_args, name, is_constant_jacobian=True)

    def _not_negative(self, value: Tensor) -> Tensor:
        return self._checked(value, 0.0, what="All elements")

    def _forward(self, x: Tensor) -> Tensor:
        return absolute(x)

    def _inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        y = self._not_negative(y)
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        zeros = array_ops.zeros_like(self._not_negative(y)) if self.validate_args else nothing_like(y)
        return zeros, zeros


class Gumbel(_Elementwise):
    """``exp(-exp(-(x - loc) / scale))``, elementwise: its inverse makes uniform numbers Gumbel's.

    Args:
        loc: Where the steps are.
        scale: How wide they are, positive.
        validate_args: Check `scale` and images.
        name: See `Bijector`.
    """

    def __init__(
        self, loc: TensorLike = 0.0, scale: TensorLike = 1.0, validate_args: bool = False, name: str = "gumbel"
    ) -> None:
        self.loc, self.scale = _parameter(loc, "loc", False), _parameter(scale, "scale", validate_args)
        super().__init__(validate_args, name, self.loc, self.scale)

    def _forward(self, x: Tensor) -> Tensor:
        return exp(-exp(-(x - self.loc) / self.scale))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.loc - self.scale * log(-log(self._checked(y, 0.0, 1.0)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        y = self._checked(y, 0.0, 1.0)
        return log(self.scale / (-log(y) * y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        z = (x - self.loc) / self.scale
        return -z - exp(-z) - log(self.scale)


class Weibull(_Elementwise):
    """``1 - exp(-(x / scale) ** concentration)``, elementwise: its inverse makes uniform numbers Weibull's.

    Args:
        scale: Positive.
        concentration: Positive.
        validate_args: Check the parameters and images.
        name: See `Bijector`.
    """

    def __init__(
        self,
        scale: TensorLike = 1.0,
        concentration: TensorLike = 1.0,
        validate_args: bool = False,
        name: str = "weibull",
    ) -> None:
        self.scale = _parameter(scale, "scale", validate_args)
        self.concentration = _parameter(concentration, "concentration", validate_args)
        super().__init__(validate_args, name, self.scale, self.concentration)

    def _forward(self, x: Tensor) -> Tensor:
        x = self._checked(x, 0.0, what="Forward transformation input")
        return -expm1(-((x / self.scale) ** self.concentration))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.scale * (-log1p(-self._checked(y, 0.0, 1.0))) ** (1.0 / self.concentration)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        tail = log1p(-self._checked(y, 0.0, 1.0))
        return -tail + (1.0 / self.concentration - 1.0) * log(-tail) + log(self.scale / self.concentration)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        c, ratio = self.concentration, x / self.scale
        return -(ratio**c) + (c - 1.0) * log(x) + log(c) - c * log(self.scale)


class Kumaraswamy(_Elementwise):
    """``(1 - (1 - x) ** (1 / concentration0)) ** (1 / concentration1)``: makes uniform numbers Kumaraswamy's.

    Args:
        concentration1: Positive.
        concentration0: Positive.
        validate_args: Check the parameters and images.
        name: See `Bijector`.
    """

    def __init__(
        self,
        concentration1: TensorLike = 1.0,
        concentration0: TensorLike = 1.0,
        validate_args: bool = False,
        name: str = "kumaraswamy",
    ) -> None:
        self.concentration1 = _parameter(concentration1, "concentration1", validate_args)
        self.concentration0 = _parameter(concentration0, "concentration0", validate_args)
        super().__init__(validate_args, name, self.concentration1, self.concentration0)

    def _forward(self, x: Tensor) -> Tensor:
        x = self._checked(x, 0.0, 1.0)
        return exp(log1p(-exp(log1p(-x) / self.concentration0)) / self.concentration1)

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._checked(y, 0.0, 1.0)
        return -expm1(self.concentration0 * log1p(-(y**self.concentration1)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        y, a, b = self._checked(y, 0.0, 1.0), self.concentration1, self.concentration0
        return log(a) + log(b) + math_ops.xlogy(a - 1.0, y) + (b - 1.0) * log1p(-(y**a))


class SinhArcsinh(_Elementwise):
    """``sinh((arcsinh(x) + skewness) * tailweight)``, elementwise.

    Args:
        skewness: 0 when None.
        tailweight: Positive; 1 when None.
        validate_args: Check that it is.
        name: See `Bijector`.
    """

    def __init__(
        self,
        skewness: TensorLike | None = None,
        tailweight: TensorLike | None = None,
        validate_args: bool = False,
        name: str = "SinhArcsinh",
    ) -> None:
        weight = convert_to_tensor(1.0 if tailweight is None else tailweight, name="tailweight")
        self.tailweight = _parameter(weight, "tailweight", validate_args)
        self.skewness = convert_to_tensor(0.0 if skewness is None else skewness, weight.dtype, "skewness")
        super().__init__(validate_args, name, self.skewness, self.tailweight)

    def _forward(self, x: Tensor) -> Tensor:
        return sinh((asinh(x) + self.skewness) * self.tailweight)

    def _inverse(self, y: Tensor) -> Tensor:
        return sinh(asinh(y) / self.tailweight - self.skewness)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        angle = asinh(y)
        return _log_cosh(angle / self.tailweight - self.skewness) - _log_cosh(angle) - log(self.tailweight)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        angle = asinh(x)
        return _log_cosh((angle + self.skewness) * self.tailweight) - _log_cosh(angle) + log(self.tailweight)


def _log_cosh(x: Tensor) -> Tensor:
    """``log(cosh(x))``, elementwise, finite for all finite numbers; of ``asinh(x)`` it is ``log(sqrt(x**2 + 1))``."""
    size = absolute(x)
    return size + softplus(-2.0 * size) - math.log(2.0)
