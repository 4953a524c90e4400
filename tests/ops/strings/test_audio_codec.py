"""WAV files: as TensorFlow reads and writes them."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run


def wav(samples, rate=8000):
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


SAMPLES = np.array([[0, 16384], [-32768, 32767], [1, -1]])


def test_samples_of_a_file():
    with tf.Graph().as_default():
        audio, rate = run(tf.audio.decode_wav(wav(SAMPLES)))
        assert rate == 8000
        assert rate.dtype == np.int32
        np.testing.assert_array_equal(audio, (SAMPLES / 32768).astype(np.float32))
        wider = tf.audio.decode_wav(wav(SAMPLES[:, :1]), desired_channels=2, desired_samples=4)
        assert wider.audio.shape.as_list() == [4, 2]
        assert (run(wider.audio) * 32768).tolist() == [[0, 0], [-32768, -32768], [1, 1], [0, 0]]


def test_a_file_of_samples():
    with tf.Graph().as_default():
        # 0.5 / 32768 is half a step: rounded away from zero, and what is beyond 1 is cut off.
        audio = np.float32([[0.5 / 32768, -0.5 / 32768], [2.0, -2.0], [0.25, -1.0]])
        expected = np.array([[1, -1], [32767, -32768], [8192, -32768]])
        assert run(tf.audio.encode_wav(audio, 44100)) == wav(expected, 44100)


@pytest.mark.parametrize("data", [b"", b"RIFF1234WAVE", b"RIFF1234WAVEfmt \xff\0\0\0"])
def test_other_strings_are_refused(data):
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="decode_wav"):
        run(tf.audio.decode_wav(data).audio)


def test_examples_in_json():
    text = '{"features": {"feature": {"a": {"int64List": {"value": ["1", "2"]}}}}}'
    with tf.Graph().as_default():
        parsed = tf.parse_example(tf.io.decode_json_example([text]), {"a": tf.FixedLenFeature([2], tf.int64)})
        assert run(parsed["a"]).tolist() == [[1, 2]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="JSON"):
            run(tf.decode_json_example("{"))


def test_names_that_do_not_exist_say_what_to_use():
    with pytest.raises(AttributeError, match="TFRecord"):
        tf.LMDBReader  # noqa: B018
