"""``tf.keras.preprocessing.text``: texts as the numbers of their words."""

from __future__ import annotations

import collections
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError

__all__ = ["Tokenizer", "hashing_trick", "one_hot", "text_to_word_sequence", "tokenizer_from_json"]

FILTERS: Final = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(text: str, filters: str = FILTERS, lower: bool = True, split: str = " ") -> list[str]:
    """The words of a text.

    Args:
        text: The text.
        filters: Characters that stand between words, as `split` does.
        lower: Take lower case.
        split: What stands between words.
    """
    text = text.lower() if lower else text
    if len(split) == 1:
        text = text.translate({ord(character): split for character in filters})
    else:
        for character in filters:
            text = text.replace(character, split)
    return [word for word in text.split(split) if word]


def hashing_trick(
    text: str,
    n: int,
    hash_function: str | Callable[[str], int] | None = None,
    filters: str = FILTERS,
    lower: bool = True,
    split: str = " ",
) -> list[int]:
    """A number from 1 to ``n - 1`` for each word of a text; different words may have the same one.

    Args:
        text: The text.
        n: Number of numbers, 0 included.
        hash_function: Python's `hash` when None, ``md5``, or a function of a word.
        filters: As for `text_to_word_sequence`.
        lower: Likewise.
        split: Likewise.
    """
    function: Any = _md5 if hash_function == "md5" else hash_function or hash
    return [function(word) % (n - 1) + 1 for word in text_to_word_sequence(text, filters, lower, split)]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


def one_hot(text: str, n: int, filters: str = FILTERS, lower: bool = True, split: str = " ") -> list[int]:
    """`hashing_trick` with Python's `hash`."""
    return hashing_trick(text, n, None, filters, lower, split)


class Tokenizer:
    """Numbers the words of texts, the most frequent one with 1.

    Args:
        num_words: Texts become the numbers below this one; all when None.
        filters: As for `text_to_word_sequence`.
        lower: Likewise.
        split: Likewise.
        char_level: Number characters in place of words.
        oov_token: Word that stands for words without a number, and gets number 1; they are left out when None.
        document_count: How many texts were seen.

    Attributes:
        word_index: Number of each word.
        index_word: Word of each number.
        word_counts: How often each word was seen.
        word_docs: In how many texts each word was seen.
        index_docs: Likewise, by the word's number.
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        document_count: int = 0,
        **kwargs: Any,
    ) -> None:
        num_words = kwargs.pop("nb_words", num_words)
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.document_count = char_level, oov_token, document_count
        self.word_counts: dict[str, int] = collections.OrderedDict()
        self.word_docs: dict[str, int] = collections.defaultdict(int)
        self.index_docs: dict[int, int] = collections.defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Sequence[str]:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return list(text)
            return [each.lower() for each in text]
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, each a string or a list of words, and number them."""
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        first = [] if self.oov_token is None else [self.oov_token]
        self.word_index = {word: number for number, word in enumerate([*first, *ordered], 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Iterable[Sequence[int]]) -> None:
        """Count in how many lists of numbers each stands."""
        for sequence in sequences:
            self.document_count += 1
            for number in set(sequence):
                self.index_docs[number] += 1

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of the words of each text."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """The numbers of the words, text by text."""
        other = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for text in texts:
            found = []
            for word in self._words(text):
                number = self.word_index.get(word)
                if number is None or (self.num_words and number >= self.num_words):
                    number = other
                if number is not None:
                    found.append(number)
            yield found

    def sequences_to_texts(self, sequences: Iterable[Sequence[int]]) -> list[str]:
        """The words of each list of numbers, with spaces between."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Iterable[Sequence[int]]) -> Iterator[str]:
        """The words of the numbers, list by list."""
        for sequence in sequences:
            found = []
            for number in sequence:
                word = self.index_word.get(number)
                if word is None or (self.num_words and number >= self.num_words):
                    word = self.oov_token
                if word is not None:
                    found.append(word)
            yield " ".join(found)

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray[Any, Any]:
        """A row for each text; see `sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Sequence[Sequence[int]], mode: str = "binary") -> np.ndarray[Any, Any]:
        """A row for each list of numbers, with a column for each number.

        Args:
            sequences: The lists.
            mode: ``binary`` says which numbers there are, ``count`` how often, ``freq`` how often by the length, and
                ``tfidf`` by how rare they are.

        Raises:
            ValueError: There is no such mode, or nothing was counted.
        """
        if not self.num_words and not self.word_index:
            raise InvalidArgumentError("Specify a dimension (`num_words` argument), or fit on some text data first.")
        if mode == "tfidf" and not self.document_count:
            raise InvalidArgumentError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise InvalidArgumentError(f"Unknown vectorization mode: {mode}")
        columns = self.num_words or len(self.word_index) + 1
        matrix = np.zeros((len(sequences), columns))
        for row, sequence in zip(matrix, sequences, strict=True):
            for number, count in collections.Counter(each for each in sequence if each < columns).items():
                row[number] = {
                    "binary": 1,
                    "count": count,
                    "freq": count / len(sequence),
                    "tfidf": (1 + np.log(count))
                    * np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0))),
                }[mode]
        return matrix

    def get_config(self) -> dict[str, Any]:
        """All that it knows, as plain data."""
        return {
            "num_words": self.num_words,
            "filters": self.filters,
            "lower": self.lower,
            "split": self.split,
            "char_level": self.char_level,
            "oov_token": self.oov_token,
            "document_count": self.document_count,
            "word_counts": json.dumps(self.word_counts),
            "word_docs": json.dumps(self.word_docs),
            "index_docs": json.dumps(self.index_docs),
            "index_word": json.dumps(self.index_word),
            "word_index": json.dumps(self.word_index),
        }

    def to_json(self, **kwargs: Any) -> str:
        """All that it knows, as JSON. The arguments are those of `json.dumps`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The `Tokenizer` that `Tokenizer.to_json` has written."""
    config = json.loads(json_string)["config"]
    counted = {name: json.loads(config.pop(name)) for name in ("word_counts", "word_docs", "word_index")}
    numbered = {
        name: {int(number): value for number, value in json.loads(config.pop(name)).items()}
        for name in ("index_docs", "index_word")
    }
    made = Tokenizer(**config)
    vars(made).update(counted, **numbered)
    return made
