"""Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tfray.framework.convert import add_op
from tfray.ops.linalg import fft_ops, signal_ops


def waves(*shape: int) -> Any:
    return grid(*shape) + 1j * grid(*shape, seed=1)


def plain(rank: int, inverse: bool) -> Any:
    """A transform by its definition: a matrix product along each axis."""

    def transform(x: Any) -> Any:
        for axis in range(x.ndim - rank, x.ndim):
            n = x.shape[axis]
            powers = np.outer(np.arange(n), np.arange(n)) / max(n, 1)
            matrix = np.exp((2j if inverse else -2j) * np.pi * powers) / (max(n, 1) if inverse else 1)
            x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix, -1, axis)
        return x

    return transform


def fitted(x: Any, sizes: Any) -> Any:
    """The last dimensions cut off, or filled up with zeros."""
    rank = len(sizes)
    kept = tuple(slice(0, size) for size in sizes)
    x = x[(..., *kept)]
    around = [(0, 0)] * (x.ndim - rank)
    return np.pad(x, around + [(0, size - n) for size, n in zip(sizes, x.shape[x.ndim - rank :], strict=True)])


def real_plain(rank: int) -> Any:
    def transform(x: Any, lengths: Any) -> Any:
        return plain(rank, False)(fitted(x, lengths) + 0j)[..., : lengths[-1] // 2 + 1]

    return transform


def complex_rows() -> list[OpSample]:
    rows = []
    for rank, suffix in ((1, ""), (2, "2D"), (3, "3D")):
        for shape in ((2, 3, 4, 5), (3, 2, 1), *(((6,), (2, 0)) if rank == 1 else ())):
            for op, inverse in (("FFT", False), ("IFFT", True)):
                function = getattr(fft_ops, (op + suffix).lower())
                rows.append(OpSample(op + suffix, function, [waves(*shape)], plain(rank, inverse), tolerance=10))
    return rows


def real_rows() -> list[OpSample]:
    rows = []
    for rank, suffix, lengths in (
        (1, "", ([6], [5], [3], [9])),
        (2, "2D", ([4, 6], [3, 5], [5, 8])),
        (3, "3D", ([3, 4, 6], [2, 5, 7])),
    ):
        for length in lengths:
            sizes = np.array(length, np.int32)
            half = waves(2, 3, 4, length[-1] // 2 + 1)
            rows += [
                OpSample(
                    f"RFFT{suffix}",
                    getattr(fft_ops, f"rfft{suffix.lower()}"),
                    [grid(2, 3, 4, 6), sizes],
                    real_plain(rank),
                    sizes=(1,),
                    tolerance=10,
                ),
                OpSample(
                    f"IRFFT{suffix}",
                    getattr(fft_ops, f"irfft{suffix.lower()}"),
                    [half, sizes],
                    lambda x, s, rank=rank: np.fft.irfftn(x, s, axes=range(-rank, 0)),
                    sizes=(1,),
                    tolerance=10,
                ),
            ]
    return rows


def overlapped(frames: Any, step: Any) -> Any:
    count, length = frames.shape[-2:]
    total = np.zeros((*frames.shape[:-2], (count - 1) * step + length if count else 0), frames.dtype)
    for index in range(count):
        total[..., index * step : index * step + length] += frames[..., index, :]
    return total


def frame_rows() -> list[OpSample]:
    rows = []
    for shape, step in (((2, 4, 5), 2), ((3, 4), 4), ((3, 4), 7), ((2, 0, 3), 2), ((1, 5), 3)):
        frames, number = grid(*shape), np.array(step, np.int32)
        samples = grid(*overlapped(frames, step).shape, seed=1)
        places = np.arange(shape[-2])[:, None] * step + np.arange(shape[-1])
        rows += [
            OpSample("OverlapAndAdd", signal_ops.overlap_and_add, [frames, number], overlapped, sizes=(1,)),
            OpSample(
                "OverlapAndAddGrad",
                lambda *inputs: add_op(signal_ops.FRAMES, *inputs),
                [samples, np.array(shape, np.int32), number],
                lambda x, shape, step, places=places: x[..., places],
                sizes=(1, 2),
            ),
        ]
    return rows


SAMPLES = [*complex_rows(), *real_rows(), *frame_rows()]
ERRORS = [
    OpError("FFT2D", fft_ops.fft2d, [waves(3)], "at least rank 2"),
    OpError("FFT2D", fft_ops.fft2d, [waves(3)], "at least rank 2", at_run=True),
    OpError("RFFT2D", lambda x: fft_ops.rfft2d(x, [3]), [grid(3, 3)], "Dimension must be 2 but is 1"),
]
