"""What TensorFlow's distributions share within: functions of ``ops.distributions`` that programs import.

They are those of its modules ``util`` and ``special_math`` that are no public names.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

import numpy as np

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Operation, Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.distributions import checks
from tfray.library.networks.flow_layers import autoregressive_mask
from tfray.ops.math import special_ops

LOGNDTR_FLOAT32_LOWER: Final = np.float32(-10)
LOGNDTR_FLOAT32_UPPER: Final = np.float32(5)
LOGNDTR_FLOAT64_LOWER: Final = np.float64(-20)
LOGNDTR_FLOAT64_UPPER: Final = np.float64(8)
"""Where TensorFlow's `log_ndtr` goes over from one formula to another. Here one holds everywhere."""


def gen_mask(
    num_blocks: int, n_in: int, n_out: int, mask_type: str = "exclusive", dtype: DTypeLike = tf.float32
) -> np.ndarray[Any, Any]:
    """The mask of a layer whose outputs see inputs of earlier blocks only.

    Args:
        num_blocks: Number of blocks into which inputs and outputs are divided.
        n_in: Number of inputs.
        n_out: Number of outputs.
        mask_type: ``exclusive``, or ``inclusive`` where outputs of a block see its own inputs, too.
        dtype: Dtype of the mask.

    Returns:
        ``[n_out, n_in]``: 1 where an output sees an input.
    """
    return autoregressive_mask(num_blocks, n_in, n_out, mask_type == "exclusive").T.astype(
        as_dtype(dtype).as_numpy_dtype
    )


# -- checks --------------------------------------------------------------------------------------------


def assert_integer_form(
    x: TensorLike,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    int_dtype: DTypeLike | None = None,
    name: str = "assert_integer_form",
) -> Operation:
    """Check, in each step, that a float is a whole number. See `assert_equal` for the other arguments.

    Raises:
        TypeError: The dtype of `x` is no number's, and `int_dtype` is not given.
    """
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        if x.dtype.is_integer:
            return tf.no_op()
        if int_dtype is None and not x.dtype.is_floating:
            raise TypeError(f"Unrecognized type {x.dtype.name}")
        rounded = tf.cast(tf.cast(x, int_dtype or tf.int64), x.dtype)
        return tf.assert_equal(
            x, rounded, data=data, summarize=summarize, message=message or f"{x} has non-integer components"
        )


def assert_symmetric(matrix: Tensor) -> Tensor:
    """`matrix`, checked to be its own transpose."""
    return checks.after([tf.assert_equal(matrix, tf.linalg.transpose(matrix))], matrix)


def embed_check_nonnegative_integer_form(x: TensorLike, name: str = "embed_check_nonnegative_integer_form") -> Tensor:
    """`x`, checked to be whole numbers that are not negative."""
    with tf.name_scope(name):
        return checks.whole_counts(tf.convert_to_tensor(x, name="x"))


def embed_check_categorical_event_shape(
    categorical_param: TensorLike, name: str = "embed_check_categorical_event_shape"
) -> Tensor:
    """The parameter of a categorical distribution, checked to be of two classes or more that its dtype can count.

    Raises:
        TypeError: Its dtype is no float.
        ValueError: Its static shape shows that it is not.
    """
    with tf.name_scope(name):
        parameter = tf.convert_to_tensor(categorical_param, name="x")
        if not parameter.dtype.is_floating:
            raise TypeError(f"Unable to validate size of unrecognized dtype ({parameter.dtype.name}).")
        return checks.classes(parameter)


def embed_check_integer_casting_closed(
    x: TensorLike,
    target_dtype: DTypeLike,
    assert_nonnegative: bool = True,
    name: str = "embed_check_casting_closed",
) -> Tensor:
    """`x`, checked to be as it is in `target_dtype`.

    Raises:
        TypeError: One of the dtypes is no number's, or none holds whole numbers only.
    """
    target = as_dtype(target_dtype)
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        for dtype in (x.dtype, target):
            if not (dtype.is_integer or dtype.is_floating or dtype.is_bool) or dtype.is_quantized:
                raise TypeError(f"{dtype.name} must be floating or integer type.")
        if not any(dtype.is_integer or dtype.is_bool for dtype in (x.dtype, target)):
            raise TypeError(f"At least one of {x.dtype.name}, {target.name} must be integer-type.")
        if target.is_floating:
            most = 2 ** (np.finfo(target.numpy).nmant + 1)
            claim = f"Elements cannot exceed {most}."
            return checks.after([tf.assert_less_equal(x, tf.cast(most, x.dtype), message=claim)], x)
        return checks.class_numbers(x, target, non_negative=assert_nonnegative)


