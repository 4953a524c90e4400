"""Random numbers, texts, records and sparse tensors."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from graph_cases.declaring import FED, case, given, parts_of, sparse, weights

raw = tf.raw_ops
linalg, signal, image = tf.linalg, tf.signal, tf.image


# -- random numbers ------------------------------------------------------------------------------------


@case()
def random_numbers() -> list[Any]:
    n, seed = tf.placeholder_with_default(20000, [], name="n"), tf.placeholder_with_default([3, 7], [2], name="seed")

    def near(values: Any, mean: float, deviation: float) -> list[Any]:
        found, spread = tf.nn.moments(tf.cast(values, tf.float64), [0])
        close = [tf.abs(found - mean) < 0.05 * deviation, tf.abs(tf.sqrt(spread) - deviation) < 0.05 * deviation]
        return [*close, tf.shape(values)]

    found = near(tf.random_uniform([n]), 0.5, 12**-0.5) + near(tf.random_normal([n], 2.0, 3.0), 2.0, 3.0)
    found += near(tf.truncated_normal([n]), 0.0, 0.8796) + near(tf.random_uniform([n], 0, 10, tf.int32), 4.5, 2.872)
    found += near(tf.random_gamma([n], 3.0, 2.0), 1.5, 0.75**0.5) + near(tf.random_poisson(4.0, [n]), 4.0, 2.0)
    found += near(tf.multinomial([[0.0, 0.0]], n)[0], 0.5, 0.5) + near(tf.random_shuffle(tf.range(n)), 9999.5, 5773.5)
    found += near(
        raw.ParameterizedTruncatedNormal(shape=[1, n], means=[1.0], stdevs=[1.0], minvals=[-9.0], maxvals=[9.0])[0],
        1.0,
        1.0,
    )
    found += near(tf.random.stateless_uniform([n], seed), 0.5, 12**-0.5) + near(
        raw.StatelessRandomUniform(shape=[n], seed=seed), 0.5, 12**-0.5
    )
    found += near(tf.random.stateless_normal([n], seed), 0.0, 1.0) + near(
        raw.StatelessRandomNormal(shape=[n], seed=seed), 0.0, 1.0
    )
    found += near(tf.random.stateless_truncated_normal([n], seed), 0.0, 0.8796) + near(
        raw.StatelessTruncatedNormal(shape=[n], seed=seed), 0.0, 0.8796
    )
    found += near(tf.random.stateless_uniform([n], seed, 0, 10, tf.int32), 4.5, 2.872) + near(
        raw.StatelessRandomUniformInt(shape=[n], seed=seed, minval=-5, maxval=5), -0.5, 2.872
    )
    found += near(tf.random.stateless_categorical([[0.0, 0.0]], n, seed)[0], 0.5, 0.5)
    again = [tf.random.stateless_normal([5], seed) for _ in range(2)]
    found.append(tf.reduce_all(tf.equal(*again)))
    return [
        *found,
        tf.sort(tf.random_shuffle(tf.range(5))),
        tf.shape(tf.random_crop(tf.zeros([5, 5]), [2, 3])),
        tf.shape(tf.nn.dropout(tf.ones([4, 4]), rate=0.5)),
    ]


@case()
def candidates() -> list[Any]:
    classes = tf.constant([[1], [4]], tf.int64)
    found = []
    for sampler in (
        tf.random.log_uniform_candidate_sampler,
        tf.random.uniform_candidate_sampler,
        tf.random.learned_unigram_candidate_sampler,
    ):
        chosen, wanted, expected = sampler(classes, 1, 20, False, 20)
        found += [tf.shape(chosen), wanted, tf.shape(expected)]
    chosen, wanted, expected = tf.random.fixed_unigram_candidate_sampler(
        classes, 1, 5, True, 5, unigrams=[1.0, 2, 3, 4, 5]
    )
    found += [
        tf.sort(chosen),
        tf.shape(wanted),
        tf.shape(expected),
        tf.sort(tf.nn.all_candidate_sampler(classes, 1, 5, True)[0]),
    ]
    hits = tf.nn.compute_accidental_hits(classes, tf.constant([4, 2, 1], tf.int64), 1)
    x, kernel, bias = given(2, 3), weights(20, 3), weights(20, name="b")
    values = tf.constant([3, 9, 1, 4], tf.int64), tf.fill([2, 1], 0.2), tf.fill([4], 0.3)
    loss = [
        kind(kernel, bias, classes, x, 4, 20, sampled_values=values)
        for kind in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss)
    ]
    return [*found, *hits, *loss, *tf.gradients(loss, [x])]


# -- texts and records ---------------------------------------------------------------------------------


@case()
def more_strings() -> list[Any]:
    texts = tf.placeholder_with_default([b"Ab c", b"", b"d,e,f", "ä€".encode()], [None], name="texts")
    found = [
        tf.strings.lower(texts),
        tf.strings.format("{} of {}", [tf.constant(3), tf.constant([1.5, 2.0])]),
        tf.encode_base64(texts, True),
    ]
    found += [
        tf.decode_base64(tf.encode_base64(texts)),
        tf.string_to_hash_bucket_strong(texts, 10, [1, 2]),
        tf.string_to_hash_bucket(texts, 9),
    ]
    found += [
        tf.strings.unsorted_segment_join(texts, [0, 1, 0, 1], 2, "-"),
        tf.strings.regex_full_match(texts, "[a-z ,A-Z]+"),
        tf.strings.length(texts, unit="UTF8_CHAR"),
    ]
    found += [
        tf.strings.unicode_transcode(texts, "UTF-8", "UTF-16-BE"),
        tf.strings.unicode_script(tf.constant([97, 228, 945])),
        tf.strings.substr(texts, 0, 1, unit="UTF8_CHAR"),
    ]
    parts = tf.string_split(texts, ",")
    found += [
        *parts_of(parts),
        tf.strings.regex_replace(texts, "[a-z]", "<\\0>", False),
        tf.strings.join([texts, texts], "|"),
    ]
    found += [raw.StringUpper(input=texts), raw.Fingerprint(data=texts, method="farmhash64")]
    return [
        *found,
        tf.string_to_number(["1", "-7"], tf.int64),
        tf.as_string([1.25, 3.5], precision=2),
        tf.as_string([True]),
        tf.reduce_join(texts[None], [0, 1]),
    ]


def records() -> Any:
    """Serialized examples, fed."""
    made = []
    for index in range(3):
        feature = {
            "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(index))),
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=[index, 0.5])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % index])),
        }
        made.append(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True))
    FED["records:0"] = np.array(made, "S")
    return tf.placeholder(tf.string, [None], name="records")


FEATURES = {
    "ids": tf.VarLenFeature(tf.int64),
    "x": tf.FixedLenFeature([2], tf.float32),
    "name": tf.FixedLenFeature([], tf.string),
    "none": tf.FixedLenFeature([1], tf.int64, [7]),
    "few": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}


@case()
def examples() -> list[Any]:
    serialized = records()
    found = tf.parse_example(serialized, FEATURES)
    one = tf.parse_single_example(serialized[1], {key: FEATURES[key] for key in ("ids", "x", "name", "none")})
    results = [*parts_of(found.pop("ids")), *(found[key] for key in sorted(found))]
    return [*results, *parts_of(one.pop("ids")), *(one[key] for key in sorted(one))]


@case()
def old_examples() -> list[Any]:
    keys = {
        "names": [],
        "sparse_keys": ["ids"],
        "dense_keys": ["name", "x"],
        "dense_defaults": [tf.constant("?"), tf.zeros([0])],
    }
    types = {"sparse_types": [tf.int64], "dense_shapes": [[], [2]]}
    indices, values, shapes, dense = raw.ParseExample(serialized=records(), **keys, **types)
    return [*indices, *values, *shapes, *dense]


def sequence_record() -> Any:
    """A serialized example with sequences, fed."""
    lists = {
        "steps": tf.train.FeatureList(
            feature=[tf.train.Feature(float_list=tf.train.FloatList(value=[i, 1])) for i in range(3)]
        )
    }
    lists["tags"] = tf.train.FeatureList(
        feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=range(i))) for i in range(3)]
    )
    context = {"name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"first"]))}
    example = tf.train.SequenceExample(
        context=tf.train.Features(feature=context), feature_lists=tf.train.FeatureLists(feature_list=lists)
    )
    FED["records:0"] = np.array(example.SerializeToString(deterministic=True), "S")
    return tf.placeholder(tf.string, [], name="records")


@case()
def old_single_examples() -> list[Any]:
    keys = {"sparse_keys": ["ids"], "dense_keys": ["name", "x"], "num_sparse": 1}
    types = {"sparse_types": [tf.int64], "dense_shapes": [[], [2]], "dense_defaults": [tf.constant("?"), tf.zeros([0])]}
    indices, values, shapes, dense = raw.ParseSingleExample(serialized=records()[1], **keys, **types)
    return [*indices, *values, *shapes, *dense]


@case()
def old_sequences() -> list[Any]:
    serialized = sequence_record()
    kinds = {"context_sparse_types": [], "context_dense_shapes": [[]], "feature_list_dense_types": [tf.float32]}
    kinds |= {"feature_list_dense_shapes": [[2]], "feature_list_sparse_types": [tf.int64]}
    defaults = {"context_dense_defaults": [tf.constant("?")]}
    context = {"context_sparse_keys": [], "context_dense_keys": ["name"]}
    lists = {"feature_list_sparse_keys": ["tags"], "feature_list_dense_keys": ["steps"]}
    counts = {"Ncontext_dense": 1, "Nfeature_list_dense": 1, "Nfeature_list_sparse": 1}
    one = raw.ParseSingleSequenceExample(
        serialized=serialized,
        feature_list_dense_missing_assumed_empty=tf.constant(["steps"]),
        debug_name="",
        **context,
        **lists,
        **defaults,
        **kinds,
    )
    many = raw.ParseSequenceExample(
        serialized=serialized[None],
        debug_name=tf.zeros([0], tf.string),
        feature_list_dense_missing_assumed_empty=[],
        **counts,
        **context,
        **lists,
        **defaults,
        **kinds,
    )
    return [tensor for each in (*one, *many) for tensor in each]


@case()
def sequences() -> list[Any]:
    serialized = sequence_record()
    features = {"steps": tf.FixedLenSequenceFeature([2], tf.float32), "tags": tf.VarLenFeature(tf.int64)}
    outer = {"name": tf.FixedLenFeature([], tf.string)}
    one, many = tf.parse_single_sequence_example(serialized, outer, features)
    all_one, all_many, lengths = tf.io.parse_sequence_example(serialized[None], outer, features)
    found = [
        one["name"],
        many["steps"],
        *parts_of(many["tags"]),
        all_one["name"],
        all_many["steps"],
        *parts_of(all_many["tags"]),
    ]
    return [*found, lengths["steps"]]


@case()
def decoding() -> list[Any]:
    lines = tf.placeholder_with_default([b"1,2.5,a b", b',7,"x,y"'], [None], name="lines")
    found = [
        *tf.decode_csv(lines, [[9], [0.0], ["?"]]),
        *tf.decode_csv(lines, [[9], ["?"]], select_cols=[0, 2]),
        tf.decode_raw(["abcdefgh", "01234567"], tf.int32),
    ]
    found += [
        tf.decode_raw(["ab"], tf.uint16, little_endian=False),
        tf.parse_tensor(tf.serialize_tensor([1.5, 2.0]), tf.float32),
        tf.serialize_tensor([1, 2]),
    ]
    matrix = sparse([[0, 1], [2, 0]], [1.0, 2.0], [3, 3])
    many = tf.serialize_many_sparse(matrix)
    found += [
        tf.serialize_sparse(matrix),
        many,
        *parts_of(tf.deserialize_many_sparse(many, tf.float32)),
        *raw.DeserializeSparse(serialized_sparse=tf.serialize_sparse(matrix), dtype=tf.float32),
    ]
    packed = zlib.compress(b"abcabc")
    found += [
        tf.io.decode_compressed([packed], "ZLIB"),
        tf.io.decode_raw(tf.io.decode_compressed([packed], "ZLIB"), tf.uint8),
    ]
    example = tf.decode_json_example('{"features": {"feature": {"a": {"int64List": {"value": ["3"]}}}}}')
    return [*found, tf.parse_single_example(example, {"a": tf.FixedLenFeature([1], tf.int64)})["a"]]


@case()
def summaries() -> list[Any]:
    x = given(4, 5)
    found = [tf.summary.scalar("mean", x[0, 0]), tf.summary.histogram("x", x), tf.summary.tensor_summary("t", x[0])]
    found += [
        tf.summary.merge(found[:2]),
        tf.summary.audio("a", x[..., None], 8000),
        tf.summary.text("w", tf.constant("text")),
    ]
    return found


# -- sparse tensors ------------------------------------------------------------------------------------


@case()
def sparse_layouts() -> list[Any]:
    a = sparse([[0, 1], [1, 0], [2, 3]], [1.0, 2.0, 3.0], [4, 4])
    b = sparse([[0, 1], [3, 3]], [5.0, 7.0], [4, 4])
    found = [
        tf.sparse_reshape(a, [2, 8]),
        tf.sparse_concat(0, [a, b]),
        tf.sparse_concat(1, [a, b]),
        *tf.sparse_split(sp_input=a, num_split=2, axis=1),
    ]
    found += [
        tf.sparse_slice(a, [0, 0], [2, 2]),
        tf.sparse_fill_empty_rows(a, -1.0)[0],
        tf.sparse_add(a, b),
        tf.sparse_transpose(a),
        tf.sparse_retain(a, [True, False, True]),
    ]
    found += [
        tf.sparse_minimum(a, b),
        tf.sparse_maximum(a, b),
        tf.sparse_softmax(a),
        tf.sparse_reorder(a),
        tf.sparse.expand_dims(a, 0),
        a * tf.constant([[2.0] * 4]),
    ]
    found += [
        tf.sparse_reset_shape(a, [5, 5]),
        tf.sparse_reduce_sum_sparse(a, 1),
        tf.sparse.cross([sparse([[0, 0], [1, 0]], ["a", "b"], [2, 1]), sparse([[0, 0], [1, 0]], ["c", "d"], [2, 1])]),
    ]
    found += [
        tf.sparse.cross_hashed([sparse([[0, 0], [1, 0]], ["a", "b"], [2, 1]), tf.constant([["c"], ["d"]])], 100),
        tf.sparse.from_dense([[1, 0], [0, 3]]),
    ]
    dense = [
        tf.sparse_reduce_sum(a, 1),
        tf.sparse_reduce_max(a, 0),
        tf.sparse_tensor_to_dense(b, -1.0),
        tf.sparse_add(a, tf.ones([4, 4])),
        tf.sparse_to_indicator(sparse([[0, 0], [1, 0]], [1, 3], [2, 1]), 5),
    ]
    dense += [
        tf.sparse_fill_empty_rows(a, -1.0)[1],
        tf.sparse_tensor_dense_matmul(a, tf.eye(4)),
        tf.sparse_matmul(tf.eye(3), tf.ones([3, 2]), a_is_sparse=True),
        tf.sparse.reduce_sum(a),
    ]
    return [*(tensor for each in found for tensor in parts_of(each)), *dense]


@case()
def gradients_of_sparse() -> list[Any]:
    x, y = given(3, 4), given(3, 4, name="y")
    a = tf.SparseTensor([[0, 1], [1, 0], [2, 3]], x[:, 0], [4, 4])
    b = tf.SparseTensor([[0, 1], [3, 3]], y[:2, 1], [4, 4])
    total = tf.reduce_sum(tf.sparse_tensor_dense_matmul(a, tf.ones([4, 2]) * y[0, 0]) ** 2) + tf.reduce_sum(
        tf.sparse_reduce_sum(a, 1) ** 2
    )
    total += (
        tf.reduce_sum(tf.sparse_softmax(a).values ** 2)
        + tf.reduce_sum(tf.sparse_add(a, b).values ** 2)
        + tf.reduce_sum(tf.sparse_fill_empty_rows(a, -1.0)[0].values ** 2)
    )
    total += (
        tf.reduce_sum((a * y[:1]).values ** 2)
        + tf.reduce_sum(tf.sparse_tensor_to_dense(a) ** 3)
        + tf.reduce_sum(tf.sparse_concat(0, [a, b]).values ** 2)
    )
    total += tf.reduce_sum(tf.sparse_matmul(x, y, transpose_b=True) ** 2) + tf.reduce_sum(
        tf.sparse_slice(a, [0, 0], [2, 2]).values ** 2
    )
    return tf.gradients(total, [x, y])


@case()
def sets() -> list[Any]:
    a, b = tf.constant([[1, 2, 3], [4, 4, 5]]), tf.constant([[2, 3, 9], [5, 6, 7]])
    s = sparse([[0, 0], [0, 1], [1, 0]], [3, 2, 5], [2, 2])
    found = [
        tf.sets.set_intersection(a, b),
        tf.sets.set_union(a, b),
        tf.sets.set_difference(a, b),
        tf.sets.set_difference(a, b, False),
        tf.sets.set_intersection(a, s),
        tf.sets.set_union(s, s),
    ]
    return [*(tensor for each in found for tensor in parts_of(each)), tf.sets.set_size(s)]


@case()
def speech() -> list[Any]:
    x = given(6, 2, 5)
    labels = sparse([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
    lengths = tf.constant([6, 5])
    loss = tf.nn.ctc_loss(labels, x, lengths)
    greedy, likely = tf.nn.ctc_greedy_decoder(x, lengths)
    beams, scores = tf.nn.ctc_beam_search_decoder(x, lengths, beam_width=5, top_paths=2, merge_repeated=False)
    dense = tf.nn.ctc_loss_v2(tf.constant([[1, 2], [3, 0]]), x, [2, 1], lengths, logits_time_major=True, blank_index=0)
    found = [
        loss,
        *parts_of(greedy[0]),
        likely,
        *(tensor for beam in beams for tensor in parts_of(beam)),
        scores,
        dense,
    ]
    return [*found, *tf.gradients(loss, [x])]
