"""Rules for layers, images and random numbers that differ from TensorFlow's in more than names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError, UnimplementedError
from tfray.exchange.array_rules import through
from tfray.exchange.exports import Body, export
from tfray.exchange.node import Imported, Node, rule
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.graph import Operation, Tensor
from tfray.ops.arrays.broadcast_ops import zeros, zeros_like
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.join_ops import concat, split
from tfray.ops.arrays.shape_ops import cast, identity, reshape, shape, size
from tfray.ops.arrays.space_block_ops import batch_to_space, space_to_batch
from tfray.ops.control.functional_ops import scan
from tfray.ops.image import image_box_ops, image_codec_ops, image_color_ops
from tfray.ops.linalg import tridiagonal_ops
from tfray.ops.math.arithmetic_ops import abs as absolute
from tfray.ops.math.arithmetic_ops import add_n, square
from tfray.ops.math.comparison_ops import bitwise_and, right_shift
from tfray.ops.math.linalg_ops import matmul
from tfray.ops.math.reduction_ops import reduce_sum
from tfray.ops.math.rounding_ops import clip_by_value
from tfray.ops.math.search_ops import bincount
from tfray.ops.math.sorting_ops import searchsorted
from tfray.ops.math.transcendental_ops import sigmoid, tanh
from tfray.ops.nn import any_rank_conv_ops, moments_ops, pooling_ops


def gradients_through(node: Node, function: Callable[..., Tensor], inputs: Sequence[Tensor], d_output: Tensor) -> Any:
    """The gradients of what a function makes of `inputs`, whose own gradient is `d_output`.

    TensorFlow has an operation for them, tfray only for those of the parts of which it makes the function.
    """

    def gradients() -> list[Tensor]:
        own = [identity(tensor) for tensor in inputs]
        before = set(node.graph.get_operations())
        result = function(*own)
        made = [op for op in node.graph.get_operations() if op not in before]
        found: dict[Tensor, list[Tensor]] = {result: [d_output]}
        for op in reversed(made):
            d_outputs = [add_n(found[tensor]) if tensor in found else None for tensor in op.outputs]
            if any(each is not None for each in d_outputs) and op.op_def.gradient is not None:
                for tensor, d_input in zip(op.inputs, op.op_def.gradient(op, *d_outputs), strict=True):
                    if isinstance(d_input, Tensor):
                        found.setdefault(tensor, []).append(d_input)
        return [add_n(found[tensor]) if tensor in found else zeros_like(tensor) for tensor in own]

    return through(node, gradients)


# -- pooling and other windows -------------------------------------------------------------------------


@rule("MaxPool3DGrad")
def _max_pool3d_gradient(node: Node) -> Sequence[Imported]:
    x, _, d_y = node.inputs
    return gradients_through(node, lambda x: any_rank_conv_ops.max_pool3d(x, *_window(node)), [x], d_y)


@rule("AvgPool3DGrad")
def _avg_pool3d_gradient(node: Node) -> Sequence[Imported]:
    sizes, d_y = node.inputs

    def pooled(x: Tensor) -> Tensor:
        return any_rank_conv_ops.avg_pool3d(x, *_window(node))

    with node.building():
        x = zeros(sizes, d_y.dtype)
        known = node.constant("orig_input_shape")
        if known is not None:
            x.set_shape(known.tolist())
        elif x.shape.rank is None:
            x.set_shape([None] * 5)
    return gradients_through(node, pooled, [x], d_y)


@rule("MaxPoolGradWithArgmax")
def _max_pool_with_argmax_gradient(node: Node) -> Sequence[Imported]:
    keys = ("ksize", "strides", "padding")
    attrs = {key: node.attrs[key] for key in keys}
    x, d_y, _ = node.inputs
    return gradients_through(node, lambda x: pooling_ops.max_pool(x, **attrs), [x], d_y)


def _window(node: Node) -> list[Any]:
    return [node.attrs[key] for key in ("ksize", "strides", "padding", "data_format")]


@rule("MaxPoolWithArgmax")
def _max_pool_with_argmax(node: Node) -> Sequence[Imported]:
    keys = ("ksize", "strides", "padding", "include_batch_in_index")
    attrs = {key: node.attrs[key] for key in keys} | {"data_format": "NHWC", "Targmax": node.attrs["Targmax"]}
    return list(node.make("MaxPoolWithArgmax", node.inputs, **attrs).outputs)


@rule("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def _dilation_gradient(node: Node) -> Sequence[Imported]:
    attrs = {key: node.attrs[key] for key in ("strides", "rates", "padding")}
    *operands, d_output = node.inputs
    output = node.part("Dilation2D", operands, **attrs)
    return [node.make(node.op, [*operands, output, d_output], **attrs).outputs[0]]


@rule("SoftsignGrad")
def _softsign_gradient(node: Node) -> Sequence[Imported]:
    d_y, x = node.inputs
    return through(node, lambda: d_y / square(1 + absolute(x)))


@rule("BatchNormWithGlobalNormalization")
def _old_batch_norm(node: Node) -> Sequence[Imported]:
    keys = ("variance_epsilon", "scale_after_normalization")
    function = moments_ops.batch_norm_with_global_normalization
    return through(node, function, *node.inputs, *(node.attrs[key] for key in keys))


@rule("BatchNormWithGlobalNormalizationGrad")
def _old_batch_norm_gradient(node: Node) -> Sequence[Imported]:
    t, m, v, gamma, d_y = node.inputs
    epsilon, scales = (node.attrs[key] for key in ("variance_epsilon", "scale_after_normalization"))

    def normalized(t: Tensor, m: Tensor, v: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
        return moments_ops.batch_norm_with_global_normalization(t, m, v, beta, gamma, epsilon, scales)

    with node.building():
        beta = zeros_like(m)
    return gradients_through(node, normalized, [t, m, v, beta, gamma], d_y)


@rule("SpaceToBatch", "BatchToSpace")
def _blocks(node: Node) -> Sequence[Imported]:
    function = space_to_batch if node.op == "SpaceToBatch" else batch_to_space
    return through(node, function, *node.inputs, node.attrs["block_size"])


# -- images --------------------------------------------------------------------------------------------


@rule("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def _suppress(node: Node) -> Sequence[Imported]:
    inputs = [cast(tensor, dtypes.float32) if tensor.dtype is dtypes.float16 else tensor for tensor in node.inputs]
    more = [node.attrs["iou_threshold"]] if node.op == "NonMaxSuppression" else []
    return through(node, image_box_ops.non_max_suppression, *inputs, *more)


@rule("NonMaxSuppressionV4")
def _suppress_and_pad(node: Node) -> Sequence[Imported]:
    function, padded = image_box_ops.non_max_suppression_padded, node.attrs["pad_to_max_output_size"]
    return through(node, function, *node.inputs, padded)


@rule("NonMaxSuppressionV5")
def _suppress_softly(node: Node) -> Sequence[Imported]:
    if node.attrs["pad_to_max_output_size"]:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray does not pad what it selects with scores")

    boxes, scores, most, overlap, least, sigma = node.inputs

    def selected() -> list[Tensor]:
        indices, kept = image_box_ops.non_max_suppression_with_scores(boxes, scores, most, overlap, least, sigma)
        return [indices, kept, size(indices)]

    return through(node, selected)


@rule("DrawBoundingBoxes")
def _draw(node: Node) -> Sequence[Imported]:
    return through(node, image_box_ops.draw_bounding_boxes, *node.inputs)


@rule("ExtractGlimpse", "ExtractGlimpseV2")
def _glimpse(node: Node) -> Sequence[Imported]:
    if node.attrs["noise"] not in ("uniform", "gaussian") and not node.attrs["uniform_noise"]:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray fills with noise only, not {node.attrs['noise']!r}")
    options = {key: node.attrs[key] for key in ("centered", "normalized", "uniform_noise")}
    return through(node, image_box_ops.extract_glimpse, *node.inputs, **options)


@rule("EncodeJpeg", "EncodeJpegVariableQuality")
def _encode_jpeg(node: Node) -> Sequence[Imported]:
    options = dict(node.attrs)
    if node.op != "EncodeJpeg":
        return through(node, lambda: image_codec_ops.encode_jpeg(node.inputs[0], quality=node.inputs[1]))
    return through(node, image_codec_ops.encode_jpeg, *node.inputs, **options)


@rule("ResizeBilinearGrad", "ResizeBicubicGrad")
def _resize_gradient(node: Node) -> Sequence[Imported]:
    d_output, image = node.inputs
    attrs = {key: node.attrs[key] for key in ("align_corners", "half_pixel_centers")}
    size = node.part("Slice", [node.part("Shape", [image], out_type=dtypes.int32), *_pair(node, 1, 2)])
    return [node.make(node.op, [d_output, size], T=image.dtype, **attrs).outputs[0]]


def _pair(node: Node, *values: int) -> list[Tensor]:
    return [node.known([value], dtypes.int32) for value in values]


@rule("AdjustContrast")
def _old_contrast(node: Node) -> Sequence[Imported]:
    images, factor, low, high = node.inputs

    def result() -> Tensor:
        return clip_by_value(image_color_ops.adjust_contrast(cast(images, dtypes.float32), factor), low, high)

    return through(node, result)


# -- random numbers ------------------------------------------------------------------------------------


@rule("StatelessRandomGetKeyCounter", "StatelessRandomGetKey")
def _seed(node: Node) -> Sequence[Imported]:
    (seed,) = node.inputs
    wide = node.part("Cast", [seed], SrcT=seed.dtype, DstT=dtypes.int64)
    return [wide, wide][: len(node.definition.outputs) if node.definition else 1]


@rule("StatelessRandomGetAlg")
def _algorithm(node: Node) -> Sequence[Imported]:
    return [node.make("Const", [], value=np.array(1, np.int32), dtype=dtypes.int32).outputs[0]]


@rule(
    "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "StatelessRandomUniformIntV2"
)
def _stateless(node: Node) -> Sequence[Imported]:
    sizes, seed, _, _, *bounds = node.inputs
    if seed.dtype is not dtypes.int64:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray takes keys of StatelessRandomGetKeyCounter only")
    made = node.make(node.op.removesuffix("V2"), [sizes, seed, *bounds], dtype=node.attrs["dtype"])
    return [made.outputs[0]]


# -- others --------------------------------------------------------------------------------------------


@rule("TridiagonalMatMul")
def _tridiagonal_product(node: Node) -> Sequence[Imported]:
    *diagonals, x = node.inputs

    def result() -> Tensor:
        rows = [reshape(each, concat([shape(each)[:-2], shape(each)[-1:]], 0)) for each in diagonals]
        return tridiagonal_ops.tridiagonal_matmul(rows, x, "sequence")

    return through(node, result)


@rule("AccumulateNV2")
def _accumulate(node: Node) -> Sequence[Imported]:
    return through(node, add_n, node.inputs)


@rule("ParallelConcat")
def _parallel_concat(node: Node) -> Sequence[Imported]:
    return through(node, concat, node.inputs, 0)


@rule("Empty")
def _empty(node: Node) -> Sequence[Imported]:
    return through(node, zeros, node.inputs[0], node.attrs["dtype"])


@rule("PopulationCount")
def _population_count(node: Node) -> Sequence[Imported]:
    (x,) = node.inputs

    def result() -> Tensor:
        places = range(x.dtype.size * 8)
        ones = [cast(bitwise_and(right_shift(x, place), 1), dtypes.uint8) for place in places]
        return add_n(ones)

    return through(node, result)


@rule("QuantizeAndDequantizeV3")
def _quantize_and_dequantize(node: Node) -> Sequence[Imported]:
    inputs = node.inputs[:3]
    if node.attrs["axis"] != -1:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray quantizes whole tensors, not along an axis")
    attrs = {key: node.attrs[key] for key in ("signed_input", "range_given", "narrow_range")}
    attrs |= {"num_bits": node.needed("num_bits"), "round_mode": "HALF_TO_EVEN"}
    return [node.make("QuantizeAndDequantizeV2", inputs, **attrs).outputs[0]]


# -- counts and places ---------------------------------------------------------------------------------


@rule("DenseBincount")
def _counts(node: Node) -> Sequence[Imported]:
    values, count, weights = node.inputs
    if values.shape.rank != 1 or node.attrs["binary_output"]:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray counts what is in a vector, how often")
    given = None if weights.shape.num_elements() == 0 else weights
    bounds = {"minlength": count, "maxlength": count, "dtype": node.attrs["T"]}
    return through(node, bincount, cast(values, dtypes.int32), given, **bounds)


@rule("LowerBound", "UpperBound")
def _bound(node: Node) -> Sequence[Imported]:
    side = "left" if node.op == "LowerBound" else "right"
    return through(node, searchsorted, *node.inputs, side, node.attrs["out_type"])


@rule("Bucketize")
def _buckets(node: Node) -> Sequence[Imported]:
    (values,) = node.inputs

    def places() -> Tensor:
        bounds = np.array(node.attrs["boundaries"], np.float32)
        flat = reshape(cast(values, dtypes.float32), [-1])
        return reshape(searchsorted(bounds, flat, "right"), shape(values))

    return through(node, places)


@rule("UniqueV2", "UniqueWithCountsV2")
def _distinct(node: Node) -> Sequence[Imported]:
    values = node.inputs[0]
    if values.shape.rank != 1:
        raise UnimplementedError(f"{node.op} {node.name!r}: tfray finds the distinct values of vectors only")
    made = node.make("UniqueWithCounts", [values], out_idx=node.attrs["out_idx"])
    return list(made.outputs[: 2 if node.op == "UniqueV2" else 3])


# -- out -----------------------------------------------------------------------------------------------


@export("MaxPoolWithArgmax")
def _write_max_pool_with_argmax(body: Body, op: Operation) -> None:
    if op.attrs["data_format"] != "NHWC":
        raise UnimplementedError(f"{op.name!r} has the channels first, which TensorFlow's does not")
    attrs = {key: op.attrs[key] for key in ("ksize", "strides", "padding", "include_batch_in_index")}
    _give(body, op, op.inputs, attrs | {"T": op.outputs[0].dtype, "Targmax": op.outputs[1].dtype})


@export("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def _write_dilation_gradient(body: Body, op: Operation) -> None:
    x, kernel, _, d_output = op.inputs
    attrs = {key: op.attrs[key] for key in ("strides", "rates", "padding")}
    _give(body, op, [x, kernel, d_output], attrs | {"T": op.outputs[0].dtype})


@export("NonMaxSuppressionV5")
def _write_suppress(body: Body, op: Operation) -> None:
    _give(body, op, op.inputs, {"T": dtypes.float32})


@export("DrawBoundingBoxesV2")
def _write_boxes(body: Body, op: Operation) -> None:
    attrs = {"T": op.outputs[0].dtype}
    if op.inputs[2].shape.num_elements() != 0:
        _give(body, op, op.inputs, attrs)
        return
    body.made(op, "DrawBoundingBoxes", [body.text(tensor) for tensor in op.inputs[:2]], **attrs)


@export("ExtractGlimpse")
def _write_glimpse(body: Body, op: Operation) -> None:
    attrs = {key: op.attrs[key] for key in ("centered", "normalized", "uniform_noise")}
    body.made(op, "ExtractGlimpse", [body.text(tensor) for tensor in op.inputs], **attrs)


@export("EncodeJpeg")
def _write_jpeg(body: Body, op: Operation) -> None:
    image, quality = op.inputs
    known = constant_value(quality)
    across, down = op.attrs["density"]
    attrs = {key: op.attrs[key] for key in ("format", "progressive", "optimize_size", "chroma_downsampling")}
    if known is not None:
        _give(body, op, [image], attrs | {"quality": int(known), "x_density": across, "y_density": down})
        return
    if attrs != {"format": "", "progressive": False, "optimize_size": False, "chroma_downsampling": True}:
        raise UnimplementedError(f"{op.name!r}: TensorFlow knows only defaults where the quality is a tensor")
    body.made(op, "EncodeJpegVariableQuality", [body.text(image), body.text(quality)])


@export("ResizeBilinearGrad", "ResizeBicubicGrad")
def _write_resize_gradient(body: Body, op: Operation) -> None:
    """There an image tells the size."""
    d_output, size = op.inputs
    if d_output.dtype is not dtypes.float32:
        raise UnimplementedError(f"{op.name!r} is of {d_output.dtype.name}, TensorFlow's of float32")
    kind = op.outputs[0].dtype
    sizes = body.part(op, "Shape", "Shape", [body.text(d_output)], T=d_output.dtype, out_type=dtypes.int32)
    ends = [
        body.part(
            op,
            name,
            "Slice",
            [sizes, body.constant(op, f"{name}_begin", [start]), body.constant(op, f"{name}_size", [1])],
            T=dtypes.int32,
            Index=dtypes.int32,
        )
        for name, start in (("batch", 0), ("channels", 3))
    ]
    texts = [ends[0], body.text(size), ends[1], body.constant(op, "axis", 0)]
    shape = body.part(op, "image_shape", "ConcatV2", texts, N=3, T=dtypes.int32, Tidx=dtypes.int32)
    zero = body.constant(op, "zero", 0, kind)
    image = body.part(op, "image", "Fill", [shape, zero], T=kind, index_type=dtypes.int32)
    attrs = {key: op.attrs[key] for key in ("align_corners", "half_pixel_centers")} | {"T": kind}
    made = body.made(op, op.type, [body.text(d_output), image], **attrs)
    body.keep(op, made)


@export("SearchSorted")
def _write_search(body: Body, op: Operation) -> None:
    """There all are matrices."""
    kind, found = op.inputs[0].dtype, op.outputs[0].dtype
    rows = []
    for name, tensor in zip(("sorted", "values"), op.inputs, strict=True):
        last = tensor.shape.as_list()[-1] if tensor.shape.rank else None
        if tensor.shape.rank == 1:
            shape = body.constant(op, f"{name}_shape", [1, -1])
        elif last is not None:
            shape = body.constant(op, f"{name}_shape", [-1, last])
        else:
            raise UnimplementedError(f"{op.name!r} searches in rows of a length that is not known")
        rows.append(body.part(op, name, "Reshape", [body.text(tensor), shape], T=kind, Tshape=dtypes.int32))
    there = "LowerBound" if op.attrs["side"] == "left" else "UpperBound"
    places = body.part(op, there, there, rows, T=kind, out_type=found)
    values = body.text(op.inputs[1])
    shape = body.part(op, "shape", "Shape", [values], T=kind, out_type=dtypes.int32)
    attrs = {"T": found, "Tshape": dtypes.int32}
    made = body.made(op, "Reshape", [places, shape], **attrs)
    body.keep(op, made)


def _give(body: Body, op: Operation, inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> None:
    """Write an operation of the same type. What it is given beyond TensorFlow's is kept."""
    made = body.made(op, op.type, [body.text(tensor) for tensor in inputs], **attrs)
    if len(inputs) != len(op.inputs):
        body.keep(op, made)


# -- recurrent cells in one operation ------------------------------------------------------------------


def _rank_of(tensor: Tensor, rank: int) -> None:
    if tensor.shape.rank not in (None, rank):
        raise InvalidArgumentError(f"Shape must be rank {rank} but is rank {tensor.shape.rank}: {tensor!r}")


def _lstm_step(node: Node, x: Tensor, cs_prev: Tensor, h_prev: Tensor, parts: Sequence[Tensor]) -> list[Tensor]:
    """What an LSTM makes of one step: its gates, states and output, in TensorFlow's order."""
    w, wci, wcf, wco, b = parts
    pieces = split(matmul(concat([x, h_prev], 1), w) + b, 4, 1)
    i, ci, f, o = (pieces[index] for index in ((0, 2, 1, 3) if node.op.endswith("V2") else (0, 1, 2, 3)))
    sees, clip = node.attrs["use_peephole"], node.attrs["cell_clip"]
    f = sigmoid(f + node.attrs.get("forget_bias", 0.0) + (wcf * cs_prev if sees else 0.0))
    i, ci = sigmoid(i + wci * cs_prev if sees else i), tanh(ci)
    cs = ci * i + cs_prev * f
    cs = clip_by_value(cs, -clip, clip) if clip > 0 else cs
    o, co = sigmoid(o + wco * cs if sees else o), tanh(cs)
    return [i, cs, f, o, ci, co, co * o]


