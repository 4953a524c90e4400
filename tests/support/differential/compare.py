"""Make a random program, run it on both sides, and say how they differ."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import tfray as tf
from tests.support.differential.calls import FLOATS, INTS, MAKERS, Made, Pool
from tests.support.differential.families import FAMILY_MAKERS
from tests.support.differential.networks import NETWORK_MAKERS
from tests.support.differential.side import (
    Side,
    build,
    decoded,
    each_alone,
    encoded,
    initialize,
    numbers_in,
    placeholders,
    source_values,
)

SHAPES = [
    [],
    [3],
    [1],
    [2, 3],
    [3, 3],
    [2, 2],
    [1, 3],
    [4, 2],
    [2, 3, 4],
    [2, 4, 4, 3],
    [1, 5, 6, 4],
    [0, 3],
    [2, 3, 3],
]
SOURCES = (*FLOATS, "float32", "float32", *INTS, "bool", "string")
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-7, "complex128": 1e-7}


LOOSE = {"linalg.expm": 20.0}
"""By function whose results TensorFlow rounds more coarsely: how many times the tolerance holds for it. Its exponential
of a matrix of float32, of norm 5, is off by 1e-4 of the value in float64; that of SciPy by 7e-7."""

LIMIT_S = 30.0
"""How long either side may take for a program."""

START_LIMIT_S = 300.0
"""How long the peer may take to import TensorFlow: on a busy machine more than a program may."""

LIFETIME = 400
"""Programs that one peer takes: TensorFlow keeps some memory of each graph."""


class Peer:
    """TensorFlow in an interpreter of its own, which takes many programs, one after the other.

    Args:
        python: The interpreter.
    """

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._taken = 0

    def answer(self, program: dict[str, Any]) -> dict[str, Any] | None:
        """What TensorFlow makes of a program; None if its process ends, or is too slow."""
        if self._taken == LIFETIME:
            self.close()
        if self._process is None:
            self._start()
        self._taken += 1
        self._process.stdin.write(json.dumps(program).encode() + b"\n")
        self._process.stdin.flush()
        line = self._line(LIMIT_S)
        if line is None:
            self.close()
        return line and json.loads(line)

    def _line(self, limit_s: float) -> bytes | None:
        line, ends = bytearray(), time.monotonic() + limit_s
        pipe = self._process.stdout.fileno()
        while not line.endswith(b"\n"):
            is_ready, _, _ = select.select([pipe], [], [], max(0.0, ends - time.monotonic()))
            more = os.read(pipe, 1 << 20) if is_ready else b""
            if not more:
                return None
            line += more
        return bytes(line)

    def _start(self) -> None:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        environment.pop("PYTHONPATH", None)
        self._taken = 0
        self._process = subprocess.Popen(
            [self._python, "-m", "tests.support.differential.side"],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        if self._line(START_LIMIT_S) is None:
            self.close()
            raise RuntimeError(f"{self._python} does not import TensorFlow within {START_LIMIT_S} s")

    def close(self) -> None:
        """End it."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(60)
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = None


class TooSlow(Exception):
    """A program of tfray takes too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what runs here with `TooSlow` after some seconds. A timer that is set already goes on."""

    def ring(*_: Any) -> None:
        raise TooSlow(f"more than {seconds} s")

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)))


def make_program(seed: int) -> dict[str, Any]:
    """A program, with the values of its tensors by tfray."""
    random = np.random.default_rng(seed)
    pool = Pool(random)
    sources = []
    for _ in range(int(random.integers(2, 6))):
        shape = pool.choose(SHAPES)
        static = [None if pool.chance(0.1) else size for size in shape]
        sources.append(
            {
                "dtype": pool.choose([*FLOATS, "float32", "float32", *INTS, "bool", "string"]),
                "shape": shape,
                "static": static,
            }
        )
    program: dict[str, Any] = {"seed": seed, "sources": sources, "calls": []}
    with tf.Graph().as_default():
        side = Side(tf, placeholders(tf, program))
        feeds = dict(zip(side.tensors.values(), source_values(program), strict=True))
        pool.made = [Made(n, each["dtype"], tuple(each["static"])) for n, each in enumerate(sources)]
        for _ in range(int(random.integers(5, 41))):
            call = pool.choose(pool.choose([MAKERS, FAMILY_MAKERS, NETWORK_MAKERS]))(pool)
            if call is None:
                continue
            call = json.loads(json.dumps(asdict(call)))
            first = len(side.tensors)
            made = build(tf, side, call)
            call["results"] = list(range(first, len(side.tensors)))
            program["calls"].append(call)
            if isinstance(made, list):
                pool.made += [Made(first + i, d, None if s is None else tuple(s)) for i, (d, s) in enumerate(made)]
        forms = {
            n: [t.dtype.name, t.shape.as_list() if t.shape.rank is not None else None] for n, t in side.tensors.items()
        }
        program["forms"] = forms
        values, program["at_once"] = _values(side.tensors, feeds)
        program["values"] = {number: encoded(value) for number, value in values.items()}
    return program


