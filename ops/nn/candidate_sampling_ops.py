"""Candidate sampling: draw a few classes that stand for all classes in a loss, with the expected count of each.

References:
    Jean, Cho, Memisevic, Bengio, On using very large target vocabulary for neural machine translation (2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, KernelFunction, OpDef, Reach, on_cpu, register
from tfray.framework.random_seed import get_seed
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays.gather_ops import first_outside
from tfray.ops.arrays.shape_ops import cast
from tfray.ops.kernels.random_streams import stream_of


class SampledCandidates(NamedTuple):
    """What a candidate sampler returns.

    Attributes:
        sampled_candidates: Shape ``[num_sampled]``, int64: the classes drawn.
        true_expected_count: Shape ``[batch, num_true]``, float32: how often each true class was expected.
        sampled_expected_count: Shape ``[num_sampled]``, float32: how often each class drawn was expected.
    """

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


# -- what the samplers share ---------------------------------------------------------------------------

Draw = Callable[[Any, int], Array]
"""From a NumPy generator and a number to that many classes."""

Probability = Callable[[Array], Array]
"""From classes to the probability of drawing each."""


def _candidates(
    definition: OpDef,
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None,
    **attrs: Any,
) -> SampledCandidates:
    graph_seed, op_seed = get_seed(seed)
    name = attrs.pop("name")
    true_classes = cast(convert_to_tensor(true_classes, preferred_dtype=dtypes.int64), dtypes.int64)
    attrs |= {"num_true": int(num_true), "num_sampled": int(num_sampled), "unique": bool(unique)}
    outputs = add_op(definition, true_classes, name=name, seed=graph_seed or 0, seed2=op_seed or 0, **attrs)
    return SampledCandidates(*outputs)


def _draw_candidates(ctx: KernelContext, classes: int, draw: Draw) -> tuple[Array, int]:
    """The candidates, and how many draws it took to get them."""
    count = ctx.attr("num_sampled")
    if not ctx.attr("unique"):
        return stream_of(ctx).draw(lambda generator: draw(generator, count)), count
    if count > classes:
        raise InvalidArgumentError(f"cannot draw {count} different classes from {classes}; draw fewer, or unique=False")
    return stream_of(ctx).draw(lambda generator: _draw_distinct(generator, draw, count))


def _draw_distinct(generator: np.random.Generator, draw: Draw, count: int) -> tuple[Array, int]:
    """Draw until there are `count` different classes. Returns them in the order drawn, and the number of draws."""
    drawn = draw(generator, count + count // 4 + 8).tolist()
    while True:
        distinct = list(dict.fromkeys(drawn))[:count]  # faster than NumPy's way, which sorts
        if len(distinct) == count:
            return np.array(distinct, np.int64), drawn.index(distinct[-1]) + 1 if count else 0
        drawn += draw(generator, len(drawn)).tolist()


def _expected_counts(probability: Array, count: int, draws: int) -> Array:
    if draws == count:  # drawn with replacement, or no class came twice
        return (probability * count).astype(np.float32)
    # The probability that a class comes up at least once in `draws` draws.
    return (-np.expm1(draws * np.log1p(-probability))).astype(np.float32)


def _sampled(
    ctx: KernelContext, true_classes: Array, classes: int, draw: Draw, probability: Probability
) -> list[Array]:
    _check_classes(true_classes, classes)
    count = ctx.attr("num_sampled")
    candidates, draws = _draw_candidates(ctx, classes, draw)
    ids = np.concatenate([true_classes.reshape(-1), candidates])
    expected = _expected_counts(probability(ids), count, draws)
    true_counts = expected[: true_classes.size].reshape(true_classes.shape)
    return [candidates.astype(np.int64, copy=False), true_counts, expected[true_classes.size :]]


def _check_classes(true_classes: Array, classes: int) -> None:
    wrong = first_outside(true_classes, classes) if true_classes.size else None
    if wrong is not None:
        raise InvalidArgumentError(f"true classes: {wrong}")


def _candidates_shape(op: Operation) -> list[TensorShape]:
    true_classes = op.inputs[0].shape.merge_with([None, op.attr("num_true")])
    if op.attr("num_sampled") < 1 or op.attr("num_true") < 1:
        raise ValueError("num_true and num_sampled must be at least 1")
    sampled = TensorShape([op.attr("num_sampled")])
    return [sampled, true_classes, sampled]


def _sampler(
    name: str, kernel: KernelFunction, attrs: Sequence[str] = ("range_max",), reach: Reach | None = None
) -> OpDef:
    return OpDef(
        name=name,
        inputs=("true_classes: int64",),
        outputs=(
            "sampled_candidates: int64",
            "true_expected_count: float32",
            "sampled_expected_count: float32",
        ),
        attrs=("num_true", "num_sampled", "unique", "seed", "seed2", *attrs),
        shape=_candidates_shape,
        kernels=on_cpu(kernel),
        stateful=True,
        reach=reach,
    )


# -- by fixed distributions ----------------------------------------------------------------------------


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Draw classes that are all as likely.

    Args:
        true_classes: Shape ``[batch, num_true]``, integers in ``[0, range_max)``: the classes of each example.
        num_true: Number of classes of an example.
        num_sampled: Number of classes to draw for the whole batch.
        unique: Draw no class twice.
        range_max: Number of classes.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        ``(sampled_candidates, true_expected_count, sampled_expected_count)`` of the shapes ``[num_sampled]``, ``[batch,
        num_true]`` and ``[num_sampled]``, see `SampledCandidates`.

    Raises:
        InvalidArgumentError: While running: a class outside the range, or fewer classes than are to be drawn.
    """
    return _candidates(
        UNIFORM_CANDIDATE_SAMPLER, true_classes, num_true, num_sampled, unique, seed, range_max=range_max, name=name
    )


