"""``tf.keras.datasets.cifar10``: small pictures of ten kinds of things, from files of one's own."""

from __future__ import annotations

from tfray.keras.datasets.local_files import Pair, cifar

__all__ = ["load_data"]


def load_data() -> tuple[Pair, Pair]:
    """Images, uint8 ``[count, 32, 32, 3]``, and labels, uint8 ``[count, 1]``, to train and to test with.

    They are of the binary version, in ``~/.keras/datasets/cifar-10-batches-bin``.

    Raises:
        NotFoundError: It is not there.
    """
    place = "cifar-10-batches-bin", "cifar-10-binary.tar.gz"
    train = cifar(*place, [f"data_batch_{number}.bin" for number in range(1, 6)], 1)
    return train, cifar(*place, ["test_batch.bin"], 1)
