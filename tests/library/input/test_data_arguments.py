"""Arguments of datasets: what is taken, and what is refused when the graph is built, as TensorFlow 1.15 does it."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.dataset_elements import elements

Dataset = tf.data.Dataset


def test_a_cache_in_a_file_serves_later_iterators(tmp_path):
    calls = []

    def generate():
        for number in range(3):
            calls.append(number)
            yield number, [b"a"] * number

    path = str(tmp_path / "cache")
    dataset = Dataset.from_generator(generate, (tf.int64, tf.string)).cache(path)
    expected = [(0, []), (1, [b"a"]), (2, [b"a", b"a"])]
    assert elements(dataset.take(2)) == expected[:2]
    assert list(tmp_path.iterdir()) == []  # that pass did not reach the end
    calls.clear()
    assert elements(dataset.repeat(2)) == expected * 2
    assert elements(dataset) == expected
    assert calls == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["cache"]


def test_numbers_of_a_dataset_may_be_tensors():
    repeated = Dataset.range(4).interleave(lambda x: Dataset.from_tensors(x).repeat(3), tf.constant(2), tf.constant(2))
    assert elements(repeated) == [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3]
    fed = tf.placeholder(tf.int64, [])
    batches = Dataset.range(5).map(lambda x: x + 1, num_parallel_calls=fed).batch(fed, drop_remainder=tf.equal(fed, 2))
    iterator = batches.make_initializable_iterator()
    with tf.Session() as session:
        session.run(iterator.initializer, {fed: 2})
        element = iterator.get_next()
        assert session.run(element).tolist() == [1, 2]
        assert session.run(element).tolist() == [3, 4]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
    padded = Dataset.from_tensors([1, 2]).padded_batch(1, tf.constant([3], tf.int64))
    assert elements(padded) == [[[1, 2, 0]]]
    assert elements(Dataset.from_tensors([True]).padded_batch(1, [2])) == [[[True, False]]]


def test_a_list_from_a_function_is_several_components():
    dataset = Dataset.range(2).map(lambda x: [x, tf.as_string(x)])
    assert dataset.output_types == (tf.int64, tf.string)
    assert elements(dataset) == [(0, b"0"), (1, b"1")]


def test_a_feedable_iterator_begins_a_one_shot_iterator():
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    one = Dataset.range(3).make_one_shot_iterator().string_handle()
    wrong = Dataset.from_tensors(1.0).make_one_shot_iterator().string_handle()
    with tf.Session() as session:
        names = session.run([one, wrong])
        assert [session.run(element, {handle: names[0]}) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(element, {handle: names[1]})


def test_options_are_kept_and_names_are_checked():
    options = tf.data.Options()
    options.experimental_threading.private_threadpool_size = 3
    dataset = Dataset.range(2).with_options(options)
    assert dataset.options() == options
    assert dataset.options() != tf.data.Options()
    assert elements(dataset) == [0, 1]
    with pytest.raises(AttributeError, match="nope"):
        options.nope = 1
    with pytest.raises(TypeError, match="bool"):
        options.experimental_deterministic = 3


def test_what_elements_are():
    dataset = Dataset.from_tensors({"a": 1, "b": tf.SparseTensor([[0]], [1.0], [2])})
    assert tf.data.get_output_types(dataset) == {"a": tf.int32, "b": tf.float32}
    assert tf.data.get_output_shapes(dataset.make_one_shot_iterator())["b"].as_list() == [2]
    assert tf.data.get_output_classes(dataset) == {"a": tf.Tensor, "b": tf.SparseTensor}


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda d: d.concatenate(Dataset.from_tensors(1.0)), TypeError),
        (lambda d: d.concatenate(Dataset.zip((d, d))), TypeError),
        (lambda d: Dataset.from_tensors({"a": 1}).concatenate(Dataset.from_tensors({"b": 1})), TypeError),
        (
            lambda d: Dataset.from_tensors((1, (2, 3))).concatenate(Dataset.from_tensors(((1, 2), 3))),
            TypeError,
        ),
        (lambda d: Dataset.zip([d, d]), TypeError),
        (lambda d: Dataset.zip((d, 3)), TypeError),
        (lambda d: Dataset.from_tensor_slices(()), ValueError),
        (lambda d: Dataset.from_tensor_slices(([1, 2], [1])), ValueError),
        (lambda d: Dataset.range(), ValueError),
        (lambda d: Dataset.range(2.5), TypeError),
        (lambda d: d.batch(2.0), TypeError),
        (lambda d: d.batch([2]), ValueError),
        (lambda d: d.take(1.5), TypeError),
        (lambda d: d.take([1]), ValueError),
        (lambda d: d.padded_batch(2, [None]), ValueError),
        (lambda d: d.padded_batch(2, ([], [])), ValueError),
        (lambda d: Dataset.from_tensors([1, 2, 3]).padded_batch(1, [2]), ValueError),
        (lambda d: Dataset.from_tensors([1]).padded_batch(1, [2.5]), TypeError),
        (lambda d: Dataset.from_tensors([1]).padded_batch(1, [4], padding_values=1.5), TypeError),
        (lambda d: Dataset.from_tensors([1]).padded_batch(1, [4], padding_values=[1]), ValueError),
        (lambda d: d.map(lambda x: object()), TypeError),
        (lambda d: d.map(1), ValueError),
        (lambda d: d.flat_map(lambda x: x), TypeError),
        (lambda d: d.filter(lambda x: [True]), ValueError),
        (lambda d: d.apply(lambda _: 3), TypeError),
        (lambda d: d.with_options(3), TypeError),
        (lambda d: tf.data.experimental.choose_from_datasets([d], Dataset.from_tensors(1.0)), TypeError),
        (lambda d: tf.data.experimental.choose_from_datasets([], d), ValueError),
        (lambda d: tf.data.Iterator.from_structure(tf.int32).make_initializer(d), TypeError),
        (lambda d: tf.data.Iterator.from_structure(tf.int64, [3]).make_initializer(d), TypeError),
        (lambda d: tf.data.Iterator.from_structure((tf.int64, tf.int64)).make_initializer(d), ValueError),
        (lambda d: tf.data.Iterator.from_structure((tf.int64, tf.int64), []), TypeError),
        (lambda d: tf.data.Iterator.from_structure(tf.int64).initializer, ValueError),
        (lambda d: tf.data.Iterator.from_string_handle(3, tf.int64), TypeError),
    ],
)
def test_what_is_refused_when_the_graph_is_built(build, error):
    with pytest.raises(error):
        build(Dataset.range(3))


@pytest.mark.parametrize(
    "build",
    [
        lambda d: d.batch(0),
        lambda d: d.prefetch(-2),
        lambda d: d.shuffle(0),
        lambda d: d.shard(2, 2),
        lambda d: d.window(0),
        lambda d: d.map(lambda x: x, num_parallel_calls=0),
        lambda d: d.interleave(lambda x: d, 0),
        lambda d: d.interleave(lambda x: d, 2, 0),
        lambda d: Dataset.range(0, 3, 0),
    ],
)
def test_what_is_refused_when_an_iterator_begins(build):
    iterator = build(Dataset.range(3)).make_initializable_iterator()
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(iterator.initializer)


def test_seeds_and_effects_of_functions():
    draws = Dataset.range(3).map(lambda x: tf.random_uniform([], seed=7))
    iterator = draws.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        passes = []
        for _ in range(2):
            session.run(iterator.initializer)
            passes.append([session.run(element) for _ in range(3)])
    assert passes[0] == passes[1]
    assert len(np.unique(passes)) == 3
