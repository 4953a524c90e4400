"""``tf.spectral``: Fourier and cosine transforms, by their older names. `tf.signal` has them too, and more."""

from tfray.ops.linalg.fft_ops import (
    fft,
    fft2d,
    fft3d,
    ifft,
    ifft2d,
    ifft3d,
    irfft,
    irfft2d,
    irfft3d,
    rfft,
    rfft2d,
    rfft3d,
)
from tfray.ops.linalg.signal_ops import dct, idct

# fmt: off
__all__ = [
    "dct", "fft", "fft2d", "fft3d", "idct", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d", "irfft3d", "rfft", "rfft2d",
    "rfft3d",
]
# fmt: on
