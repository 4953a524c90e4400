"""Signals: frames, windows, spectra and cosine transforms against SciPy and definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import tfray as tf
from tests.support.sessions import run

SIGNALS = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
@pytest.mark.parametrize("name", ["hann", "hamming"])
def test_windows(name, length):
    function = getattr(tf.signal, f"{name}_window")
    symmetric = scipy.signal.get_window(name, length, fftbins=False)
    np.testing.assert_allclose(run(function(length, periodic=False)), symmetric, atol=1e-6)
    # TensorFlow's periodic windows of odd length are the symmetric ones.
    periodic = scipy.signal.get_window(name, length, fftbins=length % 2 == 0)
    np.testing.assert_allclose(run(function(tf.placeholder_with_default(length, []))), periodic, atol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_kaiser_window(length):
    np.testing.assert_allclose(run(tf.signal.kaiser_window(length, 5.0)), np.kaiser(length, 5.0), atol=1e-6)


@pytest.mark.parametrize(("length", "step"), [(10, 3), (8, 8), (5, 7), (60, 10)])
@pytest.mark.parametrize("pad_end", [False, True])
def test_frames(length, step, pad_end):
    starts = range(0, 50 if pad_end else 50 - length + 1, step)
    padded = np.pad(SIGNALS, [(0, 0), (0, length)], constant_values=1.5)
    expected = np.stack([padded[:, s : s + length] for s in starts], 1) if starts else np.zeros((2, 0, length))
    frames = tf.signal.frame(SIGNALS, length, step, pad_end, 1.5)
    assert frames.shape.as_list() == list(expected.shape)
    np.testing.assert_array_equal(run(frames), expected)
    inner = tf.signal.frame(SIGNALS[..., None], length, step, pad_end, 1.5, axis=1)
    np.testing.assert_array_equal(run(inner)[..., 0], expected)


def test_stft_and_back():
    window = scipy.signal.get_window("hann", 16)
    spectra = run(tf.signal.stft(SIGNALS, 16, 4))
    expected = np.stack([np.fft.rfft(SIGNALS[:, s : s + 16] * window) for s in range(0, 35, 4)], 1)
    np.testing.assert_allclose(spectra, expected, atol=1e-5)
    assert run(tf.signal.stft(SIGNALS, 10, 4)).shape == (2, 11, 9)
    back = tf.signal.inverse_stft(spectra, 16, 4, window_fn=tf.signal.inverse_stft_window_fn(4))
    np.testing.assert_allclose(run(back)[:, 16:32], SIGNALS[:, 16:32], atol=1e-5)


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_cosine_transforms(kind, norm):
    if kind == 1 and norm:
        with pytest.raises(tf.errors.InvalidArgumentError, match="not with"):
            tf.signal.dct(SIGNALS, 1, norm=norm)
        return
    expected = scipy.fft.dct(SIGNALS.astype(float), kind, norm=norm)
    # SciPy's type 3 counts the first sample once; TensorFlow's without a norm as well.
    np.testing.assert_allclose(run(tf.spectral.dct(SIGNALS, kind, norm=norm)), expected, atol=1e-3)
    there_and_back = run(tf.signal.idct(tf.signal.dct(SIGNALS, kind, norm=norm), kind, norm=norm))
    factor = 1 if norm else 2 * (50 - (kind == 1))
    np.testing.assert_allclose(there_and_back, SIGNALS * factor, atol=1e-3)


def test_cosine_transform_of_another_length():
    for n in (30, 64):
        expected = scipy.fft.dct(SIGNALS.astype(float), 2, n)
        np.testing.assert_allclose(run(tf.signal.dct(SIGNALS, n=n)), expected, atol=1e-4)


def test_mel_filters():
    matrix = run(tf.signal.linear_to_mel_weight_matrix(10, 65, 8000, 100.0, 4000.0))
    assert matrix.shape == (65, 10) and not matrix[0].any()
    peaks = matrix.argmax(axis=0)
    assert (np.diff(peaks) > 0).all() and matrix.max() <= 1 and matrix.min() == 0
    cepstra = run(tf.signal.mfccs_from_log_mel_spectrograms(SIGNALS))
    np.testing.assert_allclose(cepstra, scipy.fft.dct(SIGNALS, 2) / np.sqrt(100), atol=1e-4)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"num_mel_bins": 0}, "num_mel_bins must be positive"),
        ({"sample_rate": 0.0}, "sample_rate must be positive"),
        ({"lower_edge_hertz": -1}, "lower_edge_hertz must be non-negative"),
        ({"lower_edge_hertz": 100, "upper_edge_hertz": 10}, "lower_edge_hertz .* >= upper_edge_hertz"),
        ({"upper_edge_hertz": 5000.0}, "upper_edge_hertz must not be larger"),
        ({"dtype": tf.int32}, "dtype must be a floating point type"),
    ],
)
def test_mel_filters_that_there_are_not(arguments, said):
    with pytest.raises(ValueError, match=said):
        tf.signal.linear_to_mel_weight_matrix(**arguments)


@pytest.mark.parametrize(
    "build, said",
    [
        (lambda: tf.signal.fft2d(np.zeros(3, np.complex64)), "Shape must be at least rank 2 but is rank 1"),
        (lambda: tf.signal.irfft(np.complex64(0)), "Shape must be at least rank 1 but is rank 0"),
        (lambda: tf.signal.rfft(SIGNALS, np.int32(5)), "Shape must be rank 1 but is rank 0"),
        (lambda: tf.signal.irfft(tf.complex(SIGNALS, SIGNALS), [5, 5]), "Dimension must be 1 but is 2"),
        (lambda: tf.signal.overlap_and_add(SIGNALS, 2.0), "frame_step must be an integer"),
    ],
)
def test_shapes_that_do_not_fit(build, said):
    with pytest.raises(ValueError, match=said):
        build()


def test_shifted_spectra():
    for axes in (None, 1, [0], [0, 1]):
        shifted = tf.signal.fftshift(SIGNALS, axes)
        np.testing.assert_array_equal(run(shifted), np.fft.fftshift(SIGNALS, axes))
        np.testing.assert_array_equal(run(tf.signal.ifftshift(shifted, axes)), SIGNALS)


def test_spectra_of_real_numbers_are_differentiable():
    x = tf.constant(SIGNALS)
    energy = tf.reduce_sum(tf.square(tf.abs(tf.spectral.rfft(x, [64]))))
    (d_energy,) = tf.gradients(energy, x)
    # Parseval: inner components count twice in the energy of the signal.
    spectrum = np.fft.rfft(SIGNALS, 64)
    inner = np.zeros_like(spectrum)
    inner[:, 0], inner[:, -1] = spectrum[:, 0], spectrum[:, -1]
    expected = 64 * SIGNALS + np.fft.irfft(inner, 64)[:, :50] * 64
    np.testing.assert_allclose(run(d_energy), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("pad_end", [False, True])
def test_the_gradient_of_frames_is_a_tensor(pad_end):
    signal = tf.constant(SIGNALS[0])
    (d_signal,) = tf.gradients(tf.reduce_sum(tf.signal.frame(signal, 4, 2, pad_end=pad_end)), signal)
    assert isinstance(d_signal, tf.Tensor)
    expected = np.full(50, 2.0)
    expected[:2] = 1
    expected[-2:] = 2 if pad_end else 1
    np.testing.assert_array_equal(run(d_signal), expected)
