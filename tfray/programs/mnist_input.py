"""`tensorflow.examples.tutorials.mnist.input_data`: the handwritten digits of MNIST, from their files.

Nothing is downloaded: the four files of MNIST lie where the program looks for them, or in the folder that the
environment variable `TFRAY_MNIST` names. Files of other data in the same form, such as Fashion-MNIST's, do as well.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from tfray.errors import DataLossError, NotFoundError
from tfray.framework import dtypes
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.random_seed import get_seed

VARIABLE: Final = "TFRAY_MNIST"
SOURCE_URL: Final = "https://storage.googleapis.com/cvdf-datasets/mnist/"
"""Where TensorFlow loads the files from. They are not loaded here."""

DEFAULT_SOURCE_URL: Final = SOURCE_URL
TRAIN_IMAGES: Final = "train-images-idx3-ubyte.gz"
TRAIN_LABELS: Final = "train-labels-idx1-ubyte.gz"
TEST_IMAGES: Final = "t10k-images-idx3-ubyte.gz"
TEST_LABELS: Final = "t10k-labels-idx1-ubyte.gz"
FILES: Final = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

_PIXELS: Final = 784
_FAKE_EXAMPLES: Final = 10000

# fmt: off
__all__ = [
    "DEFAULT_SOURCE_URL", "SOURCE_URL", "DataSet", "Datasets", "dense_to_one_hot", "extract_images", "extract_labels",
    "load_mnist", "read_data_sets",
]
# fmt: on

Array = np.ndarray[Any, Any]


class DataSet:
    """Images and labels, in batches.

    Args:
        images: uint8 ``[count, rows, columns, 1]``.
        labels: Any, ``[count, ...]``.
        fake_data: Have no data: `next_batch` makes images of ones, with the label 0.
        one_hot: Whether fake labels are vectors.
        dtype: ``float32`` scales the images from [0, 255] to [0, 1]; ``uint8`` leaves them.
        reshape: Make each image a vector.
        seed: Seed of the order. The order is drawn from NumPy's global generator, which is seeded with it.

    Raises:
        TypeError: `dtype` is another one.
        ValueError: Images and labels differ in number, or images have several channels and are to be reshaped.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: DTypeLike = dtypes.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        of_graph, of_op = get_seed(seed)
        np.random.seed(of_graph if seed is None else of_op)
        dtype = as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"images have dtype uint8 or float32, not {dtype.name}")
        self._fake = fake_data
        self.one_hot = one_hot
        self._epochs = self._at = 0
        if fake_data:
            self._count = _FAKE_EXAMPLES
            self._images = self._labels = np.zeros([0])
            return
        if images.shape[0] != labels.shape[0]:
            raise ValueError(f"there are {images.shape[0]} images, {list(images.shape)}, and {labels.shape[0]} labels")
        self._count = images.shape[0]
        if reshape:
            if images.shape[3] != 1:
                raise ValueError(
                    f"images of {images.shape[3]} channels do not become vectors: reshape=False leaves them"
                )
            images = images.reshape(self._count, images.shape[1] * images.shape[2])
        if dtype == dtypes.float32:
            images = np.multiply(images.astype(np.float32), np.float32(1.0 / 255.0))
        self._images, self._labels = images, labels

    @property
    def images(self) -> Array:
        """The images, in the order of the present epoch."""
        return self._images

    @property
    def labels(self) -> Array:
        """Their labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many there are."""
        return self._count

    @property
    def epochs_completed(self) -> int:
        """How often all of them have been given."""
        return self._epochs

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next images and labels. A batch that reaches the end of an epoch goes on with the next one.

        Args:
            batch_size: How many.
            fake_data: Make them up, as a `DataSet` without data does.
            shuffle: Begin an epoch with a new order.
        """
        if fake_data or self._fake:
            label: Any = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * _PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]
        if self._epochs == 0 and self._at == 0 and shuffle:
            self._shuffle()
        start = self._at
        if start + batch_size <= self._count:
            self._at = start + batch_size
            return self._images[start : self._at], self._labels[start : self._at]
        self._epochs += 1
        rest = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._at = batch_size - len(rest[0])
        return (
            np.concatenate([rest[0], self._images[: self._at]]),
            np.concatenate([rest[1], self._labels[: self._at]]),
        )

    def _shuffle(self) -> None:
        order = np.arange(self._count)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


class Datasets(NamedTuple):
    """The images and labels to train with, to choose with, and to test with."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: DTypeLike = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """Read MNIST.

    Args:
        train_dir: The folder with its four files, compressed or not.
        fake_data: Read nothing; see `DataSet`.
        one_hot: Labels are vectors of 10, not numbers.
        dtype: Of the images, ``float32`` or ``uint8``.
        reshape: Images are vectors of 784, not ``[28, 28, 1]``.
        validation_size: How many of the training examples, the first ones, are for validation.
        seed: Seed of the order.
        source_url: Accepted, without effect: nothing is downloaded.

    Raises:
        NotFoundError: A file is not there.
        DataLossError: A file is not what its name says.
        ValueError: There are fewer training examples than `validation_size`.
    """
    if fake_data:
        train, validation, test = (
            DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed) for _ in range(3)
        )
        return Datasets(train, validation, test)
    paths = _find(train_dir)
    images, labels, test_images, test_labels = (
        _read(path, one_hot if "labels" in name else None) for name, path in zip(FILES, paths, strict=True)
    )
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"validation_size is {validation_size}, and there are {len(images)} images to train with")
    options: dict[str, Any] = {"dtype": dtype, "reshape": reshape, "seed": seed}
    train = DataSet(images[validation_size:], labels[validation_size:], **options)
    validation = DataSet(images[:validation_size], labels[:validation_size], **options)
    return Datasets(train, validation, DataSet(test_images, test_labels, **options))


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """Read MNIST with its defaults."""
    return read_data_sets(train_dir)


def _find(folder: str) -> list[Path]:
    """The four files, of the program's own folder or of the one that the environment names."""
    folders = [Path(folder), *(Path(each) for each in [os.environ.get(VARIABLE, "")] if each)]
    for place in folders:
        found = [path for name in FILES for path in (place / name, place / name.removesuffix(".gz")) if path.is_file()]
        if len({path.name.removesuffix(".gz") for path in found}) == len(FILES):
            return [_first(place, name) for name in FILES]
    missing = [name for name in FILES if not _there(folders[0], name)]
    raise NotFoundError(
        f"the files of MNIST are not in {folder}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. "
        f"tfray downloads nothing. Put {', '.join(FILES)} (or the same without .gz) into {Path(folder).resolve()}, "
        f"or let the environment variable {VARIABLE} name the folder where they lie"
    )


