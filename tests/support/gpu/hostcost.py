"""Host time of launches and of training steps: the real CuPy on a driver that does nothing.

It is what a step takes however fast the GPU is, and what a GPU could at best hide behind its own work.

`check.sh` has set up what is needed; from the project's root, by the Python that `setup.sh` prints:

    OMP_NUM_THREADS=1 python -m tests.support.gpu.hostcost [REGEX]

Times are those of this machine's processor, and of whatever else it does: compare them only with each other.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable

os.environ["EMU_EXECUTE"] = "0"  # read as the driver starts

import numpy as np

from tests.support.gpu.pretend import open_gpu

cupy, recorder = open_gpu("cupy")

import tfray as tf
from tests.support.gpu.models_on_gpu import OPTIMIZERS, SOFT_PLACEMENT, batch, combinations
from tests.support.gpu.report import COUNTS, table
from tfray.framework.graph import Graph

MODELS = r"^(softmax_regression/sgd|mlp/(sgd|adam)|convnet/adam|convnet_bn/adam|lstm_static/adam)$"


def microseconds(work: Callable[[], object], times: int = 500) -> float:
    """A time that few repetitions stay below: what the work takes when nothing disturbs it."""
    work()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return float(np.percentile(taken, 5)) * 1e6


def launches() -> list[tuple[str, str]]:
    """Times of single calls."""
    a, b, out = (cupy.zeros((32, 32), np.float32) for _ in range(3))
    index = cupy.asarray(np.array([0], np.int32))
    parts = [cupy.zeros(1024, np.float32) for _ in range(4)]
    elementwise = cupy.ElementwiseKernel("T p, T g, T m, T v", "T q", "q = p - g * m / v", "fused_update")
    source = """extern "C" __global__ void copied(const float* a, float* b, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) b[i] = a[i];
    }"""
    raw = cupy.RawKernel(source, "copied")
    works: dict[str, Callable[[], object]] = {
        "add": lambda: cupy.add(a, b),
        "add, out=": lambda: cupy.add(a, b, out=out),
        "sum, axis=0": lambda: a.sum(axis=0),
        "matmul, out=": lambda: cupy.matmul(a, b, out=out),
        "get of one integer": lambda: index.get(),
        "copyto": lambda: cupy.copyto(out, a),
        "reshape": lambda: a.reshape(-1),
        "asarray of 8 kB": lambda: cupy.asarray(np.zeros(2048, np.float32)),
        "index by an array": lambda: a[index],
        "ElementwiseKernel of 5 arrays": lambda: elementwise(*parts),
        "RawKernel": lambda: raw((8,), (128,), (parts[0], parts[1], np.int32(1024))),
    }
    return [(name, f"{microseconds(work):.1f}") for name, work in works.items()]


def step(build: Callable, optimizer: str, device: str) -> tuple[float, dict[str, int]]:
    """Time of a training step, and what it asks of the device."""
    with Graph().as_default() as graph:
        with tf.device(device):
            x, y, _, update = build(OPTIMIZERS[optimizer]())
        with tf.Session(graph=graph, config=SOFT_PLACEMENT) as session:
            session.run(tf.global_variables_initializer())
            feeds = batch(np.random.default_rng(0), x, y)
            for _ in range(5):
                session.run(update, feeds)
            taken = microseconds(lambda: session.run(update, feeds), 80)
            recorder.reset()
            session.run(update, feeds)
            return taken, recorder.cost()


def main() -> None:
    warnings.simplefilter("ignore")
    table(("call", "microseconds"), launches())
    rows = []
    for name, build, optimizer in combinations(sys.argv[1] if len(sys.argv) > 1 else MODELS):
        (on_gpu, cost), (on_cpu, _) = (step(build, optimizer, device) for device in ("/gpu:0", "/cpu:0"))
        rows.append((name, round(on_gpu), *(cost[key] for key in COUNTS), round(on_cpu)))
    table(("a step of", "host time, us", *COUNTS, "all of it on the CPU device, us"), rows)


if __name__ == "__main__":
    main()
