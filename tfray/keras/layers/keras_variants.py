"""What layers of ``tf.layers`` are as layers of ``tf.keras``."""

from __future__ import annotations

from typing import Any, ClassVar

from tfray.keras.settings import image_data_format
from tfray.library.layers.descriptions import NAMED, named
from tfray.library.layers.named_initializers import GlorotUniform


class InKeras:
    """A mixin for a layer of ``tf.layers``: losses and updates go to no collection, and the first has no number.

    Args:
        *args: Arguments of the layer.
        **kwargs: Likewise; initializers, regularizers and constraints may be names.
    """

    _first_number: ClassVar[int] = 0
    _in_collections: ClassVar[bool] = False
    _takes_images: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "data_format" in kwargs or (self._takes_images and len(args) < 5):
            kwargs["data_format"] = kwargs.get("data_format") or image_data_format()
        elif self._takes_images and args[4] is None:
            args = (*args[:4], image_data_format(), *args[5:])
        for key, value in kwargs.items():
            kind = key.rpartition("_")[2]
            if kind in NAMED:
                kwargs[key] = named(value, kind)
        super().__init__(*args, **kwargs)
        for key, value in vars(self).items():
            if key.endswith("_initializer"):
                setattr(self, key, value() if isinstance(value, type) else value or GlorotUniform())
