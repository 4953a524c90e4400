"""``tf.signal``: Fourier and cosine transforms, frames, windows and spectrograms, for audio and other signals."""

from tfray.ops.linalg.fft_ops import (
    fft,
    fft2d,
    fft3d,
    fftshift,
    ifft,
    ifft2d,
    ifft3d,
    ifftshift,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)
from tfray.ops.linalg.signal_ops import (
    dct,
    frame,
    hamming_window,
    hann_window,
    idct,
    inverse_stft,
    inverse_stft_window_fn,
    kaiser_window,
    linear_to_mel_weight_matrix,
    mfccs_from_log_mel_spectrograms,
    overlap_and_add,
    stft,
)

# fmt: off
__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftshift", "frame", "hamming_window", "hann_window", "idct", "ifft", "ifft2d",
    "ifft3d", "ifftshift", "inverse_stft", "inverse_stft_window_fn", "irfft", "irfft2d", "irfft3d", "kaiser_window",
    "linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms", "overlap_and_add", "rfft", "rfft2d", "rfft3d",
    "stft",
]
# fmt: on
