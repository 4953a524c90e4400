"""What TensorFlow keeps beside its Keras layers: kernels of vectors, metrics of compiled models, flat tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tfray.distribute.current import get_strategy
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.keras.losses import Loss, Reduction
from tfray.library.functions.traced_function import Function
from tfray.library.rnn.seq2seq_loss import sequence_loss
from tfray.library.variables.variables import global_variables
from tfray.ops.arrays import array_ops
from tfray.ops.control.type_specs import TensorSpec
from tfray.ops.math import math_ops
from tfray.ops.state.state_ops import is_variable_initialized
from tfray.session import Session

# fmt: off
__all__ = [
    "SequenceLoss", "compute_weighted_loss", "exact_gaussian_kernel", "exact_laplacian_kernel", "extract_model_metrics",
    "initialize_variables", "inner_product", "make_2d", "model_input_signature", "raise_model_input_error",
    "reduce_weighted_loss", "scale_loss_for_distribution", "trace_model_call",
]
# fmt: on


class SequenceLoss(Loss):
    """`tf.contrib.seq2seq.sequence_loss` as a loss of Keras, which weights of its call, ``[batch, time]``, reduce.

    Args:
        average_across_timesteps: See there.
        average_across_batch: See there.
        sum_over_timesteps: See there.
        sum_over_batch: See there.
        softmax_loss_function: See there.
        name: Name scope.
    """

    def __init__(
        self,
        average_across_timesteps: bool = False,
        average_across_batch: bool = False,
        sum_over_timesteps: bool = True,
        sum_over_batch: bool = True,
        softmax_loss_function: Callable[..., Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.average_across_timesteps, self.average_across_batch = average_across_timesteps, average_across_batch
        self.sum_over_timesteps, self.sum_over_batch = sum_over_timesteps, sum_over_batch
        self.softmax_loss_function = softmax_loss_function

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """The loss of each step, ``[batch, time]``."""
        ones = array_ops.ones_like(y_true, y_pred.dtype)
        alone = (False, False, False, False)
        return sequence_loss(y_pred, y_true, ones, *alone, self.softmax_loss_function, self.name)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The loss of logits ``[batch, time, classes]`` and ids ``[batch, time]``; each step weighs 1 without weights.

        Returns:
            As `tf.contrib.seq2seq.sequence_loss`.
        """
        y_true, y_pred = convert_to_tensor(y_true), convert_to_tensor(y_pred)
        return sequence_loss(
            y_pred,
            y_true,
            array_ops.ones_like(y_true, y_pred.dtype) if sample_weight is None else sample_weight,
            self.average_across_timesteps,
            self.average_across_batch,
            self.sum_over_timesteps,
            self.sum_over_batch,
            self.softmax_loss_function,
            self.name,
        )


def _differences(x: TensorLike, y: TensorLike) -> Tensor:
    first, second = _matrix(x), _matrix(y)
    if not first.shape[1:].is_compatible_with(second.shape[1:]):
        raise ValueError(
            "The outermost dimensions of the input tensors should match. "
            f"Given: {first.shape} vs {second.shape}: vectors of different lengths"
        )
    return array_ops.expand_dims(first, 1) - array_ops.expand_dims(second, 0)


def _matrix(value: TensorLike) -> Tensor:
    tensor = convert_to_tensor(value)
    if tensor.shape.rank not in (1, 2):
        raise ValueError(f"The input tensor should have rank 1 or 2. Given rank: {tensor.shape.rank}")
    return array_ops.expand_dims(tensor, 0) if tensor.shape.rank == 1 else tensor


def exact_gaussian_kernel(x: TensorLike, y: TensorLike, stddev: float) -> Tensor:
    """``exp(-|u - v|**2 / (2 stddev**2))`` of each row ``u`` of `x` and each row ``v`` of `y`.

    Args:
        x: Shape ``[m, n]`` or ``[n]``, a float dtype.
        y: Shape ``[k, n]`` or ``[n]``.
        stddev: The width, above 0.

    Returns:
        Shape ``[m, k]``, or 1 in place of the number of rows of a vector.

    Raises:
        ValueError: The ranks are others, or rows are of different lengths.
    """
    return math_ops.exp(-math_ops.reduce_sum(math_ops.square(_differences(x, y)), 2) / (2 * stddev * stddev))


def exact_laplacian_kernel(x: TensorLike, y: TensorLike, stddev: float) -> Tensor:
    """``exp(-|u - v| / stddev)`` with the sum of absolute differences; see `exact_gaussian_kernel`."""
    return math_ops.exp(-math_ops.reduce_sum(math_ops.abs(_differences(x, y)), 2) / stddev)


