"""``tf.keras.applications.mobilenet_v2``: blocks that widen images, convolve their channels, and narrow them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.keras.applications.building import (
    application,
    channels,
    convolved,
    halving_pads,
    normalized,
    rectified,
    square_size,
)
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.layers import Add, DepthwiseConv2D, ZeroPadding2D
from tfray.keras.models import Model

__all__ = ["MobileNetV2", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")

_PARTS: Final = [(16, 1, 1), (24, 2, 2), (32, 2, 3), (64, 2, 4), (96, 1, 3), (160, 2, 3), (320, 1, 1)]
"""Filters, strides of the first block, number of blocks."""

_ALPHAS: Final = (0.35, 0.5, 0.75, 1.0, 1.3, 1.4)
"""Widths of which there are weights."""

_normalized = partial(normalized, epsilon=1e-3, momentum=0.999)


def _by_eight(filters: float) -> int:
    """The nearest multiple of 8 that is not less by a tenth."""
    nearest = max(8, int(filters + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * filters else nearest + 8


def _block(x: Tensor, number: int, filters: int, strides: int) -> Any:
    name, made = f"block_{number}" if number else "expanded_conv", x
    if number:
        made = convolved(made, 6 * channels(x), 1, f"{name}_expand", padding="same")
        made = rectified(_normalized(made, f"{name}_expand_BN"), f"{name}_expand_relu", 6.0)
    if strides > 1:
        made = ZeroPadding2D(halving_pads(made, 3), name=f"{name}_pad")(made)
    padding = "valid" if strides > 1 else "same"
    made = DepthwiseConv2D(3, strides, padding, use_bias=False, name=f"{name}_depthwise")(made)
    made = rectified(_normalized(made, f"{name}_depthwise_BN"), f"{name}_depthwise_relu", 6.0)
    made = _normalized(convolved(made, filters, 1, f"{name}_project", padding="same"), f"{name}_project_BN")
    return Add(name=f"{name}_add")([x, made]) if channels(x) == filters and strides == 1 else made


def MobileNetV2(
    input_shape: Any = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The second network MobileNet. Arguments are those of `tf.keras.applications.MobileNet`, but for two."""
    given = dict(locals())

    def body(x: Tensor) -> Any:
        x = ZeroPadding2D(halving_pads(x, 3), name="Conv1_pad")(x)
        x = convolved(x, _by_eight(32 * alpha), 3, "Conv1", strides=2)
        x = rectified(_normalized(x, "bn_Conv1"), "Conv1_relu", 6.0)
        number = 0
        for filters, strides, count in _PARTS:
            for place in range(count):
                x = _block(x, number, _by_eight(int(filters * alpha)), strides if place == 0 else 1)
                number += 1
        x = convolved(x, _by_eight(1280 * max(alpha, 1.0)), 1, "Conv_1")
        return rectified(_normalized(x, "Conv_1_bn"), "out_relu", 6.0)

    if input_shape is None and input_tensor is not None:
        input_shape = tuple(input_tensor.shape.as_list()[1:])
    size, of_name = square_size(input_shape, include_top, (96, 128, 160, 192, 224))

    def files(include_top: bool) -> str:
        if alpha not in _ALPHAS:
            raise InvalidArgumentError(f"there are weights of imagenet for alpha of {list(_ALPHAS)}, not for {alpha}")
        end = "" if include_top else "_no_top"
        return f"mobilenet_v2/mobilenet_v2_weights_tf_dim_ordering_tf_kernels_{float(alpha)}_{size}{end}.h5"

    name = f"mobilenetv2_{alpha:0.2f}_{of_name}"
    return application(name, body, given, size, 32, files, dense="Logits", average=None)
