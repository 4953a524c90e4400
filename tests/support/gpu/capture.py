"""Whether a training step could be captured as a CUDA graph: what it does that capture forbids, on the emulated CUDA.

`check.sh` has set up what is needed; from the project's root, by the Python that `setup.sh` prints:

    python -m tests.support.gpu.capture [REGEX]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from tests.support.gpu.pretend import open_gpu

cupy, recorder = open_gpu("cupy")

import tfray as tf
from tests.support.gpu.models_on_gpu import OPTIMIZERS, SOFT_PLACEMENT, batch, combinations
from tests.support.gpu.report import cause, table
from tfray.framework.graph import Graph

COLUMNS = ("capture_violations", "launches", "blas", "h2d", "d2h", "stream_sync", "mallocs")


def captured_step(build, optimizer: str) -> tuple[dict[str, int], str]:
    """Counts of one step, without a fetch, while its stream is captured; and what stopped it, if anything did."""
    rng = np.random.default_rng(0)
    with Graph().as_default() as graph:
        with tf.device("/gpu:0"):
            x, y, _, update = build(OPTIMIZERS[optimizer]())
        with tf.Session(graph=graph, config=SOFT_PLACEMENT) as session:
            session.run(tf.global_variables_initializer())
            feeds = batch(rng, x, y)
            stopped = ""
            with cupy.cuda.Stream(non_blocking=True) as stream:
                for _ in range(6):
                    session.run(update, feeds)  # plans, and memory in the stream's pool, are there afterwards
                stream.begin_capture()
                recorder.reset()
                try:
                    session.run(update, feeds)
                except Exception as error:  # noqa: BLE001
                    stopped = cause(error)
                counts = recorder.snapshot()
                stream.end_capture()
    return counts, stopped


def main() -> None:
    warnings.simplefilter("ignore")
    recorder.library.emu_refuse_in_capture(0)  # what capture forbids is counted, and the step goes on
    rows = []
    for name, build, optimizer in combinations(sys.argv[1] if len(sys.argv) > 1 else "/(sgd|adam)$"):
        counts, stopped = captured_step(build, optimizer)
        rows.append((name, *(counts[column] for column in COLUMNS), stopped or "ran to its end"))
    table(("model", "forbidden", "launches", "GEMMs", "uploads", "downloads", "waits", "allocations", "the step"), rows)


if __name__ == "__main__":
    main()
