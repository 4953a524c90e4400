"""`tensorflow.python.keras.testing_utils` and ``keras_parameterized``: small models, and what holds of every layer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from absl.testing import parameterized

import tfray as tf
from tfray.library.platform.testing import TestCase as GraphTestCase
from tfray.programs.graph_mode_tests import deprecated_graph_mode_only, run_v2_only

__all__ = [
    "TestCase", "experimental_run_tf_function_scope", "get_expected_metric_variable_names", "get_model_from_layers",
    "get_model_type", "get_multi_io_model", "get_small_functional_mlp", "get_small_mlp", "get_small_sequential_mlp",
    "get_small_subclass_mlp", "get_small_subclass_mlp_with_custom_build", "get_test_data", "get_v2_optimizer",
    "layer_test", "model_type_scope", "run_all_keras_modes", "run_eagerly_scope", "run_with_all_model_types",
    "should_run_eagerly", "should_run_tf_function",
]  # fmt: skip

_MODEL_TYPES: Final = ("functional", "sequential", "subclass")
_model_type: list[str] = []


# -- kinds of models ---------------------------------------------------------------------------------------


@contextmanager
def model_type_scope(value: str) -> Iterator[None]:
    """Within this, models are made in one way: ``functional``, ``sequential``, ``subclass``, or
    ``subclass_custom_build``."""
    _model_type.append(value)
    try:
        yield
    finally:
        _model_type.pop()


def get_model_type() -> str:
    """The way in which models are made. Raises `ValueError` outside of `model_type_scope`."""
    if not _model_type:
        raise ValueError(
            "Cannot call `get_model_type()` outside of a `model_type_scope()` or `run_with_all_model_types`"
        )
    return _model_type[-1]


@contextmanager
def run_eagerly_scope(value: bool) -> Iterator[None]:
    """Nothing: all runs in a graph."""
    yield


experimental_run_tf_function_scope = run_eagerly_scope


def should_run_eagerly() -> bool:
    """False."""
    return False


def should_run_tf_function() -> bool:
    """False."""
    return False


# -- models ------------------------------------------------------------------------------------------------


class _OfLayers(tf.keras.Model):
    """A model that calls layers one by one, which a function gives when it is built."""

    def __init__(self, make: Callable[[], Sequence[Any]], at_once: bool, name: str | None = None) -> None:
        super().__init__(name=name)
        self._make = make
        self._is_made = at_once
        if at_once:
            self._keep()

    def _keep(self) -> None:
        self._count = len(layers := self._make())
        for place, layer in enumerate(layers):
            setattr(self, f"layer{place}", layer)

    def build(self, input_shape: Any = None) -> None:
        if not self._is_made:
            self._keep()
        self._is_made = True
        super().build(input_shape)

    def call(self, inputs: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return _called([getattr(self, f"layer{place}") for place in range(self._count)], inputs)


def _called(layers: Iterable[Any], inputs: Any) -> Any:
    return functools.reduce(lambda value, layer: layer(value), layers, inputs)


def get_model_from_layers(
    layers: Sequence[Any], input_shape: Any = None, input_dtype: Any = None, name: str | None = None
) -> Any:
    """A model of the kind of `get_model_type` that calls layers one by one.

    Args:
        layers: The layers.
        input_shape: Shape of an example.
        input_dtype: Dtype of the input.
        name: Name of the model.

    Raises:
        ValueError: A functional model has no `input_shape`, or there is no such kind.
    """
    kind = get_model_type()
    if kind in ("subclass", "subclass_custom_build"):
        return _OfLayers(lambda: layers, kind == "subclass", name)
    if kind == "sequential":
        first = [tf.keras.layers.InputLayer(input_shape=input_shape, dtype=input_dtype)] if input_shape else []
        return tf.keras.Sequential([*first, *layers], name=name)
    if kind != "functional":
        raise ValueError(f"Unknown model type {kind}")
    if not input_shape:
        raise ValueError("Cannot create a functional model from layers with no input shape.")
    inputs = tf.keras.Input(shape=input_shape, dtype=input_dtype)
    return tf.keras.Model(inputs, _called(layers, inputs), name=name)


def _mlp_layers(num_hidden: int, num_classes: int, **first: Any) -> list[Any]:
    dense = tf.keras.layers.Dense
    activation = "sigmoid" if num_classes == 1 else "softmax"
    return [dense(num_hidden, activation="relu", **first), dense(num_classes, activation=activation)]


def get_small_sequential_mlp(num_hidden: int, num_classes: int, input_dim: int | None = None) -> Any:
    """A sequential model of two dense layers."""
    return tf.keras.Sequential(_mlp_layers(num_hidden, num_classes, **({"input_dim": input_dim} if input_dim else {})))


def get_small_functional_mlp(num_hidden: int, num_classes: int, input_dim: int) -> Any:
    """A functional model of two dense layers."""
    inputs = tf.keras.Input(shape=(input_dim,))
    return tf.keras.Model(inputs, _called(_mlp_layers(num_hidden, num_classes), inputs))


def get_small_subclass_mlp(num_hidden: int, num_classes: int) -> Any:
    """A model with a method `call` of two dense layers."""
    return _OfLayers(lambda: _mlp_layers(num_hidden, num_classes), True)


def get_small_subclass_mlp_with_custom_build(num_hidden: int, num_classes: int) -> Any:
    """A model with methods `build` and `call` of two dense layers."""
    return _OfLayers(lambda: _mlp_layers(num_hidden, num_classes), False)


def get_small_mlp(num_hidden: int, num_classes: int, input_dim: int) -> Any:
    """A model of the kind of `get_model_type` of two dense layers."""
    makers: dict[str, Callable[[], Any]] = {
        "functional": lambda: get_small_functional_mlp(num_hidden, num_classes, input_dim),
        "sequential": lambda: get_small_sequential_mlp(num_hidden, num_classes, input_dim),
        "subclass": lambda: get_small_subclass_mlp(num_hidden, num_classes),
        "subclass_custom_build": lambda: get_small_subclass_mlp_with_custom_build(num_hidden, num_classes),
    }
    return makers[get_model_type()]()


class _Branched(tf.keras.Model):
    """A model of two branches, with what both begin or end with."""

    def __init__(
        self, a: Sequence[Any], b: Sequence[Any], begin: Sequence[Any] | None, end: Sequence[Any] | None
    ) -> None:
        super().__init__()
        self.branch_a, self.branch_b = list(a), list(b)
        self.shared_input, self.shared_output = begin and list(begin), end and list(end)

    def call(self, inputs: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        both = (_called(self.shared_input, inputs),) * 2 if self.shared_input else inputs
        outputs = [_called(self.branch_a, both[0]), _called(self.branch_b, both[1])]
        return _called(self.shared_output, outputs) if self.shared_output else outputs


def get_multi_io_model(
    branch_a: Sequence[Any],
    branch_b: Sequence[Any],
    shared_input_branch: Sequence[Any] | None = None,
    shared_output_branch: Sequence[Any] | None = None,
) -> Any:
    """A model of two branches, of the kind of `get_model_type`.

    Args:
        branch_a: Layers; the first is an input, unless there is a `shared_input_branch`.
        branch_b: Likewise.
        shared_input_branch: Layers before both branches, of which the first is an input.
        shared_output_branch: Layers behind both, of which the first takes two tensors.

    Raises:
        ValueError: Models are sequential, or there is no such kind.
    """
    kind = get_model_type()
    if kind not in ("functional", "subclass", "subclass_custom_build"):
        raise ValueError(f"Cannot use `get_multi_io_model` to construct {kind} models")
    if shared_input_branch:
        inputs, begin, a, b = shared_input_branch[0], shared_input_branch[1:], branch_a, branch_b
        ends = [_called(begin, inputs)] * 2 if kind == "functional" else []
    else:
        inputs, begin, a, b = [branch_a[0], branch_b[0]], None, branch_a[1:], branch_b[1:]
        ends = inputs
    if kind != "functional":
        return _Branched(a, b, begin, shared_output_branch)
    outputs: Any = [_called(a, ends[0]), _called(b, ends[1])]
    return tf.keras.Model(inputs, _called(shared_output_branch, outputs) if shared_output_branch else outputs)


# -- data, optimizers, metrics -----------------------------------------------------------------------------


def get_test_data(
    train_samples: int,
    test_samples: int,
    input_shape: Sequence[int],
    num_classes: int,
    random_seed: int | None = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Points about one centre for each class: ``(x, y)`` for training, and for a test."""
    if random_seed is not None:
        np.random.seed(random_seed)
    count = train_samples + test_samples
    centres = 2 * num_classes * np.random.random((num_classes, *input_shape))
    y = np.random.randint(0, num_classes, size=(count,))
    x = (centres[y] + np.random.normal(size=(count, *input_shape))).astype(np.float32)
    return (x[:train_samples], y[:train_samples]), (x[train_samples:], y[train_samples:])