def inner_product(u: TensorLike, v: TensorLike) -> Tensor:
    """The products of each row of `u` and each row of `v`; shapes as of `exact_gaussian_kernel`."""
    return math_ops.matmul(_matrix(u), _matrix(v), transpose_b=True)


def extract_model_metrics(model: Any) -> dict[str, Any] | None:
    """The metrics with which a Keras model was compiled, by name; None if there are none."""
    metrics = model.metrics if model.optimizer is not None else []
    # The names of losses come first.
    return dict(zip(model.metrics_names[-len(metrics) :], metrics, strict=True)) if metrics else None


def raise_model_input_error(model: Any) -> NoReturn:
    """Raise the `ValueError` that says that a Keras model has no inputs yet."""
    raise ValueError(
        f"Model {model} cannot be saved because the input shapes have not been set. Call .fit() or .predict() with "
        "data first, or model._set_inputs(inputs)."
    )


def model_input_signature(model: Any) -> list[Any] | None:
    """What `trace_model_call` is to take: the inputs of a model as `tf.TensorSpec`, for any number of examples.

    Returns:
        A list of one: the input, or a list of several. None if the model has no inputs yet.
    """
    if not model.inputs:
        return None
    specs = [
        TensorSpec([None, *tensor.shape.as_list()[1:]], tensor.dtype, name)
        for tensor, name in zip(model.inputs, model.input_names, strict=True)
    ]
    return specs if len(specs) == 1 else [specs]


def trace_model_call(model: Any, input_signature: Sequence[Any] | None = None) -> Function:
    """A Keras model that predicts, as a `tf.function`.

    Args:
        model: The model.
        input_signature: What the function takes. When None, that of `model.call` if it is a `tf.function`, or the
            model's inputs.

    Returns:
        A function of the inputs that gives the outputs by their names.

    Raises:
        ValueError: `input_signature` is None, and the model has no inputs yet.
    """
    signature = input_signature or getattr(model.call, "input_signature", None) or model_input_signature(model)
    if signature is None:
        raise_model_input_error(model)
    if not model.inputs:
        model._set_inputs(signature[0] if len(signature) == 1 else list(signature))

    def predict(*inputs: Any) -> dict[str, Any]:
        outputs = nest.flatten(model(inputs[0] if len(inputs) == 1 else list(inputs)))
        return dict(zip(model.output_names, outputs, strict=True))

    return Function(predict, signature)


def compute_weighted_loss(
    losses: TensorLike,
    sample_weight: TensorLike | None = None,
    reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    name: str | None = None,
) -> Tensor:
    """Losses times their weights, reduced.

    Args:
        losses: Shape ``[batch, ...]``, the losses.
        sample_weight: A scalar, or of a shape that broadcasts to theirs; None for 1.
        reduction: One of `tf.keras.losses.Reduction`.
        name: Name scope of the operations.

    Returns:
        A scalar, or without reduction the weighted losses, of the dtype of `losses`.

    Raises:
        ValueError: There is no such reduction.
    """
    with get_default_graph().name_scope(name or "weighted_loss"):
        return Loss(reduction).weighted(convert_to_tensor(losses), sample_weight)


def reduce_weighted_loss(weighted_losses: Tensor, reduction: str = Reduction.SUM_OVER_BATCH_SIZE) -> Tensor:
    """Losses reduced as one of `tf.keras.losses.Reduction` says: a scalar, or without reduction as they are."""
    return Loss(reduction).reduced(weighted_losses)


def scale_loss_for_distribution(loss_value: Tensor) -> Tensor:
    """A loss divided by the number of replicas whose gradients are added up."""
    replicas = get_strategy().num_replicas_in_sync
    return loss_value if replicas == 1 else loss_value * (1.0 / replicas)


def initialize_variables(session: Session) -> None:
    """Initialize the variables of the session's graph that have no values yet."""
    with session.graph.as_default():
        variables = global_variables()
        known = session.run([is_variable_initialized(variable) for variable in variables])
        session.run([variable.initializer for variable, is_set in zip(variables, known, strict=True) if not is_set])


def make_2d(tensor: TensorLike, split_dim: int) -> Tensor:
    """Shape a tensor as a matrix: dimensions before `split_dim` count rows, the others columns."""
    sizes = array_ops.shape(tensor)
    rows, columns = (math_ops.reduce_prod(part) for part in (sizes[:split_dim], sizes[split_dim:]))
    return array_ops.reshape(tensor, array_ops.stack([rows, columns]))
