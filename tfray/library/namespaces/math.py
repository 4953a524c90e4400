"""``tf.math``: arithmetic, comparisons, reductions, segment sums and special functions. Many are also in ``tf``."""

from tfray.library.metrics.confusion import confusion_matrix
from tfray.ops.arrays.shape_ops import invert_permutation
from tfray.ops.checks.check_ops import is_non_decreasing, is_strictly_increasing
from tfray.ops.math.arithmetic_ops import (
    abs,
    accumulate_n,
    add,
    add_n,
    conj,
    divide,
    exp,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    pow,
    reciprocal,
    rsqrt,
    scalar_mul,
    sign,
    sqrt,
    square,
    squared_difference,
    subtract,
    truediv,
)
from tfray.ops.math.arithmetic_ops import div_no_nan as divide_no_nan
from tfray.ops.math.comparison_ops import (
    equal,
    greater,
    greater_equal,
    is_finite,
    is_inf,
    is_nan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from tfray.ops.math.complex_ops import angle, imag, real
from tfray.ops.math.no_nan_ops import multiply_no_nan
from tfray.ops.math.reduction_ops import (
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_std,
    reduce_sum,
    reduce_variance,
)
from tfray.ops.math.rounding_ops import ceil, floor, floordiv, floormod, mod, rint, round
from tfray.ops.math.scan_ops import cumprod, cumsum, cumulative_logsumexp
from tfray.ops.math.search_ops import argmax, argmin, bincount, in_top_k, top_k
from tfray.ops.math.segment_ops import (
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from tfray.ops.math.special_ops import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    igamma,
    igammac,
    lbeta,
    lgamma,
    ndtri,
    nextafter,
    polygamma,
    polyval,
    reciprocal_no_nan,
    xdivy,
    xlog1py,
    xlogy,
    zeta,
)
from tfray.ops.math.transcendental_ops import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    expm1,
    log1p,
    sigmoid,
    sin,
    sinh,
    tan,
    tanh,
)
from tfray.ops.nn.activation_ops import log_sigmoid, softplus, softsign
from tfray.ops.nn.cross_entropy_ops import log_softmax, softmax
from tfray.ops.nn.nn_ops import zero_fraction
from tfray.ops.nn.normalization_ops import l2_normalize

# fmt: off
__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "argmax", "argmin", "asin", "asinh", "atan",
    "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "bincount", "ceil",
    "confusion_matrix", "conj", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp", "digamma",
    "divide", "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1", "floor", "floordiv",
    "floormod", "greater", "greater_equal", "igamma", "igammac", "imag", "in_top_k", "invert_permutation", "is_finite",
    "is_inf", "is_nan", "is_non_decreasing", "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal",
    "lgamma", "log", "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor",
    "maximum", "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal",
    "polygamma", "polyval", "pow", "real", "reciprocal", "reciprocal_no_nan", "reduce_all", "reduce_any",
    "reduce_euclidean_norm", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std",
    "reduce_sum", "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax", "softplus", "softsign",
    "sqrt", "square", "squared_difference", "subtract", "tan", "tanh", "top_k", "truediv",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlog1py", "xlogy", "zero_fraction", "zeta",
]
# fmt: on
