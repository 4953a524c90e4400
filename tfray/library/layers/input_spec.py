"""What a layer expects: of its inputs, and of arrays that its weights are to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.library.variables.variables import Variable


class InputSpec:
    """What a layer expects of one input: a layer whose ``input_spec`` is set checks each call against it.

    Args:
        dtype: Its dtype; any when None.
        shape: Its static shape, None for sizes that do not matter.
        ndim: Its rank.
        max_ndim: Its greatest rank.
        min_ndim: Its least rank.
        axes: Dictionary from dimensions to their sizes.

    Raises:
        TypeError: A dimension is no integer.
        ValueError: There is no such dimension in a tensor of the rank.
    """

    def __init__(
        self,
        dtype: DTypeLike | None = None,
        shape: ShapeLike = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[Any, int | None] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = shape
        self.ndim = ndim if shape is None else TensorShape(shape).rank
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        try:
            self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        except (TypeError, ValueError):
            raise TypeError(f"InputSpec: The keys in axes must be integers, not {list(axes or ())}") from None
        ranks = [rank for rank in (self.ndim, max_ndim) if rank is not None]
        if self.axes and ranks and max(self.axes) >= ranks[0]:
            raise ValueError(
                f"InputSpec: Axis {max(self.axes)} is greater than the maximum allowed value: {ranks[0] - 1}"
            )

    def __repr__(self) -> str:
        return f"InputSpec({self._told()})"

    def _told(self) -> str:
        given = {name: value for name, value in vars(self).items() if value not in (None, {})}
        return ", ".join(f"{name}={value}" for name, value in given.items())

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """What `get_config` describes."""
        return cls(**config)

    def check(self, tensor: Tensor, layer: str) -> None:
        """Raise `InvalidArgumentError` if an input of the layer named `layer` is not as expected."""
        rank = tensor.shape.rank
        needs_rank = self.ndim is not None or self.max_ndim is not None or self.min_ndim is not None
        if (needs_rank or self.axes) and rank is None:
            raise InvalidArgumentError(f"Layer {layer} requires a defined rank of {tensor!r}; expected is {self!r}")
        sizes: Sequence[Any] = () if rank is None else tensor.shape.sizes
        fits = (
            (self.ndim is None or rank == self.ndim)
            and (self.max_ndim is None or len(sizes) <= self.max_ndim)
            and (self.min_ndim is None or len(sizes) >= self.min_ndim)
            and (self.dtype is None or tensor.dtype.name == self.dtype)
        )
        if not fits:
            told = self._told()
            raise InvalidArgumentError(
                f"Input 0 of layer {layer} is incompatible with the layer: expected {told}, found {tensor!r}"
            )
        for axis, size in self.axes.items():
            if size is not None and not (-len(sizes) <= axis < len(sizes) and sizes[axis] in (size, None)):
                raise InvalidArgumentError(
                    f"Input 0 of layer {layer} is incompatible with the layer: expected axis {axis} of input shape to "
                    f"have value {size} but received input with shape {list(sizes)}: {tensor!r}"
                )
        if self.shape is not None and not tensor.shape.is_compatible_with(self.shape):
            raise InvalidArgumentError(
                f"Input 0 is incompatible with layer {layer}: expected shape={TensorShape(self.shape).as_list()}, "
                f"found shape={list(sizes)}: {tensor!r}"
            )


def check_inputs(specs: Any, inputs: Sequence[Tensor], layer: str) -> None:
    """Check the inputs of a layer against its ``input_spec``: None, one for its only input, or a list of them.

    Raises:
        InvalidArgumentError: An input is not as expected, or there are more or fewer of them.
    """
    if specs is None:
        return
    wanted = list(specs) if isinstance(specs, (list, tuple)) else [specs]
    if len(inputs) != len(wanted):
        raise InvalidArgumentError(f"{layer}: {len(inputs)} inputs, expected {len(wanted)}")
    for spec, tensor in zip(wanted, inputs, strict=True):
        if spec is not None:
            spec.check(tensor, layer)


def fitting_weights(variables: Sequence[Variable], values: Sequence[Any], layer: str) -> list[tuple[Variable, Any]]:
    """Variables of a layer, each with the array that it is to be.

    Raises:
        ValueError: There are more or fewer arrays, or one has another shape.
    """
    if len(variables) != len(values):
        raise ValueError(
            f'You called `set_weights(weights)` on layer "{layer}" with a  weight list of length {len(values)}, but '
            f"the layer was expecting {len(variables)} weights. Provided weights: {str(values)[:50]}..."
        )
    for variable, value in zip(variables, values, strict=True):
        if not variable.shape.is_compatible_with(np.shape(value)):
            raise ValueError(
                f"Layer weight shape {variable.shape} not compatible with provided weight shape {np.shape(value)}: "
                f"{variable.name} of {layer!r}"
            )
    return list(zip(variables, values, strict=True))


def to_tensor_shape(spec: InputSpec) -> TensorShape:
    """The static shape that an `InputSpec` describes; without a shape or a rank it is unknown."""
    if spec.shape is not None or spec.ndim is None:
        return TensorShape(spec.shape)
    sizes: list[int | None] = [None] * spec.ndim
    for axis, size in spec.axes.items():
        sizes[axis] = size
    return TensorShape(sizes)
