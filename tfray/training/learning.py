"""Training steps as ``tf.contrib.slim.learning`` makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.clip import clip_by_norm
from tfray.library.variables import trainable_variables
from tfray.ops import array_ops, control_ops, grouping_ops
from tfray.training.global_step import get_or_create_global_step
from tfray.training.optimizer import Optimizer


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = None,
    update_ops: Sequence[Any] | None = None,
    variables_to_train: Sequence[Any] | None = None,
    transform_grads_fn: Callable[[Any], Any] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
    clip_gradient_norm: float = 0,
) -> Tensor:
    """Make a training step, as ``slim.learning`` does.

    Args:
        total_loss: Scalar, the loss.
        optimizer: The optimizer.
        global_step: The global step; the graph's own when None, which is made if need be.
        update_ops: What to run before the loss is computed; ``GraphKeys.UPDATE_OPS`` when None.
        variables_to_train: Variables to update; the trainable ones when None.
        transform_grads_fn: Function from pairs of gradient and variable to such pairs.
        summarize_gradients: Accepted for TensorFlow 1's sake.
        gate_gradients: As for `Optimizer.minimize`.
        aggregation_method: Likewise.
        colocate_gradients_with_ops: Likewise.
        check_numerics: Fail when the loss is infinite or not a number.
        clip_gradient_norm: Largest norm of each gradient; 0 for none.

    Returns:
        The loss, whose evaluation makes the step.
    """
    graph = get_default_graph()
    step = get_or_create_global_step() if global_step is None else global_step
    updates = graph.get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    loss = convert_to_tensor(total_loss)
    if updates:
        with graph.control_dependencies([grouping_ops.group(*updates, name="update_barrier")]):
            loss = array_ops.identity(loss)
    pairs = optimizer.compute_gradients(
        loss,
        variables_to_train or trainable_variables(),
        gate_gradients,
        aggregation_method,
        colocate_gradients_with_ops,
    )
    if transform_grads_fn is not None:
        pairs = transform_grads_fn(pairs)
    if clip_gradient_norm > 0:
        pairs = [
            (None if gradient is None else clip_by_norm(gradient, clip_gradient_norm), variable)
            for gradient, variable in pairs
        ]
    updated = optimizer.apply_gradients(pairs, step)
    with graph.name_scope("train_op"), graph.control_dependencies([updated]):
        train_op = control_ops.check_numerics(loss, "LossTensor is inf or nan") if check_numerics else loss
        train_op = array_ops.identity(train_op)
    graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
    return train_op
