"""Random calls of the public interface, most of them wrong, each run in a process of its own.

A call is an expression of Python, so that one that fails can be pasted into a program::

    python tests/support/wrong_calls.py "tf.nn.relu(None)"

It passes when it gives something, or raises an error that is for the person who made the call (`complaint`).
"""

from __future__ import annotations

import ast
import dis
import enum
import inspect
import json
import os
import re
import resource
import select
import shlex
import signal
import sys
import time
import traceback
import types
import typing

from hypothesis import strategies as st

LIMIT_S = 30.0
"""How long a call may take, with the step that runs what it gives."""

MEMORY_BYTES = 8 << 30
"""What a call may ask for: more is refused by the system, and has to be an error."""

STEP_TIMEOUT_MS = 5000

# fmt: off
NAMESPACES = [
    "app", "bitwise", "contrib", "data", "debug", "debugging", "distributions", "estimator", "feature_column", "flags",
    "gfile", "graph_util", "image", "io", "keras", "layers", "linalg", "logging", "lookup", "losses", "manip",
    "math", "metrics", "nn", "onnx", "profiler", "python_io", "quantization", "queue", "random", "regularizers",
    "resource_loader", "saved_model", "sets", "signal", "sparse", "spectral", "strings", "summary", "test",
    "timeline", "train", "tune", "initializers", "errors",
]
# fmt: on
OF_THE_PROJECT = ("tfray.framework", "tfray.runtime", "tfray.formats", "tfray.actors", "tfray.errors")
"""Where names that a namespace holds are its own imports, unless they are public elsewhere."""

OWN = tuple(f"tfray.{each}" for each in ("library", "contrib", "estimator", "keras", "onnx", "training"))
"""Where the namespaces are."""

INNER = ("rnn_cell", "slim", "learning", "preprocessing", "experimental", "export", "inputs")
"""Namespaces within others."""

LAST = ("contrib", "estimator", "keras")
"""Namespaces that repeat much of others."""

NOT_CALLED = {
    "tf.app.run": "ends the process, as it should",
    "tf.test.main": "ends the process, as it should",
    "tf.test.TestCase": "is Python's own",
    "tf.Tensor": "is made by operations only",
    "tf.Operation": "is made by graphs only",
    "tf.DType": "is made by tfray only",
}

# -- values --------------------------------------------------------------------------------------------------

WRONG = [
    *("None", "True", "-1", "0", "3", "2**31", "-2**63", "10**30", "0.5", "float('nan')", "float('inf')", "-0.5", "1j"),
    *(
        "''",
        "'5'",
        "'no such thing'",
        "b''",
        "b'\\x00'",
        "'a\\x00b'",
        "'x' * 100000",
        "'é/ ?'",
        "[]",
        "()",
        "{}",
        "set()",
    ),
    *("[None]", "[[]]", "[[1], [2, 3]]", "['a', 1]", "{'a': None}", "{1: 2}", "(1, 2, 3, 4, 5, 6, 7)", "[-1, -1]"),
    *(
        "object()",
        "len",
        "int",
        "lambda: None",
        "lambda *args: args",
        "Exception()",
        "iter([1])",
        "range(3)",
        "slice(1)",
    ),
    *(
        "np.int8(-1)",
        "np.float32('nan')",
        "np.float16(2)",
        "np.bool_(True)",
        "np.str_('a')",
        "np.datetime64('2020-01-01')",
    ),
    *(
        "np.zeros([0])",
        "np.zeros([2, 0, 3], np.float32)",
        "np.ones([1] * 20)",
        "np.array(None)",
        "np.array([1, 'a', None])",
    ),
    *(
        "np.arange(6).reshape(2, 3)",
        "np.array(['a', 'b'])",
        "np.array([b'a'])",
        "np.full([3, 3], np.nan)",
        "np.uint64(2**64 - 1)",
    ),
    *("np.zeros(2, [('a', 'i4')])", "np.array([1j])", "np.array([[True]])", "[2**40, 2**40]"),
    *(
        "tf.constant(1.0)",
        "tf.constant([1, 2])",
        "tf.constant('a')",
        "tf.constant([[True]])",
        "tf.constant([], tf.float64)",
    ),
    *(
        "tf.placeholder(tf.float32)",
        "tf.constant([1j])",
        "tf.zeros([2, 3, 4, 5, 6])",
        "tf.constant(1.0).op",
        "tf.no_op()",
    ),
    *("tf.Variable([[1.0]])", "tf.SparseTensor([[0, 1]], [1.0], [2, 2])", "tf.IndexedSlices([[1.0]], [0])"),
    *("tf.float32", "tf.string", "tf.resource", "tf.TensorShape(None)", "tf.TensorShape([None, 2])", "tf.Graph()"),
    *("tf.train.RunConfig()", "tf.train.AdamOptimizer()", "tf.FIFOQueue(3, [tf.float32])", "tf.data.Dataset.range(3)"),
]
"""What a program may give by mistake."""

