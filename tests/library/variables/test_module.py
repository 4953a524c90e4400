"""`tf.Module`: what is found among the attributes of an object, in the order that TensorFlow documents."""

from __future__ import annotations

import pytest

import tfray as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(tf.ones([inputs, outputs]), name="w")
            self.b = tf.Variable(tf.zeros([outputs]), name="b", trainable=False)

    @tf.Module.with_name_scope
    def __call__(self, x):
        """Apply it."""
        return tf.matmul(x, self.w, name="product") + self.b


class TwoLayers(tf.Module):
    def __init__(self):
        super().__init__()
        with self.name_scope:
            self.layers = {"b": Dense(2, 3), "a": [Dense(3, 2, name="second")]}
        self.again = self.layers["b"]
        self.factor = tf.Variable(2.0, name="factor")
        self.size = 3


def names(variables):
    return [variable.op.name for variable in variables]


def test_variables_and_submodules_are_found():
    model = TwoLayers()
    first, second = model.layers["b"], model.layers["a"][0]
    assert model.submodules == (first, second)
    assert names(model.variables) == [
        "factor",
        "two_layers/dense/b",
        "two_layers/dense/w",
        "two_layers/second/b",
        "two_layers/second/w",
    ]
    assert names(model.trainable_variables) == ["factor", "two_layers/dense/w", "two_layers/second/w"]
    assert (model.name, first.name, second.name) == ("two_layers", "dense", "second")


def test_everything_can_be_flattened_with_its_path():
    model = TwoLayers()
    found = dict(model._flatten(predicate=lambda leaf: isinstance(leaf, (tf.Variable, int)), with_path=True))
    assert found["factor",] is model.factor and found["size",] == 3
    assert found["layers", "a", 0, "w"] is model.layers["a"][0].w
    assert found["again", "w"] is found["layers", "b", "w"]
    assert len(list(model._flatten(recursive=False, predicate=lambda leaf: isinstance(leaf, tf.Variable)))) == 1


def test_methods_open_the_name_scope():
    layer = Dense(2, 2)
    assert layer(tf.ones([1, 2])).op.name == "dense/add"
    assert Dense.__call__.__doc__ == "Apply it."
    with layer.name_scope as scope:
        assert scope == "dense/"


def test_checkpoints_follow_modules(tmp_path):
    model = TwoLayers()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(model=model).save(str(tmp_path / "model"), session=session)
    saved = {name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name, _ in tf.train.list_variables(path)}
    assert {"model/factor", "model/again/w", "model/layers/a/0/b"} <= saved


@pytest.mark.parametrize("name", ["a/b", "1a", "", "a-b"])
def test_names_are_identifiers(name):
    with pytest.raises(ValueError, match="identifier"):
        tf.Module(name)


def test_a_class_may_leave_attributes_out():
    class Cached(tf.Module):
        _TF_MODULE_IGNORED_PROPERTIES = tf.Module._TF_MODULE_IGNORED_PROPERTIES.union(["_cache"])

    module = Cached()
    module.kept, module._cache = tf.Variable(1.0), tf.Variable(2.0)
    assert module.variables == (module.kept,)
