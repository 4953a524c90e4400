"""Densely connected networks: each layer takes what all layers of its block have made."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import (
    application,
    channel_axis,
    channels,
    convolved,
    files_of_weights,
    normalized,
    rectified,
)
from tfray.keras.layers import AveragePooling2D, Concatenate, MaxPooling2D, ZeroPadding2D
from tfray.keras.models import Model

COUNTS: Final = {"121": (6, 12, 24, 16), "169": (6, 12, 32, 32), "201": (6, 12, 48, 32)}
"""Layers of each block."""

_GROWTH: Final = 32
_normalized = partial(normalized, epsilon=1.001e-5)


def _layer(x: Tensor, name: str) -> Any:
    made = rectified(_normalized(x, f"{name}_0_bn"), f"{name}_0_relu")
    made = convolved(made, 4 * _GROWTH, 1, f"{name}_1_conv")
    made = rectified(_normalized(made, f"{name}_1_bn"), f"{name}_1_relu")
    made = convolved(made, _GROWTH, 3, f"{name}_2_conv", padding="same")
    return Concatenate(axis=channel_axis(), name=f"{name}_concat")([x, made])


def dense_blocks(depth: str, arguments: dict[str, Any]) -> Model:
    """The network with this number of layers."""
    name = f"densenet{depth}"

    def body(x: Tensor) -> Any:
        x = convolved(ZeroPadding2D(3)(x), 64, 7, "conv1/conv", strides=2)
        x = ZeroPadding2D(1)(rectified(_normalized(x, "conv1/bn"), "conv1/relu"))
        x = MaxPooling2D(3, 2, name="pool1")(x)
        for block, count in enumerate(COUNTS[depth], 2):
            for number in range(1, count + 1):
                x = _layer(x, f"conv{block}_block{number}")
            if block < 5:
                x = rectified(_normalized(x, f"pool{block}_bn"), f"pool{block}_relu")
                x = convolved(x, channels(x) // 2, 1, f"pool{block}_conv")
                x = AveragePooling2D(2, 2, name=f"pool{block}_pool")(x)
        return rectified(_normalized(x, "bn"), "relu")

    files = files_of_weights(name, "densenet")
    return application(name, body, arguments, 224, 32, files, dense="fc1000", pools=("avg_pool", "max_pool"))