def _values(tensors: dict[int, Any], feeds: dict[Any, Any]) -> tuple[dict[int, np.ndarray], bool]:
    """The values of all tensors in one step, or, where that fails, of those that can be computed in several; which.

    Each step has a session of its own: what one leaves in a queue may hold up another.
    """
    try:
        with tf.Session() as session:
            initialize(tf, session)
            return dict(zip(tensors, session.run(list(tensors.values()), feeds), strict=True)), True
    except tf.errors.OpError:
        if len(tensors) == 1:
            return {}, False
        numbers = list(tensors)
        halves = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
        first, last = (_values({number: tensors[number] for number in half}, feeds)[0] for half in halves)
        return {**first, **last}, False


UNANSWERED: list[int] = []
"""Seeds of programs at which the peer ended: some mistakes end TensorFlow's process."""


def differences(seed: int, peer: Peer) -> list[str]:
    """How tfray and TensorFlow differ on the program of this seed."""
    try:
        with limited(LIMIT_S):
            program = make_program(seed)
            ours = each_alone(tf, program)
    except TooSlow as error:
        return [f"seed {seed}: {error}"]
    theirs = peer.answer(program)
    if theirs is None:
        UNANSWERED.append(seed)
        return []
    values = {number: decoded(value) for number, value in program["values"].items()}
    found = []
    for call, mine, other in zip(program["calls"], ours, theirs, strict=True):
        if mine is None or other is None or _is_theirs(other):
            continue
        says = _difference_when_built(mine, other)
        if says is None and "forms" in mine and "forms" in other:
            is_alike = program["at_once"] and call["function"] not in OF_THE_PROGRAM
            says = _difference_when_run(call, mine, other, values, values if is_alike else {})
        if says is not None and not _is_deliberate(call, says):
            inputs = {
                n: program["forms"][n] for n in numbers_in([call["args"], call["options"]]) if n in program["forms"]
            }
            found.append(
                f"seed {seed}: {call['function']} {json.dumps([call['args'], call['options']])} {inputs}: {says}"
            )
    return found


def _said(error: dict[str, Any]) -> str:
    return f"{error['error'][0]}: {error['message'][:160]}"


def _is_theirs(answer: dict[str, Any]) -> bool:
    """Whether TensorFlow 2.21 refuses what it has no kernel or no gradient for, or no longer has."""
    said = answer.get("message", "")
    return any(
        words in said
        for words in (
            "OpKernel",
            "len is not well defined",
            "object has no attribute",
            "device for node",
            "Keras 3",
            "not in list of allowed values",
            "No gradient defined",
            "symbolic `tf.Tensor`",
            "not yet support",
            "inputs rank not in",
            "Expected bool for",
            "only supports",
            "unsupported operand type",
        )
    )