TENSORS = [
    ["tf.constant([[1.0, 2.0], [3.0, 4.0]])", "[[1.0, 2.0], [3.0, 4.0]]", "np.eye(2, dtype=np.float32)"],
    ["tf.constant([1.0, 2.0])", "[1.0, 2.0]", "tf.placeholder_with_default([1.0, 2.0], [None])"],
    ["tf.constant(2.0)", "2.0", "0.5"],
    ["tf.constant([0, 1])", "[0, 1]", "np.array([0, 1])", "tf.constant([1, 0], tf.int64)"],
    ["tf.constant(1)", "1", "2"],
    ["tf.ones([1, 4, 4, 2])", "tf.ones([2, 3, 3, 1], tf.float64)"],
    ["tf.ones([2, 3, 4])", "tf.ones([1, 2, 2])"],
    ["tf.constant(['a', 'b'])", "'text'", "[b'a', b'']"],
    ["tf.constant([True, False])", "[True, True]"],
    ["tf.constant([1 + 2j, 0j])", "tf.constant([[1j]])"],
    ["tf.zeros([4, 4, 3], tf.uint8)", "np.zeros([2, 4, 4, 3], np.uint8)"],
    ["tf.SparseTensor([[0, 1]], [1.0], [2, 2])", "tf.SparseTensor([[0, 0], [1, 1]], [0, 1], [2, 2])"],
    ["tf.Variable([[1.0, 2.0], [3.0, 4.0]])", "tf.Variable([1.0, 2.0])"],
    ["[tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]", "[tf.constant(1.0)]"],
]
"""Tensors that many functions take, a row for each kind."""

