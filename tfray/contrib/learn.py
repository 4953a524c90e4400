"""What programs still use of ``tf.contrib.learn``: the modes, and texts as word numbers."""

from __future__ import annotations

from typing import Any, Final

from tfray.library.input import vocabulary as preprocessing

__all__ = ["ModeKeys", "preprocessing"]


class ModeKeys:
    """What a model function builds its graph for."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    INFER: Final = "infer"


def __getattr__(name: str) -> Any:
    raise AttributeError(f"tf.contrib.learn.{name} does not exist in tfray: use tfray.train.Trainer, or tf.keras")
