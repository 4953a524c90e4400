"""The names ending in ``_v2`` that TensorFlow 1.15 has within its modules: functions of 1.x with 2.0's arguments.

Programs import them, as ``nn_ops.dropout_v2``, to have 2.0's order and names of arguments before they move to it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, NoReturn, Self, cast

import tfray as tf
from tfray.errors import ArgumentError
from tfray.framework.device_spec import DeviceSpec
from tfray.framework.random_seed import get_seed

ARGUMENTS: Final = {
    "argmax_v2": ("argmax", "input, axis=0, output_type, name"),
    "argmin_v2": ("argmin", "input, axis=0, output_type, name"),
    "assert_integer_v2": ("assert_integer", "x, message, name"),
    "assert_near_v2": ("debugging.assert_near", "x, y, rtol, atol, message, summarize, name"),
    "assert_rank_at_least_v2": ("assert_rank_at_least", "x, rank, message, name"),
    "assert_rank_in_v2": ("assert_rank_in", "x, ranks, message, name"),
    "assert_rank_v2": ("assert_rank", "x, rank, message, name"),
    "assert_scalar_v2": ("assert_scalar", "tensor, message, name"),
    "assert_type_v2": ("assert_type", "tensor, tf_type, message, name"),
    **{
        f"assert_{kind}_v2": (f"assert_{kind}", "x, y, message, summarize, name")
        for kind in ("equal", "greater", "greater_equal", "less", "less_equal", "none_equal")
    },
    **{
        f"assert_{kind}_v2": (f"assert_{kind}", "x, message, summarize, name")
        for kind in ("negative", "non_negative", "non_positive", "positive")
    },
    "batch_to_space_v2": ("batch_to_space_nd", "input, block_shape, crops, name"),
    "boolean_mask_v2": ("boolean_mask", "tensor, mask, axis, name"),
    "conv1d_v2": ("nn.conv1d", "input, filters, stride, padding, data_format, dilations, name"),
    "conv2d_transpose_v2": (
        "nn.conv2d_transpose",
        "input, filters, output_shape, strides, padding, data_format, dilations, name",
    ),
    "conv2d_v2": ("nn.conv2d", "input, filters, strides, padding, data_format, dilations, name"),
    "conv3d_transpose_v2": (
        "nn.conv3d_transpose",
        "input, filters, output_shape, strides, padding, data_format, dilations, name",
    ),
    "conv3d_v2": ("nn.conv3d", "input, filters, strides, padding, data_format, dilations, name"),
    "convert_to_tensor_v2": ("convert_to_tensor", "value, dtype, dtype_hint/preferred_dtype, name"),
    "convolution_v2": ("nn.convolution", "input, filters, strides, padding='VALID', data_format, dilations, name"),
    "count_nonzero_v2": ("count_nonzero", "input, axis, keepdims, dtype, name"),
    "crelu_v2": ("nn.crelu", "features, axis, name"),
    "decode_csv_v2": (
        "decode_csv",
        "records, record_defaults, field_delim, use_quote_delim, na_value, select_cols, name",
    ),
    "depth_to_space_v2": ("depth_to_space", "input, block_size, data_format, name"),
    "depthwise_conv2d_v2": ("nn.depthwise_conv2d", "input, filter, strides, padding, data_format, dilations, name"),
    "dropout_v2": ("nn.dropout", "x, rate, noise_shape, seed, name"),
    "expand_dims_v2": ("expand_dims", "input, axis, name"),
    "gather_nd_v2": ("gather_nd", "params, indices, batch_dims, name"),
    "gather_v2": ("gather", "params, indices, validate_indices, axis, batch_dims, name"),
    "gradients_v2": (
        "gradients",
        "ys, xs, grad_ys, name, gate_gradients, aggregation_method, stop_gradients, unconnected_gradients",
    ),
    "log_softmax_v2": ("nn.log_softmax", "logits, axis, name"),
    "moments_v2": ("nn.moments", "x, axes, shift, keepdims, name"),
    "norm_v2": ("norm", "tensor, ord, axis, keepdims, name"),
    "ones_like_v2": ("ones_like", "input/tensor, dtype, name"),
    "pad_v2": ("pad", "tensor, paddings, mode, constant_values, name"),
    "parse_example_v2": ("parse_example", "serialized, features, example_names, name"),
    "pool_v2": ("nn.pool", "input, window_shape, pooling_type, strides, padding='VALID', data_format, dilations, name"),
    "random_poisson_v2": ("random_poisson", "shape, lam, dtype, seed, name"),
    **{
        f"reduce_{kind}_v2": (f"reduce_{kind}", "input_tensor, axis, keepdims=False, name")
        for kind in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")
    },
    "reduce_join_v2": ("reduce_join", "inputs, axis, keepdims, separator, name"),
    "reverse_sequence_v2": ("reverse_sequence", "input, seq_lengths, seq_axis, batch_axis, name"),
    "scalar_mul_v2": ("scalar_mul", "scalar, x, name"),
    "separable_conv2d_v2": (
        "nn.separable_conv2d",
        "input, depthwise_filter, pointwise_filter, strides, padding, data_format, dilations, name",
    ),
    "shape_v2": ("shape", "input, out_type, name"),
    "sigmoid_cross_entropy_with_logits_v2": ("nn.sigmoid_cross_entropy_with_logits", "labels, logits, name"),
    "size_v2": ("size", "input, out_type, name"),
    "softmax_v2": ("nn.softmax", "logits, axis, name"),
    "space_to_batch_v2": ("space_to_batch_nd", "input, block_shape, paddings, name"),
    "space_to_depth_v2": ("space_to_depth", "input, block_size, data_format, name"),
    "sparse_add_v2": ("sparse_add", "a, b, threshold"),
    "sparse_softmax_cross_entropy_with_logits_v2": (
        "nn.sparse_softmax_cross_entropy_with_logits",
        "labels, logits, name",
    ),
    "squeeze_v2": ("squeeze", "input, axis, name"),
    "string_length_v2": ("strings.length", "input, unit, name"),
    "substr_v2": ("strings.substr", "input, pos, len, unit, name"),
    "sufficient_statistics_v2": ("nn.sufficient_statistics", "x, axes, shift, keepdims, name"),
    "transpose_v2": ("transpose", "a, perm, conjugate, name"),
    "tuple_v2": ("tuple", "tensors, control_inputs, name"),
    "weighted_cross_entropy_with_logits_v2": (
        "nn.weighted_cross_entropy_with_logits",
        "labels, logits, pos_weight, name",
    ),
    "weighted_moments_v2": ("nn.weighted_moments", "x, axes, frequency_weights, keepdims, name"),
    "while_loop_v2": (
        "while_loop",
        "cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, maximum_iterations, "
        "name, return_same_structure=True",
    ),
    "zeros_like_v2": ("zeros_like", "input/tensor, dtype, name"),
}
"""The function of each name, and the arguments in their order.