def get_v2_optimizer(name: str, **kwargs: Any) -> Any:
    """An optimizer of Keras by its name. Raises `ValueError` for another name."""
    found = {"adadelta": "Adadelta", "adagrad": "Adagrad", "adam": "Adam", "adamax": "Adamax", "nadam": "Nadam"}
    found |= {"rmsprop": "RMSprop", "sgd": "SGD"}
    if name not in found:
        raise ValueError(f"Could not find requested v2 optimizer: {name}\nValid choices: {list(found)}")
    return getattr(tf.keras.optimizers, found[name])(**kwargs)


def get_expected_metric_variable_names(var_names: Iterable[str], name_suffix: str = "") -> list[str]:
    """The names of the variables of metrics."""
    return [f"{name}{name_suffix}:0" for name in var_names]


# -- layers ------------------------------------------------------------------------------------------------


def layer_test(
    layer_cls: Any,
    kwargs: Any = None,
    input_shape: Any = None,
    input_dtype: Any = None,
    input_data: Any = None,
    expected_output: Any = None,
    expected_output_dtype: Any = None,
    expected_output_shape: Any = None,
    validate_training: bool = True,
    adapt_data: Any = None,
) -> Any:
    """Check a layer of one input and one output: shapes, dtype, weights, configuration, training, and its values.

    Args:
        layer_cls: The class.
        kwargs: Arguments of its constructor.
        input_shape: Shape of a batch; None are sizes of any number.
        input_dtype: Dtype of the batch.
        input_data: The batch; random numbers when None.
        expected_output: What the layer must give.
        expected_output_dtype: Dtype of the output; that of the input when None.
        expected_output_shape: Shape of the output.
        validate_training: Train too.
        adapt_data: What its method `adapt` is given, if there is anything.

    Returns:
        What the layer gives.

    Raises:
        AssertionError: Something is not as expected.
    """
    kwargs, x = dict(kwargs or {}), input_data
    if x is None:
        sizes = [np.random.randint(1, 4) if size is None else size for size in input_shape]
        input_dtype = input_dtype or "float32"
        x = (10 * np.random.random(sizes)).astype(input_dtype)
        x = x - np.asarray(5, x.dtype) if str(input_dtype)[:5] == "float" else x
    shape, dtype = tuple(input_shape or x.shape), tf.as_dtype(input_dtype or x.dtype)
    layer = layer_cls(**kwargs)
    if adapt_data is not None:
        layer.adapt(adapt_data)
    layer.set_weights(layer.get_weights())
    inputs = tf.keras.Input(shape=shape[1:], dtype=dtype.name)
    outputs = layer(inputs)
    assert outputs.dtype.base_dtype.name == tf.as_dtype(expected_output_dtype or dtype).name, outputs.dtype
    wanted = [shape if expected_output_shape is None else None, expected_output_shape]
    model = tf.keras.Model(inputs, outputs)
    found = model.predict(x)
    _check_shape(found, layer.compute_output_shape(tf.TensorShape(wanted[0] or shape)))
    _check_shape(found, expected_output_shape)
    _check_copy(tf.keras.Model, model, x, found)
    if validate_training:
        model.compile("rmsprop", "mse", weighted_metrics=["acc"])
        model.train_on_batch(x, found)
    again = layer_cls.from_config({**layer.get_config(), "batch_input_shape": shape})
    if adapt_data is not None:
        again.adapt(adapt_data)
    model = tf.keras.Sequential([tf.keras.layers.InputLayer(input_shape=shape[1:], dtype=dtype.name), again])
    found = model.predict(x)
    _check_shape(found, model.compute_output_shape(tf.TensorShape(shape)))
    if expected_output is not None:
        np.testing.assert_allclose(found, expected_output, rtol=1e-3, atol=1e-6)
    _check_copy(tf.keras.Sequential, model, x, found)
    return found


