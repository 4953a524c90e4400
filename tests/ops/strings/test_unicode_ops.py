"""Characters of strings, and tensors in a text. Expected values are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run

strings = tf.strings


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: strings.unicode_decode("G\u00f6\u00f6d", "UTF-8"), [71, 246, 246, 100]),
        (lambda: strings.unicode_decode(b"\xfea", "UTF-8", "replace", 65), [65, 97]),
        (lambda: strings.unicode_decode(b"\xfea", "UTF-8", "ignore"), [97]),
        (lambda: strings.unicode_decode_with_offsets("\u00e9a\U0001f600", "UTF-8"), ([233, 97, 128512], [0, 2, 3])),
        (lambda: strings.unicode_split("\u00e9a", "UTF-8"), [b"\xc3\xa9", b"a"]),
        (lambda: strings.unicode_split("\u00e9a".encode("utf-16-be"), "UTF-16-BE"), [b"\x00\xe9", b"\x00a"]),
        (
            lambda: strings.unicode_split_with_offsets("\u00e9a\u65e5", "UTF-8"),
            ([b"\xc3\xa9", b"a", b"\xe6\x97\xa5"], [0, 2, 3]),
        ),
        (
            lambda: strings.unicode_encode([[71, 246], [100, 0x65E5]], "UTF-16-BE"),
            [b"\x00G\x00\xf6", b"\x00de\xe5"],
        ),
        (lambda: strings.unicode_encode([72, 0x1F600], "UTF-32-BE"), b"\x00\x00\x00H\x00\x01\xf6\x00"),
        (lambda: strings.unicode_script([ord(each) for each in "A\u0416\u65e5 1"]), [25, 8, 17, 0, 0]),
        (lambda: strings.unicode_transcode(["\u00e9".encode("latin-1")], "ISO-8859-1", "UTF-8"), [b"\xc3\xa9"]),
        (
            lambda: strings.unicode_transcode(b"\xfe\xffx", "UTF-8", "UTF-16-BE", "replace", 63),
            b"\x00?\x00?\x00x",
        ),
        (
            lambda: strings.unicode_transcode("a\nb", "UTF-8", "UTF-8", replace_control_characters=True),
            b"a\xef\xbf\xbdb",
        ),
    ],
)
def test_characters(build, expected):
    found = run(build())
    for one, wanted in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        assert (one.tolist() if isinstance(one, np.ndarray) else one) == wanted


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (
            lambda: strings.format("first: {}, second: {}", (tf.constant([[1, 2], [3, 4]]), tf.constant(["x"]))),
            b'first: [[1 2]\n [3 4]], second: ["x"]',
        ),
        (lambda: strings.format("% of all", tf.range(9), placeholder="%", summarize=2), b"[0 1 ... 7 8] of all"),
        (lambda: strings.format("{}", tf.range(9), summarize=-1), b"[0 1 2 3 4 5 6 7 8]"),
        (lambda: strings.format("none", ()), b"none"),
    ],
)
def test_tensors_in_a_text(build, expected):
    assert run(build()) == expected


def test_each_placeholder_has_a_tensor():
    with pytest.raises(ValueError, match=r"2 placeholder\(s\) in template does not match 1 tensor\(s\) provided"):
        strings.format("at % sign: %", tf.range(3), placeholder="%")
