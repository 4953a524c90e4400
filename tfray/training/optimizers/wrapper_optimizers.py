"""Optimizers around others: for losses that are not always there, and for variables whose norms are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.clip import clip_by_global_norm, clip_by_norm, global_norm
from tfray.ops.arrays import array_ops, gather_ops
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops
from tfray.training.optimizers.optimizer import Optimizer


def _is_zero(gradient: Tensor | IndexedSlices) -> Tensor:
    """Whether all elements are 0, a bool scalar."""
    values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
    return math_ops.logical_not(math_ops.reduce_any(math_ops.not_equal(values, array_ops.zeros_like(values))))


class MultitaskOptimizerWrapper:
    """Lets an optimizer leave a variable and its slots alone where its gradient is 0 everywhere.

    So the part of a loss that is not there in a batch does not count as one without slope. In all else this is the
    optimizer itself.

    Args:
        opt: The optimizer, which is changed.

    Raises:
        TypeError: It is none.
    """

    def __init__(self, opt: Optimizer) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse"):
            setattr(opt, name, _unless_zero(getattr(opt, name)))
        opt.__dict__["_apply_sparse_duplicate_indices"] = _unless_zero(opt._apply_sparse_duplicate_indices)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zero(apply: Callable[..., Any]) -> Callable[..., Any]:
    def applied(grad: Any, *args: Any) -> Any:
        def update() -> Operation:
            return group(apply(grad, *args))

        return cond(_is_zero(grad), no_op, update)

    return applied


def clip_gradients_by_global_norm(
    gradients_variables: Iterable[tuple[Any, Any]], clip_norm: TensorLike = 20.0
) -> tuple[list[tuple[Any, Any]], Tensor]:
    """Gradients scaled so that their global norm is at most `clip_norm`, and that norm before; see `tf.global_norm`.

    Args:
        gradients_variables: Pairs of a gradient, of any shape or None, and its variable.
        clip_norm: A scalar.

    Returns:
        The pairs, and a scalar.
    """
    gradients, variables = zip(*gradients_variables, strict=True)
    size = global_norm(gradients)
    clipped, _ = clip_by_global_norm(gradients, clip_norm, use_norm=size)
    return list(zip(clipped, variables, strict=True)), size


class VariableClippingOptimizer(Optimizer):
    """Lets an optimizer update variables, and then scales those down whose norms are above a limit.

    Args:
        opt: The optimizer.
        vars_to_clip_dims: By variable, the dimensions along which its norm is taken.
        max_norm: The limit, a scalar.
        use_locking: Accepted for TensorFlow 1's sake.
        colocate_clip_ops_with_vars: Likewise.
        name: Name of the optimizer.
    """

    def __init__(
        self,
        opt: Optimizer,
        vars_to_clip_dims: Mapping[Any, Sequence[int]],
        max_norm: TensorLike,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._dims = {variable: list(dims) for variable, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer computes."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, var: Any, name: str) -> Any:
        """A slot of the optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Names of the optimizer's slots."""
        return self._opt.get_slot_names()

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """As for `Optimizer.apply_gradients`. Of a sparse gradient, the rows that it changes are clipped."""
        pairs = list(grads_and_vars)
        graph = get_default_graph()
        with graph.name_scope(name or self.get_name()) as scope:
            update = self._opt.apply_gradients(pairs, global_step)
            with graph.control_dependencies([update]):
                clips = [self._clipped(gradient, variable) for gradient, variable in pairs if gradient is not None]
            return group(update, *(clip for clip in clips if clip is not None), name=scope)

    def _clipped(self, gradient: Any, variable: Any) -> Any:
        dims = self._dims.get(variable)
        if dims is None:
            return None
        if isinstance(gradient, IndexedSlices) and 0 not in dims:
            rows = gather_ops.gather(variable.read_value(), gradient.indices)
            return sparse_state_ops.scatter_update(variable, gradient.indices, clip_by_norm(rows, self._max_norm, dims))
        return variable.assign(clip_by_norm(convert_to_tensor(variable.read_value()), self._max_norm, dims)).op
