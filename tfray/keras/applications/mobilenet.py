"""``tf.keras.applications.mobilenet``: convolutions of each channel by itself, and of 1 by 1."""

from __future__ import annotations

from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.keras.applications.building import (
    application,
    channels,
    convolved,
    normalized,
    rectified,
    square_size,
)
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.layers import (
    Activation,
    DepthwiseConv2D,
    Dropout,
    GlobalAveragePooling2D,
    Reshape,
    ZeroPadding2D,
)
from tfray.keras.models import Model
from tfray.keras.settings import image_data_format

__all__ = ["MobileNet", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")

_BLOCKS: Final = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
"""Filters and strides."""

_ALPHAS: Final = {0.25: "2_5", 0.5: "5_0", 0.75: "7_5", 1.0: "1_0"}
"""Widths of which there are weights."""


def MobileNet(
    input_shape: Any = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 1e-3,
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network MobileNet. Further arguments are those of `tf.keras.applications.VGG16`.

    Args:
        input_shape: Shape of an image.
        alpha: What the numbers of filters are multiplied by.
        depth_multiplier: Filters for each channel in the convolutions of channels by themselves.
        dropout: Rate of the dropout before the classifier.
        include_top: Whether the classifier is at the end.
        weights: None, a path, or ``imagenet``.
        input_tensor: A tensor that is the input.
        pooling: ``avg`` or ``max``, without the classifier.
        classes: Number of classes.
        **kwargs: Accepted for Keras's sake.

    Raises:
        ValueError: As for the other networks; or there are no weights of ``imagenet`` for these arguments.
        NotFoundError: The file of ``imagenet`` is not there.
    """
    given = dict(locals())

    def body(x: Tensor) -> Any:
        x = ZeroPadding2D(((0, 1), (0, 1)), name="conv1_pad")(x)
        x = convolved(x, int(32 * alpha), 3, "conv1", strides=2)
        x = rectified(normalized(x, "conv1_bn"), "conv1_relu", 6.0)
        for number, (filters, strides) in enumerate(_BLOCKS, 1):
            if strides > 1:
                x = ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{number}")(x)
            name, padding = f"conv_dw_{number}", "valid" if strides > 1 else "same"
            x = DepthwiseConv2D(3, strides, padding, depth_multiplier, use_bias=False, name=name)(x)
            x = rectified(normalized(x, f"{name}_bn"), f"{name}_relu", 6.0)
            name = f"conv_pw_{number}"
            x = convolved(x, int(filters * alpha), 1, name, padding="same")
            x = rectified(normalized(x, f"{name}_bn"), f"{name}_relu", 6.0)
        return x

    def top(x: Tensor, classes: int) -> Any:
        shape = [channels(x), 1, 1] if image_data_format() == "channels_first" else [1, 1, channels(x)]
        x = Reshape(shape, name="reshape_1")(GlobalAveragePooling2D()(x))
        x = Dropout(dropout, name="dropout")(x)
        x = convolved(x, classes, 1, "conv_preds", padding="same", use_bias=True)
        return Activation("softmax", name="act_softmax")(Reshape((classes,), name="reshape_2")(x))

    size, of_name = square_size(input_shape, include_top, (128, 160, 192, 224))

    def files(include_top: bool) -> str:
        if alpha not in _ALPHAS or depth_multiplier != 1:
            raise InvalidArgumentError(
                f"there are weights of imagenet for depth_multiplier 1, and alpha of {list(_ALPHAS)}, not for "
                f"{depth_multiplier} and {alpha}"
            )
        return f"mobilenet/mobilenet_{_ALPHAS[alpha]}_{size}_tf{'' if include_top else '_no_top'}.h5"

    return application(f"mobilenet_{alpha:0.2f}_{of_name}", body, given, size, 32, files, top=top)
