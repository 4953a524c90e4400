"""A value that is fed for a tensor: made an array, and checked against the tensor's dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError, ResourceExhaustedError
from tfray.framework import dtypes
from tfray.framework.convert import make_array
from tfray.framework.graph import Operation, Tensor


class Feed:
    """Checks and converts the values that are fed for one tensor. It can be sent to other processes without the graph.

    Args:
        tensor: The tensor.
    """

    __slots__ = ("_dtype", "_name", "_op_name", "_scalar", "_shape", "_site", "_wanted")

    def __init__(self, tensor: Tensor) -> None:
        self._name, self._op_name, self._site = tensor.name, tensor.op.name, tensor.op.site
        self._wanted, self._shape = tensor.dtype, tensor.shape
        self._dtype = tensor.dtype.numpy
        self._scalar = self._shape.rank == 0 and self._dtype.kind != "O"

    def convert(self, value: Any) -> Any:
        """`value` as an array (a NumPy scalar for rank 0) that fits the tensor.

        Raises:
            ArgumentError: It does not fit; the message names the tensor.
            ResourceExhaustedError: There is no memory for an array of the tensor's dtype.
        """
        if type(value) is np.ndarray and value.dtype == self._dtype and self._dtype.kind != "O":
            array = value
        else:
            array = self._cast(value)
        sizes = self._shape._sizes
        if sizes is not None and sizes != array.shape and not self._shape.is_compatible_with(array.shape):
            raise self._refusal(f"the value fed for {self._name} has shape {array.shape}, expected {self._shape}")
        return array[()] if self._scalar else array

    def _cast(self, value: Any) -> Any:
        name, dtype = self._name, self._wanted
        if isinstance(value, (Tensor, Operation)):
            raise self._refusal(f"the value fed for {name} is {value!r}: feed NumPy values; run the tensor first")
        try:
            array = np.asarray(value)
            is_python_integer = not hasattr(value, "dtype") and array.dtype.kind in "iu"
            if dtype is dtypes.string or (dtype.is_integer and is_python_integer):
                return make_array(value, dtype)  # refuses integers that do not fit
            if array.dtype.names and array.dtype == dtype.as_numpy_dtype:
                return array.view(self._dtype)
        except ValueError as error:
            text = error.message if isinstance(error, InvalidArgumentError) else str(error)
            raise self._refusal(f"the value fed for {name} is no array of {dtype.name}: {text}") from error
        is_flag = dtype.is_bool and array.dtype.kind in "iu"  # as programs write ``is_training: 1``
        if array.size and not is_flag and not np.can_cast(array.dtype, self._dtype, "same_kind"):
            raise self._refusal(f"the value fed for {name} is {array.dtype}, expected {dtype.name}")
        try:
            return array.astype(self._dtype)
        except MemoryError as error:
            raise ResourceExhaustedError(
                f"no memory to make {dtype.name}{list(array.shape)} of the {array.dtype} fed for {name}: {error}",
                op_name=self._op_name,
                site=self._site,
            ) from error

    def _refusal(self, message: str) -> ArgumentError:
        return ArgumentError(message, op_name=self._op_name, site=self._site)
