"""``tf.layers.experimental``: layers whose variables belong to them alone, as in Keras, and not to variable scopes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["keras_style_scope", "set_keras_style"]

_is_keras_style = False


@contextmanager
def keras_style_scope() -> Iterator[None]:
    """Context manager: layers and cells that are made within it have their variables as in Keras.

    Each such object has its own variables, named after it, and shares them with no other: variable scopes, their
    settings and `reuse` do not count.
    """
    global _is_keras_style
    before = _is_keras_style
    _is_keras_style = True
    try:
        yield
    finally:
        _is_keras_style = before


def set_keras_style() -> None:
    """Let all layers and cells that are made from now on have their variables as in `keras_style_scope`."""
    global _is_keras_style
    _is_keras_style = True


def is_keras_style() -> bool:
    """Whether layers that are made now are to have their variables as in Keras."""
    return _is_keras_style