@rule("LSTMBlockCell")
def _lstm_cell(node: Node) -> Sequence[Imported]:
    x, cs_prev, h_prev, *parts = node.inputs
    for tensor in (x, cs_prev, h_prev, parts[0]):
        _rank_of(tensor, 2)
    return through(node, _lstm_step, node, x, cs_prev, h_prev, parts)


@rule("LSTMBlockCellGrad")
def _lstm_cell_gradient(node: Node) -> Sequence[Imported]:
    x, cs_prev, _, _, wci, wcf, wco, _, i, cs, f, o, ci, co, d_cs, d_h = node.inputs
    _rank_of(x, 2)
    sees = node.attrs["use_peephole"]

    def gradients() -> list[Tensor]:
        d_o = o * (1.0 - o) * d_h * co
        d_state = (1.0 - square(co)) * d_h * o + d_cs + (d_o * wco if sees else 0.0)
        d_ci, d_f = (1.0 - square(ci)) * d_state * i, f * (1.0 - f) * d_state * cs_prev
        d_i = i * (1.0 - i) * d_state * ci
        d_cs_prev = d_state * f + (d_i * wci + d_f * wcf if sees else 0.0)
        gates = [(d_i, cs_prev), (d_f, cs_prev), (d_o, cs)]
        peeping = [reduce_sum(gate * state, 0) if sees else zeros_like(wci) for gate, state in gates]
        return [d_cs_prev, concat([d_i, d_ci, d_f, d_o], 1), *peeping]

    return through(node, gradients)


