"""``tf.keras.preprocessing.sequence``: lists of different lengths as arrays, and pairs of words."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.keras.batch_sources import Sequence as Batches

__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]


class TimeseriesGenerator(Batches):
    """Batches of stretches of a series, and what comes after each.

    Args:
        data: The series, ``[time, ...]``.
        targets: The targets, as many.
        length: Length of a stretch.
        sampling_rate: Distance of the steps within a stretch.
        stride: Distance of one stretch from the next.
        start_index: The first step that may be a target is `length` behind this one.
        end_index: The last one that may be.
        shuffle: Take stretches at random.
        reverse: Turn stretches around.
        batch_size: Stretches in a batch.

    Raises:
        ValueError: Data and targets differ in length, or no stretch fits.
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError(
                f"Data and targets have to be of same length. Data length is {len(data)} while target length is "
                + str(len(targets))
            )
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride, self.batch_size = sampling_rate, stride, batch_size
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse = shuffle, reverse
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is disallowed, as no part of "
                "the sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        return (self.end_index - self.start_index + self.batch_size * self.stride) // (self.batch_size * self.stride)

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            rows = np.arange(first, min(first + self.batch_size * self.stride, self.end_index + 1), self.stride)
        samples = np.array([self.data[row - self.length : row : self.sampling_rate] for row in rows])
        targets = np.array([self.targets[row] for row in rows])
        return (samples[:, ::-1, ...] if self.reverse else samples), targets

    def get_config(self) -> dict[str, Any]:
        """The arguments, with data and targets as JSON; `start_index` is the first step that is a target.

        Raises:
            TypeError: Data or targets cannot be JSON.
        """
        data, targets = (each.tolist() if isinstance(each, np.ndarray) else each for each in (self.data, self.targets))
        names = "length", "sampling_rate", "stride", "start_index", "end_index", "shuffle", "reverse", "batch_size"
        own = {name: getattr(self, name) for name in names}
        return {"data": json.dumps(data), "targets": json.dumps(targets), **own}

    def to_json(self, **kwargs: Any) -> str:
        """`get_config` and the name of the class as JSON; arguments are those of `json.dumps`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def pad_sequences(
    sequences: Sequence[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray[Any, Any]:
    """Lists as the rows of an array.

    Args:
        sequences: Lists of numbers, or of arrays of one shape.
        maxlen: Length of the rows; that of the longest list when None.
        dtype: Dtype of the array.
        padding: Where shorter lists are filled up, ``pre`` or ``post``.
        truncating: Where longer lists are cut, ``pre`` or ``post``.
        value: What they are filled up with.

    Returns:
        Shape ``[lists, maxlen, ...]``.

    Raises:
        ValueError: Something is no list, the elements have several shapes, or there is no such way to fill up or cut.
    """
    if not hasattr(sequences, "__len__") or not all(hasattr(each, "__len__") for each in sequences):
        raise InvalidArgumentError(f"pad_sequences: `sequences` must be a list of lists, not {sequences!r}")
    for what, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise InvalidArgumentError(f"pad_sequences: {what} is {given!r}, expected 'pre' or 'post'")
    longest = max((len(each) for each in sequences), default=0) if maxlen is None else maxlen
    first: Any = next((each for each in sequences if len(each)), [])
    shape = np.asarray(first).shape[1:]
    kind = object if isinstance(value, str) and not np.issubdtype(np.dtype(dtype), np.str_) else dtype
    rows = np.full((len(sequences), longest, *shape), value, kind)
    for row, each in zip(rows, sequences, strict=True):
        if not len(each):
            continue
        kept = np.asarray(each[-longest:] if truncating == "pre" else each[:longest], kind)
        if kept.shape[1:] != shape:
            raise InvalidArgumentError(f"pad_sequences: elements have shapes {shape} and {kept.shape[1:]}")
        if padding == "pre":
            row[longest - len(kept) :] = kept
        else:
            row[: len(kept)] = kept
    return rows


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray[Any, Any]:
    """Probabilities with which words are kept, the most frequent one first, as word2vec has them.

    Args:
        size: Number of words. Their frequencies are taken to follow Zipf's law.
        sampling_factor: Frequency above which words are left out at times.
    """
    gamma = 0.577
    ranks = np.arange(size)
    ranks[0] = 1
    inverse = ranks * (np.log(ranks) + gamma) + 0.5 - 1.0 / (12.0 * ranks)
    frequency = sampling_factor * inverse
    return np.minimum(1.0, frequency / np.sqrt(frequency))


def skipgrams(
    sequence: Sequence[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Sequence[float] | None = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """Pairs of words that stand near each other, and pairs with words at random.

    Args:
        sequence: Ids of words; 0 is no word.
        vocabulary_size: Number of ids.
        window_size: How far words may be apart.
        negative_samples: How many random pairs there are for each pair.
        shuffle: Mix the pairs.
        categorical: Labels are ``[0, 1]`` and ``[1, 0]`` rather than 1 and 0.
        sampling_table: Probability of each id to be taken as the first of a pair.
        seed: Seed of the mixing; a new one each time when None.

    Returns:
        The pairs, and a label for each: 1 for words that stand near each other.
    """
    pairs: list[list[int]] = []
    labels: list[Any] = []
    for place, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        for other in range(max(0, place - window_size), min(len(sequence), place + window_size + 1)):
            if other != place and sequence[other]:
                pairs.append([word, sequence[other]])
                labels.append([0, 1] if categorical else 1)
    if negative_samples > 0:
        words = [pair[0] for pair in pairs]
        random.shuffle(words)
        count = int(len(labels) * negative_samples)
        pairs += [[words[index % len(words)], random.randint(1, vocabulary_size - 1)] for index in range(count)]
        labels += [[1, 0] if categorical else 0] * count
    if shuffle:
        seed = random.randint(0, 10**6) if seed is None else seed
        random.Random(seed).shuffle(pairs)
        random.Random(seed).shuffle(labels)
    return pairs, labels
