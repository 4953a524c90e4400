"""Arguments are checked when they are given: what does not fit is named, with its value and what is expected."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import Count, OneOf, Positive, Range, Seconds, checked


class Shape:
    """Something of the program's own."""


@checked
@dataclass(frozen=True)
class Settings:
    whole: int = 0
    positive: Positive = 1
    count: Count | None = None
    seconds: Seconds = 1.0
    part: Annotated[float, Range(above=0, below=1)] = 0.5
    flag: bool = False
    text: str = ""
    mode: Annotated[str, OneOf(("sync", "async"))] = "sync"
    pair: Positive | tuple[Positive, Positive] = 1
    names: Sequence[str] = ()
    numbers: Collection[int] = ()
    amounts: Mapping[str, float] | None = None
    call: Callable[[int], None] | None = None
    shape: Shape | None = None
    free: Any = None


SHAPE = Shape()


@pytest.mark.parametrize(
    ("name", "given_value", "taken"),
    [
        ("whole", np.int64(-3), -3),
        ("whole", np.array(7), 7),
        ("count", None, None),
        ("count", np.uint8(0), 0),
        ("seconds", 2, 2),
        ("seconds", np.float32(0.5), 0.5),
        ("flag", np.True_, True),
        ("flag", 0, False),
        ("pair", [2, np.int32(3)], (2, 3)),
        ("names", ["a", "b"], ["a", "b"]),
        ("numbers", range(1, 1 << 60), range(1, 1 << 60)),
        ("numbers", {1, 2}, {1, 2}),
        ("numbers", np.arange(3), [0, 1, 2]),
        ("amounts", {"a": np.float64(1.5)}, {"a": 1.5}),
        ("call", len, len),
        ("shape", SHAPE, SHAPE),
        ("free", SHAPE, SHAPE),
    ],
)
def test_what_fits_is_taken_as_pythons_own_kind(name, given_value, taken):
    found = getattr(Settings(**{name: given_value}), name)
    assert found == taken and type(found) is type(taken)


@pytest.mark.fault(
    "Configuration",
    "A value of a configuration has a wrong type, or is out of range, NaN or negative.",
    happens="`tf.errors.InvalidArgumentError` at once, with the field, its value and what is expected.",
    promise="No value without meaning is accepted, and no internal error is shown in its place.",
)
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("whole", True, "an integer, got True"),
        ("whole", np.True_, "an integer"),
        ("whole", 1.0, "an integer, got 1.0"),
        ("whole", "5", "an integer, got '5'"),
        ("whole", None, "an integer, got None"),
        ("positive", 0, "an integer of at least 1, got 0"),
        ("count", -1, "an integer of at least 0 or None, got -1"),
        ("seconds", math.nan, "a finite number above 0, got nan"),
        ("seconds", np.float32("inf"), "a finite number above 0"),
        ("seconds", 1j, "a finite number"),
        ("part", 1.0, "a finite number above 0 and below 1, got 1.0"),
        ("flag", "no", "True or False, got 'no'"),
        ("flag", 2, "True or False"),
        ("text", b"a", "a string"),
        ("mode", "eventually", "'sync' or 'async', got 'eventually'"),
        ("mode", [], "'sync' or 'async'"),
        ("pair", (1, 2, 3), "an integer of at least 1 or a tuple"),
        ("names", "abc", "a sequence"),
        ("names", [1], "a sequence"),
        ("numbers", {"a"}, "a sequence"),
        ("amounts", {"a": math.nan}, "a mapping"),
        ("amounts", {1: 1.0}, "a mapping"),
        ("amounts", [], "a mapping"),
        ("call", 5, "a function or None"),
        ("shape", Shape, "a Shape or None"),
        ("whole", "x" * 1000, "... \\(a str\\)$"),
    ],
)
def test_what_does_not_fit_is_named_with_its_value_and_what_is_expected(name, value, expected):
    with pytest.raises(InvalidArgumentError, match=f"^Settings: {name} must be .*{expected}") as caught:
        Settings(**{name: value})
    assert len(str(caught.value)) < 300


def test_what_needs_no_conversion_is_taken_itself():
    names, amounts = ["a"], {"a": 1.5}
    settings = Settings(names=names, amounts=amounts)
    assert settings.names is names and settings.amounts is amounts


