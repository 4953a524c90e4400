"""Reversible residual layers, whose inputs the backward pass computes again from their outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.gradients import custom_gradient, gradients
from tfray.library.layers.base_layer import Layer
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.ops.arrays.shape_ops import identity, stop_gradient
from tfray.ops.math.arithmetic_ops import add_n

Function = Callable[..., Tensor]


class RevBlock(Layer):
    """Layers ``y1 = x1 + f(x2)``, ``y2 = x2 + g(y1)``, one after the other.

    Args:
        f: A function of a tensor, of the same shape; with side inputs ``f(x, [side, ...])``. Or a list of one for each
            layer. It may make variables; it must take no other tensors.
        g: Likewise.
        num_layers: Number of layers, each with variables of its own.
        f_side_input: Further inputs of `f`.
        g_side_input: Further inputs of `g`.
        use_efficient_backprop: Let the backward pass compute the inputs of the layers from their outputs, so that none
            need be kept.
        name: Name of the block.
        **kwargs: As of `tf.layers.Layer`.

    Raises:
        InvalidArgumentError: There are not as many functions as layers.
    """

    def __init__(
        self,
        f: Function | Sequence[Function],
        g: Function | Sequence[Function],
        num_layers: int = 1,
        f_side_input: Sequence[Tensor] | None = None,
        g_side_input: Sequence[Tensor] | None = None,
        use_efficient_backprop: bool = True,
        name: str = "revblock",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.num_layers = num_layers
        self._functions = [self._of_layers(each, letter) for each, letter in ((f, "f"), (g, "g"))]
        self._sides = [list(f_side_input or []), list(g_side_input or [])]
        self._use_efficient_backprop = use_efficient_backprop

    def _of_layers(self, function: Function | Sequence[Function], letter: str) -> list[Function]:
        functions = [function] * self.num_layers if callable(function) else list(function)
        if len(functions) != self.num_layers:
            raise InvalidArgumentError(f"there are {self.num_layers} layers, and {len(functions)} functions {letter}")
        return [_in_scope(each, f"revlayer_{number}/{letter}") for number, each in enumerate(functions)]

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs of the last layer, of the shapes of the inputs."""
        y1, y2 = self([x1, x2])
        return y1, y2

    def backward(self, y1: Tensor, y2: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs for which the last layer has these outputs."""
        x1, x2 = self([y1, y2], forward=False)
        return x1, x2

    def call(self, inputs: Sequence[Tensor], forward: bool = True) -> list[Tensor]:  # type: ignore[override]
        """See `forward` and `backward`."""
        first, second = inputs
        before = len(get_variable_scope().global_variables())
        if not forward:
            found = self._undone(first, second, *self._sides)
        elif self._use_efficient_backprop:
            found = self._with_gradient(first, second)
        else:
            found = self._done(first, second, *self._sides)
        made, trained = get_variable_scope().global_variables()[before:], get_variable_scope().trainable_variables()
        self._trainable_weights.extend(each for each in made if each in trained)
        self._non_trainable_weights.extend(each for each in made if each not in trained)
        return found

    def _done(self, x1: Tensor, x2: Tensor, of_f: Sequence[Tensor], of_g: Sequence[Tensor]) -> list[Tensor]:
        for f, g in zip(*self._functions, strict=True):
            x1 = x1 + f(x2, of_f)
            x2 = x2 + g(x1, of_g)
        return [identity(x1), identity(x2)]

    def _undone(self, y1: Tensor, y2: Tensor, of_f: Sequence[Tensor], of_g: Sequence[Tensor]) -> list[Tensor]:
        for f, g in reversed(list(zip(*self._functions, strict=True))):
            y2 = y2 - g(y1, of_g)
            y1 = y1 - f(y2, of_f)
        return [identity(y1), identity(y2)]

    def _with_gradient(self, x1: Tensor, x2: Tensor) -> list[Tensor]:
        count = len(self._sides[0])
        scope = get_variable_scope()

        @custom_gradient
        def block(first: Tensor, second: Tensor, *sides: Tensor) -> tuple[list[Tensor], Callable[..., Any]]:
            of_f, of_g = list(sides[:count]), list(sides[count:])
            outputs = self._done(first, second, of_f, of_g)

            def gradient(*d_outputs: Tensor, variables: Sequence[Any] = ()) -> Any:
                with variable_scope(scope, reuse=True):
                    found = self._gradients(outputs, d_outputs, of_f, of_g, variables)
                return (found[: 2 + len(sides)], found[2 + len(sides) :]) if variables else found

            return outputs, gradient

        found: list[Tensor] = block(x1, x2, *self._sides[0], *self._sides[1])
        return found

    def _gradients(
        self,
        outputs: Sequence[Tensor],
        d_outputs: Sequence[Tensor],
        of_f: Sequence[Tensor],
        of_g: Sequence[Tensor],
        variables: Sequence[Any],
    ) -> list[Tensor | None]:
        """Those of the inputs, the side inputs, and the variables, from the last layer to the first."""
        (y1, y2), (d_y1, d_y2) = outputs, d_outputs
        sources = [*of_f, *of_g, *variables]
        parts: list[list[Tensor]] = [[] for _ in sources]

        def undone(function: Function, x: Tensor, sides: Sequence[Tensor], d_y: Tensor) -> tuple[Tensor, Tensor]:
            """The value of a function, and the gradient that flows through it into `x`."""
            x = stop_gradient(x)  # what flows into `x` is carried on by hand
            value = function(x, sides)
            d_x, *others = gradients(value, [x, *sources], grad_ys=d_y)
            for part, other in zip(parts, others, strict=True):
                part += [] if other is None else [identity(other)]
            return value, d_x

        for f, g in reversed(list(zip(*self._functions, strict=True))):
            value, d_through = undone(g, y1, of_g, d_y2)
            y2, d_y1 = y2 - value, d_y1 if d_through is None else d_y1 + d_through
            value, d_through = undone(f, y2, of_f, d_y1)
            y1, d_y2 = y1 - value, d_y2 if d_through is None else d_y2 + d_through
        return [d_y1, d_y2, *(add_n(part) if part else None for part in parts)]


def _in_scope(function: Function, scope: str) -> Function:
    def scoped(x: Tensor, sides: Sequence[Tensor]) -> Tensor:
        with variable_scope(scope, use_resource=True):
            return function(x, list(sides)) if sides else function(x)

    return scoped


def rev_block(
    x1: Tensor,
    x2: Tensor,
    f: Function | Sequence[Function],
    g: Function | Sequence[Function],
    num_layers: int = 1,
    f_side_input: Sequence[Tensor] | None = None,
    g_side_input: Sequence[Tensor] | None = None,
    is_training: bool = True,
) -> tuple[Tensor, Tensor]:
    """Apply reversible residual layers; see `RevBlock` for the arguments.

    Args:
        x1: Any shape, a float dtype.
        x2: Likewise.
        f: See `RevBlock`.
        g: See `RevBlock`.
        num_layers: See `RevBlock`.
        f_side_input: Further inputs of `f`, of any shapes.
        g_side_input: Further inputs of `g`, of any shapes.
        is_training: Whether the backward pass computes inputs again.

    Returns:
        Two tensors of the shapes of `x1` and `x2`.
    """
    reuse = get_variable_scope().reuse
    block = RevBlock(f, g, num_layers, f_side_input, g_side_input, is_training, _reuse=reuse)
    return block.forward(x1, x2)
