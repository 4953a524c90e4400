"""Programs of `tf.contrib.slim`: data sets and their decoders, aliases of end points, and evaluation."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
import tfray.contrib.slim as slim

decoder = slim.tfexample_decoder
PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    named = {name.replace("__", "/"): feature(values) for name, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=named)).SerializeToString()


def run(fetches):
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        return session.run(fetches)


def decoded(serialized, features, handler):
    (item,) = decoder.TFExampleDecoder(features, {"item": handler}).decode(serialized, ["item"])
    return run(item)


# -- items of examples -----------------------------------------------------------------------------------

ANY_INTEGERS, ANY_FLOATS, TEXT = tf.VarLenFeature(tf.int64), tf.VarLenFeature(tf.float32), tf.VarLenFeature(tf.string)


def lookup_of_labels():
    table = tf.contrib.lookup.index_table_from_tensor(["cat", "dog"])
    return decoder.LookupTensor("label", table)


@pytest.mark.parametrize(
    ("features", "serialized", "handler", "expected"),
    [
        ({"x": ANY_INTEGERS}, {"x": [1, 2, 3, 4]}, lambda: decoder.Tensor("x"), [1, 2, 3, 4]),
        ({"x": ANY_INTEGERS}, {"x": [1, 2, 3, 4]}, lambda: decoder.Tensor("x", shape=[2, 2]), [[1, 2], [3, 4]]),
        (
            {"x": ANY_FLOATS, "size": ANY_INTEGERS},
            {"x": [1.0, 2.0], "size": [2, 1]},
            lambda: decoder.Tensor("x", shape_keys="size"),
            [[1], [2]],
        ),
        (
            {"x": ANY_INTEGERS, "h": tf.FixedLenFeature([1], tf.int64), "w": tf.FixedLenFeature([], tf.int64)},
            {"x": [1, 2], "h": [1], "w": [2]},
            lambda: decoder.ItemHandlerCallback(
                ["x", "h", "w"], lambda tensors: tf.sparse_tensor_to_dense(tensors["x"]) + tensors["h"] + tensors["w"]
            ),
            [4, 5],
        ),
        (
            {"box/ymin": ANY_FLOATS, "box/xmin": ANY_FLOATS, "box/ymax": ANY_FLOATS, "box/xmax": ANY_FLOATS},
            {"box__ymin": [0.0, 4.0], "box__xmin": [1.0, 5.0], "box__ymax": [2.0, 6.0], "box__xmax": [3.0, 7.0]},
            lambda: decoder.BoundingBox(prefix="box/"),
            [[0, 1, 2, 3], [4, 5, 6, 7]],
        ),
        ({"label": TEXT}, {"label": [b"dog", b"cat"]}, lookup_of_labels, [1, 0]),
        (
            {"a": ANY_INTEGERS, "b": ANY_INTEGERS},
            {"b": [7]},
            lambda: decoder.BackupHandler(decoder.Tensor("a"), decoder.Tensor("b")),
            [7],
        ),
        (
            {"indices": ANY_INTEGERS, "values": ANY_FLOATS},
            {"indices": [0, 2, 4], "values": [1.0, 2.0, 3.0]},
            lambda: decoder.SparseTensor(shape=[5], densify=True),
            [1, 0, 2, 0, 3],
        ),
    ],
)
def test_items(features, serialized, handler, expected):
    np.testing.assert_array_equal(decoded(example(**serialized), features, handler()), expected)


@pytest.mark.parametrize("form", [b"png", b"raw", b"jpeg"])
def test_images(form):
    encode = {b"png": tf.image.encode_png, b"jpeg": tf.image.encode_jpeg}
    data = run(encode[form](PIXELS)) if form in encode else PIXELS.tobytes()
    features = {name: tf.FixedLenFeature([], tf.string, "") for name in ("image/encoded", "image/format")}
    shape = [2, 3, 3] if form == b"raw" else None
    image = decoded(example(image__encoded=[data], image__format=[form]), features, decoder.Image(shape=shape))
    np.testing.assert_allclose(image.astype(int), PIXELS, atol=12 if form == b"jpeg" else 0)


def test_several_images_of_one_example():
    features = {"image/encoded": tf.FixedLenFeature([2], tf.string), "image/format": tf.FixedLenFeature([], tf.string)}
    data = run(tf.image.encode_png(PIXELS))
    serialized = example(image__encoded=[data, data], image__format=[b"png"])
    images = decoded(serialized, features, decoder.Image(repeated=True, dtype=tf.float32))
    np.testing.assert_array_equal(images, [PIXELS, PIXELS])


def test_malformed_handlers_are_refused():
    with pytest.raises(ValueError, match="4 keys"):
        decoder.BoundingBox(["a"])
    with pytest.raises(ValueError, match="not both"):
        decoder.Tensor("x", shape_keys="size", shape=[2])
    with pytest.raises(ValueError, match="two handlers"):
        decoder.BackupHandler(decoder.Tensor("x"), "y")


# -- data sets -------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path):
    """A data set of the numbers 0 to 5 in two files."""
    for index in range(2):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"part-{index}")) as writer:
            for number in range(3):
                writer.write(example(number=[3 * index + number]))
    of_numbers = decoder.TFExampleDecoder(
        {"number": tf.FixedLenFeature([], tf.int64)}, {"number": decoder.Tensor("number")}
    )
    return slim.dataset.Dataset(
        str(tmp_path / "part-*"), tf.TFRecordReader, of_numbers, 6, {"number": "A number."}, num_classes=6
    )


@pytest.mark.parametrize("options", [{"shuffle": False}, {"shuffle": True, "num_readers": 2, "common_queue_min": 2}])
def test_a_provider_gives_every_example_once_an_epoch(numbers, options):
    provider = slim.dataset_data_provider.DatasetDataProvider(numbers, num_epochs=1, **options)
    assert provider.num_samples() == 6 and set(provider.list_items()) == {"number", "record_key"}
    number, key = provider.get(["number", "record_key"])
    found = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session), pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run([number, key])[0])
    assert found == list(range(6)) if not options["shuffle"] else sorted(found) == list(range(6))
    with pytest.raises(ValueError, match="no item 'image'"):
        provider.get(["image"])
    with pytest.raises(ValueError, match="record_key"):
        slim.dataset_data_provider.DatasetDataProvider(numbers, record_key="number")


def test_batches_are_fetched_ahead(numbers):
    (number,) = slim.dataset_data_provider.DatasetDataProvider(numbers, shuffle=False).get(["number"])
    batches = slim.prefetch_queue.prefetch_queue({"numbers": tf.train.batch([number], 3)}, capacity=2)
    batch = batches.dequeue()
    with tf.Session() as session, slim.queues.QueueRunners(session):
        np.testing.assert_array_equal([session.run(batch)["numbers"] for _ in range(2)], [[0, 1, 2], [3, 4, 5]])
        with pytest.raises(slim.queues.NestedQueueRunnerError), slim.queues.QueueRunners(session):
            pass


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="no files match"):
        slim.parallel_reader.get_data_files(str(tmp_path / "*"))
    assert slim.parallel_reader.get_data_files([str(tmp_path), "b"]) == [str(tmp_path), "b"]


# -- end points ------------------------------------------------------------------------------------------


def test_end_points_have_the_names_of_their_scopes():
    def net(reuse):
        with (
            tf.variable_scope("net", reuse=reuse),
            slim.arg_scope([slim.conv2d, slim.max_pool2d], outputs_collections="ends"),
        ):
            outputs = slim.conv2d(tf.ones([1, 8, 8, 3]), 2, 3, normalizer_fn=slim.batch_norm, scope="conv")
            outputs = slim.max_pool2d(outputs, 2, scope="pool")
        found = slim.utils.convert_collection_to_dict("ends", clear_collection=True)
        assert found["net_1/pool" if reuse else "net/pool"] is outputs
        return list(found)

    assert net(None) == ["net/conv", "net/pool"]
    assert net(True) == ["net/conv", "net_1/pool"]
    assert tf.get_collection("ends") == []


def test_aliases():
    x = tf.constant(1.0, name="x")
    assert slim.utils.gather_tensors_aliases([x]) == ["x"]
    slim.utils.append_tensor_alias(x, "a/")
    assert slim.utils.collect_named_outputs("ends", "b", x) is x
    assert slim.utils.collect_named_outputs(None, "c", x) is x
    assert slim.utils.get_tensor_aliases(x) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("n_positive_integers", (2, 3), (3, 3)),
        ("n_positive_integers", (2, [1, 2]), (1, 2)),
        ("n_positive_integers", (2, tf.TensorShape([2, 3])), (2, 3)),
        ("n_positive_integers", (2, [1]), None),
        ("n_positive_integers", (1, 0), None),
        ("n_positive_integers", (0, 1), None),
        ("two_element_tuple", (3,), (3, 3)),
        ("two_element_tuple", ([3, 4],), (3, 4)),
        ("two_element_tuple", ([3],), None),
        ("last_dimension", (tf.TensorShape([None, 4]),), 4),
        ("last_dimension", (tf.TensorShape([4, None]),), None),
        ("channel_dimension", (tf.TensorShape([1, 2, 3]), "channels_first"), 2),
        ("static_cond", (True, lambda: 1, lambda: 2), 1),
        ("smart_cond", (0, lambda: 1, lambda: 2), 2),
        ("constant_value", (5,), 5),
        ("constant_value", (None,), None),
    ],
)
def test_checks_of_arguments(name, arguments, expected):
    function = getattr(slim.utils, name)
    if expected is None:
        with pytest.raises(ValueError):
            function(*arguments)
    else:
        assert function(*arguments) == expected


def test_conditions_of_tensors():
    assert slim.utils.smart_cond(tf.constant(True), lambda: "yes", lambda: "no") == "yes"
    fed = tf.placeholder_with_default(False, [])
    assert run(slim.utils.smart_cond(fed, lambda: tf.constant(1), lambda: tf.constant(2))) == 2
    assert slim.utils.constant_value(fed) is None


# -- evaluation ------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of ``scale`` = 3 at step 7."""
    with tf.Graph().as_default():
        tf.get_variable("scale", [], initializer=tf.constant_initializer(3.0))
        step = tf.train.get_or_create_global_step()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            step.load(7, session)
            return tf.train.Saver().save(session, str(tmp_path / "model.ckpt"), 7)


