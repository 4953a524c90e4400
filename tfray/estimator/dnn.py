"""Networks of fully connected layers: ``tf.estimator.DNNClassifier`` and its kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.estimator import canned
from tfray.estimator.classification_heads import classifier_head
from tfray.estimator.estimator import Estimator
from tfray.estimator.heads import Head
from tfray.estimator.regression_heads import RegressionHead
from tfray.estimator.run_config import RunConfig
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.formats.files import PathLike
from tfray.framework.arguments import checked
from tfray.framework.graph import Tensor
from tfray.library.layers import core_layers, feature_column, normalization_layers
from tfray.library.layers.losses import Reduction
from tfray.library.variables import initializers
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.variable_scope import get_variable_scope, variable_scope
from tfray.ops.nn import activation_ops

LEARNING_RATE: Final = 0.05
_MOMENTUM: Final = 0.999


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    activation_fn: Callable[[Tensor], Tensor] | None,
    dropout: float | None,
    input_layer_partitioner: Partitioner | None,
    batch_norm: bool,
) -> Callable[..., Tensor]:
    """A function from features and the mode to the logits of a network.

    Args:
        units: Number of logits of an example.
        hidden_units: Units of each hidden layer.
        feature_columns: Dense columns.
        activation_fn: Activation of the hidden layers.
        dropout: The probability with which a unit is left out in training; None for no dropout.
        input_layer_partitioner: Partitioner of embeddings.
        batch_norm: Whether to normalise batches after each hidden layer.

    Raises:
        ValueError: `units` is no integer.
    """
    if not isinstance(units, int):
        raise ValueError(f"units is {units!r}, expected an integer")

    def dnn_logit_fn(features: Any, mode: str) -> Tensor:
        training = mode == ModeKeys.TRAIN
        outer = get_variable_scope().name
        with variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
            net = feature_column.input_layer(features, feature_columns)
        for number, size in enumerate(hidden_units):
            name = f"hiddenlayer_{number}"
            net = _dense(net, size, activation_fn, name)
            if dropout is not None and training:
                net = core_layers.dropout(net, rate=dropout, training=True)
            if batch_norm:
                with variable_scope(name):
                    net = normalization_layers.batch_normalization(
                        net, momentum=_MOMENTUM, training=training, name=f"batchnorm_{number}"
                    )
            canned.summarize_layer(net, f"{outer}/{name}" if outer else name)
        logits = _dense(net, units, None, "logits")
        canned.summarize_layer(logits, f"{outer}/logits" if outer else "logits")
        return logits

    return dnn_logit_fn


def _dense(inputs: Tensor, units: int, activation: Any, name: str) -> Tensor:
    return core_layers.dense(
        inputs, units, activation=activation, kernel_initializer=initializers.glorot_uniform_initializer(), name=name
    )


def _model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Head,
    logit_fn: Callable[[Partitioner | None], Callable[..., Tensor]],
    optimizer: Any,
    input_layer_partitioner: Partitioner | None,
    config: RunConfig | None,
) -> EstimatorSpec:
    canned.check_features(features)
    made = canned.optimizer_of(optimizer, LEARNING_RATE)
    with variable_scope("dnn", partitioner=canned.partitioner_for(config, canned.SMALL_SLICE_BYTES)):
        partitioner = input_layer_partitioner or canned.partitioner_for(config)
        logits = logit_fn(partitioner)(features, mode)
        return head.create_estimator_spec(features, mode, logits, labels, optimizer=made)


class DNNEstimator(Estimator):
    """A network of fully connected layers with a head of one's choice.

    Args:
        head: The head.
        hidden_units: Units of each hidden layer.
        feature_columns: Dense columns; categorical ones in an ``embedding_column`` or ``indicator_column``.
        model_dir: As of `Estimator`.
        optimizer: One of ``tf.train``, a function that makes it, or a name: ``Adagrad`` (with a learning rate of 0.05),
            ``Adam``, ``Ftrl``, ``RMSProp`` or ``SGD``.
        activation_fn: Activation of the hidden layers.
        dropout: The probability with which a unit is left out in training; None for no dropout.
        input_layer_partitioner: Partitioner of embeddings; by default large ones are cut over the parameter servers.
        config: As of `Estimator`.
        warm_start_from: As of `Estimator`.
        batch_norm: Whether to normalise batches after each hidden layer.
    """

    @checked
    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: PathLike | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Tensor], Tensor] | None = activation_ops.relu,
        dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        columns, sizes = tuple(feature_columns or ()), tuple(hidden_units)

        def logit_fn(partitioner: Partitioner | None) -> Callable[..., Tensor]:
            return dnn_logit_fn_builder(
                head.logits_dimension, sizes, columns, activation_fn, dropout, partitioner, batch_norm
            )

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return _model_fn(features, labels, mode, head, logit_fn, optimizer, input_layer_partitioner, config)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(DNNEstimator):
    """A classifier of fully connected layers.

    Arguments that are not told here are as of `DNNEstimator`.

    Args:
        hidden_units: Units of each hidden layer.
        feature_columns: Dense columns; categorical ones in an ``embedding_column`` or ``indicator_column``.
        n_classes: Number of classes.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        label_vocabulary: The words, if labels are words.
        activation_fn: Activation of the hidden layers.
        loss_reduction: How the losses of examples become one number: one of `tf.losses.Reduction`, other than ``NONE``.
        batch_norm: Whether to normalise batches after each hidden layer.

    Raises:
        ValueError: There are less than two classes, not as many words, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: PathLike | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[Any] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Tensor], Tensor] | None = activation_ops.relu,
        dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class DNNRegressor(DNNEstimator):
    """A regression by fully connected layers.

    Arguments that are not told here are as of `DNNEstimator`.

    Args:
        hidden_units: Units of each hidden layer.
        feature_columns: Dense columns; categorical ones in an ``embedding_column`` or ``indicator_column``.
        label_dimension: How many numbers an example has.
        weight_column: Name of the feature with the weights of the examples, or a numeric column.
        activation_fn: Activation of the hidden layers.
        loss_reduction: As of `DNNClassifier`.
        batch_norm: Whether to normalise batches after each hidden layer.

    Raises:
        ValueError: `label_dimension` is not positive, or the reduction is not known.
    """

    @checked
    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: PathLike | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Tensor], Tensor] | None = activation_ops.relu,
        dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )
