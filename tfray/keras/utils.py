"""``tf.keras.utils``: classes as one-hot vectors, and normalised arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["normalize", "to_categorical"]


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """Classes as vectors with a single 1.

    Args:
        y: Integers, the classes; a last dimension of 1 is dropped.
        num_classes: Number of classes; one more than the largest when None.
        dtype: Dtype of the result.

    Returns:
        Shape ``[..., num_classes]``.
    """
    classes = np.asarray(y, np.int64)
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    count = int(classes.max()) + 1 if num_classes is None else num_classes
    return np.eye(count, dtype=dtype)[classes]


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """An array divided by its norms along an axis; zeros stay."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return np.asarray(x / np.expand_dims(norms, axis))
