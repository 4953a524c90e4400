"""``tf.keras.datasets.boston_housing``: prices of houses, by 13 numbers about their town, from files of one's own."""

from __future__ import annotations

import numpy as np

from tfray.keras.datasets.local_files import ORIGIN, Pair, arrays_of
from tfray.keras.utils import get_file

__all__ = ["load_data"]


def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> tuple[Pair, Pair]:
    """Features ``[count, 13]`` and prices ``[count]``, to train and to test with.

    Args:
        path: As for `mnist`; it has arrays ``x`` and ``y``.
        test_split: Share of the examples to test with.
        seed: Seed of the order.

    Raises:
        NotFoundError: It is not there.
    """
    x, y = arrays_of(get_file(path, ORIGIN + "boston_housing.npz"), ("x", "y"))
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y = x[order], y[order]
    count = int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])
