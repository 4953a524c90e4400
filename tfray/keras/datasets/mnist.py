"""``tf.keras.datasets.mnist``: handwritten digits, from files of one's own."""

from __future__ import annotations

from tfray.keras.datasets.local_files import ORIGIN, Pair, arrays_of
from tfray.keras.utils import get_file

__all__ = ["load_data"]


def load_data(path: str = "mnist.npz") -> tuple[Pair, Pair]:
    """Images, uint8 ``[count, 28, 28]``, and labels, uint8 ``[count]``, to train and to test with.

    Args:
        path: The file, beneath ``~/.keras/datasets`` unless the path is absolute.

    Raises:
        NotFoundError: It is not there.
    """
    found = arrays_of(get_file(path, ORIGIN + "mnist.npz"), ("x_train", "y_train", "x_test", "y_test"))
    return (found[0], found[1]), (found[2], found[3])
