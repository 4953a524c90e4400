"""Losses over very many classes that look at a few of them: the true ones, and candidates drawn for the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.nn.candidate_sampling_ops import compute_accidental_hits, log_uniform_candidate_sampler
from tfray.ops.nn.cross_entropy_ops import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from tfray.ops.nn.embedding_ops import embedding_lookup, gather_beside, shards_of, split_by_shard
from tfray.ops.nn.shard_product_ops import shard_products
from tfray.ops.sparse.sparse_ops import sparse_to_dense
from tfray.ops.state import state_ops


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[TensorLike] | None = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
    at_shards: bool = False,
) -> Tensor:
    """Compute the loss of noise-contrastive estimation: telling the true classes from candidates drawn at random.

    Args:
        weights: Shape ``[num_classes, dim]``, or a list of shards of it, or a partitioned variable.
        biases: Shape ``[num_classes]``, cut like `weights`.
        labels: Shape ``[batch, num_true]``, integers: the true classes of each example.
        inputs: Shape ``[batch, dim]``: what the logits are computed from.
        num_sampled: Number of classes to draw for the batch.
        num_classes: Number of classes.
        num_true: Number of true classes of an example.
        sampled_values: What a candidate sampler returned, with the shapes of its `SampledCandidates`; that of
            `log_uniform_candidate_sampler` when None, which wants classes in the order of how frequent they are.
        remove_accidental_hits: Leave candidates out that are true classes of an example.
        partition_strategy: How rows are spread over shards, see `embedding_lookup`.
        name: Name scope of the operations.
        at_shards: Multiply rows of `weights` with `inputs` on the devices of the shards, and compute their gradients
            there. Then `inputs` travel to every shard and logits back, and no rows: less, where more classes are drawn
            for a shard than the batch has examples. Replicas of a `Trainer` still pass on the gradients of rows.

    Returns:
        Shape ``[batch]``.

    Examples:
        >>> weights, biases, inputs = tf.ones([100, 8]), tf.zeros([100]), tf.ones([2, 8])
        >>> loss = tf.nn.nce_loss(weights, biases, [[3], [7]], inputs, num_sampled=5, num_classes=100)
        >>> session.run(loss).shape
        (2,)
    """
    with get_default_graph().name_scope(name):
        logits, targets = sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled=num_sampled,
            num_classes=num_classes,
            num_true=num_true,
            sampled_values=sampled_values,
            remove_accidental_hits=remove_accidental_hits,
            partition_strategy=partition_strategy,
            at_shards=at_shards,
        )
        losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
        return math_ops.reduce_sum(losses, 1)


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[TensorLike] | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
    at_shards: bool = False,
) -> Tensor:
    """Compute the cross entropy of a softmax over the true classes and candidates drawn at random.

    For training only, as it is smaller than the loss over all classes.

    Args:
        weights: Shape ``[num_classes, dim]``, or a list of shards of it, or a partitioned variable.
        biases: Shape ``[num_classes]``, cut like `weights`.
        labels: Shape ``[batch, num_true]``, integers: the true classes of each example.
        inputs: Shape ``[batch, dim]``: what the logits are computed from.
        num_sampled: As for `nce_loss`, as are the arguments that follow.
        num_classes: See there.
        num_true: See there.
        sampled_values: What a candidate sampler returned, with the shapes of its `SampledCandidates`.
        remove_accidental_hits: See there.
        partition_strategy: See there.
        name: Name scope of the operations.
        seed: Seed of the sampler.
        at_shards: As for `nce_loss`.

    Returns:
        Shape ``[batch]``.

    Examples:
        >>> weights, biases, inputs = tf.ones([100, 8]), tf.zeros([100]), tf.ones([2, 8])
        >>> loss = tf.nn.sampled_softmax_loss(weights, biases, [[3], [7]], inputs, num_sampled=5, num_classes=100)
        >>> session.run(loss).shape
        (2,)
    """
    with get_default_graph().name_scope(name):
        logits, targets = sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled=num_sampled,
            num_classes=num_classes,
            num_true=num_true,
            sampled_values=sampled_values,
            remove_accidental_hits=remove_accidental_hits,
            partition_strategy=partition_strategy,
            seed=seed,
            at_shards=at_shards,
        )
        return softmax_cross_entropy_with_logits_v2(labels=array_ops.stop_gradient(targets), logits=logits)


def sampled_logits(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    *,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Sequence[TensorLike] | None,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: int | None = None,
    at_shards: bool = False,
) -> tuple[Tensor, Tensor]:
    """Logits of the true classes and the candidates, shape ``[batch, num_true + num_sampled]``, and their targets.

    Arguments as for `sampled_softmax_loss`. The logarithm of how often a class was expected is subtracted
    from each logit; the targets of an example's true classes add up to 1.
    """
    labels = array_ops.cast(convert_to_tensor(labels), dtypes.int64)
    inputs = convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    values = [array_ops.stop_gradient(convert_to_tensor(value)) for value in sampled_values]
    sampled, true_expected, sampled_expected = array_ops.cast(values[0], dtypes.int64), values[1], values[2]
    flat = array_ops.reshape(labels, [-1])

    # One lookup for both kinds: each shard gets one gradient.
    ids = array_ops.concat([flat, sampled], 0)
    sizes = array_ops.stack([array_ops.size(flat), array_ops.size(sampled)])
    true_offsets, offsets = _lookup(biases, ids, sizes, partition_strategy, inputs.dtype)
    if at_shards:
        dots, products = _products_at_shards(weights, flat, sampled, inputs, num_true, partition_strategy)
    else:
        true_rows, rows = _lookup(weights, ids, sizes, partition_strategy, inputs.dtype)
        dots = math_ops.reduce_sum(_grouped(true_rows, num_true) * array_ops.expand_dims(inputs, 1), 2)
        products = math_ops.matmul(inputs, rows, transpose_b=True)
    true_logits = dots + array_ops.reshape(true_offsets, [-1, num_true])
    logits = products + (offsets - array_ops.cast(math_ops.log(sampled_expected), inputs.dtype))
    if remove_accidental_hits:
        logits = logits + _masked(labels, sampled, num_true, logits)
    true_logits = true_logits - array_ops.cast(math_ops.log(true_expected), inputs.dtype)
    targets = [array_ops.ones_like(true_logits) / num_true, array_ops.zeros_like(logits)]
    return array_ops.concat([true_logits, logits], 1), array_ops.concat(targets, 1)


def _lookup(table: TensorLike, ids: Tensor, sizes: Tensor, strategy: str, dtype: dtypes.DType) -> list[Tensor]:
    """The rows of the true classes, and those of the candidates."""
    found = embedding_lookup(table, ids, strategy)
    parts: list[Tensor] = array_ops.split(array_ops.cast(found, dtype), sizes, num=2)
    return parts


def _products_at_shards(
    weights: TensorLike, labels: Tensor, sampled: Tensor, inputs: Tensor, num_true: int, strategy: str
) -> tuple[Tensor, Tensor]:
    """Products of `inputs` with the rows of their true classes and with those of all candidates, beside the shards."""
    shards = shards_of(weights)
    true_places, true_rows = split_by_shard(shards, labels, strategy)
    places, rows = split_by_shard(shards, sampled, strategy)
    pairs, others = [], []
    for shard, place, true_row, row in zip(shards, true_places, true_rows, rows, strict=True):
        found = gather_beside(shard, array_ops.concat([true_row, row], 0))
        with state_ops.colocated_with(found):
            found = array_ops.cast(found, inputs.dtype)
            products = shard_products(inputs, math_ops.floordiv(place, num_true), found)
        pairs.append(products[0])
        others.append(products[1])
    dots = array_ops.reshape(array_ops.dynamic_stitch(true_places, pairs), [-1, num_true])
    return dots, array_ops.transpose(array_ops.dynamic_stitch(places, others))


def _grouped(rows: Tensor, num_true: int) -> Tensor:
    """Rows ``[batch * num_true, dim]`` as ``[batch, num_true, dim]``."""
    is_known = rows.shape.rank == 2 and rows.shape.is_fully_defined()
    width = rows.shape[1:] if is_known else array_ops.shape(rows)[1:]
    return array_ops.reshape(rows, array_ops.concat([[-1, num_true], width], 0))


def _masked(labels: Tensor, sampled: Tensor, num_true: int, logits: Tensor) -> Tensor:
    """The least finite number where a candidate is a true class of the example, 0 elsewhere."""
    hits = compute_accidental_hits(labels, sampled, num_true)
    least = np.array(-np.inf if logits.dtype is dtypes.float16 else logits.dtype.min, logits.dtype.numpy)
    if num_true == 1:  # an example hits one candidate at most: what a device gets for it has one shape in every step
        with state_ops.colocated_with(hits.ids):
            examples, sizes = array_ops.expand_dims(hits.indices, 1), array_ops.shape(labels)[:1]
            places = array_ops.scatter_nd(examples, hits.ids + 1, sizes) - 1
        return array_ops.one_hot(places, array_ops.size(sampled), least, np.zeros_like(least), dtype=logits.dtype)
    places = array_ops.stack([array_ops.cast(hits.indices, dtypes.int64), hits.ids], 1)
    sizes = array_ops.shape(logits, out_type=dtypes.int64)
    weights = array_ops.fill([array_ops.size(hits.ids)], least)
    return sparse_to_dense(places, sizes, weights, np.zeros_like(least), validate_indices=False)
