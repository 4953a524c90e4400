"""tf.keras.preprocessing: values are those of TensorFlow 2.21's Keras."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

sequence, text = tf.keras.preprocessing.sequence, tf.keras.preprocessing.text
TEXTS = ["The cat, the dog!", "a dog"]


@pytest.mark.parametrize(
    ("sequences", "options", "expected"),
    [
        ([[1], [1, 2, 3], []], {}, [[0, 0, 1], [1, 2, 3], [0, 0, 0]]),
        ([[1], [1, 2, 3]], {"maxlen": 2}, [[0, 1], [2, 3]]),
        ([[1], [1, 2, 3]], {"maxlen": 2, "padding": "post", "truncating": "post", "value": 9}, [[1, 9], [1, 2]]),
        ([[[1, 2]], [[3, 4], [5, 6]]], {"value": -1}, [[[-1, -1], [1, 2]], [[3, 4], [5, 6]]]),
        ([["a"], []], {"dtype": object, "value": "pad"}, [["a"], ["pad"]]),
        ([[0.5]], {"dtype": "float32", "maxlen": 2}, [[0, 0.5]]),
    ],
)
def test_lists_become_rows(sequences, options, expected):
    assert sequence.pad_sequences(sequences, **options).tolist() == expected


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sequence.pad_sequences([1, 2]), "list of lists"),
        (lambda: sequence.pad_sequences([[1]], padding="middle"), "padding is 'middle'"),
        (lambda: sequence.pad_sequences([[1]], truncating="middle"), "truncating is 'middle'"),
        (lambda: sequence.pad_sequences([[[1, 2]], [[1]]]), "elements have shapes"),
        (lambda: text.Tokenizer().texts_to_matrix(["a"]), "Specify a dimension"),
        (lambda: text.Tokenizer(num_words=3).texts_to_matrix(["a"], "tfidf"), "before using tfidf mode"),
        (lambda: text.Tokenizer(num_words=3).texts_to_matrix(["a"], "odd"), "Unknown vectorization mode: odd"),
    ],
)
def test_what_cannot_be_made(make, match):
    with pytest.raises(InvalidArgumentError, match=match):
        make()


@pytest.mark.parametrize(
    ("options", "numbers", "words"),
    [
        ({}, [[1, 1, 3], [2, 4]], ["the the cat", "dog a"]),
        ({"num_words": 3}, [[1, 1], [2]], ["the the", "dog"]),
        ({"num_words": 4, "oov_token": "<unk>"}, [[2, 1, 2, 1], [3, 1]], ["the <unk> the <unk>", "dog <unk>"]),
    ],
)
def test_texts_become_numbers(options, numbers, words):
    tokenizer = text.Tokenizer(**options)
    tokenizer.fit_on_texts(TEXTS)
    found = tokenizer.texts_to_sequences(["the bird the cat", "dog a"])
    assert found == numbers and tokenizer.sequences_to_texts(found) == words
    assert tokenizer.document_count == 2 and dict(tokenizer.word_docs) == {"the": 1, "cat": 1, "dog": 2, "a": 1}
    again = text.tokenizer_from_json(tokenizer.to_json())
    assert again.word_index == tokenizer.word_index and again.texts_to_sequences(TEXTS) == tokenizer.texts_to_sequences(
        TEXTS
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("binary", [[0, 1, 1, 0, 0]]),
        ("count", [[0, 2, 1, 0, 0]]),
        ("freq", [[0, 0.667, 0.333, 0, 0]]),
        ("tfidf", [[0, 1.174, 0.511, 0, 0]]),
    ],
)
def test_texts_become_a_matrix(mode, expected):
    tokenizer = text.Tokenizer()
    tokenizer.fit_on_texts(TEXTS)
    np.testing.assert_allclose(tokenizer.texts_to_matrix(["the dog the"], mode), expected, atol=1e-3)


def test_characters_and_lists_of_words():
    characters = text.Tokenizer(char_level=True, num_words=6)
    characters.fit_on_texts(TEXTS)
    assert len(characters.texts_to_sequences(["the"])[0]) == 3
    lists = text.Tokenizer(lower=False, filters="")
    lists.fit_on_texts([["A", "b"], ["b"]])
    assert lists.word_index == {"b": 1, "A": 2} and lists.texts_to_sequences([["b"]]) == [[1]]
    lists.fit_on_sequences([[1, 2], [2]])
    assert lists.document_count == 4 and lists.index_docs[2] == 3
    with pytest.raises(TypeError, match="Unrecognized keyword arguments"):
        text.Tokenizer(words=3)
    assert text.Tokenizer(nb_words=3).num_words == 3


def test_words_and_their_hashes():
    assert text.text_to_word_sequence("Hello, World! x-y") == ["hello", "world", "x", "y"]
    assert text.text_to_word_sequence("a::B", split="::", filters="", lower=False) == ["a", "B"]
    assert text.hashing_trick("a b a", 10, "md5") == text.hashing_trick("a b a", 10, "md5") != [0, 0, 0]
    assert all(1 <= each < 10 for each in text.one_hot("a b c", 10))


def test_pairs_of_words():
    random.seed(1)
    pairs, labels = sequence.skipgrams([1, 2, 3, 0, 4], 5, window_size=1, seed=3)
    assert pairs == [[1, 2], [1, 1], [2, 4], [2, 3], [2, 1], [2, 4], [3, 3], [3, 2]]
    assert labels == [1, 0, 0, 1, 1, 0, 0, 1]
    options = {"negative_samples": 0, "shuffle": False, "categorical": True}
    assert sequence.skipgrams([1, 2], 5, **options) == ([[1, 2], [2, 1]], [[0, 1], [0, 1]])
    np.testing.assert_allclose(
        sequence.make_sampling_table(5), [0.00315, 0.00315, 0.00548, 0.00742, 0.00913], atol=1e-5
    )
    assert sequence.skipgrams([1, 2], 5, sampling_table=[-1, -1, -1]) == ([], [])
