"""How the operators of classic models (``ai.onnx.ml``) become operations: scalers, linear models, trees, labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.onnx.onnx_node import Node, loads, number
from tfray.onnx.onnx_types import CLASSIC
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import where_v2
from tfray.ops.control.control_flow_ops import while_loop
from tfray.ops.math import math_ops
from tfray.ops.math.special_ops import ndtri
from tfray.ops.nn import cross_entropy_ops


def _floats(node: Node, name: str) -> Any:
    """An attribute that lists numbers, or the tensor of higher precision that may stand for it."""
    exact = node.attr(f"{name}_as_tensor")
    return np.asarray(node.attr(name) or [], np.float32) if exact is None else np.asarray(exact)


def _as_float(x: Tensor) -> Tensor:
    return x if x.dtype is dtypes.float32 else array_ops.cast(x, dtypes.float32)


# -- features ------------------------------------------------------------------------------------------


@loads("Scaler", domain=CLASSIC)
def _scaler(node: Node) -> Tensor:
    x = _as_float(node.input(0))
    return (x - number(_floats(node, "offset"), x)) * number(_floats(node, "scale"), x)


@loads("Normalizer", domain=CLASSIC)
def _normalizer(node: Node) -> Tensor:
    x, kind = _as_float(node.input(0)), node.attr("norm")
    if kind == "MAX":
        size = math_ops.reduce_max(x, -1, True)
    elif kind == "L1":
        size = math_ops.reduce_sum(math_ops.abs(x), -1, True)
    else:
        size = math_ops.sqrt(math_ops.reduce_sum(math_ops.square(x), -1, True))
    return where_v2(math_ops.equal(size, 0), x, x / size)


@loads("Binarizer", domain=CLASSIC)
def _binarizer(node: Node) -> Tensor:
    x = node.input(0)
    return array_ops.cast(x > number(node.attr("threshold"), x), x.dtype)


@loads("Imputer", domain=CLASSIC)
def _imputer(node: Node) -> Tensor:
    x = node.input(0)
    kind = "float" if x.dtype.is_floating else "int64"
    values, missing = node.attr(f"imputed_value_{kind}s"), node.attr(f"replaced_value_{kind}")
    is_missing = (
        math_ops.is_nan(x) if x.dtype.is_floating and np.isnan(missing) else math_ops.equal(x, number(missing, x))
    )
    return where_v2(is_missing, array_ops.zeros_like(x) + number(values, x), x)


@loads("ArrayFeatureExtractor", domain=CLASSIC)
def _extractor(node: Node) -> Tensor:
    x, places = node.input(0), array_ops.reshape(node.input(1), [-1])
    x = array_ops.expand_dims(x, 0) if node.rank(x) == 1 else x
    return array_ops.gather(x, places, axis=node.rank(x) - 1)


@loads("FeatureVectorizer", domain=CLASSIC)
def _vectorizer(node: Node) -> Tensor:
    parts = [_as_float(node.input(index)) for index in range(len(node.inputs))]
    return array_ops.concat([array_ops.expand_dims(x, 0) if node.rank(x) == 1 else x for x in parts], 1)


def _keys(node: Node, prefix: str) -> tuple[np.ndarray[Any, Any], str] | None:
    """A list of labels, of one of the kinds that there may be, and that kind."""
    for kind, dtype in (("strings", object), ("int64s", np.int64), ("floats", np.float32)):
        found = node.attr(f"{prefix}{kind}")
        if found:
            return np.array(found, dtype), kind
    tensor = node.attr(f"{prefix}tensor")
    return None if tensor is None or not np.size(tensor) else (np.ravel(tensor), "tensor")


@loads("LabelEncoder", domain=CLASSIC)
def _label_encoder(node: Node) -> Tensor:
    x, keys, values = node.input(0), _keys(node, "keys_"), _keys(node, "values_")
    if keys is None or values is None or len(keys[0]) != len(values[0]):
        raise ValueError("it has not as many keys as values")
    defaults = {"strings": "_Unused", "int64s": -1, "floats": -0.0}
    kind = values[1]
    other = node.attr("default_tensor") if kind == "tensor" else node.attr(f"default_{kind[:-1]}", defaults[kind])
    other = np.ravel(other.encode() if isinstance(other, str) else other)[:1].astype(values[0].dtype)
    table = convert_to_tensor(np.concatenate([values[0], other]))
    found = math_ops.equal(array_ops.expand_dims(x, -1), convert_to_tensor(keys[0].astype(x.dtype.numpy)))
    beyond = array_ops.ones_like(found[..., :1])
    return array_ops.gather(
        table, math_ops.argmax(array_ops.cast(array_ops.concat([found, beyond], -1), dtypes.int32), -1)
    )


@loads("OneHotEncoder", domain=CLASSIC)
def _one_hot_encoder(node: Node) -> Tensor:
    x, categories = node.input(0), _keys(node, "cats_")
    if categories is None or not node.attr("zeros"):
        raise node.refuse("no categories, or zeros=0")
    wanted = convert_to_tensor(categories[0].astype(x.dtype.numpy))
    return array_ops.cast(math_ops.equal(array_ops.expand_dims(x, -1), wanted), dtypes.float32)


@loads("ZipMap", domain=CLASSIC)
def _zip_map(node: Node) -> Tensor:
    return array_ops.identity(node.input(0))


# -- scores --------------------------------------------------------------------------------------------


def _labels(node: Node) -> np.ndarray[Any, Any]:
    strings = node.attr("classlabels_strings")
    numbers = node.attr("classlabels_int64s") or node.attr("classlabels_ints")
    if not strings and not numbers:
        raise ValueError("it has no labels")
    return np.array(strings, object) if strings else np.array(numbers, np.int64)


def _transformed(scores: Tensor, how: str) -> Tensor:
    if how == "LOGISTIC":
        return math_ops.sigmoid(scores)
    if how == "SOFTMAX":
        return cross_entropy_ops.softmax(scores)
    if how == "SOFTMAX_ZERO":
        there = array_ops.cast(math_ops.not_equal(scores, array_ops.zeros_like(scores)), scores.dtype)
        raised = math_ops.exp(scores - math_ops.reduce_max(scores, -1, True)) * there
        return raised / math_ops.reduce_sum(raised, -1, True)
    return ndtri(scores) if how == "PROBIT" else scores


@loads("LinearRegressor", domain=CLASSIC)
def _linear_regressor(node: Node) -> Tensor:
    x, targets = _as_float(node.input(0)), node.attr("targets")
    weights = number(_floats(node, "coefficients").reshape(targets, -1).T, x)
    scores = math_ops.matmul(x, weights)
    offset = _floats(node, "intercepts")
    return _transformed(scores + number(offset, x) if offset.size else scores, node.attr("post_transform"))


@loads("LinearClassifier", domain=CLASSIC)
def _linear_classifier(node: Node) -> list[Tensor]:
    x, labels, how = _as_float(node.input(0)), _labels(node), node.attr("post_transform")
    offset = _floats(node, "intercepts")
    rows = max(1, offset.size) if offset.size else len(labels)
    scores = math_ops.matmul(x, number(_floats(node, "coefficients").reshape(rows, -1).T, x))
    scores = scores + number(offset, x) if offset.size else scores
    if rows == 1 and len(labels) == 2:
        chosen = array_ops.cast(scores[:, 0] > 0, dtypes.int64)
        both = array_ops.concat([-scores, scores], 1)
        return [array_ops.gather(convert_to_tensor(labels), chosen), _transformed(both, how)]
    return [array_ops.gather(convert_to_tensor(labels), math_ops.argmax(scores, 1)), _transformed(scores, how)]


# -- trees ---------------------------------------------------------------------------------------------

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_MAX_SPREAD = 256
"""Most numbers in the table of leaves for each weight in the file."""


class _Trees:
    """The trees of an ensemble, as arrays over all of their nodes.

    Args:
        node: The node.
        prefix: How the attributes of leaves begin: ``class`` or ``target``.
        count: Number of scores.
    """

    def __init__(self, node: Node, prefix: str, count: int) -> None:
        columns = {name: node.attr(f"nodes_{name}") or [] for name in ("treeids", "nodeids", "featureids", "modes",
                   "truenodeids", "falsenodeids")}  # fmt: skip
        size = len(columns["nodeids"])
        values = _floats(node, "nodes_values")
        if not size or any(len(column) != size for column in columns.values()) or len(values) != size:
            raise ValueError("its nodes have attributes of different lengths")
        keys = list(zip(columns["treeids"], columns["nodeids"], strict=True))
        place = {key: index for index, key in enumerate(keys)}
        modes = np.array([_MODES.index(mode.decode()) for mode in columns["modes"]])
        is_leaf = modes == _MODES.index("LEAF")
        self.children = []
        for name in ("truenodeids", "falsenodeids"):
            ids = zip(columns["treeids"], columns[name], range(size), strict=True)
            self.children.append(
                np.array([at if is_leaf[at] else place[tree, child] for tree, child, at in ids], np.int32)
            )
        self.features = np.where(is_leaf, 0, np.array(columns["featureids"], np.int64)).astype(np.int32)
        self.values, self.modes = values, modes.astype(np.int32)
        missing = node.attr("nodes_missing_value_tracks_true")
        self.missing = np.array(missing or [0] * size, bool)
        below = np.zeros(size, bool)
        for child in self.children:
            below[child[~is_leaf]] = True
        self.roots = np.flatnonzero(~below).astype(np.int32)
        self.depth = self._depth(is_leaf)
        self.leaves, self.rows = self._leaves(node, prefix, count, place, size)

    def _depth(self, is_leaf: np.ndarray[Any, Any]) -> int:
        """The number of decisions to the farthest leaf. Raises `ValueError` where a node leads back to itself."""
        level, depth, seen = self.roots, 0, len(self.roots)
        while not is_leaf[level].all():
            inner = level[~is_leaf[level]]
            level, depth = np.concatenate([child[inner] for child in self.children]), depth + 1
            seen += len(level)
            if seen > len(is_leaf):
                break
        if seen != len(is_leaf):
            raise ValueError("its nodes are no trees: one is reached twice, or never")
        return depth

    @staticmethod
    def _leaves(node: Node, prefix: str, count: int, place: Any, size: int) -> tuple[Any, Any]:
        """The scores of leaves, and for each node of a tree the row of its scores; row 0 is zeros."""
        trees, nodes, ids = (node.attr(f"{prefix}_{name}") or [] for name in ("treeids", "nodeids", "ids"))
        weights = _floats(node, f"{prefix}_weights")
        if not len(trees) == len(nodes) == len(ids) == len(weights):
            raise ValueError("its leaves have attributes of different lengths")
        rows = np.zeros(size, np.int32)
        places = [place[key] for key in zip(trees, nodes, strict=True)]
        rows[sorted(set(places))] = np.arange(1, len(set(places)) + 1)
        if not count > 0 or (len(set(places)) + 1) * count > _MAX_SPREAD * (len(ids) + 1):
            raise node.refuse(f"{count} scores, of which each leaf has few")
        if ids and not 0 <= min(ids) <= max(ids) < count:
            raise ValueError("a leaf has a score that is not there")
        table = np.zeros((len(set(places)) + 1, count), weights.dtype)
        np.add.at(table, (rows[places], np.array(ids, np.int64)), weights)
        return table, rows

    def reached(self, x: Tensor) -> Tensor:
        """The row of scores of the leaf that each example reaches in each tree: ``[examples, trees]``."""
        features, modes, rows = (convert_to_tensor(each) for each in (self.features, self.modes, self.rows))
        values, when_true, when_false = number(self.values, x), *map(convert_to_tensor, self.children)
        missing = convert_to_tensor(self.missing)
        start = array_ops.zeros([array_ops.shape(x)[0], 1], dtypes.int32) + convert_to_tensor(self.roots)

        def descend(turn: Tensor, at: Tensor) -> list[Tensor]:
            seen = array_ops.gather(x, array_ops.gather(features, at), batch_dims=1, axis=1)
            limit = array_ops.gather(values, at)
            kinds = sorted(set(self.modes.tolist()) - {_MODES.index("LEAF")})
            answer = _decided(seen, limit, kinds[0])
            for kind in kinds[1:]:
                this = math_ops.equal(array_ops.gather(modes, at), kind)
                answer = where_v2(this, _decided(seen, limit, kind), answer)
            if self.missing.any():
                unknown = math_ops.logical_and(math_ops.is_nan(seen), array_ops.gather(missing, at))
                answer = math_ops.logical_or(answer, unknown)
            following = where_v2(answer, array_ops.gather(when_true, at), array_ops.gather(when_false, at))
            return [turn + 1, following]

        if self.depth:
            _, start = while_loop(lambda turn, at: turn < self.depth, descend, [convert_to_tensor(0), start])
        return array_ops.gather(rows, start)

    def scores(self, x: Tensor, how: str) -> Tensor:
        """The scores of examples: ``[examples, count]``."""
        each = array_ops.gather(number(self.leaves, x), self.reached(x))
        reductions = {"SUM": math_ops.reduce_sum, "AVERAGE": math_ops.reduce_mean, "MIN": math_ops.reduce_min,
                      "MAX": math_ops.reduce_max}  # fmt: skip
        return reductions[how](each, 1)


def _decided(seen: Tensor, limit: Tensor, mode: int) -> Tensor:
    tests = [math_ops.less_equal, math_ops.less, math_ops.greater_equal, math_ops.greater, math_ops.equal,
             math_ops.not_equal]  # fmt: skip
    return tests[mode](seen, limit)


def _examples(node: Node) -> Tensor:
    x = node.input(0)
    return x if x.dtype is dtypes.float64 else _as_float(x)


@loads("TreeEnsembleRegressor", domain=CLASSIC)
def _tree_regressor(node: Node) -> Tensor:
    x = _examples(node)
    scores = _Trees(node, "target", node.attr("n_targets", 1)).scores(x, node.attr("aggregate_function"))
    base = _floats(node, "base_values")
    scores = scores + number(base, x) if base.size else scores
    return _as_float(_transformed(scores, node.attr("post_transform")))


@loads("TreeEnsembleClassifier", domain=CLASSIC)
def _tree_classifier(node: Node) -> list[Tensor]:
    x, labels, how = _examples(node), _labels(node), node.attr("post_transform")
    trees = _Trees(node, "class", len(labels))
    scores, base = trees.scores(x, "SUM"), _floats(node, "base_values")
    ids: Sequence[int] = sorted(set(node.attr("class_ids") or []))
    names = convert_to_tensor(labels)
    if len(labels) != 2 or len(ids) != 1:
        scores = scores + number(base, x) if base.size else scores
        return [array_ops.gather(names, math_ops.argmax(scores, 1)), _as_float(_transformed(scores, how))]
    # Two labels and scores for one of them: probabilities where no weight is negative, otherwise log-odds.
    score = scores[:, ids[0] : ids[0] + 1]
    score = score + number(base[-1], x) if base.size else score
    if (trees.leaves >= 0).all():
        chosen, both = score > number(0.5, x), array_ops.concat([1 - score, score], 1)
    else:
        chosen, both = score > number(0, x), array_ops.concat([-score, score], 1)
    label = array_ops.gather(names, array_ops.cast(chosen[:, 0], dtypes.int64))
    return [label, _as_float(_transformed(both, how))]
