"""Forests of randomised trees that live on a device. `tf.contrib.tensor_forest` is built on these."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.shape_functions import scalar
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.dataflow.resource_operations import make_resource, use_resource
from tfray.ops.resources.forest_resource import Forest, ForestSettings
from tfray.ops.resources.handles import named_resource, require_same

_SETTINGS: Final = tuple(field.name for field in dataclasses.fields(ForestSettings))


def random_forest(settings: ForestSettings, shared_name: str = "", name: str | None = None) -> Tensor:
    """Make the handle of a forest, a resource scalar.

    Args:
        settings: What the forest is like.
        shared_name: Name under which all sessions on the device share it.
        name: Name of the operation.
    """
    return make_resource(RANDOM_FOREST, name, shared_name, **dataclasses.asdict(settings))


def _random_forest_kernel(ctx: KernelContext) -> Forest:
    settings = ForestSettings(**{name: ctx.attr(name) for name in _SETTINGS})
    found: Forest = named_resource(ctx, lambda name: Forest(name, settings))
    require_same(found, ctx, Forest, settings=settings)
    return found


RANDOM_FOREST = register(
    OpDef(
        name="RandomForest",
        inputs=(),
        outputs=("forest: resource",),
        attrs=("container", "shared_name", *_SETTINGS),
        shape=scalar,
        kernels=on_cpu(_random_forest_kernel),
        stateful=True,
    )
)


def train_forest(
    forest: Tensor,
    features: TensorLike,
    labels: TensorLike,
    weights: TensorLike,
    chosen: TensorLike,
    first: int,
    last: int,
    name: str | None = None,
) -> Operation:
    """Let trees take in a batch of examples.

    Args:
        forest: The handle of a `random_forest`.
        features: float32, shape ``[batch, features]``.
        labels: float32, shape ``[batch]``, or ``[batch, outputs]`` for values.
        weights: float32, shape ``[batch]``; empty for weights of one.
        chosen: int64: the features that each tree may use, shape ``[trees, n]``; all where n is 0.
        first: The first tree that learns.
        last: The one behind the last tree that does.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: While running: shapes do not fit, or a class does not exist.
    """
    inputs = [convert_to_tensor(each, dtypes.float32) for each in (features, labels, weights)]
    inputs.append(convert_to_tensor(chosen, dtypes.int64))
    trained: Operation = use_resource(TRAIN_FOREST, forest, *inputs, name=name, first=first, last=last)
    return trained


def _train_forest_kernel(
    ctx: KernelContext, forest: Forest, features: Array, labels: Array, weights: Array, chosen: Array
) -> None:
    forest.train(features, labels, weights, chosen, ctx.attr("first"), ctx.attr("last"))


def _train_forest_shape(op: Operation) -> list[TensorShape]:
    op.inputs[1].shape.assert_has_rank(2)
    op.inputs[4].shape.assert_has_rank(2)
    return []


TRAIN_FOREST = register(
    OpDef(
        name="TrainRandomForest",
        inputs=("forest: resource", "features: float32", "labels: float32", "weights: float32", "chosen: int64"),
        outputs=(),
        attrs=("first", "last"),
        shape=_train_forest_shape,
        kernels=on_cpu(_train_forest_kernel),
        stateful=True,
        access="update",
    )
)


def forest_predictions(
    forest: Tensor, features: TensorLike, with_paths: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """What the trees of a forest say of examples.

    Args:
        forest: The handle of a `random_forest`.
        features: float32, shape ``[batch, features]``.
        with_paths: Whether to tell the ways through the trees.
        name: Name of the operation.

    Returns:
        The mean and the variance over the trees, float32 of shape ``[batch, outputs]``: of probabilities of classes, or
        of values. And the numbers of the nodes on the way through each tree, as strings of shape ``[batch, trees]``;
        of shape ``[0, trees]`` without `with_paths`.

    Raises:
        InvalidArgumentError: While running: the forest has another number of features.
    """
    features = convert_to_tensor(features, dtypes.float32)
    mean, variance, paths = use_resource(
        PREDICT_FOREST, forest, features, name=name, with_paths=with_paths, **_sizes(forest)
    )
    return mean, variance, paths


def _sizes(forest: Tensor) -> dict[str, int]:
    """Numbers of trees, features and outputs, for shapes."""
    return {name: forest.op.attrs[name] for name in ("trees", "features", "outputs")}


def _predict_forest_kernel(ctx: KernelContext, forest: Forest, features: Array) -> tuple[Array, Array, Array]:
    return forest.predict(features, ctx.attr("with_paths"))


def _predict_forest_shape(op: Operation) -> list[TensorShape]:
    size = op.inputs[1].shape.with_rank(2)[0].value
    answers = TensorShape([size, op.attrs["outputs"]])
    return [answers, answers, TensorShape([size if op.attrs["with_paths"] else 0, op.attrs["trees"]])]


PREDICT_FOREST = register(
    OpDef(
        name="RandomForestPredictions",
        inputs=("forest: resource", "input: float32"),
        outputs=("mean: float32", "variance: float32", "paths: string"),
        attrs=("with_paths", "trees", "features", "outputs"),
        shape=_predict_forest_shape,
        kernels=on_cpu(_predict_forest_kernel),
        gradient=not_differentiable,
        stateful=True,
        access="read",
    )
)


def forest_sizes(forest: Tensor, name: str | None = None) -> Tensor:
    """The number of nodes of each tree, int32 of shape ``[trees]``.

    Args:
        forest: The handle of a `random_forest`.
        name: Name of the operation.
    """
    sizes: Tensor = use_resource(FOREST_SIZES, forest, name=name, **_sizes(forest))
    return sizes


def forest_feature_counts(forest: Tensor, name: str | None = None) -> Tensor:
    """How many nodes of a forest test each feature, int32 of shape ``[features]``.

    Args:
        forest: The handle of a `random_forest`.
        name: Name of the operation.
    """
    counts: Tensor = use_resource(FOREST_FEATURE_COUNTS, forest, name=name, **_sizes(forest))
    return counts


def _counts(name: str, of: str, output: str, kernel: Callable[[KernelContext, Forest], Array]) -> OpDef:
    """An operation that gives a number for each of the `of` (trees or features) of a forest."""
    return register(
        OpDef(
            name=name,
            inputs=("forest: resource",),
            outputs=(f"{output}: int32",),
            attrs=("trees", "features", "outputs"),
            shape=lambda op: [TensorShape([op.attrs[of]])],
            kernels=on_cpu(kernel),
            gradient=not_differentiable,
            stateful=True,
            access="read",
        )
    )


FOREST_SIZES = _counts("RandomForestSizes", "trees", "sizes", lambda _, forest: forest.sizes())
FOREST_FEATURE_COUNTS = _counts(
    "RandomForestFeatureCounts", "features", "counts", lambda _, forest: forest.feature_counts()
)