@rule("BlockLSTM", "BlockLSTMV2")
def _lstm(node: Node) -> Sequence[Imported]:
    """An LSTM over all steps. From `seq_len_max` on, all is 0."""
    last, x, cs_prev, h_prev, *parts = node.inputs
    _rank_of(x, 3)

    def steps() -> list[Tensor]:
        first = [zeros_like(cs_prev), cs_prev, *[zeros_like(cs_prev)] * 4, h_prev]
        made = scan(lambda before, step: _lstm_step(node, step, before[1], before[6], parts), x, first)
        counts = reshape(cast(range_(shape(x)[0]), last.dtype) < last, [-1, 1, 1])
        return [each * cast(counts, each.dtype) for each in made]

    return through(node, steps)


@rule("GRUBlockCell")
def _gru_cell(node: Node) -> Sequence[Imported]:
    x, h_prev, w_ru, w_c, b_ru, b_c = node.inputs
    _rank_of(x, 2)

    def step() -> list[Tensor]:
        r, u = split(sigmoid(matmul(concat([x, h_prev], 1), w_ru) + b_ru), 2, 1)
        c = tanh(matmul(concat([x, r * h_prev], 1), w_c) + b_c)
        return [r, u, c, u * h_prev + (1.0 - u) * c]

    return through(node, step)
