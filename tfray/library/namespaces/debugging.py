"""``tf.debugging``: assertions and checks that are part of a graph. To look at the tensors of a step use `tf.debug`."""

from tfray.ops.checks.check_ops import (
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_shapes,
    assert_type,
    ensure_shape,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from tfray.ops.checks.print_assert_ops import Assert, check_numerics
from tfray.ops.checks.print_assert_ops import verify_tensor_all_finite as assert_all_finite
from tfray.ops.math.comparison_ops import is_finite, is_inf, is_nan
from tfray.options import get_log_device_placement, set_log_device_placement

# fmt: off
__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer",
    "assert_less", "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative", "assert_non_positive",
    "assert_none_equal", "assert_positive", "assert_proper_iterable",
    "assert_rank", "assert_rank_at_least", "assert_rank_in", "assert_same_float_dtype", "assert_scalar",
    "assert_shapes",
    "assert_type", "check_numerics", "ensure_shape", "get_log_device_placement",
    "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_numeric_tensor", "is_strictly_increasing", "set_log_device_placement",
]
# fmt: on