def evaluated():
    scale = tf.get_variable("scale", [])
    tf.train.get_or_create_global_step()
    value, update = tf.metrics.mean(scale * tf.ones([4]))
    counter = tf.get_variable("runs", [], tf.int32, tf.zeros_initializer(), collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.summary.scalar("mean", value)
    return [value, counter], [update, tf.assign_add(counter, 1)]


def test_a_checkpoint_is_evaluated_once(checkpoint, tmp_path):
    final, update = evaluated()
    result = slim.evaluation.evaluate_once(
        "", checkpoint, str(tmp_path / "eval"), num_evals=5, eval_op=update, final_op=final
    )
    assert list(result) == [3.0, 5]
    (path,) = (tmp_path / "eval").iterdir()
    events = list(tf.train.summary_iterator(str(path)))
    (told,) = [(event.step, value.simple_value) for event in events for value in event.summary.value]
    assert told == (7, 3.0)


def test_new_checkpoints_are_evaluated(checkpoint, tmp_path):
    final, update = evaluated()
    arguments = {"num_evals": 2, "eval_op": update, "final_op": final, "summary_op": None}
    result = slim.evaluation.evaluation_loop(
        "", str(tmp_path), str(tmp_path / "eval"), eval_interval_secs=0, max_number_of_evaluations=1, **arguments
    )
    assert list(result) == [3.0, 2] and not (tmp_path / "eval").exists()
    assert tf.contrib.training.evaluate_repeatedly(str(tmp_path / "none"), final_ops=final, timeout=0) is None


def test_it_is_found_under_tensorflow_s_paths():
    from tfray.programs.tensorflow_modules import table

    for name in ("tfexample_decoder", "dataset", "dataset_data_provider", "parallel_reader", "prefetch_queue"):
        assert table()[f"contrib.slim.python.slim.data.{name}"] == {"*": f"contrib.slim.{name}"}


@pytest.mark.parametrize("printed", [False, True])
def test_summaries_with_prefixes(printed):
    slim = tf.contrib.slim
    image = tf.zeros([1, 2, 2, 1])
    made = [
        slim.summaries.add_scalar_summary(tf.constant(3.0), "score", "eval", printed),
        slim.summaries.add_zero_fraction_summary(tf.constant([0.0, 1.0], name="half"), print_summary=printed),
        *slim.summaries.add_histogram_summaries([tf.constant([1.0], name="one")], "of"),
        slim.summaries.add_image_summary(image, "picture", print_summary=printed),
    ]
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == made
    with tf.Session() as session:
        merged = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    values = {value.tag: value.simple_value for value in merged.value}
    assert list(values) == ["eval/score", "Fraction_of_Zero_Values/half", "of/one", "picture/image/0"]
    assert (values["eval/score"], values["Fraction_of_Zero_Values/half"]) == (3, 0.5)
