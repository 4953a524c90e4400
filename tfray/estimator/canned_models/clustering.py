"""The graph of k-means: the centres of clusters as a variable, chosen from the data and then moved step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.broadcast_ops import ones, where, zeros, zeros_like
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.grouping_ops import group
from tfray.ops.arrays.join_ops import concat, stack
from tfray.ops.arrays.shape_ops import cast, expand_dims, reshape, shape
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control.control_flow_ops import cond, while_loop
from tfray.ops.math.arithmetic_ops import add_n, log, maximum, minimum
from tfray.ops.math.comparison_ops import equal, less, less_equal, logical_and
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_min, reduce_sum
from tfray.ops.math.search_ops import argmin, top_k
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.nn.normalization_ops import l2_normalize
from tfray.ops.random.random_ops import random_uniform
from tfray.ops.random.stateless_random_ops import stateless_multinomial, stateless_random_uniform
from tfray.ops.state.state_ops import assign

SQUARED_EUCLIDEAN_DISTANCE: Final = "squared_euclidean"
COSINE_DISTANCE: Final = "cosine"
RANDOM_INIT: Final = "random"
KMEANS_PLUS_PLUS_INIT: Final = "kmeans_plus_plus"
CLUSTERS_VAR_NAME: Final = "clusters"


class TrainingGraph(NamedTuple):
    """What `KMeans.training_graph` returns. Those of tensors of points are tuples, one for each tensor.

    Attributes:
        all_scores: Distance of each point to each centre, shape ``[points, clusters]``.
        cluster_idx: The nearest centre of each point, int64, shape ``[points]``.
        scores: Distance to that centre, shape ``[points]``.
        cluster_centers_initialized: The bool variable that says whether all centres have been chosen.
        init_op: Chooses centres from a batch of points; to be run until all have been.
        training_op: Moves the centres once.
    """

    all_scores: tuple[Tensor, ...]
    cluster_idx: tuple[Tensor, ...]
    scores: tuple[Tensor, ...]
    cluster_centers_initialized: Any
    init_op: Operation
    training_op: Any


class KMeans:
    """Describes the graph of k-means.

    Args:
        inputs: Points, a float32 tensor of shape ``[points, dimensions]``, or several.
        num_clusters: The number of clusters. It is not read where `initial_clusters` are centres.
        initial_clusters: How the first centres are chosen: `RANDOM_INIT` or `KMEANS_PLUS_PLUS_INIT`, the centres
            themselves, or a function from the points (as a list of tensors) and a number to so many centres or fewer.
        distance_metric: `SQUARED_EUCLIDEAN_DISTANCE` or `COSINE_DISTANCE`.
        use_mini_batch: Move the centres by a batch of the points at a time. Otherwise every step has all points.
        mini_batch_steps_per_iteration: After how many batches the centres are taken over by which points are assigned.
        random_seed: Seed of the choice.
        kmeans_plus_plus_num_retries: How many further points are drawn for each centre, of which the best is taken;
            below 0, a number that grows with the logarithm of that of the clusters.

    Raises:
        ValueError: There is no such way to choose, or metric.
    """

    def __init__(
        self,
        inputs: TensorLike | Sequence[TensorLike],
        num_clusters: TensorLike,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
    ) -> None:
        check_choices(initial_clusters, distance_metric)
        given: Any = inputs if isinstance(inputs, list) else [inputs]
        self._inputs = [convert_to_tensor(each, dtypes.float32) for each in given]
        self._given: Any = None
        if not isinstance(initial_clusters, str) and not callable(initial_clusters):
            self._given = convert_to_tensor(initial_clusters, dtypes.float32)
            num_clusters = shape(self._given)[0]
        self._count = convert_to_tensor(num_clusters, dtypes.int32)
        self._choice = initial_clusters
        self._is_cosine = distance_metric == COSINE_DISTANCE
        self._mini_batch = use_mini_batch
        self._every = int(mini_batch_steps_per_iteration)
        self._seed = random_seed
        self._retries = kmeans_plus_plus_num_retries

    def training_graph(self) -> TrainingGraph:
        """Add the variables and operations to the graph."""
        keeps_copy = self._mini_batch and self._every > 1
        centres = _any_size(CLUSTERS_VAR_NAME)
        initialized = Variable(False, trainable=True, name="initialized", dtype=dtypes.bool_)
        moved = _any_size("clusters_updated") if keeps_copy else centres
        points = [l2_normalize(each, 1) for each in self._inputs] if self._is_cosine else self._inputs
        init_op = self._initialize(centres, moved, initialized)
        current = centres.value()
        if self._is_cosine and self._mini_batch and not keeps_copy:
            current = l2_normalize(current, 1)
        all_scores = tuple(self._distances(each, current) for each in points)
        nearest = tuple(argmin(each, 1) for each in all_scores)
        scores = tuple(reduce_min(each, 1) for each in all_scores)
        if self._mini_batch:
            training_op = self._by_mini_batch(points, nearest, centres, moved, keeps_copy)
        else:
            training_op = self._by_all(points, nearest, centres)
        return TrainingGraph(all_scores, nearest, scores, initialized, init_op, training_op)

    def _distances(self, points: Tensor, centres: Tensor) -> Tensor:
        products = matmul(points, centres, transpose_b=True)
        if self._is_cosine:
            return 1 - products
        squares = reduce_sum(points * points, 1, keepdims=True)
        return squares - 2 * products + expand_dims(reduce_sum(centres * centres, 1), 0)

    # -- the first centres -------------------------------------------------------------------------------

    def _initialize(self, centres: Any, moved: Any, initialized: Any) -> Operation:
        missing = self._count - shape(centres.value())[0]

        def choose() -> Tensor:
            chosen = self._chosen(missing)
            before = reshape(centres.value(), stack([-1, shape(chosen)[1]]))  # at first it has no columns either
            found = concat([before, l2_normalize(chosen, 1) if self._is_cosine else chosen], 0)
            with get_default_graph().control_dependencies([assign(centres, found, validate_shape=False)]):
                copied = group() if moved is centres else assign(moved, found, validate_shape=False)
            with get_default_graph().control_dependencies([getattr(copied, "op", copied)]):
                return cast(initialized.assign(equal(shape(found)[0], self._count)), dtypes.int32)

        def all_there() -> Tensor:
            return convert_to_tensor(0)

        return group(cond(equal(missing, 0), all_there, choose))

    def _chosen(self, missing: Tensor) -> Tensor:
        points = concat(self._inputs, 0)
        count = shape(points)[0]
        if self._given is not None:
            return self._given
        if callable(self._choice):
            chosen: Tensor = convert_to_tensor(self._choice(self._inputs, missing), dtypes.float32)
            return chosen
        if self._choice == RANDOM_INIT:

            def drawn() -> Tensor:
                places = random_uniform(reshape(missing, [1]), 0, count, dtypes.int32, seed=self._seed)
                return gather(points, places)

            return cond(less_equal(count, missing), lambda: points, drawn)
        enough = Assert(less_equal(missing, count), ["k-means++ needs a first batch of", missing, "points, not", count])
        with get_default_graph().control_dependencies([enough]):
            first = l2_normalize(self._inputs[0], 1) if self._is_cosine else self._inputs[0] + 0
        return _spread_out(first, missing, self._retries, self._seed_value())

    def _seed_value(self) -> Tensor:
        if self._seed is not None:
            return convert_to_tensor(self._seed, dtypes.int64)
        return random_uniform([], 0, dtypes.int64.max, dtypes.int64)

    # -- moving them -------------------------------------------------------------------------------------

    def _by_all(self, points: Sequence[Tensor], nearest: Sequence[Tensor], centres: Any) -> Any:
        sums, counts = self._totals(points, nearest)
        means = sums / (expand_dims(counts, 1) + 1e-6)
        return assign(centres, l2_normalize(means, 1) if self._is_cosine else means, validate_shape=False)

    def _totals(self, points: Sequence[Tensor], nearest: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Sum and number of the points of each cluster."""
        sums = [unsorted_segment_sum(each, to, self._count) for each, to in zip(points, nearest, strict=True)]
        counts = [unsorted_segment_sum(ones(shape(to), dtypes.float32), to, self._count) for to in nearest]
        return add_n(sums), add_n(counts)

    def _by_mini_batch(
        self, points: Sequence[Tensor], nearest: Sequence[Tensor], centres: Any, moved: Any, keeps_copy: bool
    ) -> Any:
        """Move each centre towards the mean of its points, by less the more points it has had.

        Where points are assigned by a copy of the centres, which changes after several batches only, the numbers of
        points begin at 0 with each copy, otherwise at 1.
        """
        graph = get_default_graph()
        initial: Callable[..., Tensor] = zeros if keeps_copy else ones
        seen = Variable(initial(reshape(self._count, [1]), dtypes.int64), name="Variable", validate_shape=False)
        sums, counts = self._totals(points, nearest)
        whole = cast(counts, dtypes.int64)
        with graph.control_dependencies([self._take_over(centres, moved, seen)] if keeps_copy else []):
            before, place = seen.read_value(), moved.read_value()
        total = cast(maximum(before + whole, 1), dtypes.float32)
        change = (sums - expand_dims(counts, 1) * place) / expand_dims(total, 1)
        return group(
            assign(seen, before + whole, validate_shape=False), assign(moved, place + change, validate_shape=False)
        )

    def _take_over(self, centres: Any, moved: Any, seen: Any) -> Operation:
        left = Variable(self._every, name="update_in_steps", dtype=dtypes.int64)

        def copy() -> Tensor:
            place = moved.value()
            taken = assign(centres, l2_normalize(place, 1) if self._is_cosine else place, validate_shape=False)
            cleared = assign(seen, zeros(reshape(self._count, [1]), dtypes.int64), validate_shape=False)
            with get_default_graph().control_dependencies([group(taken, cleared)]):
                return convert_to_tensor(left.assign(self._every - 1))

        return group(cond(less_equal(left.value(), 0), copy, lambda: convert_to_tensor(left.assign_sub(1))))


