"""What holds for all of ``tf.keras``: the dtype of floats, a small number, and the order of dimensions of images."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["epsilon", "floatx", "image_data_format", "set_epsilon", "set_floatx", "set_image_data_format"]

_settings: Final[dict[str, Any]] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}


def floatx() -> str:
    """The dtype of inputs and weights."""
    return str(_settings["floatx"])


def set_floatx(value: str) -> None:
    """Set it: ``float16``, ``float32`` or ``float64``. Raises `ValueError` for others."""
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"Unknown floatx type: {value}")
    _settings["floatx"] = value


def epsilon() -> float:
    """The small number that losses add or clip by, to keep logarithms finite."""
    return float(_settings["epsilon"])


def set_epsilon(value: float) -> None:
    """Set it."""
    _settings["epsilon"] = value


def image_data_format() -> str:
    """The order of dimensions of images: ``channels_last`` or ``channels_first``."""
    return str(_settings["image_data_format"])


def normalize_data_format(data_format: str | None) -> str:
    """A layer's order of dimensions: None is `image_data_format`. Raises `ValueError` for others than the two."""
    found = image_data_format() if data_format is None else data_format
    if not isinstance(found, str) or found.lower() not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {data_format}'
        )
    return found.lower()


def set_image_data_format(data_format: str) -> None:
    """Set it. Raises `ValueError` for others."""
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {data_format}")
    _settings["image_data_format"] = data_format
