"""One side of the comparison: builds and runs a program with whatever library is given as ``tf``.

As a script it is the peer: ``python side.py`` reads a program a line from standard input, and answers with a line.
"""

from __future__ import annotations

import base64
import json
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np


def encoded(array: Any) -> dict[str, Any]:
    """An array as JSON."""
    array = np.asarray(array)
    return {"dtype": array.dtype.str, "shape": array.shape, "bytes": base64.b64encode(array.tobytes()).decode()}


def decoded(data: dict[str, Any]) -> np.ndarray:
    """The array that was encoded."""
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
        if dtype == "bool":
            values.append(random.random(shape) < 0.5)
        elif dtype.startswith(("int", "uint")):
            values.append(random.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype))
        else:
            values.append(random.uniform(-2, 2, shape).astype(dtype))
    return [np.asarray(value) for value in values]


class Side:
    """A graph that is being built from calls.

    Args:
        tf: The library.
        tensors: What the numbers of tensors in arguments stand for.
    """

    def __init__(self, tf: Any, tensors: dict[int, Any]) -> None:
        self._tf = tf
        self.tensors = tensors

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
        if "array" in value:
            seed = sum(value["array"], 1)
            return np.asarray(np.random.default_rng(seed).uniform(-1, 1, value["array"]).astype(value["of"]))
        if "body" in value:
            return self._function(value)
        return given[value["given"]] if "given" in value else results[value["result"]]

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


def flat(result: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(result, (list, tuple)):
        return [tensor for each in result for tensor in flat(each)]
    return [result]


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
        made = flat(side.call(call))
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
    def fetches(self) -> list[Any]:
        """All tensors to compute."""
        found = self.gradients if isinstance(self.gradients, list) else []
        return [*self.made, *(gradient for gradient in found if gradient is not None)]


def failure(error: BaseException, when: str) -> dict[str, Any]:
    """An exception as an answer."""
    return {"error": kinds(error), "message": str(error)[:300], "when": when}


def each_alone(tf: Any, program: dict[str, Any], config: Any = None) -> list[dict[str, Any] | None]:
    """Run each call by itself on given values: its results, and the gradients of its floating inputs.

    All stand in one graph and are run in one step, which costs a fraction of a session for each. Where that fails,
    the halves are run, and so on down to the call that fails.
    """
    forms = {int(number): form for number, form in program["forms"].items()}
    values = {int(number): decoded(value) for number, value in program["values"].items()}
    answers: list[dict[str, Any] | None] = []
    pieces: dict[int, Piece] = {}
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        for index, call in enumerate(program["calls"]):
            answers.append(None)
            used = list(dict.fromkeys(numbers_in([call["args"], call["options"]])))
            if not all(number in values for number in used):
                continue
            side = Side(tf, {n: tf.placeholder(getattr(tf, forms[n][0]), forms[n][1]) for n in used})
            feeds = {side.tensors[number]: values[number] for number in used}
            try:
                made = flat(side.call(call))
            except Exception as error:  # noqa: BLE001
                answers[-1] = failure(error, "build")
            else:
                pieces[index] = Piece(made, _gradients(tf, made, side), feeds)
        _run(session, pieces, answers)
    return answers


def _run(session: Any, pieces: dict[int, Piece], answers: list[Any]) -> None:
    if not pieces:
        return
    feeds = {tensor: value for piece in pieces.values() for tensor, value in piece.feeds.items()}
    try:
        computed = iter(session.run([piece.fetches for piece in pieces.values()], feeds))
    except Exception as error:  # noqa: BLE001
        if len(pieces) == 1:
            ((index, piece),) = pieces.items()
            answers[index] = failure(error, "run")
            if piece.made != piece.fetches:  # it may be the gradients that fail
                _run(session, {index: Piece(piece.made, failure(error, "gradients"), piece.feeds)}, answers)
            return
        indices = list(pieces)
        for half in (indices[: len(indices) // 2], indices[len(indices) // 2 :]):
            _run(session, {index: pieces[index] for index in half}, answers)
        return
    for index, piece in pieces.items():
        results = iter(next(computed))
        given = [encoded(next(results)) for _ in piece.made]
        gradients: Any = piece.gradients
        if isinstance(gradients, list):
            gradients = [None if gradient is None else encoded(next(results)) for gradient in gradients]
        answers[index] = {"values": given, "gradients": gradients}


def _gradients(tf: Any, made: list[Any], side: Side) -> list[Any] | dict[str, Any]:
    smooth = ("float32", "float64")
    targets = [t for t in made if t.dtype.base_dtype.name in smooth]
    sources = [t for t in side.tensors.values() if t.dtype.base_dtype.name in smooth]
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


def answer(tf: Any, program: dict[str, Any], config: Any = None) -> dict[str, Any]:
    """What the library makes of a program: forms of all results as they are built, and each call run by itself."""
    with tf.Graph().as_default():
        side = Side(tf, placeholders(tf, program))
        built = []
        for call in program["calls"]:
            if any(side.tensors[number] is None for number in numbers_in([call["args"], call["options"]])):
                made = None  # a call before it has failed
            else:
                made = build(tf, side, call)
            built.append(made)
            # Where only one side refuses a call, the numbers of later tensors are those of tfray.
            numbers = call["results"]
            for number in [number for number in side.tensors if numbers and number >= numbers[0]][len(numbers) :]:
                del side.tensors[number]
            if not numbers and isinstance(made, list):
                for _ in made:
                    side.tensors.popitem()
            for number in numbers:
                side.tensors.setdefault(number, None)
    return {"built": built, "runs": each_alone(tf, program, config)}


def main() -> None:
    """Answer programs with TensorFlow."""
    warnings.simplefilter("ignore")
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # it takes longer than the step
    for line in sys.stdin:
        print(json.dumps(answer(tf, json.loads(line), config)), flush=True)


if __name__ == "__main__":
    main()
