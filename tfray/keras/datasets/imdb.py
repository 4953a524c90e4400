"""``tf.keras.datasets.imdb``: reviews of films, good or bad, from files of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.keras.datasets.local_files import ORIGIN, Pair, arrays_of, renumbered, word_index, word_lists
from tfray.keras.utils import get_file

__all__ = ["get_word_index", "load_data"]


def load_data(
    path: str = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
    **kwargs: Any,
) -> tuple[Pair, Pair]:
    """Lists of the numbers of words, and labels 0 and 1, to train and to test with.

    Args:
        path: The file, beneath ``~/.keras/datasets`` unless the path is absolute.
        num_words: Words with this number and more become `oov_char`.
        skip_top: So do those with smaller numbers than this.
        maxlen: Only shorter texts are kept.
        seed: Seed of the order.
        start_char: What texts begin with; nothing when None.
        oov_char: What stands for words that are left out; nothing when None.
        index_from: What is added to the numbers of words.
        **kwargs: ``nb_words``, an older name of `num_words`.

    Raises:
        ValueError: No text is short enough.
        NotFoundError: The file is not there.
    """
    path = get_file(path, ORIGIN + "imdb.npz")
    texts, labels = word_lists(path, ("x_train", "x_test")), arrays_of(path, ("y_train", "y_test"))
    random, parts = np.random.RandomState(seed), []
    for lists, kinds in zip(texts, labels, strict=True):
        order = np.arange(len(lists))
        random.shuffle(order)
        parts.append(([lists[place] for place in order], kinds[order]))
    most = kwargs.get("nb_words") or num_words
    train, test = renumbered(parts, most, skip_top, maxlen, start_char, oov_char, index_from)
    return train, test


def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The numbers of words, without what `load_data` adds. Raises `NotFoundError` where the file is not there."""
    return word_index(path)
