"""The kinds of errors: TensorFlow's constructors, codes and attributes."""

from __future__ import annotations

import pickle

import pytest

import tfray as tf
from tfray import errors

KINDS = {  # as ``tensorflow.compat.v1.errors`` numbers them
    1: errors.CancelledError,
    2: errors.UnknownError,
    3: errors.InvalidArgumentError,
    4: errors.DeadlineExceededError,
    5: errors.NotFoundError,
    6: errors.AlreadyExistsError,
    7: errors.PermissionDeniedError,
    8: errors.ResourceExhaustedError,
    9: errors.FailedPreconditionError,
    10: errors.AbortedError,
    11: errors.OutOfRangeError,
    12: errors.UnimplementedError,
    13: errors.InternalError,
    14: errors.UnavailableError,
    15: errors.DataLossError,
    16: errors.UnauthenticatedError,
}


@pytest.mark.parametrize("code", KINDS)
def test_kinds_have_tensorflows_codes(code):
    kind = KINDS[code]
    constant = next(name for name in dir(errors) if name.isupper() and getattr(errors, name) == code)
    assert constant.replace("_", "").lower() + "error" == kind.__name__.lower()
    assert errors.exception_type_from_error_code(code) is kind
    assert errors.error_code_from_exception_type(kind) == code


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_errors_are_made_as_in_tensorflow(kind):
    op = tf.no_op(name="culprit")
    error = kind(op.node_def, op, "what went wrong")
    assert (error.message, error.op, error.node_def.name) == ("what went wrong", op, "culprit")
    assert error.op_name == "culprit" and "what went wrong" in str(error) and "culprit" in str(error)
    bare = kind(None, None, "m")
    assert (bare.op, bare.node_def, bare.message, bare.args) == (None, None, "m", ("m",))
    assert kind(node_def=None, op=None, message="m").message == kind("m").message == "m"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and (again.message, again.op_name) == ("what went wrong", "culprit")
    assert again.error_code == error.error_code and again.op is None


def test_an_error_may_have_another_code_than_its_class():
    error = tf.OpError(None, None, "m", errors.ABORTED)
    assert error.error_code == pickle.loads(pickle.dumps(error)).error_code == errors.ABORTED


def test_classes_without_a_code_give_a_warning():
    with pytest.warns(UserWarning, match="Unknown class"):
        assert isinstance(errors.error_code_from_exception_type(RuntimeError), errors.UnknownError)
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(99)


def test_a_status_that_is_not_ok_raises_its_error():
    with errors.raise_exception_on_not_ok_status() as status:
        assert status.code == errors.OK
    with pytest.raises(errors.NotFoundError, match="gone"), errors.raise_exception_on_not_ok_status() as status:
        status.code, status.message = errors.NOT_FOUND, "gone"


def fails_in_a_step(inside):
    """A tensor whose evaluation raises in the operation ``check``, which stands in a branch if `inside`."""
    x = tf.placeholder(tf.float32, [])

    def check():
        return tf.check_numerics(tf.log(x), "not a number", name="check")

    return x, tf.cond(x < 0, check, lambda: x) if inside else check()


@pytest.mark.parametrize("inside", [False, True], ids=["graph", "branch"])
def test_errors_of_steps_have_the_operation_of_the_users_graph(inside):
    x, y = fails_in_a_step(inside)
    with tf.Session() as session:
        for call in (lambda: session.run(y, {x: -1.0}), lambda: session.make_callable(y, [x])(-1.0)):
            with pytest.raises(errors.InvalidArgumentError) as caught:
                call()
            error = caught.value
            assert error.error_code == errors.INVALID_ARGUMENT and error.op.type == error.node_def.op == "CheckNumerics"
            assert error.op.name.endswith("check") and error.op.graph.root is session.graph
            assert "not a number" in error.message


@pytest.mark.ray
def test_errors_of_steps_on_ray_have_the_operation_of_the_users_graph(ray_local):
    x, y = fails_in_a_step(False)
    with tf.Cluster({"worker": tf.JobSpec(1, num_cpus=0.1)}) as cluster, tf.Session(cluster) as session:
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run(y, {x: -1.0})
        assert caught.value.op is session.graph.get_operation_by_name("check")
        assert caught.value.node_def.op == "CheckNumerics"


WRONG_CALLS = [  # each with the class that TensorFlow 2.21's `compat.v1` raises
    (lambda x, i: x + i, TypeError),
    (lambda x, i: tf.add(x, "a"), TypeError),
    (lambda x, i: tf.truediv(x, i), TypeError),
    (lambda x, i: tf.logical_not(x), TypeError),
    (lambda x, i: tf.sqrt(i), TypeError),
    (lambda x, i: tf.concat([x, i], 0), TypeError),
    (lambda x, i: tf.assert_type(x, tf.int32), TypeError),
    (lambda x, i: tf.constant("a", tf.int32), TypeError),
    (lambda x, i: tf.constant(1.5, tf.int32), TypeError),
    (lambda x, i: tf.convert_to_tensor(x, tf.int32), ValueError),
    (lambda x, i: tf.matmul(x, x), ValueError),
    (lambda x, i: tf.reshape(x, [5]), ValueError),
    (lambda x, i: tf.cond(tf.placeholder(tf.bool, []), lambda: 1, lambda: 2.0), ValueError),
    (lambda x, i: tf.nest.assert_same_structure([1], 1), ValueError),
    (lambda x, i: x.op.get_attr("nonsense"), ValueError),
]


@pytest.mark.parametrize(("call", "kind"), WRONG_CALLS)
def test_wrong_calls_raise_tensorflows_errors_while_the_graph_is_built(call, kind):
    x, i = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2, 3])
    with pytest.raises(kind):
        call(x, i)


WRONG_RUNS = [
    (None, {}, TypeError),
    (3, {}, TypeError),
    ([None], {}, TypeError),
    ("nothing", {}, ValueError),
    ("nothing:0", {}, ValueError),
    ([], {3: 1.0}, TypeError),
    ("x:0", {"x:0": [1.0]}, ValueError),
    ("x:0", {"x:0": "abc"}, ValueError),
    ("x:0", {}, errors.InvalidArgumentError),
    ("v:0", {}, errors.FailedPreconditionError),
]


@pytest.mark.parametrize(("fetch", "feeds", "kind"), WRONG_RUNS, ids=str)
def test_wrong_runs_raise_tensorflows_errors(fetch, feeds, kind):
    tf.placeholder(tf.float32, [2, 3], name="x")
    tf.Variable(1.0, name="v")
    with tf.Session() as session, pytest.raises(kind):
        session.run(fetch, feeds)


def test_sessions_that_are_closed_or_have_nothing_to_run():
    with tf.Session(graph=tf.Graph()) as session, pytest.raises(RuntimeError, match="empty"):
        session.run([])
    one = tf.constant(1)
    session = tf.Session()
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.run(one)


def test_what_a_message_quotes_cannot_steer_a_terminal():
    error = tf.errors.DataLossError("no operation 'a\x1b[31m\x00\ud800'\nin\tthis file")
    assert error.message == str(error) == "no operation 'a\\x1b[31m\\x00\\ud800'\nin\tthis file"