BY_NAME = [
    (r"^name$|.*_name$|^scope$", ["None", "'n'"]),
    (r".*dtypes$|^types$|^Tout$|^component_types$|^output_types$", ["[tf.float32]", "tf.float32"]),
    (r".*dtype$|.*_type$|^T$", ["tf.float32", "tf.int32", "'float64'", "np.float32"]),
    (r".*shapes$", ["[[2]]", "[None]"]),
    (r".*shape$|^size$|^dims$", ["[2, 2]", "[2]", "[]", "[None, 2]", "tf.constant([2, 2])"]),
    (r".*axis$|.*axes$|^dim$|.*_dim$|.*dimension$", ["0", "-1", "1"]),
    (
        r"^filters$|^units$|^num.*|^n$|^k$|^depth$|.*_size$|.*count$|.*length$|^rate$|^width$|^height$|^capacity$",
        ["2", "1"],
    ),
    (r".*strides?$|^ksize$|.*dilations?$", ["1", "2", "[1, 1, 1, 1]", "[1, 2, 2, 1]"]),
    (r"^padding$", ["'SAME'", "'VALID'"]),
    (r"^paddings$|^crops$", ["[[1, 1], [0, 1]]", "[[0, 0], [0, 0]]"]),
    (r"^data_format$", ["'NHWC'", "'channels_last'", "None"]),
    (r".*(path|file|filename|dir|directory|prefix|pattern|logdir)$", ["'here/f'", "'f'", "'here'"]),
    (r".*(filenames|files|paths)$", ["['f']", "'f'"]),
    (
        r".*(fn|func|function|callable|^body|^cond|initializer|regularizer|activation|map|true_fn|false_fn)\d?$",
        ["lambda *args: args[0]", "lambda: tf.constant(1.0)", "tf.nn.relu", "tf.zeros_initializer()", "None"],
    ),
    (r".*seed2?$", ["1", "None"]),
    (r"^graph$", ["tf.get_default_graph()"]),
    (r"^feature_columns$|.*_columns$", ["[tf.feature_column.numeric_column('a')]"]),
    (r"^hidden_units$", ["[2]", "[3, 1]"]),
    (r"^trainer$", ["tf.train.Trainer(lambda a, b: None, lambda context: iter([(1.0, 1.0)]))"]),
    (r"^(sess|session)$", ["tf.Session()"]),
    (r"^optimizer$|^opt$", ["tf.train.GradientDescentOptimizer(0.1)"]),
    (r"^cells?$|^cell_.*", ["tf.nn.rnn_cell.BasicLSTMCell(2)", "[tf.nn.rnn_cell.GRUCell(2)]"]),
    (r"^dataset$", ["tf.data.Dataset.range(3)"]),
    (r"^grads_and_vars$", ["[(tf.ones([2]), tf.Variable([1.0, 2.0]))]"]),
    (r".*var_list$|^variables$", ["[tf.Variable([1.0, 2.0])]", "None"]),
    (r"^global_step$", ["tf.train.get_or_create_global_step()", "1"]),
    (r"^sparse.*|^sp_.*", TENSORS[11]),
    (r"^.*queue$", ["tf.FIFOQueue(3, [tf.float32])"]),
    (r"^features$", ["{'a': tf.constant([[1.0]])}", "{'a': tf.FixedLenFeature([], tf.float32)}", *TENSORS[0]]),
    (r"^(ref|var|variable|params)$", TENSORS[12]),
    (r"^(inputs|tensors|values|arrays)$", [*TENSORS[13], *TENSORS[0], *TENSORS[5]]),
    (r"^(labels|targets|indices|ids|.*_ids)$", [*TENSORS[3], *TENSORS[0]]),
]
"""Right values by the name of the argument."""

BY_TYPE = {
    "bool": ["True", "False"],
    "str": ["'a'", "'SAME'", "'n'"],
    "int": ["1", "2", "np.int64(2)"],
    "Positive": ["1", "3"],
    "Count": ["0", "2"],
    "float": ["0.5", "1.0", "np.float32(0.1)"],
    "bytes": ["b'a'"],
    "None": ["None"],
}
"""Right values by a word of the annotation."""


def _right(parameter: inspect.Parameter, tensors: list[str]) -> list[str]:
    for pattern, values in BY_NAME:
        if re.fullmatch(pattern, parameter.name):
            return values
    words = re.findall(r"\w+", str(parameter.annotation))
    values = [value for word in words for value in BY_TYPE.get(word, ())]
    if values and "Any" not in words and "Tensor" not in words:
        return values
    return tensors


# fmt: off
CONFIGURATIONS = [
    "tf.train.ScalingConfig", "tf.train.RunConfig", "tf.JobSpec", "tf.ConfigProto", "tf.GPUOptions",
    "tf.GraphOptions", "tf.OptimizerOptions", "tf.RunOptions", "tf.train.ClusterSpec", "tf.train.Saver",
    "tf.train.Supervisor", "tf.train.Scaffold", "tf.train.DynamicEmbedding", "tf.train.CheckpointSaverHook",
    "tf.train.LoggingTensorHook", "tf.train.StopAtStepHook", "tf.train.StepCounterHook",
    "tf.train.SummarySaverHook", "tf.train.NanTensorHook", "tf.train.ProfilerHook", "tf.train.FinalOpsHook",
    "tf.train.FeedFnHook", "tf.train.GlobalStepWaiterHook", "tf.train.MonitoredTrainingSession",
    "tf.train.SessionManager", "tf.train.Coordinator", "tf.train.SessionRunArgs", "tf.train.AdamOptimizer",
    "tf.train.FtrlOptimizer", "tf.train.RMSPropOptimizer", "tf.train.MomentumOptimizer",
    "tf.train.SyncReplicasOptimizer", "tf.train.exponential_decay", "tf.train.polynomial_decay",
    "tf.train.piecewise_constant", "tf.train.cosine_decay", "tf.train.inverse_time_decay",
    "tf.train.noisy_linear_cosine_decay", "tf.train.ExponentialMovingAverage", "tf.train.QueueRunner",
    "tf.DeviceSpec", "tf.FIFOQueue", "tf.RandomShuffleQueue", "tf.train.Trainer", "tf.train.ModelSpec",
    "tf.train.array_input", "tf.train.replica_device_setter", "tf.Session", "tf.variance_scaling_initializer",
    "tf.truncated_normal_initializer", "tf.fixed_size_partitioner", "tf.keras.layers.Dense",
    "tf.keras.layers.Conv2D", "tf.keras.optimizers.Adam", "tf.keras.callbacks.EarlyStopping",
    "tf.contrib.training.HParams", "tf.estimator.RunConfig", "tf.estimator.Estimator", "tf.estimator.TrainSpec",
    "tf.estimator.EvalSpec", "tf.estimator.EstimatorSpec", "tf.estimator.DNNClassifier",
    "tf.estimator.LinearRegressor", "tf.estimator.BestExporter", "tf.estimator.WarmStartSettings",
    "tf.estimator.MultiClassHead", "tf.tune.trainable", "tf.tune.placement_group_factory", "tf.onnx.export",
]
# fmt: on
"""What holds settings, or is made with many."""


