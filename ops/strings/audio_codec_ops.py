"""Sound files: WAV with samples of 16 bits."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import add_op
from tfray.framework.graph import Operation, Tensor
from tfray.framework.op_def import Array, KernelContext, OpDef, on_cpu, register
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.kernels.text import as_string


class DecodeWav(NamedTuple):
    """What `decode_wav` returns.

    Attributes:
        audio: Shape ``[samples, channels]``, float32 from -1 to 1.
        sample_rate: int32 scalar: samples in a second.
    """

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """The samples of a WAV file of 16 bits. Public as ``tf.audio.decode_wav``.

    Args:
        contents: A string scalar: the file.
        desired_channels: How many channels the result has; those of the file when negative. The last one of the file is
            repeated where it has fewer.
        desired_samples: How many samples the result has; those of the file when negative. Zeros follow where it has
            fewer.
        name: Name of the operation.

    Returns:
        ``(audio, sample_rate)``: float32 of shape ``[samples, channels]``, from -1 to 1; an int32 scalar.

    Raises:
        InvalidArgumentError: While running: it is no such file.
    """
    attrs = {"desired_channels": desired_channels, "desired_samples": desired_samples}
    return DecodeWav(*add_op(DECODE_WAV, contents, name=name, **attrs))


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """The chunks of a WAV file by name."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InvalidArgumentError("decode_wav: the string is no WAV file: it must begin with RIFF and WAVE")
    found: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        found.setdefault(data[at : at + 4], data[at + 8 : at + 8 + size])
        if len(data) < at + 8 + size:
            raise InvalidArgumentError("decode_wav: the WAV file ends too early")
        at += 8 + size + size % 2
    return found


def _decode_wav_kernel(ctx: KernelContext, contents: Array) -> tuple[Array, Array]:
    chunks = _chunks(as_string(contents))
    if b"fmt " not in chunks or b"data" not in chunks or len(chunks[b"fmt "]) < 16:
        raise InvalidArgumentError("decode_wav: the WAV file has no fmt or no data")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunks[b"fmt "][:16])
    if kind not in (1, 0xFFFE) or bits != 16 or not channels:
        raise InvalidArgumentError(f"decode_wav: the samples have {bits} bits and coding {kind}; expected 16 bits, PCM")
    data = chunks[b"data"]
    samples = np.frombuffer(data[: len(data) // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels)
    audio = (samples / np.float32(32768)).astype(np.float32)
    wanted, most = ctx.attr("desired_channels"), ctx.attr("desired_samples")
    if wanted >= 0:
        audio = audio[:, np.minimum(np.arange(wanted), channels - 1)]
    if most >= 0:
        audio = np.concatenate([audio[:most], np.zeros((max(0, most - len(audio)), audio.shape[1]), np.float32)])
    return audio, np.array(rate, np.int32)


def _decode_wav_shape(op: Operation) -> list[TensorShape]:
    op.inputs[0].shape.assert_has_rank(0)
    sizes = [op.attrs["desired_samples"], op.attrs["desired_channels"]]
    return [TensorShape([None if size < 0 else size for size in sizes]), TensorShape([])]


DECODE_WAV = register(
    OpDef(
        name="DecodeWav",
        inputs=("contents: string",),
        outputs=("audio: float32", "sample_rate: int32"),
        attrs=("desired_channels", "desired_samples"),
        shape=_decode_wav_shape,
        kernels=on_cpu(_decode_wav_kernel),
    )
)


def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Tensor:
    """A WAV file of 16 bits. Public as ``tf.audio.encode_wav``.

    Args:
        audio: Shape ``[samples, channels]``, float32; values beyond -1 and 1 are cut off.
        sample_rate: int32 scalar: samples in a second.
        name: Name of the operation.

    Returns:
        A string scalar.
    """
    return add_op(ENCODE_WAV, audio, sample_rate, name=name)


def _encode_wav_kernel(ctx: KernelContext, audio: Array, sample_rate: Array) -> Array:
    rate, channels = int(sample_rate), audio.shape[1]
    if rate <= 0 or not channels:
        raise InvalidArgumentError(f"encode_wav: {channels} channels at a rate of {rate}; both must be positive")
    scaled = audio.astype(np.float64) * 32768
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero, as in TensorFlow
    data = np.clip(rounded, -32768, 32767).astype("<i2").tobytes()
    width = 2 * channels
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, channels, rate),
        *(rate * width, width, 16, b"data", len(data)),
    )
    return np.array(header + data, object)


ENCODE_WAV = register(
    OpDef(
        name="EncodeWav",
        inputs=("audio: float32", "sample_rate: int32"),
        outputs=("contents: string",),
        shape=lambda op: [op.inputs[0].shape.assert_has_rank(2) or TensorShape([])],
        kernels=on_cpu(_encode_wav_kernel),
    )
)
