"""``tf.keras.backend``: the session of Keras models, the learning phase, settings, and functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tfray.framework import nest
from tfray.framework.graph import Tensor, get_default_graph, reset_default_graph
from tfray.framework.scopes import name_scope as name_scope
from tfray.framework.tensor_shape import TensorShape
from tfray.gradients import gradients as gradients_of
from tfray.keras.convolution_functions import (
    batch_normalization,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    depthwise_conv2d,
    local_conv1d,
    local_conv2d,
    moving_average_update,
    normalize_batch_in_training,
    pool2d,
    pool3d,
    resize_images,
    resize_volumes,
    separable_conv1d,
    separable_conv2d,
    spatial_2d_padding,
    spatial_3d_padding,
)
from tfray.keras.settings import (
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from tfray.keras.step_loop import rnn as rnn
from tfray.keras.tensor_functions import (
    abs,
    all,
    any,
    arange,
    argmax,
    argmin,
    batch_dot,
    batch_flatten,
    bias_add,
    binary_crossentropy,
    cast,
    cast_to_floatx,
    categorical_crossentropy,
    clip,
    concatenate,
    constant,
    cos,
    count_params,
    cumprod,
    cumsum,
    dot,
    dropout,
    dtype,
    elu,
    equal,
    exp,
    expand_dims,
    eye,
    flatten,
    foldl,
    foldr,
    gather,
    greater,
    greater_equal,
    hard_sigmoid,
    identity,
    in_top_k,
    is_sparse,
    l2_normalize,
    less,
    less_equal,
    log,
    logsumexp,
    map_fn,
    max,
    maximum,
    mean,
    min,
    minimum,
    ndim,
    not_equal,
    one_hot,
    ones,
    ones_like,
    permute_dimensions,
    placeholder,
    pow,
    print_tensor,
    prod,
    random_binomial,
    random_normal,
    random_normal_variable,
    random_uniform,
    random_uniform_variable,
    relu,
    repeat,
    repeat_elements,
    reshape,
    reverse,
    round,
    shape,
    sigmoid,
    sign,
    sin,
    softmax,
    softplus,
    softsign,
    sparse_categorical_crossentropy,
    sqrt,
    square,
    squeeze,
    stack,
    std,
    stop_gradient,
    sum,
    switch,
    tanh,
    temporal_padding,
    tile,
    to_dense,
    transpose,
    truncated_normal,
    update,
    update_add,
    update_sub,
    var,
    variable,
    zeros,
    zeros_like,
)
from tfray.library.rnn.sequence_labels import ctc_batch_cost as ctc_batch_cost
from tfray.library.rnn.sequence_labels import ctc_decode as ctc_decode
from tfray.library.rnn.sequence_labels import ctc_label_dense_to_sparse as ctc_label_dense_to_sparse
from tfray.library.variables.kept_session import get_session as get_session
from tfray.library.variables.kept_session import initialize_in_session
from tfray.library.variables.kept_session import set_session as set_session
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.source_ops import placeholder_with_default

# fmt: off
__all__ = [
    "abs", "all", "any", "arange", "argmax", "argmin", "backend", "batch_dot", "batch_flatten", "batch_get_value",
    "batch_normalization", "batch_set_value", "bias_add", "binary_crossentropy", "cast", "cast_to_floatx",
    "categorical_crossentropy", "clear_session", "clip", "concatenate", "constant", "conv1d", "conv2d",
    "conv2d_transpose", "conv3d", "cos", "count_params", "ctc_batch_cost", "ctc_decode", "ctc_label_dense_to_sparse",
    "cumprod", "cumsum", "depthwise_conv2d", "dot", "dropout", "dtype", "elu", "epsilon", "equal", "eval", "exp",
    "expand_dims", "eye", "flatten", "floatx", "foldl", "foldr", "function", "gather", "get_session", "get_uid",
    "get_value", "gradients", "greater", "greater_equal", "hard_sigmoid", "identity", "image_data_format",
    "in_test_phase", "in_top_k", "in_train_phase", "int_shape", "is_keras_tensor", "is_sparse", "l2_normalize",
    "learning_phase", "learning_phase_scope", "less", "less_equal", "local_conv1d", "local_conv2d", "log",
    "logsumexp", "manual_variable_initialization", "map_fn", "max", "maximum", "mean", "min", "minimum",
    "moving_average_update", "name_scope", "ndim", "normalize_batch_in_training", "not_equal", "one_hot", "ones",
    "ones_like", "permute_dimensions", "placeholder", "pool2d", "pool3d", "pow", "print_tensor", "prod",
    "random_binomial", "random_normal", "random_normal_variable", "random_uniform", "random_uniform_variable", "relu",
    "repeat", "repeat_elements", "reset_uids", "reshape", "resize_images", "resize_volumes", "reverse", "rnn",
    "round", "separable_conv1d", "separable_conv2d", "set_epsilon", "set_floatx", "set_image_data_format",
    "set_learning_phase", "set_session", "set_value", "shape", "sigmoid", "sign", "sin", "softmax", "softplus",
    "softsign", "sparse_categorical_crossentropy", "spatial_2d_padding", "spatial_3d_padding", "sqrt", "square",
    "squeeze", "stack", "std", "stop_gradient", "sum", "switch", "symbolic_learning_phase", "tanh",
    "temporal_padding", "tile", "to_dense", "transpose", "truncated_normal", "update", "update_add", "update_sub",
    "var", "variable", "zeros", "zeros_like",
]
# fmt: on


def get_uid(prefix: str = "") -> int:
    """The next number, from 1, of names with this prefix in the current graph, such as of the layers ``dense_1``."""
    numbers: dict[str, int] = get_default_graph().extra("keras_uids", dict)
    numbers[prefix] = numbers.get(prefix, 0) + 1
    return numbers[prefix]


def learning_phase() -> Any:
    """A bool: whether the step trains. It is False unless `fit` feeds True or `set_learning_phase` has fixed it."""
    graph = get_default_graph()
    phases: dict[str, Any] = graph.extra("keras_learning_phase", dict)
    if "phase" not in phases:
        with graph.name_scope(None), graph.control_dependencies(None):
            phases["phase"] = placeholder_with_default(False, [], name="keras_learning_phase")
    return phases["phase"]


symbolic_learning_phase = learning_phase


def set_learning_phase(value: Any) -> None:
    """Fix the learning phase of the current graph: 0 or False to predict, 1 or True to train.

    Raises:
        ValueError: `value` is neither 0 nor 1.
    """
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    get_default_graph().extra("keras_learning_phase", dict)["phase"] = bool(value)


def phase_feed(training: bool) -> dict[Tensor, Any]:
    """The feed that sets the learning phase."""
    phase = learning_phase()
    return {phase: training} if isinstance(phase, Tensor) else {}


def backend() -> str:
    """``tensorflow``."""
    return "tensorflow"


def reset_uids() -> None:
    """Let `get_uid` begin anew."""
    get_default_graph().extra("keras_uids", dict).clear()


def manual_variable_initialization(value: bool) -> None:
    """Whether the program initializes variables itself: then `get_session` leaves them alone."""
    initialize_in_session(not value)


@contextmanager
def learning_phase_scope(value: Any) -> Iterator[None]:
    """A context manager in which the learning phase of the current graph is fixed.

    Raises:
        ValueError: `value` is neither 0 nor 1.
    """
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    phases = get_default_graph().extra("keras_learning_phase", dict)
    before = dict(phases)
    set_learning_phase(value)
    try:
        yield
    finally:
        phases.clear()
        phases.update(before)


def clear_session() -> None:
    """Start anew with an empty default graph."""
    reset_default_graph()


def get_value(x: Any) -> Any:
    """The value of a variable or tensor; anything else unchanged."""
    return get_session().run(x) if hasattr(x, "graph") else x


def set_value(x: Any, value: Any) -> None:
    """Set a variable."""
    session = get_session()
    x.load(value, session)


def int_shape(x: Any) -> tuple[int | None, ...]:
    """Static shape as a tuple."""
    return tuple(TensorShape(x.shape).as_list())


eval = get_value


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of variables or tensors."""
    values: list[Any] = get_session().run(list(tensors)) if len(tensors) else []  # a graph may be empty
    return values


