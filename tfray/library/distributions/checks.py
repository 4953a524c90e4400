"""Checks of the parameters of distributions, and of values that are asked about (``validate_args=True``)."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.checks import check_ops
from tfray.ops.math import math_ops
from tfray.ops.math.math_ops import log, log1p, reduce_sum
from tfray.ops.nn.cross_entropy_ops import softmax


def after(assertions: Sequence[Operation], tensor: Tensor) -> Tensor:
    """`tensor`, once the assertions have been checked."""
    with get_default_graph().control_dependencies(assertions):
        return array_ops.identity(tensor)


def not_singular(diagonal: Tensor) -> Tensor:
    """The diagonal of a matrix, checked to have no 0, in steps only."""
    message = "Singular operator:  Diagonal contained zero values."
    least = array_ops.zeros([], diagonal.dtype)
    return after([check_ops.assert_less(least, math_ops.abs(diagonal), message=message)], diagonal)


def whole_counts(x: Tensor) -> Tensor:
    """`x`, checked to be whole numbers that are not negative."""
    assertions = [check_ops.assert_non_negative(x, message=f"'{x.name}' must be non-negative.")]
    if not x.dtype.is_integer:
        claim = f"'{x.name}' cannot contain fractional components."
        assertions.append(check_ops.assert_equal(x, math_ops.floor(x), message=claim))
    return after(assertions, x)


def class_numbers(x: Tensor, dtype: DType, non_negative: bool = True) -> Tensor:
    """`x`, checked to hold whole numbers that `dtype`, an integer or bool, holds too, and from 0 if asked for.

    Raises:
        TypeError: `x` does not hold numbers.
    """
    if not (x.dtype.is_integer or x.dtype.is_floating or x.dtype.is_bool):
        raise TypeError(f"{x.dtype.name}: expected whole numbers, integers or floats")
    if x.dtype.is_bool:
        return x
    negative = "Elements must be non-negative."
    assertions = [check_ops.assert_non_negative(x, message=negative)] if non_negative else []
    smallest, largest = (0, 1) if dtype.is_bool else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    if x.dtype.is_floating:
        same = array_ops.cast(array_ops.cast(x, dtype), x.dtype)
        assertions.append(check_ops.assert_equal(x, same, message=f"Elements must be {dtype.name}-equivalent."))
        return after(assertions, x)
    if np.iinfo(x.dtype.numpy).max > largest:
        assertions.append(check_ops.assert_less_equal(x, largest, message=f"Elements cannot exceed {largest}."))
    if not non_negative and np.iinfo(x.dtype.numpy).min < smallest:
        claim = f"Elements cannot be smaller than {smallest}."
        assertions.append(check_ops.assert_greater_equal(x, smallest, message=claim))
    return after(assertions, x)


def classes(parameter: Tensor) -> Tensor:
    """`parameter`, checked to have a last dimension of two classes or more, as many as its dtype can count.

    Raises:
        ValueError: Its static shape shows that it has not.
    """
    most = 2 ** (int(ml_dtypes.finfo(parameter.dtype.numpy).nmant) + 1)  # type: ignore[no-untyped-call]
    few = "A categorical-distribution parameter must have at least 2 events."
    flat = "A categorical-distribution parameter must have at least 1 dimension."
    many = f"Number of classes exceeds `dtype` precision, i.e., {parameter.dtype.name} cannot exceed {most}."
    if parameter.shape.rank == 0:
        raise InvalidArgumentError(flat)
    size = parameter.shape.as_list()[-1] if parameter.shape.rank is not None else None
    if size is not None:
        if not 2 <= size <= most:
            raise InvalidArgumentError(few if size < 2 else many)
        return parameter
    found = array_ops.shape(parameter)[-1]
    assertions = [
        check_ops.assert_rank_at_least(parameter, 1, message=flat),
        check_ops.assert_greater_equal(found, 2, message=few),
    ]
    if most <= np.iinfo(np.int32).max:
        assertions.append(check_ops.assert_less_equal(found, most, message=many))
    return after(assertions, parameter)


def logits_and_probs(
    logits: TensorLike | None, probs: TensorLike | None, validate_args: bool, over_classes: bool = False
) -> tuple[Tensor, Tensor]:
    """Both parameters from the one that is given.

    Args:
        logits: Log-odds, or with `over_classes` unnormalised log-probabilities; or None.
        probs: Probabilities, or None.
        validate_args: Check that probabilities are such.
        over_classes: The last dimension is that of classes, whose probabilities sum to 1.

    Raises:
        ValueError: Both are given, or neither.
        TypeError: They are not floating.
    """
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both: takes either logits or probs")
    if probs is None:
        given = _floating(logits, "logits")
        if over_classes and validate_args:
            given = classes(given)
        return given, softmax(given, name="probs") if over_classes else math_ops.sigmoid(given, name="probs")
    given = _floating(probs, "probs")
    if validate_args:
        assertions = [check_ops.assert_non_negative(given)]
        if over_classes:
            given = classes(given)
            one = array_ops.ones([], given.dtype)
            total = reduce_sum(given, -1)
            assertions.append(check_ops.assert_near(total, one, message="probs does not sum to 1."))
        else:
            claim = "probs has components greater than 1."
            assertions.append(check_ops.assert_less_equal(given, array_ops.ones([], given.dtype), message=claim))
        given = after(assertions, given)
    with get_default_graph().name_scope("logits"):
        return log(given) if over_classes else log(given) - log1p(-given), given


def _floating(value: TensorLike | None, name: str) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    if not tensor.dtype.is_floating:
        raise TypeError(f"{name} must have a floating type, found {tensor.dtype.name}")
    return tensor


def class_events(value: Tensor, parameter: Tensor, sample_dtype: DType) -> tuple[Tensor, Tensor]:
    """Class numbers as int32 or int64, and a parameter of classes, both broadcast to one shape of batch.

    Raises:
        TypeError: `value` does not hold numbers.
    """
    if value.dtype.is_floating:
        value = array_ops.cast(value, dtypes.int32)
    elif not value.dtype.is_integer:
        raise TypeError(f"value must have an integer dtype, or {sample_dtype.name}; found {value.dtype.name}")
    if not (value.shape.is_fully_defined() and value.shape == parameter.shape[:-1]):
        parameter = parameter + array_ops.zeros_like(array_ops.cast(value, parameter.dtype))[..., None]
        value = value + array_ops.zeros_like(array_ops.cast(parameter[..., 0], value.dtype))
    return value, parameter
