"""Functions of tensors by the names that ``tf.keras.backend`` has for them; custom layers and losses call them.

Functions whose arguments are those of a function of `tf` are that function.
"""

from __future__ import annotations

import sys
from builtins import max as builtin_max
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.keras.settings import epsilon as epsilon
from tfray.keras.settings import floatx, image_data_format
from tfray.library.layers import named_activations
from tfray.library.namespaces import math, nn, random
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.source_ops import constant as constant_of
from tfray.ops.arrays.source_ops import placeholder as placeholder_of
from tfray.ops.checks.print_assert_ops import print_ as print_v2
from tfray.ops.control import functional_ops
from tfray.ops.control.control_flow_ops import smart_cond
from tfray.ops.math import math_ops
from tfray.ops.math.sorting_ops import repeat as repeated
from tfray.ops.sparse.sparse_ops import sparse_placeholder, sparse_tensor_to_dense
from tfray.ops.state import state_ops

Shape = Sequence[int | None]
Axis = int | Sequence[int] | None


abs = math.abs
equal = math_ops.equal
exp = math.exp
greater = math.greater
greater_equal = math.greater_equal
identity = array_ops.identity
less = math.less
less_equal = math.less_equal
log = math.log
maximum = math.maximum
minimum = math.minimum
not_equal = math.not_equal
round = math.round
sigmoid = math.sigmoid
sign = math.sign
sin = math.sin
cos = math.cos
square = math.square
tanh = math.tanh
hard_sigmoid = named_activations.hard_sigmoid
softplus = named_activations.softplus
softsign = named_activations.softsign
in_top_k = nn.in_top_k


# -- reductions ----------------------------------------------------------------------------------------


