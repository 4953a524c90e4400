"""Assertions and printing."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import tfray as tf
from tests.support.interpreter import interpret
from tfray.errors import InvalidArgumentError
from tfray.framework.graph import get_default_graph
from tfray.framework.plain_graph import PlainGraph
from tfray.framework.sparse_tensor import SparseTensor
from tfray.library.platform import logging
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.checks import check_ops, print_assert_ops
from tfray.ops.control import control_flow_ops
from tfray.ops.strings.string_ops import string_format
from tfray.runtime.device import Device

# -- Assert --------------------------------------------------------------------------------------------


def test_assert_passes_and_fails_at_run_time():
    condition, x = placeholder("bool", [None]), placeholder("float32", [None])
    check = print_assert_ops.Assert(condition, ["x is", x], summarize=2)
    interpret(check, {condition: [True, True], x: [1]})
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[x is\] \[1.0 2.0...\]"):
        interpret(check, {condition: [True, False], x: [1, 2, 3]})


def test_assert_shows_everything_with_minus_one():
    condition = placeholder("bool")
    check = print_assert_ops.Assert(condition, [np.arange(5)], summarize=-1)
    with pytest.raises(InvalidArgumentError, match=r"\[0 1 2 3 4\]"):
        interpret(check, {condition: False})


def test_assert_of_a_false_constant_fails_in_the_step_only():
    check = print_assert_ops.Assert(False, ["seen", constant([1, 2])])
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[seen\] \[1 2\]"):
        interpret(check)
    wanted = placeholder("bool")

    def fail():
        with get_default_graph().control_dependencies([print_assert_ops.Assert(False, ["not taken"])]):
            return constant(1.0)

    value = control_flow_ops.cond(wanted, fail, lambda: constant(2.0))
    assert interpret(value, {wanted: False}) == 2.0


# -- comparisons ---------------------------------------------------------------------------------------

HOLDS = {
    check_ops.assert_equal: np.equal,
    check_ops.assert_none_equal: np.not_equal,
    check_ops.assert_less: np.less,
    check_ops.assert_less_equal: np.less_equal,
    check_ops.assert_greater: np.greater,
    check_ops.assert_greater_equal: np.greater_equal,
}
SIGNS = {
    check_ops.assert_positive: lambda x: x > 0,
    check_ops.assert_negative: lambda x: x < 0,
    check_ops.assert_non_negative: lambda x: x >= 0,
    check_ops.assert_non_positive: lambda x: x <= 0,
}


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2]), ([1, 2], [2, 3]), ([3, 2], [2, 1]), ([1, 2], [1, 3]), ([], 0)])
def test_comparison(check, static, x, y):
    x, y = np.array(x, np.int32), np.array(y, np.int32)
    assert fails(check, static, x, y) == (not HOLDS[check](x, y).all())


@pytest.mark.parametrize("check", SIGNS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("x", [[1, 2], [-1, -2], [0, 0], [-1, 1], []])
def test_sign(check, static, x):
    x = np.array(x, np.float32)
    assert fails(check, static, x) == (not SIGNS[check](x).all())


def fails(check, static, *arrays) -> bool:
    """Whether the check fails: while building on constants, at run time on values that are fed."""
    if static:
        try:
            interpret(check(*arrays))
        except InvalidArgumentError:
            return True
        return False
    tensors = [placeholder(array.dtype) for array in arrays]
    operation = check(*tensors)
    try:
        interpret(operation, dict(zip(tensors, arrays, strict=True)))
    except InvalidArgumentError as error:
        assert "assertion failed" in str(error)
        return True
    return False


@pytest.mark.parametrize(
    "make, said",
    [
        (
            lambda x: check_ops.assert_less(x, 3),
            r"Condition x < y did not hold element-wise: x \(count:0\) = 7 y .* = 3",
        ),
        (lambda x: check_ops.assert_less(x, 3, message="too many"), r"too many Condition x < y .*count:0"),
        (lambda x: check_ops.assert_less(x, 3, data=["seen", x], message="too many"), r"too many seen 7"),
        (lambda x: check_ops.assert_negative(x), r"Condition x < 0 did not hold element-wise: x \(count:0\) = 7"),
        (lambda x: check_ops.assert_non_positive(x, message="much"), r"much Condition x <= 0 did not hold"),
    ],
)
def test_errors_of_comparisons_say_what_was_expected(make, said):
    """In TensorFlow's words, which the tests of programs look for, both when a step runs and while building."""
    x = placeholder("int32", name="count")
    check = make(x)
    with pytest.raises(InvalidArgumentError) as caught:
        interpret(check, {x: 7})
    assert re.search(f"assertion failed: {said}", re.sub(r"[\[\]]", "", str(caught.value)))
    with (
        get_default_graph().name_scope("known"),
        pytest.raises(InvalidArgumentError, match=said.replace("count", "known/count")),
    ):
        make(constant(7, name="count"))


