"""Summary operations: against what TensorFlow gave for the same calls, and what they refuse."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

import tfray as tf
from tests.support import GOLDEN
from tests.support.cases.summary_cases import CASES
from tfray.formats.events import Summary, SummaryMetadata
from tfray.formats.media import encode_png

RECORDED = json.loads((GOLDEN / "summaries.json").read_text())


def run(summary, feeds=None):
    with tf.Session() as session:
        return Summary.FromString(session.run(summary, feeds))


def assert_same_value(found, expected):
    assert found.WhichOneof("value") == expected.WhichOneof("value")
    kind = expected.WhichOneof("value")
    if kind == "simple_value":
        np.testing.assert_equal(found.simple_value, expected.simple_value)
    elif kind == "histo":
        assert found.histo.bucket_limit == expected.histo.bucket_limit
        assert found.histo.bucket == expected.histo.bucket
        for field in ("min", "max", "num", "sum", "sum_squares"):
            np.testing.assert_allclose(getattr(found.histo, field), getattr(expected.histo, field), 1e-13, 1e-30)
    elif kind == "image":
        assert_same_image(found.image, expected.image)
    elif kind == "audio":
        assert found.audio == expected.audio
    else:
        assert found.metadata == expected.metadata
        assert found.tensor.dtype == expected.tensor.dtype
        np.testing.assert_array_equal(tf.make_ndarray(found.tensor), tf.make_ndarray(expected.tensor))


def assert_same_image(found, expected):
    assert (found.height, found.width, found.colorspace) == (expected.height, expected.width, expected.colorspace)
    pixels = [np.asarray(Image.open(io.BytesIO(image.encoded_image_string))) for image in (found, expected)]
    # What lies just below a whole number may be cut to it, or not.
    np.testing.assert_allclose(*[each.astype(int) for each in pixels], atol=1)
    assert (pixels[0] == pixels[1]).mean() > 0.95


@pytest.mark.parametrize("name", CASES)
def test_as_tensorflow(name):
    CASES[name](tf)
    found = run(tf.summary.merge_all())
    expected = Summary.FromString(base64.b64decode(RECORDED[name]))
    assert [value.tag for value in found.value] == [value.tag for value in expected.value]
    for mine, theirs in zip(found.value, expected.value, strict=True):
        assert_same_value(mine, theirs)


def test_serialised_scalars_are_tensorflows_bytes():
    CASES["scalars"](tf)
    with tf.Session() as session:
        assert session.run(tf.summary.merge_all()) == base64.b64decode(RECORDED["scalars"])


def test_names_of_merged_summaries():
    one = tf.summary.scalar("a", 1.0)
    assert tf.summary.merge_all().name == "Merge/MergeSummary:0"
    assert tf.summary.merge([one], name="all").name == "all/all:0"
    assert tf.summary.merge([one], name="all").name == "all_1/all:0"
    assert tf.merge_summary([one]).name == "MergeSummary/MergeSummary:0"


def test_merge_all_takes_a_collection_and_a_scope():
    assert tf.summary.merge_all() is None
    tf.summary.scalar("a", 1.0)
    tf.summary.scalar("b", 2.0, collections=["mine"])
    with tf.name_scope("train"):
        tf.summary.scalar("c", 3.0)
    assert [value.tag for value in run(tf.summary.merge_all()).value] == ["a", "train/c"]
    assert [value.tag for value in run(tf.summary.merge_all("mine")).value] == ["b"]
    assert [value.tag for value in run(tf.summary.merge_all(scope="train/")).value] == ["train/c"]


def test_merging_twice_the_same_tag_is_refused():
    merged = tf.summary.merge([tf.scalar_summary("x", 1.0), tf.scalar_summary("x", 2.0)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="have the tag 'x'"):
        run(merged)


def test_merging_what_is_no_summary_is_refused():
    with pytest.raises(tf.errors.DataLossError):
        run(tf.summary.merge([tf.constant(b"\x0a\xff")]))


def test_there_must_be_something_to_merge():
    with pytest.raises(tf.errors.InvalidArgumentError, match="no summaries"):
        tf.summary.merge([])


@pytest.mark.parametrize(("bad", "what"), [(np.nan, "NaN"), (np.inf, "infinite")])
def test_histograms_refuse_what_is_no_number(bad, what):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{what}.*'weights'"):
        run(tf.summary.histogram("weights", tf.constant([1.0, bad])))


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (lambda x: tf.summary.scalar("x", x), np.zeros([2]), "expected the same"),
        (lambda x: tf.summary.image("x", x), np.zeros([1, 2, 2, 2]), "last dim 1, 3, or 4"),
        (lambda x: tf.summary.image("x", x), np.zeros([2, 2, 3]), "must be 4-D"),
        (lambda x: tf.summary.audio("x", x, 8000), np.zeros([5]), "3-D or 2-D"),
    ],
)
def test_shapes_are_checked_at_run_time(make, value, message):
    """Also where they are known before, as in TensorFlow: summaries that nothing runs may be of anything."""
    fed = tf.placeholder(tf.float32)
    summaries = [make(fed), make(tf.constant(value, tf.float32))]
    for summary in summaries:
        assert summary.shape.as_list() == []
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(summary, {fed: value})


def test_texts_are_of_strings():
    with pytest.raises(ValueError, match="strings"):
        tf.summary.text("number", tf.constant(1.0))


def test_a_description_can_be_read_from_the_graph():
    summary = tf.summary.tensor_summary("x", tf.constant(1.0), summary_description="a number")
    assert tf.summary.get_summary_description(summary.op.node_def).type_hint == "a number"
    with pytest.raises(ValueError, match="expected a TensorSummary"):
        tf.summary.get_summary_description(tf.constant(1.0).op.node_def)


def test_metadata_name_the_plugin():
    (value,) = run(tf.summary.text("words", tf.constant("one"))).value
    assert value.metadata == SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))


def test_summaries_within_branches():
    x = tf.placeholder(tf.float32, [])
    summary = tf.cond(x > 0, lambda: tf.summary.scalar("up", x, []), lambda: tf.summary.scalar("down", x, []))
    assert run(summary, {x: 2.0}).value[0].tag == "cond/up"
    assert run(summary, {x: -2.0}).value[0].simple_value == -2.0


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_survive_png(channels):
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, channels), np.uint8)
    decoded = np.asarray(Image.open(io.BytesIO(encode_png(pixels))))
    np.testing.assert_array_equal(decoded.reshape(pixels.shape), pixels)


def test_operations_are_named_as_in_tensorflow():
    with tf.name_scope("train"):
        summary = tf.summary.scalar("loss", tf.constant(1.0))
    assert [tensor.name for tensor in summary.op.inputs] == ["train/loss/tags:0", "train/Const:0"]
    assert summary.name == "train/loss:0"


def test_names_before_tensorflow_1():
    summaries = [
        tf.scalar_summary(["a", "b"], tf.constant([1.0, 2.0])),
        tf.histogram_summary("h", tf.constant([1.0])),
        tf.image_summary("i", tf.zeros([1, 2, 2, 1])),
        tf.audio_summary("s", tf.zeros([1, 4]), 8000),
    ]
    tags = ["a", "b", "h", "i/image/0", "s/audio/0"]
    assert [value.tag for value in run(tf.merge_summary(summaries)).value] == tags
    assert [value.tag for value in run(tf.merge_all_summaries()).value] == tags
