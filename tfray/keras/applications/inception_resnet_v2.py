"""``tf.keras.applications.inception_resnet_v2``: branches of convolutions, added to what they are made of."""

from __future__ import annotations

from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import (
    application,
    channel_axis,
    channels,
    convolved,
    files_of_weights,
    rectified,
)
from tfray.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tfray.keras.applications.imagenet_utils import preprocessing
from tfray.keras.applications.inception_blocks import Step, chain, mixed, reducing, unit
from tfray.keras.layers import Concatenate, MaxPooling2D
from tfray.keras.layers.operation_layers import ScaledSum
from tfray.keras.models import Model

__all__ = ["InceptionResNetV2", "decode_predictions", "preprocess_input"]

preprocess_input = preprocessing("tf")

_BLOCKS: Final[dict[str, list[list[Step]]]] = {
    "block35": [[(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]],
    "block17": [[(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))]],
    "block8": [[(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]],
}
"""The branches of each kind of block."""

_FILES: Final = files_of_weights("inception_resnet_v2")


def _block(x: Tensor, kind: str, number: int, scale: float, is_last: bool = False) -> Any:
    name = f"{kind}_{number}"
    made = Concatenate(axis=channel_axis(), name=f"{name}_mixed")([chain(x, *branch) for branch in _BLOCKS[kind]])
    made = convolved(made, channels(x), 1, f"{name}_conv", padding="same", use_bias=True)
    x = ScaledSum(scale, name=name)([x, made])
    return x if is_last else rectified(x, f"{name}_ac")


def _body(x: Tensor) -> Any:
    x = unit(unit(unit(x, 32, 3, 2, "valid"), 32, 3, 1, "valid"), 64, 3)
    x = unit(unit(MaxPooling2D(3, 2)(x), 80, 1, 1, "valid"), 192, 3, 1, "valid")
    x = MaxPooling2D(3, 2)(x)
    x = mixed(x, "mixed_5b", [[(96, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]], 64)
    for number in range(1, 11):
        x = _block(x, "block35", number, 0.17)
    x = reducing(x, "mixed_6a", [[(384, 3)], [(256, 1), (256, 3), (384, 3)]])
    for number in range(1, 21):
        x = _block(x, "block17", number, 0.1)
    x = reducing(x, "mixed_7a", [[(256, 1), (384, 3)], [(256, 1), (288, 3)], [(256, 1), (288, 3), (320, 3)]])
    for number in range(1, 10):
        x = _block(x, "block8", number, 0.2)
    return unit(_block(x, "block8", 10, 1.0, is_last=True), 1536, 1, name="conv_7b")


def InceptionResNetV2(
    include_top: bool = True,
    weights: str | None = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    **kwargs: Any,
) -> Model:
    """The network Inception-ResNet, the second; arguments as for `tf.keras.applications.VGG16`."""
    return application("inception_resnet_v2", _body, dict(locals()), 299, 75, _FILES)
