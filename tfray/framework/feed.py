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

        It is cast as `numpy.asarray` casts to the tensor's dtype: 1.5 becomes the integer 1, ``"1"`` a number, and a
        list of flags numbers. Refused is what would be lost without a word: a Python integer that does not fit, complex
        numbers for real ones, and NaN or infinity for integers.

        Raises:
            InvalidArgumentError: It does not fit; the message names the tensor. An `ArgumentError`, which is a
                `TypeError` too, where the shape would fit.
            ResourceExhaustedError: There is no memory for an array of the tensor's dtype.
        """
        if type(value) is np.ndarray and value.dtype == self._dtype and self._dtype.kind != "O":
            array = value
        else:
            array = self._cast(value)
        sizes = self._shape._sizes
        if sizes is not None and sizes != array.shape and not self._shape.is_compatible_with(array.shape):
            wanted = f"Tensor {self._name!r}, which has shape '{self._shape}'"
            raise self._refusal(f"Cannot feed value of shape {array.shape} for {wanted}")
        return array[()] if self._scalar else array

    def echo(self, value: Any, array: Any) -> Any:
        """What a fetch of the fed tensor gives: a copy of `array`; of strings what was given, as in TensorFlow."""
        if self._wanted is dtypes.string and not hasattr(value, "_fed_value"):
            return np.array(value, dtype=object)  # text stays text
        return np.array(array)

    def _cast(self, value: Any) -> Any:
        name, dtype = self._name, self._wanted
        if hasattr(value, "_fed_value"):
            value = value._fed_value()  # of a `TensorHandle`
        if isinstance(value, (Tensor, Operation)):
            what = f"The value of a feed cannot be a tf.Tensor object: {value!r} for {name}"
            raise self._refusal(f"{what}; run the tensor first", ArgumentError)
        try:
            if dtype is dtypes.string:
                return make_array(value, dtype)
            if dtype.is_quantized and getattr(value, "dtype", None) == dtype.as_numpy_dtype:
                return value.view(self._dtype)
            if isinstance(value, int) and np.array(value).astype(self._dtype) != value:
                raise OverflowError(f"{value} does not fit")
            if self._dtype.kind != "c" and getattr(value, "dtype", self._dtype).kind == "c":
                raise TypeError("complex numbers have parts that it cannot hold")
            with np.errstate(invalid="raise"):
                return np.asarray(value, dtype=self._dtype)
        except (ValueError, TypeError, ArithmeticError) as error:
            text = error.message if isinstance(error, InvalidArgumentError) else str(error)
            kind = InvalidArgumentError if type(error) is ValueError else ArgumentError
            raise self._refusal(f"the value fed for {name} is no array of {dtype.name}: {text}", kind) from error
        except MemoryError as error:
            raise ResourceExhaustedError(
                f"no memory to make {dtype.name}{list(np.shape(value))} of the value fed for {name}: {error}",
                op_name=self._op_name,
                site=self._site,
            ) from error

    def _refusal(self, message: str, kind: type[InvalidArgumentError] = InvalidArgumentError) -> InvalidArgumentError:
        return kind(message, op_name=self._op_name, site=self._site)
