"""Batches of examples some of which are dropped at random: ``tf.contrib.training`` has these functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.initializers import Zeros
from tfray.library.variables.moving_average import assign_moving_average
from tfray.library.variables.variable_scope import get_local_variable, variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops, construction_ops
from tfray.ops.arrays.construction_ops import one_hot
from tfray.ops.checks import check_ops
from tfray.ops.math import comparison_ops, math_ops
from tfray.ops.math.sorting_ops import repeat
from tfray.ops.random.random_ops import random_poisson, random_uniform
from tfray.training.input.batching import batch, maybe_batch


def rejection_sample(
    tensors: Sequence[TensorLike],
    accept_prob_fn: Callable[[list[Tensor]], Tensor],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Batches of the examples that a function accepts, each with a probability. Queue runners fill them.

    Args:
        tensors: The parts of one example, or of several with `enqueue_many`.
        accept_prob_fn: Function from the parts of one example to the probability, a scalar.
        batch_size: Examples in a batch.
        queue_threads: Threads that accept examples.
        enqueue_many: Whether the first dimension of `tensors` counts examples.
        prebatch_capacity: How many examples wait to be accepted, with `enqueue_many`.
        prebatch_threads: Threads that bring these.
        runtime_checks: Check that probabilities are in ``[0, 1]``.
        name: Name of the variable scope.

    Returns:
        The parts of a batch, always as a list.

    Raises:
        ValueError: With `enqueue_many`, the parts have no first dimension in common.
        InvalidArgumentError: At run time, a probability is outside ``[0, 1]``.
    """
    with variable_scope(name, "rejection_sample"):
        parts = [convert_to_tensor(tensor) for tensor in tensors]
        if enqueue_many:
            parts = _one_by_one(_same_number(parts), prebatch_capacity, prebatch_threads)
        accepted = accept_prob_fn(parts)
        if runtime_checks:
            checks = [check_ops.assert_less_equal(0.0, accepted), check_ops.assert_less_equal(accepted, 1.0)]
            with get_default_graph().control_dependencies(checks):
                accepted = array_ops.identity(accepted, name="prob_with_checks")
        return _accepted(parts, accepted, batch_size, queue_threads)


