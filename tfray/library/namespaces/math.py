"""The names of ``tf.math``."""

# isort: skip_file
from tfray.library.metrics.confusion import (
    confusion_matrix as confusion_matrix,
)
from tfray.ops.nn.activation_ops import (
    log_sigmoid as log_sigmoid,
    softplus as softplus,
    softsign as softsign,
)
from tfray.ops.math.arithmetic_ops import (
    abs as abs,
    accumulate_n as accumulate_n,
    add as add,
    add_n as add_n,
    conj as conj,
    divide as divide,
    div_no_nan as divide_no_nan,
    exp as exp,
    log as log,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    pow as pow,
    reciprocal as reciprocal,
    rsqrt as rsqrt,
    scalar_mul as scalar_mul,
    sign as sign,
    sqrt as sqrt,
    square as square,
    squared_difference as squared_difference,
    subtract as subtract,
    truediv as truediv,
)
from tfray.ops.checks.check_ops import (
    is_non_decreasing as is_non_decreasing,
    is_strictly_increasing as is_strictly_increasing,
)
from tfray.ops.math.comparison_ops import (
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    is_finite as is_finite,
    is_inf as is_inf,
    is_nan as is_nan,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    not_equal as not_equal,
)
from tfray.ops.math.complex_ops import (
    angle as angle,
    imag as imag,
    real as real,
)
from tfray.ops.nn.cross_entropy_ops import (
    log_softmax as log_softmax,
    softmax as softmax,
)
from tfray.ops.kernels.elementwise import (
    special as special,
)
from tfray.ops.nn.nn_ops import (
    zero_fraction as zero_fraction,
)
from tfray.ops.nn.normalization_ops import (
    l2_normalize as l2_normalize,
)
from tfray.ops.math.reduction_ops import (
    count_nonzero as count_nonzero,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_euclidean_norm as reduce_euclidean_norm,
    reduce_logsumexp as reduce_logsumexp,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_std as reduce_std,
    reduce_sum as reduce_sum,
    reduce_variance as reduce_variance,
)
from tfray.ops.math.rounding_ops import (
    ceil as ceil,
    floor as floor,
    floordiv as floordiv,
    floormod as floormod,
    mod as mod,
    rint as rint,
    round as round,
)
from tfray.ops.math.scan_ops import (
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_logsumexp as cumulative_logsumexp,
)
from tfray.ops.math.search_ops import (
    argmax as argmax,
    argmin as argmin,
    bincount as bincount,
    in_top_k as in_top_k,
    top_k as top_k,
)
from tfray.ops.math.segment_ops import (
    segment_max as segment_max,
    segment_mean as segment_mean,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
    unsorted_segment_max as unsorted_segment_max,
    unsorted_segment_mean as unsorted_segment_mean,
    unsorted_segment_min as unsorted_segment_min,
    unsorted_segment_prod as unsorted_segment_prod,
    unsorted_segment_sqrt_n as unsorted_segment_sqrt_n,
    unsorted_segment_sum as unsorted_segment_sum,
)
from tfray.ops.arrays.shape_ops import (
    invert_permutation as invert_permutation,
)
from tfray.ops.math.special_ops import (
    bessel_i0 as bessel_i0,
    bessel_i0e as bessel_i0e,
    bessel_i1 as bessel_i1,
    bessel_i1e as bessel_i1e,
    betainc as betainc,
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfinv as erfinv,
    igamma as igamma,
    igammac as igammac,
    lbeta as lbeta,
    lgamma as lgamma,
    multiply_no_nan as multiply_no_nan,
    ndtri as ndtri,
    nextafter as nextafter,
    polygamma as polygamma,
    polyval as polyval,
    reciprocal_no_nan as reciprocal_no_nan,
    xdivy as xdivy,
    xlog1py as xlog1py,
    xlogy as xlogy,
    zeta as zeta,
)
from tfray.ops.math.transcendental_ops import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    expm1 as expm1,
    log1p as log1p,
    sigmoid as sigmoid,
    sin as sin,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
