"""``tf.keras.applications.nasnet``: networks of two kinds of cells, which a search has found."""

from __future__ import annotations

from functools import partial
from typing import Any

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import (
    application,
    channel_axis,
    channels,
    convolved,
    halving_pads,
    normalized,
    rectified,
    spatial,
)
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.layers import (
    Add,
    AveragePooling2D,
    Concatenate,
    Cropping2D,
    MaxPooling2D,
    SeparableConv2D,
    ZeroPadding2D,
)
from tfray.keras.models import Model

__all__ = ["NASNetLarge", "NASNetMobile", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")

_normalized = partial(normalized, momentum=0.9997, epsilon=1e-3)
_convolved = partial(convolved, kernel_initializer="he_normal")


def _separated(x: Tensor, filters: int, size: int, name: str, strides: int = 1) -> Any:
    """Two separable convolutions, the first with these strides."""
    for number in (1, 2):
        settings: dict[str, Any] = {"padding": "same"}
        x = rectified(x)
        if number == 1 and strides > 1:
            x = ZeroPadding2D(halving_pads(x, size), name=f"separable_conv_1_pad_{name}")(x)
            settings = {"padding": "valid", "strides": strides}
        layer = SeparableConv2D(filters, size, use_bias=False, name=f"separable_conv_{number}_{name}", **settings)
        x = _normalized(layer(x), f"separable_conv_{number}_bn_{name}")
    return x


def _adjusted(before: Tensor | None, x: Tensor, filters: int, name: str) -> Any:
    """What the cell before has made, with the size and channels that this cell needs."""
    if before is None:
        return x
    if spatial(before.shape.as_list()[1:])[1] != spatial(x.shape.as_list()[1:])[1]:
        before = rectified(before, f"adjust_relu_1_{name}")
        made = []
        for number in (1, 2):  # the second of windows one place further
            moved = before if number == 1 else Cropping2D(((1, 0), (1, 0)))(ZeroPadding2D(((0, 1), (0, 1)))(before))
            pooled = AveragePooling2D(1, 2, name=f"adjust_avg_pool_{number}_{name}")(moved)
            made.append(_convolved(pooled, filters // 2, 1, f"adjust_conv_{number}_{name}", padding="same"))
        return _normalized(Concatenate(axis=channel_axis())(made), f"adjust_bn_{name}")
    if channels(before) != filters:
        before = _convolved(rectified(before), filters, 1, f"adjust_conv_projection_{name}", padding="same")
        return _normalized(before, f"adjust_bn_{name}")
    return before


def _cell_inputs(x: Tensor, before: Tensor | None, filters: int, kind: str, name: str) -> tuple[Any, Any]:
    before = _adjusted(before, x, filters, name)
    h = _convolved(rectified(x), filters, 1, f"{kind}_conv_1_{name}", padding="same")
    return _normalized(h, f"{kind}_bn_1_{name}"), before


def _normal_cell(x: Tensor, before: Tensor | None, filters: int, name: str) -> tuple[Any, Any]:
    h, p = _cell_inputs(x, before, filters, "normal", name)
    one = [_separated(h, filters, 5, f"normal_left1_{name}"), _separated(p, filters, 3, f"normal_right1_{name}")]
    made = [p, Add(name=f"normal_add_1_{name}")(one)]
    two = [_separated(p, filters, 5, f"normal_left2_{name}"), _separated(p, filters, 3, f"normal_right2_{name}")]
    made.append(Add(name=f"normal_add_2_{name}")(two))
    three = AveragePooling2D(3, 1, "same", name=f"normal_left3_{name}")(h)
    made.append(Add(name=f"normal_add_3_{name}")([three, p]))
    four = [AveragePooling2D(3, 1, "same", name=f"normal_{side}4_{name}")(p) for side in ("left", "right")]
    made.append(Add(name=f"normal_add_4_{name}")(four))
    made.append(Add(name=f"normal_add_5_{name}")([_separated(h, filters, 3, f"normal_left5_{name}"), h]))
    return Concatenate(axis=channel_axis(), name=f"normal_concat_{name}")(made), x


def _reduction_cell(x: Tensor, before: Tensor | None, filters: int, name: str) -> tuple[Any, Any]:
    h, p = _cell_inputs(x, before, filters, "reduction", name)
    padded = ZeroPadding2D(halving_pads(h, 3), name=f"reduction_pad_1_{name}")(h)

    def halved(source: Tensor, size: int, of: str) -> Any:
        return _separated(source, filters, size, f"reduction_{of}_{name}", 2)

    one = Add(name=f"reduction_add_1_{name}")([halved(h, 5, "left1"), halved(p, 7, "right1")])
    pooled = MaxPooling2D(3, 2, name=f"reduction_left2_{name}")(padded)
    two = Add(name=f"reduction_add_2_{name}")([pooled, halved(p, 7, "right2")])
    pooled = AveragePooling2D(3, 2, name=f"reduction_left3_{name}")(padded)
    three = Add(name=f"reduction_add3_{name}")([pooled, halved(p, 5, "right3")])
    four = Add()([two, AveragePooling2D(3, 1, "same", name=f"reduction_left4_{name}")(one)])
    last = [_separated(one, filters, 3, f"reduction_left4_{name}")]
    last.append(MaxPooling2D(3, 2, name=f"reduction_right5_{name}")(padded))
    five = Add(name=f"reduction_add4_{name}")(last)
    return Concatenate(axis=channel_axis(), name=f"reduction_concat_{name}")([two, three, four, five]), x


def _network(arguments: dict[str, Any], kind: str, size: int, last: int, count: int, first: int, skips: bool) -> Model:
    """A network whose last cells have `last` channels, with `count` normal cells in each part, `first` filters.

    Where it `skips`, the first normal cell after a reduction takes what came two cells before it.
    """

    def body(x: Tensor) -> Any:
        filters = last // 24
        x = _normalized(_convolved(x, first, 3, "stem_conv1", strides=2), "stem_bn1")
        before = None
        for number, width in enumerate((filters // 4, filters // 2), 1):
            x, before = _reduction_cell(x, before, width, f"stem_{number}")
        for part in range(3):
            if part:
                x, skipped = _reduction_cell(x, before, filters << part, f"reduce_{part * count}")
                before = before if skips else skipped
            for number in range(count):
                x, before = _normal_cell(x, before, filters << part, str(part * (count + 1) + number - (part > 1)))
        return rectified(x)

    def files(include_top: bool) -> str:
        return f"nasnet/nasnet_{kind}{'' if include_top else '_no_top'}.h5"

    return application("NASNet", body, arguments, size, 32, files, average=None)


def NASNetMobile(
    input_shape: Any = None,
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The small network NASNet, for images of 224 by 224; arguments as for `tf.keras.applications.VGG16`."""
    return _network(dict(locals()), "mobile", 224, 1056, 4, 32, skips=False)


def NASNetLarge(
    input_shape: Any = None,
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The large network NASNet, for images of 331 by 331; arguments as for `tf.keras.applications.VGG16`."""
    return _network(dict(locals()), "large", 331, 4032, 6, 96, skips=True)
