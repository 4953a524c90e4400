"""Texts as sequences of word numbers: ``tf.contrib.learn.preprocessing``."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.files import failures_of, given_path

__all__ = ["CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Words and their numbers, from 1 on; 0 stands for unknown words.

    Args:
        unknown_token: What unknown words are called.
    """

    def __init__(self, unknown_token: str = "<UNK>") -> None:
        self._mapping: dict[str, int] = {unknown_token: 0}
        self._words = [unknown_token]
        self._counts: Counter[str] = Counter()
        self._is_frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Add no more words."""
        self._is_frozen = freeze

    def get(self, category: str) -> int:
        """The number of a word, which is added unless the vocabulary is frozen."""
        if category not in self._mapping:
            if self._is_frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._words.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Count a word."""
        if self.get(category):
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keep the words that were counted more than `min_frequency` times; the most frequent ones first."""
        kept = [
            word
            for word, count in sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._words = [self._words[0], *kept]
        self._mapping = {word: number for number, word in enumerate(self._words)}
        self._counts = Counter({word: self._counts[word] for word in kept})

    def reverse(self, class_id: int) -> str:
        """The word of a number."""
        return self._words[class_id]


class VocabularyProcessor:
    """Turns texts into rows of word numbers, cut and padded with 0 to one length.

        processor = learn.preprocessing.VocabularyProcessor(max_document_length=20)
        x = np.array(list(processor.fit_transform(texts)))
        size = len(processor.vocabulary_)

    Args:
        max_document_length: Length of the rows.
        min_frequency: Words that come no more often than that are unknown.
        vocabulary: The vocabulary to begin with.
        tokenizer_fn: From texts to lists of words; `tokenizer` when None.

    Attributes:
        vocabulary_: The vocabulary.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[list[str]]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: object = None) -> VocabularyProcessor:
        """Learn the words of some texts, and no others from then on. Returns this object."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """The rows of some texts, int64."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            numbers = [self.vocabulary_.get(word) for word in words[: self.max_document_length]]
            row[: len(numbers)] = numbers
            yield row

    def fit_transform(self, raw_documents: Iterable[str], unused_y: object = None) -> Iterator[np.ndarray]:
        """`fit`, then `transform`."""
        texts = list(raw_documents)
        return self.fit(texts).transform(texts)

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Texts of rows."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(int(number)) for number in row)

    def save(self, filename: str) -> None:
        """Write the vocabulary to a file, in JSON."""
        content = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "words": self.vocabulary_._words,
        }
        with failures_of(given_path(filename, "filename")), open(filename, "w", encoding="utf-8") as file:
            json.dump(content, file)

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """Read what `save` wrote.

        Raises:
            InvalidArgumentError: The file holds something else.
        """
        given_path(filename, "filename")
        try:
            with open(filename, encoding="utf-8") as file:
                content = json.load(file)
            vocabulary = CategoricalVocabulary(content["words"][0])
            for word in content["words"][1:]:
                vocabulary.add(word)
            processor = cls(content["max_document_length"], content["min_frequency"], vocabulary)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise InvalidArgumentError(
                f"{filename!r} holds no vocabulary that VocabularyProcessor.save wrote"
            ) from error
        vocabulary.freeze()
        return processor