# -- what is called -----------------------------------------------------------------------------------------


def public_names() -> dict[str, typing.Any]:
    """The functions and classes of the facade and its namespaces, by the expressions that name them."""
    import tfray as tf

    top = {id(value) for name, value in vars(tf).items() if not name.startswith("_")}
    found: dict[str, typing.Any] = {}
    seen: set[int] = set()

    def walk(module, path, depth):
        held = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
        # What has several names gets the shortest: its own namespace before those within.
        for name in sorted(held, key=lambda name: (isinstance(held[name], types.ModuleType), name in LAST, name)):
            value = held[name]
            if isinstance(value, types.ModuleType):
                parts = path in ("tf.contrib", "tf.keras") or name in INNER
                is_namespace = name in NAMESPACES if depth == 0 else parts
                own = value.__name__.startswith(OWN)
                if is_namespace and own and depth < 3 and id(value) not in seen:
                    seen.add(id(value))
                    walk(value, f"{path}.{name}", depth + 1)
            elif callable(value) and id(value) not in seen and _is_public(value, path in ("tf", "tf.train"), top):
                seen.add(id(value))
                found[f"{path}.{name}"] = value

    walk(tf, "tf", 0)
    return {name: value for name, value in found.items() if name not in NOT_CALLED}


def _is_public(value, is_all, top) -> bool:
    module = getattr(value, "__module__", None) or ""
    if not module.startswith("tfray") or not isinstance(value, (type, types.FunctionType)):
        return False
    if isinstance(value, type) and issubclass(value, (BaseException, enum.Enum)):
        return False  # the call of an enumeration looks a value up, and Python says when there is none
    return is_all or id(value) in top or not module.startswith(OF_THE_PROJECT)


def _parameters(value) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return []


@st.composite
def calls(draw, names: dict[str, typing.Any]):
    """A call of one of `names`, with up to three arguments wrong."""
    name = draw(st.sampled_from(list(names)))
    return name + draw(arguments(names[name]))