def test_functions_and_methods_are_named_and_keep_their_signature():
    @checked
    def area(width: Positive, height: Positive = 1, *, scale: Seconds = 1.0) -> float:
        return width * height * scale

    assert area(2, 3, scale=np.float32(2)) == 12.0
    assert str(inspect.signature(area)).startswith("(width: 'Positive', height")
    with pytest.raises(InvalidArgumentError, match=r"^area\(\): height must be .* got -1"):
        area(2, -1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'width'"):
        area()


JUNK = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        1.5,
        math.nan,
        math.inf,
        "",
        "5",
        b"5",
        [],
        {},
        (),
        object(),
        np.int64(3),
        np.float32(2),
        len,
    ]
)
NOT_CHECKED = ("scheduling_strategy", "experimental_distribute")
"""Ray knows what the first may be; the second has no attribute of that name, as in TensorFlow."""

CONFIGURATIONS = [
    tf.train.ScalingConfig,
    tf.train.RunConfig,
    tf.train.ModelSpec,
    tf.train.InputContext,
    tf.JobSpec,
    tf.estimator.RunConfig,
]


@pytest.mark.fault(
    "Configuration",
    "A value of a configuration has a wrong type, or is out of range, NaN or negative.",
    happens="`tf.errors.InvalidArgumentError` at once, with the field, its value and what is expected.",
    promise="No value without meaning is accepted, and no internal error is shown in its place.",
)
@pytest.mark.parametrize("make", CONFIGURATIONS, ids=lambda make: make.__name__)
@settings(deadline=None)
@given(data=st.data())
def test_a_configuration_is_made_or_says_which_field_is_wrong(make, data):
    names = list(inspect.signature(make).parameters)
    fields = data.draw(st.dictionaries(st.sampled_from(names), JUNK, max_size=3))
    required = [name for name, each in inspect.signature(make).parameters.items() if each.default is each.empty]
    fields = dict.fromkeys(required, None) | fields
    try:
        made = make(**fields)
    except InvalidArgumentError as error:
        assert any(name in error.message for name in names)
    else:
        for name in fields:
            found = None if name in NOT_CHECKED else getattr(made, name)
            assert not isinstance(found, np.generic) and found != math.inf and found == found


def model(features):
    """A model function, which is never called."""


