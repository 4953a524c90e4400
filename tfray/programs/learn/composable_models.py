"""Parts of models over feature columns: networks and linear models, for estimators and for programs' own."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tfray.estimator import canned
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import Activation
from tfray.gradients import gradients
from tfray.library.layers import feature_column, older_inputs, slim_functions, slim_layers
from tfray.library.layers.dense_columns import EmbeddingColumn
from tfray.library.layers.older_columns import is_older
from tfray.library.variables.clip import clip_by_global_norm
from tfray.library.variables.partitioned_variables import Partitioner, min_max_variable_partitioner
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.nn.activation_ops import relu
from tfray.training.checkpoints.checkpoint_utils import list_variables, load_variable
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.sessions.optimize_loss import OPTIMIZER_CLS_NAMES

__all__ = ["DNNComposableModel", "LinearComposableModel"]

NETWORK_RATE: Final = 0.05
LINEAR_RATE: Final = 0.2


class Network:
    """The layers of a model over columns.

    Args:
        columns: The columns.
        hidden_units: Sizes of the layers.
        activation_fn: Their activation.
        dropout: The share of outputs that training drops.
        partitioner: Partitioner of the input layer.
        lr_multipliers: Factors of the gradients of embeddings, by column.
        collection: Further collection for the variables.
        trainable: Whether optimizers are to change the variables.
    """

    def __init__(
        self,
        columns: Sequence[Any],
        hidden_units: Sequence[int],
        activation_fn: Activation,
        dropout: float | None,
        partitioner: Partitioner | None,
        lr_multipliers: Mapping[Any, float] | None = None,
        collection: str = "dnn",
        trainable: bool = True,
    ) -> None:
        self._columns, self._hidden_units, self._dropout = columns, hidden_units, dropout
        self._activation_fn, self._partitioner = activation_fn, partitioner
        self._lr_multipliers = lr_multipliers or {}
        self._collection, self._trainable = collection, trainable
        self._input_scope = ""

    def logits(self, features: Mapping[Any, Any], dimension: int, mode: str, config: Any) -> Tensor:
        """Logits ``[batch, dimension]``, in the scope that is open."""
        partitioner = self._partitioner or canned.partitioner_for(config)
        with variable_scope("input_from_feature_columns", partitioner=partitioner) as scope:
            self._input_scope = scope.name
            collections, trainable = [self._collection], self._trainable
            if all(map(is_older, self._columns)):
                net = older_inputs.input_from_feature_columns(features, self._columns, collections, trainable, scope)
            else:
                net = feature_column.input_layer(features, self._columns, collections, trainable)
        for number, units in enumerate(self._hidden_units):
            with variable_scope(f"hiddenlayer_{number}") as scope:
                net = self._layer(net, units, self._activation_fn, scope)
                if self._dropout is not None and mode == "train":
                    net = slim_functions.dropout(net, keep_prob=1.0 - self._dropout)
            canned.summarize_layer(net, scope.name)
        with variable_scope("logits") as scope:
            logits = self._layer(net, dimension, None, scope)
        canned.summarize_layer(logits, scope.name)
        return logits

    def _layer(self, inputs: Tensor, units: int, activation_fn: Activation | None, scope: Any) -> Tensor:
        return slim_layers.fully_connected(
            inputs,
            units,
            activation_fn=activation_fn,
            variables_collections=[self._collection],
            trainable=self._trainable,
            scope=scope,
        )

    def multipliers(self) -> dict[Any, float] | None:
        """Factors of gradients by variable. Raises `ValueError` for a column that is no embedding, or has none."""
        found: dict[Any, float] = {}
        for column, factor in self._lr_multipliers.items():
            if not isinstance(column, EmbeddingColumn):
                raise ValueError(
                    f"learning rate multipler can only be defined for embedding columns. It is defined for {column}"
                )
            variables = get_default_graph().get_collection(self._collection, f"{self._input_scope}/{column.name}")
            if not variables:
                raise ValueError(f"Couldn't find a variable for column {column}")
            found |= dict.fromkeys(variables, factor)
        return found or None


def linear_logits(
    features: Mapping[Any, Any],
    columns: Sequence[Any],
    dimension: int,
    joint: bool,
    scope: Any,
    collection: str = "linear",
    trainable: bool = True,
) -> Tensor:
    """Weighted sums of columns ``[batch, dimension]``, with all weights in one variable if `joint`."""
    if not all(map(is_older, columns)):
        return feature_column.linear_model(
            features, columns, dimension, weight_collections=[collection], trainable=trainable
        )
    sums = (
        older_inputs.joint_weighted_sum_from_feature_columns
        if joint
        else older_inputs.weighted_sum_from_feature_columns
    )
    return sums(features, columns, dimension, [collection], trainable, scope=scope)[0]


def linear_rate(columns: Sequence[Any]) -> float:
    """The learning rate of a linear model that has no other."""
    return min(LINEAR_RATE, 1.0 / math.sqrt(max(len(columns), 1)))


class _ComposableModel(ABC):
    """A part of a model: its logits, and a training step of its own variables.

    Args:
        num_label_columns: How many logits an example has.
        optimizer: An optimizer, a function that makes it, or a name.
        gradient_clip_norm: What norm all gradients together have at most.
        num_ps_replicas: Over how many parameter servers large variables are cut.
        scope: Variable scope, and the name of the collection of the variables.
        trainable: Whether optimizers are to change the variables.
    """

    _optimizer_name: str

    def __init__(
        self,
        num_label_columns: int,
        optimizer: Any,
        gradient_clip_norm: float | None,
        num_ps_replicas: int,
        scope: str,
        trainable: bool,
    ) -> None:
        self._num_label_columns, self._optimizer, self._trainable = num_label_columns, optimizer, trainable
        self._gradient_clip_norm, self._num_ps_replicas, self._scope = gradient_clip_norm, num_ps_replicas, scope
        self._columns: list[Any] = []

    def get_scope_name(self) -> str:
        """The scope of the variables."""
        return self._scope

    @abstractmethod
    def build_model(self, features: Mapping[Any, Any], feature_columns: Sequence[Any], is_training: bool) -> Tensor:
        """Build this part.

        Args:
            features: Features by the names of columns.
            feature_columns: The columns.
            is_training: Whether it is built to be trained.

        Returns:
            The logits, float32 of shape ``[batch, num_label_columns]``.

        Raises:
            ValueError: Two columns are the same, or a feature is missing.
        """

    @abstractmethod
    def _rate(self) -> float:
        """The learning rate of an optimizer that is given by its name."""

    def get_train_step(self, loss: Tensor) -> list[Operation]:
        """The operations of one training step of the variables of this part; none if it has no columns.

        Args:
            loss: The loss of the whole model, a scalar.
        """
        if not self._columns:
            return []
        variables = get_default_graph().get_collection(self._scope)
        grads = gradients(loss, variables)
        if self._gradient_clip_norm:
            grads, _ = clip_by_global_norm(grads, self._gradient_clip_norm)
        return [self._made_optimizer().apply_gradients(zip(grads, variables, strict=True))]

    def _made_optimizer(self) -> Optimizer:
        if self._optimizer is None or isinstance(self._optimizer, str):
            return OPTIMIZER_CLS_NAMES[self._optimizer or self._optimizer_name](self._rate())
        made: Optimizer = self._optimizer() if callable(self._optimizer) else self._optimizer
        return made

    def _kept(self, feature_columns: Sequence[Any]) -> list[Any]:
        older_inputs.check_feature_columns(feature_columns)
        self._columns = list(feature_columns)
        return self._columns

    def _partitioner(self, slice_bytes: int = canned.LARGE_SLICE_BYTES) -> Partitioner:
        return min_max_variable_partitioner(max(1, self._num_ps_replicas), min_slice_size=slice_bytes)


class LinearComposableModel(_ComposableModel):
    """A linear part of a model.

    Args:
        num_label_columns: How many logits an example has.
        optimizer: An optimizer, a function that makes it, or a name; Ftrl when None.
        _joint_weights: Keep all weights in one variable; columns are then of ids.
        gradient_clip_norm: What norm all gradients together have at most.
        num_ps_replicas: Over how many parameter servers large variables are cut.
        scope: Variable scope; ``linear`` when None.
        trainable: Whether optimizers are to change the variables.
    """

    _optimizer_name = "Ftrl"

    def __init__(
        self,
        num_label_columns: int,
        optimizer: Any = None,
        _joint_weights: bool = False,
        gradient_clip_norm: float | None = None,
        num_ps_replicas: int = 0,
        scope: str | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(
            num_label_columns, optimizer, gradient_clip_norm, num_ps_replicas, scope or "linear", trainable
        )
        self._joint_weights = _joint_weights

    def build_model(self, features: Mapping[Any, Any], feature_columns: Sequence[Any], is_training: bool) -> Tensor:
        with variable_scope(self._scope, partitioner=self._partitioner()) as scope:
            return linear_logits(
                features,
                self._kept(feature_columns),
                self._num_label_columns,
                self._joint_weights,
                scope,
                self._scope,
                self._trainable,
            )

    def _rate(self) -> float:
        return linear_rate(self._columns)

    def get_weights(self, model_dir: str) -> Any:
        """The weights in the newest checkpoint of a folder: an array, or arrays by name if there are several."""
        slot = re.compile(rf".*/{re.escape(self._made_optimizer().get_name())}(_\d)?$")
        values = {
            name: load_variable(model_dir, name)
            for name, _ in list_variables(model_dir)
            if name.startswith(f"{self._scope}/") and name != f"{self._scope}/bias_weight" and not slot.match(name)
        }
        return next(iter(values.values())) if len(values) == 1 else values

    def get_bias(self, model_dir: str) -> Any:
        """The bias in the newest checkpoint of a folder, ``[num_label_columns]``."""
        return load_variable(model_dir, f"{self._scope}/bias_weight")


class DNNComposableModel(_ComposableModel):
    """A network as a part of a model.

    Args:
        num_label_columns: How many logits an example has.
        hidden_units: Sizes of the layers.
        optimizer: An optimizer, a function that makes it, or a name; Adagrad when None.
        activation_fn: Activation of the layers.
        dropout: The share of outputs that training drops.
        gradient_clip_norm: What norm all gradients together have at most.
        num_ps_replicas: Over how many parameter servers large variables are cut.
        scope: Variable scope; ``dnn`` when None.
        trainable: Whether optimizers are to change the variables.
    """

    _optimizer_name = "Adagrad"

    def __init__(
        self,
        num_label_columns: int,
        hidden_units: Sequence[int],
        optimizer: Any = None,
        activation_fn: Activation = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        num_ps_replicas: int = 0,
        scope: str | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(num_label_columns, optimizer, gradient_clip_norm, num_ps_replicas, scope or "dnn", trainable)
        self._hidden_units, self._activation_fn, self._dropout = list(hidden_units), activation_fn, dropout

    def build_model(self, features: Mapping[Any, Any], feature_columns: Sequence[Any], is_training: bool) -> Tensor:
        network = Network(
            self._kept(feature_columns),
            self._hidden_units,
            self._activation_fn,
            self._dropout,
            self._partitioner(),
            collection=self._scope,
            trainable=self._trainable,
        )
        with variable_scope(self._scope, partitioner=self._partitioner(canned.SMALL_SLICE_BYTES)):
            return network.logits(features, self._num_label_columns, "train" if is_training else "eval", None)

    def _rate(self) -> float:
        return NETWORK_RATE

    def get_weights(self, model_dir: str) -> list[Any]:
        """The weights of all layers in the newest checkpoint of a folder, those of the logits last."""
        return [load_variable(model_dir, f"{layer}/weights") for layer in self._layers()]

    def get_bias(self, model_dir: str) -> list[Any]:
        """The biases of all layers in the newest checkpoint of a folder, those of the logits last."""
        return [load_variable(model_dir, f"{layer}/biases") for layer in self._layers()]

    def _layers(self) -> list[str]:
        return [f"{self._scope}/hiddenlayer_{i}" for i in range(len(self._hidden_units))] + [f"{self._scope}/logits"]
