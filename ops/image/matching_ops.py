"""Boxes, or whatever else has distances, matched in pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import add_op, convert_to_tensor
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, not_differentiable, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike


class Matches(NamedTuple):
    """What `bipartite_match` returns."""

    row_to_col_match_indices: Tensor
    """int32, shape ``[rows]``: the column of each row, or -1."""
    col_to_row_match_indices: Tensor
    """int32, shape ``[columns]``: the row of each column, or -1."""


def bipartite_match(
    distance_mat: TensorLike, num_valid_rows: TensorLike, top_k: int = -1, name: str | None = "bipartite_match"
) -> Matches:
    """Match rows with columns, the nearest first, each at most once.

    Args:
        distance_mat: Shape ``[rows, columns]``, float32: the distances.
        num_valid_rows: A scalar or shape ``[1]``, float32: only so many of the first rows are matched; all where it is
            negative.
        top_k: How many pairs at most; as many as there can be where it is not positive.
        name: Name of the operation.

    Returns:
        A named tuple of ``row_to_col_match_indices``, int32 of shape ``[rows]``, and of
        ``col_to_row_match_indices``, int32 of shape ``[columns]``. What has no partner has -1. Of equal distances the
        first counts, row by row.

    Raises:
        InvalidArgumentError: There are fewer rows than `num_valid_rows`.

    Examples:
        >>> matches = tf.contrib.image.bipartite_match([[0.5, 0.8], [0.3, 0.2]], -1.0)
        >>> tf.Session().run(matches.row_to_col_match_indices).tolist()
        [0, 1]
    """
    distances = convert_to_tensor(distance_mat, dtypes.float32)
    valid = convert_to_tensor(num_valid_rows, dtypes.float32)
    return Matches(*add_op(BIPARTITE_MATCH, distances, valid, top_k=int(top_k), name=name))


def _bipartite_match_kernel(ctx: KernelContext, distance_mat: Array, num_valid_rows: Array) -> tuple[Array, Array]:
    if num_valid_rows.size != 1:
        raise InvalidArgumentError(f"num_valid_rows must have one element, not shape {num_valid_rows.shape}")
    rows, columns = distance_mat.shape
    asked = int(num_valid_rows.reshape(()))
    if asked > rows:
        raise InvalidArgumentError(f"There should be at least {asked} rows in distance_mat, but only got {rows} rows.")
    valid = rows if asked < 0 else asked
    most = min(valid, columns) if ctx.attr("top_k") <= 0 else ctx.attr("top_k")
    of_rows, of_columns = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
    matched = 0
    for place in np.argsort(distance_mat[:valid], axis=None, kind="stable"):
        if matched >= most:
            break
        row, column = divmod(int(place), columns)
        if of_rows[row] < 0 and of_columns[column] < 0:
            of_rows[row], of_columns[column] = column, row
            matched += 1
    return of_rows, of_columns


def _bipartite_match_shape(op: Operation) -> list[TensorShape]:
    distances = op.inputs[0].shape.with_rank(2)
    return [distances[:1], distances[1:]]


BIPARTITE_MATCH = register(
    OpDef(
        name="BipartiteMatch",
        inputs=("distance_mat: float32", "num_valid_rows: float32"),
        outputs=("row_to_col_match_indices: int32", "col_to_row_match_indices: int32"),
        attrs=("top_k",),
        shape=_bipartite_match_shape,
        kernels=on_cpu(_bipartite_match_kernel),
        gradient=not_differentiable,
    )
)