@pytest.mark.fault(
    "Configuration",
    "Something else is given where a configuration is expected.",
    happens="`tf.errors.InvalidArgumentError` with the argument and what was given.",
    promise="It is found at once, not in a step.",
)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.train.Trainer(len, len, tf.train.RunConfig()), "scaling must be a ScalingConfig or None, got Run"),
        (lambda: tf.train.Trainer(len, 5), "input_fn must be a function, got 5"),
        (lambda: tf.train.array_input([1.0], [1.0], -4), "batch_size must be an integer of at least 1, got -4"),
        (lambda: tf.train.array_input([1.0], [1.0], 1, epochs=1.5), "epochs"),
        (lambda: tf.train.dataset_input(None, 4), "make_dataset must be a function, got None"),
        (lambda: tf.Cluster({"worker": 1.5}), "jobs must be a mapping"),
        (lambda: tf.Cluster({"worker": 1}, start_timeout_s="5"), "start_timeout_s"),
        (lambda: tf.Session(config={}), "config must be a ConfigProto or None, got {}"),
        (lambda: tf.Session(graph="g"), "graph must be a Graph or None"),
        (lambda: tf.train.Saver([], max_to_keep=1.5), "max_to_keep must be an integer"),
        (lambda: tf.train.LoggingTensorHook([], every_n_iter=0), "every_n_iter must be a number of at least 1"),
        (lambda: tf.train.StopAtStepHook(num_steps="5"), "num_steps must be a number"),
        (lambda: tf.train.Supervisor(save_model_secs=math.nan), "save_model_secs must be a finite number"),
        (lambda: tf.train.MonitoredTrainingSession(hooks=5), "hooks must be a sequence"),
        (lambda: tf.train.MonitoredTrainingSession(save_checkpoint_secs="5"), "save_checkpoint_secs must be"),
        (lambda: tf.train.AdamOptimizer("fast"), "learning_rate must be a finite number, a Tensor, a Variable or a f"),
        (lambda: tf.train.FtrlOptimizer(0.1, initial_accumulator_value=None), "initial_accumulator_value must be"),
        (lambda: tf.train.DynamicEmbedding("d", -1, 3), "dim must be an integer of at least 1, got -1"),
        (lambda: tf.train.batch([tf.constant(1.0)], -4), "batch_size must be an integer of at least 1 or a Tensor"),
        (lambda: tf.train.start_queue_runners(5), "sess must be a session, got 5"),
        (lambda: tf.train.Coordinator(5), "clean_stop_exception_types must be a sequence"),
        (lambda: tf.fixed_size_partitioner(1.5), "num_shards must be an integer of at least 1, got 1.5"),
        (lambda: tf.FIFOQueue("5", [tf.float32]), "capacity must be a number, got '5'"),
        (lambda: tf.random_normal_initializer(stddev="wide"), "stddev must be"),
        (lambda: tf.variance_scaling_initializer(mode="x"), "mode must be 'fan_in', 'fan_out' or 'fan_avg', got 'x'"),
        (lambda: tf.set_random_seed(1.5), "seed must be an integer or None, got 1.5"),
        (lambda: tf.estimator.RunConfig(save_summary_steps=-1), "save_summary_steps is -1, expected 0 or more"),
        (
            lambda: tf.estimator.RunConfig(keep_checkpoint_every_n_hours=math.nan),
            "keep_checkpoint_every_n_hours is nan",
        ),
        (
            lambda: tf.estimator.RunConfig(trainer=tf.train.RunConfig()),
            "trainer is .*expected a tf.train.ScalingConfig",
        ),
        (lambda: tf.estimator.Estimator(5), "model_fn must be a function or None, got 5"),
        (lambda: tf.estimator.Estimator(model, 0.5), "model_dir must be .*, got 0.5"),
        (lambda: tf.estimator.Estimator(model, config={}), "config must be a RunConfig or None, got {}"),
        (lambda: tf.estimator.Estimator(model, warm_start_from=5), "warm_start_from"),
        (lambda: tf.estimator.TrainSpec(5), "input_fn is 5"),
        (lambda: tf.estimator.TrainSpec(len, max_steps=math.nan), "max_steps is nan"),
        (lambda: tf.estimator.TrainSpec(len, hooks=tf.constant(1.0)), "hooks is <tf.Tensor"),
        (lambda: tf.estimator.EvalSpec(len, steps="5"), "steps is '5'"),
        (lambda: tf.estimator.EvalSpec(len, exporters=5), "exporters is 5"),
        (lambda: tf.estimator.EstimatorSpec("train", loss=5, train_op=tf.no_op()), "loss is 5"),
        (lambda: tf.estimator.BestExporter(compare_fn=[None]), "compare_fn must be a function, got"),
        (
            lambda: tf.estimator.LatestExporter("a", len, exports_to_keep=()),
            "exports_to_keep must be an integer or None",
        ),
        (lambda: tf.estimator.RegressionHead("3"), "label_dimension must be an integer, got '3'"),
        (lambda: tf.estimator.MultiClassHead(3, loss_reduction={}), "loss_reduction must be a string, got {}"),
        (lambda: tf.estimator.DNNClassifier(5, []), "hidden_units must be a sequence.*, got 5"),
        (lambda: tf.estimator.DNNRegressor([2], [], dropout="half"), "dropout must be .*number.*, got 'half'"),
        (lambda: tf.estimator.LinearClassifier(5), "feature_columns must be a sequence.*, got 5"),
        (lambda: tf.estimator.DNNLinearCombinedRegressor(dnn_hidden_units=3), "dnn_hidden_units must be a sequence"),
        (lambda: tf.estimator.BaselineRegressor(label_dimension=[1]), "label_dimension must be an integer"),
        (lambda: tf.estimator.classifier_parse_example_spec([], 5), "label_key must be a string, got 5"),
        (lambda: tf.estimator.classifier_parse_example_spec([], "a", label_dtype=-1), "label_dtype: -1 is not"),
    ],
)
def test_what_takes_a_configuration_says_what_is_wrong_with_it(make, message):
    with pytest.raises((InvalidArgumentError, TypeError, ValueError), match=message):
        make()


def checked_functions():
    """What is checked, in all modules, by name."""
    found = {}
    for module in pkgutil.walk_packages(tf.__path__, "tfray."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            function = value.__init__ if isinstance(value, type) else value
            if hasattr(function, "expected"):
                found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


CHECKED = checked_functions()


@pytest.mark.parametrize("name", CHECKED)
def test_the_annotations_of_what_is_checked_can_be_read(name):
    signature, rules = CHECKED[name].expected()
    assert set(rules) & set(signature.parameters)
