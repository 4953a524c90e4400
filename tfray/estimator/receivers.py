"""Input receivers: what an exported model is fed, and the features that its model function gets from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfray.estimator.input_functions import features_and_labels
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Graph, Tensor
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.arrays.source_ops import placeholder
from tfray.ops.strings.parsing_ops import parse_example

_SINGLE_RECEIVER = "input"
_SINGLE_FEATURE = "feature"
_SINGLE_LABEL = "label"


class ServingInputReceiver:
    """What a function for serving returns to `tf.estimator.Estimator.export_saved_model`.

    Args:
        features: A tensor or sparse tensor, or a dictionary of them: what the model function is given. A tensor becomes
            a dictionary, under the name ``feature``.
        receiver_tensors: A tensor, or a dictionary of tensors: what is fed. Mostly placeholders.
        receiver_tensors_alternatives: Further sets of tensors that may be fed instead, by name; each makes further
            signatures, called ``NAME:SIGNATURE``.

    Raises:
        ValueError: Something is missing, a name is no text, or a value no tensor.
    """

    def __init__(
        self,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> None:
        self.features: Any = _named(features, "features", _SINGLE_FEATURE, sparse=True)
        self.labels: Any = None
        self.receiver_tensors = _named(receiver_tensors, "receiver_tensors", _SINGLE_RECEIVER)
        self.receiver_tensors_alternatives = _alternatives(receiver_tensors_alternatives)


class TensorServingInputReceiver(ServingInputReceiver):
    """A `ServingInputReceiver` for model functions whose `features` are one tensor, not a dictionary.

    Args:
        features: A tensor or sparse tensor.
        receiver_tensors: As of `ServingInputReceiver`.
        receiver_tensors_alternatives: As of `ServingInputReceiver`.

    Raises:
        ValueError: As there, or the features are a dictionary.
    """

    def __init__(
        self,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(features, (Tensor, SparseTensor)):
            raise ValueError(f"TensorServingInputReceiver: features is {features!r}, expected one tensor")
        super().__init__(features, receiver_tensors, receiver_tensors_alternatives)
        self.features = features


class UnsupervisedInputReceiver(ServingInputReceiver):
    """A `ServingInputReceiver` for training or evaluation without labels.

    Args:
        features: As there.
        receiver_tensors: As there.
    """

    def __init__(self, features: Any, receiver_tensors: Any) -> None:
        super().__init__(features, receiver_tensors)


class SupervisedInputReceiver:
    """What a function for training or evaluation returns to `experimental_export_all_saved_models`.

    Args:
        features: A tensor, or a dictionary of tensors.
        labels: The same of labels.
        receiver_tensors: What is fed.

    Raises:
        ValueError: Something is missing, a name is no text, or a value no tensor.
    """

    def __init__(self, features: Any, labels: Any, receiver_tensors: Any) -> None:
        for given, what in ((features, "features"), (labels, "labels")):
            if (
                given is not None
                and not isinstance(given, (Mapping, Tensor, SparseTensor))
                and not _holds_tensor(given)
            ):
                raise ValueError(f"{what[:-1]} must be a Tensor or SparseTensor, not {given!r}")
            _named(given, what, _SINGLE_FEATURE, sparse=True)
        self.features = features
        self.labels = labels
        self.receiver_tensors = _named(receiver_tensors, "receiver_tensors", _SINGLE_RECEIVER)
        self.receiver_tensors_alternatives: dict[str, Any] = {}


def _named(tensors: Any, what: str, single: str, sparse: bool = False) -> dict[Any, Any]:
    """Tensors by name, checked: those of features and labels may have numbers as names, and be sparse."""
    if tensors is None:
        raise ValueError(f"{what} must be defined: an input receiver needs them")
    found = dict(tensors) if isinstance(tensors, Mapping) else {single: tensors}
    one, words = what.removesuffix("s"), "strings or ints" if sparse else "strings"
    for name, tensor in found.items():
        if not isinstance(name, (str, int) if sparse else str):
            raise ValueError(f"{one} keys must be {words}, not {name!r}")
        if not (isinstance(tensor, (Tensor, SparseTensor) if sparse else Tensor) or _holds_tensor(tensor)):
            wanted = "Tensor or SparseTensor" if sparse else "Tensor"
            raise ValueError(f"{one} {name} must be a {wanted}, not {tensor!r}")
    return found


def _holds_tensor(value: Any) -> bool:
    """Whether a value has a tensor as its attribute `tensor`, and is one to operations."""
    if not hasattr(value, "tensor"):
        return False
    try:
        return isinstance(convert_to_tensor(value), Tensor)
    except TypeError:
        return False


def _alternatives(alternatives: Any) -> dict[str, Any]:
    if alternatives is None:
        return {}
    if not isinstance(alternatives, Mapping):
        raise ValueError(f"receiver_tensors_alternatives is {alternatives!r}, expected a dictionary")
    return {
        name: _named(each, f"receiver_tensors_alternatives[{name!r}]", _SINGLE_RECEIVER)
        for name, each in alternatives.items()
    }


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function for serving that is fed serialized `tf.train.Example` messages, under ``examples``.

    Args:
        feature_spec: What `tf.parse_example` needs to know of the features.
        default_batch_size: Number of examples; any number when None.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parse_example(examples, dict(feature_spec)), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function for serving that is fed the features as they are.

    Args:
        features: Tensors by name, of which dtypes and shapes are taken.
        default_batch_size: Number of examples; any number when None.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        receivers = _placeholders_like(features, default_batch_size)
        return ServingInputReceiver(dict(receivers), receivers)

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """A function for exporting graphs of training and evaluation that is fed features and labels as they are.

    Args:
        features: A tensor, or tensors by name, of which dtypes and shapes are taken.
        labels: The same of labels.
        default_batch_size: Number of examples; any number when None.

    Raises:
        ValueError: A feature and a label have the same name.
    """
    by_name, labels_by_name = (isinstance(each, Mapping) for each in (features, labels))
    common = set(features) & set(labels) if by_name and labels_by_name else set()
    if common:
        both = ", ".join(sorted(map(str, common)))
        raise ValueError(f"Features and labels must have distinct keys. Found overlapping keys: {both}")

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        made = [
            _placeholders_like(each if named else {name: each}, default_batch_size)
            for each, named, name in ((features, by_name, _SINGLE_RECEIVER), (labels, labels_by_name, _SINGLE_LABEL))
        ]
        receivers = {**made[0], **made[1]}
        own_features = made[0] if by_name else made[0][_SINGLE_RECEIVER]
        own_labels = made[1] if labels_by_name else made[1][_SINGLE_LABEL]
        return SupervisedInputReceiver(own_features, own_labels, receivers)

    return supervised_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """`build_raw_supervised_input_receiver_fn` for features and labels like those that an input function gives.

    Args:
        input_fn: The input function.
        **input_fn_args: Its arguments.
    """
    with Graph().as_default():
        features, labels, _ = features_and_labels(input_fn(**input_fn_args))
    return build_raw_supervised_input_receiver_fn(features, labels)


def _placeholders_like(tensors: Mapping[str, Any], batch_size: int | None) -> dict[str, Tensor]:
    found = {}
    for name, given in tensors.items():
        tensor = convert_to_tensor(given)
        shape = None if tensor.shape.rank is None else [batch_size, *tensor.shape.as_list()[1:]]
        found[name] = placeholder(tensor.dtype, shape, name=tensor.op.name.rpartition("/")[2])
    return found
