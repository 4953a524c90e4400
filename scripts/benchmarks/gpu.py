"""A GPU's limits, and how long cases take on it, without what the host does between steps."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import tfray as tf
from benchmarks.cases import Counted, Work, cases_of
from benchmarks.tfray_side import TfrayBackend
from tfray.ops.kernels.gpu.device_products import TF32_VARIABLE
from tfray.runtime.device import cupy

_PRODUCT_SIZE: Final = 8192
_COPY_BYTES: Final = 1 << 30
_WARM_UPS: Final = 6
"""In the first three steps engines are chosen and kernels compiled, the fourth is captured as a CUDA graph."""
_SAMPLES: Final = 5
_SAMPLE_S: Final = 0.05
"""A sample is as many steps as take this long, up to `_MOST_STEPS`; the device is waited for at its end."""
_MOST_STEPS: Final = 50

MODES: Final = ("float32", "tf32", "bfloat16")
"""How convolutions and products are computed; sums are in float32 in each."""


@dataclass(frozen=True)
class Roofline:
    """What the device can do.

    Attributes:
        flop_rates: By mode, floating-point operations per second in a product of large square matrices.
        byte_rate: Bytes per second, read and written, in a copy within the device's memory.
    """

    flop_rates: Mapping[str, float]
    byte_rate: float

    def floor_ms(self, work: Work, mode: str) -> float:
        """Milliseconds that the work takes when nothing but arithmetic or moving bytes takes time."""
        return 1e3 * max(work.bytes / self.byte_rate, work.flops / self.flop_rates[mode])


@dataclass(frozen=True)
class Timed:
    """What a step took.

    Attributes:
        step_ms: Milliseconds from one step to the next when many follow each other: the median of some samples.
        host_ms: Milliseconds until `Session.run` returns, of that.
        work: What the step cannot do without, where that is known.
    """

    step_ms: float
    host_ms: float
    work: Work | None


def allow_tf32(allowed: bool) -> None:
    """Let products and convolutions of float32 round what they multiply to 10 bits, or not."""
    os.environ[TF32_VARIABLE] = "1" if allowed else "0"


def synchronize() -> None:
    """Wait until the device has done all that it was given."""
    module = cupy()
    assert module is not None
    module.cuda.Device().synchronize()


def timed(step: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds of a step, and what of it the host takes to hand it to the device."""
    for _ in range(_WARM_UPS):
        step()
    synchronize()
    begun = time.perf_counter()
    step()
    synchronize()
    steps = int(min(max(_SAMPLE_S / (time.perf_counter() - begun), 1), _MOST_STEPS))
    samples, host = [], []
    for _ in range(_SAMPLES):
        begun = time.perf_counter()
        for _ in range(steps):
            step()
        host.append(time.perf_counter() - begun)
        synchronize()
        samples.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(samples) / steps, 1e3 * statistics.median(host) / steps


def measure_roofline() -> Roofline:
    """Measure products of matrices by tfray, and a copy."""
    rates = {}
    for mode in MODES:
        allow_tf32(mode == "tf32")
        with tf.Graph().as_default(), tf.Session() as session:
            shape = [_PRODUCT_SIZE, _PRODUCT_SIZE]
            dtype = tf.bfloat16 if mode == "bfloat16" else tf.float32
            a, b = (tf.Variable(tf.cast(tf.random_normal(shape, seed=seed), dtype)) for seed in (1, 2))
            product = tf.matmul(a, b).op
            session.run(tf.global_variables_initializer())
            step_ms, _ = timed(lambda session=session, product=product: session.run(product))
        rates[mode] = 2 * _PRODUCT_SIZE**3 / (1e-3 * step_ms)
    allow_tf32(False)
    module = cupy()
    assert module is not None
    source, target = (module.ones(_COPY_BYTES, module.uint8) for _ in range(2))
    step_ms, _ = timed(lambda: module.copyto(target, source))
    return Roofline(rates, 2 * _COPY_BYTES / (1e-3 * step_ms))


def measure(bench: str, case: str, options: Mapping[str, Any], mode: str = "float32") -> Timed:
    """Time a case of a benchmark on the device."""
    allow_tf32(mode == "tf32")
    if mode == "bfloat16":
        options = {**options, "dtype": "bfloat16"}
    with cases_of(bench)[case].open(TfrayBackend(), options) as opened:
        is_counted = isinstance(opened, Counted)
        times = timed(opened.step if is_counted else opened)
        return Timed(*times, opened.work if is_counted else None)