@st.composite
def arguments(draw, target):
    """The arguments of a call of `target`, in brackets."""
    parameters = [p for p in _parameters(target) if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    tensors = draw(st.sampled_from(TENSORS))
    wrong = draw(st.sets(st.sampled_from([p.name for p in parameters]), max_size=3)) if parameters else set()
    given = []
    for parameter in parameters:
        needed = parameter.default is parameter.empty
        if parameter.name in wrong:
            expression = draw(st.sampled_from(WRONG))
        elif needed or draw(st.integers(0, 5)) == 0:
            expression = draw(st.sampled_from(_right(parameter, tensors)))
        else:
            continue
        given.append(expression if parameter.kind is parameter.POSITIONAL_ONLY else f"{parameter.name}={expression}")
    slip = draw(st.integers(0, 40))
    if slip == 0:
        given.append("no_such_argument=1")
    elif slip == 1 and given:
        given.pop()
    elif slip == 2:
        given = [draw(st.sampled_from(WRONG)) for _ in range(draw(st.integers(0, 8)))]
    return f"({', '.join(given)})"


# -- command lines --------------------------------------------------------------------------------------------

PLAIN = [
    "",
    "0",
    "1",
    "2",
    "-1",
    "1.5",
    "nan",
    "inf",
    "x",
    "1e9",
    "99999999999999999999",
    "here",
    "f",
    "script.py",
    "²",
    "a b",
]
TARGETS = [
    "script.py:build",
    "script.py:graph",
    "script.py:nothing",
    "script.py:limit",
    "script.py",
    "absent.py:f",
    "",
    ":",
]
SETTINGS = ["steps=2", "steps=x", "steps=None", "steps=-1", "steps=1.5", "steps=[]", "absent=1", "x", "=", "steps="]


@st.composite
def lines(draw):
    """Arguments of the command line, most of them wrong. Those that train do so in this process, for two steps."""
    from tfray import cli

    commands = {name: command for name, command in cli.main.commands.items() if name != "board"}  # it serves for ever
    name = draw(st.sampled_from(sorted(commands)))
    parameters = commands[name].params
    options = [p for p in parameters if p.opts[0].startswith("-") and p.name not in ("post_mortem", "debug", "help")]
    line = [name]
    for parameter in parameters:
        if parameter in options or draw(st.integers(0, 12)) == 0:
            continue
        pool = TARGETS if parameter.name in ("target", "script") else SETTINGS if parameter.nargs == -1 else PLAIN
        line += draw(
            st.lists(st.sampled_from(pool), min_size=parameter.nargs == 1, max_size=1 if parameter.nargs == 1 else 2)
        )
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else []:
        line.append(draw(st.sampled_from([*option.opts, *option.secondary_opts])))
        if not getattr(option, "is_flag", False):
            choices = list(getattr(option.type, "choices", ()))
            line.append(draw(st.sampled_from([*PLAIN, *choices])))
    if any(p.name == "local" for p in options) and "--local" not in line:
        line.append("--local")
    return line


def run_line(line: list[str]) -> str | None:
    """Run a command line in this process, and return what is wrong with how it ended."""
    from click.testing import CliRunner

    from tfray import cli

    result = CliRunner().invoke(cli.main, line)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return _located(
            f"{type(result.exception).__name__}: {result.exception}", list(traceback.walk_tb(result.exc_info[2]))
        )
    if result.exit_code not in (0, 1, 2):
        return f"exit code {result.exit_code}"
    if "Traceback (most recent call last)" in result.stderr and "script.py" not in result.stderr:
        return f"a traceback: {result.stderr[-300:]}"
    if result.exit_code and not result.stderr.strip():
        return "it fails without a word"
    return None


# -- running one ---------------------------------------------------------------------------------------------


def run_call(expression: str) -> str | None:
    """Make a call, run what it gives, and return what is wrong with how it ended."""
    import numpy as np

    import tfray as tf

    try:
        made = eval(expression, {"tf": tf, "np": np})
        fetches = [each for each in _leaves(made) if isinstance(each, (tf.Tensor, tf.Operation, tf.SparseTensor))]
        if fetches:
            _run(tf, fetches)
    except Exception as error:  # noqa: BLE001 - what kind of error it is is the question
        return complaint(error, expression)
    return None


def _run(tf, fetches):
    graph = fetches[0].graph
    graph = getattr(graph, "root", graph)
    with tf.Session(graph=graph) as session:
        options = tf.RunOptions(timeout_in_ms=STEP_TIMEOUT_MS)
        with graph.as_default():
            starts = [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
        session.run(starts, options=options)
        session.run(fetches, options=options)


def _leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def complaint(error: BaseException, expression: str) -> str | None:
    """Why an error is none that a program should be shown, or None where it is one."""
    from tfray import errors

    shown = f"{type(error).__name__}: {error}"
    frames = list(traceback.walk_tb(error.__traceback__))
    frame = frames[-1][0]
    module = str(frame.f_globals.get("__name__"))
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    if isinstance(error, errors.OpError):
        is_meant = not isinstance(error, (errors.InternalError, errors.UnknownError))
        return None if is_meant and _names_what_is_wrong(error, expression) else _located(shown, frames)
    if re.search(
        r"unexpected keyword|required (positional|keyword)|positional argument|multiple values for|<lambda>\(\)"
        r"|takes no arguments|Can't instantiate abstract class",
        shown,
    ):
        return None
    if module in ("__main__", __name__) or frame.f_code.co_filename == "<string>":
        return None  # the call never was made, or what it was given failed
    is_raised = frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    if not module.startswith("tfray") or not is_raised:
        return _located(shown, frames)
    is_meant = type(error).__module__.startswith("tfray.") or isinstance(error, MEANT)
    return None if is_meant and _names_what_is_wrong(error, expression) else _located(shown, frames)


def _names_what_is_wrong(error: BaseException, expression: str) -> bool:
    """Whether an error that blames an argument names one that the call gives by name, or the operation that failed."""
    said = " ".join([str(error), *getattr(error, "__notes__", ())])
    named = {keyword.arg for keyword in getattr(ast.parse(expression, mode="eval").body, "keywords", ())}
    if not named or not isinstance(error, (TypeError, ValueError, LookupError)) or getattr(error, "op_name", None):
        return bool(said.strip())
    return bool(named & set(re.findall(r"\w+", said)))


MEANT = (TypeError, ValueError, KeyError, AttributeError, NotImplementedError, RuntimeError, OSError)
"""What a statement of tfray's may raise, besides its own errors."""


def _located(shown: str, frames) -> str:
    own = [(f, line) for f, line in frames if str(f.f_globals.get("__name__")).startswith("tfray")] or frames
    frame, line = own[-1]
    return f"{shown[:300]} [{frame.f_globals.get('__name__')}:{line} {frame.f_code.co_name}]"


def run_apart(function: typing.Callable[..., str | None], *arguments) -> str | None:
    """Call `function` in a process of its own, and return what it returns; or that it took too long, or crashed."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            os.write(writer, json.dumps(function(*arguments)).encode()[:60000])
            code = 0
        except BaseException as error:  # noqa: BLE001 - SystemExit and others are findings too
            os.write(
                writer,
                json.dumps(
                    _located(f"{type(error).__name__}: {error}", list(traceback.walk_tb(error.__traceback__)))
                ).encode()[:60000],
            )
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    try:
        deadline, parts = time.monotonic() + LIMIT_S, []
        while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = os.read(reader, 65536)
            if not part:
                break
            parts.append(part)
        else:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return f"took more than {LIMIT_S:g} s"
        _, status = os.waitpid(process, 0)
        if not parts:
            return f"ended the process, with {status}"
        return json.loads(b"".join(parts))
    finally:
        os.close(reader)


def prepare() -> None:
    """Make this process one of which copies may run calls: no Ray, no output."""
    import warnings

    warnings.simplefilter("ignore")
    sys.modules["ray"] = None  # so that nothing starts it
    import click.testing  # noqa: F401
    import scipy.special  # noqa: F401

    from tfray import cli  # noqa: F401

    # What is imported and compiled at first use, the copies need not do again.
    for first in ("tf.train.Saver(allow_empty=True)", "tf.train.RunConfig()", "tf.nn.relu([1.0])"):
        run_call(first)


def search(kind: str, count: int, seed_: int) -> dict[str, typing.Any]:
    """Make and run `count` cases of one kind. Returns how many there were, and the failures."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    names = public_names()
    if kind == "configurations":
        names = {name: names[name] for name in CONFIGURATIONS}
    strategy, function = (lines(), run_line) if kind == "command lines" else (calls(names), run_call)
    done: dict[typing.Any, str | None] = {}

    @seed(seed_)
    @settings(
        max_examples=4 * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def attempt(case):
        shown = case if isinstance(case, str) else shlex.join(["tfray", *case])
        if shown not in done and len(done) < count:  # hypothesis likes to come back to what it has tried
            done[shown] = run_apart(function, case)

    attempt()
    return {"cases": len(done), "failures": [(case, found) for case, found in done.items() if found]}


if __name__ == "__main__":
    prepare()
    if sys.argv[1] == "--random":
        output = os.dup(1)
        os.dup2(2, 1)  # what the calls print is not the report
        report = search(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        os.write(output, f"{json.dumps(report)}\n".encode())
    else:
        for text in sys.argv[1:]:
            print(text, "->", run_apart(run_call, text) or "fine", flush=True)
