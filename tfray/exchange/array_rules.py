"""Rules for operations on variables and arrays that differ from TensorFlow's in more than names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.exchange.import_rules import MATRIX, RULES, Rule, by_rule
from tfray.exchange.node import Imported, Node, Reference, TensorArrayHandle, behind, rule
from tfray.framework import dtypes
from tfray.framework.graph import Tensor
from tfray.framework.op_def import lookup
from tfray.ops.arrays import broadcast_ops, gather_ops, slice_ops
from tfray.ops.image import image_color_ops
from tfray.ops.linalg import decomposition_ops
from tfray.ops.math import rounding_ops, sorting_ops, sparse_segment_ops
from tfray.ops.math.reduction_ops import reduce_euclidean_norm
from tfray.ops.nn import any_rank_conv_ops
from tfray.ops.strings import string_number_ops, string_ops

# -- variables -----------------------------------------------------------------------------------------


@rule("Variable", "VariableV2", "TemporaryVariable")
def _variable(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("shape", "dtype")}
    if container := node.attrs.get("container"):
        attrs["_container"] = container
    handle = node.make("Variable", [], shared_name=node.attrs.get("shared_name", ""), **attrs).outputs[0]
    return [Reference(handle)]


@rule("VarHandleOp")
def _handle(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("shape", "dtype")}
    # Without a container, TensorFlow finds a variable by this name; so it does not make two of one.
    shared = node.attrs.get("shared_name", "")
    return [node.make("Variable", [], shared_name="" if shared == node.name else shared, **attrs).outputs[0]]


@rule("AssignVariableOp")
def _assign_variable(node: Node) -> Sequence[Imported]:
    handle, value = node.inputs
    dtype, shape = behind(handle)
    node.make("Assign", [handle, value], dtype=dtype, shape=shape, validate_shape=bool(node.attrs["validate_shape"]))
    return []


@rule("Identity", "RefIdentity")
def _identity(node: Node) -> Sequence[Imported]:
    (given,) = node.given
    if isinstance(given, Reference) and given.value is None:
        dtype, shape = behind(given.handle)
        if given.after is not None:
            node.controls.append(given.after)
        read = node.make("ReadVariableOp", [given.handle], dtype=dtype, shape=shape).outputs[0]
        node.body.reads[read] = given.handle
        return [read]
    if isinstance(given, TensorArrayHandle) or node.value(given).dtype is dtypes.resource:
        node.make("NoOp", [])
        return [given]
    value = node.value(given)
    return [node.make("TensorArrayIdentity" if value.dtype is dtypes.variant else "Identity", [value]).outputs[0]]


@rule("ResourceGatherNd")
def _gather_of_variable(node: Node) -> Sequence[Imported]:
    handle, indices = node.inputs
    dtype, shape = behind(handle)
    return [
        node.make("GatherNd", [node.part("ReadVariableOp", [handle], dtype=dtype, shape=shape), indices]).outputs[0]
    ]


@rule("DestroyResourceOp", "ControlTrigger", "StackCloseV2")
def _nothing(node: Node) -> Sequence[Imported]:
    node.make("NoOp", [])
    return []


_DUAL_AVERAGING = ("ApplyAdagradDA", "SparseApplyAdagradDA")


@rule(*_DUAL_AVERAGING, *(f"Resource{name}" for name in _DUAL_AVERAGING))
def _dual_averaging(node: Node) -> Sequence[Imported]:
    """The step is of the dtype of the variable here."""
    (step,), (rate,) = node.arg("global_step"), node.arg("lr")
    cast = node.part("Cast", [step], SrcT=step.dtype, DstT=rate.dtype)
    node.inputs[:] = [cast if tensor is step else tensor for tensor in node.inputs]
    return by_rule(node, Rule(), node.op.removeprefix("Resource"))


@rule("ApplyFtrl", "ResourceApplyFtrl", "SparseApplyFtrl", "ResourceSparseApplyFtrl")
def _ftrl(node: Node) -> Sequence[Imported]:
    if node.attrs["multiply_linear_by_lr"]:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray knows nothing of multiply_linear_by_lr")
    ours = lookup(node.op.removeprefix("Resource"))
    dtype, shape = behind(node.inputs[0])
    zero = node.known(0, node.arg("lr")[0].dtype)
    names = [argument.name for argument in ours.input_arguments]
    inputs = [zero if name == "l2_shrinkage" else node.arg(name)[0] for name in names]
    made = node.make(ours.name, inputs, dtype=dtype, shape=shape)
    first = node.given[0]
    return [Reference(first.handle, made)] if isinstance(first, Reference) else []


# -- arrays --------------------------------------------------------------------------------------------


@rule("Add")
def _add(node: Node) -> Sequence[Imported]:
    """There it joins strings, too. `AddV2` does not."""
    if node.attrs["T"] is dtypes.string:
        return [node.make("StringJoin", node.inputs, separator="").outputs[0]]
    return by_rule(node, Rule(), "Add")


@rule("Const")
def _const(node: Node) -> Sequence[Imported]:
    value = node.attrs["value"]
    dtype = node.attrs["dtype"]
    return [node.make("Const", [], value=value, dtype=dtype).outputs[0]]


@rule("ShapeN")
def _shapes(node: Node) -> Sequence[Imported]:
    return node.named([node.part("Shape", [tensor], out_type=node.attrs["out_type"]) for tensor in node.inputs])


@rule("ZerosLike")
def _zeros_like(node: Node) -> Sequence[Imported]:
    return _filled_like(node, 0)


@rule("OnesLike")
def _ones_like(node: Node) -> Sequence[Imported]:
    return _filled_like(node, 1)


def _filled_like(node: Node, value: int) -> Sequence[Imported]:
    (tensor,) = node.inputs
    if tensor.dtype is dtypes.variant:
        size = node.known(0, dtypes.int32)
        return [node.make("TensorArray", [size]).outputs[0]]
    filled = b"" if tensor.dtype is dtypes.string else value
    shape = node.part("Shape", [tensor], out_type=dtypes.int32)
    return [node.make("Fill", [shape, node.known(filled, tensor.dtype)]).outputs[0]]


@rule("ConcatOffset")
def _concat_offset(node: Node) -> Sequence[Imported]:
    (axis,), shapes = node.arg("concat_dim"), node.arg("shape")
    rank = node.part("Size", [shapes[0]], out_type=dtypes.int32)
    one, zero = (node.known(value, shapes[0].dtype) for value in (1, 0))
    mask = node.part("OneHot", [node.part("FloorMod", [axis, rank]), rank, one, zero], axis=-1)
    offsets = [node.part("Mul", [shapes[0], zero])]
    for shape in shapes[:-1]:
        offsets.append(node.part("Add", [offsets[-1], node.part("Mul", [shape, mask])]))
    return node.named(offsets)


@rule("BroadcastGradientArgs")
def _broadcast_gradient_args(node: Node) -> Sequence[Imported]:
    # A gradient is summed over the dimensions in which the other tensor is larger. To sum over one of size 1 changes
    # nothing, because the sum is then brought into the shape of the tensor.
    first, second = node.inputs
    one = node.known(1, first.dtype)
    sizes = [node.part("Size", [shape], out_type=dtypes.int32) for shape in (first, second)]
    rank = node.part("Maximum", sizes)
    found = []
    for shape, size in zip((first, second), sizes, strict=True):
        missing = node.part("Reshape", [node.part("Sub", [rank, size]), node.known([1], dtypes.int32)])
        padded = node.part("ConcatV2", [node.part("Fill", [missing, one]), shape], axis=0)
        places = node.part("Where", [node.part("Equal", [padded, one])])
        flat = node.part("Reshape", [places, node.known([-1], dtypes.int32)])
        found.append(node.part("Cast", [flat], SrcT=dtypes.int64, DstT=first.dtype))
    return node.named(found)


@rule("Pad", "PadV2", "MirrorPad")
def _pad(node: Node) -> Sequence[Imported]:
    if node.op == "MirrorPad":
        return by_rule(node, Rule("MirrorPad"), "MirrorPad")
    value = node.arg("constant_values")[0] if node.op == "PadV2" else node.known(0, node.inputs[0].dtype)
    return [node.make("PadV2", [*node.inputs[:2], value]).outputs[0]]


@rule("BatchMatMulV3")
def _products(node: Node) -> Sequence[Imported]:
    wanted = node.attrs["Tout"]
    operands = [
        tensor if tensor.dtype is wanted else node.part("Cast", [tensor], SrcT=tensor.dtype, DstT=wanted)
        for tensor in node.inputs
    ]
    flags = {here: node.attrs[there] for there, here in MATRIX.items()}
    return [node.make("BatchMatMul", operands, **flags).outputs[0]]


@rule("Roll")
def _roll(node: Node) -> Sequence[Imported]:
    axis = node.constant("axis")
    if axis is None or axis.ndim:
        return by_rule(node, RULES["Roll"], "Roll")
    shift = node.part("Reshape", [node.inputs[1], node.known([1], dtypes.int32)])
    return [node.make("Roll", [node.inputs[0], shift], axis=[int(axis)], backwards=False).outputs[0]]


@rule("StridedSlice")
def _strided_slice(node: Node) -> Sequence[Imported]:
    value, *bounds = node.inputs
    key, bounds = _key(node, *bounds)
    return [node.make("StridedSlice", [value, *bounds], key=key).outputs[0]]


@rule("StridedSliceGrad")
def _strided_slice_grad(node: Node) -> Sequence[Imported]:
    shape, begin, end, strides, d_part = node.inputs
    key, bounds = _key(node, begin, end, strides)
    return [node.make("StridedSliceGrad", [d_part, shape, *bounds], key=key).outputs[0]]


@rule("StridedSliceAssign", "ResourceStridedSliceAssign")
def _strided_slice_assign(node: Node) -> Sequence[Imported]:
    handle, begin, end, strides, value = node.inputs
    key, bounds = _key(node, begin, end, strides)
    dtype, shape = behind(handle)
    made = node.make("StridedSliceAssign", [handle, value, *bounds], key=key, dtype=dtype, shape=shape)
    return [Reference(handle, made, made.outputs[0])] if node.op == "StridedSliceAssign" else []


def _key(node: Node, begin: Tensor, end: Tensor, strides: Tensor) -> tuple[str, list[Tensor]]:
    masks = {name: value for name, value in node.attrs.items() if name.endswith("_mask")}
    node.wait_like([begin, end, strides])
    with node.building():
        return slice_ops.strided_key(begin, end, strides, **masks)


@rule("DynamicStitch", "ParallelDynamicStitch")
def _stitch(node: Node) -> Sequence[Imported]:
    return [node.make("DynamicStitch", node.inputs, T=node.attrs["T"]).outputs[0]]


# -- gradients of functions ----------------------------------------------------------------------------


@rule("SqrtGrad")
def _sqrt_grad(node: Node) -> Sequence[Imported]:
    y, d_y = node.inputs
    half = node.part("Mul", [d_y, node.known(0.5, y.dtype)])
    return [node.make("RealDiv", [half, y]).outputs[0]]


@rule("RsqrtGrad")
def _rsqrt_grad(node: Node) -> Sequence[Imported]:
    y, d_y = node.inputs
    cube = node.part("Mul", [node.part("Square", [y]), y])
    return [node.make("Mul", [node.part("Mul", [d_y, node.known(-0.5, y.dtype)]), cube]).outputs[0]]


@rule("InvGrad", "ReciprocalGrad")
def _reciprocal_grad(node: Node) -> Sequence[Imported]:
    y, d_y = node.inputs
    return [node.make("Mul", [node.part("Neg", [d_y]), node.part("Square", [y])]).outputs[0]]


@rule("SoftplusGrad")
def _softplus_grad(node: Node) -> Sequence[Imported]:
    d_y, x = node.inputs
    return [node.make("Mul", [d_y, node.part("Sigmoid", [x])]).outputs[0]]


@rule("Div")
def _div(node: Node) -> Sequence[Imported]:
    whole = node.inputs[0].dtype.is_integer
    return [node.make("TruncateDiv" if whole else "RealDiv", node.inputs).outputs[0]]


@rule("Mod")
def _mod(node: Node) -> Sequence[Imported]:
    return [node.make("TruncateMod", node.inputs).outputs[0]]


@rule("MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3")
def _diagonals(node: Node) -> Sequence[Imported]:
    k = node.constant("k")
    is_one = len({*np.ravel(k).tolist()}) == 1 if k is not None else node.arg("k")[0].shape.num_elements() == 1
    if not is_one and node.attrs.get("align", "LEFT_LEFT") != "LEFT_LEFT":
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray aligns several diagonals to the left only")
    return [node.make(f"{node.op.removesuffix('3')}2", node.inputs).outputs[0]]


# -- operations that are several here ------------------------------------------------------------------


def through(node: Node, function: Callable[..., Any], *args: Any, **options: Any) -> list[Imported]:
    """What a function of tfray's makes, under the node's name."""
    with node.building():
        made = function(*args, **options)
    return node.named([made] if isinstance(made, Tensor) else list(made))


@rule("CholeskyGrad", "BatchCholeskyGrad")
def _cholesky_gradient(node: Node) -> Sequence[Imported]:
    return through(node, decomposition_ops.cholesky_grad, *node.inputs)


@rule("DataFormatDimMap", "DataFormatVecPermute")
def _by_layout(node: Node) -> Sequence[Imported]:
    """Numbers of dimensions of one layout as those of another, or what belongs to each dimension in another order."""
    source, target = node.attrs["src_format"], node.attrs["dst_format"]
    if sorted(source) != sorted(target):
        raise InvalidArgumentError(f"{node.op}: {source!r} and {target!r} do not have the same dimensions")
    (x,) = node.inputs
    if node.op == "DataFormatVecPermute":
        return through(node, gather_ops.gather, x, [source.index(axis) for axis in target])
    places = np.array([target.index(axis) for axis in source], x.dtype.numpy)
    return through(node, lambda: gather_ops.gather(places, rounding_ops.floormod(x, len(source))))


@rule("SelectV2")
def _select(node: Node) -> Sequence[Imported]:
    return through(node, broadcast_ops.where_v2, *node.inputs)


@rule("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
def _conv3d(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("padding", "data_format")}
    axes = slice(1, 4) if node.attrs["data_format"] == "NDHWC" else slice(2, 5)
    attrs |= {key: list(node.attrs[key][axes]) for key in ("strides", "dilations")}
    return [node.make(node.op, node.inputs, **attrs).outputs[0]]


@rule("MaxPool3D", "AvgPool3D")
def _pool3d(node: Node) -> Sequence[Imported]:
    function = any_rank_conv_ops.max_pool3d if node.op == "MaxPool3D" else any_rank_conv_ops.avg_pool3d
    keys = ("ksize", "strides", "padding", "data_format")
    return through(node, function, *node.inputs, *(node.attrs[key] for key in keys))


@rule("Unique", "UniqueWithCounts")
def _unique(node: Node) -> Sequence[Imported]:
    made = node.make("UniqueWithCounts", node.inputs, out_idx=node.attrs["out_idx"])
    return list(made.outputs[: 2 if node.op == "Unique" else 3])


@rule("HistogramFixedWidth")
def _histogram(node: Node) -> Sequence[Imported]:
    values, value_range, _ = node.inputs
    bins = node.needed("nbins")
    return through(node, sorting_ops.histogram_fixed_width, values, value_range, bins, node.attrs["dtype"])


@rule("AdjustContrastv2")
def _contrast(node: Node) -> Sequence[Imported]:
    return through(node, image_color_ops.adjust_contrast, *node.inputs)


@rule("AsString")
def _as_string(node: Node) -> Sequence[Imported]:
    options = {key: value for key, value in node.attrs.items() if key != "T"}
    return through(node, string_number_ops.as_string, *node.inputs, **options)


@rule("ShardedFilespec")
def _sharded_filespec(node: Node) -> Sequence[Imported]:
    basename, count = node.inputs
    total = string_number_ops.as_string(count, width=5, fill="0")
    return through(node, string_ops.string_join, [basename, "-?????-of-", total])


@rule("StaticRegexReplace")
def _regex_replace(node: Node) -> Sequence[Imported]:
    texts = [node.known(node.attrs[key].encode(), dtypes.string) for key in ("pattern", "rewrite")]
    replace_global = node.attrs["replace_global"]
    return [node.make("RegexReplace", [*node.inputs, *texts], replace_global=replace_global).outputs[0]]


@rule("StaticRegexFullMatch")
def _regex_full_match(node: Node) -> Sequence[Imported]:
    pattern = node.known(node.attrs["pattern"].encode(), dtypes.string)
    return [node.make("RegexFullMatch", [*node.inputs, pattern]).outputs[0]]


@rule("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def _sparse_segments(node: Node) -> Sequence[Imported]:
    functions = {
        "SparseSegmentSum": sparse_segment_ops.sparse_segment_sum,
        "SparseSegmentMean": sparse_segment_ops.sparse_segment_mean,
        "SparseSegmentSqrtN": sparse_segment_ops.sparse_segment_sqrt_n,
    }
    return through(node, functions[node.op], *node.inputs)


@rule("EuclideanNorm")
def _euclidean_norm(node: Node) -> Sequence[Imported]:
    return through(node, reduce_euclidean_norm, *node.inputs, keepdims=node.attrs["keep_dims"])


@rule("TopK")
def _top_k(node: Node) -> Sequence[Imported]:
    k = node.known(node.attrs["k"], dtypes.int32)
    return list(node.make("TopKV2", [*node.inputs, k], sorted=node.attrs["sorted"]).outputs)


@rule("InTopK")
def _in_top_k(node: Node) -> Sequence[Imported]:
    return [node.make("InTopKV2", [*node.inputs, node.known(node.attrs["k"], node.inputs[1].dtype)]).outputs[0]]
