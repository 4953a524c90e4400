"""How fast values change: ``tf.contrib.rate``."""

from __future__ import annotations

import re
from typing import Final

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import float64
from tfray.framework.graph import Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.scopes import control_dependencies
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variable_scope import variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.broadcast_ops import zeros
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.math.arithmetic_ops import div_no_nan, maximum

__all__ = ["Rate"]

_UNUSUAL: Final = re.compile("[^A-Za-z0-9.]")


class Rate:
    """The change of values since the last call, divided by that of a denominator.

    Args:
        name: Name of the scope of its variables, which are local ones.
    """

    def __init__(self, name: str | None = None) -> None:
        name = name or type(self).__name__
        plain = _UNUSUAL.sub("_", name)
        with variable_scope(plain, use_resource=True, reuse=False) as scope:
            self._name = name + scope.name[scope.name.rfind(plain) + len(plain) :]
            self._scope = scope
        self._built = False

    @property
    def name(self) -> str:
        """Its name, as it was given."""
        return self._name

    def build(self, values: Tensor, denominator: Tensor) -> None:
        """Make the variables ``numer``, ``denom``, ``prev_values`` and ``prev_denominator``, of float64.

        The first call does so.
        """
        shapes = {"numer": values, "denom": denominator, "prev_values": values, "prev_denominator": denominator}
        made = {
            each: Variable(
                zeros(like.get_shape(), float64),
                trainable=False,
                name=each,
                collections=[GraphKeys.LOCAL_VARIABLES],
                use_resource=True,
            )
            for each, like in shapes.items()
        }
        self.numer, self.denom, self.prev_values, self.prev_denominator = made.values()
        self._built = True

    def __call__(self, values: TensorLike, denominator: TensorLike) -> Tensor:
        """Take the next values.

        Args:
            values: Any shape.
            denominator: A shape that broadcasts with it.

        Returns:
            float64: the change of `values` since this ran last, divided by the change of `denominator`; 0 where the
            denominator has not grown. At first both are taken to come from 0.
        """
        values, denominator = convert_to_tensor(values), convert_to_tensor(denominator)
        if not self._built:
            with variable_scope(self._scope):
                self.build(values, denominator)
        values, denominator = cast(values, float64), cast(denominator, float64)
        changes = [
            self.numer.assign(values - self.prev_values.read_value()),
            self.denom.assign(denominator - self.prev_denominator.read_value()),
        ]
        with control_dependencies(changes):
            kept = [self.prev_values.assign(values), self.prev_denominator.assign(denominator)]
        with control_dependencies(kept):
            return div_no_nan(self.numer.read_value(), maximum(self.denom.read_value(), 0), name="safe_rate")
