"""Tables. Expected numbers of unknown words are those of TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from tfray.library.input import lookup
from tfray.ops.dataflow import lookup_ops
from tfray.ops.dataflow.resource_operations import use_resource


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("emerson\nlake\npalmer\n")
    return str(path)


def test_words_have_numbers(session):
    table = lookup.index_table_from_tensor(["emerson", "lake", "palmer"], default_value=-5)
    ids = table.lookup(tf.constant([["lake", "x"], ["palmer", "emerson"]]))
    assert ids.dtype is tf.int64 and ids.shape.as_list() == [2, 2]
    assert tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) == [table.initializer]
    session.run(tf.tables_initializer())
    assert session.run(ids).tolist() == [[1, -5], [2, 0]]
    assert session.run(table.size()) == 3 and session.run(table.lookup("lake")) == 1
    keys, values = session.run(table.export())
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {b"emerson": 0, b"lake": 1, b"palmer": 2}


def test_unknown_words_have_numbers_of_buckets(session, vocabulary):
    words = tf.constant(["emerson", "lake", "and", "palmer", "x"])
    table = lookup.index_table_from_tensor(["emerson", "lake", "palmer"], num_oov_buckets=2)
    strong = lookup.index_table_from_file(vocabulary, num_oov_buckets=3, hasher_spec=lookup.StrongHashSpec([5, 6]))
    numbers = lookup.index_table_from_tensor(tf.constant([10, 20], tf.int64), num_oov_buckets=4, dtype=tf.int64)
    static = lookup.StaticVocabularyTable(
        lookup.TextFileInitializer(vocabulary, tf.string, -2, tf.int64, -1), num_oov_buckets=5
    )
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(words)).tolist() == [0, 1, 4, 2, 3]
    assert session.run(strong.lookup(tf.constant(["lake", "q", "r", "s"]))).tolist() == [1, 4, 3, 5]
    assert session.run(numbers.lookup(tf.constant([20, 7, 8, 9], tf.int64))).tolist() == [1, 2, 5, 3]
    assert session.run(static.lookup(tf.constant(["palmer", "u", "v"]))).tolist() == [2, 7, 4]
    assert session.run([table.size(), static.size()]) == [5, 8]


def test_without_a_vocabulary_all_words_go_to_buckets(session):
    table = lookup.IdTableWithHashBuckets(None, 10)
    words = tf.constant(["a", "b"])
    session.run(table.initializer)
    np.testing.assert_array_equal(*session.run([table.lookup(words), tf.string_to_hash_bucket_fast(words, 10)]))
    assert session.run(table.size()) == 10 and table.resource_handle is None


def test_int32_keys_are_looked_up(session):
    table = lookup.index_table_from_tensor(np.array([7, 9], np.int32), dtype=tf.int32)
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(tf.constant([9, 8], tf.int32))).tolist() == [1, -1]


def test_numbers_have_words(session, vocabulary):
    ids = tf.constant([1, 5], tf.int64)
    from_list = lookup.index_to_string_table_from_tensor(["emerson", "lake"])
    from_file = lookup.index_to_string_table_from_file(vocabulary, default_value="?")
    session.run(tf.tables_initializer())
    assert session.run(from_list.lookup(ids)).tolist() == [b"lake", b"UNK"]
    assert session.run(from_file.lookup(ids)).tolist() == [b"lake", b"?"]
    assert session.run(from_file.lookup([0])).tolist() == [b"emerson"]


def test_sparse_words_keep_their_places(session):
    table = lookup.index_table_from_tensor(["a", "b"])
    ids = table.lookup(tf.string_split(["b a", "c"]))
    session.run(tf.tables_initializer())
    found = session.run(ids)
    assert found.indices.tolist() == [[0, 0], [0, 1], [1, 0]] and found.values.tolist() == [1, 0, -1]


def test_columns_of_a_file(session, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,1,0.5\r\nb,2,1.5\r\nc,3,x\r\n")
    initializer = lookup.TextFileInitializer(str(path), tf.string, 0, tf.float32, 2, vocab_size=2, delimiter=",")
    table = lookup.HashTable(initializer, -1.0)
    swapped = lookup.HashTable(lookup.TextFileInitializer(str(path), tf.int64, 1, tf.string, 0, delimiter=","), "?")
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(tf.constant(["b", "c"]))).tolist() == [1.5, -1.0]
    assert session.run(swapped.lookup(tf.constant([3], tf.int64))).tolist() == [b"c"]
    assert len(tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((tf.string, 0, tf.float32, 5), InvalidArgumentError, "line 0 has 2 columns; column 5"),
        ((tf.string, 0, tf.float32, 1), InvalidArgumentError, "not a float32"),
        ((tf.string, 0, tf.int64, -1, 9), InvalidArgumentError, "Invalid vocab_size 9: .* has 2 lines"),
    ],
)
def test_files_that_do_not_fit(session, tmp_path, arguments, error, match):
    path = tmp_path / "table.txt"
    path.write_text("a\t1\nb\tx\n")
    table = lookup.HashTable(lookup.TextFileInitializer(str(path), *arguments), 0)
    with pytest.raises(error, match=match):
        session.run(table.init)


def test_a_missing_file(session, tmp_path):
    table = lookup.index_table_from_file(str(tmp_path / "nothing"))
    with pytest.raises(NotFoundError, match="nothing"):
        session.run(table.init)


def test_a_table_is_filled_once(session):
    table = lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], [1]), 0)
    with pytest.raises(FailedPreconditionError, match="tables_initializer"):
        session.run(table.lookup(tf.constant(["a"])))
    session.run(table.init)
    session.run(table.init)
    again = lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], [2]), 0, shared_name=table.resource_handle.op.name)
    with pytest.raises(FailedPreconditionError, match="other contents"):
        session.run(again.init)
    with pytest.raises(FailedPreconditionError, match="MutableHashTable"):
        session.run(use_resource(lookup_ops.LOOKUP_TABLE_INSERT, table.resource_handle, ["b"], [2]))
    twice = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), 0)
    with pytest.raises(FailedPreconditionError, match="two values"):
        session.run(twice.init)
    session.run(lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 1]), 0).init)


def test_equal_names_mean_one_table(session):
    first = lookup.MutableHashTable(tf.string, tf.int64, -1, shared_name="shared")
    second = lookup.MutableHashTable(tf.string, tf.int64, -1, shared_name="shared")
    session.run(first.insert(["a"], [4]))
    assert session.run(second.lookup(tf.constant("a"))) == 4
    other = lookup.MutableHashTable(tf.string, tf.float32, -1.0, shared_name="shared")
    with pytest.raises(InvalidArgumentError, match="already"):
        session.run(other.size())


def test_a_mutable_table_changes(session):
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    keys = tf.constant(["a", "b", "c"])
    found = table.lookup(keys)
    assert session.run(found).tolist() == [-1, -1, -1]
    session.run(table.insert(["a", "b"], [1, 2]))
    session.run(table.insert(["b"], [3]))
    assert session.run(found).tolist() == [1, 3, -1] and session.run(table.size()) == 2
    exported = dict(zip(*(part.tolist() for part in session.run(table.export())), strict=True))
    assert exported == {b"a": 1, b"b": 3}
    session.run(table.remove(["a", "z"]))
    assert session.run(found).tolist() == [-1, 3, -1]
    # Within a step, what is read is what was there before.
    assert session.run([found, table.insert(["c"], [9])])[0].tolist() == [-1, 3, -1]
    assert session.run(found).tolist() == [-1, 3, 9]


def test_values_may_be_vectors(session):
    table = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0])
    found = table.lookup(tf.constant([[1, 2]], tf.int64))
    assert found.shape.as_list() == [1, 2, 2]
    session.run(table.insert([2], [[5.0, 6.0]]))
    np.testing.assert_array_equal(session.run(found), [[[0, -1], [5, 6]]])
    keys, values = session.run(table.export())
    assert keys.tolist() == [2] and values.tolist() == [[5, 6]]
    with pytest.raises(InvalidArgumentError, match="values have shape"):
        session.run(table.insert([2], [5.0]))


def test_misuse_is_refused():
    table = lookup.index_table_from_tensor(["a"])
    with pytest.raises(TypeError, match="int32, expected string"):
        table.lookup(tf.constant([1]))
    with pytest.raises(InvalidArgumentError):
        lookup.index_table_from_tensor(None)
    with pytest.raises(InvalidArgumentError):
        lookup.index_table_from_file("")
    with pytest.raises(InvalidArgumentError, match="num_oov_buckets"):
        lookup.index_table_from_tensor(["a"], -1)
    with pytest.raises(TypeError, match="vocabulary is int32"):
        lookup.index_table_from_tensor([1, 2])
    with pytest.raises(InvalidArgumentError, match="line numbers are int64"):
        lookup.TextFileInitializer("x", tf.string, -1, tf.int64, 0)
    with pytest.raises(InvalidArgumentError, match="at least one"):
        lookup.StaticVocabularyTable(None, 0)
    with pytest.raises(InvalidArgumentError, match="two"):
        lookup.StrongHashSpec([1])
    with pytest.raises(InvalidArgumentError, match="filename is empty"):
        lookup.TextFileInitializer("", tf.string, -2, tf.int64, -1)
    for make in (lookup.index_table_from_file, lookup.index_to_string_table_from_file):
        with pytest.raises(InvalidArgumentError, match="vocab_size is 0"):
            make("words", vocab_size=0)
    with pytest.raises(TypeError, match="hasher_spec is 1"):
        lookup.index_table_from_tensor(["a"], 1, hasher_spec=1)
    with pytest.raises(InvalidArgumentError, match="no hasher 'mine'"):
        lookup.index_table_from_tensor(["a"], 1, hasher_spec=lookup.HasherSpec("mine", None)).lookup("a")
    with pytest.raises(InvalidArgumentError, match="scalar or a vector"):
        lookup.MutableHashTable(tf.string, tf.int64, [[-1]])
    with pytest.raises(ValueError, match="int32, expected string"):
        lookup.MutableHashTable(tf.string, tf.int64, -1).insert(tf.constant([1]), [2])


def test_a_table_of_nothing_is_refused(session):
    table = lookup.index_table_from_tensor(np.array([], np.str_), num_oov_buckets=1)
    with pytest.raises(InvalidArgumentError, match="cannot be empty"):
        session.run(table.initializer)


def test_tables_live_on_their_device():
    with tf.device("/device:CPU:1"):
        table = lookup.index_table_from_tensor(["a", "b"])
    ids = table.lookup(tf.constant(["b"]))
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(tf.tables_initializer())
        assert session.run(ids).tolist() == [1]


def test_a_dense_table_sets_two_keys_aside():
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=0, deleted_key=-1)
        session.run(table.insert([11, 12], [1, 2]))
        assert session.run(table.lookup([12, 11, 13])).tolist() == [2, 1, -1]
        session.run(table.erase([11]))
        assert session.run([table.size(), table.lookup([11])])[1].tolist() == [-1]
        for run in (lambda: table.insert([0], [1]), lambda: table.lookup([-1]), lambda: table.remove([0])):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is used as a key"):
                session.run(run())
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="empty_key"):
        tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, tf.placeholder(tf.int64), 1)


@pytest.mark.parametrize(
    ("empty", "deleted", "buckets", "match"),
    [(4, 4, 8, "equal"), ([1, 2], [1, 2], 8, "equal"), (4, [4], 8, "shape"), (0, 1, 12, "power of 2"), (0, 1, 2, "4")],
)
def test_dense_tables_that_cannot_be(session, empty, deleted, buckets, match):
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty, deleted, buckets)
    with pytest.raises(InvalidArgumentError, match=match):
        session.run(table.size())


def sorted_pairs(exported):
    return sorted(zip(*(part.tolist() for part in exported), strict=True))


def test_a_dense_table_exports_its_buckets(session):
    # Eight buckets hold 6.4 entries; TensorFlow counts those that are inserted again as new ones.
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 100, 200, initial_num_buckets=8)
    session.run(table.insert([11, 12, 13], [1, 2, 3]))
    session.run(table.remove([12, 15]))
    exported = table.export()
    assert exported[0].shape.as_list() == [None]
    assert sorted_pairs(session.run(exported)) == [(11, 1), (13, 3), *[(100, 0)] * 5, (200, 2)]
    session.run(table.insert([11, 12, 13, 14], [5, 6, 7, 8]))
    assert len(session.run(exported)[0]) == 8 and session.run(table.size()) == 4
    session.run(table.insert([11, 12, 13], [1, 1, 1]))
    expected = [(11, 1), (12, 1), (13, 1), (14, 8), *[(100, 0)] * 12]
    assert sorted_pairs(session.run(exported)) == expected
    words = tf.lookup.experimental.DenseHashTable(tf.string, tf.string, "?", "", "-", initial_num_buckets=4)
    session.run(words.insert(["a"], ["b"]))
    assert sorted_pairs(session.run(words.export())) == [*[(b"", b"")] * 3, (b"a", b"b")]


def test_keys_of_a_dense_table_may_be_vectors(session):
    make = tf.lookup.experimental.DenseHashTable
    table = make(tf.int64, tf.float32, [0.0, -1.0], [0, 3], [-1, -1], initial_num_buckets=4)
    session.run(table.insert([[0, 1], [1, 2]], [[1.0, 2.0], [3.0, 4.0]]))
    session.run(table.remove([[1, 2], [7, 8]]))
    found = table.lookup(tf.constant([[[0, 1], [1, 2]]], tf.int64))
    assert found.shape.as_list() == [1, 2, 2]
    assert session.run(found).tolist() == [[[1, 2], [0, -1]]] and session.run(table.size()) == 1
    keys, _ = session.run(table.export())
    assert sorted(keys.tolist()) == [[-1, -1], [0, 1], [0, 3], [0, 3]]
    for keys, match in (([[0, 3]], "is used as a key"), ([0, 1, 2], "expected it to end")):
        with pytest.raises(InvalidArgumentError, match=match):
            session.run(table.lookup(tf.constant(keys, tf.int64)))


@pytest.mark.parametrize("is_dense", [False, True])
def test_mutable_tables_are_saved_by_themselves_and_with_objects(tmp_path, is_dense):
    def made():
        if is_dense:
            return tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, [0, 0], [0, 1], 4, name="table")
        return tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, name="table", checkpoint=False)

    one, two = ([[5, 6]], [[7, 8]]) if is_dense else ([5], [7])
    with tf.Graph().as_default(), tf.Session() as session:
        table = made()
        session.run([table.insert(one, [1])])
        alone = tf.train.Saver([table]).save(session, str(tmp_path / "alone"))
        together = tf.train.Checkpoint(parts=[table]).save(str(tmp_path / "together"), session=session)
    for restore in (
        lambda table, session: tf.train.Saver([table]).restore(session, alone),
        lambda table, session: tf.train.Checkpoint(parts=[table]).restore(together).run_restore_ops(session),
    ):
        with tf.Graph().as_default(), tf.Session() as session:
            table = made()
            session.run(table.insert(two * 9, [2] * 9))
            restore(table, session)
            assert session.run(table.lookup(one + two)).tolist() == [1, -1]
            assert len(session.run(table.export())[0]) == (4 if is_dense else 1)


def test_a_table_of_a_loop_is_one_for_all_turns(session):
    def number(word):
        pairs = lookup.KeyValueTensorInitializer([b"a", b"b"], [1, 2])
        return lookup.HashTable(pairs, -1).lookup(word)

    numbers = tf.map_fn(number, tf.constant(["b", "a", "c"]), dtype=tf.int32)
    session.run(tf.tables_initializer())
    assert session.run(numbers).tolist() == [2, 1, -1]


def test_a_path_that_is_fed_is_no_asset(session, vocabulary):
    path = tf.placeholder(tf.string, [])
    table = lookup.index_table_from_file(path)
    assert not tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
    session.run(table.initializer, {path: vocabulary})
    assert session.run(table.lookup("lake")) == 1
    lookup.index_table_from_file(tf.constant(vocabulary))
    assert len(tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)) == 1


def test_words_and_numbers_of_a_list():
    words = ["emerson", "lake", "palmer"]
    numbers = tf.contrib.lookup.string_to_index(tf.constant([["lake"], ["tarkus"]]), words, default_value=-5)
    back = tf.contrib.lookup.index_to_string(tf.constant([2, 7], tf.int64), words, default_value="?")
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(numbers).tolist() == [[1], [-5]] and session.run(back).tolist() == [b"palmer", b"?"]