def _uniform_kernel(ctx: KernelContext, true_classes: Array) -> list[Array]:
    classes = ctx.attr("range_max")
    return _sampled(
        ctx,
        true_classes,
        classes,
        lambda generator, count: generator.integers(0, classes, count),
        lambda ids: np.full(ids.shape, 1 / classes),
    )


UNIFORM_CANDIDATE_SAMPLER = register(_sampler("UniformCandidateSampler", _uniform_kernel))


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Draw classes with probability ``(log(class + 2) - log(class + 1)) / log(range_max + 1)``.

    That is about Zipf's law: for words in the order of how frequent they are. `true_classes` has the shape ``[batch,
    num_true]``; arguments, result and errors are as for `uniform_candidate_sampler`.
    """
    return _candidates(
        LOG_UNIFORM_CANDIDATE_SAMPLER, true_classes, num_true, num_sampled, unique, seed, range_max=range_max, name=name
    )


def _log_uniform_kernel(ctx: KernelContext, true_classes: Array) -> list[Array]:
    classes = ctx.attr("range_max")
    log_range = np.log1p(classes)

    def draw(generator: np.random.Generator, count: int) -> Array:
        ids = np.exp(generator.random(count) * log_range).astype(np.int64) - 1
        return np.minimum(ids, classes - 1)  # rounding may reach the end of the range

    def probability(ids: Array) -> Array:
        return np.log1p(1 / (ids + 1.0)) / log_range

    return _sampled(ctx, true_classes, classes, draw, probability)


LOG_UNIFORM_CANDIDATE_SAMPLER = register(_sampler("LogUniformCandidateSampler", _log_uniform_kernel))


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Return all classes from 0 to ``num_sampled - 1``, each expected once. For comparing a sampled loss with the full.

    `true_classes` has the shape ``[batch, num_true]``; arguments and result are as for `uniform_candidate_sampler`.
    """
    return _candidates(ALL_CANDIDATE_SAMPLER, true_classes, num_true, num_sampled, unique, seed, name=name)


def _all_kernel(ctx: KernelContext, true_classes: Array) -> list[Array]:
    count = ctx.attr("num_sampled")
    ones = np.ones(count, np.float32)
    return [np.arange(count, dtype=np.int64), np.ones(true_classes.shape, np.float32), ones]


