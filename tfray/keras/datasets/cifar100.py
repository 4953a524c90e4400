"""``tf.keras.datasets.cifar100``: small pictures of a hundred kinds of things, from files of one's own."""

from __future__ import annotations

import numpy as np

from tfray.keras.datasets.local_files import Pair, cifar

__all__ = ["load_data"]


def load_data(label_mode: str = "fine") -> tuple[Pair, Pair]:
    """Images, uint8 ``[count, 32, 32, 3]``, and labels, int64 ``[count, 1]``, to train and to test with.

    They are of the binary version, in ``~/.keras/datasets/cifar-100-binary``.

    Args:
        label_mode: ``fine`` for a hundred kinds, ``coarse`` for twenty.

    Raises:
        ValueError: There is no such mode.
        NotFoundError: The files are not there.
    """
    if label_mode not in ("fine", "coarse"):
        raise ValueError('`label_mode` must be one of `"fine"`, `"coarse"`.')
    place = "cifar-100-binary", "cifar-100-binary.tar.gz"
    column = slice(1, 2) if label_mode == "fine" else slice(0, 1)
    found = [cifar(*place, [name], 2) for name in ("train.bin", "test.bin")]
    (x, y), (x_test, y_test) = found
    return (x, y[:, column].astype(np.int64)), (x_test, y_test[:, column].astype(np.int64))
