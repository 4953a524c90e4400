"""Examples, lines and bytes that are parsed. Expected values are what TensorFlow 2.21 gave for the same."""

from __future__ import annotations

import gzip
import zlib

import numpy as np

from tests.support.op_samples import OpError, OpSample
from tfray.formats.example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from tfray.framework import dtypes
from tfray.ops.strings import decoding_ops, parsing_ops
from tfray.ops.strings.parsing_ops import FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature


def strings(*items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


def text(item):
    return np.array(item, object)


def ints(*values):
    return Feature(int64_list=Int64List(value=values))


def floats(*values):
    return Feature(float_list=FloatList(value=values))


def words(*values):
    return Feature(bytes_list=BytesList(value=values))


def example(**features):
    return Example(features=Features(feature=features)).SerializeToString()


def sequence(steps):
    lists = {
        "t": FeatureList(feature=[ints(i, i + 1) for i in range(steps)]),
        "s": FeatureList(feature=[words(*[b"w%d" % j for j in range(i)]) for i in range(steps)]),
    }
    context = Features(feature={"len": ints(steps), "k": floats(*range(steps))})
    return SequenceExample(context=context, feature_lists=FeatureLists(feature_list=lists)).SerializeToString()


EXAMPLES = strings(
    example(a=ints(1, 2), i=ints(3, 1), v=floats(0.5, 0.25), s=words(b"x", b"y"), seq=floats(1, 2, 3, 4)),
    example(a=ints(3, 4), i=ints(), v=floats(), seq=floats(5, 6)),
    example(a=ints(5, 6)),
)
FEATURES = {
    "a": FixedLenFeature([2], dtypes.int64),
    "d": FixedLenFeature([2, 1], dtypes.float32, [[1.0], [2.0]]),
    "s": VarLenFeature(dtypes.string),
    "seq": FixedLenSequenceFeature([2], dtypes.float32, True, -1.0),
}
SPARSE = {"sp": SparseFeature("i", "v", dtypes.float32, 5)}
CONTEXT = {"len": FixedLenFeature([], dtypes.int64), "k": VarLenFeature(dtypes.float32)}
LISTS = {"t": FixedLenSequenceFeature([2], dtypes.int64), "s": VarLenFeature(dtypes.string)}


def flat(*results):
    """The tensors of parsed features, in the order of their names."""
    tensors = []
    for result in results:
        for key in sorted(result):
            value = result[key]
            tensors += [value.indices, value.values, value.dense_shape] if hasattr(value, "dense_shape") else [value]
    return tensors


SAMPLES = [
    OpSample(
        "ParseExample",
        lambda serialized: flat(parsing_ops.parse_example(serialized, FEATURES)),
        [EXAMPLES],
        lambda serialized: [
            [[1, 2], [3, 4], [5, 6]],
            [[[1.0], [2.0]]] * 3,
            [[0, 0], [0, 1]],
            strings(b"x", b"y"),
            [3, 2],
            [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [-1.0, -1.0]], [[-1.0, -1.0], [-1.0, -1.0]]],
        ],
        data_dependent=True,
    ),
    OpSample(
        "ParseSingleExample",
        lambda serialized: flat(parsing_ops.parse_single_example(serialized, FEATURES)),
        [text(EXAMPLES[0])],
        lambda serialized: [
            [1, 2],
            [[1.0], [2.0]],
            [[0], [1]],
            strings(b"x", b"y"),
            [2],
            [[1.0, 2.0], [3.0, 4.0]],
        ],
        data_dependent=True,
    ),
    OpSample(
        "MergeSparseFeature",
        lambda serialized: flat(parsing_ops.parse_example(serialized, SPARSE)),
        [EXAMPLES],
        lambda serialized: [[[0, 1], [0, 3]], [0.25, 0.5], [3, 5]],
        data_dependent=True,
    ),
    OpSample(
        "ParseSingleSequenceExample",
        lambda serialized: flat(*parsing_ops.parse_single_sequence_example(serialized, CONTEXT, LISTS)),
        [text(sequence(3))],
        lambda serialized: [
            [[0], [1], [2]],
            [0.0, 1.0, 2.0],
            [3],
            3,
            [[1, 0], [2, 0], [2, 1]],
            strings(b"w0", b"w0", b"w1"),
            [3, 2],
            [[0, 1], [1, 2], [2, 3]],
        ],
        data_dependent=True,
    ),
    OpSample(
        "ParseSequenceExample",
        lambda serialized: flat(*parsing_ops.parse_sequence_example(serialized, CONTEXT, LISTS)),
        [strings(sequence(3), sequence(1))],
        lambda serialized: [
            [[0, 0], [0, 1], [0, 2], [1, 0]],
            [0.0, 1.0, 2.0, 0.0],
            [2, 3],
            [3, 1],
            [[0, 1, 0], [0, 2, 0], [0, 2, 1]],
            strings(b"w0", b"w0", b"w1"),
            [2, 3, 2],
            [[[0, 1], [1, 2], [2, 3]], [[0, 1], [0, 0], [0, 0]]],
            [3, 1],
        ],
        data_dependent=True,
    ),
    *[
        OpSample("DecodeRaw", decoding_ops.decode_raw, [given], lambda _, e=expected: e, options, data_dependent=True)
        for given, options, expected in [
            (strings(b"\1\2\3\4", b"\0\0\0\1"), {"out_type": dtypes.int16}, np.int16([[513, 1027], [0, 256]])),
            (strings(b"\1\2\3\4"), {"out_type": dtypes.int16, "little_endian": False}, np.int16([[258, 772]])),
            (text(b"abc"), {"out_type": dtypes.uint8}, np.uint8([97, 98, 99])),
            (text(b""), {"out_type": dtypes.float32}, np.float32([])),
            (strings(), {"out_type": dtypes.float32}, np.empty((0, 0), np.float32)),
        ]
    ],
    *[
        OpSample(
            "DecodeCSV",
            lambda records, d=defaults, o=options: decoding_ops.decode_csv(records, d, **o),
            [strings(*lines)],
            lambda records, e=expected: e,
            label=str(index),
        )
        for index, (lines, defaults, options, expected) in enumerate(
            [
                (
                    [b"1,2.5,abc", b'3,,"x,""y"""'],
                    [[0], [7.0], ["z"]],
                    {},
                    [[1, 3], [2.5, 7.0], strings(b"abc", b'x,"y"')],
                ),
                ([b"NA;2"], [[5], [0]], {"field_delim": ";", "na_value": "NA"}, [[5], [2]]),
                ([b"1,2,3"], [[0.0], [""]], {"select_cols": [0, 2]}, [[1.0], strings(b"3")]),
                ([b" 1, 2", b'"3","-4"'], [[0], dtypes.float64], {}, [[1, 3], [2.0, -4.0]]),
                ([b'"a\nb",c'], [[""], [""]], {}, [strings(b"a\nb"), strings(b"c")]),
                ([b'a"b,c'], [[""], [""]], {"use_quote_delim": False}, [strings(b'a"b'), strings(b"c")]),
                ([b'""', b"a"], [["d"]], {}, [strings(b"d", b"a")]),
                ([b'"",', b"a,"], [["d"], ["e"]], {}, [strings(b"d", b"a"), strings(b"e", b"e")]),
                ([], [[1.0]], {}, [[]]),
            ]
        )
    ],
    *[
        OpSample(
            "DecodeCompressed",
            decoding_ops.decode_compressed,
            [strings(*map(compress, (b"", b"hello" * 9)))],
            lambda _: strings(b"", b"hello" * 9),
            {"compression_type": kind},
        )
        for kind, compress in [("", bytes), ("GZIP", gzip.compress), ("ZLIB", zlib.compress)]
    ],
    *[
        OpSample("SerializeTensor", decoding_ops.serialize_tensor, [given], lambda _, e=expected: text(e))
        for given, expected in [
            (
                np.int32([[1, 2], [3, 4]]),
                b"\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02\x22\x10"
                + b"".join(bytes([i, 0, 0, 0]) for i in (1, 2, 3, 4)),
            ),
            (strings(b"a", b"bc"), bytes.fromhex("080712041202080242016142026263")),
            (np.int64(3), bytes.fromhex("0809120022080300000000000000")),
            (np.array([True, False]), bytes.fromhex("080a12041202080222020100")),
        ]
    ],
    *[
        OpSample(
            "ParseTensor",
            decoding_ops.parse_tensor,
            [text(bytes.fromhex(given))],
            lambda _, e=expected: e,
            {"out_type": dtypes.as_dtype(expected.dtype)},
            data_dependent=True,
            label=expected.dtype.name,
        )
        for given, expected in [
            ("080712041202080242016142026263", strings(b"a", b"bc")),
            ("0809120022080300000000000000", np.int64(3)),
            ("0801120412020803220c0000803f0000803f0000803f", np.float32([1, 1, 1])),
            ("0801120412020803" + "2a040000803f", np.float32([1, 1, 1])),
            ("08131204120208026a0380f001", np.float16([32768, 32768])),
            ("08081204120208014a080000803f00000040", np.complex64([1 + 2j])),
            ("08041204120208033a02c801", np.uint8([200, 200, 200])),
            ("080a1204120208035a020100", np.array([True, False, False])),
            ("0803120412020802", np.int32([0, 0])),
        ]
    ],
]