ALL_CANDIDATE_SAMPLER = register(_sampler("AllCandidateSampler", _all_kernel, ()))


# -- by counts -----------------------------------------------------------------------------------------


class _Weights:
    """A distribution over classes by their weights. Steps may use it at the same time."""

    def __init__(self, weights: Array) -> None:
        self._weights = weights
        self._sums: Array | None = None

    def draw(self, generator: np.random.Generator, count: int) -> Array:
        """Classes, each with a probability in proportion to its weight."""
        sums = self._cumulative()
        return sums.searchsorted(generator.random(count) * sums[-1], "right")

    def probability(self, ids: Array) -> Array:
        """The probability of each class of an array."""
        return self._weights[ids] / self._cumulative()[-1]

    def _cumulative(self) -> Array:
        sums = self._sums
        if sums is None:
            sums = self._sums = self._weights.cumsum()
        return sums

    def count(self, ids: Array) -> None:
        """Add 1 to the weight of each class of an array, once for each time that it occurs there."""
        np.add.at(self._weights, ids.reshape(-1), 1)
        self._sums = None


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Draw classes by given counts.

    Args:
        true_classes: Shape ``[batch, num_true]``, integers in ``[0, range_max)``: the classes of each example.
        num_true: Number of classes of an example.
        num_sampled: Number of classes to draw for the whole batch.
        unique: Draw no class twice.
        range_max: Number of classes.
        vocab_file: A file with a line for each class, of which the last column, behind a comma, is its count.
        distortion: The counts are raised to this power: 0 makes all classes as likely.
        num_reserved_ids: Number of classes that come before those of the file, and are never drawn.
        num_shards: Number of shards. This operation draws every `num_shards`-th class.
        shard: The first class that this operation draws.
        unigrams: The counts, instead of a file.
        seed: Seed of the operation.
        name: Name of the operation.

    Returns:
        ``(sampled_candidates, true_expected_count, sampled_expected_count)`` of the shapes ``[num_sampled]``, ``[batch,
        num_true]`` and ``[num_sampled]``, see `SampledCandidates`.

    Raises:
        ValueError: Neither or both of `vocab_file` and `unigrams`, or `shard` is not below `num_shards`.
        InvalidArgumentError: While running: counts for another number of classes.
    """
    if bool(vocab_file) == bool(len(unigrams)):
        raise ValueError("fixed_unigram_candidate_sampler needs the counts: either vocab_file or unigrams")
    if not 0 <= shard < num_shards:
        raise ValueError(f"shard {shard} is not in [0, {num_shards})")
    return _candidates(
        FIXED_UNIGRAM_CANDIDATE_SAMPLER,
        true_classes,
        num_true,
        num_sampled,
        unique,
        seed,
        range_max=range_max,
        vocab_file=str(vocab_file),
        distortion=float(distortion),
        num_reserved_ids=int(num_reserved_ids),
        num_shards=int(num_shards),
        shard=int(shard),
        unigrams=[float(count) for count in unigrams],
        name=name,
    )


def _fixed_weights(ctx: KernelContext) -> _Weights:
    counts = ctx.attr("unigrams") or _counts_of_file(ctx.attr("vocab_file"))
    reserved, shards, shard = ctx.attr("num_reserved_ids"), ctx.attr("num_shards"), ctx.attr("shard")
    weights = np.concatenate([np.zeros(reserved), np.power(np.asarray(counts, np.float64), ctx.attr("distortion"))])
    weights = weights[shard::shards]
    if weights.size != ctx.attr("range_max") or not weights.sum() > 0:
        raise InvalidArgumentError(f"there are counts for {weights.size} classes, expected {ctx.attr('range_max')}")
    return _Weights(weights)


def _counts_of_file(path: str) -> list[float]:
    lines = files.read_bytes(path).decode().splitlines()
    try:
        return [float(line.rpartition(",")[2]) for line in lines if line.strip()]
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: the last column of every line must be a count: {error}") from error


def _fixed_unigram_kernel(ctx: KernelContext, true_classes: Array) -> list[Array]:
    weights = ctx.session_state.lookup_or_create(("fixed unigrams", ctx.op_name), lambda: _fixed_weights(ctx))
    return _sampled(ctx, true_classes, ctx.attr("range_max"), weights.draw, weights.probability)


FIXED_UNIGRAM_CANDIDATE_SAMPLER = register(
    _sampler(
        "FixedUnigramCandidateSampler",
        _fixed_unigram_kernel,
        ("range_max", "vocab_file", "distortion", "num_reserved_ids", "num_shards", "shard", "unigrams"),
        Reach("files", attr="vocab_file"),
    )
)


def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> SampledCandidates:
    """Draw classes in proportion to how often they were true classes in earlier steps. Every count starts at 1.

    `true_classes` has the shape ``[batch, num_true]``; arguments, result and errors are as for
    `uniform_candidate_sampler`.
    """
    return _candidates(
        LEARNED_UNIGRAM_CANDIDATE_SAMPLER,
        true_classes,
        num_true,
        num_sampled,
        unique,
        seed,
        range_max=range_max,
        name=name,
    )


def _learned_unigram_kernel(ctx: KernelContext, true_classes: Array) -> list[Array]:
    classes = ctx.attr("range_max")
    weights = ctx.session_state.lookup_or_create(
        ("learned unigrams", ctx.op_name), lambda: _Weights(np.ones(classes, np.int64))
    )
    sampled = _sampled(ctx, true_classes, classes, weights.draw, weights.probability)
    weights.count(true_classes)
    return sampled


LEARNED_UNIGRAM_CANDIDATE_SAMPLER = register(_sampler("LearnedUnigramCandidateSampler", _learned_unigram_kernel))


# -- accidental hits -----------------------------------------------------------------------------------


class AccidentalHits(NamedTuple):
    """What `compute_accidental_hits` returns.

    Attributes:
        indices: Shape ``[hits]``, int32: the example.
        ids: Shape ``[hits]``, int64: the index of the candidate that is one of its true classes.
        weights: Shape ``[hits]``, float32: the least finite number, to add to the candidate's logit.
    """

    indices: Tensor
    ids: Tensor
    weights: Tensor


def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """Find the candidates that are true classes of an example, in order to leave them out of its loss.

    Args:
        true_classes: Shape ``[batch, num_true]``: the classes of each example.
        sampled_candidates: Shape ``[num_sampled]``: the classes drawn. Of equal ones the last is found.
        num_true: Number of classes of an example.
        seed: Accepted for TensorFlow 1's sake: nothing is random.
        name: Name of the operation.

    Returns:
        ``(indices, ids, weights)``, each of shape ``[hits]``, see `AccidentalHits`.
    """
    classes = [cast(convert_to_tensor(ids), dtypes.int64) for ids in (true_classes, sampled_candidates)]
    return AccidentalHits(*add_op(COMPUTE_ACCIDENTAL_HITS, *classes, name=name, num_true=int(num_true)))


def _accidental_hits_kernel(ctx: KernelContext, true_classes: Array, candidates: Array) -> list[Array]:
    order = candidates.argsort(kind="stable")
    ascending = candidates[order]
    last = ascending.searchsorted(true_classes.reshape(-1), "right") - 1
    flat = true_classes.reshape(-1)
    hits = np.flatnonzero((last >= 0) & (ascending[last] == flat)) if candidates.size else np.zeros(0, np.int64)
    ids = order[last[hits]].astype(np.int64)
    examples = (hits // ctx.attr("num_true")).astype(np.int32)
    return [examples, ids, np.full(hits.size, np.finfo(np.float32).min)]


def _accidental_hits_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_is_compatible_with([None, op.attr("num_true")])
    op.inputs[1].shape.assert_has_rank(1)
    return [TensorShape([None])] * 3


COMPUTE_ACCIDENTAL_HITS = register(
    OpDef(
        name="ComputeAccidentalHits",
        inputs=("true_classes: int64", "sampled_candidates: int64"),
        outputs=("indices: int32", "ids: int64", "weights: float32"),
        attrs=("num_true",),
        shape=_accidental_hits_shape,
        kernels=on_cpu(_accidental_hits_kernel),
    )
)
