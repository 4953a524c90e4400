"""`tf.test.Benchmark`: how long operations take, as methods of a class whose names begin with ``benchmark``."""

from __future__ import annotations

import gc
import inspect
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.step_stats import RunMetadata
from tfray.framework.graph import Operation, Tensor
from tfray.library.platform import logging
from tfray.options import ConfigProto, GraphOptions, OptimizerOptions, RunOptions
from tfray.session import Session


class Benchmark:
    """Base of benchmarks. `tf.test.main` runs their methods ``benchmark...`` for the argument ``--benchmarks=REGEX``.

    A report is logged. Where the environment variable ``TEST_REPORT_FILE_PREFIX`` is set, it is also written as JSON
    to the file of that beginning and the benchmark's name (TensorFlow writes a message there).
    """

    _kinds: ClassVar[list[type[Benchmark]]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Benchmark._kinds.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether it has no benchmark of its own."""
        return not any(name.startswith("benchmark") for name in dir(cls))

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Report a measurement.

        Args:
            iters: How often it ran.
            cpu_time: Seconds of the processor.
            wall_time: Seconds of an iteration.
            throughput: MB per second.
            extras: Numbers or texts by name.
            name: Of the benchmark: the class and the method that calls, when None.
            metrics: Further measurements, each with ``name`` and ``value``, and perhaps ``min_value``, ``max_value``.
        """
        report = {
            "name": self._full_name(name),
            "iters": iters,
            "wall_time": wall_time,
            "cpu_time": cpu_time,
            "throughput": throughput,
            "extras": dict(extras or {}),
        } | ({"metrics": [dict(each) for each in metrics]} if metrics else {})
        logging.info("Benchmark %s", ", ".join(f"{key}: {value}" for key, value in report.items() if value is not None))
        prefix = os.environ.get("TEST_REPORT_FILE_PREFIX")
        if prefix:
            path = Path(prefix + str(report["name"]).replace("/", "__"))
            if path.exists():
                raise FileExistsError(f"a benchmark wrote {path} before: give each a name of its own")
            path.write_text(json.dumps(report))

    def _full_name(self, name: str | None) -> str:
        if name is None:
            callers = (frame.function for frame in inspect.stack()[2:])
            name = next((caller for caller in callers if caller.startswith("benchmark")), None)
            if name is None:
                raise InvalidArgumentError("report_benchmark: give a name, or call it in a method 'benchmark...'")
        return f"{type(self).__name__}.{name}"

    def evaluate(self, tensors: Any) -> Any:
        """Values of tensors, nested at will, in a session of their own."""
        with Session() as session:
            return session.run(tensors)

    def run_op_benchmark(
        self,
        sess: Session,
        op_or_tensor: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: Mapping[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Run an operation again and again, and report the median time.

        Args:
            sess: The session.
            op_or_tensor: What to run. The values of tensors are not fetched.
            feed_dict: Values to feed.
            burn_iters: Runs that are not counted.
            min_iters: Runs that are.
            store_trace: Record one more run, as the extra ``step_stats``: the text of its statistics.
            store_memory_usage: Accepted, without effect: there is no record of peak memory.
            name: Of the benchmark; see `report_benchmark`.
            extras: Numbers or texts by name.
            mbs: Megabytes that a run moves, for the throughput.

        Returns:
            What is reported, by name.
        """
        op = op_or_tensor.op if isinstance(op_or_tensor, Tensor) else op_or_tensor
        if not isinstance(op, Operation):
            op = sess.graph.as_graph_element(op)
        for _ in range(burn_iters):
            sess.run(op, feed_dict)
        seconds = []
        gc.disable()
        try:
            for _ in range(min_iters):
                start = time.perf_counter()
                sess.run(op, feed_dict)
                seconds.append(time.perf_counter() - start)
        finally:
            gc.enable()
        found: dict[str, Any] = {f"wall_time_{word}": float(f(seconds)) for word, f in _SUMMARIES.items()}
        found |= dict(extras or {})
        if store_trace:
            metadata = RunMetadata()
            sess.run(op, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
            found["step_stats"] = str(metadata.step_stats)
        median = float(np.median(seconds))
        throughput = mbs / median if mbs else None
        self.report_benchmark(iters=min_iters, wall_time=median, throughput=throughput, extras=found, name=name)
        return {
            "iters": min_iters,
            "wall_time": median,
            "throughput": mbs / median,
            "extras": found,
            "name": self._full_name(name),
        }


_SUMMARIES: dict[str, Any] = {"mean": np.mean, "stdev": np.std, "min": np.min, "max": np.max}


def benchmark_config() -> ConfigProto:
    """Options for a session of a benchmark: graphs are run as written, so that nothing is measured that is left out."""
    return ConfigProto(graph_options=GraphOptions(optimizer_options=OptimizerOptions(opt_level=OptimizerOptions.L0)))


def run_benchmarks(pattern: str) -> int:
    """Run the benchmarks of the program whose names match an expression, and return how many there were."""
    count = 0
    for kind in list(Benchmark._kinds):
        for name in sorted(name for name in dir(kind) if name.startswith("benchmark")):
            if pattern == "all" or re.search(pattern, f"{kind.__name__}.{name}"):
                print(f"running {kind.__name__}.{name}", file=sys.stderr)
                getattr(kind(), name)()
                count += 1
    return count
