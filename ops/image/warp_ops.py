"""Images that are warped by a field of displacements or by the moves of a few points; their connected parts."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.broadcast_ops import broadcast_to
from tfray.ops.arrays.construction_ops import eye, meshgrid
from tfray.ops.arrays.gather_ops import gather_nd
from tfray.ops.checks import check_ops
from tfray.ops.linalg.solve_ops import matrix_solve
from tfray.ops.math import linalg_ops, math_ops

_SMALLEST: Final = 1e-10


def dense_image_warp(image: TensorLike, flow: TensorLike, name: str = "dense_image_warp") -> Tensor:
    """Images whose pixel at ``[b, y, x]`` is that of `image` at ``[b, y - flow[b, y, x, 0], x - flow[b, y, x, 1]]``.

    Between pixels it is the mean of four by their distances. An image goes on with its last pixels outside.

    Args:
        image: Shape ``[batch, height, width, channels]``, a float dtype; at least two rows and two columns.
        flow: Shape ``[batch, height, width, 2]``, a float dtype.
        name: Name scope of the operations.

    Returns:
        Shape and dtype of `image`.

    Raises:
        ValueError: The ranks are others.
        InvalidArgumentError: An image is too small, also while a step runs.
    """
    with get_default_graph().name_scope(name):
        image, flow = convert_to_tensor(image), convert_to_tensor(flow)
        if image.shape.rank != 4 or flow.shape.rank != 4:
            raise ValueError(f"Grid must be 4 dimensional: image has shape {image.shape}, flow {flow.shape}")
        sizes = array_ops.shape(image)
        places = array_ops.stack(meshgrid(array_ops.range(sizes[1]), array_ops.range(sizes[2]), indexing="ij"), 2)
        wanted = array_ops.reshape(array_ops.cast(places, flow.dtype) - flow, [sizes[0], -1, 2])
        warped = array_ops.reshape(_interpolate_bilinear(image, wanted), sizes)
        warped.set_shape(image.shape)
        return warped


def _interpolate_bilinear(
    grid: TensorLike, query_points: TensorLike, name: str = "interpolate_bilinear", indexing: str = "ij"
) -> Tensor:
    """Values of images between pixels: the mean of four pixels by their distances.

    Args:
        grid: Shape ``[batch, height, width, channels]``, a float dtype; at least two rows and two columns.
        query_points: Shape ``[batch, n, 2]``, a float dtype: rows and columns; columns and rows with ``xy``.
        name: Name scope of the operations.
        indexing: ``ij`` or ``xy``.

    Returns:
        Shape ``[batch, n, channels]``, the dtype of `grid`. Outside, images go on with their last pixels.

    Raises:
        ValueError: The ranks are others, or there is no such `indexing`.
        InvalidArgumentError: An image is too small, also while a step runs.
    """
    if indexing not in ("ij", "xy"):
        raise ValueError("Indexing mode must be 'ij' or 'xy'")
    with get_default_graph().name_scope(name):
        grid, query_points = convert_to_tensor(grid), convert_to_tensor(query_points)
        if grid.shape.rank not in (None, 4) or query_points.shape.rank not in (None, 3):
            raise ValueError(
                f"Grid must be 4 dimensional and query points 3 dimensional, not {grid.shape}, {query_points.shape}"
            )
        sizes = array_ops.shape(grid)
        checks = [
            check_ops.assert_greater_equal(sizes[axis], 2, message=f"Grid {side} must be at least 2.")
            for axis, side in ((1, "height"), (2, "width"))
        ]
        with get_default_graph().control_dependencies(checks):
            before, shares = [], []
            for axis in (0, 1):
                wanted = query_points[..., axis if indexing == "ij" else 1 - axis]
                last = array_ops.cast(sizes[axis + 1] - 2, wanted.dtype)
                floor = math_ops.minimum(math_ops.maximum(0.0, math_ops.floor(wanted)), last)
                share = array_ops.cast(wanted - floor, grid.dtype)
                share = math_ops.minimum(math_ops.maximum(array_ops.zeros_like(share), share), 1.0)
                before.append(array_ops.cast(floor, dtypes.int32))
                shares.append(array_ops.expand_dims(share, 2))
            batch = array_ops.reshape(array_ops.range(sizes[0]), [-1, 1]) + array_ops.zeros_like(before[0])

        def row(y: Tensor) -> Tensor:
            left, right = (gather_nd(grid, array_ops.stack([batch, y, x], 2)) for x in (before[1], before[1] + 1))
            return shares[1] * (right - left) + left

        upper, lower = row(before[0]), row(before[0] + 1)
        return shares[0] * (lower - upper) + upper


def interpolate_spline(
    train_points: TensorLike,
    train_values: TensorLike,
    query_points: TensorLike,
    order: int,
    regularization_weight: float = 0.0,
    name: str = "interpolate_spline",
) -> Tensor:
    """Values of the smoothest function through given points: a polyharmonic spline.

    Args:
        train_points: Shape ``[batch, n, d]``, a float dtype.
        train_values: Shape ``[batch, n, k]``: the values there.
        query_points: Shape ``[batch, m, d]``: where values are asked for.
        order: Order of the spline: 1 for a sum of distances, 2 for a thin plate, 3 for cubes.
        regularization_weight: How much less than the values the smoothness counts; with 0 the values are met.
        name: Name scope of the operations.

    Returns:
        Shape ``[batch, m, k]``. All but `order` have gradients.

    Raises:
        ValueError: `d` or `k` is not known.
    """
    with get_default_graph().name_scope(name):
        points, values, asked = (convert_to_tensor(each) for each in (train_points, train_values, query_points))
        for tensor, what in ((points, "input points (d)"), (values, "output values (k)")):
            if tensor.shape.as_list()[-1] is None:
                raise ValueError(f"The dimensionality of the {what} must be statically-inferrable.")
        count, extra = array_ops.shape(points)[1], int(points.shape[-1]) + 1
        matrix = _radial(_squared_distances(points, points), order)
        if regularization_weight > 0:
            matrix += regularization_weight * eye(count, dtype=points.dtype)
        line = _with_one(points)
        corner = array_ops.zeros_like(line[:, :1, :]) * array_ops.ones([1, extra, 1], points.dtype)
        left = array_ops.concat([matrix, array_ops.transpose(line, [0, 2, 1])], 1)
        system = array_ops.concat([left, array_ops.concat([line, corner], 1)], 2)
        nothing = array_ops.zeros_like(values[:, :1, :]) * array_ops.ones([1, extra, 1], values.dtype)
        weights = matrix_solve(system, array_ops.concat([values, nothing], 1))
        curved = linalg_ops.matmul(_radial(_squared_distances(asked, points), order), weights[:, :count, :])
        return curved + linalg_ops.matmul(_with_one(asked), weights[:, count:, :])


def _squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """Between all rows of two batches of matrices."""
    squares = [math_ops.reduce_sum(math_ops.square(each), 2) for each in (first, second)]
    products = linalg_ops.matmul(first, second, adjoint_b=True)
    return array_ops.expand_dims(squares[0], 2) - 2 * products + array_ops.expand_dims(squares[1], 1)


def _radial(squares: Tensor, order: int) -> Tensor:
    """What a spline of that order does with squared distances."""
    bounded = math_ops.maximum(squares, _SMALLEST)
    if order % 2:
        return math_ops.sqrt(bounded) if order == 1 else math_ops.pow(bounded, 0.5 * order)
    power = {2: lambda: squares, 4: lambda: math_ops.square(squares)}
    return 0.5 * power.get(order, lambda: math_ops.pow(bounded, 0.5 * order))() * math_ops.log(bounded)


def _with_one(points: Tensor) -> Tensor:
    return array_ops.concat([points, array_ops.ones_like(points[..., :1])], 2)


def sparse_image_warp(
    image: TensorLike,
    source_control_point_locations: TensorLike,
    dest_control_point_locations: TensorLike,
    interpolation_order: int = 2,
    regularization_weight: float = 0.0,
    num_boundary_points: int = 0,
    name: str = "sparse_image_warp",
) -> tuple[Tensor, Tensor]:
    """Images in which some points have moved, and what lies between them with them; see `interpolate_spline`.

    Args:
        image: Shape ``[batch, height, width, channels]``, a float dtype; the sizes are known but for the channels.
        source_control_point_locations: Shape ``[batch, points, 2]``: rows and columns of the points.
        dest_control_point_locations: The same shape: where they are in the result.
        interpolation_order: Order of the spline.
        regularization_weight: See `interpolate_spline`.
        num_boundary_points: Points of each edge that stay where they are, one corner of it included.
        name: Name scope of the operations.

    Returns:
        The images, of the shape of `image`, and the displacements, ``[batch, height, width, 2]``, as
        `dense_image_warp` takes them.
    """
    with get_default_graph().name_scope(name):
        image = convert_to_tensor(image)
        source, points = (
            convert_to_tensor(each) for each in (source_control_point_locations, dest_control_point_locations)
        )
        moves = points - source
        batch, height, width = (int(size) for size in image.shape[:3])
        if num_boundary_points > 0:
            edges = np.meshgrid(
                *(np.linspace(0, n - 1, num_boundary_points + 1) for n in (height, width)), indexing="ij"
            )
            places = np.stack(edges, -1)
            is_edge = ((places == 0) | (places == [height - 1, width - 1])).any(-1)
            still = np.broadcast_to(places[is_edge], (batch, int(is_edge.sum()), 2))
            points = array_ops.concat([points, convert_to_tensor(still, points.dtype)], 1)
            moves = array_ops.concat([moves, convert_to_tensor(np.zeros(still.shape), moves.dtype)], 1)
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1).reshape(1, -1, 2)
        asked = broadcast_to(convert_to_tensor(grid, image.dtype), [batch, height * width, 2])
        flow = interpolate_spline(points, moves, asked, interpolation_order, regularization_weight)
        flow = array_ops.reshape(flow, [batch, height, width, 2])
        return dense_image_warp(image, flow), flow


@lru_cache(maxsize=1)
def _measurements() -> Any:
    return import_module("scipy.ndimage")


def connected_components(images: TensorLike) -> Tensor:
    """Numbers for the parts of images: pixels with one value that are connected by their edges.

    Args:
        images: Shape ``[height, width]`` or ``[batch, height, width]``, bools or numbers.

    Returns:
        int32 of the same shape: 0 where there is 0 or False, and otherwise the part's number, from 1 on in the order of
        first pixels.

    Raises:
        TypeError: The rank is another one.
    """
    with get_default_graph().name_scope("connected_components"):
        images = convert_to_tensor(images)
        if images.shape.rank not in (2, 3):
            raise TypeError(f"images should have rank 2 (HW) or 3 (NHW). Static shape is {images.shape}")
        return add_op(IMAGE_CONNECTED_COMPONENTS, images)


def _connected_components_kernel(ctx: KernelContext, images: Array) -> Array:
    flat = images.reshape(-1, *images.shape[-2:])
    found = np.zeros(flat.shape, np.int64)
    structure = np.zeros((3, 3, 3), bool)  # images do not touch one another
    structure[1] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    for value in np.unique(flat):
        if value != 0:
            parts, _ = _measurements().label(flat == value, structure)
            found += np.where(parts > 0, parts + found.max(), 0)
    ids, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    numbers = np.empty(ids.size, np.int32)
    numbers[np.argsort(np.where(ids == 0, -1, first), kind="stable")] = np.arange(ids.size) + int(bool(ids.all()))
    return numbers[inverse].reshape(images.shape)


def _components_shape(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape]


IMAGE_CONNECTED_COMPONENTS = register(
    OpDef(
        name="ImageConnectedComponents",
        inputs=("image: T",),
        outputs=("components: int32",),
        types={"T": (*dtypes.REAL, dtypes.bool_)},
        shape=_components_shape,
        kernels=on_cpu(_connected_components_kernel),
        gradient=not_differentiable,
    )
)
