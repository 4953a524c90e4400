"""``tf.contrib.gan.features``: what helps adversarial networks to train."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tfray.contrib.gan.namedtuples import GANModel
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.queues import RandomShuffleQueue
from tfray.library.layers.keras_layer import weight_getter
from tfray.library.layers.slim_functions import flatten, linear
from tfray.library.variables.initializers import ones_initializer, random_normal_initializer, zeros_initializer
from tfray.library.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.search_ops import argmax
from tfray.ops.nn.embedding_ops import embedding_lookup
from tfray.ops.nn.normalization_ops import batch_normalization, l2_normalize
from tfray.ops.random.random_ops import random_uniform
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.optimizers.wrapper_optimizers import VariableClippingOptimizer

__all__ = [
    "VBN",
    "clip_discriminator_weights",
    "clip_variables",
    "compute_spectral_norm",
    "condition_tensor",
    "condition_tensor_from_onehot",
    "keras_spectral_normalization",
    "spectral_norm_regularizer",
    "spectral_normalization_custom_getter",
    "spectral_normalize",
    "tensor_pool",
]

_ZEROS: Final = zeros_initializer()
_ONES: Final = ones_initializer()
_KEPT: Final = "spectral_norm_u"
"""The variable that keeps the vector of a spectral norm."""


def condition_tensor(tensor: Tensor, conditioning: Tensor) -> Tensor:
    """Add a linear function of `conditioning`, with variables of its own.

    Args:
        tensor: Shape ``[batch, ...]``, known but for the batch.
        conditioning: Shape ``[batch, ...]``, of rank 2 at least.

    Returns:
        The shape of `tensor`.

    Raises:
        ValueError: The shapes are others.
    """
    tensor.shape[1:].assert_is_fully_defined()
    if conditioning.shape.rank is None or conditioning.shape.rank < 2:
        raise ValueError(f"conditioning must be at least 2D, but saw shape: {conditioning.shape}")
    added = linear(flatten(conditioning), tensor.shape[1:].num_elements() or 0)
    return tensor + array_ops.reshape(added, array_ops.shape(tensor))


def condition_tensor_from_onehot(tensor: Tensor, one_hot_labels: Tensor, embedding_size: int = 256) -> Tensor:
    """Add a linear function of embeddings of classes.

    Args:
        tensor: Shape ``[batch, ...]``, known but for the batch.
        one_hot_labels: Shape ``[batch, classes]``.
        embedding_size: The size of the embeddings, which are in a variable ``embedding``.

    Returns:
        The shape of `tensor`.

    Raises:
        ValueError: The shapes are others.
    """
    one_hot_labels.shape.assert_has_rank(2)
    one_hot_labels.shape[1:].assert_is_fully_defined()
    table = get_variable("embedding", [one_hot_labels.shape.as_list()[1], embedding_size])
    return condition_tensor(tensor, embedding_lookup(table, argmax(one_hot_labels, axis=1)))


def tensor_pool(
    input_values: Any, pool_size: int = 50, pooling_probability: TensorLike = 0.5, name: str = "tensor_pool"
) -> Any:
    """Values of earlier steps, so that a discriminator does not forget them (Shrivastava and others, arXiv:1612.07828).

    While the pool is not full it takes each value, which is returned as well. Then each takes the place of one at
    random, which is returned by chance in place of it.

    Args:
        input_values: A tensor of any shape, or a list or tuple of tensors.
        pool_size: So many values are kept; 0 for no pool.
        pooling_probability: How often an earlier value is returned, a scalar.
        name: Name of the operations.

    Returns:
        Values in the structure and of the shapes of `input_values`.

    Raises:
        ValueError: `pool_size` is negative.
    """
    if pool_size < 0:
        raise ValueError(f"`pool_size` is negative: {pool_size}")
    if pool_size == 0:
        return input_values
    given = [convert_to_tensor(each) for each in nest.flatten(input_values)]

    def taken() -> list[Tensor]:
        with get_default_graph().control_dependencies([queue.enqueue(given)]):
            return _same(given)

    def exchanged() -> list[Tensor]:
        earlier = nest.flatten(queue.dequeue())
        branch = get_default_graph()  # the branch is a graph of its own
        with branch.control_dependencies(earlier), branch.control_dependencies([queue.enqueue(given)]):
            is_earlier = random_uniform([]) < pooling_probability
        found: list[Tensor] = cond(is_earlier, lambda: _same(earlier), lambda: _same(given), strict=True)
        return found

    with get_default_graph().name_scope(f"{name}_pool_queue"):
        queue = RandomShuffleQueue(pool_size, 0, [each.dtype for each in given])
        values = cond(queue.size() < pool_size, taken, exchanged, strict=True)
    for value, each in zip(values, given, strict=True):
        value.set_shape(each.shape)
    return nest.pack_sequence_as(input_values, values)


def _same(values: list[Tensor]) -> list[Tensor]:
    return [array_ops.identity(each) for each in values]


# -- weights -------------------------------------------------------------------------------------------


def clip_variables(optimizer: Optimizer, variables: Iterable[Any], weight_clip: float) -> Optimizer:
    """An optimizer that keeps the elements of variables between ``-weight_clip`` and ``weight_clip``.

    Args:
        optimizer: Makes the updates.
        variables: The variables.
        weight_clip: The limit.

    Raises:
        ValueError: The limit is negative.
    """
    if weight_clip < 0:
        raise ValueError(f"`weight_clip` must be positive. Instead, was {weight_clip}")
    return VariableClippingOptimizer(optimizer, {variable: [] for variable in variables}, weight_clip)


def clip_discriminator_weights(optimizer: Optimizer, model: GANModel, weight_clip: float) -> Optimizer:
    """`clip_variables` for the discriminator of a model (Arjovsky and others, arXiv:1701.07875)."""
    return clip_variables(optimizer, model.discriminator_variables, weight_clip)


def compute_spectral_norm(w_tensor: Any, power_iteration_rounds: int = 1, name: str | None = None) -> Tensor:
    """The largest singular value of a matrix, nearly: each step goes on from the vector that the last one found.

    Args:
        w_tensor: Shape ``[..., columns]``, a matrix with all but the last dimension as one.
        power_iteration_rounds: How often a step multiplies by the matrix.
        name: The scope of the variable ``spectral_norm_u``.

    Returns:
        A scalar.
    """
    graph = get_default_graph()
    with variable_scope(name, "spectral_norm"):
        weights = array_ops.reshape(w_tensor, [-1, w_tensor.shape.as_list()[-1]])
        start = random_normal_initializer()
        shape = [weights.shape.as_list()[0], 1]
        kept = get_variable(_KEPT, shape, weights.dtype, start, trainable=False)
        left = convert_to_tensor(kept)
        right = left
        for _ in range(power_iteration_rounds):
            right = l2_normalize(matmul(weights, left, transpose_a=True))
            left = l2_normalize(matmul(weights, right))
        with graph.control_dependencies([kept.assign(left, name="update_u")]):
            left = array_ops.identity(left)
        left, right = array_ops.stop_gradient(left), array_ops.stop_gradient(right)
        return matmul(matmul(left, weights, transpose_a=True), right)[0, 0]


def spectral_normalize(w: Any, power_iteration_rounds: int = 1, name: str | None = None) -> Tensor:
    """A matrix over its largest singular value (Miyato and others, arXiv:1802.05957).

    Args:
        w: Shape ``[..., columns]``.
        power_iteration_rounds: As for `compute_spectral_norm`.
        name: The scope of its variable.

    Returns:
        The shape of `w`.
    """
    with variable_scope(name, "spectral_normalize"):
        return w / compute_spectral_norm(w, power_iteration_rounds)


def spectral_norm_regularizer(
    scale: float | Tensor, power_iteration_rounds: int = 1, scope: str | None = None
) -> Callable[..., Tensor | None]:
    """A regularizer by the largest singular value of weights.

    Args:
        scale: Factor of that value, a scalar; 0.0 for none.
        power_iteration_rounds: As for `compute_spectral_norm`.
        scope: Name of the operations.

    Raises:
        ValueError: `scale` is negative or an integer.
    """
    if isinstance(scale, int):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, float) and scale < 0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}")

    def regularizer(weights: Any, name: str | None = None) -> Tensor | None:
        if isinstance(scale, float) and scale == 0:
            return None
        with get_default_graph().name_scope(scope or "SpectralNormRegularizer"):
            return scale * compute_spectral_norm(weights, power_iteration_rounds)

    return regularizer


def _is_weight(name: str) -> bool:
    return re.match(r"(.*/)?(depthwise_|pointwise_)?(weights|kernel)$", name) is not None


def spectral_normalization_custom_getter(
    name_filter: Callable[[str], bool] = _is_weight, power_iteration_rounds: int = 1
) -> Callable[..., Any]:
    """A ``custom_getter`` for `tf.variable_scope` that gives layers weights over their largest singular values.

    Args:
        name_filter: Function of a variable's name that tells whether it is normalized; by default kernels are.
        power_iteration_rounds: As for `compute_spectral_norm`.

    Raises:
        ValueError: `name_filter` is no function; when a variable has fewer than two dimensions, another dtype than
            floats, or belongs to the normalization itself.
    """
    if not callable(name_filter):
        raise ValueError("name_filter must be callable")

    def getter(inner: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        if not name_filter(name):
            return inner(name, *args, **kwargs)
        if name.endswith(_KEPT):
            raise ValueError(f"{name} is a variable of spectral normalization, and is not normalized itself")
        variable = inner(name, *args, **kwargs)
        if not variable.dtype.is_floating:
            raise ValueError(f"Spectral norm needs a floating-point dtype, and {name} has {variable.dtype.name}")
        if variable.shape.rank < 2:
            raise ValueError(f"Spectral norm can only be applied to multi-dimensional tensors, not to {name}")
        return spectral_normalize(variable, power_iteration_rounds, f"{name}/spectral_normalize")

    return getter


@contextmanager
def keras_spectral_normalization(
    name_filter: Callable[[str], bool] = _is_weight, power_iteration_rounds: int = 1
) -> Iterator[None]:
    """Within this block, layers get weights as `spectral_normalization_custom_getter` gives them.

    Args:
        name_filter: As for that function.
        power_iteration_rounds: Likewise.
    """
    getter = spectral_normalization_custom_getter(name_filter, power_iteration_rounds)
    token = weight_getter.set(getter)
    try:
        with variable_scope(get_variable_scope(), custom_getter=getter, auxiliary_name_scope=False):
            yield
    finally:
        weight_getter.reset(token)


# -- normalization -------------------------------------------------------------------------------------


class VBN:
    """Virtual batch normalization: by the mean and variance of a reference batch with each example in turn.

    See Salimans and others, arXiv:1606.03498. Variables are those of `tf.layers.batch_normalization`.

    Args:
        reference_batch: Shape ``[batch, ...]``, a float dtype.
        axis: The axis that is normalized.
        epsilon: Added to variances.
        center: Whether to add a variable ``beta``.
        scale: Whether to multiply by a variable ``gamma``.
        beta_initializer: The initializer of ``beta``.
        gamma_initializer: The initializer of ``gamma``.
        beta_regularizer: The regularizer of ``beta``.
        gamma_regularizer: The regularizer of ``gamma``.
        trainable: Whether the variables are trainable.
        name: The scope of the variables.
        batch_axis: The axis of the batch.

    Raises:
        ValueError: The rank of the batch or its size along `axis` is not known, or the axes are out of range or the
            same.
    """

    def __init__(
        self,
        reference_batch: Tensor,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = _ZEROS,
        gamma_initializer: Any = _ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        batch_axis: int = 0,
    ) -> None:
        rank = reference_batch.shape.rank
        if rank is None:
            raise ValueError("`reference_batch` has unknown dimensions.")
        for each in (axis, batch_axis):
            if not -rank <= each < rank:
                raise ValueError(f"Value of `axis` argument {each} is out of range for input with rank {rank}")
        axis, self._batch_axis = axis % rank, batch_axis % rank
        if axis == self._batch_axis:
            raise ValueError("`axis` and `batch_axis` cannot be the same.")
        self._reference, self._epsilon = reference_batch, epsilon
        self._within = [each for each in range(rank) if each not in (axis, self._batch_axis)]
        with variable_scope(name, "VBN") as self._scope:
            self._moments = _mean_and_square(reference_batch, sorted([*self._within, self._batch_axis]))
            kind = self._moments[0].dtype
            self._example_weight = 1.0 / array_ops.cast(array_ops.shape(reference_batch)[self._batch_axis] + 1, kind)
            channels = reference_batch.shape.as_list()[axis]
            sizes = [-1 if each == axis else 1 for each in range(rank)]

            def parameter(name: str, initializer: Any, regularizer: Any) -> Tensor:
                made = get_variable(name, [channels], kind, initializer, regularizer, trainable)
                return array_ops.reshape(made, sizes)

            self._beta = parameter("beta", beta_initializer, beta_regularizer) if center else None
            self._gamma = parameter("gamma", gamma_initializer, gamma_regularizer) if scale else None

    def _normalized(self, inputs: Tensor, mean: Tensor, square: Tensor) -> Tensor:
        variance = square - math_ops.square(mean)
        wide = array_ops.cast(inputs, mean.dtype)
        made = batch_normalization(wide, mean, variance, self._beta, self._gamma, self._epsilon)
        return array_ops.cast(made, inputs.dtype)

    def reference_batch_normalization(self) -> Tensor:
        """The reference batch, normalized by itself; its shape."""
        with get_default_graph().name_scope(self._scope.name):
            return self._normalized(self._reference, *self._moments)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Normalize a batch.

        Args:
            inputs: Of the shape of the reference batch, but for the size of the batch.

        Returns:
            The same shape.

        Raises:
            ValueError: The shapes differ.
        """
        shapes = [each.shape.as_list() for each in (inputs, self._reference)]
        for shape in shapes:
            del shape[self._batch_axis]
        if any(None not in pair and pair[0] != pair[1] for pair in zip(*shapes, strict=True)):
            raise ValueError(f"Shapes {inputs.shape} and {self._reference.shape} of the reference are incompatible")
        with get_default_graph().name_scope(self._scope.name):
            own = _mean_and_square(inputs, self._within)
            weight = self._example_weight
            mixed = (
                weight * each + (1 - weight) * reference for each, reference in zip(own, self._moments, strict=True)
            )
            return self._normalized(inputs, *mixed)


def _mean_and_square(values: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """The means of values and of their squares, which are too large for float16: float32 of those."""
    wide = array_ops.cast(values, dtypes.float32 if values.dtype.size == 2 else values.dtype)
    mean, square = (math_ops.reduce_mean(each, axes, keepdims=True) for each in (wide, math_ops.square(wide)))
    return mean, square