def _difference_when_built(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    if "forms" in ours and "forms" in theirs:
        for mine, other in zip(ours["forms"], theirs["forms"], strict=False):
            if mine[0] != other[0] or not _knows_more(mine[1], other[1]):
                return f"built as {mine}, TensorFlow {other}"
        count = len(theirs["forms"])
        return None if len(ours["forms"]) == count else f"{len(ours['forms'])} results, TensorFlow {count}"
    if "forms" in ours:
        return f"is built; TensorFlow raises {_said(theirs)}"
    if "forms" in theirs and not ("error" in theirs and _is_found_earlier(ours, theirs)):
        return f"raises {_said(ours)}; TensorFlow builds it"
    if "forms" not in theirs and not _same_kind(ours, theirs):
        return f"raises {_said(ours)}; TensorFlow {_said(theirs)}"
    return None


def _knows_more(mine: Any, other: Any) -> bool:
    """Whether a static shape says all that another does, and more."""
    if other is None:
        return True
    return (
        mine is not None
        and len(mine) == len(other)
        and all(b is None or a == b for a, b in zip(mine, other, strict=True))
    )


def _is_found_earlier(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether what is refused at once fails in TensorFlow when it runs, where a ValueError has another name."""
    return _same_kind(ours, theirs) or (theirs["error"][0] == "InvalidArgumentError" and "ValueError" in ours["error"])


ACCIDENTS = (
    "InternalError",
    "AbortedError",
    "AssertionError",
    "AttributeError",
    "IndexError",
    "NotImplementedError",
    "KeyError",
)
"""What TensorFlow raises where it does not look at an argument, or calls a division by zero."""


def _same_kind(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    names, kind = ours["error"], theirs["error"][0]
    if kind in names or kind in ACCIDENTS or kind.startswith("OperatorNotAllowed") or "None" in ours["message"]:
        return True
    # Of an argument of a wrong dtype and a wrong shape either may be said.
    return (
        kind == "TypeError"
        and re.search(r"type|^Expected|not supported between|can be converted", theirs["message"]) is not None
        and "ValueError" in names
    )


DELIBERATE = [
    ("image.rgb_to_hsv", "gradient", "TensorFlow's are others where channels are equal or 0"),
    ("strings.bytes_split strings.unicode_decode strings.unicode_split", "", "sparse: there are no ragged tensors"),
    ("nn.fractional_max_pool nn.fractional_avg_pool", "built as", "TensorFlow's sizes of the sequences are wrong"),
    ("sparse.concat", "a gradient is there", "made of operations that have gradients"),
    ("sparse.maximum sparse.minimum", "gradients: TensorFlow", "TensorFlow's gradient function fails"),
    ("snippet.parted", "built as", "TensorFlow computes constant partitions"),
    ("snippet.normalized", "gradient", "the mean and variance have gradients here"),
    ("sort", "gradients: TensorFlow", "TensorFlow's gradient of nothing sorted fails"),
    ("digamma", "gradient", "TensorFlow's trigamma is negative left of 0"),
    ("extract_image_patches nn.dilation2d nn.erosion2d", "spans", "TensorFlow allows windows that fit nowhere by one"),
    ("signal.hann_window signal.hamming_window", "raises TypeError", "a float as `periodic`"),
    ("random.stateless_", "result", "the numbers are others"),
    ("fake_quant_with_min_max_", "gradient", "gradients of gradients, of which 1.15 has none"),
    ("math.bessel_i1", "gradient", "TensorFlow's slope at 0 is 1 where it is a half"),
    ("nn.atrous_conv2d", "remapping", "one rate for both axes may be nested"),
    ("", "raises UnimplementedError: Cast", "a cast that does not exist is refused when it is built"),
    ("image.resize_image_with_pad", "result", "computed in float64, as in 1.15"),
    ("image.central_crop", "Python `bool` is not allowed", "as in 1.15: later versions take a tensor"),
    ("image.ssim", "result", "a mean of numbers that cancel"),
    ("shape_n", "Expected list", "what can be iterated over is taken"),
    ("snippet.clipped_together", "result", "a norm below 0 has no meaning"),
    ("saturate_cast", "result", "TensorFlow's limits of int64 are wrong"),
    ("snippet.array_of_rows", "Could not write", "elements of several lengths need no infer_shape=False"),
    ("nn.avg_pool nn.max_pool", "None|are required", "sizes are needed here"),
    ("", "argument to '(conv|max_pool)", "one stride for all"),
    ("histogram_fixed_width_bins", "expected .2.", "a range has two bounds"),
    ("snippet.second_gradients", "2 results, TensorFlow 3", "no gradient of what is constant, where TensorFlow has 0"),
    ("strings.format", "Expected list", "one input that is a text"),
    ("debugging.assert_all_finite", "Expected string", "a message that is a number"),
    ("signal.dct signal.idct", "type 4", "as in 1.15: later versions have a fourth"),
    ("nn.depthwise_conv2d", "None values not supported", "filters of unknown sizes, with a rate"),
    ("nn.safe_embedding_lookup_sparse", "slice index 1|must be equal rank", "rows of a table that are no vectors"),
    ("nn.ctc_loss_v2", "result", "more labels than there are: they cannot be read"),
    ("fake_quant_with_min_max_vars_gradient", "result", "bounds in the wrong order"),
    ("nn.conv3d", "passed list of length|contain 5 values", "one stride for all"),
    ("matrix_diag", "Cast", "a number beside strings"),
    ("strings.as_string", "string has no precision", "refused when it is built"),
    ("sparse.reduce_", "is out of range", "refused when it is built"),
    ("eye", "must have rank 0", "refused when it is built"),
    ("image.crop_and_resize", "expected type of int32", "sizes may be int64"),
    ("nn.depthwise_conv2d", "object is not iterable", "one rate for both axes"),
    ("meshgrid", "of one dtype", "as in 1.15: later versions multiply truth values"),
    ("tensordot", "slice scalar input", "a scalar tensor says how many axes, as a number does"),
    ("image.resize_images", "1-D int32 Tensor", "sizes may be int64"),
    ("nn.softmax_cross_entropy_with_logits", "Cannot reshape|must be equal|Incompatible", "both broadcast"),
    ("linspace", "a gradient is None", "as in 1.15: later versions make it of operations with gradients"),
    ("svd", "gradient: at", "singular values that are equal have no gradients of their own"),
    ("linspace", "DataType complex", "as in 1.15: of real numbers"),
    ("sparse.merge sparse.reorder", "is not a shape|is not within", "what is outside of the shape is refused"),
    ("nn.collapse_repeated", "Cast", "a number of strings"),
    ("snippet.pipeline", "truth value", "drop_remainder is a bool"),
    ("nn.lrn", r"gradient: at .*\(nan\), T", "a base below 0, of which TensorFlow computes no power in gradients"),
    ("math.reduce_euclidean_norm", r"gradient: at .*\(nan\), T", "the squares overflow"),
    ("nn.ctc_loss_v2", "are blanks, and|must not be neg|_length must|for \\d+ time", "no blanks, lengths or paths"),
    ("nn.ctc_loss_v2", r"Shapes \(\d+,\) and \(\d+,\)", "one length, or one row of labels, for all"),
    ("nn.ctc_greedy_decoder nn.ctc_beam", "sequence_length must be", "lengths below 0 are refused"),
    ("nn.ctc_", "FailedPreconditionError", "refused when it is built"),
    ("nn.ctc_unique_labels", "TensorArray has size zero", "no examples"),
    ("unravel_index", "is not within|runs; ", "places below 0 are refused, and there may be none"),
    ("image.adjust_gamma", r"result .*-(21474|92233)\d+", "what is no number becomes 0"),
    ("image.adjust_gamma", r"result .*np\.float64", "in float64, which TensorFlow rounds to float32 first"),
    ("erf", r"\(-?1\.0\), TensorFlow .*nan", "the square of a large number overflows"),
    ("betainc", "Shapes must be equal rank|Dimension", "the shapes broadcast"),
    ("constant", "object is not iterable", "one size is a shape of one dimension"),
    ("required_space_to_batch_paddings", "not fully defined", "a number of axes that only a step knows"),
    ("argsort sort", "axis must be integers", "TensorFlow cuts off fractions of an axis"),
    ("matrix_diag", r"built as .*\[None", "TensorFlow takes an unknown size for 0"),
    ("nn.softmax_cross_entropy_with_logits", "built as .*, \\[1\\]\\], TensorFlow .*, \\[\\]\\]", "both broadcast"),
    ("nn.conv nn.depthwise_conv2d_backprop", "must be rank [45]", "TensorFlow's gradients of nothing are zeros"),
    ("matrix_square_root", "not invertible", "what is no number has no gradient, and stops no step"),
    ("clip_by_average_norm", "result", "a norm below 0 has no meaning"),
    ("matrix_solve", "must be equal rank", "batches broadcast"),
    ("math.polyval", "is string", "where a constant is evaluated is looked at"),
    ("tensor_scatter_nd_", "empty output shape", "places of no coordinates are the whole"),
    ("clip_by_average_norm", "type float32 that does not match type float64", "TensorFlow counts in float32"),
    ("nn.moments", "Expected list for 'axis'", "axes that only a step knows"),
    ("nn.batch_normalization", "can only concatenate", "a list is a tensor"),
    ("histogram_fixed_width", "runs; ", "a number of bins that only a step knows is not looked at"),
    ("roll", "must be equal rank", "as in 1.15: one axis in a list stands beside a number"),
    ("signal.overlap_and_add", r"built as .*\b0\]\], T", "no frames make no samples"),
    ("batch_gather", "is not in", "TensorFlow takes what is beyond a row from the next one"),
    ("boolean_mask", "Cannot reshape", "a mask of another shape is refused"),
    ("space_to_batch_nd batch_to_space_nd", "must have known size", "a number of axes that only a step knows"),
    ("ensure_shape", "must be rank -1", "an unknown shape is one"),
    ("broadcast_dynamic_shape", r"Incompatible shapes: .*-", "sizes below 0 are refused"),
    ("signal.", "must have length of at least", "TensorFlow does not fill up what is empty"),
    ("signal.rfft signal.irfft", r"result \d+: .*\(0(j|\.0)\), T", "TensorFlow leaves what has no input as it is"),
    ("signal.frame", "built as .*None", "steps of 0 lead nowhere"),
    ("signal.overlap_and_add", "DataType bool", "refused when it is built"),
    ("sparse.transpose", r"Shapes \(0,\)", "an order of no dimensions"),
    ("sparse.expand_dims", "axis must be an integer or None, got <tf.Tensor", "an axis that is a tensor"),
    ("sparse_to_dense", "calculated input gradient", "TensorFlow's gradient of one value for all fails"),
    ("nn.conv", "the filters take", "as in 1.15: later versions convolve by groups"),
    ("nn.max_pool1d nn.avg_pool1d", "built as|exactly one of pooling|Negative", "windows and strides over channels"),
    ("nn.softmax nn.log_softmax", "does not permute|Requires start", "TensorFlow takes another axis than it is told"),
    ("losses.cosine_distance", "DataType (float32|string) not", "an axis that is no integer is refused"),
    ("snippet.updated", "are incompatible", "updates of another shape than their part"),
    ("snippet.optimized", "learning_rate must be", "refused when it is made"),
    ("snippet.optimized", r"result .*\(nan\), T", "a variable that is no number stays none"),
    ("snippet.array_of_rows", "has size zero", "there may be no rows"),
    ("signal.linear_to_mel_weight_matrix", "a gradient is None", "as `linspace`"),
    ("snippet.parsed", "expected float32", "a default of another dtype is refused when it is built"),
    ("snippet.custom", "Mul: Input 'y'", "TensorFlow makes truth values of a gradient"),
    ("random.categorical", "result", "the numbers are others"),
    ("snippet.checked", "object is not iterable", "TensorFlow looks at the message first"),
    ("snippet.checked", "must be a sequence", "TensorFlow converts by itself what stands beside a tensor"),
    ("snippet.pipeline", "Mul: .* has DataType bool", "as in 1.15: later versions multiply truth values"),
    ("snippet.normalized", "give mean and variance", "None stands for True"),
    ("snippet.hessian", "must be known", "sizes are needed here"),
    ("reduce_", "DynamicStitch", "TensorFlow's gradient fails at an axis of int64"),
]  # fmt: skip
"""Functions (or how their names begin), words of the difference (a pattern), and why it stays."""


def _is_deliberate(call: dict[str, Any], says: str) -> bool:
    function = call["function"]
    if any(
        function.startswith(tuple(names.split()) or "") and re.search(words, says) for names, words, _ in DELIBERATE
    ):
        return True
    return _takes_the_dtype_beside(call, says) or _is_wrong_in_tensorflow(call, says) or _is_rounding(call, says)


def _takes_the_dtype_beside(call: dict[str, Any], says: str) -> bool:
    """Whether a value of Python beside a tensor has that one's dtype here, while TensorFlow converts it by itself."""
    given = [*call["args"], *call["options"].values()]
    plain = [value for value in given if isinstance(value, (bool, int, float, list)) and not numbers_in(value)]
    return bool(plain) and re.search("is built; .*(does not match|Tensor conversion requested)", says) is not None


def _is_wrong_in_tensorflow(call: dict[str, Any], says: str) -> bool:
    """Whether it is a convolution of unequal strides: NumPy gives other numbers than TensorFlow."""
    strides = call["options"].get("strides")
    is_unequal = isinstance(strides, list) and len(strides) == 4 and strides[1] != strides[2]
    return is_unequal and call["function"] == "nn.conv2d" and says.startswith("result")


def _is_rounding(call: dict[str, Any], says: str) -> bool:
    """Whether it is the gradient of ``x / x``, a difference of two equal numbers."""
    is_quotient = re.search("div|mod", call["function"]) is not None
    return is_quotient and call["args"][0] == call["args"][-1] and says.startswith("gradient")


OF_THE_PROGRAM = ("snippet.gradient_options",)
"""Where a call by itself and in its program give different results: tensors given may depend on each other there."""

OWN_GRADIENTS = ("cumprod", "clip_by_value")
"""At factors of 0 the gradient is the true one here, where TensorFlow gives 0; and at NaN it is that of 1.15."""

UNORDERED = (
    "sort",
    "argsort",
    "argmax",
    "argmin",
    "arg_max",
    "arg_min",
    "nn.top_k",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_min",
    "segment_max",
    "segment_min",
    "unsorted_segment_max",
    "unsorted_segment_min",
    "nn.max_pool",
    "strings.format",
    "strings.as_string",
)
"""What these make of NaN is not defined, and depends on the processor in TensorFlow. In texts it has a sign there."""


SUMS = (
    "reduce_sum",
    "reduce_mean",
    "add_n",
    "accumulate_n",
    "cumsum",
    "segment_sum",
    "matmul",
    "tensordot",
    "einsum",
    "snippet.called",
    "snippet.gradient_options",
)
"""What these leave of terms that cancel out is as exact as the terms."""


def _difference_when_run(
    call: dict[str, Any], ours: Any, theirs: Any, values: dict[int, Any], whole: dict[int, Any]
) -> str | None:
    if "error" in ours or "error" in theirs:
        if "error" not in theirs:
            return f"fails when it runs: {_said(ours)}"
        if "error" not in ours:
            return f"runs; TensorFlow raises {_said(theirs)}"
        same = _same_kind(ours, theirs)
        return None if same else f"raises {_said(ours)}; TensorFlow {_said(theirs)}"
    inputs = [values[number] for number in numbers_in([call["args"], call["options"]])]
    is_nan_given = any(x.dtype.kind in "fc" and np.isnan(x).any() for x in inputs)
    if call["function"] in ("nn.softmax", "nn.log_softmax"):  # infinity less infinity
        is_nan_given = is_nan_given or any(x.dtype.kind == "f" and np.isinf(x).any() for x in inputs)
    if is_nan_given and call["function"].startswith(UNORDERED):
        return None
    if any(map(_holds_denormals, inputs)):
        return None
    if call["function"] == "cast" and any(not _fits_byte(x) for x in inputs):
        return None
    least = max([1e-3, *map(_largest, inputs)]) if call["function"].startswith(SUMS) else 1e-3
    loose = LOOSE.get(call["function"], 1.0)
    for number, mine, other in zip(call["results"], ours["values"], theirs["values"], strict=False):
        says = _unequal(decoded(mine), decoded(other), is_nan_given, loose, least)
        if says is None and number in whole:  # in the whole program it is computed in other ways
            says = _unequal(whole[number], decoded(other), is_nan_given, loose=10.0, least=least)
        if says:
            return f"result {number}: {says}"
    if call["function"] in OWN_GRADIENTS and (is_nan_given or any((x == 0).any() for x in inputs)):
        return None
    if call["function"] == "svd" and any(map(_is_singular, inputs)):
        return None  # the singular vectors of 0, of which the gradient is made, may be any
    given = [x.dtype.name for x in inputs] + _dtypes_in([call["args"], call["options"]])
    # What single precision goes into is no more exact, of whatever dtype it is.
    coarse = TOLERANCE["float32"] if "float32" in given else 0.0
    return _difference_of_gradients(ours["gradients"], theirs["gradients"], is_nan_given, coarse)


def _dtypes_in(value: Any) -> list[str]:
    """The dtypes of the arrays among arguments."""
    if isinstance(value, list):
        return [name for each in value for name in _dtypes_in(each)]
    if isinstance(value, dict):
        return [value["of"]] if "of" in value else [name for each in value.values() for name in _dtypes_in(each)]
    return []


def _largest(array: np.ndarray) -> float:
    """The largest of the finite numbers, without signs."""
    numbers = np.abs(array[np.isfinite(array)]) if array.dtype.kind in "fc" else np.zeros(0)
    return float(numbers.max(initial=0))


def _holds_denormals(array: np.ndarray) -> bool:
    """Whether there are numbers that TensorFlow takes for 0, as it lets the processor flush them."""
    if array.dtype.kind not in "fc":
        return False
    parts = np.abs(np.stack([array.real, array.imag]))
    return bool(((parts > 0) & (parts < np.finfo(array.dtype).tiny)).any())


def _is_singular(matrices: np.ndarray) -> bool:
    """Whether some matrix has a singular value of 0, but for rounding."""
    if not np.isfinite(matrices).all() or not matrices.size:
        return True
    return bool((np.linalg.matrix_rank(matrices) < min(matrices.shape[-2:])).any())


def _fits_byte(array: np.ndarray) -> bool:
    """Whether no number is beyond a byte: what a cast makes of such floats is not defined."""
    return array.dtype.kind != "f" or bool(((array > -1) & (array < 256)).all())


def _difference_of_gradients(ours: Any, theirs: Any, is_nan_given: bool, coarse: float) -> str | None:
    failed = [isinstance(each, dict) for each in (ours, theirs)]
    if any(failed):
        if all(failed):
            return None
        if failed[0]:
            return f"gradients: {_said(ours)}"
        if theirs["error"][0] in ("LookupError", *ACCIDENTS) or _is_theirs(theirs):
            return None  # there is a gradient here where TensorFlow has none
        return f"gradients: TensorFlow raises {_said(theirs)}"
    for mine, other in zip(ours, theirs, strict=True):
        if (mine is None) != (other is None):
            return f"a gradient is {mine and 'there'}, TensorFlow's {other and 'there'}"
        if mine is not None:
            # Terms of a gradient may cancel out: what is left is as exact as they were.
            says = _unequal(decoded(mine), decoded(other), is_nan_given, loose=20.0, least=0.5, coarse=coarse)
            if says:
                return f"gradient: {says}"
    return None


def _unequal(
    mine: np.ndarray,
    other: np.ndarray,
    is_nan_given: bool,
    loose: float = 1.0,
    least: float = 1e-3,
    coarse: float = 0.0,
) -> str | None:
    """How two results differ. Where NaN comes in, tfray may let it out where TensorFlow makes a number of it."""
    if mine.dtype != other.dtype or mine.shape != other.shape:
        return f"{mine.dtype} {mine.shape}, TensorFlow {other.dtype} {other.shape}"
    if mine.dtype.kind not in "fc":
        return None if np.array_equal(mine, other) else f"{mine.tolist()!r:.150}, TensorFlow {other.tolist()!r:.150}"
    tolerance = loose * max(TOLERANCE[mine.dtype.name], coarse)
    finite = np.abs(other[np.isfinite(other)])
    scale = float(finite.max(initial=0)) if finite.size else 0.0
    with np.errstate(all="ignore"):
        close = np.isclose(mine, other, tolerance, tolerance * max(scale, least), equal_nan=True)
    close |= np.isinf(mine) & ~np.isfinite(other)  # at a pole, or at infinity, a limit may stand for NaN
    huge = np.sqrt(np.finfo(mine.dtype).max)  # parts may overflow in one order of computing, and not in another
    with np.errstate(all="ignore"):
        close |= ~np.isfinite(mine) & (np.abs(other) > huge) | ~np.isfinite(other) & (np.abs(mine) > huge)
    if is_nan_given:
        close |= np.isnan(mine)
    if close.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"at {list(place)} {mine[place]!r}, TensorFlow {other[place]!r}"


def main() -> None:
    """Print the differences of some seeds: ``python -m tests.support.differential.compare PYTHON FIRST LAST``."""
    python, first, last = sys.argv[1:]
    peer = Peer(python)
    count = 0
    for seed in range(int(first), int(last)):
        if seed % 100 == 0:
            print(f"# {seed} {time.strftime('%H:%M:%S')}", flush=True)
        for line in differences(seed, peer):
            count += 1
            print(line, flush=True)
    peer.close()
    print(f"TensorFlow ended at {UNANSWERED}" if UNANSWERED else "TensorFlow answered all")
    print(f"{count} differences in {int(last) - int(first)} programs")


if __name__ == "__main__":
    main()
