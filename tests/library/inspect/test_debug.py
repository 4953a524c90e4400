"""Looking into steps: watched tensors, filters, breaks, dumps, and graphs as trees."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import tfray as tf


def small_model():
    """(x, loss, train): a model in scopes, with a loop."""
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", initializer=np.ones((4, 2), np.float32))
        y = tf.nn.relu(tf.matmul(x, w, name="product"), name="active")
    _, total = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.add(a, y, name="turn")), [0, y])
    loss = tf.reduce_mean(tf.log(total, name="log"), name="loss")
    return x, loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


X = np.ones((3, 4), np.float32)


# -- watching ------------------------------------------------------------------------------------------


def test_watched_tensors_of_operations_loops_and_gradients():
    x, loss, train = small_model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        plain = session.run(loss, {x: X})
        (value, _), seen = tf.debug.watch(session, [loss, train], {x: X}, ["layer/.*", loss, ".*/turn", "gradients/.*"])
        assert value == pytest.approx(plain, rel=1e-6)
        assert np.array_equal(seen["layer/product:0"][0], X @ np.ones((4, 2)))
        turns = next(values for name, values in seen.items() if name.endswith("turn:0"))
        assert [turn[0, 0] for turn in turns] == [8, 12, 16]
        assert seen["loss:0"] == [value]
        assert any(name.startswith("gradients/") for name in seen)
        _, everything = tf.debug.watch(session, loss, {x: X})
        assert {"layer/active:0", "log:0"} <= set(everything)
        assert session.run(loss, {x: X}) < plain


def test_a_fused_group_shows_every_value():
    x = tf.placeholder(tf.float32, [1 << 18])
    y = tf.tanh(tf.add(tf.multiply(x, 2.0, name="twice"), 1.0, name="more"))
    with tf.Session() as session:
        _, seen = tf.debug.watch(session, y, {x: np.ones(1 << 18)})
    assert seen["twice:0"][0][0] == 2 and seen["more:0"][0][0] == 3


def test_steps_on_clusters_are_refused():
    class Elsewhere:
        def runner(self):
            from tfray.runtime.local_runner import LocalRunner

            class Other:
                devices = LocalRunner().devices

                def close(self):
                    """Nothing."""

            return Other()

    with tf.Session(Elsewhere()) as session, pytest.raises(tf.errors.InvalidArgumentError, match="cluster"):
        tf.debug.watch(session, tf.constant(1.0))


# -- filters and breaks --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(1), False),
        (np.array([1, np.nan]), True),
        (np.array([np.inf], np.float16), True),
        (np.array([1 + np.inf * 1j]), True),
        (np.array([1, 2]), False),
        (np.array([b"nan"], object), False),
        (np.array([np.inf], tf.bfloat16.numpy), True),
        (np.zeros(0, np.float32), False),
    ],
)
def test_has_inf_or_nan(value, expected):
    assert tf.debug.has_inf_or_nan(value) is expected
    assert tf.debug.has_inf_or_nan(None, value) is expected


def test_a_filter_stops_at_the_first_bad_tensor():
    x, loss, _ = small_model()
    with tf.debug.LocalDebugSession(tf.Session(), on_hit="raise") as session:
        session.add_tensor_filter("has_inf_or_nan", tf.debug.has_inf_or_nan)
        session.run(tf.global_variables_initializer())
        assert session.run(loss, {x: X}) > 0
        assert loss.eval({x: X}) > 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="has_inf_or_nan") as caught:
            session.run(loss, {x: np.zeros((3, 4))})
    assert caught.value.op_name == "log" and "test_debug.py" in str(caught.value)
    assert "6 infinite" in str(caught.value)


def test_breaks_at_chosen_operations(capsys):
    x, loss, _ = small_model()
    stopped = []
    with tf.debug.LocalDebugSession(tf.Session(), on_hit=lambda datum, value: stopped.append(datum)) as session:
        session.run(tf.global_variables_initializer())
        session.break_on("layer/pro.*", loss)
        session.run(loss, {x: X})
        assert [datum.node_name for datum in stopped] == ["layer/product", "loss"]
        assert stopped[0].op_type == "MatMul" and stopped[0].inputs == ("x:0", "layer/w/read:0")
    with tf.debug.LocalDebugSession(tf.Session(), on_hit="print") as session:
        session.run(tf.global_variables_initializer())
        session.break_on(loss)
        session.run(loss, {x: X})
    assert "loss:0 = Mean(" in capsys.readouterr().out
    with pytest.raises(tf.errors.InvalidArgumentError, match="on_hit"):
        tf.debug.LocalDebugSession(tf.Session(), on_hit="dance")


def debugged(monkeypatch, commands):
    """A run that stops at an operation, with these commands for the debugger."""
    x, loss, _ = small_model()
    with tf.debug.LocalCLIDebugWrapperSession(tf.Session(), on_hit="break") as session:
        session.run(tf.global_variables_initializer())
        session.break_on("layer/product")
        monkeypatch.setattr("sys.stdin", io.StringIO(commands))
        return session.run(loss, {x: X})


def test_a_break_opens_the_debugger_in_the_generated_code(monkeypatch, capsys):
    commands = "p [value.shape for name, value in locals().items() if name.startswith('v') and hasattr(value, 'shape')]"
    assert debugged(monkeypatch, f"{commands}\nc\n") > 0
    out = capsys.readouterr().out
    assert "layer/product:0 = MatMul" in out and "(Pdb)" in out and "(3, 2)" in out


def test_leaving_the_debugger_ends_the_step(monkeypatch):
    with pytest.raises(tf.errors.CancelledError, match="left"):
        debugged(monkeypatch, "q\n")


# -- dumps ---------------------------------------------------------------------------------------------


def test_a_step_goes_to_files_and_comes_back(tmp_path):
    x, loss, _ = small_model()
    words = tf.string_join([tf.constant(["a", "bc"]), "d"], name="words")
    half = tf.cast(tf.reduce_sum(x), tf.bfloat16, name="half")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.debug.dump(session, [loss, words, half], {x: X}, tmp_path / "step")
    found = tf.debug.DebugDump(tmp_path / "step")
    assert np.array_equal(found.get("layer/product:0"), X @ np.ones((4, 2)))
    assert found.get("words:0").tolist() == [b"ad", b"bcd"]
    assert found.get("half:0").dtype == tf.bfloat16.numpy and float(found.get("half:0")) == 12
    turn = next(datum for datum in found.tensors if datum.node_name.endswith("turn"))
    assert found.get(turn.name, 2)[0, 0] == 16
    assert found.find(tf.debug.has_inf_or_nan) == []
    assert [
        datum.name for datum in found.find(lambda datum, value: np.max(value) == 16 if value.dtype.kind == "f" else 0)
    ]
    with pytest.raises(tf.errors.NotFoundError):
        found.get("nothing:0")
    with pytest.raises(tf.errors.NotFoundError):
        tf.debug.DebugDump(tmp_path)
    (tmp_path / "step" / "tensors.json").write_text('[{"name": 1}]')
    with pytest.raises(tf.errors.DataLossError):
        tf.debug.DebugDump(tmp_path / "step")


def test_a_session_that_dumps_every_step(tmp_path):
    x, loss, _ = small_model()
    wrapped = tf.debug.DumpingDebugWrapperSession(tf.Session(), tmp_path, watch_fn=["layer/.*"])
    with wrapped as session:
        session.run(tf.global_variables_initializer())
        session.run(loss, {x: X})
    names = [datum.name for datum in tf.debug.DebugDumpDir(tmp_path / "run_2").tensors]
    assert "layer/product:0" in names and "loss:0" not in names


def test_numerics_are_checked_on_request():
    x = tf.placeholder(tf.float32, [], name="x")
    tf.log(x, name="log")
    check = tf.add_check_numerics_ops()
    with tf.Session() as session:
        session.run(check, {x: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="log"):
            session.run(check, {x: 0.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="no good"):
            session.run(tf.verify_tensor_all_finite(x, "no good"), {x: np.nan})


def test_the_namespace_of_checks():
    with tf.Session() as session:
        session.run(tf.debugging.assert_equal(tf.constant(1), 1))
        assert session.run(tf.debugging.is_finite(np.float32(np.inf))) == np.False_
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            session.run(tf.debugging.check_numerics(np.float32(np.nan), "bad"))


# -- trees ---------------------------------------------------------------------------------------------


def printed(**options):
    out = io.StringIO()
    tf.debug.show(console=Console(file=out, width=160), **options)
    return out.getvalue()


def test_the_graph_as_a_tree():
    with tf.device("/cpu:0"):
        small_model()
    text = printed()
    for expected in ("layer/", "product  MatMul  float32[?,2]  /device:CPU:0", "while  While", "body:", "turn  Add"):
        assert expected in text, text
    assert "Const " not in text and "constants that are not shown" in text
    assert "Const" in printed(constants=True)
    shallow = printed(depth=1)
    assert "gradients/  " in shallow and "operations" in shallow and "product" not in shallow
    scoped = printed(scope="layer")
    assert scoped.startswith("layer:") and "loss" not in scoped


# -- values that are printed ---------------------------------------------------------------------------


def array():
    return tf.TensorArray(tf.int32, 2, clear_after_read=False).write(1, 1).write(0, 0)


@pytest.mark.parametrize(
    ("build", "value_of", "expected", "shown"),
    [
        (
            lambda: tf.constant([1, 2], name="a"),
            lambda x: x,
            [1, 2],
            "[Name: a:0][Type: Tensor (int32)][Shape:][2][Values:][1 2]",
        ),
        (
            lambda: tf.constant([True, False], name="a"),
            lambda x: x,
            [True, False],
            "[Number of true elements:][1][Values:]",
        ),
        (lambda: tf.Variable(1.5), lambda x: x, 1.5, "[Type: Variable (float32)][Shape:][][Values:][1.5]"),
        (
            lambda: tf.SparseTensor([[0, 1]], [3], [2, 4]),
            tf.sparse_tensor_to_dense,
            [[0, 3, 0, 0], [0, 0, 0, 0]],
            "[Type: SparseTensor (int32)][Shape:][2 4][Values:][3]",
        ),
        (array, lambda x: x.stack(), [0, 1], "[Values:][0 1]"),
    ],
)
def test_values_are_printed_with_what_they_are(build, value_of, expected, shown, capfd):
    printed = value_of(tf.contrib.framework.print_op(build(), ["besides"], "Look: "))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(printed).tolist() == expected
    told = capfd.readouterr().err
    assert told.startswith("Look: ") and shown in told and "besides" in told


def test_what_cannot_be_printed():
    for nothing in (None, 3, [tf.constant(1)]):
        with pytest.raises(ValueError, match="must be of type Tensor, SparseTensor or TensorArray"):
            tf.contrib.framework.print_op(nothing)