# -- what is known before a step -----------------------------------------------------------------------


def maybe_get_static_value(x: Any, dtype: DTypeLike | None = None) -> Any:
    """The value of `x` as an array, of a dtype; None if it is None, or known in a step only."""
    value = constant_value(x) if isinstance(x, Tensor) else x
    if value is None:
        return None
    return np.array(value, None if dtype is None else as_dtype(dtype).numpy)


def prefer_static_value(x: Tensor) -> Any:
    """The value of a tensor if it is known, else the tensor."""
    value = constant_value(x)
    return x if value is None else value


def prefer_static_rank(x: TensorLike) -> Any:
    """The rank of `x`, as a number if it is known."""
    return prefer_static_value(tf.rank(x))


def prefer_static_shape(x: TensorLike) -> Any:
    """The shape of `x`, as an array if it is known."""
    return prefer_static_value(tf.shape(x))


def prefer_static_broadcast_shape(shape1: Any, shape2: Any, name: str = "prefer_static_broadcast_shape") -> Any:
    """The shape that two broadcast to: a `TensorShape` if both are known, else an int32 tensor."""
    with tf.name_scope(name):
        known = [_static_shape(each) for each in (shape1, shape2)]
        if None not in known:
            return tf.broadcast_static_shape(*known)
        first, second = (tf.cast(tf.convert_to_tensor(each), tf.int32) for each in (shape1, shape2))
        return tf.broadcast_dynamic_shape(first, second)


def _static_shape(shape: Any) -> TensorShape | None:
    value = shape if isinstance(shape, TensorShape) else maybe_get_static_value(shape)
    found = None if value is None else TensorShape(value)
    return found if found is not None and found.is_fully_defined() else None


def dimension_size(x: Tensor, axis: int) -> Any:
    """The size of `x` along `axis`, as a number if it is known."""
    known = x.shape.as_list()[axis] if x.shape.rank is not None else None
    return tf.shape(x)[axis] if known is None else known


def same_dynamic_shape(a: TensorLike, b: TensorLike) -> Tensor:
    """Whether two tensors have one shape, a bool scalar."""
    sizes = [tf.shape(a), tf.shape(b)]
    same_sizes = tf.equal(tf.concat(sizes, 0), tf.concat(sizes[::-1], 0))  # as many numbers, whatever the ranks are
    return tf.logical_and(tf.equal(tf.rank(a), tf.rank(b)), tf.reduce_all(same_sizes))


# -- parameters and numbers ----------------------------------------------------------------------------


def get_logits_and_probs(
    logits: TensorLike | None = None,
    probs: TensorLike | None = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
    dtype: DTypeLike | None = None,
) -> tuple[Tensor, Tensor]:
    """Both parameters of a distribution of classes from the one that is given.

    Args:
        logits: Log-odds, or unnormalised log-probabilities; or None.
        probs: Probabilities, or None.
        multidimensional: The last dimension is that of classes.
        validate_args: Check that probabilities are such.
        name: Name scope of the operations.
        dtype: Dtype of a parameter that is no tensor.

    Raises:
        ValueError: Both are given, or neither.
        TypeError: They are not floating.
    """
    with tf.name_scope(name):
        logits, probs = (None if each is None else tf.convert_to_tensor(each, dtype) for each in (logits, probs))
        return checks.logits_and_probs(logits, probs, validate_args, multidimensional)