@pytest.mark.parametrize(
    ("compute", "early"),
    [
        (lambda x: x, True),
        (tf.identity, True),
        (tf.size, True),
        (lambda x: tf.stack([tf.cast(x, tf.int64)] * 2), True),
        (lambda x: tf.concat([x, tf.fill([2], 3.0)], 0), True),
        (lambda x: x * 1.0, False),
        (tf.reduce_sum, False),
        (lambda x: tf.stack([x, tf.floor(x)]), False),
    ],
)
def test_comparisons_with_what_is_computed_fail_in_steps_only(compute, early):
    computed = compute(constant([1.0, -2.0]))
    wrong = constant(99, computed.dtype)
    if early:
        with pytest.raises(InvalidArgumentError, match="Condition x == y did not hold"):
            check_ops.assert_equal(computed, wrong)
    else:
        check = check_ops.assert_equal(computed, wrong)
        with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[Condition x == y did not hold"):
            interpret(check, {})


def test_comparison_shows_the_data_given():
    x = placeholder("int32")
    check = check_ops.assert_equal(x, 3, data=["seen", x])
    with pytest.raises(InvalidArgumentError, match=r"\[seen\] \[7\]"):
        interpret(check, {x: 7})


@pytest.mark.parametrize(("x", "y", "options", "ok"), [(1, 1 + 1e-7, {}, True), (1, 1.1, {}, False)])
def test_near(x, y, options, ok):
    tensors = placeholder("float32"), placeholder("float32")
    check = check_ops.assert_near(*tensors, **options)
    feeds = dict(zip(tensors, (x, y), strict=True))
    if ok:
        interpret(check, feeds)
    else:
        with pytest.raises(InvalidArgumentError, match="assertion failed"):
            interpret(check, feeds)


def test_near_with_tolerances():
    x = placeholder("float64")
    interpret(check_ops.assert_near(x, np.float64(1.1), rtol=0.5), {x: 1.0})
    interpret(check_ops.assert_near(x, np.float64(1.1), atol=0.2, rtol=0.0), {x: 1.0})


# -- ranks and dtypes ----------------------------------------------------------------------------------


def test_known_ranks_are_checked_while_building():
    x = placeholder("float32", [None, 3])
    interpret([check_ops.assert_rank(x, 2), check_ops.assert_rank_at_least(x, 1), check_ops.assert_rank_in(x, [2, 4])])
    for check, rank in [
        (check_ops.assert_rank, 3),
        (check_ops.assert_rank_at_least, 3),
        (check_ops.assert_rank_in, [0, 1]),
    ]:
        with pytest.raises(InvalidArgumentError, match=r"mine.*must have rank .*Received rank 2, shape"):
            check(x, rank, message="mine")


def test_ranks_are_one_whole_number():
    x, wanted = placeholder("float32", [None]), placeholder("int32")
    for check in (check_ops.assert_rank, check_ops.assert_rank_at_least):
        with pytest.raises(InvalidArgumentError, match="Rank must be a scalar"):
            check(x, [1, 1])
        with pytest.raises(TypeError, match="must be of type"):
            check(x, 0.5)
        interpret(check(x, wanted), {wanted: 1, x: [1]})
        with pytest.raises(InvalidArgumentError, match="Rank must be a scalar"):
            interpret(check(x, wanted), {wanted: [1], x: [1]})


def test_unknown_ranks_are_checked_at_run_time():
    x = placeholder("float32")
    checks = [check_ops.assert_rank(x, 1), check_ops.assert_rank_at_least(x, 1), check_ops.assert_rank_in(x, [1, 3])]
    interpret(checks, {x: [1, 2]})
    for check in checks:
        with pytest.raises(InvalidArgumentError, match=r"assertion failed.*must have rank.*Received shape"):
            interpret(check, {x: 1})


def test_static_checks():
    assert check_ops.assert_scalar(constant(1)).shape.rank == 0
    interpret([check_ops.assert_type([1], "int32"), check_ops.assert_integer(constant(1))])
    for build, said in (
        (lambda: check_ops.assert_scalar([1]), "Expected scalar shape"),
        (lambda: check_ops.assert_type([1.0], "int32", message="labels"), "labels.*must be of type.*float32"),
        (lambda: check_ops.assert_integer(1.5), "integer.*float"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            build()
    assert check_ops.is_numeric_tensor(constant(1.0))
    assert not check_ops.is_numeric_tensor(constant("text"))
    assert not check_ops.is_numeric_tensor(1.0)


@pytest.mark.parametrize(
    ("x", "non_decreasing", "increasing"),
    [([1, 2, 2], True, False), ([[1, 2], [3, 1]], False, False), ([], True, True)],
)
def test_order(x, non_decreasing, increasing):
    tensor = placeholder("int32")
    assert bool(interpret(check_ops.is_non_decreasing(tensor), {tensor: x})) is non_decreasing
    assert bool(interpret(check_ops.is_strictly_increasing(tensor), {tensor: x})) is increasing


# -- numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "found"), [([np.nan, 1], "NaN"), ([np.inf], "Inf"), ([-np.inf, np.nan], "NaN and Inf")])
def test_not_finite(x, found):
    tensor = placeholder("float32")
    with pytest.raises(InvalidArgumentError, match=f"loss: the tensor has {found} values"):
        interpret(print_assert_ops.verify_tensor_all_finite(tensor, "loss"), {tensor: x})


def test_every_tensor_of_a_graph_is_checked():
    x = placeholder("float32", [None], name="x")
    check = print_assert_ops.add_check_numerics_ops()
    interpret(check, {x: [1, 2]})
    with pytest.raises(InvalidArgumentError, match="x:0"):
        interpret(check, {x: [np.nan]})


# -- printing ------------------------------------------------------------------------------------------


def test_print_passes_its_input_on(capsys):
    x = placeholder("float32", [None])
    y = print_assert_ops.Print(x, [x, "rows:", constant(2)], message="x = ", summarize=2)
    assert y.shape.as_list() == [None]
    np.testing.assert_array_equal(interpret(y, {x: [1, 2, 3]}), [1, 2, 3])
    assert capsys.readouterr().err == "x = [1 2...][rows:][2]\n"


def test_print_stops_after_first_n(capsys):
    x = placeholder("string")
    y = print_assert_ops.Print(x, [x], first_n=2)
    device = Device("/job:localhost/task:0/device:CPU:0")
    for _ in range(4):
        interpret(y, {x: np.array(b"word", object)}, device)
    assert capsys.readouterr().err == "[word]\n" * 2


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_print_v2(capsys, stream):
    x = placeholder("int32")
    operation = print_assert_ops.print_(
        "x:", x, "of", [1, 2], summarize=-1, sep="|", end=".", output_stream=getattr(sys, stream)
    )
    interpret(operation, {x: np.arange(5)})
    assert getattr(capsys.readouterr(), stream[3:]) == "x:|[0 1 2 3 4]|of|[1, 2]."


def test_print_v2_survives_serialisation(graph, capsys):
    print_assert_ops.print_("a", constant(1))
    assert PlainGraph.FromString(graph.as_plain().SerializeToString()) == graph.as_plain()


# -- print -----------------------------------------------------------------------------------------------

NUMBERS = np.arange(10, dtype=np.int32)


@pytest.mark.parametrize(
    ("value", "options", "shown"),
    [  # as TensorFlow 2.21 shows them
        (NUMBERS, {}, "[0 1 2 ... 7 8 9]"),
        (NUMBERS[:6], {}, "[0 1 2 3 4 5]"),
        (NUMBERS, {"summarize": 1}, "[0 ... 9]"),
        (NUMBERS, {"summarize": -1}, "[0 1 2 3 4 5 6 7 8 9]"),
        (NUMBERS[:6].reshape(2, 3), {}, "[[0 1 2]\n [3 4 5]]"),
        (NUMBERS[:8].reshape(2, 2, 2), {}, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
        (np.float32([1, 2.5, 1e10, 1 / 3, 1e-7, np.nan]), {}, "[1 2.5 1e+10 0.333333343 1e-07 nan]"),
        (np.array(1 / 3), {}, "0.33333333333333331"),
        (np.array([True, False]), {}, "[1 0]"),
        (np.array([b"a", b"b c"], object), {}, '["a" "b c"]'),
        (np.float16([0.1, 1 / 3]), {}, "[0.0999755859 0.333251953]"),
        (np.array([b'a"b', b"c\nd", b"\xff"], object), {}, '["a\\"b" "c\\nd" "\udcff"]'),
        (np.array(b"a", object), {}, "a"),
    ],
)
def test_values_are_printed_as_tensorflow_prints_them(value, options, shown, tmp_path):
    # A string alone is printed as it is, beside others and formatted in quotes.
    formatted = f'"{shown}"' if value.dtype == object and not value.ndim else shown
    assert (
        interpret(string_format("{}", constant(value), **options)).item().decode("utf-8", "surrogateescape")
        == formatted
    )
    path = tmp_path / "lines"
    interpret(print_assert_ops.print_("x =", constant(value), output_stream=f"file://{path}", **options))
    interpret(print_assert_ops.print_(constant(value), output_stream=f"file://{path}", **options))
    assert path.read_bytes().decode("utf-8", "surrogateescape") == f"x = {formatted}\n{shown}\n"


def test_bytes_that_are_no_text_are_printed_escaped(capfd):
    interpret(print_assert_ops.print_(constant(b"\xff"), output_stream=sys.stdout))
    assert capfd.readouterr().out == "\\xff\n"


def test_structures_are_printed(capfd):
    sparse = SparseTensor([[0, 1]], constant([5.0]), [2, 3])
    check = print_assert_ops.print_(
        {"a": constant(1), "b": [constant([2, 3]), "s"]}, (None, 2.5), sparse, "{}", sep="; ", output_stream=sys.stdout
    )
    interpret(check)
    expected = (
        "{'a': 1, 'b': [[2 3], 's']}; (None, 2.5); 'SparseTensor(indices=[[0 1]], values=[5], shape=[2 3])'; {}\n"
    )
    assert capfd.readouterr().out == expected


@pytest.mark.parametrize(("name", "letter"), [("info", "I"), ("warning", "W"), ("error", "E")])
def test_lines_to_logs_that_show_nothing_go_to_stderr(monkeypatch, capfd, name, letter):
    logger = logging.LOGGER
    monkeypatch.setattr(logger, "hasHandlers", lambda: False)
    interpret(print_assert_ops.print_(constant([1, 2]), output_stream=getattr(logging, name)))
    assert capfd.readouterr().err.endswith(f": {letter} [1 2]\n")


def test_lines_are_printed_to_files_and_logs(tmp_path, caplog):
    path = tmp_path / "lines"
    for _ in range(2):
        interpret(print_assert_ops.print_(constant([1, 2]), output_stream=f"file://{path}"))
    assert path.read_text() == "[1 2]\n[1 2]\n"
    with caplog.at_level("WARNING", logger="tfray"):
        interpret(print_assert_ops.print_("seen", output_stream=logging.warning))
    assert [record.getMessage() for record in caplog.records] == ["seen"]
    with pytest.raises(ValueError, match="output_stream"):
        print_assert_ops.print_("x", output_stream="terminal")


def test_old_print_shows_the_first_elements(capfd):
    x = constant(NUMBERS[:6].reshape(2, 3))
    interpret(print_assert_ops.Print(constant(1), [constant(NUMBERS), x, x[:, :2]], "m: "))
    assert "m: [0 1 2...][[0 1 2]...][[0 1][3...]...]" in capfd.readouterr().err  # as TensorFlow prints them
