"""Data sets of pictures and words from local files: `tests/programs/test_local_files.py` has the others."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest

import tfray as tf
from tfray.errors import DataLossError, NotFoundError
from tfray.keras.files.integer_lists import integer_lists

datasets = tf.keras.datasets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    return tmp_path / "datasets"


# -- pictures ----------------------------------------------------------------------------------------------


def records(path, labels):
    """A file of two records, whose pictures are in the result."""
    found = np.random.default_rng(len(str(path))).integers(0, 256, (2, len(labels[0]) + 3072), np.uint8)
    found[:, : len(labels[0])] = labels
    found.tofile(path)
    return found[:, len(labels[0]) :].reshape(2, 3, 32, 32).transpose(0, 2, 3, 1)


def test_cifar10(folder):
    root = folder / "cifar-10-batches-bin"
    root.mkdir()
    pictures = [records(root / f"data_batch_{number}.bin", [[number], [9]]) for number in range(1, 6)]
    records(root / "test_batch.bin", [[7], [8]])
    (x_train, y_train), (x_test, y_test) = datasets.cifar10.load_data()
    np.testing.assert_array_equal(x_train, np.concatenate(pictures))
    assert y_train.ravel().tolist() == [1, 9, 2, 9, 3, 9, 4, 9, 5, 9] and y_train.shape == (10, 1)
    assert x_test.shape == (2, 32, 32, 3) and y_test.tolist() == [[7], [8]] and x_test.dtype == np.uint8
    (root / "test_batch.bin").write_bytes(b"short")
    with pytest.raises(DataLossError, match="5 bytes, which are no records of 3073"):
        datasets.cifar10.load_data()


def test_cifar100(folder):
    root = folder / "cifar-100-binary"
    root.mkdir()
    pictures = records(root / "train.bin", [[1, 50], [2, 60]])
    records(root / "test.bin", [[3, 70], [4, 80]])
    (x_train, y_train), (_, y_test) = datasets.cifar100.load_data()
    np.testing.assert_array_equal(x_train, pictures)
    assert (y_train.tolist(), y_test.tolist()) == ([[50], [60]], [[70], [80]])
    assert datasets.cifar100.load_data("coarse")[0][1].tolist() == [[1], [2]]
    with pytest.raises(ValueError, match="label_mode"):
        datasets.cifar100.load_data("both")


def test_what_is_missing_is_named(folder):
    (folder / "cifar-10-batches-py").mkdir()
    with pytest.raises(
        NotFoundError, match=r"cifar-10-binary.tar.gz there, and unpack it. .* is pickled, and not read"
    ):
        datasets.cifar10.load_data()
    with pytest.raises(NotFoundError, match=r"imdb.npz.*downloads nothing"):
        datasets.imdb.load_data()


# -- words -------------------------------------------------------------------------------------------------


def lists(*values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


TRAIN = lists([5, 2], [9, 300, 70000], [1], [4, 4, 4, 4])
TEST = lists([8, 7], [6, 6, 6])

IMDB_TRAIN, IMDB_KINDS = [[1, 7, 7, 7, 7], [1, 4], [1, 8, 5], [1, 12, 303, 2]], [1, 0, 0, 1]
IMDB_TEST, IMDB_TEST_KINDS = [[1, 9, 9, 9], [1, 11, 10]], [0, 1]
IMDB_SHORT, IMDB_TEST_SHORT = [[], []], [[11, 10]]
REUTERS = [[9, 300, 2], [5, 2], [4, 4, 4, 4], [1], [8, 7], [6, 6, 6]]
REUTERS_KINDS = [1, 0, 3, 2, 4, 5]


def test_imdb(folder):
    """The order, and what becomes of words, are those of Keras 2.21 for these lists."""
    np.savez(folder / "imdb.npz", x_train=TRAIN, y_train=[0, 1, 0, 1], x_test=TEST, y_test=[1, 0])
    (x_train, y_train), (x_test, y_test) = datasets.imdb.load_data()
    assert [*x_train] == IMDB_TRAIN and y_train.tolist() == IMDB_KINDS
    assert [*x_test] == IMDB_TEST and y_test.tolist() == IMDB_TEST_KINDS
    (x_train, _), (x_test, y_test) = datasets.imdb.load_data(num_words=12, skip_top=9, maxlen=4, oov_char=None)
    assert [*x_train] == IMDB_SHORT and [*x_test] == IMDB_TEST_SHORT
    with pytest.raises(ValueError, match="maxlen=2, no sequence was kept"):
        datasets.imdb.load_data(maxlen=2)
    (folder / "imdb_word_index.json").write_text('{"film": 3, "the": 1}')
    assert datasets.imdb.get_word_index() == {"film": 3, "the": 1}


def test_reuters(folder):
    np.savez(folder / "reuters.npz", x=lists(*TRAIN, *TEST), y=np.arange(6))
    (x_train, y_train), (x_test, y_test) = datasets.reuters.load_data(test_split=0.5, start_char=None, index_from=0)
    assert [*x_train, *x_test] == REUTERS and [*y_train, *y_test] == REUTERS_KINDS and len(x_test) == 3


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_lists_are_read_without_unpickling(protocol):
    values = [[0, 255, 256, 65535, 65536, -1, 2**40], [], [7] * 2000]
    assert integer_lists(pickle.dumps(lists(*values), protocol)) == values


class _Harmful:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize(
    "value", [lists(_Harmful()), lists([_Harmful()]), lists([1.5]), lists({"a": 1}), lists("text"), [1], _Harmful()]
)
def test_what_is_no_list_of_integers_is_refused(folder, capsys, value):
    data = pickle.dumps(value, 3)
    with pytest.raises(DataLossError):
        integer_lists(data)
    with zipfile.ZipFile(folder / "reuters.npz", "w") as archive, archive.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (1,)})
        file.write(data)
    with pytest.raises(DataLossError, match="has no lists of integers x"):
        datasets.reuters.load_data()
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("end", range(0, 200, 7))
def test_lists_that_end_too_early(end):
    data = pickle.dumps(lists([1, 2, 300], [4]), 3)
    with pytest.raises(DataLossError):
        integer_lists(data[: min(end, len(data) - 1)])
