"""Residual networks of both versions: activations after convolutions, or before them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import application, convolved, files_of_weights, normalized, rectified
from tfray.keras.layers import Add, MaxPooling2D, ZeroPadding2D
from tfray.keras.models import Model

COUNTS: Final = {"50": (3, 4, 6, 3), "101": (3, 4, 23, 3), "152": (3, 8, 36, 3)}
"""Blocks of each of the four parts."""

_normalized = partial(normalized, epsilon=1.001e-5)


def _block(x: Tensor, filters: int, name: str, strides: int, is_first: bool) -> Any:
    shortcut = x
    if is_first:
        shortcut = convolved(x, 4 * filters, 1, f"{name}_0_conv", strides=strides, use_bias=True)
        shortcut = _normalized(shortcut, f"{name}_0_bn")
    for number, (size, width) in enumerate(((1, filters), (3, filters), (1, 4 * filters)), 1):
        settings = {"strides": strides} if number == 1 else {}
        x = convolved(x, width, size, f"{name}_{number}_conv", padding="same", use_bias=True, **settings)
        x = _normalized(x, f"{name}_{number}_bn")
        if number < 3:
            x = rectified(x, f"{name}_{number}_relu")
    return rectified(Add(name=f"{name}_add")([shortcut, x]), f"{name}_out")


def _block_v2(x: Tensor, filters: int, name: str, strides: int, is_first: bool) -> Any:
    before = rectified(_normalized(x, f"{name}_preact_bn"), f"{name}_preact_relu")
    if is_first:
        shortcut = convolved(before, 4 * filters, 1, f"{name}_0_conv", strides=strides, use_bias=True)
    else:
        shortcut = MaxPooling2D(1, strides)(x) if strides > 1 else x
    x = rectified(_normalized(convolved(before, filters, 1, f"{name}_1_conv"), f"{name}_1_bn"), f"{name}_1_relu")
    x = convolved(ZeroPadding2D(1, name=f"{name}_2_pad")(x), filters, 3, f"{name}_2_conv", strides=strides)
    x = rectified(_normalized(x, f"{name}_2_bn"), f"{name}_2_relu")
    x = convolved(x, 4 * filters, 1, f"{name}_3_conv", use_bias=True)
    return Add(name=f"{name}_out")([shortcut, x])


def residual(depth: str, arguments: dict[str, Any], version: int = 1) -> Model:
    """The network with this number of layers."""
    name = f"resnet{depth}" if version == 1 else f"resnet{depth}v2"

    def body(x: Tensor) -> Any:
        x = convolved(ZeroPadding2D(3, name="conv1_pad")(x), 64, 7, "conv1_conv", strides=2, use_bias=True)
        if version == 1:
            x = rectified(_normalized(x, "conv1_bn"), "conv1_relu")
        x = MaxPooling2D(3, 2, name="pool1_pool")(ZeroPadding2D(1, name="pool1_pad")(x))
        for part, count in enumerate(COUNTS[depth]):
            for number in range(1, count + 1):
                block = f"conv{part + 2}_block{number}"
                if version == 1:
                    x = _block(x, 64 << part, block, 2 if part and number == 1 else 1, number == 1)
                else:
                    x = _block_v2(x, 64 << part, block, 2 if part < 3 and number == count else 1, number == 1)
        return x if version == 1 else rectified(_normalized(x, "post_bn"), "post_relu")

    files = files_of_weights(name, "resnet")
    return application(name, body, arguments, 224, 32, files, dense="probs", pools=("avg_pool", "max_pool"))
