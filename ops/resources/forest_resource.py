"""A forest of extremely randomised trees that grows while examples come in."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.op_def import Array
from tfray.ops.kernels.random_streams import entropy

_LEAF: Final = -1
_NO_SLOT: Final = -1
_TESTS_AT_ONCE: Final = 1 << 18
"""How many tests of examples by candidates are made at once, so that their arrays stay small."""

_WALKS_AT_ONCE: Final = 1 << 19
"""How many walks of examples through trees a prediction makes at once, for the same reason."""


@dataclass(frozen=True)
class ForestSettings:
    """What a forest is like.

    Attributes:
        trees: Number of trees.
        max_nodes: A tree with so many nodes, or more, grows no further.
        features: Number of features of an example. More are taken as they come.
        outputs: Number of classes, or of values to predict.
        is_regression: Whether values are predicted. Otherwise a class is.
        candidates: Number of splits that a leaf chooses from.
        split_after: Weight of the examples that a leaf counts before it is split.
        is_strict: Whether an example goes to the left below a threshold only; otherwise also at it.
        bagging_fraction: Probability with which a tree takes an example in.
        seed: Seed of all choices; drawn when None.
    """

    trees: int
    max_nodes: int
    features: int
    outputs: int
    is_regression: bool
    candidates: int
    split_after: float
    is_strict: bool
    bagging_fraction: float
    seed: int | None

    @property
    def columns(self) -> int:
        """Number of sums that are kept of examples.

        The weight of each class; or the weight, the sum of each value, and the sum of its squares.
        """
        return 1 + 2 * self.outputs if self.is_regression else self.outputs


class _Rows:
    """Arrays with a row for each of many things, of which there come more.

    Args:
        columns: By name, the shape of a row, its dtype, and the value that it begins with.
    """

    def __init__(self, columns: Mapping[str, tuple[tuple[int, ...], Any, float]]) -> None:
        self.count = 0
        self._columns = columns
        self._arrays = {name: np.full((0, *shape), fill, dtype) for name, (shape, dtype, fill) in columns.items()}

    def __getitem__(self, name: str) -> Array:
        """The array, with rows to spare at its end."""
        return self._arrays[name]

    def add(self, number: int) -> Array:
        """Add so many rows. Returns their numbers."""
        first, self.count = self.count, self.count + number
        size = len(next(iter(self._arrays.values())))
        if self.count > size:
            size = max(self.count, 2 * size)
            for name, (shape, dtype, fill) in self._columns.items():
                larger = np.full((size, *shape), fill, dtype)
                larger[:first] = self._arrays[name][:first]
                self._arrays[name] = larger
        return np.arange(first, self.count)

    def reset(self, rows: Array) -> None:
        """Let rows be as in the beginning."""
        for name, (_, _, fill) in self._columns.items():
            self._arrays[name][rows] = fill

    def state(self, prefix: str) -> dict[str, Array]:
        """The rows as arrays."""
        return {prefix + name: array[: self.count].copy() for name, array in self._arrays.items()}

    def restored(self, prefix: str, arrays: Mapping[str, Array]) -> _Rows:
        """Rows of the same kind with what `state` gave. Raises `ValueError` if their shapes differ."""
        made = _Rows(self._columns)
        for name, (shape, dtype, _) in self._columns.items():
            array = np.array(arrays[prefix + name], dtype)
            if array.shape[1:] != shape:
                raise ValueError(f"{prefix + name} has rows of shape {array.shape[1:]}, not {shape}")
            made._arrays[name], made.count = array, len(array)
        return made


@dataclass(frozen=True)
class _Batch:
    """Examples, and what each adds to the sums of its leaf: `values` at the `columns`, both ``[batch, n]``."""

    features: Array
    columns: Array
    values: Array


class Forest:
    """Extremely randomised trees that learn from batches of examples.

    A leaf draws its candidates from the first examples that reach it: a feature by chance, and the example's value of
    it as threshold. Examples that come later are counted on either side of each candidate. When their weight is that of
    ``split_after``, and they do not all have one class, the leaf becomes a node with the best candidate and two leaves,
    which know what has been counted on either side. The best has the smallest impurity: Gini's, of counts that all
    begin with one, or the squared distance from the mean. All examples of a batch go to the leaves that there were
    before it.

    The nodes of all trees are in one set of arrays, so that all trees work on a batch together. The first nodes are the
    roots; the right child of a node follows the left one.

    Args:
        name: The forest's name, for errors.
        settings: What it is like.
    """

    def __init__(self, name: str, settings: ForestSettings) -> None:
        self.name = name
        self.settings = settings
        self._lock = threading.Lock()
        # Counts of examples are exact in float32, sums of squares are not.
        sums = ((settings.columns,), np.float64 if settings.is_regression else np.float32, 0)
        each = (settings.candidates,)
        self._nodes = _Rows(
            {
                "feature": ((), np.int32, _LEAF),
                "threshold": ((), np.float32, 0),
                "left_child": ((), np.int32, 0),
                "tree": ((), np.int32, 0),
                "slot": ((), np.int32, _NO_SLOT),
                "sums": sums,
            }
        )
        self._slots = _Rows(
            {
                "candidates": ((), np.int32, 0),
                "feature": (each, np.int32, 0),
                "threshold": (each, np.float32, 0),
                "left": ((*each, *sums[0]), *sums[1:]),
                "total": sums,
            }
        )
        self._free = np.empty(0, np.int64)
        self._sizes = np.ones(settings.trees, np.int64)
        self._batches = np.zeros(settings.trees, np.int64)
        self._width = 0  # what trained it had so many features
        self._seed = int(entropy(1)[0]) >> 32 if settings.seed is None else int(settings.seed)
        roots = self._nodes.add(settings.trees)
        self._nodes["tree"][roots] = roots

    # -- learning ------------------------------------------------------------------------------------------

    def train(self, features: Array, labels: Array, weights: Array, chosen: Array, first: int, last: int) -> None:
        """Take a batch of examples in.

        Args:
            features: Shape ``[batch, features]``, of the same number of features each time.
            labels: Classes, shape ``[batch]``, or values, ``[batch, outputs]``.
            weights: Shape ``[batch]``; empty for weights of one.
            chosen: The features that each tree may use, ``[trees, n]``; all if there are none.
            first: The first tree that learns.
            last: The one behind the last tree that does.

        Raises:
            InvalidArgumentError: Shapes do not fit, or a class does not exist.
        """
        batch = self._batch(features, labels, weights)
        with self._lock:
            self._check_width(features)
            self._width = features.shape[1]
            random = np.random.default_rng([self._seed, first, int(self._batches[first])])
            self._batches[first:last] += 1
            shape = (last - first, len(features))
            taken = np.ones(shape, bool)
            if self.settings.bagging_fraction < 1:
                taken = random.random(shape) < self.settings.bagging_fraction
            leaf, example = np.nonzero(taken)
            leaf = self._walk(batch.features, leaf + first, example)
            self._count(self._nodes["sums"], leaf, batch, example)
            grows = self._sizes[self._nodes["tree"][leaf]] < self.settings.max_nodes
            if grows.any():
                self._learn(batch, leaf[grows], example[grows], chosen, random)

    def _batch(self, features: Array, labels: Array, weights: Array) -> _Batch:
        settings, size = self.settings, len(features)
        expected = (size, settings.outputs) if settings.is_regression else (size, 1)
        if labels.size != expected[0] * expected[1]:
            raise InvalidArgumentError(f"forest {self.name!r}: labels have shape {labels.shape}, expected {expected}")
        if weights.size not in (0, size):
            raise InvalidArgumentError(f"forest {self.name!r}: {weights.size} weights for {size} examples")
        labels = labels.reshape(expected)
        weight = np.reshape(weights, (size, 1)) if weights.size else np.ones((size, 1), np.float32)
        if settings.is_regression:
            labels = labels.astype(np.float64)
            values = np.concatenate([weight, weight * labels, weight * labels**2], 1)
            return _Batch(features, np.broadcast_to(np.arange(settings.columns), values.shape), values)
        wrong = ~((labels >= 0) & (labels < settings.outputs))
        if wrong.any():
            raise InvalidArgumentError(
                f"forest {self.name!r} has classes from 0 to {settings.outputs - 1}, a label is {labels[wrong][0]:g}"
            )
        return _Batch(features, labels.astype(np.int64), weight)

    def _check_width(self, features: Array) -> None:
        if features.shape[1] != self._width and self._width:
            raise InvalidArgumentError(
                f"forest {self.name!r} was trained with {self._width} features, the examples have {features.shape[1]}"
            )

    def _walk(self, features: Array, node: Array, example: Array) -> Array:
        """The leaves at which examples arrive that start at nodes."""
        node = node.copy()
        of, threshold, child = self._nodes["feature"], self._nodes["threshold"], self._nodes["left_child"]
        moving = np.arange(len(node))
        while True:
            here = node[moving]
            feature = of[here]
            inner = feature != _LEAF
            moving, here = moving[inner], here[inner]
            if not moving.size:
                return node
            value = features.take(example[moving] * features.shape[1] + feature[inner])
            node[moving] = child[here] + ~self._is_left(value, threshold[here])

    def _is_left(self, value: Array, threshold: Array) -> Array:
        return value < threshold if self.settings.is_strict else value <= threshold

    def _count(self, sums: Array, row: Array, batch: _Batch, example: Array) -> None:
        """Add examples to rows of sums."""
        flat, begin = sums.reshape(-1), row.astype(np.int64) * sums.shape[-1]
        for column, value in zip(batch.columns.T, batch.values.T, strict=True):
            np.add.at(flat, begin + column[example], value[example].astype(flat.dtype))

    def _learn(self, batch: _Batch, leaf: Array, example: Array, chosen: Array, random: np.random.Generator) -> None:
        """Let leaves draw candidates from examples, count the others, and split those that have enough."""
        order = np.argsort(leaf, kind="stable")
        leaf, example = leaf[order], example[order]
        leaves, begin, group, number = np.unique(leaf, return_index=True, return_inverse=True, return_counts=True)
        self._give_slots(leaves)
        slots = self._slots
        of_leaf = self._nodes["slot"][leaves]
        slot, before = of_leaf[group], slots["candidates"][of_leaf]
        place = before[group] + np.arange(len(leaf)) - begin[group]
        is_new = place < self.settings.candidates
        self._draw(batch, leaf[is_new], example[is_new], slot[is_new], place[is_new], chosen, random)
        slots["candidates"][of_leaf] = np.minimum(before + number, self.settings.candidates)
        slot, example = slot[~is_new], example[~is_new]
        self._count(slots["total"], slot, batch, example)
        step = max(1, _TESTS_AT_ONCE // self.settings.candidates)
        left = slots["left"].reshape(-1, self.settings.columns)
        for start in range(0, len(slot), step):
            part, some = slot[start : start + step].astype(np.int64), example[start : start + step]
            value = batch.features.take(some[:, None] * self._width + slots["feature"][part])
            test = np.flatnonzero(self._is_left(value, slots["threshold"][part]))
            row, candidate = np.divmod(test, self.settings.candidates)
            self._count(left, part[row] * self.settings.candidates + candidate, batch, some[row])
        self._split(leaves[self._is_finished(slots["total"][of_leaf])])

    def _draw(
        self,
        batch: _Batch,
        leaf: Array,
        example: Array,
        slot: Array,
        place: Array,
        chosen: Array,
        random: np.random.Generator,
    ) -> None:
        """Make an example a candidate of its leaf."""
        feature = random.integers(chosen.shape[1] or self._width, size=len(leaf))
        if chosen.shape[1]:
            feature = chosen[self._nodes["tree"][leaf], feature]
        self._slots["feature"][slot, place] = feature
        self._slots["threshold"][slot, place] = batch.features[example, feature]

    def _give_slots(self, leaves: Array) -> None:
        """Give leaves places for candidates and counts, if they have none."""
        new = leaves[self._nodes["slot"][leaves] == _NO_SLOT]
        used, self._free = self._free[: len(new)], self._free[len(new) :]
        more = self._slots.add(len(new) - len(used))
        self._nodes["slot"][new] = np.concatenate([used, more])

    def _take_slots(self, nodes: Array) -> None:
        """Take the places of nodes back."""
        slots = self._nodes["slot"][nodes]
        self._nodes["slot"][nodes] = _NO_SLOT
        self._slots.reset(slots)
        self._free = np.concatenate([self._free, slots])

    def _is_finished(self, total: Array) -> Array:
        """Whether leaves, of which the sums of what they have counted are given, are to be split."""
        if self.settings.is_regression:
            return total[:, 0] >= self.settings.split_after
        return (total.sum(1) >= self.settings.split_after) & (np.count_nonzero(total, axis=1) > 1)

    def _split(self, leaves: Array) -> None:
        """Split leaves, as long as their trees may grow."""
        tree = self._nodes["tree"][leaves]
        order = np.argsort(tree, kind="stable")
        leaves, tree = leaves[order], tree[order]
        earlier = np.arange(len(tree)) - np.searchsorted(tree, tree)
        may = self._sizes[tree] + 2 * earlier < self.settings.max_nodes
        leaves, tree = leaves[may], tree[may]
        slot = self._nodes["slot"][leaves]
        left, total = self._slots["left"][slot], self._slots["total"][slot]
        best, is_useful = self._best(left, total[:, None])
        # What cannot be split begins anew, with other candidates.
        self._slots.reset(slot[~is_useful])
        leaves, tree, slot, total, best = (part[is_useful] for part in (leaves, tree, slot, total, best))
        if not len(leaves):
            return
        child = self._nodes.add(2 * len(leaves))[::2]
        nodes = self._nodes
        nodes["feature"][leaves] = self._slots["feature"][slot, best]
        nodes["threshold"][leaves] = self._slots["threshold"][slot, best]
        nodes["left_child"][leaves] = child
        nodes["tree"][child] = nodes["tree"][child + 1] = tree
        nodes["sums"][child] = self._slots["left"][slot, best]
        nodes["sums"][child + 1] = total - nodes["sums"][child]
        np.add.at(self._sizes, tree, 2)
        is_full = self._sizes[nodes["tree"][: nodes.count]] >= self.settings.max_nodes
        is_full[leaves] = True
        self._take_slots(np.flatnonzero(is_full & (nodes["slot"][: nodes.count] != _NO_SLOT)))

    def _best(self, left: Array, total: Array) -> tuple[Array, Array]:
        """The numbers of the best candidates, and whether these have examples on both sides."""
        impurity = np.zeros(left.shape[:2])
        is_useful = np.ones(left.shape[:2], bool)
        for sums in (left.astype(np.float64), total - left.astype(np.float64)):
            if self.settings.is_regression:
                weight, value, square = np.split(sums, [1, 1 + self.settings.outputs], axis=2)
                with np.errstate(divide="ignore", invalid="ignore"):
                    impurity += (square - value**2 / weight).sum(2)
                is_useful &= weight[..., 0] > 0
            else:
                weight = sums.sum(2) + self.settings.outputs
                impurity += weight - np.square(sums + 1).sum(2) / weight
                is_useful &= sums.sum(2) > 0
        best = np.where(is_useful, impurity, np.inf).argmin(1)
        return best, is_useful[np.arange(len(best)), best]

    # -- answers -------------------------------------------------------------------------------------------

    def predict(self, features: Array, with_paths: bool) -> tuple[Array, Array, Array]:
        """What the trees say of examples.

        Args:
            features: Shape ``[batch, features]``.
            with_paths: Whether to tell the ways through the trees.

        Returns:
            The mean over the trees, of their probabilities or values, and the variance, ``[batch, outputs]``, float32.
            The nodes on the way through each tree, ``[batch, trees]``, as bytes with commas between them; without
            `with_paths`, an array of shape ``[0, trees]``.

        Raises:
            InvalidArgumentError: The forest was trained with another number of features.
        """
        settings, size = self.settings, len(features)
        mean = np.zeros((size, settings.outputs))
        square = np.zeros((size, settings.outputs))
        paths = np.full((size if with_paths else 0, settings.trees), b"", object)
        step = max(1, _WALKS_AT_ONCE // settings.trees)
        with self._lock:
            self._check_width(features)
            for start in range(0, size, step):
                some = slice(start, min(start + step, size))
                root, example = np.divmod(np.arange(settings.trees * (some.stop - start)), some.stop - start)
                leaf = self._walk(features[some], root, example).reshape(settings.trees, -1)
                for each in leaf:
                    answer = self._answers(self._nodes["sums"][each])
                    mean[some] += answer
                    square[some] += answer * answer
                if with_paths:
                    paths[some] = self._paths(leaf.T)
        mean, square = mean / settings.trees, square / settings.trees
        return mean.astype(np.float32), np.maximum(square - mean * mean, 0).astype(np.float32), paths

    def _answers(self, sums: Array) -> Array:
        """Probabilities, or mean values, of leaves; zeros where they know nothing."""
        is_regression = self.settings.is_regression
        weight = (sums[:, :1] if is_regression else sums.sum(1, keepdims=True)).astype(np.float64)
        value = sums[:, 1 : 1 + self.settings.outputs] if is_regression else sums
        return np.divide(value, weight, out=np.zeros(value.shape), where=weight > 0)

    def _paths(self, leaves: Array) -> Array:
        nodes = self._nodes
        inner = np.flatnonzero(nodes["feature"][: nodes.count] != _LEAF)
        parent = np.full(nodes.count, -1)
        child = nodes["left_child"][inner]
        parent[child] = parent[child + 1] = inner
        told = np.empty(leaves.shape, object)
        known: dict[int, bytes] = {}
        for place, leaf in np.ndenumerate(leaves):
            if leaf not in known:
                way = [int(leaf)]
                while parent[way[-1]] >= 0:
                    way.append(int(parent[way[-1]]))
                known[leaf] = ",".join(map(str, reversed(way))).encode()
            told[place] = known[leaf]
        return told

    def sizes(self) -> Array:
        """The number of nodes of each tree, int32."""
        return self._sizes.astype(np.int32)

    def feature_counts(self) -> Array:
        """How many nodes test each feature, int32."""
        with self._lock:
            feature = self._nodes["feature"][: self._nodes.count]
            tested = feature[(feature != _LEAF) & (feature < self.settings.features)]
            return np.bincount(tested, minlength=self.settings.features).astype(np.int32)

    # -- checkpoints ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, Array]:
        """Everything as arrays, for a checkpoint."""
        with self._lock:
            return {
                **self._nodes.state("node_"),
                **self._slots.state("slot_"),
                "free": self._free.copy(),
                "sizes": self._sizes.copy(),
                "batches": self._batches.copy(),
                "seed": np.array([self._seed], np.int64),
                "width": np.array([self._width], np.int64),
            }

    def restore_state(self, arrays: Mapping[str, Array]) -> None:
        """Replace everything by what `state` gave. That forest must have had as many trees and outputs."""
        sizes = np.array(arrays["sizes"])
        if sizes.shape != self._sizes.shape:
            raise ValueError(f"forest {self.name!r} has {len(self._sizes)} trees, the saved one {len(sizes)}")
        nodes, slots = self._nodes.restored("node_", arrays), self._slots.restored("slot_", arrays)
        with self._lock:
            self._nodes, self._slots, self._sizes = nodes, slots, sizes
            self._free, self._batches = np.array(arrays["free"]), np.array(arrays["batches"])
            self._seed, self._width = int(arrays["seed"][0]), int(arrays["width"][0])