def _there(folder: Path, name: str) -> bool:
    return (folder / name).is_file() or (folder / name.removesuffix(".gz")).is_file()


def _first(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).is_file() else folder / name.removesuffix(".gz")


def _read(path: Path, one_hot: bool | None) -> Array:
    with path.open("rb") as file:
        if path.suffix != ".gz":
            return _items(file, 1 if one_hot is not None else 3, bool(one_hot))
        return extract_images(file) if one_hot is None else extract_labels(file, one_hot)


# -- files in IDX form ---------------------------------------------------------------------------------------


def extract_images(f: BinaryIO) -> Array:
    """The images of an open, compressed file: uint8 ``[count, rows, columns, 1]``.

    Raises:
        DataLossError: It is no such file.
    """
    return _items(_decompressed(f), 3, False)


def extract_labels(f: BinaryIO, one_hot: bool = False, num_classes: int = 10) -> Array:
    """The labels of an open, compressed file: uint8 ``[count]``, or with `one_hot` float64 ``[count, num_classes]``.

    Raises:
        DataLossError: It is no such file.
    """
    return _items(_decompressed(f), 1, one_hot, num_classes)


def _decompressed(file: BinaryIO) -> Any:
    return gzip.GzipFile(fileobj=file)


def _items(file: Any, rank: int, one_hot: bool, classes: int = 10) -> Array:
    """What a file in IDX form holds: its magic number says uint8 and the rank; sizes follow."""
    name = getattr(file, "name", "the file")
    try:
        header, *sizes = (int.from_bytes(file.read(4), "big") for _ in range(rank + 1))
        data = file.read()
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataLossError(f"{name} is cut off, or not compressed: {error}") from error
    if header != 0x0800 + rank:
        raise DataLossError(f"{name} begins with {header:#x}, expected {0x800 + rank:#x}: no IDX file of rank {rank}")
    count = int(np.prod(sizes, dtype=np.int64))
    if len(data) < count:
        raise DataLossError(f"{name} has {len(data)} bytes of data, and says that it has {count}")
    items = np.frombuffer(data, np.uint8, count).reshape(sizes)
    if rank == 3:
        return items[..., np.newaxis]
    return dense_to_one_hot(items, classes) if one_hot else items


def dense_to_one_hot(labels_dense: Sequence[int] | Array, num_classes: int) -> Array:
    """Labels as vectors: float64 ``[count, num_classes]``."""
    labels = np.asarray(labels_dense)
    vectors = np.zeros([labels.shape[0], num_classes])
    vectors[np.arange(labels.shape[0]), labels.ravel()] = 1
    return vectors
