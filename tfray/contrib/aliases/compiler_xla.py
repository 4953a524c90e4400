"""``tf.contrib.compiler.xla``: functions that TensorFlow compiles as a whole."""

from __future__ import annotations

from typing import Any

from tfray.library.functions.xla_experimental import compile as compile

__all__ = ["compile", "estimator_model_fn"]


def estimator_model_fn(target_model_fn: Any = None) -> Any:
    """A model function that TensorFlow compiles; here the function itself, which sessions compile.

    Args:
        target_model_fn: The function; None to use this as a decorator with parentheses.

    Returns:
        The function, or the decorator.
    """
    return target_model_fn or (lambda function: function)