def _check_shape(found: Any, expected: Any) -> None:
    expected = tf.TensorShape(expected)
    if not expected.is_compatible_with(found.shape):
        raise AssertionError(f"the layer gives values of shape {found.shape}, and says {expected}")


def _check_copy(kind: Any, model: Any, x: Any, found: Any) -> None:
    """Check that a model of the same configuration and weights gives the same values."""
    copy = kind.from_config(model.get_config())
    if model.weights:
        copy.set_weights(model.get_weights())
        np.testing.assert_allclose(copy.predict(x), found, rtol=1e-3, atol=1e-6)


# -- cases -------------------------------------------------------------------------------------------------


class TestCase(GraphTestCase, parameterized.TestCase):
    """A test case with parameters, after which Keras's own graph and session are new."""

    def tearDown(self) -> None:
        tf.keras.backend.clear_session()
        super().tearDown()


def run_with_all_model_types(test_or_class: Any = None, exclude_models: Any = None) -> Any:
    """Run a test, or each of a class, with models of all kinds.

    Args:
        test_or_class: The test.
        exclude_models: Kinds that are left out, or one.
    """
    left_out = [exclude_models] if isinstance(exclude_models, str) else list(exclude_models or ())
    kinds = [kind for kind in _MODEL_TYPES if kind not in left_out]

    def each_kind(test: Any) -> Any:
        @functools.wraps(test)
        def tested(self: Any, *args: Any, **kwargs: Any) -> None:
            for kind in kinds:
                with self.subTest(model_type=kind), tf.Graph().as_default(), model_type_scope(kind):
                    test(self, *args, **kwargs)

        return tested

    return _decorated(test_or_class, each_kind)


def run_all_keras_modes(
    test_or_class: Any = None, config: Any = None, always_skip_v1: bool = False, always_skip_eager: bool = False
) -> Any:
    """Run a test, or each of a class, in a graph of its own: there is no other mode.

    Args:
        test_or_class: The test.
        config: Not used.
        always_skip_v1: Skip it: it is one of TensorFlow 2.
        always_skip_eager: Not used.
    """
    return _decorated(test_or_class, run_v2_only if always_skip_v1 else deprecated_graph_mode_only)


def _decorated(test_or_class: Any, decorate: Callable[[Any], Any]) -> Any:
    def decorated(each: Any) -> Any:
        if not isinstance(each, type):
            return [decorate(test) for test in each] if isinstance(each, Iterable) else decorate(each)
        for name, value in list(vars(each).items()):
            if callable(value) and name.startswith("test"):
                setattr(each, name, decorate(value))
        return each

    return decorated if test_or_class is None else decorated(test_or_class)
