"""Operations on strings. Expected values are what TensorFlow 2.21 gave for the same."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.support.op_samples import OpError, OpSample
from tests.support.op_samples.parsing_samples import strings, text
from tfray.framework import dtypes
from tfray.framework.op_def import lookup
from tfray.ops.strings import string_number_ops, string_ops, string_split_ops, unicode_ops

I32 = np.int32


def matrix(*rows):
    return np.array(rows, object)


def given(op, build, inputs, expected, **options):
    """A row whose result is known."""
    if len(lookup(op).output_arguments) == 1:
        expected = np.asarray(expected)
    return OpSample(op, build, inputs, lambda *_: expected, **options)


def split_of(function):
    """A function that returns a sparse tensor, with a list for it."""

    def build(*tensors, **options):
        sparse = function(*tensors, **options)
        return [sparse.indices, sparse.values, sparse.dense_shape]

    return build


SPLIT, SPLIT_V2 = split_of(string_split_ops.string_split), split_of(string_split_ops.string_split_v2)
SQUARE = matrix([b"a", b"b"], [b"c", b"d"])
WORDS = strings(
    b"",
    b"a",
    b"hello",
    b"TensorFlow",
    b"the quick brown fox",
    b"the quick brown fox jumps over the lazy dog",
    b"x" * 65,
    b"y" * 200,
)
FAST = [
    1936946117179621455,
    3694432073954588131,
    3786372426573024488,
    4265654129848386254,
    3343755477575298353,
    3200379034145657811,
    323337772074164025,
    577833072005583796,
]
STRONG = [
    443797209252341627,
    546566331822570742,
    2957200328589801622,
    1016018213495009118,
    2203940929248275165,
    1922187928643153481,
    784056411441098232,
    674175070631711542,
]
OLD = [
    105434511174508091,
    2996632905371535868,
    1331861223480393034,
    4519201464338240520,
    376912252236906943,
    2241358848979525077,
    387508316990748746,
    4354273915233296679,
]

KNOWN_RANK = ("known", "unknown sizes")
FORMAT = string_ops.string_format
NGRAMS = matrix([b"a b", b"b c"], [b"d e", b"e f"])
TWO_ROWS = b"[[0 1 2 ... 7 8 9]\n [10 11 12 ... 17 18 19]]"

JOINING = [
    given(
        "StringJoin",
        lambda *parts: string_ops.string_join(list(parts), "-"),
        [text(b"a"), strings(b"b", b"c")],
        strings(b"a-b", b"a-c"),
        modes=("known", "unknown sizes"),
    ),
    given("StringJoin", lambda x: string_ops.string_join([x, x]), [text(b"a")], text(b"aa")),
    given("StringJoin", lambda: string_ops.string_join([]), [], text(b"")),
    given(
        "StringJoin",
        lambda *parts: string_ops.string_join(list(parts)),
        [SQUARE, SQUARE, text("ä".encode())],
        matrix(["aaä".encode(), "bbä".encode()], ["ccä".encode(), "ddä".encode()]),
        modes=("known", "unknown sizes"),
    ),
    *[
        given(
            "ReduceJoin",
            lambda x, *axis, o=options: string_split_ops.reduce_join(x, *axis, **o),
            [x, *axis],
            expected,
            sizes=[1] if axis else [],
            label=str(index),
        )
        for index, (x, axis, options, expected) in enumerate(
            [
                (SQUARE, [], {}, text(b"abcd")),
                (SQUARE, [I32([1, 0])], {}, text(b"abcd")),
                (SQUARE, [I32([0, 1])], {}, text(b"acbd")),
                (SQUARE, [I32(0)], {"separator": "."}, strings(b"a.c", b"b.d")),
                (SQUARE, [I32(-1)], {"keep_dims": True}, matrix([b"ab"], [b"cd"])),
                (SQUARE, [I32([])], {}, SQUARE),
                (np.empty((2, 0), object), [I32([1])], {}, strings(b"", b"")),
                (SQUARE, [], {"keepdims": True}, matrix([b"abcd"])),
            ]
        )
    ],
]

SPLITTING = [
    *[
        given("StringSplit", SPLIT, [source, delimiter], expected, kwargs=options, data_dependent=True)
        for source, delimiter, options, expected in [
            (
                strings(b"a b", b"c  d e", b""),
                text(b" "),
                {},
                [
                    [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]],
                    strings(b"a", b"b", b"c", b"d", b"e"),
                    [3, 3],
                ],
            ),
            (strings(b"a,b;c"), text(b",;"), {}, [[[0, 0], [0, 1], [0, 2]], strings(b"a", b"b", b"c"), [1, 3]]),
            (
                strings(b"abc", b"d"),
                text(b""),
                {},
                [[[0, 0], [0, 1], [0, 2], [1, 0]], strings(b"a", b"b", b"c", b"d"), [2, 3]],
            ),
            (
                strings(b"a,,b", b","),
                text(b","),
                {"skip_empty": False},
                [
                    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]],
                    strings(b"a", b"", b"b", b"", b""),
                    [2, 3],
                ],
            ),
            (strings(), text(b" "), {}, [np.empty((0, 2)), strings(), [0, 0]]),
            (
                strings(b"", b"a"),
                text(b","),
                {"skip_empty": False},
                [[[1, 0]], strings(b"a"), [2, 1]],
            ),
        ]
    ],
    given(
        "StringSplitV2",
        SPLIT_V2,
        [strings(b" a  b ", b"c")],
        [[[0, 0], [0, 1], [1, 0]], strings(b"a", b"b", b"c"), [2, 2]],
        modes=("known", "unknown sizes"),
        data_dependent=True,
    ),
    given(
        "StringSplitV2",
        lambda x: SPLIT_V2(x, "<>", 1),
        [strings(b"a<>b<>c")],
        [[[0, 0], [0, 1]], strings(b"a", b"b<>c"), [1, 2]],
        modes=("known", "unknown sizes"),
        data_dependent=True,
        label="limited",
    ),
    given(
        "StringSplitV2",
        SPLIT_V2,
        [matrix([b"a b"], [b"c"])],
        [[[0, 0, 0], [0, 0, 1], [1, 0, 0]], strings(b"a", b"b", b"c"), [2, 1, 2]],
        modes=("known", "unknown sizes"),
        data_dependent=True,
        label="matrix",
    ),
    given(
        "StringSplit",
        string_split_ops.string_bytes_split,
        [text(b"abc")],
        strings(b"a", b"b", b"c"),
        modes=("known", "unknown sizes"),
        data_dependent=True,
        label="bytes",
    ),
]

CHANGING = [
    given("StringStrip", string_ops.string_strip, [strings(b" a\t\n", b"\x0bb \x0c")], strings(b"a", b"b")),
    given("StringLower", string_ops.string_lower, [text("ÄB".encode())], text("Äb".encode())),
    given(
        "StringLower", string_ops.string_lower, [text("ÄB".encode())], text("äb".encode()), kwargs={"encoding": "utf-8"}
    ),
    *[
        given(op, function, [text(b"aB\xff")], text(expected), kwargs={"encoding": "utf-8"}, label="malformed")
        for op, function, expected in [
            ("StringUpper", string_ops.string_upper, "AB\ufffd".encode()),
            ("StringLower", string_ops.string_lower, "ab\ufffd".encode()),
        ]
    ],
    given("StringUpper", string_ops.string_upper, [text("äb".encode())], text("äB".encode())),
    given(
        "StringUpper",
        string_ops.string_upper,
        [SQUARE],
        matrix([b"A", b"B"], [b"C", b"D"]),
        kwargs={"encoding": "utf-8"},
    ),
    given("StringLength", string_ops.string_length, [strings("äb".encode(), b"")], [3, 0]),
    given("StringLength", string_ops.string_length, [text("äb".encode())], 2, kwargs={"unit": "UTF8_CHAR"}),
    *[
        given("Substr", string_ops.substr, [x, pos, count], expected, kwargs=options)
        for x, pos, count, options, expected in [
            (strings(b"hello", b"world"), I32(1), I32(3), {}, strings(b"ell", b"orl")),
            (text(b"hello"), I32(-3), I32(9), {}, text(b"llo")),
            (text(b"hello"), np.int64(5), np.int64(1), {}, text(b"")),
            (text(b"hello"), I32(1), I32(-1), {}, text(b"ello")),
            (text(b"hello"), I32([0, 1]), I32([1, 2]), {}, strings(b"h", b"el")),
            (
                matrix([b"ab", b"cd"], [b"ef", b"gh"]),
                I32([0, 1]),
                I32([1, 1]),
                {},
                matrix([b"a", b"d"], [b"e", b"h"]),
            ),
            (strings("äöü".encode()), I32(1), I32(1), {"unit": "UTF8_CHAR"}, strings("ö".encode())),
            (text(b"h\xff\xc3\xa9l"), I32(1), I32(2), {"unit": "UTF8_CHAR"}, text(b"\xff\xc3\xa9")),
            (text(b"h\xff\xc3\xa9l"), I32(-2), I32(1), {"unit": "UTF8_CHAR"}, text(b"\xc3\xa9")),
        ]
    ],
    *[
        given("RegexReplace", string_ops.regex_replace, [x, text(pattern), text(rewrite)], expected, kwargs=options)
        for x, pattern, rewrite, options, expected in [
            (strings(b"aab", b"b"), b"a+", rb"<\0>", {}, strings(b"<aa>b", b"b")),
            (text(b"a1b2"), b"([a-z])([0-9])", rb"\2\1", {}, text(b"1a2b")),
            (text(b"aaa"), b"a", b"b", {"replace_global": False}, text(b"baa")),
            (text(b"abc"), b"x*", b"-", {}, text(b"-a-b-c-")),
            (text("aä b".encode()), b"[[:alpha:]]", b"x", {}, text("xä x".encode())),
            (text(b"a\\b"), rb"\\", rb"\\\\", {}, text(rb"a\\b")),
            (text(b"a\xffb"), b"b", b"c", {}, text(b"a\xffc")),
            (text(b"abc"), b"b*", b"-", {}, text(b"-a-c-")),  # RE2 finds no empty match right behind another
            (text(b"abc"), b"(a)", rb"\2", {}, text(b"abc")),
            (text(b"ab"), b"a", rb"x\y", {}, text(b"xb")),
            (text(b"ab"), b"a", rb"x\y", {"replace_global": False}, text(b"ab")),
            # The rest is RE2's own syntax.
            (text("aé1".encode()), rb"\pL", b"x", {}, text(b"xx1")),
            (text(b"a B1"), rb"[\p{Lu}\pN]", b"x", {}, text(b"a xx")),
            (text(b"a B1"), rb"\P{^Lu}", b"x", {}, text(b"a x1")),
            (text(b"AB[:a"), rb"\x{41}|[[]|[^]A-Z\[a]", b"x", {}, text(b"xBxxa")),
            (text(b"a.bxb"), rb"\Qa.b\E", b"x", {}, text(b"xxb")),
            (text(b"(?=)"), b"[(?=]", b"x", {}, text(b"xxx)")),
        ]
    ],
    given("RegexFullMatch", string_ops.regex_full_match, [strings(b"abc", b"ab"), text(b"a.c")], [True, False]),
    given("RegexFullMatch", string_ops.regex_full_match, [text("aäb".encode()), text(b"a.b")], True),
    given("EncodeBase64", string_ops.encode_base64, [strings(b"hello?>", b"")], strings(b"aGVsbG8_Pg", b"")),
    given("EncodeBase64", string_ops.encode_base64, [text(b"hello?>")], text(b"aGVsbG8_Pg=="), kwargs={"pad": True}),
    given(
        "DecodeBase64", string_ops.decode_base64, [strings(b"aGVsbG8_Pg", b"aGVsbG8_Pg==")], strings(*[b"hello?>"] * 2)
    ),
    *[
        given("UnicodeTranscode", unicode_ops.unicode_transcode, [x], expected, kwargs=options, label=str(index))
        for index, (x, options, expected) in enumerate(
            [
                (
                    strings("ä".encode("latin-1"), b"a"),
                    {"input_encoding": "ISO-8859-1", "output_encoding": "UTF-8"},
                    strings("ä".encode(), b"a"),
                ),
                (
                    text(b"a\xffb"),
                    {"input_encoding": "UTF-8", "output_encoding": "UTF-8"},
                    text("a\ufffdb".encode()),
                ),
                (
                    text(b"a\xffb"),
                    {"input_encoding": "UTF-8", "output_encoding": "UTF-16-BE", "errors": "ignore"},
                    text(b"\0a\0b"),
                ),
                (
                    text(b"a\xff\x01"),
                    {
                        "input_encoding": "UTF-8",
                        "output_encoding": "UTF-8",
                        "replacement_char": 63,
                        "replace_control_characters": True,
                    },
                    text(b"a??"),
                ),
                *[
                    (
                        text(data),
                        {"input_encoding": encoding, "output_encoding": "UTF-8"},
                        text("aé".encode()),
                    )
                    for encoding in ("UTF-16", "UTF-32")
                    for data in ("aé".encode(encoding), "aé".encode(f"{encoding}-BE"))
                ],
                (
                    text("\ufffd\x7f".encode() + b"\xff\n"),
                    {
                        "input_encoding": "UTF-8",
                        "output_encoding": "UTF-8",
                        "replacement_char": 33,
                        "replace_control_characters": True,
                    },
                    text("\ufffd\x7f!!".encode()),
                ),
            ]
        )
    ],
]

NUMBERS = [
    *[
        given("AsString", string_number_ops.as_string, [x], strings(*expected), kwargs=options, label=str(index))
        for index, (x, options, expected) in enumerate(
            [
                (
                    np.float32([1.5, -2.25, 1e10, np.inf, np.nan]),
                    {},
                    [b"1.500000", b"-2.250000", b"10000000000.000000", b"inf", b"nan"],
                ),
                (np.float32([1.5]), {"precision": 2}, [b"1.50"]),
                (np.float32([1.5, 1e-7]), {"scientific": True}, [b"1.500000e+00", b"1.000000e-07"]),
                (np.float32([1.5, 1e-7, 123456789]), {"shortest": True}, [b"1.5", b"1e-07", b"1.23457e+08"]),
                (np.int8([3, -4]), {"width": 5}, [b"    3", b"   -4"]),
                (I32([3, -4]), {"width": 5, "fill": "0"}, [b"00003", b"-0004"]),
                (np.int64([3]), {"width": 5, "fill": "-"}, [b"3    "]),
                (np.float32([3.5]), {"width": 8, "precision": 2, "fill": "+"}, [b"   +3.50"]),
                (np.array([True, False]), {}, [b"true", b"false"]),
                (np.complex64([1 + 2j]), {"precision": 1}, [b"(1.0,2.0)"]),
                (np.float16([1.5]), {"precision": 3, "shortest": True}, [b"1.5"]),
                (np.array([1.5], dtypes.bfloat16.numpy), {"precision": 1}, [b"1.5"]),
                (strings(b"x"), {}, [b"x"]),
                (strings(b"abc", b"toolong"), {"width": 5}, [b"  abc", b"toolong"]),
                (strings(b"abc"), {"width": 5, "fill": "-", "precision": 2}, [b"ab   "]),
                (strings(b"abc"), {"width": 5, "fill": "0"}, [b"  abc"]),
            ]
        )
    ],
    *[
        given("StringToNumber", string_number_ops.string_to_number, [x], expected, kwargs=options)
        for x, options, expected in [
            (strings(b"1.5", b" -2 ", b"1e3", b"inf"), {}, np.float32([1.5, -2, 1000, np.inf])),
            (text(b"12"), {"out_type": dtypes.int64}, np.int64(12)),
            (strings(b"-7"), {"out_type": dtypes.int32}, I32([-7])),
            (strings(b"0.1"), {"out_type": dtypes.float64}, np.float64([0.1])),
            (strings(b"0xF", b" -0x1.8p1 ", b"NAN(abc)"), {}, np.float32([15, -3, np.nan])),
        ]
    ],
    given("StringToHashBucketFast", lambda x: string_number_ops.string_to_hash_bucket_fast(x, 2**62), [WORDS], FAST),
    given(  # by TensorFlow
        "Fingerprint",
        string_number_ops.fingerprint,
        [strings(b"a", b"bcd"), np.array(b"farmhash64", object)],
        np.uint8([[227, 117, 223, 182, 101, 66, 69, 179], [240, 104, 216, 35, 146, 188, 98, 198]]),
    ),
    given(
        "StringToHashBucketFast", lambda x: string_number_ops.string_to_hash_bucket_fast(x, 1), [SQUARE], [[0, 0]] * 2
    ),
    given(
        "StringToHashBucketStrong",
        lambda x: string_number_ops.string_to_hash_bucket_strong(x, 2**62, [1, 2]),
        [WORDS],
        STRONG,
    ),
    given("StringToHashBucket", lambda x: string_number_ops.string_to_hash_bucket(x, 2**62), [WORDS], OLD),
]

CHARACTERS = [
    *[
        given(
            "UnicodeDecodeWithOffsets",
            lambda x, a=arguments, o=options: list(unicode_ops.unicode_decode_with_offsets(x, *a, **o)),
            [text(x)],
            expected,
            data_dependent=True,
            label=str(index),
        )
        for index, (x, arguments, options, expected) in enumerate(
            [
                ("aé日b".encode(), ["UTF-8"], {}, [[97, 233, 26085, 98], [0, 1, 3, 6]]),
                (b"a\xffb\x01", ["UTF-8"], {}, [[97, 65533, 98, 1], [0, 1, 2, 3]]),
                (b"a\xffb", ["UTF-8", "ignore"], {}, [[97, 98], [0, 2]]),
                (b"a\x01", ["UTF-8"], {"replace_control_characters": True}, [[97, 65533], [0, 1]]),
                ("aé".encode("utf-16"), ["UTF-16"], {}, [[97, 233], [0, 4]]),
                (b"", ["UTF-8"], {}, [[], []]),
            ]
        )
    ],
    given(
        "UnicodeEncode",
        lambda x: unicode_ops.unicode_split(x, "UTF-8"),
        [text("aé".encode())],
        strings(b"a", "é".encode()),
        modes=("known", "unknown sizes"),
        data_dependent=True,
    ),
    given(  # the numbers are those of TensorFlow 2.21
        "UnicodeScript",
        unicode_ops.unicode_script,
        [I32([[97, 0x41A, 0x4E2D, 0x3042], [49, 0x301, 0x378, 0x10FFFF], [0x5D0, 0x110000, -1, 0x1F600]])],
        I32([[25, 8, 17, 20], [0, 1, 103, 103], [19, -1, -1, 0]]),
    ),
    *[
        given("UnicodeEncode", unicode_ops.unicode_encode, [I32(x)], expected, kwargs=options, label=str(index))
        for index, (x, options, expected) in enumerate(
            [
                ([[97, 233], [65, 66]], {"output_encoding": "UTF-16-BE"}, strings(b"\0a\0\xe9", b"\0A\0B")),
                ([97, -1, 0x110000, 0xD800], {"output_encoding": "UTF-8", "replacement_char": 63}, text(b"a???")),
                ([97, -1], {"output_encoding": "UTF-8", "errors": "ignore"}, text(b"a")),
                ([], {"output_encoding": "UTF-8"}, text(b"")),
            ]
        )
    ],
]

GROUPING = [
    *[
        given("StringNGrams", string_split_ops.ngrams, [x], expected, kwargs=options, modes=KNOWN_RANK)
        for index, (x, options, expected) in enumerate(
            [
                (matrix([b"a", b"b", b"c"], [b"d", b"e", b"f"]), {"ngram_width": 2}, NGRAMS),
                (
                    strings(b"a", b"b"),
                    {"ngram_width": (1, 2), "separator": "|", "pad_values": ("<", ">")},
                    strings(b"a", b"b", b"<|a", b"a|b", b"b|>"),
                ),
                (
                    strings(b"a", b"b"),
                    {"ngram_width": 3, "pad_values": "P", "padding_width": 1},
                    strings(b"P a b", b"a b P"),
                ),
                (strings(b"a"), {"ngram_width": 3, "preserve_short_sequences": True}, strings(b"a")),
                (strings(b"a"), {"ngram_width": 3}, strings()),
            ]
        )
    ],
    *[
        given("UnsortedSegmentJoin", string_split_ops.unsorted_segment_join, [x, ids, I32(2)], expected, sizes=[2])
        for x, ids, expected in [
            (strings(b"a", b"b", b"c"), I32([1, 0, 1]), strings(b"b", b"ac")),
            (SQUARE, I32([1, 0]), matrix([b"c", b"d"], [b"a", b"b"])),
            (SQUARE, I32([[0, 0], [1, 1]]), strings(b"ab", b"cd")),
        ]
    ],
    *[
        given("StringFormat", lambda *x, t=template, o=options: FORMAT(t, x, **o), values, text(shown))
        for template, options, values, shown in [
            ("a {} b {}", {}, [np.float32([1.5, 2]), text(b'x"')], b'a [1.5 2] b "x\\""'),
            ("%t", {"placeholder": "%t"}, [I32(np.arange(20).reshape(2, 10))], TWO_ROWS),
            ("{}", {"summarize": -1}, [I32(np.arange(8))], b"[0 1 2 3 4 5 6 7]"),
            ("{}", {"summarize": 1}, [I32(np.arange(8).reshape(4, 2))], b"[[0 1]\n ...\n [6 7]]"),
            ("{}", {}, [I32(np.arange(8).reshape(2, 2, 2))], b"[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
            ("{} {}", {}, [np.array(True), np.float64(0.1)], b"1 0.1"),
            ("a", {}, [], b"a"),
        ]
    ],
]

SAMPLES = [*JOINING, *SPLITTING, *CHANGING, *NUMBERS, *CHARACTERS, *GROUPING]

REPLACE = string_ops.regex_replace
ERRORS = [
    OpError(
        "StringJoin", lambda *x: string_ops.string_join(list(x)), [strings(b"a"), strings(b"b", b"c")], "incompatible"
    ),
    OpError(
        "StringJoin",
        lambda *x: string_ops.string_join(list(x)),
        [strings(b"a"), strings(b"b", b"c")],
        "joined",
        at_run=True,
    ),
    OpError("ReduceJoin", lambda x: string_split_ops.reduce_join(x, [0, 0]), [strings(b"x")], "twice"),
    OpError("ReduceJoin", lambda x: string_split_ops.reduce_join(x, 2), [SQUARE], "not in"),
    OpError("ReduceJoin", lambda x: string_split_ops.reduce_join(x, [1, 1]), [SQUARE], "twice", True),
    OpError("StringSplit", string_split_ops.string_split, [SQUARE], "rank"),
    OpError(
        "StringSplitV2", lambda x: string_split_ops.string_split_v2(x, result_type="Ragged"), [SQUARE], "result_type"
    ),
    OpError("StringLength", lambda x: string_ops.string_length(x, unit="WORD"), [SQUARE], "unit"),
    OpError("StringLower", lambda x: string_ops.string_lower(x, "latin"), [SQUARE], "encoding"),
    OpError("Substr", lambda x: string_ops.substr(x, 6, 1), [text(b"hello")], "position 6 is outside", True),
    OpError("Substr", lambda x: string_ops.substr(x, -6, 1), [text(b"hello")], "position -6 is outside", True),
    OpError("Substr", lambda x: string_ops.substr(x, [0, 1], 1), [text(b"hello")], "incompatible"),
    *[
        OpError("RegexReplace", partial(lambda wrong, x: REPLACE(x, wrong, ""), wrong), [text(b"a")], "not a reg", True)
        for wrong in ("(", "a(?=b)", "(?<!a)b", r"(a)\1", r"\p{Greek}")
    ],
    OpError("RegexFullMatch", lambda x: string_ops.regex_full_match(x, ["a"]), [text(b"a")], "rank"),
    OpError("DecodeBase64", string_ops.decode_base64, [text(b"a*")], "not base 64", True),
    OpError("DecodeBase64", string_ops.decode_base64, [text(b"abcda")], "cannot be 1 modulo 4", True),
    OpError("DecodeBase64", string_ops.decode_base64, [text(b"ab+/")], "not base 64", True),
    OpError("DecodeBase64", string_ops.decode_base64, [text(b"YQ=")], "not filled up", True),
    OpError("DecodeBase64", string_ops.decode_base64, [text(b"====")], "not filled up", True),
    OpError("DecodeBase64", string_ops.decode_base64, [text(b"YWFh====")], "not filled up", True),
    OpError(
        "UnicodeTranscode",
        lambda x: unicode_ops.unicode_transcode(x, "UTF-8", "UTF-8", "strict"),
        [text(b"a\xff")],
        "Invalid formatting on input string",
        True,
    ),
    OpError(
        "UnicodeTranscode",
        lambda x: unicode_ops.unicode_transcode(x, "UTF-8", "UTF-8", "strict", replace_control_characters=True),
        [text(b"a\n")],
        "control character",
        True,
    ),
    OpError("StringJoin", string_ops.string_join, [text(b"a")], "expected a list"),
    OpError("UnicodeDecode", lambda x: unicode_ops.unicode_decode(x, "UTF-8"), [strings(b"a")], "no ragged tensors"),
    OpError("UnicodeEncode", lambda x: unicode_ops.unicode_encode(x, "UTF-8"), [I32(97)], "at least one dimension"),
    OpError("UnicodeEncode", lambda x: unicode_ops.unicode_encode(x, "UTF-16"), [I32([97])], "output_encoding"),
    OpError("UnicodeEncode", lambda x: unicode_ops.unicode_encode(x, "UTF-8", "strict"), [I32([-1])], "-1 is", True),
    OpError(
        "UnicodeEncode", lambda x: unicode_ops.unicode_encode(x, "UTF-8", "odd"), [I32([1])], "'odd' not in: \"stri"
    ),
    OpError(
        "UnicodeEncode",
        lambda x: unicode_ops.unicode_encode(x, "UTF-8", replacement_char=1114112),
        [I32([-1])],
        "replacement_char is 1114112",
        True,
    ),
    OpError(
        "UnicodeTranscode",
        lambda x: unicode_ops.unicode_transcode(x, "UTF-8", "UTF-8", replacement_char=-1),
        [text(b"a")],
        "replacement_char is -1",
        True,
    ),
    OpError("StringNGrams", lambda x: string_split_ops.ngrams(x, 2), [text(b"a")], "rank of at least 1"),
    OpError("StringNGrams", lambda x: string_split_ops.ngrams(x, 0), [strings(b"a")], "positive"),
    OpError("StringNGrams", lambda x: string_split_ops.ngrams(x, 2, padding_width=1), [strings(b"a")], "padding_width"),
    OpError(
        "StringFormat", lambda x: string_ops.string_format("{}{}", x), [text(b"a")], r"2 placeholder.s. in template"
    ),
    *[
        OpError(
            "UnsortedSegmentJoin",
            lambda x, i=ids: string_split_ops.unsorted_segment_join(x, i, 2),
            [strings(b"a", b"b")],
            match,
            at_run,
        )
        for ids, match, at_run in [([0], "incompatible", False), ([-1, 0], "-1 to 0", True), ([2, 0], "0 to 2", True)]
    ],
    OpError("StringToHashBucket", string_number_ops.string_to_hash_bucket, [text(b"a")], "num_buckets is missing"),
    OpError(
        "UnicodeTranscode",
        lambda x: unicode_ops.unicode_transcode(x, "nothing", "UTF-8"),
        [text(b"")],
        "Could not create converter for input encoding: nothing",
        True,
    ),
    OpError("AsString", lambda x: string_number_ops.as_string(x, precision=2), [I32(3)], "no precision"),
    OpError("AsString", lambda x: string_number_ops.as_string(x, fill="xx"), [I32(3)], "fill"),
    OpError(
        "AsString", lambda x: string_number_ops.as_string(x, scientific=True, shortest=True), [np.float32(3)], "both"
    ),
    *[
        OpError(
            "StringToNumber",
            lambda x, d=dtype: string_number_ops.string_to_number(x, d),
            [text(value)],
            "is not a",
            True,
        )
        for value, dtype in [
            (b"1.5", dtypes.int32),
            (b"", dtypes.float32),
            (b"1_0", dtypes.int64),
            (b"x", dtypes.float64),
        ]
    ],
    OpError("Fingerprint", lambda x: string_number_ops.fingerprint(x, "sha"), [SQUARE], "expected farmhash64"),
    OpError("Fingerprint", string_number_ops.fingerprint, [np.array(b"a", object)], "at least rank 1"),
    OpError(
        "StringToHashBucketFast", lambda x: string_number_ops.string_to_hash_bucket_fast(x, 0), [SQUARE], "at least 1"
    ),
    OpError(
        "StringToHashBucketStrong",
        lambda x: string_number_ops.string_to_hash_bucket_strong(x, 3, [1]),
        [SQUARE],
        "Key must have 2 elements",
    ),
]
