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


def refuse_in_keras_style(**given: object) -> None:
    """Raise `ValueError` for an argument that is not None."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is {value!r}: a layer in Keras's style has variables of its own, in no scope")


def refuse_eager_layer(kind: type, dynamic: bool) -> None:
    """Raise `ValueError` for a layer that asks to run eagerly."""
    if dynamic:
        raise ValueError(
            f"{kind.__name__}: dynamic=True asks for a layer that runs eagerly, and there are graphs only; make it of "
            "tf.cond, tf.while_loop or tf.py_func, without dynamic"
        )
