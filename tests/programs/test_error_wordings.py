"""Key words of TensorFlow's errors, which programs and their tests look for."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.jacobians import batch_jacobian
from tfray.library.functions.traced_function import Defun


def variable(*sizes):
    return tf.get_variable("v", sizes, initializer=tf.zeros_initializer())


def unknown(value):
    return tf.placeholder_with_default(value, None)


def array(size=3, **settings):
    return tf.TensorArray(tf.float32, size, infer_shape=False, **settings)


def options(**optimization):
    made = tf.data.Options()
    for name, value in optimization.items():
        setattr(made.experimental_optimization, name, value)
    return made


column = tf.feature_column
InputSpec = tf.layers.InputSpec

CELL = tf.nn.rnn_cell.BasicRNNCell
ONE = tf.SparseTensorValue([[0]], [1], [4])

XENT = tf.nn.sparse_softmax_cross_entropy_with_logits

WHILE_BUILDING = {
    "sizes of a shape without a rank": (
        lambda: tf.TensorShape(None).as_list(),
        r"as_list\(\) is not defined on an unknown TensorShape",
    ),
    "length of a shape without a rank": (
        lambda: len(tf.TensorShape(None)),
        "Cannot take the length of shape with unknown rank",
    ),
    "dimensions of a shape without a rank": (
        lambda: list(tf.TensorShape(None)),
        "Cannot (iterate over a|take the length of) shape with unknown rank",
    ),
    "an optimized weight that is read from one copy": (
        lambda: tf.layers.Layer().add_weight(
            "v", [2], synchronization=tf.VariableSynchronization.ON_READ, trainable=True
        ),
        "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable variables.",
    ),
    "a part of a scalar": (lambda: tf.constant(0)[:], "out of range"),
    "a part with too many dimensions": (lambda: tf.constant([1, 2])[1:, 1:], "out of range"),
    "cumsum along a vector": (lambda: tf.cumsum([1.0], [0]), "axis must be a scalar"),
    "reduce_join of a scalar": (lambda: tf.reduce_join("", 0), "Invalid reduction dimension 0"),
    "reduce_join out of range": (lambda: tf.reduce_join([[""]], [0, -3]), "Invalid reduction dimension -3"),
    "less than no numbers": (lambda: tf.multinomial([[1.0, 2.0]], -1), "must be non-negative but is -1"),
    "labels of another rank": (lambda: XENT(labels=[[0, 2]], logits=[[0.0, 1.0]] * 3), "Rank mismatch:"),
    "scalar logits": (lambda: XENT(labels=tf.constant(0), logits=tf.constant(1.0)), "Logits cannot be scalars"),
    "dense features of a sequence": (
        lambda: tf.keras.experimental.SequenceFeatures(
            [column.indicator_column(column.categorical_column_with_identity("a", 3))]
        )({"a": tf.SparseTensor([[0, 0]], [1], [1, 1])}),
        "In indicator_column: a_indicator. categorical_column must be of type SequenceCategoricalColumn to use",
    ),
    "too many arguments of a function": (
        lambda: Defun()(lambda: tf.constant(1))(2),
        "Expected number of arguments: 0, received: 1",
    ),
    "unknown arguments of a function": (
        lambda: Defun(tf.int32)(lambda a: a + 1)(1, device="/cpu:0"),
        "Unknown keyword arguments",
    ),
    "string_to_hash_bucket_strong": (
        lambda: tf.strings.to_hash_bucket_strong(["a"], 10, key=[98765]),
        "Key must have 2 elements",
    ),
    "string_length": (
        lambda: tf.strings.length(["a"], unit="XYZ"),
        "Attr 'unit' of 'StringLength' Op passed string 'XYZ' not in: \"BYTE\", \"UTF8_CHAR\"",
    ),
    "reverse_sequence along steps": (
        lambda: tf.reverse_sequence([[1, 2], [3, 4]], [2, 2], seq_axis=2),
        "seq_dim must be < input rank",
    ),
    "reverse_sequence of batches": (
        lambda: tf.reverse_sequence([[1, 2], [3, 4]], [2, 2], seq_axis=1, batch_axis=3),
        "batch_dim must be < input rank",
    ),
    "more names than results": (
        lambda: Defun(tf.int32, out_names=["a", "b"])(lambda a: a)(1),
        "output names must be either empty or equal in size to outputs",
    ),
    "nested critical sections": (
        lambda: (each := tf.CriticalSection()).execute(lambda: each.execute(lambda: tf.constant(1))),
        "attempts to directly access the CriticalSection in which it would be running",
    ),
    "threshold of a metric": (
        lambda: tf.keras.metrics.Recall(thresholds=[-1, 0.5, 2]),
        r"Threshold values must be in \[0, 1\]. Invalid values: \[-1, 2\]",
    ),
    "summation of a metric": (
        lambda: tf.keras.metrics.AUC(summation_method="Invalid"),
        'Invalid AUC summation method value "Invalid".',
    ),
    "bitcast": (lambda: tf.bitcast(np.zeros([1, 1], np.int8), tf.int32), "Cannot bitcast due to shape"),
    "matrix_diag of a scalar": (lambda: tf.matrix_diag(0), "must be at least rank 1"),
    "matrix_set_diag of a scalar": (lambda: tf.matrix_set_diag([[0]], 0), "must be at least rank 1"),
    "matrix_set_diag into a scalar": (lambda: tf.matrix_set_diag(0, [0]), "must be at least rank 2"),
    "assert_type": (
        lambda: tf.assert_type(tf.constant([1.0]), tf.int32),
        "must be of type <dtype: 'int32'>",
    ),
    "assert_integer": (lambda: tf.assert_integer(tf.constant([1.0])), "Expected .* integer"),
    "assert_rank_in of vectors": (
        lambda: tf.assert_rank_in(tf.constant([1.0]), (tf.constant([1, 2]), tf.constant([1]))),
        "Rank must be a scalar",
    ),
    "assert_rank_in of fractions": (
        lambda: tf.assert_rank_in(tf.constant([1.0]), (0.5, 1.5)),
        "must be of type <dtype: 'int32'>",
    ),
    "ensure_shape": (lambda: tf.ensure_shape(tf.zeros([2, 3]), [3]), "Shape must be rank 1 but is rank 2"),
    "roll by a matrix": (lambda: tf.roll([[1]], [[0, 1]], 1), "Shape must be at most rank 1 but is rank 2"),
    "roll along a matrix": (lambda: tf.roll([[1]], 1, [[0, 1]]), "Shape must be at most rank 1 but is rank 2"),
    "roll of a scalar": (lambda: tf.roll(7, 1, 0), "Shape must be at least rank 1 but is rank 0"),
    "roll out of range": (lambda: tf.roll([[1]], 3, -10), "is out of range"),
    "sparse_split of nothing": (lambda: tf.sparse_split(num_split=2, axis=0), "sp_input is required"),
    "sparse_split into nothing": (lambda: tf.sparse_split(sp_input=ONE, axis=0), "num_split is required"),
    "sparse_split along nothing": (lambda: tf.sparse_split(sp_input=ONE, num_split=2), "axis is required"),
    "as_string": (lambda: tf.as_string(1.0, scientific=True, shortest=True), "Cannot select both"),
    "as_string of integers": (lambda: tf.as_string(1, shortest=True), "scientific and shortest"),
    "as_string of an integer's fraction": (lambda: tf.as_string(1, precision=0), "precision not supported"),
    "as_string filled": (lambda: tf.as_string(1.0, fill="ab"), "Fill string must be one or fewer"),
    "a sequence's padding": (
        lambda: tf.parse_single_example(
            "", {"a": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=[])}
        ),
        "annot reshape|elements",
    ),
    "a stack of cells": (
        lambda: tf.nn.rnn_cell.MultiRNNCell([CELL(2), CELL(2)])(tf.zeros([1, 2]), tf.zeros([1, 4])),
        "Expected state .* a tuple",
    ),
    "a list of tensors of several dtypes": (
        lambda: tf.convert_to_tensor([tf.constant([1.0]), tf.constant([1.0], tf.float64)]),
        "cannot be packed as float32; use tf.cast",
    ),
    "map_fn of a scalar": (
        lambda: tf.map_fn(tf.identity, tf.constant(1)),
        r"must be a 1\+ dimensional Tensor, not a scalar",
    ),
    "map_fn of scalars": (
        lambda: tf.map_fn(lambda x: x[0], (tf.constant(1), tf.constant([1])), tf.int32),
        r"must be 1\+ dimensional Tensors, not scalars",
    ),
    "foldl of a scalar": (
        lambda: tf.foldl(tf.add, tf.constant(1)),
        r"must be a 1\+ dimensional Tensor, not a scalar",
    ),
    "scatter_nd into nothing": (
        lambda: tf.scatter_nd([[0]], [[1.0]], [0, 1]),
        "Indices and updates specified for empty",
    ),
    "scatter_nd_update of nothing": (
        lambda: tf.scatter_nd_update(variable(0, 2), [[0]], [[1.0, 2.0]]),
        "Indices and updates specified for empty",
    ),
    "tensor_scatter_update of nothing": (
        lambda: tf.tensor_scatter_update(tf.zeros([0, 2]), [[0]], [[1.0, 2.0]]),
        "Indices and updates specified for empty",
    ),
    "scatter_nd of too many updates": (
        lambda: tf.scatter_nd([[0], [1]], [1.0, 2.0, 3.0], [4]),
        r"outer 1 dimensions of indices.shape=\(2, 1\) must match the outer 1 dimensions of updates.shape=\(3,\)",
    ),
    "scatter_nd_add of too long updates": (
        lambda: tf.scatter_nd_add(variable(2, 2), [[0]], [[1.0, 2.0, 3.0]]),
        "inner 1 dimensions of",
    ),
    "tensor_scatter_add of too short updates": (
        lambda: tf.tensor_scatter_add(tf.zeros([2, 2]), [[0]], [[1.0]]),
        "inner 1 dimensions of",
    ),
    "scatter_nd of a scalar": (lambda: tf.scatter_nd(0, 1.0, [2]), "Shape must be at least rank 1 but is rank 0"),
    "tensordot over fewer than no axes": (
        lambda: tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), -1),
        "'axes' must be at least 0",
    ),
    "tensordot over more axes than there are": (
        lambda: tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), 3),
        "'axes' must not be larger than the number of dimensions of tensor",
    ),
    "tensordot over one axis and two": (
        lambda: tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), [[0], [0, 1]]),
        "Different number of contraction axes 'a' and 'b', 1 != 2",
    ),
    "dynamic_rnn without a dtype": (
        lambda: tf.nn.dynamic_rnn(CELL(3), tf.zeros([2, 3, 4])),
        "If there is no initial_state, you must give a dtype.",
    ),
    "static_rnn without a dtype": (
        lambda: tf.nn.static_rnn(CELL(3), [tf.zeros([2, 4])]),
        "If there is no initial_state, you must give a dtype.",
    ),
    "filter by numbers": (
        lambda: tf.data.Dataset.range(3).filter(lambda x: x),
        "`predicate` must return a scalar boolean tensor",
    ),
    "filter by vectors": (
        lambda: tf.data.Dataset.range(3).filter(lambda x: [True, False]),
        "`predicate` must return a scalar boolean tensor",
    ),
    "an empty graph": (lambda: tf.Session(graph=tf.Graph()).run([]), "The Session graph is empty."),
    "split of a scalar": (lambda: array().split(1.0, [1]), "Expected value to be at least a vector"),
    "num_segments of -1": (lambda: tf.unsorted_segment_sum([1.0], [0], -1), "must not be negative"),
    "a dimension below 0": (lambda: tf.Dimension(-2), "Dimension -2 must be >= 0"),
    "rows of a size below 0": (
        lambda: tf.data.Dataset.range(3).batch(2).apply(tf.data.experimental.dense_to_sparse_batch(4, [-2])),
        "Dimension -2 must be >= 0",
    ),
    "too few sizes of batches": (
        lambda: tf.data.experimental.bucket_by_sequence_length(len, [1], [1]),
        r"len\(bucket_batch_sizes\) must equal len\(bucket_boundaries\) \+ 1",
    ),
    "half of a dimension": (lambda: tf.Dimension(12.5), "Ambiguous dimension: 12.5"),
    "reshape": (
        lambda: tf.reshape([1, 2], [2, 2]),
        r"Cannot reshape a tensor with 2 elements to shape \[2,2\]",
    ),
    "a column that is not dense": (
        lambda: tf.feature_column.input_layer({"a": [[1]]}, [column.categorical_column_with_identity("a", 4)]),
        "must be a _DenseColumn",
    ),
    "options that differ": (
        lambda: tf.data.Dataset.range(3).with_options(options(autotune=False)).with_options(options(autotune=True)),
        r"Cannot merge incompatible values \(False and True\) of option: autotune",
    ),
    "pooling without strides": (lambda: tf.layers.max_pooling2d(tf.ones([1, 4, 4, 1]), 2, None), "strides"),
    "a layer of a vector": (lambda: tf.layers.Dense(2).compute_output_shape([1]), "expected rank 2 or more"),
    "a layer of unknown numbers": (
        lambda: tf.layers.Dense(2).compute_output_shape([2, None]),
        "last dimension of the inputs to `Dense` should be defined",
    ),
    "an axis of another size": (lambda: InputSpec(axes={-1: 2}).check(tf.zeros([3]), "c"), "expected axis"),
    "an input of unknown rank": (
        lambda: InputSpec(ndim=2).check(tf.placeholder("int32"), "c"),
        "requires a defined rank",
    ),
    "a replica that is no number": (
        lambda: tf.DeviceSpec.from_string("/job:j/replica:foo"),
        r"invalid literal for int\(\)",
    ),
    "a part of no device": (lambda: tf.DeviceSpec.from_string("/bar:muu/baz:2"), "Unknown attribute: 'bar'"),
    "more axes than shifts": (lambda: tf.roll([[1, 2], [3, 4]], [1], [0, 1]), "both shapes must be equal"),
    "a matrix as a column's default": (
        lambda: tf.decode_csv(["1"], [[[0]]]),
        "Shape must be at most rank 1 but is rank 2",
    ),
    "a list as input_map": (
        lambda: tf.import_graph_def(tf.GraphDef(), input_map=[1]),
        "input_map must be a dictionary mapping strings to Tensor objects",
    ),
    "numbers as return_elements": (
        lambda: tf.import_graph_def(tf.GraphDef(), return_elements=[7]),
        "return_elements must be a list of strings",
    ),
    "a hook without training": (
        lambda: tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 1).make_session_run_hook(True).begin(),
        "apply_gradient should be called before using the hook",
    ),
}


@pytest.mark.parametrize(("make", "said"), WHILE_BUILDING.values(), ids=WHILE_BUILDING)
def test_errors_while_building(make, said):
    with pytest.raises((ValueError, RuntimeError), match=said):
        make()


WHILE_RUNNING = {
    "a part of a scalar": (lambda: unknown(0)[:], "out of range"),
    "scalar labels": (lambda: XENT(labels=unknown(0), logits=[[7.0]]), r"labels must be 1-D, but got shape \[\]"),
    "reduce_join twice": (lambda: tf.reduce_join(unknown([[""]]), [-1, 1]), "Duplicate reduction dimension 1"),
    "regex_replace": (lambda: tf.regex_replace(["a"], "A[", "x"), "Invalid pattern"),
    "decode_bmp of too little": (
        lambda: tf.image.decode_bmp(b"BM".ljust(30, b"\0")),
        "Incomplete bmp content, requires at least 32 bytes to find the header .* got 30 bytes",
    ),
    "softmax of a scalar": (lambda: tf.nn.softmax(unknown(1.0)), "Shape must be at least rank 1 but is rank 0"),
    "depth_to_space of a vector": (
        lambda: tf.depth_to_space(unknown([1.0]), 2),
        "Shape must be rank 4 but is rank 1",
    ),
    "multinomial of a vector": (lambda: tf.multinomial(unknown([1.0]), 1), "Shape must be rank 2 but is rank 1"),
    "matrix_band_part of a vector": (lambda: tf.matrix_band_part(unknown([1.0]), 0, 0), "input must be at least 2-dim"),
    "cross entropy of other classes": (
        lambda: tf.nn.softmax_cross_entropy_with_logits_v2(labels=unknown([[1.0]]), logits=unknown([[1.0, 2.0]] * 2)),
        "must be equal, but are",
    ),
    "add": (lambda: unknown([1.0, 2.0]) + unknown([1.0, 2.0, 3.0]), r"Incompatible shapes: \[2\] vs. \[3\]"),
    "minimum": (lambda: tf.minimum(unknown(np.ones((2, 3))), unknown(np.ones(4))), r"shapes: \[2, 3\] vs. \[4\]"),
    "concat of other ranks": (
        lambda: tf.concat([unknown([1]), unknown([[1]])], 0),
        r"Ranks of all input tensors should match: shape\[0\] = \[1\] vs. shape\[1\] = \[1,1\]",
    ),
    "concat of other sizes": (
        lambda: tf.concat([unknown([[1, 2]]), unknown([[1]])], 0),
        "Dimensions of inputs should match",
    ),
    "stack": (lambda: tf.stack([unknown([1]), unknown(1)]), "Shapes of all inputs must match"),
    "split": (lambda: tf.split(unknown([1, 2, 3]), 2), "should evenly divide the split dimension"),
    "squeeze": (lambda: tf.squeeze(unknown([1, 2]), [0]), r"Can not squeeze dim\[0\], expected a dimension of 1"),
    "expand_dims": (
        lambda: tf.expand_dims(unknown([1]), unknown(5)),
        "Tried to expand dim index 5 for tensor with 1 dimensions",
    ),
    "invert_permutation": (lambda: tf.invert_permutation(unknown([0, 0])), "is duplicated in the input"),
    "tile by too many": (
        lambda: tf.tile(unknown([1]), unknown([1, 2])),
        "Expected multiples argument to be a vector of length 1 but got length 2",
    ),
    "pad": (lambda: tf.pad(unknown([1]), unknown([[1, -1]])), "Paddings must be non-negative"),
    "slice": (
        lambda: tf.slice(unknown([1, 2]), unknown([1]), unknown([5])),
        r"Expected size\[0\] in \[0, 1\], but got 5",
    ),
    "slice from": (lambda: tf.slice(unknown([1, 2]), [3], [1]), r"Expected begin\[0\] in \[0, 2\], but got 3"),
    "a label": (
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=unknown([5]), logits=unknown([[1.0, 2.0]])),
        r"Received a label value of 5 which is outside the valid range of \[0, 2\)",
    ),
    "bias_add": (
        lambda: tf.nn.bias_add(unknown([[1.0, 2.0]]), unknown([1.0])),
        "Must provide as many biases as the last dimension of the input tensor",
    ),
    "decode_raw": (
        lambda: tf.decode_raw(unknown(b"abc"), tf.int32),
        "Input to DecodeRaw has length 3 that is not a multiple of 4, the size of int32",
    ),
    "decode_raw of several lengths": (
        lambda: tf.decode_raw(unknown([b"longer", b"short"]), tf.uint8),
        "DecodeRaw requires input strings to all be the same size, but element 1 has size 6 != 5",
    ),
    "reverse_sequence along the batch": (
        lambda: tf.reverse_sequence(unknown([[1, 2], [3, 4]]), unknown([2, 2]), seq_axis=0),
        "batch_dim == seq_dim == 0",
    ),
    "range": (lambda: tf.range(unknown(0), unknown(5), unknown(0)), "Requires delta != 0"),
    "matrix_diag of a scalar": (lambda: tf.matrix_diag(unknown(0.0)), "must be at least 1-dim"),
    "matrix_diag_part of a scalar": (lambda: tf.matrix_diag_part(unknown(0.0)), "input must be at least 2-dim"),
    "ensure_shape": (
        lambda: tf.ensure_shape(unknown([5]), [None, None, 3]),
        r"Shape of tensor .* \[1\] is not compatible with expected shape \[\?,\?,3\]",
    ),
    "assert_rank_in": (lambda: tf.assert_rank_in(unknown(0.0), (1, unknown(2))), "must have rank in"),
    "sparse_to_dense of a matrix": (
        lambda: tf.sparse_to_dense([1, 3], [5], [[5], [3]]),
        r"sparse_values has incorrect shape \[2,1\], should be \[\] or \[2\]",
    ),
    "sparse_to_dense with a vector": (
        lambda: tf.sparse_to_dense([1, 3], [5], [1, 2], [0]),
        "default_value should be a scalar",
    ),
    "roll of a scalar": (lambda: tf.roll(unknown(7), unknown(1), unknown(0)), "input must be 1-D or higher"),
    "roll along a matrix": (
        lambda: tf.roll(unknown([[1]]), unknown(1), unknown([[0, 1]])),
        "axis must be a scalar or a 1-D vector",
    ),
    "roll by a matrix": (
        lambda: tf.roll(unknown([[1]]), unknown([[0, 1]]), unknown(1)),
        "shift must be a scalar or a 1-D vector",
    ),
    "roll by a vector": (
        lambda: tf.roll(unknown([[1]]), unknown([1]), unknown([0, 1])),
        "shift and axis must have the same size",
    ),
    "roll out of range": (lambda: tf.roll(unknown([1]), unknown(1), unknown(1)), "is out of range"),
    "sparse_add": (
        lambda: tf.sparse_add(tf.SparseTensor([[0, 0], [0, 3]], [1.0, 2.0], [2, 2]), tf.ones([2, 2])),
        "invalid index on dimension 1",
    ),
    "tile": (lambda: tf.tile([1], unknown([-1])), r"Expected multiples\[0\] >= 0, but got -1"),
    "histogram of NaN": (
        lambda: tf.summary.histogram("w", [1.0, np.nan]),
        "Nan in summary histogram for: w",
    ),
    "histogram of infinity": (lambda: tf.summary.histogram("w", [1.0, np.inf]), "Infinity in summary histogram for: w"),
    "scatter_nd into nothing": (
        lambda: tf.scatter_nd(unknown([[0]]), unknown([1.0]), unknown([0])),
        "Indices and updates specified for empty",
    ),
    "gather_nd": (
        lambda: tf.gather_nd([0, 1, 2], [[[0], [7]]]),
        r"indices\[0,1\] = \[7\] does not index into param shape \[3\]",
    ),
    "gather_nd of rows": (
        lambda: tf.gather_nd([[0, 1, 2]], [[[0], [0], [1]]]),
        r"indices\[0,2\] = \[1\] does not index into param shape \[1,3\]",
    ),
    "gather_nd from nothing": (
        lambda: tf.gather_nd(np.zeros([0, 3]), np.zeros([1, 2], np.int32)),
        r"Requested more than 0 entries, but params is empty.  Params shape: \[0,3\]",
    ),
    "scatter_nd of rows": (
        lambda: tf.scatter_nd([[5]], [[1.0, 2.0]], [4, 2]),
        r"indices\[0\] = \[5\] does not index into shape \[4,2\]",
    ),
    "batch_jacobian of other examples": (
        lambda: batch_jacobian(tf.concat([x := unknown([[1.0, 2.0]]), x], 0), x),
        "assertion failed",
    ),
    "unsorted_segment_sum": (
        lambda: tf.unsorted_segment_sum([[17]], [[7]], 2),
        r"segment_ids\[0,0\] = 7 is out of range \[0, 2\)",
    ),
    "num_segments of -1": (
        lambda: tf.unsorted_segment_sum(np.zeros([0, 1]), np.zeros([0], np.int32), unknown(-1)),
        "num_segments == -1 must not be negative",
    ),
    "substr": (lambda: tf.strings.substr("Hello", 7, 1), "pos 7 out of range for string"),
    "a table without contents": (
        lambda: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1).lookup(tf.constant("a")),
        "Table not initialized",
    ),
    "write to a negative index": (
        lambda: array().write(-1, 3.0).flow,
        "Tried to write to index -1 but array is not resizeable and size is: 3",
    ),
    "write twice": (
        lambda: array().write(2, 3.0).write(2, 3.0).flow,
        "Could not write to TensorArray index 2 because it has already been written to",
    ),
    "read behind the end": (lambda: array().read(3), "Tried to read from index 3 but array size is: 3"),
    "read of nothing": (
        lambda: array().write(0, 3.0).read(1),
        "Could not read from TensorArray index 1 because it has not yet been written to",
    ),
    "concat of scalars": (
        lambda: array(1).write(0, 3.0).concat(),
        "Concat saw a scalar shape at index 0 but requires at least vectors",
    ),
    "concat of a vector and a matrix": (
        lambda: array(2).write(0, [3.0]).write(1, [[3.0]]).concat(),
        r"inconsistent shapes. Index 0 has \(excepting dimension 0\) shape: \[\] but index 1 .* shape: \[1\]",
    ),
    "split by a number": (
        lambda: array().split([1.0], unknown(1)).flow,
        r"Expected lengths to be a vector, received shape: \[\]",
    ),
    "split into other sizes": (
        lambda: array().split([1.0, 2.0, 3.0], [1]).flow,
        r"sum of lengths is 1 and value's shape is: \[3\]",
    ),
    "split into too few": (
        lambda: array(2).split([1.0], [1]).flow,
        r"TensorArray's size is not equal to the size of lengths \(2 vs. 1\), and the TensorArray is not marked as",
    ),
    "concat": (
        lambda: tf.concat([unknown([[1], [2], [3]]), unknown([[1], [2]])], 1),
        r"Dimensions of inputs should match: shape\[0\] = \[3,1\] vs. shape\[1\] = \[2,1\]",
    ),
    "split twice": (lambda: array(1).write(0, [1.0]).split([1.0], [1]).flow, "it has already been written to"),
}


UNCHECKED_ON_GPUS = [
    *("a label", "sparse_add", "gather_nd", "gather_nd of rows", "scatter_nd of rows", "unsorted_segment_sum"),
]
"""A step would wait for the device to look at these numbers."""


@pytest.mark.parametrize("case", WHILE_RUNNING)
def test_errors_while_running(case):
    make, said = WHILE_RUNNING[case]
    with tf.device("/cpu:0" if case in UNCHECKED_ON_GPUS else None):
        fetched = make()
    with tf.Session() as session, pytest.raises(tf.errors.OpError, match=said):
        session.run(fetched)


PRINTED = [
    ({"summarize": 2}, "[[1 2...]...]"),
    ({"summarize": 3}, "[[1 2 3]...]"),
    ({"summarize": 4}, "[[1 2 3][4...]...]"),
    ({"summarize": -1}, "[[1 2 3][4 5 6]]"),
    ({}, "[[1 2 3]...]"),
]


@pytest.mark.parametrize(("settings", "shown"), PRINTED)
def test_what_print_shows(capfd, settings, shown):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    data = [x, "a", tf.constant(["x", "y"]), tf.constant(True), tf.zeros([2, 0])]
    with tf.Session() as session:
        session.run(tf.Print(x, data, "M", **settings))
    assert f"M{shown}[a][x y][1][]\n" in capfd.readouterr().err  # as TensorFlow 2.21 prints them
