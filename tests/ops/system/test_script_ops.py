"""Python functions as operations."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tests.support.interpreter import interpret
from tfray.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnknownError,
)
from tfray.framework.graph import Graph
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.system import script_ops


def test_one_result():
    x = placeholder("float32", [None])
    y = script_ops.py_func(lambda array: array * 2, [x], "float32")
    assert y.dtype == "float32"
    assert y.shape.rank is None
    np.testing.assert_array_equal(interpret(y, {x: [1, 2]}), [2, 4])


def test_several_results_of_several_dtypes():
    def halves(array, word):
        return array[:1], [word, b"and", "more"], len(array)

    first, words, count = script_ops.py_func(halves, [[1.5, 2.5], "word"], ["float32", "string", "int64"])
    values = interpret([first, words, count])
    assert [value.dtype for value in values] == [np.float32, object, np.int64]
    assert values[0].tolist() == [1.5]
    assert values[1].tolist() == [b"word", b"and", b"more"]
    assert values[2] == 2


def test_a_list_of_one_dtype_gives_a_list():
    results = script_ops.py_func(lambda: [np.float64(1)], [], ["float64"])
    assert interpret(results)[0] == 1


def test_strings():
    words = placeholder("string")
    joined = script_ops.py_func(lambda array: b" ".join(array), [words], "string")
    assert interpret(joined, {words: np.array([b"to", b"be"], object)}).item() == b"to be"
    upper = script_ops.py_func(lambda word: word.decode().upper(), [words], "string")
    assert interpret(upper, {words: np.array(b"caf\xc3\xa9", object)}).item() == "CAFÉ".encode()


def test_no_results():
    seen = []
    operation = script_ops.py_func(seen.append, [constant(3)], [])
    interpret(operation)
    assert seen == [3]


def test_arguments_may_be_changed():
    def spoil(array):
        array[0] = 7
        return array

    given = constant([1.0, 2.0])
    changed = script_ops.py_func(spoil, [given], "float32")
    assert [value.tolist() for value in interpret([changed, given])] == [[7, 2], [1, 2]]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("odd"), InvalidArgumentError),
        (TypeError("odd"), InvalidArgumentError),
        (StopIteration("odd"), OutOfRangeError),
        (KeyError("odd"), UnknownError),
        (FailedPreconditionError("odd"), FailedPreconditionError),
    ],
)
def test_errors_name_the_function(raised, kind):
    def produce():
        raise raised

    with pytest.raises(kind, match="odd") as caught:
        interpret(script_ops.py_func(produce, [], "float32"))
    if kind is not FailedPreconditionError:
        lines = ["raised", "odd", "Traceback", "in produce", "raise raised"]
        places = [str(caught.value).find(line) for line in lines]
        assert -1 not in places and places == sorted(places)
        assert caught.value.__cause__ is raised


@pytest.mark.parametrize(
    ("result", "wanted", "match"),
    [
        (1.5, "int32", "0-th value returned by .* expects int32"),
        ([1, 2, 3], "int32", "returns 3 values, but expects to see 1"),
        (np.array(["text"]), "float32", "expects float32"),
        (None, "float32", "expects float32"),
        ((1, 2), ["int32"], "returns 2 values, but expects to see 1"),
        (1, ["int32", "int32"], "returns 1 values, but expects to see 2"),
    ],
)
def test_results_are_checked(result, wanted, match):
    with pytest.raises(InvalidArgumentError, match=match):
        interpret(script_ops.py_func(lambda: result, [], wanted))


def test_numbers_take_the_wanted_dtype():
    values = interpret(script_ops.py_func(lambda: (1, 2.5, np.float64(3)), [], ["int64", "float64", "float32"]))
    assert [np.asarray(value).dtype for value in values] == [np.int64, np.float64, np.float32]


def test_the_graph_carries_a_token_only(graph):
    script_ops.py_func(np.sin, [1.0], "float32")
    (token,) = graph.functions
    assert graph.functions[token] is np.sin
    assert script_ops.lookup_function(token) is np.sin
    assert [op.attr("token") for op in graph.get_operations() if op.type == "PyFunc"] == [token]


def test_functions_go_with_their_graph():
    other = Graph()
    with other.as_default():
        script_ops.py_func(np.cos, [1.0], "float32")
    (token,) = other.functions
    del other
    gc.collect()
    with pytest.raises(NotFoundError, match="'cos' is not known in this process"):
        script_ops.lookup_function(token)


def test_functions_sent_by_another_process(graph):
    y = script_ops.py_func(np.sin, [0.0], "float32")
    (token,) = graph.functions
    script_ops.unregister_function(token)
    with pytest.raises(NotFoundError, match="sin"):
        interpret(y)
    script_ops.register_function(token, np.cos)
    assert interpret(y) == 1


def test_stateless_and_numpy_function():
    y = script_ops.py_func(np.exp, [0.0], "float32", stateful=False)
    assert not y.op.op_def.stateful
    assert interpret(y) == 1
    assert script_ops.numpy_function(np.exp, [0.0], "float32").op.op_def.stateful