ERRORS = (
    [
        OpError(
            "ParseExample",
            lambda serialized, f=features: list(parsing_ops.parse_example(serialized, f).values()),
            [given],
            match,
            at_run=True,
        )
        for given, features, match in [
            (strings(b"\x0a\xff"), {"a": FixedLenFeature([2], dtypes.int64)}, "example 0 is malformed"),
            (
                EXAMPLES,
                {"b": FixedLenFeature([], dtypes.int64)},
                r"Feature: b \(data type: int64\) is required but could not be found",
            ),
            (
                EXAMPLES,
                {"a": FixedLenFeature([], dtypes.int64)},
                r"Key: a, Index: 0.  Number of int64 values != expected.  Values size: 2 but output shape: \[\]",
            ),
            (
                EXAMPLES,
                {"a": FixedLenFeature([2], dtypes.float32)},
                "Key: a.  Data types don't match. Data type: int64 but expected type: float",
            ),
            (
                EXAMPLES,
                {"a": FixedLenSequenceFeature([3], dtypes.int64, True)},
                r"not a multiple of stride length\. Saw 2 values but output shape is: \[\?,3\]",
            ),
        ]
    ]
    + [
        OpError(
            "MergeSparseFeature",
            lambda s, f=features: flat(parsing_ops.parse_example(s, f)),
            [EXAMPLES],
            match,
            at_run=True,
        )
        for features, match in [
            ({"sp": SparseFeature("a", "v", dtypes.float32, 3)}, "other numbers of positions"),
        ]
    ]
    + [
        OpError(
            "ParseSingleSequenceExample",
            lambda s, f=lists: flat(*parsing_ops.parse_single_sequence_example(s, {}, f)),
            [text(sequence(2))],
            match,
            at_run=True,
        )
        for lists, match in [
            ({"q": FixedLenSequenceFeature([2], dtypes.int64)}, "Feature list 'q' is required but could not be found"),
            (
                {"t": FixedLenSequenceFeature([3], dtypes.int64)},
                r"Feature list: t, Index: 0\.  Number of int64 values != expected",
            ),
        ]
    ]
    + [
        OpError("DecodeCSV", lambda r, d=defaults: decoding_ops.decode_csv(r, d), [strings(line)], match, at_run=True)
        for line, defaults, match in [
            (b"1,2", [[0], [0], [0]], "Expect 3 fields but have 2 in record 0"),
            (b",2", [dtypes.int32, [0]], "Field 0 is required but missing in record 0!"),
            (b"x", [[0]], "b'x' is not an int32"),
            (b"99999999999", [[0]], "is not an int32"),
            (b"1_0", [[0.0]], "is not a float32"),
            (b'"a', [[""]], "has to end with quote"),
            (b'"a" ,b', [[""], [""]], "Quote inside a string has to be escaped"),
            (b'a"b,c', [[""], [""]], "Unquoted fields cannot have quotes/CRLFs"),
            (b"a\nb", [[""]], "quotes/CRLFs inside"),
        ]
    ]
    + [
        OpError("DecodeRaw", lambda s: decoding_ops.decode_raw(s, dtypes.int32), [given], match, at_run=True)
        for given, match in [
            (strings(b"abc"), "length 3 that is not a multiple of 4"),
            (strings(b"ab", b"a"), "element 1 has size 2 != 1"),
        ]
    ]
    + [
        OpError(
            "DecodeCompressed",
            lambda s, k=kind: decoding_ops.decode_compressed(s, k),
            [strings(b"abc")],
            "decompress",
            True,
        )
        for kind in ("GZIP", "ZLIB")
    ]
    + [
        OpError(
            "DecodeCompressed", lambda s: decoding_ops.decode_compressed(s, "LZ"), [strings(b"")], "compression_type"
        ),
        OpError(
            "ParseTensor",
            lambda s: decoding_ops.parse_tensor(s, dtypes.int32),
            [text(b"\xff")],
            "not a serialised",
            True,
        ),
        *[
            OpError("ParseTensor", lambda s: decoding_ops.parse_tensor(s, dtypes.int32), [strings(b"")], match, at_run)
            for match, at_run in [("rank 0", False), ("expected a scalar", True)]
        ],
        OpError(
            "ParseTensor",
            lambda s: decoding_ops.parse_tensor(s, dtypes.int32),
            [text(bytes.fromhex("0809120022080300000000000000"))],
            "is int64, expected int32",
            True,
        ),
    ]
)

TESTED_ELSEWHERE = {
    "DecodeCSVOfFile": "lines of files, which `CsvDataset` reads: tests/library/input/test_data_experimental.py"
}
