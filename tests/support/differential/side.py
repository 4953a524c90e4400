"""One side of the comparison: builds and runs a program with whatever library is given as ``tf``.

As a program it is the peer: ``python -m tests.support.differential.side`` reads a program a line from standard input,
and answers with a line.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.differential import snippets


def encoded(array: Any) -> dict[str, Any]:
    """An array as JSON."""
    array = np.asarray(array, object if isinstance(array, bytes) else None)  # NumPy's own strings lose zeros at the end
    if array.dtype.kind in "OSU":
        strings = [each.encode() if isinstance(each, str) else each for each in array.ravel().tolist()]
        return {"strings": [base64.b64encode(each).decode() for each in strings], "shape": array.shape}
    return {"dtype": array.dtype.str, "shape": array.shape, "bytes": base64.b64encode(array.tobytes()).decode()}


def decoded(data: dict[str, Any]) -> np.ndarray:
    """The array that was encoded."""
    if "strings" in data:
        return np.asarray([base64.b64decode(each) for each in data["strings"]], object).reshape(data["shape"])
    return np.frombuffer(base64.b64decode(data["bytes"]), data["dtype"]).reshape(data["shape"])


def kinds(error: BaseException) -> list[str]:
    """Names of the classes of an exception."""
    return [kind.__name__ for kind in type(error).__mro__]


def source_values(program: dict[str, Any]) -> list[np.ndarray]:
    """The program's inputs."""
    random = np.random.default_rng(program["seed"])
    values = []
    for source in program["sources"]:
        shape, dtype = source["shape"], source["dtype"]
        if dtype == "string":
            values.append(drawn({"array": shape, "of": dtype, "low": 0, "high": 0, "seed": program["seed"]}))
        elif dtype == "bool":
            values.append(random.random(shape) < 0.5)
        elif dtype.startswith(("int", "uint")):
            values.append(random.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype))
        else:
            values.append(random.uniform(-2, 2, shape).astype(dtype))
    return [np.asarray(value) for value in values]


WORDS = ["a", "bc", "def", "a b", " x ", "hello", "", "1,2", "12.5", "-7", "a\u00e9\u03b1", "Ab,C"]


def drawn(value: dict[str, Any]) -> np.ndarray:
    """A random array."""
    random = np.random.default_rng(value["seed"])
    shape, dtype, low, high = value["array"], value["of"], value["low"], value["high"]
    if dtype == "string":
        words = [WORDS[i].encode() for i in random.integers(0, len(WORDS), int(np.prod(shape)))]
        return np.asarray(words, object).reshape(shape)
    if dtype == "bool":
        return np.asarray(random.random(shape) < 0.5)
    if value.get("kind") == "definite":
        half = random.uniform(-1, 1, shape)
        return (half @ np.swapaxes(half, -1, -2) + np.eye(shape[-1])).astype(dtype)
    if dtype.startswith(("int", "uint")):
        low, high = (0 if dtype == "uint8" else round(low)), round(high)
        return np.asarray(random.integers(low, max(high, low + 1), shape), dtype)
    if dtype.startswith("complex"):
        return np.asarray(random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape), dtype)
    return np.asarray(random.uniform(low, high, shape), dtype)