def _reduction(
    reduce: Callable[..., Tensor], words: str, of_floats: bool = False, of_bools: bool = False
) -> Callable[..., Tensor]:
    def function(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
        x = convert_to_tensor(x)
        if of_bools or (of_floats and x.dtype.name == "bool"):
            x = array_ops.cast(x, "bool" if of_bools else floatx())
        return reduce(x, axis, keepdims)

    function.__doc__ = f"The {words} along axes, all of them when `axis` is None; `keepdims` keeps these with size 1."
    return function


all = _reduction(math.reduce_all, "conjunction", of_bools=True)
any = _reduction(math.reduce_any, "disjunction", of_bools=True)
logsumexp = _reduction(math.reduce_logsumexp, "logarithm of the sum of exponentials")
max = _reduction(math.reduce_max, "maximum")
mean = _reduction(math.reduce_mean, "mean", of_floats=True)
min = _reduction(math.reduce_min, "minimum")
prod = _reduction(math.reduce_prod, "product")
std = _reduction(math.reduce_std, "standard deviation", of_floats=True)
sum = _reduction(math.reduce_sum, "sum")
var = _reduction(math.reduce_variance, "variance", of_floats=True)


def argmax(x: Any, axis: int = -1) -> Tensor:
    """Where the greatest number along an axis is, int64."""
    return math.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Tensor:
    """Where the least number along an axis is, int64."""
    return math.argmin(x, axis)


def cumsum(x: Any, axis: int = 0) -> Tensor:
    """Sums up to each place along an axis."""
    return math.cumsum(x, axis)


def cumprod(x: Any, axis: int = 0) -> Tensor:
    """Products up to each place along an axis."""
    return math.cumprod(x, axis)


# -- elements ------------------------------------------------------------------------------------------


def pow(x: Any, a: Any) -> Tensor:
    """`x` to the power of `a`."""
    return math.pow(x, a)


def stop_gradient(variables: Any) -> Any:
    """Tensors, in a list or alone, that count as constants in gradients."""
    if isinstance(variables, (list, tuple)):
        return list(map(array_ops.stop_gradient, variables))
    return array_ops.stop_gradient(variables)


def foldl(fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """What `fn` makes of the one before and of each element, from the first to the last; see `tf.foldl`."""
    return functional_ops.foldl(fn, elems, initializer, name=name)


def foldr(fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Likewise from the last to the first; see `tf.foldr`."""
    return functional_ops.foldr(fn, elems, initializer, name=name)


def map_fn(fn: Callable[..., Any], elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """What `fn` makes of each element; see `tf.map_fn`."""
    return functional_ops.map_fn(fn, elems, dtype, name=name)


def cast(x: Any, dtype: Any) -> Tensor:
    """`x` in another dtype."""
    return array_ops.cast(x, dtype)


def cast_to_floatx(x: Any) -> Any:
    """`x` as float32, a tensor or an array."""
    return array_ops.cast(x, floatx()) if isinstance(x, Tensor) else np.asarray(x, floatx())


def clip(x: Any, min_value: float | None, max_value: float | None) -> Tensor:
    """`x` between two bounds; None is no bound."""
    low, high = (-np.inf if min_value is None else min_value), (np.inf if max_value is None else max_value)
    return math_ops.clip_by_value(x, low, high if high > low else low)


def sqrt(x: Any) -> Tensor:
    """The square root; 0 for negative numbers."""
    return math.sqrt(math.maximum(x, 0.0))


def relu(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """`x` above `threshold`, at most `max_value`, otherwise 0; below it, `alpha` times what it is below."""
    x = convert_to_tensor(x)
    if alpha and max_value is None and threshold == 0:
        return nn.leaky_relu(x, alpha)
    if threshold:
        above = x * array_ops.cast(math.greater(x, threshold), x.dtype)
    else:
        above = nn.relu6(x) if max_value == 6 else nn.relu(x)
    if max_value is not None and (threshold or max_value != 6):
        above = math.minimum(above, max_value)
    return above - alpha * nn.relu(threshold - x) if alpha else above


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """``x`` above 0, and ``alpha * (exp(x) - 1)`` below."""
    outputs = nn.elu(x)
    return outputs if alpha == 1 else array_ops.where(math.greater(x, 0), outputs, alpha * outputs)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Exponentials that sum up to 1 along an axis."""
    return nn.softmax(x, axis=axis)


def l2_normalize(x: Any, axis: Axis = None) -> Tensor:
    """`x` over its Euclidean norm along axes."""
    return nn.l2_normalize(x, axis)


def dropout(x: Any, level: float, noise_shape: Any = None, seed: int | None = None) -> Tensor:
    """A part `level` of `x` becomes 0, the rest is scaled up."""
    return nn.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of each number of `output`, a probability or a logit.

    Probabilities that a sigmoid has made count as its logits: those of nearly 0 and 1 have their right loss.
    """
    target, output = _as_one_dtype(target, output)
    logits = output if from_logits else _logits_of(output, "Sigmoid")
    if logits is not None:
        return nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    share = _inside(output)
    return -(target * math.log(share + epsilon()) + (1.0 - target) * math.log(1.0 - share + epsilon()))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy along an axis, of probabilities or logits and one-hot targets.

    Probabilities that a softmax of a matrix has made count as its logits.
    """
    target, output = _as_one_dtype(target, output)
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is not None:
        return nn.softmax_cross_entropy_with_logits_v2(labels=target, logits=logits, axis=axis)
    shares = output / math.reduce_sum(output, axis, keepdims=True)
    return -math.reduce_sum(target * math.log(_inside(shares)), axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The same for targets that are classes; their last axis may have size 1."""
    output, classes = convert_to_tensor(output), array_ops.to_int64(target)
    if classes.shape.rank is not None and classes.shape.rank == output.shape.rank:
        classes = array_ops.squeeze(classes, [-1])
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is None:
        logits = math.log(_inside(output))
    order = list(range(logits.shape.rank or 0))
    if order and axis % len(order) != order[-1]:
        order.append(order.pop(axis % len(order)))
        logits = array_ops.transpose(logits, order)
    return nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)


def _logits_of(output: Tensor, kind: str) -> Tensor | None:
    """What an operation of this type has made probabilities of; None if another has made them."""
    logits: Tensor | None = output.op.inputs[0] if output.op.type == kind else None
    return logits


def _as_one_dtype(target: Any, output: Any) -> tuple[Tensor, Tensor]:
    output = convert_to_tensor(output)
    return array_ops.cast(target, output.dtype), output


def _inside(probabilities: Tensor) -> Tensor:
    """Probabilities whose logarithms are finite."""
    return math_ops.clip_by_value(probabilities, epsilon(), 1 - epsilon())


# -- products ------------------------------------------------------------------------------------------


def dot(x: Any, y: Any) -> Tensor:
    """The product over the last axis of `x` and the last but one of `y`."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    if x.shape.rank == 2 and y.shape.rank == 2:
        return math_ops.matmul(x, y)
    return math_ops.tensordot(x, y, [[x.shape.rank - 1], [builtin_max(y.shape.rank - 2, 0)]])


def batch_dot(x: Any, y: Any, axes: int | Sequence[int] | None = None) -> Tensor:
    """For each example the product over an axis of `x` and one of `y`, shape ``[batch, ...]``, at least of rank 2.

    Args:
        x: Shape ``[batch, ...]``.
        y: Shape ``[batch, ...]``.
        axes: The axis of each, or one for both; the last of `x` and the last but one of `y` when None.
    """
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    ranks = x.shape.rank, y.shape.rank
    if axes is None:
        axes = (ranks[0] - 1, builtin_max(ranks[1] - 2, 1))
    first, second = (axes, axes) if isinstance(axes, int) else axes
    names = "bcdefghijklmn"
    own, other = list(names[: ranks[0]]), ["b", *names[ranks[0] : ranks[0] + ranks[1] - 1]]
    own[first % ranks[0]] = other[second % ranks[1]] = "z"
    left = [name for name in (*own, *other[1:]) if name != "z"]
    product = math_ops.einsum(f"{''.join(own)},{''.join(other)}->{''.join(left)}", x, y)
    return array_ops.expand_dims(product, 1) if len(left) == 1 else product


def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Tensor:
    """`x` with a number for each channel added, or with one for each channel of each place.

    Args:
        x: Shape ``[batch, ..., size]``, or ``[batch, size, ...]``.
        bias: Shape ``[size]``, or ``[..., size]``.
        data_format: ``channels_last`` or ``channels_first``; `tf.keras.backend.image_data_format` when None.
    """
    data_format = data_format or image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {data_format}")
    x, bias = convert_to_tensor(x), convert_to_tensor(bias)
    is_first, shape = data_format == "channels_first", bias.shape.as_list()
    if len(shape) not in (1, (x.shape.rank or 1) - 1):
        raise ValueError(
            f"Unexpected bias dimensions {len(shape)}, expect to be 1 or {(x.shape.rank or 1) - 1} dimensions"
        )
    if len(shape) == 1:
        return nn.bias_add(x, bias, "NCHW" if is_first and (x.shape.rank or 0) > 2 else "NHWC")
    order = [len(shape) - 1, *range(len(shape) - 1)] if is_first else range(len(shape))
    return x + array_ops.expand_dims(array_ops.transpose(bias, list(order)), 0)


def gather(reference: Any, indices: Any) -> Tensor:
    """Rows of `reference`."""
    return array_ops.gather(reference, indices)


# -- shapes --------------------------------------------------------------------------------------------


def shape(x: Any) -> Tensor:
    """The sizes of `x`, int32."""
    return array_ops.shape(x)


def reshape(x: Any, shape: Any) -> Tensor:
    """`x` in another shape."""
    return array_ops.reshape(x, shape)


def squeeze(x: Any, axis: int) -> Tensor:
    """`x` without an axis of size 1."""
    return array_ops.squeeze(x, [axis])


def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors one behind the other along a new axis."""
    return array_ops.stack(x, axis)


def tile(x: Any, n: int | Sequence[int]) -> Tensor:
    """`x`, `n` times along each axis."""
    return array_ops.tile(x, [n] if isinstance(n, int) else n)


def transpose(x: Any) -> Tensor:
    """`x` with its axes in reverse."""
    return array_ops.transpose(x)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "int32") -> Tensor:
    """Numbers from `start`, or 0, up to `stop`. Their dtype is `dtype`, but that of the arguments for ``int32``."""
    low, high = (0, start) if stop is None else (start, stop)
    numbers = array_ops.range(low, high, step)
    return numbers if dtype == "int32" else array_ops.cast(numbers, dtype)


def batch_flatten(x: Any) -> Tensor:
    """Each example as a vector."""
    x = convert_to_tensor(x)
    sizes = x.shape.as_list()[1:]
    length = -1 if None in sizes else int(np.prod(sizes))
    return array_ops.reshape(x, [-1 if length >= 0 else array_ops.shape(x)[0], length])


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Tensor:
    """Tensors one behind the other."""
    return array_ops.concat(tensors, axis)


def expand_dims(x: Any, axis: int = -1) -> Tensor:
    """`x` with a new axis of size 1."""
    return array_ops.expand_dims(x, axis)


def flatten(x: Any) -> Tensor:
    """All elements as a vector."""
    return array_ops.reshape(x, [-1])


def one_hot(indices: Any, num_classes: int) -> Tensor:
    """1 at the place of each index, 0 elsewhere."""
    return array_ops.one_hot(indices, num_classes)


def permute_dimensions(x: Any, pattern: Sequence[int]) -> Tensor:
    """`x` with its axes in another order."""
    return array_ops.transpose(x, pattern)


def repeat(x: Any, n: int) -> Tensor:
    """Each vector `n` times: ``[batch, n, size]``."""
    return array_ops.tile(array_ops.expand_dims(x, 1), [1, n, 1])


def repeat_elements(x: Any, rep: int, axis: int) -> Tensor:
    """Each element `rep` times along an axis."""
    return repeated(x, rep, axis)


def reverse(x: Any, axes: int | Sequence[int]) -> Tensor:
    """`x` read from its end along axes."""
    return array_ops.reverse(x, [axes] if isinstance(axes, int) else list(axes))


def temporal_padding(x: Any, padding: Sequence[int] = (1, 1)) -> Tensor:
    """Zeros before and after each sequence, ``[batch, time, size]``."""
    return array_ops.pad(x, [[0, 0], list(padding), [0, 0]])


def ndim(x: Any) -> int | None:
    """How many axes there are."""
    rank: int | None = x.shape.rank
    return rank


def dtype(x: Any) -> str:
    """The name of the dtype."""
    name: str = x.dtype.base_dtype.name
    return name


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros in the shape of `x`."""
    return array_ops.zeros_like(x, dtype, name)


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones in the shape of `x`."""
    return array_ops.ones_like(x, dtype, name)


# -- variables and numbers -----------------------------------------------------------------------------


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Variable:
    """A variable that begins with `value`."""
    return Variable(value, dtype=as_dtype(dtype or floatx()), name=name, constraint=constraint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that does not change."""
    return constant_of(value, dtype or floatx(), shape, name or "Const")


def placeholder(
    shape: Shape | None = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A tensor that is fed, of a shape or of a number of axes: a `tf.SparseTensor` if `sparse`.

    Raises:
        ValueError: It would be ragged; tfray does without ragged tensors.
    """
    if ragged:
        raise ValueError("there are no ragged placeholders: feed a dense tensor and the lengths, or a sparse one")
    sizes = [None] * ndim if shape is None and ndim else shape
    make = sparse_placeholder if sparse else placeholder_of
    return make(dtype or floatx(), sizes, name)


def eye(size: int, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable that is the identity matrix at first."""
    return variable(np.eye(size), dtype, name)


def zeros(shape: Shape, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of zeros."""
    return variable(np.zeros(shape), dtype, name)


def ones(shape: Shape, dtype: Any = None, name: str | None = None) -> Variable:
    """A variable of ones."""
    return variable(np.ones(shape), dtype, name)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Normal numbers, drawn anew in each step."""
    return random.normal(shape, mean, stddev, dtype or floatx(), seed)


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Numbers between two bounds, drawn anew in each step."""
    return random.uniform(shape, minval, maxval, dtype or floatx(), seed)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Normal numbers within two standard deviations, drawn anew in each step."""
    return random.truncated_normal(shape, mean, stddev, dtype or floatx(), seed)


def random_normal_variable(
    shape: Shape, mean: float, scale: float, dtype: Any = None, name: str | None = None, seed: int | None = None
) -> Variable:
    """A variable that begins with normal numbers."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_uniform_variable(
    shape: Shape, low: float, high: float, dtype: Any = None, name: str | None = None, seed: int | None = None
) -> Variable:
    """A variable that begins with numbers between two bounds."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Ones with probability `p`, and zeros, drawn anew in each step."""
    return array_ops.cast(random.uniform(shape, seed=seed) <= p, dtype or floatx())


def print_tensor(x: Any, message: str = "") -> Tensor:
    """`x`; a step that uses it prints `message` and its value."""
    with get_default_graph().control_dependencies([print_v2(message, x, output_stream=sys.stdout)]):
        return array_ops.identity(x)


def is_sparse(tensor: Any) -> bool:
    """Whether it is a sparse tensor."""
    return isinstance(tensor, SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one; others as they are."""
    return sparse_tensor_to_dense(tensor) if is_sparse(tensor) else tensor


def update(x: Any, new_x: Any) -> Tensor:
    """Set a variable."""
    return state_ops.assign(x, new_x)


def update_add(x: Any, increment: Any) -> Tensor:
    """Add to a variable."""
    return state_ops.assign_add(x, increment)


def update_sub(x: Any, decrement: Any) -> Tensor:
    """Subtract from a variable."""
    return state_ops.assign_sub(x, decrement)


def count_params(x: Any) -> int:
    """How many elements a variable has."""
    return int(np.prod(x.shape.as_list()))


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two tensors, or what one of two functions gives, by a scalar; or by elements of a mask."""
    condition = array_ops.cast(condition, "bool")
    if condition.shape.rank == 0:
        return smart_cond(condition, _function(then_expression), _function(else_expression))
    then, otherwise = _function(then_expression)(), _function(else_expression)()
    rank = convert_to_tensor(then).shape.rank or 0
    for _ in range(rank - (condition.shape.rank or 0)):
        condition = array_ops.expand_dims(condition, -1)
    return array_ops.where(array_ops.broadcast_to(condition, array_ops.shape(then)), then, otherwise)


def _function(given: Any) -> Callable[[], Any]:
    return given if callable(given) else lambda: given
