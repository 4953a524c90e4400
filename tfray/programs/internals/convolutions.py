"""``nn_ops.Convolution``, which programs' own layers keep."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Padding, Sizes, TensorLike
from tfray.ops.nn.any_rank_conv_ops import convolution


class Convolution:
    """`tf.nn.convolution` with all its arguments but the images and the filter, which a call gives.

    Args:
        input_shape: Static shape of the images.
        filter_shape: Static shape of the filter.
        padding: As for `tf.nn.convolution`, as all that follows.
        strides: Steps of the window.
        dilation_rate: Distances between the filter's elements.
        name: Name scope.
        data_format: Where the channels are.

    Raises:
        ValueError: Both shapes are known and differ in rank or in the number of channels.
    """

    def __init__(
        self,
        input_shape: Any,
        filter_shape: Any,
        padding: Padding,
        strides: Sizes | None = None,
        dilation_rate: Sizes | None = None,
        name: str | None = None,
        data_format: str | None = None,
    ) -> None:
        self.input_shape, self.filter_shape = TensorShape(input_shape), TensorShape(filter_shape)
        if self.input_shape.rank is not None and self.filter_shape.rank is not None:
            self.input_shape.assert_same_rank(self.filter_shape)
            found = self.input_shape[1 if str(data_format).startswith("NC") else -1]
            expected = self.filter_shape[-2]
            if not TensorShape([found]).is_compatible_with([expected]):
                raise ValueError(
                    f"number of input channels does not match corresponding dimension of filter, {found} != {expected}"
                )
        self.padding, self.strides, self.dilation_rate = padding, strides, dilation_rate
        self.name, self.data_format = name, data_format

    def __call__(self, inp: TensorLike, filter: TensorLike) -> Tensor:
        """The convolution of images with a filter, both of the shapes that were given."""
        given = self.padding, self.strides, self.dilation_rate, self.name, self.data_format
        return convolution(inp, filter, *given)
