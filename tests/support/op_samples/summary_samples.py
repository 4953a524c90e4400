"""Operations that make summaries; `tests/ops/system/test_summaries.py` compares them with TensorFlow's."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.formats.events import Summary, SummaryMetadata, SummaryValue
from tfray.formats.media import encode_wav
from tfray.formats.tensor_proto import make_tensor_proto
from tfray.framework import dtypes
from tfray.ops.system import summary_ops
from tfray.ops.system.summary_ops import encode_image, make_histogram


def text(item):
    return np.array(item, object)


def summary_of(*values):
    return text(Summary(value=values).SerializeToString())


PIXELS = np.arange(24, dtype=np.uint8).reshape(1, 2, 4, 3)
SOUND = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 6, 2)
METADATA = SummaryMetadata(summary_description="numbers")
HALVES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint8)

SAMPLES = [
    OpSample(
        "ScalarSummary",
        lambda values: summary_ops.scalar_summary(["a", "b"], values),
        [np.array([1.0, 2.0])],
        lambda values: summary_of(
            *[SummaryValue(tag=tag, simple_value=v) for tag, v in zip("ab", values, strict=True)]
        ),
        dtypes=HALVES,
        modes=("known", "unknown sizes"),
    ),
    OpSample(
        "HistogramSummary",
        lambda values: summary_ops.histogram_summary("h", values),
        [grid(3, 4)],
        lambda values: summary_of(SummaryValue(tag="h", histo=make_histogram(values))),
        dtypes=HALVES,
    ),
    OpSample(
        "ImageSummary",
        lambda tensor: summary_ops.image_summary("i", tensor, 1),
        [PIXELS],
        lambda tensor: summary_of(SummaryValue(tag="i/image", image=encode_image(tensor[0]))),
    ),
    OpSample(
        "AudioSummaryV2",
        lambda tensor: summary_ops.audio_summary("s", tensor, 8000.0, 1),
        [SOUND],
        lambda tensor: summary_of(
            SummaryValue(
                tag="s/audio",
                audio=Summary.Audio(
                    sample_rate=8000,
                    num_channels=2,
                    length_frames=6,
                    encoded_audio_string=encode_wav(tensor[0], 8000),
                    content_type="audio/wav",
                ),
            )
        ),
    ),
    OpSample(
        "TensorSummaryV2",
        lambda tensor: summary_ops.tensor_summary("t", tensor, METADATA.SerializeToString()),
        [np.arange(6).reshape(2, 3)],
        lambda tensor: summary_of(SummaryValue(tag="t", metadata=METADATA, tensor=make_tensor_proto(tensor))),
    ),
    OpSample(
        "MergeSummary",
        lambda first, second: summary_ops.merge_summary([first, second]),
        [summary_of(SummaryValue(tag="a", simple_value=1)), summary_of(SummaryValue(tag="b", simple_value=2))],
        lambda first, second: text(first.item() + second.item()),
    ),
]

ERRORS = [
    OpError("ScalarSummary", lambda x: summary_ops.scalar_summary(["a"], x), [np.zeros(2)], "expected", at_run=True),
    OpError("HistogramSummary", lambda x: summary_ops.histogram_summary("h", x), [np.full(2, np.inf)], "inf", True),
    OpError("ImageSummary", lambda x: summary_ops.image_summary("i", x), [np.zeros((1, 2, 2, 2))], "4-D with", True),
    OpError("AudioSummaryV2", lambda x: summary_ops.audio_summary("s", x, 1.0), [np.zeros(2, np.float32)], "2-D", True),
    OpError("AudioSummaryV2", lambda x: summary_ops.audio_summary("s", SOUND, x), [np.float32(-1)], "frames a", True),
    OpError("TensorSummaryV2", lambda x: summary_ops.tensor_summary(["t"], x, b""), [np.zeros(2)], "scalar", True),
    OpError("MergeSummary", lambda x: summary_ops.merge_summary([x, x]), [SAMPLES[-1].inputs[0]], "'a'", at_run=True),
]
