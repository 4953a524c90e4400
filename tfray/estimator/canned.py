"""What the canned estimators share: their optimizers, partitioners and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tfray.estimator.extenders import clip_gradients_by_norm
from tfray.estimator.run_config import RunConfig
from tfray.framework.graph import Tensor
from tfray.library.inspect import summaries
from tfray.library.variables.partitioned_variables import Partitioner, min_max_variable_partitioner
from tfray.ops.nn import nn_ops
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.optimizers.rms_prop import RMSPropOptimizer

LARGE_SLICE_BYTES: Final = 64 << 20
SMALL_SLICE_BYTES: Final = 256 << 10

_OPTIMIZERS: Final[Mapping[str, Callable[..., Optimizer]]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}


class Clipped(NamedTuple):
    """An optimizer that first scales gradients down.

    Attributes:
        optimizer: Whatever `optimizer_of` takes.
        clip_norm: The largest norm of all gradients together.
    """

    optimizer: Any
    clip_norm: float


def optimizer_of(given: Any, learning_rate: float | None = None) -> Optimizer:
    """An optimizer, given that, its name, a function that makes it, or one of these `Clipped`.

    Args:
        given: The optimizer.
        learning_rate: That of an optimizer given by its name, which needs one.

    Raises:
        ValueError: There is none of that name, it has no learning rate, or it is something else.
    """
    if isinstance(given, Clipped):
        return clip_gradients_by_norm(optimizer_of(given.optimizer, learning_rate), given.clip_norm)
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise ValueError(f"Unsupported optimizer name: {given}; there are {', '.join(_OPTIMIZERS)}")
        if learning_rate is None:
            raise ValueError("learning_rate must be specified when opt is string.")
        return _OPTIMIZERS[given](learning_rate=learning_rate)
    if callable(given):
        given = given()
    if not isinstance(given, Optimizer):
        raise ValueError(
            f"The given object is not an Optimizer instance: {given!r}. It may be one of tf.train, its name, or a "
            "function that makes it."
        )
    return given


def check_features(features: Any) -> None:
    """Raise `ValueError` unless features are a dictionary."""
    if not isinstance(features, Mapping):
        raise ValueError(f"the features are {features!r}, expected a dictionary: feature columns find theirs by name")


def partitioner_for(config: RunConfig | None, slice_bytes: int = LARGE_SLICE_BYTES) -> Partitioner:
    """Cuts variables that are larger than `slice_bytes` over the parameter servers.

    Without any, variables have one part all the same, so that their tensors have TensorFlow's names, as in
    ``dnn/logits/kernel/part_0:0``.
    """
    servers = config.num_ps_replicas if config is not None else 0
    return min_max_variable_partitioner(max_partitions=max(1, servers), min_slice_size=slice_bytes)


def summarize_layer(value: Tensor, name: str) -> None:
    """Let summaries show the output of a layer."""
    summaries.scalar(f"{name}/fraction_of_zero_values", nn_ops.zero_fraction(value))
    summaries.histogram(f"{name}/activation", value)