def stratified_sample(
    tensors: Sequence[TensorLike],
    labels: TensorLike,
    target_probs: TensorLike,
    batch_size: int,
    init_probs: TensorLike | None = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Batches in which classes have given frequencies. Examples are dropped for it. Queue runners fill them.

    Args:
        tensors: A list: the parts of one example, or of several with `enqueue_many`.
        labels: The class of the example, an integer scalar, or a vector with `enqueue_many`.
        target_probs: Shape ``[classes]``, known: the frequencies in batches; their sum is 1.
        batch_size: Examples in a batch.
        init_probs: The frequencies in the data; counted as examples come in when None.
        enqueue_many: Whether the first dimension of `tensors` and `labels` counts examples.
        queue_capacity: How many examples wait to be accepted.
        threads_per_queue: Threads of each queue.
        name: Name scope of the operations.

    Returns:
        The parts of a batch, and their classes.

    Raises:
        TypeError: `tensors` is no list.
        ValueError: Shapes do not fit, or a class that the data lacks is wanted.
        InvalidArgumentError: At run time, a class does not exist, or frequencies are negative or their sum is not 1.

    References:
        Von Neumann, "Various techniques used in connection with random digits", 1951: rejection.
    """
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"stratified_sample: tensors must be a list, not {tensors!r}")
    with get_default_graph().name_scope(name or "stratified_sample"):
        parts = [convert_to_tensor(tensor) for tensor in tensors]
        classes = convert_to_tensor(labels)
        wanted = convert_to_tensor(target_probs, dtypes.float32)
        if not enqueue_many:
            parts, classes = [part[None] for part in parts], classes[None]
        wanted.shape.with_rank(1).assert_is_fully_defined()
        count = wanted.shape.num_elements() or 0
        found = frequencies(classes, count) if init_probs is None else convert_to_tensor(init_probs, dtypes.float32)
        found.shape.assert_is_compatible_with(wanted.shape)
        _check_constants(found, wanted)
        parts, classes, [found, wanted] = checked_examples(parts, classes, [found, wanted])
        accept = acceptance(found, wanted)
        *parts, label = _one_by_one([*parts, classes], queue_capacity, threads_per_queue)
        accepted = array_ops.gather(accept, label)
        *batched, batched_labels = _accepted([*parts, label], accepted, batch_size, threads_per_queue)
        return batched, batched_labels


def frequencies(labels: Tensor, count: int, start: int = 10) -> Tensor:
    """How often each class has come so far, shape ``[count]``. Each starts as if it had come `start` times.

    Raises:
        ValueError: `start` is not positive.
    """
    if start <= 0:
        raise ValueError("smoothing_constant must be nonzero.")
    seen = Variable(np.full(count, start, np.int64), trainable=False, name="class_count")
    total = seen.assign_add(math_ops.reduce_sum(one_hot(labels, count, dtype=dtypes.int64), 0))
    # Read once: other threads count meanwhile.
    total = array_ops.cast(array_ops.identity(total), dtypes.float32)
    return total / math_ops.reduce_sum(total)


def acceptance(found: TensorLike, wanted: TensorLike) -> Tensor:
    """With which probability an example of each class is accepted, so that frequencies `found` become those `wanted`.

    Args:
        found: Shape ``[classes]``: the frequencies in the data.
        wanted: Same shape: those in batches.

    Returns:
        Same shape. The largest is 1, and a class that is not wanted has 0.
    """
    asked = convert_to_tensor(wanted)
    unwanted = comparison_ops.equal(asked, array_ops.zeros_like(asked))
    ratio = array_ops.where(unwanted, array_ops.zeros_like(asked), asked / found)
    return ratio / math_ops.reduce_max(ratio)


def _check_constants(found: Tensor, wanted: Tensor) -> None:
    """Constants that do not fit fail before the graph runs."""
    known, asked = constant_value(found), constant_value(wanted)
    if known is not None and asked is not None and ((known == 0) & (asked != 0)).any():
        raise InvalidArgumentError(
            f"stratified_sample: All classes with zero initial probability must also have zero target probability: "
            f"{known.tolist()}, {asked.tolist()}"
        )


def checked_examples(
    parts: list[Tensor], labels: Tensor, probabilities: list[Tensor]
) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    """The parts of several examples, their classes and frequencies of classes, which fit each other or steps fail.

    Args:
        parts: Each of a shape ``[examples, ...]``.
        labels: Shape ``[examples]``, an integer dtype.
        probabilities: At least one, each of a shape ``[classes]``, known.

    Returns:
        The same, each after its checks.

    Raises:
        ValueError: Shapes do not fit.
        InvalidArgumentError: At run time, numbers of examples differ, a class does not exist, or frequencies are
            negative or their sum is not 1.
    """
    for each in probabilities:
        each.shape.assert_is_fully_defined()
        each.shape.assert_has_rank(1)
    if len({each.shape.num_elements() for each in probabilities}) > 1:
        raise ValueError("Probability parameters must have the same length.")
    labels.shape.assert_has_rank(1)
    *parts, labels = _same_number([*parts, labels])
    checked = []
    for each in probabilities:
        total = math_ops.reduce_sum(each)
        checks = [check_ops.assert_non_negative(each), check_ops.assert_near(total, 1.0, 1e-5, 1e-5)]
        with get_default_graph().control_dependencies(checks):
            checked.append(array_ops.identity(each))
    count = array_ops.cast(array_ops.size(probabilities[0]), labels.dtype)
    with get_default_graph().control_dependencies(
        [check_ops.assert_non_negative(labels), check_ops.assert_less(labels, count)]
    ):
        return parts, array_ops.identity(labels), checked


def _same_number(parts: list[Tensor]) -> list[Tensor]:
    """The parts, which must have the same first dimension: statically and in each step."""
    number = parts[-1].shape.with_rank_at_least(1)[:1]
    for part in parts:
        number.assert_is_compatible_with(part.shape.with_rank_at_least(1)[:1])
    size = array_ops.shape(parts[-1])[0]
    checked = []
    for part in parts:
        with get_default_graph().control_dependencies([check_ops.assert_equal(array_ops.shape(part)[0], size)]):
            checked.append(array_ops.identity(part))
    return checked


def _one_by_one(parts: list[Tensor], capacity: int, threads: int) -> list[Tensor]:
    """Single examples out of several, by a queue."""
    batched = batch(parts, batch_size=1, num_threads=threads, capacity=capacity, enqueue_many=True)
    return [array_ops.squeeze(part, [0]) for part in _as_list(batched)]


def _accepted(parts: list[Tensor], probability: Tensor, batch_size: int, threads: int) -> list[Tensor]:
    keep = comparison_ops.less(random_uniform([]), probability)
    return _as_list(maybe_batch(parts, keep, batch_size, num_threads=threads))


def _as_list(batched: Any) -> list[Tensor]:
    return [batched] if isinstance(batched, Tensor) else list(batched)


def resample_at_rate(
    inputs: Sequence[TensorLike],
    rates: TensorLike,
    scope: str | None = None,
    seed: int | None = None,
    back_prop: bool = False,
) -> list[Tensor]:
    """Examples of a batch, each as often as a random number says.

    Args:
        inputs: The parts of a batch, each of a shape ``[batch, ...]``.
        rates: Shape ``[batch]``, a float dtype: how often each example is taken on average. The numbers are drawn from
            Poisson distributions.
        scope: Name scope of the operations.
        seed: Seed of the random numbers.
        back_prop: Accepted for TensorFlow 1's sake: there is no gradient with respect to `rates`.

    Returns:
        The parts of the examples that were taken, ``[any, ...]`` each, in the order of `inputs`.
    """
    with get_default_graph().name_scope(scope or "resample_at_rate"):
        rates = convert_to_tensor(rates)
        counts = array_ops.cast(random_poisson(rates, [], rates.dtype, seed=seed), dtypes.int32)
        chosen = repeat(construction_ops.range_(array_ops.size(counts)), counts)
        return [array_ops.gather(convert_to_tensor(part), chosen) for part in inputs]


def weighted_resample(
    inputs: Sequence[TensorLike],
    weights: TensorLike,
    overall_rate: TensorLike,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Examples of batches, each on average as often as its weight among all weights says.

    Args:
        inputs: The parts of a batch, each of a shape ``[batch, ...]``.
        weights: Shape ``[batch]``, a float dtype.
        overall_rate: How often an example of mean weight is taken.
        scope: Name scope of the operations.
        mean_decay: What remains of the mean weight in a step: a moving average in the local variable
            ``estimated_mean``.
        seed: Seed of the random numbers.

    Returns:
        The parts of the examples that were taken, ``[any, ...]`` each, and their rates, ``[any]``.
    """
    with get_default_graph().name_scope(scope or "weighted_resample"):
        weights = convert_to_tensor(weights)
        with variable_scope(scope, "estimate_mean"):
            mean = get_local_variable("estimated_mean", [], weights.dtype, Zeros())
            mean = assign_moving_average(mean, math_ops.reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        taken_rates, *taken = resample_at_rate([rates, *inputs], rates, seed=seed)
        return taken, taken_rates
