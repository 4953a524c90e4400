"""tfray's samples of operations (`tests/support/op_samples`), run on the GPU device and compared with the CPU kernels.

To be imported after `pretend.open_gpu`: the tests ask for a GPU as they are imported.
"""

from __future__ import annotations

import argparse
import collections
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tfray as tf
from tests.support import op_calls as samples
from tests.support.gpu.pretend import GPU
from tests.support.gpu.report import Report, Skipped
from tests.support.interpreter import interpret
from tfray.framework import dtypes
from tfray.framework.effects import has_kernel
from tfray.framework.graph import Graph, Tensor
from tfray.framework.op_def import lookup
from tfray.gradients import gradients
from tfray.runtime.device import Device


def ops(report: Report, options: argparse.Namespace) -> None:
    """Every sample in every dtype: GPU kernel against CPU kernel."""
    wanted = set(options.dtypes.split(",")) if options.dtypes != "all" else None
    groups: dict[str, list] = collections.defaultdict(list)
    for case in samples.CASES:
        sample, dtype = case.values
        if not re.search(options.only, sample.op) or (wanted is not None and _name(dtype) not in wanted):
            continue
        if "GPU" not in lookup(sample.op).kernels:
            report.skipped[sample.op] += 1
        elif dtype is not dtypes.bfloat16 or options.bfloat16:
            groups[sample.op].append((sample, dtype))

    def run_one(report: Report, item: tuple[Any, Any]) -> None:
        sample, dtype = item

        def work() -> None:
            feeds, outputs = samples.build(sample, sample.arrays(dtype), "known")
            for tensor, value, want in _on_both(report, outputs, feeds):
                samples.assert_equal(value, want, 4 * sample.tolerance, f"{tensor!r}")
                samples.assert_as_inferred(tensor, value, False)

        _run(report, sample, dtype, work)

    _run_all(report, groups, run_one, options)


def gradients_of_ops(report: Report, options: argparse.Namespace) -> None:
    """Gradients of every differentiable operation, likewise."""
    groups: dict[str, list] = collections.defaultdict(list)
    for sample in samples.DIFFERENTIABLE:
        if not re.search(options.only, sample.op):
            continue
        if "GPU" not in lookup(sample.op).kernels:
            report.skipped[sample.op] += 1
        else:
            swept = [d for d in sample.swept_dtypes() if d is None or (d.is_floating and d is not dtypes.bfloat16)]
            chosen = [d for d in swept if d in (None, dtypes.float32)] or swept[:1]
            groups[sample.op] += [(sample, dtype) for dtype in chosen]

    def run_one(report: Report, item: tuple[Any, Any]) -> None:
        sample, dtype = item

        def work() -> None:
            feeds, outputs = samples.build(sample, sample.arrays(dtype), "known")
            found = _gradients(sample, feeds, outputs)
            if found:
                for tensor, value, want in _on_both(report, found, feeds):
                    samples.assert_equal(value, want, 30 * sample.tolerance, f"{tensor!r}")

        _run(report, sample, dtype, work)

    _run_all(report, groups, run_one, options)


def sessions(report: Report, options: argparse.Namespace) -> None:
    """Values and gradients by two steps of a session on /gpu:0, with soft placement for what has no kernel there."""
    groups: dict[str, list] = collections.defaultdict(list)
    for sample in samples.SAMPLES:
        if re.search(options.only, sample.op):
            groups[sample.op].append(sample)

    def run_one(report: Report, sample: Any) -> None:
        dtype = samples.session_dtype(sample)

        def work() -> None:
            if dtype is dtypes.bfloat16 and not options.bfloat16:
                raise Skipped
            with tf.device("/gpu:0"):
                feeds, fetches = samples.build(sample, sample.arrays(dtype), "known")
                fetches = fetches + _gradients(sample, feeds, fetches)
            wanted = interpret(fetches, feeds)
            with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
                first = [np.array(value, copy=True) for value in session.run(fetches, feeds)]
                report.recorder.reset()
                second = session.run(fetches, feeds)
            for tensor, want, values in zip(fetches, wanted, zip(first, second, strict=True), strict=True):
                for value in values:
                    samples.assert_equal(value, want, 30 * sample.tolerance, f"{tensor!r}")

        _run(report, sample, dtype, work)

    _run_all(report, groups, run_one, options)


def _name(dtype: Any) -> str:
    return dtype.name if dtype else "as_is"


def _run(report: Report, sample: Any, dtype: Any, work: Callable[[], None]) -> None:
    with Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report.run(sample.op, f"{sample}-{_name(dtype)}", work)


def _run_all(report: Report, groups: dict[str, list], run_one: Callable, options: argparse.Namespace) -> None:
    first, step = options.share
    groups = {name: groups[name] for name in sorted(groups)[first::step]}
    if options.isolate:
        report.run_isolated(groups, run_one, options.seconds)
    else:
        for items in groups.values():
            for item in items:
                run_one(report, item)


def _gradients(sample: Any, feeds: Any, outputs: list) -> list:
    """Gradients of the outputs in those inputs of the sample that have one."""
    fed = samples.enumerate_fed(sample, feeds, "known")
    xs = [tensor for index, tensor in fed if index in sample.differentiable_inputs()]
    ys = [tensor for tensor in outputs if tensor.dtype.is_differentiable]
    weights = [tf.ones_like(y) for y in ys]  # complex outputs have no gradient without
    return [d for d in gradients(ys, xs, weights) if isinstance(d, Tensor)] if xs and ys else []


def _on_both(report: Report, tensors: list, feeds: Any) -> Any:
    """Each tensor with its values on the GPU and on the CPU. Counts what the GPU is asked for alone."""
    if not all(has_kernel(op, "GPU") for op in tensors[0].graph.get_operations()):
        raise Skipped
    wanted = interpret(tensors, feeds)
    report.recorder.reset()
    return zip(tensors, interpret(tensors, feeds, Device.open(GPU)), wanted, strict=True)
