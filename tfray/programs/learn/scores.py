"""Small helpers around estimators: what ``tf.contrib.learn.python.learn.estimators._sklearn`` has."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["NotFittedError", "accuracy_score", "mean_squared_error", "train_test_split"]


class NotFittedError(ValueError, AttributeError):
    """An estimator is asked for what only training gives."""


def accuracy_score(y_true: Any, y_pred: Any) -> float:
    """The share of predictions that are right."""
    return float(np.average(np.asarray(y_true) == np.asarray(y_pred)))


def mean_squared_error(y_true: Any, y_pred: Any) -> float:
    """The mean of the squared differences, without dimensions of size 1."""
    return float(np.average((np.squeeze(y_true) - np.squeeze(y_pred)) ** 2))


def train_test_split(*args: Any, **options: Any) -> list[Any]:
    """Arrays as parts to train and to test on, in a random order that is the same for all.

    Args:
        *args: Arrays of the same length.
        **options: ``test_size``, the share or number to test on, 0.25 by default; ``random_state``, the seed.

    Returns:
        Two arrays for each one.
    """
    count = len(args[0])
    size = options.get("test_size", 0.25)
    tested = int(size * count) if 0 < size < 1 else int(size)
    order = np.random.RandomState(options.get("random_state")).permutation(count)
    return [part for each in map(np.asarray, args) for part in (each[order[tested:]], each[order[:tested]])]
