"""State that programs say themselves how to save: `SaveableObject`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.training.checkpoints.saveable_objects import BaseSaverBuilder, SaveableObject, SaveSpec


class Doubled(SaveableObject):
    """A variable that is saved as twice its value."""

    def __init__(self, variable, name, slice_spec=""):
        super().__init__(variable, [SaveSpec(variable * 2.0, slice_spec, name)], name)

    def restore(self, restored_tensors, restored_shapes):
        (value,) = restored_tensors
        value = value if restored_shapes is None else tf.reshape(value, restored_shapes[0])
        return tf.assign(self.op, value / 2.0).op


class Split(SaveableObject):
    """A variable that is saved as its sign and its size; the size is made when it is asked for."""

    def __init__(self, variable):
        size = SaveSpec(lambda: tf.abs(variable), "", "size", dtype=tf.float32)
        super().__init__(variable, [SaveSpec(tf.sign(variable), "", "sign"), size], "split")

    def restore(self, restored_tensors, restored_shapes):
        assert restored_shapes is None
        return tf.assign(self.op, restored_tensors[0] * restored_tensors[1])


@pytest.fixture
def values(session):
    first = tf.Variable([1.0, -2.0], name="first")
    second = tf.Variable(3, name="second")
    session.run(tf.global_variables_initializer())
    return first, second


@pytest.mark.parametrize("write_format", ["tfray", "tensorflow"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_objects_are_saved_and_restored_as_they_say(session, values, tmp_path, write_format, asynchronous):
    first, second = values
    saver = tf.train.Saver(
        [second, Doubled(first, "twice"), Split(first)], write_format=write_format, asynchronous=asynchronous
    )
    path = saver.save(session, tmp_path / "model")
    session.run([first.assign([0.0, 0.0]), second.assign(0)])
    saver.wait() if asynchronous else None
    reader = tf.train.load_checkpoint(path)
    assert sorted(reader.get_variable_to_shape_map()) == ["second", "sign", "size", "twice"]
    np.testing.assert_array_equal(reader.get_tensor("twice"), [2.0, -4.0])
    np.testing.assert_array_equal(reader.get_tensor("sign"), [1.0, -1.0])
    np.testing.assert_array_equal(reader.get_tensor("size"), [1.0, 2.0])
    saver.restore(session, path)
    assert session.run(second) == 3
    np.testing.assert_array_equal(session.run(first), [1.0, -2.0])


def test_objects_of_the_collection_are_saved_by_default(session, values, tmp_path):
    first, _ = values
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Doubled(first, "twice"))
    path = tf.train.Saver().save(session, tmp_path / "model")
    assert tf.train.list_variables(path) == [("first", [2]), ("second", []), ("twice", [2])]


def test_objects_save_parts_and_take_other_shapes(session, values, tmp_path):
    first, _ = values
    other = tf.Variable([0.0, 0.5], name="other")
    session.run(other.initializer)
    parts = tf.train.Saver([Doubled(first, "whole", "4 2,2"), Doubled(other, "whole", "4 0,2")])
    path = parts.save(session, tmp_path / "parts")
    np.testing.assert_array_equal(tf.train.load_checkpoint(path).get_tensor("whole"), [0.0, 1.0, 2.0, -4.0])
    session.run([first.assign([7.0, 7.0]), other.assign([7.0, 7.0])])
    parts.restore(session, path)
    np.testing.assert_array_equal(session.run([first, other]), [[1.0, -2.0], [0.0, 0.5]])
    saved = tf.train.Saver({"twice": Doubled(first, "twice")}).save(session, tmp_path / "model")
    column = tf.Variable([[0.0], [0.0]], name="column")
    tf.train.Saver([Doubled(column, "twice")], reshape=True).restore(session, saved)
    np.testing.assert_array_equal(session.run(column), [[1.0], [-2.0]])


def test_tensorflow_reads_what_saves_them(session, values, tmp_path):
    """The graph that is written has TensorFlow's operations; here they are read back and run."""
    first, second = values
    grows = tf.Variable([5.0], validate_shape=False, name="grows")
    session.run(grows.initializer)
    saver = tf.train.Saver([second, grows, Doubled(first, "twice")], write_format="tensorflow")
    path = saver.save(session, tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as other:
        imported = tf.train.import_meta_graph(f"{path}.meta")
        imported.restore(other, path)
        np.testing.assert_array_equal(other.run("first:0"), [1.0, -2.0])
        np.testing.assert_array_equal(other.run("grows:0"), [5.0])
        again = imported.save(other, tmp_path / "again")
    np.testing.assert_array_equal(tf.train.load_checkpoint(again).get_tensor("twice"), [2.0, -4.0])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda first: Doubled(first, "second"), "same name: second"),
        (lambda first: Doubled(first, "whole", "4 2,3"), r"'4 2,3' is \[3\], and the tensor \(2,\)"),
        (lambda first: Doubled(first, "whole", "4 a"), "'4 a' is no shape and slice"),
        (lambda first: SaveableObject(first, [SaveSpec(first, "", "x")], "x"), "abstract method"),
        (lambda first: SaveableObject(first, [SaveSpec(lambda: first, "", "x")], "x"), "needs dtype"),
    ],
)
def test_a_wrong_object_is_refused_when_the_saver_is_made(session, values, made, message):
    first, second = values
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        tf.train.Saver([second, made(first)])


def test_the_builder_has_the_classes():
    assert (BaseSaverBuilder.SaveSpec, BaseSaverBuilder.SaveableObject) == (SaveSpec, SaveableObject)
    assert not SaveableObject(None, [], "x").optional_restore