class Side:
    """A graph that is being built from calls.

    Args:
        tf: The library.
        tensors: What the numbers of tensors in arguments stand for.
    """

    def __init__(self, tf: Any, tensors: dict[int, Any]) -> None:
        self._tf = tf
        self.tensors = tensors
        self.constants: list[Any] = []

    def call(self, call: dict[str, Any], given: list[Any] = (), results: list[Any] = ()) -> Any:
        """What a call returns."""
        args = [self._argument(value, given, results) for value in call["args"]]
        options = {key: self._argument(value, given, results) for key, value in call["options"].items()}
        name = call["function"]
        if name == "getitem":
            return args[0][tuple(args[1])]
        if name.startswith("__"):
            operator = getattr(args[0], name)
            return operator(*args[1:])
        if name.startswith("snippet."):
            return getattr(snippets, name.removeprefix("snippet."))(self._tf, *args, **options)
        function = self._tf
        for part in name.split("."):
            function = getattr(function, part)
        return function(*args, **options)

    def _argument(self, value: Any, given: list[Any], results: list[Any]) -> Any:
        if isinstance(value, list):
            return [self._argument(each, given, results) for each in value]
        if value == "newaxis":
            return self._tf.newaxis
        if value == "...":
            return Ellipsis
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            return self.tensors[value["tensor"]]
        if "dtype" in value:
            return getattr(self._tf, value["dtype"])
        if "slice" in value:
            return slice(*value["slice"])
        if "call" in value:
            return self.call(value["call"], given, results)
        if "values" in value:
            return np.asarray(value["values"], np.float32)
        if "sparse" in value:
            return self._sparse(value)
        if "seed" in value:
            return self._constant(drawn(value))
        if "array" in value:
            seed = sum(value["array"], 1)
            return np.asarray(np.random.default_rng(seed).uniform(-1, 1, value["array"]).astype(value["of"]))
        if "body" in value:
            return self._function(value)
        if "given" in value or "result" in value:
            return given[value["given"]] if "given" in value else results[value["result"]]
        return {key: self._argument(each, given, results) for key, each in value.items()}

    def _constant(self, array: np.ndarray) -> Any:
        """A constant, whose gradient is asked for too."""
        self.constants.append(self._tf.constant(array))
        return self.constants[-1]

    def _sparse(self, value: dict[str, Any]) -> Any:
        shape = value["sparse"]
        random = np.random.default_rng(value["seed"])
        indices = np.argwhere(random.random(shape) < value.get("share", 0.5)).astype(np.int64)
        values = {
            "array": [len(indices)],
            "of": value["of"],
            "low": value.get("low", 0),
            "high": value.get("high", 5),
            "seed": value["seed"],
        }
        made = self._constant(drawn(values))
        return self._tf.SparseTensor(self._tf.constant(indices, self._tf.int64, indices.shape), made, shape)

    def _function(self, body: dict[str, Any]) -> Any:
        def function(*given: Any) -> Any:
            if len(given) == 1 and isinstance(given[0], (tuple, list)):
                given = tuple(given[0])
            results: list[Any] = []
            for call in body["body"]:
                results.append(self.call(call, given, results))
            wanted = body["result"]
            return [results[index] for index in wanted] if isinstance(wanted, list) else results[wanted]

        return function


def flat(tf: Any, result: Any) -> list[Any]:
    """The tensors of a result; what is none is made one."""
    if isinstance(result, (list, tuple)) and not hasattr(result, "as_list"):
        return [tensor for each in result for tensor in flat(tf, each)]
    if isinstance(result, tf.SparseTensor):
        return [result.indices, result.values, result.dense_shape]
    if isinstance(result, tf.Tensor):
        return [result]
    if hasattr(result, "row_splits"):
        return [result.flat_values, *result.nested_row_splits]
    if isinstance(result, tf.Operation):
        with tf.control_dependencies([result]):
            return [tf.constant(0)]
    if result is None:
        return []
    return [tf.convert_to_tensor(result)]


def placeholders(tf: Any, program: dict[str, Any]) -> dict[int, Any]:
    """Tensors for the program's inputs, by their numbers."""
    return {
        number: tf.placeholder(getattr(tf, source["dtype"]), source["static"])
        for number, source in enumerate(program["sources"])
    }


def form(tensor: Any) -> list[Any]:
    """Dtype and static shape."""
    shape = tensor.shape
    return [tensor.dtype.base_dtype.name, None if shape.rank is None else list(shape.as_list())]


def build(tf: Any, side: Side, call: dict[str, Any]) -> list[Any] | dict[str, Any]:
    """Make a call: forms of its results, or the kinds of the exception."""
    try:
        made = flat(tf, side.call(call))
    except Exception as error:  # noqa: BLE001 (whatever it raises is what is compared)
        return {"error": kinds(error), "message": str(error)[:300]}
    for tensor in made:
        side.tensors[len(side.tensors)] = tensor
    return [form(tensor) for tensor in made]


def numbers_in(value: Any) -> list[int]:
    """The tensors that arguments refer to."""
    if isinstance(value, list):
        return [number for each in value for number in numbers_in(each)]
    if isinstance(value, dict):
        if "tensor" in value:
            return [value["tensor"]]
        return [number for each in value.values() for number in numbers_in(each)]
    return []


@dataclass
class Piece:
    """One call in a graph of its own inputs: its results, their gradients, and what is fed."""

    made: list[Any]
    gradients: list[Any] | dict[str, Any]
    feeds: dict[Any, Any]

    @property
    def forms(self) -> list[list[Any]]:
        """Dtypes and static shapes of the results."""
        return [form(tensor) for tensor in self.made]

    @property
    def fetches(self) -> list[Any]:
        """All tensors to compute."""
        found = self.gradients if isinstance(self.gradients, list) else []
        return [*self.made, *(gradient for gradient in found if gradient is not None)]


def failure(error: BaseException, when: str) -> dict[str, Any]:
    """An exception as an answer."""
    said = re.sub(r"(?s)^Graph execution error:.*?Node: '[^']*'\n", "", str(error))
    return {"error": kinds(error), "message": said[:300], "when": when}


