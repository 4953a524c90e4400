"""Calls of random programs: numbers, arrays, matrices, segments, sparse tensors, strings, checks."""

from __future__ import annotations

import numpy as np

from tests.support.differential.arguments import (
    Row,
    array,
    blocks_of,
    dtype,
    ids,
    like,
    makers,
    named,
    padding,
    pair,
    picture,
    segments,
    shape_of,
    some,
    sparse,
    square,
    words,
)
from tests.support.differential.calls import FLOATS, INTS, NUMBERS

ROWS: list[tuple[str, Row]] = [
    # Numbers
    ("erfc log_sigmoid nn.swish nn.crelu math.bessel_i0e math.bessel_i1e", lambda p: [some(p, "f", least=1)]),
    ("math.reciprocal_no_nan check_numerics nn.relu6 nn.elu ones_like zeros_like", lambda p: [some(p, "f")]),
    ("to_float to_double to_int32 to_int64 stop_gradient guarantee_const identity", lambda p: [some(p, "nb")]),
    ("math.multiply_no_nan math.xdivy math.xlogy math.nextafter", lambda p: pair(p, "f")),
    ("igamma igammac zeta", lambda p: [array(p, d := p.choose(FLOATS), [3], 1.1, 6), array(p, d, [3], 0.1, 6)]),
    ("polygamma", lambda p: [ids(p, [2, 3], 0, 4, d := p.choose(FLOATS)), array(p, d, [3], 0.2, 5)]),
    (
        "betainc",
        lambda p: [
            array(p, d := p.choose(FLOATS), [4], 0.2, 5),
            array(p, d, [4], 0.2, 5),
            array(p, d, [4], 0.01, 0.99),
        ],
    ),
    ("lbeta", lambda p: [array(p, p.choose(FLOATS), [2, 3], 0.1, 4)]),
    ("math.polyval", lambda p: [[x := some(p, "f"), *(like(p, x) for _ in range(p.small(0, 3)))], like(p, x)]),
    ("scalar_mul", lambda p: [p.choose([2, 0.5, -1]), some(p, "f")]),
    ("add_n accumulate_n", lambda p: [[x := some(p, "n"), *(like(p, x) for _ in range(p.small(0, 3)))]]),
    ("cross", lambda p: [array(p, d := p.choose(NUMBERS), s := p.choose([[3], [2, 3]]), -4, 5), array(p, d, s, -4, 5)]),
    ("saturate_cast", lambda p: [some(p, "n"), dtype(p, "uint8", "int32", "float32", "int8")]),
    ("bitcast", lambda p: [some(p, "n"), dtype(p, "int32", "float32", "int64", "uint8", "float64")]),
    ("bitwise.invert", lambda p: [some(p, "iu")]),
    ("bitwise.left_shift bitwise.right_shift", lambda p: [x := some(p, "i"), like(p, x, low=0, high=5)]),
    ("div realdiv floor_div floormod", lambda p: [x := some(p, "n"), like(p, x, low=1, high=4)]),
    ("count_nonzero", lambda p: [x := some(p, "nb"), named(axis=p.axes(len(shape_of(x))), keepdims=p.chance(0.3))]),
    (
        "math.reduce_std math.reduce_variance math.reduce_euclidean_norm",
        lambda p: [x := some(p, "f", full=True), p.axes(len(shape_of(x))), p.chance(0.3)],
    ),
    (
        "math.cumulative_logsumexp",
        lambda p: [x := some(p, "f", least=1), named(axis=p.axis(len(shape_of(x))), reverse=p.chance(0.5))],
    ),
    ("is_non_decreasing is_strictly_increasing", lambda p: [some(p, "n")]),
    (
        "bincount",
        lambda p: [ids(p, [p.small(0, 6)], 0, 5), named(minlength=p.choose([None, 3]), maxlength=p.choose([None, 4]))],
    ),
    ("histogram_fixed_width histogram_fixed_width_bins", lambda p: [some(p, "f"), [-1.0, 1.5], p.small(1, 6)]),
    ("confusion_matrix", lambda p: [ids(p, [5], 0, 3), ids(p, [5], 0, 3), named(num_classes=p.choose([None, 3, 4]))]),
    ("argsort", lambda p: [x := some(p, "n", least=1), named(axis=p.axis(len(shape_of(x))))]),
    (
        "searchsorted",
        lambda p: [[[1, 3, 5, 7]], [[p.small(0, 9) for _ in range(3)]], named(side=p.choose(["left", "right"]))],
    ),
    ("linspace", lambda p: [p.choose([0.0, -1.5]), 3.0, p.small(1, 5)]),
    ("range", lambda p: [p.small(0, 4), p.small(0, 9), p.choose([1, 2, -1])]),
    ("range", lambda p: [0.0, p.choose([1.0, 2.5]), 0.4]),
    (
        "eye",
        lambda p: [
            p.small(0, 4),
            p.choose([None, 2]),
            p.choose([None, [2]]),
            named(dtype=dtype(p, "float32", "int32", "complex64")),
        ],
    ),
    ("fill", lambda p: [[p.small(0, 3) for _ in range(p.small(0, 3))], p.choose([1, 2.5, True, "a"])]),
    (
        "zeros ones",
        lambda p: [[p.small(0, 3) for _ in range(p.small(0, 3))], dtype(p, "float32", "int64", "bool", "complex64")],
    ),
    (
        "constant",
        lambda p: [p.choose([1, 2.5, [1, 2], [[1.0], [2.0]], True]), named(shape=p.choose([None, [2], [2, 2]]))],
    ),
    ("is_nan is_inf is_finite", lambda p: [some(p, "f")]),
    # Arrays
    ("roll", lambda p: [x := some(p, "a", least=1), p.small(-3, 4), p.axis(len(shape_of(x)))]),
    (
        "repeat",
        lambda p: [x := some(p, "a", least=1), p.small(0, 3), named(axis=p.choose([None, p.axis(len(shape_of(x)))]))],
    ),
    (
        "slice",
        lambda p: [
            x := some(p, "a", least=1, full=True),
            [0] * len(shape_of(x)),
            [p.choose([-1, 1]) for _ in shape_of(x)],
        ],
    ),
    (
        "strided_slice",
        lambda p: [
            some(p, "a", least=1, full=True),
            [p.small(0, 2)],
            [p.small(0, 3)],
            [p.choose([1, 2])],
            named(begin_mask=p.small(0, 2), end_mask=p.small(0, 2), shrink_axis_mask=p.small(0, 2)),
        ],
    ),
    (
        "boolean_mask",
        lambda p: [x := some(p, "a", least=1), array(p, "bool", shape_of(x)[: p.small(1, len(shape_of(x)) + 1)])],
    ),
    ("invert_permutation", lambda p: [p.random.permutation(p.small(0, 5)).tolist()]),
    ("meshgrid", lambda p: [some(p, "n", rank=1), some(p, "n", rank=1), named(indexing=p.choose(["xy", "ij"]))]),
    ("unique unique_with_counts", lambda p: [some(p, "is", rank=1)]),
    ("setdiff1d", lambda p: [ids(p, [4], 0, 5), ids(p, [3], 0, 5)]),
    (
        "reverse_sequence",
        lambda p: [array(p, "float32", [3, 4, 2]), [p.small(0, 5) for _ in range(3)], named(seq_axis=1, batch_axis=0)],
    ),
    ("sequence_mask", lambda p: [ids(p, [p.small(0, 4)], 0, 5), p.choose([None, 3, 6]), dtype(p, "bool", "float32")]),
    ("space_to_batch_nd", lambda p: blocks_of(p, False)),
    ("batch_to_space_nd", lambda p: blocks_of(p, True)),
    ("space_to_batch", lambda p: [array(p, "float32", [1, 4, 4, 2]), [[0, 0], [p.small(0, 2) * 2, 0]], 2]),
    ("batch_to_space", lambda p: [array(p, "float32", [4, 2, 3, 1]), [[0, p.small(0, 2)], [0, 0]], 2]),
    ("required_space_to_batch_paddings", lambda p: [[p.small(2, 6), 5], [2, p.small(1, 4)]]),
    ("batch_gather", lambda p: [array(p, "float32", [2, 4, 3]), ids(p, [2, 2], 0, 4)]),
    (
        "gather",
        lambda p: [
            array(p, p.choose(NUMBERS), [2, 4, 3]),
            ids(p, [2, 2], 0, 3),
            named(axis=p.choose([1, 2]), batch_dims=1),
        ],
    ),
    ("gather_nd", lambda p: [array(p, p.choose(NUMBERS), [2, 4, 3]), ids(p, [2, 2, 1], 0, 4), named(batch_dims=1)]),
    (
        "tensor_scatter_nd_update tensor_scatter_nd_add tensor_scatter_nd_sub",
        lambda p: [
            x := some(p, "n", rank=2, full=True),
            ids(p, [2, 1], 0, shape_of(x)[0]),
            like(p, x, [2, shape_of(x)[1]]),
        ],
    ),
    ("unravel_index", lambda p: [ids(p, [3], 0, 6), [2, 3]]),
    ("ensure_shape", lambda p: [x := some(p, "a"), [p.choose([None, n]) for n in shape_of(x)]]),
    ("extract_image_patches", lambda p: [picture(p), [1, 2, 2, 1], [1, 1, 1, 1], [1, p.small(1, 3), 1, 1], padding(p)]),
    (
        "extract_volume_patches",
        lambda p: [array(p, "float32", [1, 3, 3, 3, 2]), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], padding(p)],
    ),
    ("dynamic_partition", lambda p: [x := some(p, "a", least=1), ids(p, shape_of(x)[:1], 0, 3), 3]),
    (
        "dynamic_stitch",
        lambda p: [[[0, 2], [1, p.small(0, 5)]], [array(p, "float32", [2, 2]), array(p, "float32", [2, 2])]],
    ),
    ("broadcast_dynamic_shape", lambda p: [[p.small(1, 3), 1], [p.small(1, 3)]]),
    ("parallel_stack", lambda p: [pair(p, "n", full=True)]),
    ("tuple identity_n shape_n", lambda p: [[some(p, "n"), some(p, "a")]]),
    ("where_v2", lambda p: [array(p, "bool", [2, 1]), array(p, d := p.choose(NUMBERS), [3]), array(p, d, [2, 3])]),
    ("where", lambda p: [array(p, "bool", [3]), array(p, d := p.choose(NUMBERS), [3, 2]), array(p, d, [3, 2])]),
    (
        "one_hot",
        lambda p: [
            ids(p, [2, 3], -1, 4),
            3,
            named(on_value=p.choose([None, 2.0]), off_value=p.choose([None, -1.0]), axis=p.choose([-1, 0, 1])),
        ],
    ),
    ("clip_by_norm", lambda p: [x := some(p, "f"), 0.7, named(axes=p.axes(len(shape_of(x))))]),
    ("clip_by_average_norm", lambda p: [some(p, "f", full=True), 0.3]),
    ("global_norm", lambda p: [pair(p, "f")]),
    (
        "edit_distance",
        lambda p: [
            sparse(p, ("int64",), shape=[2, 4]),
            sparse(p, ("int64",), shape=[2, 3]),
            named(normalize=p.chance(0.5)),
        ],
    ),
    (
        "pad",
        lambda p: [
            x := some(p, "nbs", least=1, most=3),
            [[p.small(0, 2), 1] for _ in shape_of(x)],
            "CONSTANT",
            named(constant_values=p.choose([0, 2])),
        ],
    ),
    (
        "cumsum cumprod",
        lambda p: [x := some(p, "nc", least=1), named(axis=p.axis(len(shape_of(x))), exclusive=p.chance(0.5))],
    ),
    (
        "reduce_sum reduce_prod reduce_mean",
        lambda p: [x := some(p, "ci"), named(axis=p.axes(len(shape_of(x))), keepdims=p.chance(0.3))],
    ),
    (
        "reduce_max reduce_min reduce_sum",
        lambda p: [x := some(p, "nu"), named(reduction_indices=p.axes(len(shape_of(x))))],
    ),
    # Matrices
    ("matrix_determinant matrix_inverse linalg.slogdet linalg.expm", lambda p: [square(p, "definite")]),
    ("matrix_inverse matrix_determinant", lambda p: [square(p, dtypes=("complex64", "complex128"))]),
    (
        "cholesky linalg.logdet matrix_square_root linalg.pinv linalg.matrix_rank self_adjoint_eigvals",
        lambda p: [square(p, "definite")],
    ),
    ("linalg.logm", lambda p: [square(p, "definite", ("complex64", "complex128"))]),
    (
        "matrix_solve matrix_triangular_solve cholesky_solve",
        lambda p: [x := square(p, "definite"), like(p, x, [*shape_of(x)[:-1], 2])],
    ),
    (
        "matrix_triangular_solve",
        lambda p: [
            x := square(p, "definite"),
            like(p, x, [*shape_of(x)[:-1], 2]),
            named(lower=p.chance(0.5), adjoint=p.chance(0.5)),
        ],
    ),
    (
        "matrix_solve_ls",
        lambda p: [
            array(p, d := p.choose(FLOATS), [4, 2]),
            array(p, d, [4, 3]),
            p.choose([0.0, 0.5]),
            named(fast=True),
        ],
    ),
    ("matrix_band_part", lambda p: [some(p, "n", least=2), p.small(-1, 3), p.small(-1, 3)]),
    ("matrix_diag diag", lambda p: [some(p, "nb", least=1, most=2)]),
    ("matrix_diag", lambda p: [array(p, "float32", [2, 3]), named(k=p.small(-2, 3), padding_value=0)]),
    ("matrix_diag_part", lambda p: [array(p, "float32", [2, 3, 4]), named(k=p.choose([0, 1, -1, [-1, 1]]))]),
    ("matrix_set_diag", lambda p: [array(p, d := p.choose(NUMBERS), [2, 3, 4]), array(p, d, [2, 3])]),
    ("linalg.adjoint", lambda p: [some(p, "fc", least=2)]),
    ("linalg.matvec", lambda p: [array(p, d := p.choose(FLOATS), [2, 3, 4]), array(p, d, [2, 4])]),
    (
        "linalg.normalize",
        lambda p: [some(p, "f", rank=2, full=True), p.choose(["euclidean", 1, 2, "fro"]), p.choose([None, 0, 1])],
    ),
    (
        "norm",
        lambda p: [
            some(p, "fc", rank=2, full=True),
            p.choose(["euclidean", 1, 2, np.inf, 3]),
            p.choose([None, 0, -1]),
            p.chance(0.3),
        ],
    ),
    (
        "linalg.tridiagonal_solve",
        lambda p: [array(p, "float64", [3, 4], 3, 5), array(p, "float64", [4, 2]), named(diagonals_format="compact")],
    ),
    (
        "linalg.tridiagonal_matmul",
        lambda p: [array(p, "float64", [3, 4]), array(p, "float64", [4, 2]), named(diagonals_format="compact")],
    ),
    (
        "einsum",
        lambda p: [
            *p.choose(
                [
                    ["ij,jk->ik", array(p, "float32", [2, 3]), array(p, "float32", [3, 4])],
                    ["bij,bjk->bik", array(p, "float64", [2, 2, 3]), array(p, "float64", [2, 3, 2])],
                    ["ij->ji", array(p, "float32", [2, 3])],
                    ["ij,ij->", array(p, "float32", [2, 3]), array(p, "float32", [2, 3])],
                    ["ijk->ik", array(p, "float32", [2, 3, 2])],
                    ["...i,ij->...j", array(p, "float32", [2, 2, 3]), array(p, "float32", [3, 4])],
                ]
            )
        ],
    ),
    (
        "tensordot",
        lambda p: [
            array(p, "float32", [2, 3, 4]),
            array(p, "float32", [4, 3, 2]),
            p.choose([[[1, 2], [1, 0]], [[2], [0]], 0, [[0], [2]]]),
        ],
    ),
    (
        "matmul",
        lambda p: [
            array(p, d := p.choose(["complex64", "float64", "int32"]), [2, 3, 3]),
            array(p, d, [2, 3, 3]),
            named(adjoint_a=p.chance(0.5), adjoint_b=p.chance(0.5)),
        ],
    ),
    (
        "sparse_matmul",
        lambda p: [array(p, "float32", [2, 3]), array(p, "float32", [3, 2]), named(a_is_sparse=p.chance(0.5))],
    ),
    ("snippet.decomposed", lambda p: [p.choose(["svd", "qr", "eigh", "lu"]), square(p)]),
    ("svd", lambda p: [some(p, "f", least=2, most=3, full=True), named(compute_uv=False)]),
    # Fourier
    ("fft ifft", lambda p: [array(p, p.choose(["complex64", "complex128"]), [2, p.small(1, 6)])]),
    ("fft2d ifft2d", lambda p: [array(p, "complex64", [2, p.small(1, 5), 3])]),
    ("fft3d ifft3d", lambda p: [array(p, "complex64", [2, 2, 3])]),
    ("signal.rfft", lambda p: [array(p, "float32", [2, p.small(2, 7)]), p.choose([None, [4], [8]])]),
    ("signal.irfft", lambda p: [array(p, "complex64", [2, p.small(2, 6)]), p.choose([None, [4], [6]])]),
    ("signal.rfft2d", lambda p: [array(p, "float32", [2, 4, 6])]),
    ("signal.irfft2d", lambda p: [array(p, "complex64", [2, 4, 4])]),
    (
        "signal.dct",
        lambda p: [
            array(p, p.choose(FLOATS), [2, p.small(2, 6)]),
            named(type=p.choose([1, 2, 3]), norm=p.choose([None, "ortho"])),
        ],
    ),
    ("signal.idct", lambda p: [array(p, p.choose(FLOATS), [2, p.small(2, 6)]), named(type=p.choose([1, 2, 3]))]),
    (
        "signal.frame",
        lambda p: [some(p, "f", least=1, full=True), p.small(1, 4), p.small(1, 3), named(pad_end=p.chance(0.5))],
    ),
    ("signal.overlap_and_add", lambda p: [array(p, "float32", [2, 3, 4]), p.small(1, 5)]),
    (
        "signal.stft",
        lambda p: [
            array(p, "float32", [p.small(8, 20)]),
            6,
            p.small(2, 5),
            named(fft_length=p.choose([None, 8]), pad_end=p.chance(0.5)),
        ],
    ),
    ("signal.inverse_stft", lambda p: [array(p, "complex64", [4, 5]), 8, p.small(3, 8)]),
    ("signal.hann_window signal.hamming_window", lambda p: [p.small(1, 7), p.chance(0.5)]),
    ("signal.linear_to_mel_weight_matrix", lambda p: [p.small(2, 6), p.small(5, 12), 8000, 100.0, 3000.0]),
    ("signal.mfccs_from_log_mel_spectrograms", lambda p: [array(p, "float32", [2, 4])]),
    (
        "signal.fftshift signal.ifftshift",
        lambda p: [x := some(p, "fc", least=1), p.choose([None, p.axis(len(shape_of(x)))])],
    ),
    # Segments, sparse tensors, sets
    (
        "unsorted_segment_sqrt_n unsorted_segment_mean unsorted_segment_sum",
        lambda p: [x := some(p, "f", least=1, full=True), segments(p, x), 4],
    ),
    (
        "sparse_segment_sum sparse_segment_mean sparse_segment_sqrt_n",
        lambda p: [
            x := some(p, "f", least=1, full=True),
            [p.small(0, shape_of(x)[0]) for _ in range(4)],
            [0, 0, 1, 2 + p.small(0, 2)],
            named(num_segments=p.choose([None, 5])),
        ],
    ),
    ("sparse.to_dense sparse.reorder sparse.from_dense", lambda p: [sparse(p, (*NUMBERS, "string"), p.small(1, 4))]),
    ("sparse.from_dense", lambda p: [some(p, "n", least=1)]),
    ("sparse.add", lambda p: [x := sparse(p, NUMBERS), {**x, "seed": p.small(0, 99)}]),
    ("sparse.maximum sparse.minimum", lambda p: [x := sparse(p, NUMBERS), {**x, "seed": p.small(0, 99)}]),
    ("sparse.concat", lambda p: [p.choose([0, 1, -1]), [x := sparse(p, NUMBERS), {**x, "seed": p.small(0, 99)}]]),
    (
        "sparse.reduce_sum sparse.reduce_max",
        lambda p: [sparse(p, NUMBERS), p.choose([None, 0, 1, [0, 1], -1]), p.chance(0.3)],
    ),
    ("sparse.reduce_sum_sparse sparse.reduce_max_sparse", lambda p: [sparse(p, FLOATS), p.choose([None, 0, 1])]),
    ("sparse.reshape", lambda p: [sparse(p, NUMBERS, shape=[2, 6]), p.choose([[3, 4], [-1], [2, -1, 3], [4, 3]])]),
    ("sparse.transpose", lambda p: [sparse(p, NUMBERS, 3), p.choose([None, [2, 0, 1]])]),
    ("sparse.slice", lambda p: [sparse(p, NUMBERS, shape=[3, 4]), [p.small(0, 3), 1], [2, p.small(1, 5)]]),
    (
        "sparse.split",
        lambda p: [named(sp_input=sparse(p, NUMBERS, shape=[3, 5]), num_split=p.small(1, 4), axis=p.small(0, 2))],
    ),
    ("sparse.softmax", lambda p: [sparse(p, FLOATS, p.small(2, 4))]),
    (
        "sparse.sparse_dense_matmul",
        lambda p: [
            x := sparse(p, FLOATS, shape=[3, 4]),
            array(p, x["of"], [3 if (t := p.chance(0.5)) else 4, 2]),
            named(adjoint_a=t),
        ],
    ),
    ("sparse.fill_empty_rows", lambda p: [sparse(p, FLOATS, shape=[4, 2]), 7.0]),
    ("sparse.reset_shape", lambda p: [sparse(p, NUMBERS, shape=[3, 4]), p.choose([None, [3, 4], [5, 6]])]),
    ("sparse.expand_dims", lambda p: [sparse(p, NUMBERS), p.choose([None, 0, 1, -1])]),
    ("sparse.to_indicator", lambda p: [sparse(p, ("int64",), shape=[3, 4]), 6]),
    ("sparse.eye", lambda p: [p.small(1, 4), p.choose([None, 3])]),
    (
        "sparse_to_dense",
        lambda p: [[[0, 1], [2, p.small(0, 3)]], [3, 3], [1.0, 2.0], named(default_value=p.choose([0, -1.0]))],
    ),
    ("sparse.cross", lambda p: [[sparse(p, ("string",), shape=[2, 2]), sparse(p, ("string",), shape=[2, 2])]]),
    (
        "sparse.cross_hashed",
        lambda p: [[sparse(p, ("string",), shape=[2, 2]), sparse(p, ("int64",), shape=[2, 2])], p.choose([0, 100])],
    ),
    ("sparse.merge", lambda p: [sparse(p, ("int64",), shape=[2, 3]), sparse(p, FLOATS, shape=[2, 3]), 9]),
    (
        "sets.union sets.intersection sets.difference",
        lambda p: [ids(p, [2, 4], 0, 6, "int64"), ids(p, [2, 3], 0, 6, "int64")],
    ),
    ("sets.size", lambda p: [sparse(p, ("int64",), shape=[2, 4])]),
    ("abs negative sign square sqrt tanh", lambda p: [sparse(p, FLOATS)]),
    ("cast", lambda p: [sparse(p, NUMBERS), dtype(p, "float32", "int64", "bool")]),
    # Strings
    (
        "strings.length strings.upper strings.lower strings.strip strings.bytes_split encode_base64",
        lambda p: [words(p)],
    ),
    (
        "strings.as_string",
        lambda p: [
            some(p, "nb"),
            named(precision=p.choose([-1, 2]), width=p.choose([-1, 6]), fill=p.choose(["", "0"])),
        ],
    ),
    ("strings.join", lambda p: [[x := words(p), words(p, shape_of(x)), "k"], p.choose(["", "-"])]),
    ("strings.substr", lambda p: [words(p), p.small(-1, 2), p.small(0, 3)]),
    (
        "strings.regex_replace",
        lambda p: [words(p), p.choose(["a", "[0-9]+", "(b)c"]), p.choose(["X", "<\\0>", ""]), p.chance(0.7)],
    ),
    ("strings.regex_full_match", lambda p: [words(p), p.choose(["a.*", "[0-9. -]+", "hello"])]),
    ("string_split", lambda p: [words(p), p.choose([" ", ",", ""]), p.chance(0.5)]),
    ("strings.split", lambda p: [words(p), p.choose([None, " ", ","])]),
    (
        "strings.reduce_join",
        lambda p: [
            words(p, [2, 3]),
            p.choose([None, 0, 1, [0, 1], [1, 0]]),
            named(separator=p.choose(["", "+"]), keep_dims=p.chance(0.3)),
        ],
    ),
    ("strings.to_hash_bucket_fast strings.to_hash_bucket", lambda p: [words(p), p.choose([1, 10, 1000])]),
    ("strings.to_hash_bucket_strong", lambda p: [words(p), 100, [1, p.small(0, 9)]]),
    (
        "strings.to_number",
        lambda p: [
            p.choose([["1", "2.5"], ["-3"], ["1e3"], ["x"], ["7 "], ["0x1F"]]),
            dtype(p, "float32", "int32", "int64", "float64"),
        ],
    ),
    ("strings.unicode_decode strings.unicode_split", lambda p: [words(p, [])]),
    ("strings.unicode_transcode", lambda p: [words(p), "UTF-8", p.choose(["UTF-16-BE", "UTF-8", "UTF-32-BE"])]),
    ("strings.unsorted_segment_join", lambda p: [words(p, [3]), [0, p.small(0, 3), 1], 3, p.choose(["", ","])]),
    ("strings.format", lambda p: [p.choose(["a {} b", "{}"]), some(p, "ns")]),
    ("decode_raw", lambda p: [p.choose([["abcd", "efgh"], ["abc"]]), dtype(p, "uint8", "int16", "int32", "float32")]),
    (
        "decode_csv",
        lambda p: [p.choose([["1,2.5,x", "3,,y"], ["1,2"], ["a,b,c"], ['7,1.5,"a,b"']]), [[0], [1.5], [""]]],
    ),
    ("equal not_equal", lambda p: [x := words(p), words(p, shape_of(x))]),
    ("serialize_tensor", lambda p: [some(p, "n")]),
    ("fingerprint", lambda p: [some(p, "n", rank=2)]),
    # Quantities of few bits
    (
        "fake_quant_with_min_max_args",
        lambda p: [
            array(p, "float32", [2, 3]),
            -1.0,
            p.choose([1.0, 0.5]),
            named(num_bits=p.choose([8, 4]), narrow_range=p.chance(0.5)),
        ],
    ),
    ("fake_quant_with_min_max_vars", lambda p: [array(p, "float32", [2, 3]), -1.0, 1.2]),
    (
        "fake_quant_with_min_max_vars_per_channel",
        lambda p: [array(p, "float32", [2, 3]), [-1.0, -0.5, 0.0], [1.0, 1.0, 2.0]],
    ),
    (
        "quantization.quantize_and_dequantize",
        lambda p: [array(p, "float32", [2, 3]), -1.0, 1.0, named(range_given=p.chance(0.5), num_bits=p.choose([4, 8]))],
    ),
    # Random numbers: their forms
    ("snippet.of_shape", lambda p: ["random_normal", [[p.small(0, 3), 2]], {"dtype": dtype(p, *FLOATS)}]),
    ("snippet.of_shape", lambda p: [p.choose(["truncated_normal", "random_uniform"]), [[2, p.small(0, 3)]], {}]),
    ("snippet.of_shape", lambda p: ["random_shuffle", [some(p, "a", least=1)], {}]),
    ("snippet.of_shape", lambda p: ["random_crop", [array(p, "float32", [4, 5]), [2, p.small(1, 7)]], {}]),
    ("snippet.of_shape", lambda p: ["multinomial", [array(p, "float32", [2, 3]), p.small(0, 4)], {}]),
    ("snippet.of_shape", lambda p: ["random_gamma", [[2], array(p, "float32", [3], 0.5, 2)], {}]),
    ("snippet.of_shape", lambda p: ["random_poisson", [array(p, "float32", [3], 0.5, 2), [2]], {}]),
    (
        "random.stateless_uniform random.stateless_normal random.stateless_truncated_normal",
        lambda p: [[p.small(0, 4), 3], [p.small(0, 99), 7], named(dtype=dtype(p, *FLOATS))],
    ),
    (
        "random.stateless_uniform",
        lambda p: [[3], [1, p.small(0, 99)], named(minval=0, maxval=p.choose([5, 100]), dtype=dtype(p, *INTS))],
    ),
    ("acosh math.bessel_i0 math.bessel_i1 to_complex64 to_complex128", lambda p: [some(p, "f")]),
    ("arg_max arg_min", lambda p: [x := some(p, "n", least=1, full=True), p.axis(len(shape_of(x)))]),
    (
        "convert_to_tensor",
        lambda p: [p.choose([1, [1.5, 2], [[True]], "a"]), p.choose([None, dtype(p, "float32", "int64")])],
    ),
    ("decode_base64", lambda p: [["YWJj", "_-8", "YQ"]]),
    ("debugging.is_numeric_tensor is_tensor", lambda p: [some(p, "a")]),
    ("image.is_jpeg", lambda p: [words(p, [])]),
    ("quantize_v2", lambda p: [array(p, "float32", [2, 3]), -1.0, p.choose([1.0, 3.0]), dtype(p, "quint8", "qint8")]),
    ("sparse.retain", lambda p: [sparse(p, NUMBERS, shape=[1, 3]), [True, False, True]]),
    ("strings.unicode_encode", lambda p: [[65, 945, p.small(32, 3000)], p.choose(["UTF-8", "UTF-16-BE"])]),
    (
        "fake_quant_with_min_max_args_gradient",
        lambda p: [x := array(p, "float32", [3]), x, -1.0, 1.0],
    ),
    (
        "fake_quant_with_min_max_vars_gradient",
        lambda p: [x := array(p, "float32", [3]), x, -1.0, 1.0],
    ),
    ("random.categorical", lambda p: [array(p, "float32", [2, 1]), p.small(0, 4)]),
    ("snippet.checked", lambda p: ["assert_greater_equal", pair(p, "n"), some(p, "n")]),
    ("snippet.checked", lambda p: ["assert_non_positive", [some(p, "n")], some(p, "n")]),
    ("snippet.checked", lambda p: ["assert_rank_in", [some(p, "n"), [1, p.small(0, 3)]], some(p, "n")]),
    ("snippet.coded", lambda p: [array(p, p.choose(["uint8"]), [3, 4, p.choose([1, 3, 4])], 0, 256), p.small(0, 5)]),
    ("snippet.serialized", lambda p: [sparse(p, NUMBERS)]),
    ("snippet.parsed", lambda p: [array(p, "float32", [p.small(0, 4)]), p.choose([None, 2.5]), p.small(0, 4)]),
    # Checks
    (
        "snippet.checked",
        lambda p: [
            p.choose(
                [
                    "assert_equal",
                    "assert_less",
                    "assert_less_equal",
                    "assert_greater",
                    "assert_near",
                    "assert_none_equal",
                ]
            ),
            pair(p, "f"),
            some(p, "n"),
        ],
    ),
    (
        "snippet.checked",
        lambda p: [
            p.choose(["assert_positive", "assert_negative", "assert_non_negative", "assert_integer", "assert_scalar"]),
            [some(p, "n")],
            some(p, "n"),
        ],
    ),
    (
        "snippet.checked",
        lambda p: [p.choose(["assert_rank", "assert_rank_at_least"]), [some(p, "n"), p.small(0, 3)], some(p, "n")],
    ),
    ("snippet.checked", lambda p: ["assert_type", [some(p, "n"), dtype(p, "float32", "int32")], some(p, "n")]),
    ("debugging.assert_all_finite", lambda p: [some(p, "f"), "not finite"]),
]

FAMILY_MAKERS = makers(ROWS)