def batch_set_value(tuples: Iterable[tuple[Any, Any]]) -> None:
    """Set variables, each given with its value."""
    for variable_, value in tuples:
        set_value(variable_, value)


def is_keras_tensor(x: Any) -> bool:
    """Whether a layer of `tf.keras` has made a tensor."""
    return x in get_default_graph().extra("keras_history", dict)


def gradients(loss: Tensor, variables: Sequence[Any]) -> list[Any]:
    """The gradients of a loss with respect to variables or tensors."""
    return gradients_of(loss, variables if isinstance(variables, (list, tuple)) else [variables])


class _Function:
    """What `function` returns: its fetches and its feeds may be changed between calls."""

    def __init__(self, inputs: Any, outputs: Any, updates: Sequence[Any], run: dict[str, Any]) -> None:
        self._inputs_structure, self._outputs_structure = inputs, outputs
        self.inputs: list[Any] = nest.flatten(inputs)
        self.outputs = [each.value() if isinstance(each, Variable) else each for each in nest.flatten(outputs)]
        # A loss is computed from the variables as they were before the step.
        with get_default_graph().control_dependencies([each for each in self.outputs[:1] if hasattr(each, "graph")]):
            made = [update(*each) if isinstance(each, tuple) else each for each in updates]
        self.updates_op = group(*made)
        self.feed_dict: dict[Any, Any] | None = run.pop("feed_dict", None)
        self.fetches = [identity(each) for each in nest.flatten(run.pop("fetches", []))]
        self.run_options = run.pop("options", None)
        self.run_metadata = run.pop("run_metadata", None)
        self.fetch_callbacks: dict[Tensor, Callable[[Any], Any]] = {}
        for other in run:
            raise ValueError(f'Invalid argument "{other}" passed to K.function with TensorFlow backend')

    def __call__(self, inputs: Any) -> Any:
        given = zip(self.inputs, nest.flatten_up_to(self._inputs_structure, inputs, check_types=False), strict=True)
        feeds = {each: value for each, value in given if isinstance(each, Tensor) and value is not None}
        session = get_session()
        if computed := {each: value for each, value in feeds.items() if isinstance(value, Tensor)}:
            feeds |= session.run(computed)
        feeds |= self.feed_dict or {}
        fetches = (self.outputs, list(self.fetches), self.updates_op)
        outputs, fetched, _ = session.run(fetches, feeds, self.run_options, self.run_metadata)
        for fetch, value in zip(fetches[1], fetched, strict=True):
            if fetch in self.fetch_callbacks:
                self.fetch_callbacks[fetch](value)
        return nest.pack_sequence_as(self._outputs_structure, outputs)


