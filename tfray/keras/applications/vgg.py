"""VGG: convolutions of 3 by 3, and three dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tfray.framework.graph import Tensor
from tfray.keras.applications.building import application, files_of_weights
from tfray.keras.layers import Conv2D, Dense, Flatten, MaxPooling2D
from tfray.keras.models import Model

COUNTS: Final = {"vgg16": (2, 2, 3, 3, 3), "vgg19": (2, 2, 4, 4, 4)}
"""Convolutions of each block."""

_FILTERS: Final = (64, 128, 256, 512, 512)


def vgg(name: str, counts: Sequence[int], arguments: dict[str, Any]) -> Model:
    """The network with these numbers of convolutions."""

    def body(x: Tensor) -> Any:
        for block, (count, filters) in enumerate(zip(counts, _FILTERS, strict=True), 1):
            for number in range(1, count + 1):
                conv = Conv2D(filters, 3, activation="relu", padding="same", name=f"block{block}_conv{number}")
                x = conv(x)
            x = MaxPooling2D(2, 2, name=f"block{block}_pool")(x)
        return x

    def top(x: Tensor, classes: int) -> Any:
        x = Flatten(name="flatten")(x)
        for number in (1, 2):
            x = Dense(4096, "relu", name=f"fc{number}")(x)
        return Dense(classes, "softmax", name="predictions")(x)

    return application(name, body, arguments, 224, 32, files_of_weights(name), top=top)