def _spread_out(points: Tensor, wanted: Tensor, retries: TensorLike, seed: Tensor) -> Tensor:
    """Centres by k-means++: each is drawn by its squared distance to those before it."""
    first = stateless_random_uniform([1], stack([seed, 0]), 0, shape(points)[0], dtypes.int32)
    start = gather(points, first)
    logarithm = cast(log(cast(maximum(wanted, 1), dtypes.float32)), dtypes.int32)
    retries = cast(convert_to_tensor(retries), dtypes.int32)
    tries = 1 + where(less(retries, 0), 2 + logarithm, retries)

    def draw(index: Tensor, chosen: Tensor, nearest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Where all points are centres already, all distances are 0: then any point will do.
        odds = expand_dims(log(nearest + np.float32(1e-30)), 0)
        places = stateless_multinomial(odds, tries, stack([seed, cast(index, dtypes.int64)]))[0]
        candidates = gather(points, places)
        following = minimum(_squares(candidates, points), nearest)
        best = argmin(reduce_sum(following, 1), 0)
        return index + 1, concat([chosen, expand_dims(gather(candidates, best), 0)], 0), gather(following, best)

    width = points.shape.with_rank(2)[1]
    _, chosen, _ = while_loop(
        lambda index, *_: index < wanted,
        draw,
        (1, start, _squares(start, points)[0]),
        shape_invariants=(start.shape[:0], [None, width], [None]),
        back_prop=False,
    )
    return chosen


def _squares(points: Tensor, others: Tensor) -> Tensor:
    """Squared distances, shape ``[points, others]``."""
    products = matmul(points, others, transpose_b=True)
    norms = expand_dims(reduce_sum(points * points, 1), 1) + reduce_sum(others * others, 1)
    return maximum(norms - 2 * products, 0)


def kmeans_plus_plus_initialization(
    points: TensorLike,
    num_to_sample: TensorLike,
    seed: TensorLike,
    num_retries_per_sample: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Choose rows by k-means++: each is drawn by its squared distance to those before it.

    Args:
        points: The rows, float32 of shape ``[points, dimensions]``.
        num_to_sample: How many rows, from 1 to all.
        seed: Seed of the choice, an integer scalar: the same one always chooses the same.
        num_retries_per_sample: How many further rows are drawn for each, of which the best is taken; below 0, a number
            that grows with the logarithm of `num_to_sample`.
        name: Name scope.

    Returns:
        The rows, float32 of shape ``[num_to_sample, dimensions]``.

    Raises:
        InvalidArgumentError: From the step, if there are fewer rows or `num_to_sample` is below 1.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "KmeansPlusPlusInitialization"):
        rows = convert_to_tensor(points, dtypes.float32)
        wanted, count = cast(convert_to_tensor(num_to_sample), dtypes.int32), shape(rows)[0]
        some = Assert(less(0, wanted), ["Expected num_to_sample > 0."])
        enough = Assert(less_equal(wanted, count), ["Expected num_to_sample <= points.rows().", wanted, "vs", count])
        with graph.control_dependencies([some, enough]):
            wanted = wanted + 0
        return _spread_out(rows, wanted, num_retries_per_sample, cast(convert_to_tensor(seed), dtypes.int64))


def kmc2_chain_initialization(distances: TensorLike, seed: TensorLike, name: str | None = None) -> Tensor:
    """Choose a point by the Markov chain of k-MC2, which walks over all points from the first one on.

    Args:
        distances: Squared distance of each point to the nearest centre so far, float32 of shape ``[points]``. The chain
            moves to a point with the probability of the quotient of its distance and that of the point it is at.
        seed: Seed of the chain, an integer scalar: the same one always chooses the same.
        name: Name scope.

    Returns:
        The index of the point, an int64 scalar.

    Raises:
        ValueError: `distances` is no vector.
        InvalidArgumentError: From the step, if there are no points.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "KMC2ChainInitialization"):
        values = convert_to_tensor(distances, dtypes.float32)
        values.shape.assert_has_rank(1)
        count = shape(values)[0]
        with graph.control_dependencies([Assert(less(0, count), ["Expected distances_tensor.size() > 0."])]):
            places = range_(count)
        chances = stateless_random_uniform(shape(values), stack([cast(convert_to_tensor(seed), dtypes.int64), 0]))

        def following(place: Tensor) -> Tensor:
            """The next point that the chain moves to; `count` if it stays."""
            moves = logical_and(places > place, values > chances * gather(values, place))
            return reduce_min(where(moves, places, count + zeros_like(places)), 0)

        _, last = while_loop(
            lambda ahead, _: ahead < count, lambda ahead, _: (following(ahead), ahead), (0, 0), back_prop=False
        )
        return cast(last, dtypes.int64)


class NearestNeighbors(NamedTuple):
    """What `nearest_neighbors` returns: indices and squared distances."""

    nearest_center_indices: Tensor
    nearest_center_distances: Tensor


def nearest_neighbors(
    points: TensorLike, centers: TensorLike, k: TensorLike, name: str | None = None
) -> NearestNeighbors:
    """Find the nearest centres of each point.

    Args:
        points: Float32 of shape ``[points, dimensions]``.
        centers: Float32 of shape ``[centres, dimensions]``.
        k: How many centres; all if there are no more.
        name: Name scope.

    Returns:
        Indices, int64, and squared distances, float32, both of shape ``[points, k]``, the nearest first.

    Raises:
        ValueError: Something is no matrix, or the dimensions differ.
    """
    with get_default_graph().name_scope(name or "NearestNeighbors"):
        rows, others = convert_to_tensor(points, dtypes.float32), convert_to_tensor(centers, dtypes.float32)
        for each in (rows, others):
            each.shape.assert_has_rank(2)
        count = minimum(cast(convert_to_tensor(k), dtypes.int32), shape(others)[0])
        found = top_k(-_squares(rows, others), count)
        return NearestNeighbors(cast(found.indices, dtypes.int64), -found.values)


def check_choices(initial_clusters: Any, distance_metric: str) -> None:
    """Raise `ValueError` unless there is such a way to choose centres, and such a metric."""
    choices = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT)
    if isinstance(initial_clusters, str) and initial_clusters not in choices:
        raise ValueError(f"initial_clusters is {initial_clusters!r}, expected one of {choices}, centres or a function")
    if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
        raise ValueError(
            f"distance_metric is {distance_metric!r}, expected {SQUARED_EUCLIDEAN_DISTANCE!r} or {COSINE_DISTANCE!r}"
        )


def _any_size(name: str) -> Any:
    """A variable without rows, which takes the shape of what is assigned to it."""
    return Variable(zeros([0, 0], dtypes.float32), name=name, validate_shape=False)