``input/tensor`` stands for an argument of another name in 1.x. A default is given where 1.x has none, or another one.
"""


def _with_newer_arguments(name: str, function: Callable[..., Any], arguments: str) -> Callable[..., Any]:
    older, defaults = {}, {}
    for text in arguments.split(", "):
        names, _, default = text.partition("=")
        newer, _, old = names.partition("/")
        older[newer] = old or newer
        if default:
            defaults[newer] = ast.literal_eval(default)

    def newer_function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(older) or kwargs.keys() - list(older)[len(args) :]:
            raise ArgumentError(f"{name}() takes the arguments {arguments}, each once")
        values = defaults | dict(zip(older, args, strict=False)) | kwargs
        return function(**{older[newer]: value for newer, value in values.items()})

    taken = inspect.signature(function).parameters
    newer_function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
        [
            inspect.Parameter(
                newer, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(newer, taken[old].default)
            )
            for newer, old in older.items()
        ]
    )
    newer_function.__name__ = newer_function.__qualname__ = name
    newer_function.__doc__ = f"`{function.__name__}` with the arguments {arguments}."
    return newer_function


class DeviceSpecV2(DeviceSpec):
    """A `tf.DeviceSpec` whose fields stay what they are: `replace` makes another one."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise AttributeError(f"can't set attribute {name!r} of a DeviceSpecV2: use replace({name}=...)")
        super().__setattr__(name, value)

    def parse_from_string(self, spec: str) -> Self:
        """The devices of a name: another object.

        Raises:
            ValueError: `spec` is not a device name.
        """
        return self.from_string(spec)

    def merge_from(self, dev: DeviceSpec) -> NoReturn:
        """Raises `AttributeError`: fields stay what they are."""
        raise AttributeError("'DeviceSpecV2' object has no attribute 'merge_from': use make_merged_spec")


def fractional_avg_pool_v2(
    value: Any,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Any:
    """`tf.nn.fractional_avg_pool`, which chooses the same windows in every step unless `seed` is 0."""
    return _pooled(tf.nn.fractional_avg_pool, value, pooling_ratio, pseudo_random, overlapping, seed, name)


def fractional_max_pool_v2(
    value: Any,
    pooling_ratio: float | Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Any:
    """`tf.nn.fractional_max_pool`, which chooses the same windows in every step unless `seed` is 0.

    `pooling_ratio` has 4 numbers, 2 for height and width, or 1 for both.
    """
    ratio = [pooling_ratio] if isinstance(pooling_ratio, (int, float)) else list(pooling_ratio)
    ratio = ratio if len(ratio) > 2 else [1.0, ratio[0], ratio[-1], 1.0]
    return _pooled(tf.nn.fractional_max_pool, value, ratio, pseudo_random, overlapping, seed, name)


def _pooled(pool: Callable[..., Any], *args: Any) -> Any:
    *given, seed, name = args
    seeds = get_seed(seed) if seed else (0, 0)
    return pool(*given, deterministic=bool(seed), seed=seeds[0], seed2=seeds[1], name=name)


for _name, (_path, _arguments) in ARGUMENTS.items():
    globals()[_name] = _with_newer_arguments(_name, reduce(getattr, _path.split("."), cast(Any, tf)), _arguments)