def each_alone(tf: Any, program: dict[str, Any], config: Any = None) -> list[dict[str, Any] | None]:
    """Run each call by itself on given values: its results, and the gradients of its floating inputs.

    All stand in one graph and are run in one step, which costs a fraction of a session for each. A call that fails
    there is run in a graph of its own, and the others again without it.
    """
    forms = {int(number): form for number, form in program["forms"].items()}
    values = {int(number): decoded(value) for number, value in program["values"].items()}
    calls = {
        index: call
        for index, call in enumerate(program["calls"])
        if all(number in values for number in numbers_in([call["args"], call["options"]]))
    }
    answers: dict[int, dict[str, Any]] = {}
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        pieces = _pieces(tf, calls, forms, values, answers)
        while pieces:
            try:
                answers |= _run(tf, session, pieces)
                break
            except Exception as error:  # noqa: BLE001
                guilty = {int(index) for index in re.findall(r"\bcall(\d+)/", str(error))} & set(pieces)
                for index in guilty or set(pieces):
                    del pieces[index]
                    answers[index] = _alone(tf, calls[index], forms, values, config)
    return [answers.get(index) for index in range(len(program["calls"]))]


def _pieces(
    tf: Any,
    calls: dict[int, dict[str, Any]],
    forms: dict[int, Any],
    values: dict[int, np.ndarray],
    answers: dict[int, dict[str, Any]],
) -> dict[int, Piece]:
    """The calls in the current graph; of those that cannot be built `answers` says why."""
    pieces = {}
    for index, call in calls.items():
        with tf.name_scope(f"call{index}"):
            used = dict.fromkeys(numbers_in([call["args"], call["options"]]))
            side = Side(tf, {n: tf.placeholder(getattr(tf, forms[n][0]), forms[n][1]) for n in used})
            try:
                made = flat(tf, side.call(call))
            except Exception as error:  # noqa: BLE001
                answers[index] = failure(error, "build")
            else:
                feeds = {side.tensors[number]: values[number] for number in used}
                pieces[index] = Piece(made, _gradients(tf, made, side), feeds)
    return pieces


def _alone(
    tf: Any, call: dict[str, Any], forms: dict[int, Any], values: dict[int, np.ndarray], config: Any
) -> dict[str, Any]:
    """One call in a graph of its own: where its gradients fail, its results."""
    answers: dict[int, dict[str, Any]] = {}
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        pieces = _pieces(tf, {0: call}, forms, values, answers)
        try:
            return _run(tf, session, pieces)[0] if pieces else answers[0]
        except Exception as error:  # noqa: BLE001
            whole = failure(error, "run")
        if pieces[0].made == pieces[0].fetches:
            return whole | {"forms": pieces[0].forms}
        try:
            return _run(tf, session, {0: Piece(pieces[0].made, {**whole, "when": "gradients"}, pieces[0].feeds)})[0]
        except Exception as error:  # noqa: BLE001
            return failure(error, "run") | {"forms": pieces[0].forms}


def initialize(tf: Any, session: Any) -> None:
    """Give all variables and tables of the graph their first values."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])


def _run(tf: Any, session: Any, pieces: dict[int, Piece]) -> dict[int, dict[str, Any]]:
    feeds = {tensor: value for piece in pieces.values() for tensor, value in piece.feeds.items()}
    initialize(tf, session)
    options = tf.RunOptions(timeout_in_ms=5000)
    computed = iter(session.run([piece.fetches for piece in pieces.values()], feeds, options))
    answers = {}
    for index, piece in pieces.items():
        results = iter(next(computed))
        given = [encoded(next(results)) for _ in piece.made]
        gradients: Any = piece.gradients
        if isinstance(gradients, list):
            gradients = [None if gradient is None else encoded(next(results)) for gradient in gradients]
        answers[index] = {"forms": piece.forms, "values": given, "gradients": gradients}
    return answers


def _gradients(tf: Any, made: list[Any], side: Side) -> list[Any] | dict[str, Any]:
    smooth = ("float32", "float64")
    targets = [t for t in made if t.dtype.base_dtype.name in smooth]
    sources = [t for t in [*side.tensors.values(), *side.constants] if t.dtype.base_dtype.name in smooth]
    if not targets or not sources:
        return []
    try:
        gradients = tf.gradients(targets, sources, [_weights(tf, target) for target in targets])
        return [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]
    except Exception as error:  # noqa: BLE001
        return failure(error, "gradients")


def _weights(tf: Any, target: Any) -> Any:
    """A number for each element, to tell them apart."""
    numbers = tf.cast(tf.range(tf.size(target)), target.dtype)
    return tf.reshape(tf.cos(numbers), tf.shape(target))


def main() -> None:
    """Answer programs with TensorFlow."""
    warnings.simplefilter("ignore")
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # it takes longer than the step
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(each_alone(tf, json.loads(line), config)), flush=True)


if __name__ == "__main__":
    main()
