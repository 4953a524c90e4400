"""Names of files as data, as TensorFlow's module ``matching_files`` has them."""

from __future__ import annotations

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import string
from tfray.framework.type_aliases import TensorLike
from tfray.library.input.datasets import Dataset
from tfray.ops.arrays.shape_ops import expand_dims, reshape, size
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.system.io_ops import matching_files, read_file


def MatchingFilesDataset(patterns: TensorLike) -> Dataset:
    """The names of the files that match a pattern, or one of several, in order.

    Raises:
        NotFoundError: At run time, nothing matches.
    """
    asked = reshape(convert_to_tensor(patterns, string), [-1])
    found = matching_files(asked)
    # There is no file of the pattern's name either: to read it raises the error.
    names = cond(size(found) > 0, lambda: found, lambda: expand_dims(read_file(asked[0]), 0))
    return Dataset.from_tensor_slices(names)