def log_combinations(n: TensorLike, counts: TensorLike, name: str = "log_combinations") -> Tensor:
    """Logarithm of the number of ways to part `n` things into groups of the sizes along the last axis of `counts`."""
    with tf.name_scope(name):
        n = tf.convert_to_tensor(n, name="n")
        counts = tf.convert_to_tensor(counts, n.dtype, name="counts")
        return tf.lgamma(n + 1) - tf.reduce_sum(tf.lgamma(counts + 1), -1)


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """A seed made of another one; None for None."""
    if seed is None:
        return None
    return int(hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF


# -- layouts -------------------------------------------------------------------------------------------


def rotate_transpose(x: TensorLike, shift: TensorLike, name: str = "rotate_transpose") -> Tensor:
    """`x` with its dimensions moved to the right by `shift` places, those behind the last to the front."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        by, rank = maybe_get_static_value(shift), x.shape.rank
        if by is not None and rank is not None:
            return tf.transpose(x, np.roll(np.arange(rank), int(by) % max(rank, 1)))
        count = tf.rank(x)
        first = tf.floormod(-tf.cast(shift, tf.int32), count)
        return tf.transpose(x, tf.concat([tf.range(first, count), tf.range(first)], 0))


def pick_vector(
    cond: TensorLike, true_vector: TensorLike, false_vector: TensorLike, name: str = "pick_vector"
) -> Tensor:
    """One of two vectors, which may differ in size.

    Raises:
        TypeError: `cond` is no bool, or the vectors differ in dtype.
    """
    with tf.name_scope(name):
        cond = tf.convert_to_tensor(cond, name="cond")
        if cond.dtype is not tf.bool:
            raise TypeError(f"{cond.name}.dtype={cond.dtype} which is not {tf.bool}")
        chosen = constant_value(cond)
        if chosen is not None:
            return tf.convert_to_tensor(true_vector if chosen else false_vector)
        first, second = tf.convert_to_tensor(true_vector), tf.convert_to_tensor(false_vector)
        if first.dtype is not second.dtype:
            raise TypeError(f"{first.name}.dtype={first.dtype} does not match {second.name}.dtype={second.dtype}")
        begin, size = tf.where_v2(cond, 0, tf.size(first)), tf.where_v2(cond, tf.size(first), tf.size(second))
        return tf.slice(tf.concat([first, second], 0), [begin], [size])


def pad(
    x: TensorLike,
    axis: TensorLike,
    front: bool = False,
    back: bool = False,
    value: TensorLike = 0,
    count: TensorLike = 1,
    name: str | None = None,
) -> Tensor:
    """`x` with `count` times `value` before it or behind it, along one axis.

    Raises:
        ValueError: Neither `front` nor `back` is asked for, or there is no such axis.
    """
    if not (front or back):
        raise ValueError("At least one of `front`, `back` must be True.")
    with tf.name_scope(name or "pad"):
        x = tf.convert_to_tensor(x, name="x")
        along, rank = maybe_get_static_value(axis), x.shape.rank
        if along is not None and rank is not None and not -rank <= along < rank:
            raise InvalidArgumentError(f"pad: axis is {along}, and `x` has {rank} dimensions")
        axis = tf.floormod(tf.cast(axis, tf.int32), tf.rank(x))
        here = tf.one_hot(axis, tf.rank(x), tf.cast(count, tf.int32), 0, dtype=tf.int32)
        none = tf.zeros_like(here)
        return tf.pad(x, tf.stack([here if front else none, here if back else none], 1), constant_values=value)


# -- the normal distribution and its like --------------------------------------------------------------


def _float(x: TensorLike, name: str) -> Tensor:
    tensor = tf.convert_to_tensor(x, name=name)
    if tensor.dtype not in (tf.float32, tf.float64):
        raise TypeError(f"{name}.dtype={tensor.dtype} is not handled, see docstring for supported types.")
    return tensor


def ndtr(x: TensorLike, name: str = "ndtr") -> Tensor:
    """The cumulative distribution function of the standard normal distribution, of a float32 or float64."""
    with tf.name_scope(name):
        return tf.erfc(_float(x, "x") * -math.sqrt(0.5)) / 2


def ndtri(p: TensorLike, name: str = "ndtri") -> Tensor:
    """The inverse of `ndtr`. At 0 and 1, where it is infinite, its gradient is 0."""
    with tf.name_scope(name):
        p = _float(p, "p")
        is_inside = tf.logical_and(p > 0, p < 1)
        within = special_ops.ndtri(tf.where(is_inside, p, tf.ones_like(p) / 2))
        return tf.where(is_inside, within, special_ops.ndtri(tf.stop_gradient(p)))


def log_ndtr(x: TensorLike, series_order: int = 3, name: str = "log_ndtr") -> Tensor:
    """Logarithm of `ndtr`. `series_order`, TensorFlow's exactness where `x` is small, is checked and has no effect.

    Raises:
        TypeError: `series_order` is no integer, or `x` no float.
        ValueError: `series_order` is not from 0 to 30.
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"series_order must be {'non-negative' if series_order < 0 else '<= 30'}.")
    with tf.name_scope(name):
        return special_ops.log_ndtr(_float(x, "x"))


def erfinv(x: TensorLike, name: str = "erfinv") -> Tensor:
    """The inverse of `erf`, of a float32 or float64."""
    with tf.name_scope(name):
        return special_ops.erfinv(_float(x, "x"))


def log_cdf_laplace(x: TensorLike, name: str = "log_cdf_laplace") -> Tensor:
    """Logarithm of the cumulative distribution function of the standard Laplace distribution, of a float."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        return tf.where(x < 0, x - math.log(2), tf.log1p(-0.5 * tf.exp(-tf.abs(x))))