def function(
    inputs: Any, outputs: Any, updates: Sequence[Any] | None = None, name: str | None = None, **session_kwargs: Any
) -> Callable[[Any], Any]:
    """A function that takes values for `inputs`, makes `updates`, and gives the values of `outputs`.

    Args:
        inputs: Tensors that are fed, in a list or another structure; one may be the learning phase.
        outputs: Tensors, in any structure, in which their values are given; a tensor alone gives an array alone.
        updates: Operations, or pairs of a variable and its new value, which is set after the first of `outputs` is
            known.
        name: Not used.
        session_kwargs: What `Session.run` takes besides: `feed_dict`, a dictionary read at each call; `fetches`,
            tensors that are computed and not returned; `options`; `run_metadata`.

    Returns:
        A callable. Its list `fetches` may grow between calls, and its dictionary `fetch_callbacks` holds for a tensor
        of that list a function that is called with its value.

    Raises:
        TypeError: `updates` is no list.
        ValueError: There are other arguments.
    """
    if not isinstance(updates or (), (list, tuple)):
        raise TypeError("`updates` in a Keras backend function should be a list or tuple.")
    return _Function(inputs, outputs, updates or (), session_kwargs)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` in training, `alt` otherwise; both may be functions."""
    return switch(learning_phase() if training is None else training, x, alt)


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`alt` in training, `x` otherwise."""
    return in_train_phase(alt, x, training)
