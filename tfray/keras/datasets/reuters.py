"""``tf.keras.datasets.reuters``: news in 46 topics, from files of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.keras.datasets.local_files import ORIGIN, Pair, arrays_of, renumbered, word_index, word_lists
from tfray.keras.utils import get_file

__all__ = ["get_word_index", "load_data"]


def load_data(
    path: str = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
    **kwargs: Any,
) -> tuple[Pair, Pair]:
    """Lists of the numbers of words, and topics, to train and to test with.

    Args:
        path: The file, beneath ``~/.keras/datasets`` unless the path is absolute.
        num_words: As for `imdb`, like the arguments that follow.
        skip_top: Likewise.
        maxlen: Likewise.
        test_split: Share of the texts to test with.
        seed: Seed of the order.
        start_char: What texts begin with; nothing when None.
        oov_char: What stands for words that are left out; nothing when None.
        index_from: What is added to the numbers of words.
        **kwargs: ``nb_words``, an older name of `num_words`.

    Raises:
        ValueError: No text is short enough.
        NotFoundError: The file is not there.
    """
    path = get_file(path, ORIGIN + "reuters.npz")
    (texts,), (labels,) = word_lists(path, ("x",)), arrays_of(path, ("y",))
    order = np.arange(len(texts))
    np.random.RandomState(seed).shuffle(order)
    most = kwargs.get("nb_words") or num_words
    part = [texts[place] for place in order], labels[order]
    ((found, kinds),) = renumbered([part], most, skip_top, maxlen, start_char, oov_char, index_from)
    count = int(len(found) * (1 - test_split))
    return (found[:count], kinds[:count]), (found[count:], kinds[count:])


def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The numbers of words, without what `load_data` adds. Raises `NotFoundError` where the file is not there."""
    return word_index(path)
