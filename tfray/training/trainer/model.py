"""From a model function to a graph that can be trained: in this process, or replicated over a cluster."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.arguments import checked
from tfray.framework.convert import make_array
from tfray.framework.dtypes import as_dtype
from tfray.framework.feed import Feed
from tfray.framework.graph import DeviceFunction, Graph, Operation, Tensor
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.ops.arrays import source_ops
from tfray.ops.dataflow import lookup_ops
from tfray.ops.state import state_ops
from tfray.ops.system import replica_ops
from tfray.training.input.inputs import Batch, BatchForm, flatten_batch, unflatten_like


class ModeKeys:
    """The purposes for which a model function builds its graph."""

    TRAIN = "train"
    EVAL = "eval"


@checked
@dataclass(frozen=True)
class ModelSpec:
    """What a model function returns.

    Attributes:
        loss: Scalar to be minimised.
        train_op: One training step; needed in mode `ModeKeys.TRAIN`.
        metrics: Further tensors to follow, by name; each is averaged over replicas, or over an evaluation.
        predictions: The model's output tensors, by name.
    """

    loss: Tensor
    train_op: Operation | Tensor | None = None
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    predictions: Mapping[str, Tensor] = field(default_factory=dict)


ModelFunction = Callable[..., ModelSpec]
"""``model_fn(features, labels)`` or ``model_fn(features, labels, mode)``: adds the model to the default graph."""


@dataclass(frozen=True)
class BuiltModel:
    """A model function's graph.

    Attributes:
        graph: The graph.
        spec: What the function returned.
        placeholders: The placeholders for the arrays of a batch, in the order of `flatten_batch`.
        form: The structure of batches.
        batch_size: Number of examples in the batch for which it was built.
        on_shards: The operations of the variables that were spread over parameter servers, in their order.
    """

    graph: Graph
    spec: ModelSpec
    placeholders: list[Tensor]
    form: BatchForm
    batch_size: int = 0
    on_shards: Sequence[Operation] = ()

    @property
    def fetches(self) -> dict[str, Tensor]:
        """The loss and the metrics, by name."""
        return {"loss": self.spec.loss, **self.spec.metrics}

    @property
    def train_operation(self) -> Operation:
        """The operation of a training step."""
        train_op = self.spec.train_op
        assert train_op is not None
        return train_op.op if isinstance(train_op, Tensor) else train_op


def build_model(
    model_fn: ModelFunction,
    example: Batch,
    mode: str = ModeKeys.TRAIN,
    *,
    seed: int | None = None,
    device: DeviceFunction | None = None,
    partitioner: Partitioner | None = None,
) -> BuiltModel:
    """Call a model function under a new graph.

    Args:
        model_fn: The model function.
        example: A batch, from which placeholders take their dtypes and shapes; any number of examples is accepted.
        mode: One of `ModeKeys`.
        seed: Graph-level seed.
        device: Device function under which the model is built. With one, gradients are marked to be combined
            over replicas.
        partitioner: Default partitioner of the model's variables.

    Raises:
        InvalidArgumentError: The function returns something other than a `ModelSpec` that can be trained.
    """
    graph = Graph()
    graph.seed = seed
    if device is not None:
        graph.extra("replica_aggregation", list).append(combine_over_replicas)
    with graph.as_default(), graph.device(device), variable_scope(get_variable_scope(), partitioner=partitioner):
        named = flatten_batch(example)
        placeholders = [_placeholder(name, array) for name, array in named]
        features, labels = unflatten_like(example, placeholders)
        takes_mode = "mode" in inspect.signature(model_fn).parameters
        spec = model_fn(features, labels, mode=mode) if takes_mode else model_fn(features, labels)
    _check_spec(model_fn, spec, mode)
    _fill_tables(graph)
    form = BatchForm(tuple(name for name, _ in named), tuple(map(Feed, placeholders)))
    sizes = [len(array) for array in form.arrays(example) if np.ndim(array)]
    return BuiltModel(graph, spec, placeholders, form, sizes[0] if sizes else 0)


def _fill_tables(graph: Graph) -> None:
    """Let a replica's first step fill the tables that it reads: each replica has its own, and so has one that comes
    later in the place of another. To the steps after it a full table costs nothing.
    """
    fills: dict[Tensor, list[Operation]] = {}
    with graph.as_default():
        for fill in graph.get_collection(GraphKeys.TABLE_INITIALIZERS):
            once = lookup_ops.initialize_table_once(fill) if fill.type in lookup_ops.ONCE else fill
            fills.setdefault(fill.inputs[0], []).append(once)
    kept = {op for own in fills.values() for op in own}
    for op in graph.get_operations() if fills else ():
        own = [fill for tensor in op.inputs for fill in fills.get(tensor, ()) if op not in kept]
        if own:
            op.add_control_inputs(own)


def _placeholder(name: str, value: Any) -> Tensor:
    try:
        array = make_array(np.asarray(value))
    except ValueError as error:
        raise InvalidArgumentError(f"{name} of the input's first batch is no array: {error}") from error
    shape = (None, *array.shape[1:]) if array.ndim else ()
    # Names of features are free; names of operations are not.
    return source_ops.placeholder(as_dtype(array.dtype), shape, name=re.sub(r"[^\w./-]", "_", name, flags=re.ASCII))


def _check_spec(model_fn: ModelFunction, spec: Any, mode: str) -> None:
    name = getattr(model_fn, "__name__", repr(model_fn))
    if not isinstance(spec, ModelSpec):
        raise InvalidArgumentError(
            f"model function {name} returned a {type(spec).__name__}, expected tf.train.ModelSpec"
        )
    if spec.loss.shape.rank not in (0, None):
        raise InvalidArgumentError(f"model function {name}: the loss must be a scalar tensor, not {spec.loss!r}")
    if mode == ModeKeys.TRAIN and spec.train_op is None:
        raise InvalidArgumentError(f"model function {name} returned no train_op: minimise the loss with an optimizer")


def combine_over_replicas(gradient: Any, variable: Any) -> Any:
    """Mark a gradient to be averaged over the replicas that count in a step."""
    with state_ops.colocated_with(variable.handle):
        if isinstance(gradient, IndexedSlices):
            values = replica_ops.replica_reduce(gradient.values, "concat_mean")
            indices = replica_ops.replica_reduce(gradient.indices, "concat")
            return IndexedSlices(values, indices, gradient.dense_shape)
        return replica_ops.replica_reduce(gradient, "mean")
