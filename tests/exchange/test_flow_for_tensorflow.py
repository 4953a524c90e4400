"""Branches, loops and TensorArrays of tfray, and their gradients, in TensorFlow's form."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess

import numpy as np
import pytest

import tfray as tf
from tests.support import GOLDEN
from tests.support.graphs.control_flow_graphs import check_steps, read_golden_graphs
from tests.support.graphs.run_by_tensorflow import differences
from tests.support.peer import PEER, needs_peer
from tfray.errors import UnimplementedError
from tfray.exchange.to_tensorflow import check_for_tensorflow, to_tensorflow
from tfray.formats.graph_proto import GraphDef
from tfray.library.input.staging import MapStagingArea

PROGRAMS = {}
"""By name, what builds a graph, and returns what to fetch and what each step feeds."""


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def some(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def vector(size=3):
    x = tf.placeholder(tf.float32, [size], name="x")
    return x, [{x: some(size)}, {x: some(size, seed=1) + 1}]


@program
def loop_gradient():
    x, steps = vector()
    i, y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y) * x), [0, x])
    return [i, y, *tf.gradients(y, [x])], steps


@program
def loop_of_unknown_length_gradient():
    x, steps = vector()
    limit = tf.placeholder(tf.float32, [], name="limit")
    y = tf.while_loop(lambda y: tf.reduce_sum(y * y) < limit, lambda y: y * 2.0 + x, [x])
    return [y, *tf.gradients(y, [x])], [step | {limit: value} for step in steps for value in (0.0, 50.0)]


@program
def products_of_all_turns():
    x, w = tf.placeholder(tf.float32, [None, 3], name="x"), tf.constant(some(3, 3, seed=4))
    turns = tf.placeholder(tf.int32, [], name="turns")
    _, y = tf.while_loop(lambda i, _: i < turns, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), [0, x])
    return [y, *tf.gradients(y, [x, w])], [{x: some(2, 3), turns: count} for count in (3, 0)]


@program
def nested_loops_gradient():
    x, steps = vector()

    def body(i, y):
        _, z = tf.while_loop(lambda j, _: j < i + 1, lambda j, z: (j + 1, tf.sin(z) + x), [0, y])
        return i + 1, z * y

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    return [y, *tf.gradients(y, [x])], steps


@program
def branches_gradient():
    x, steps = vector()
    inner = lambda: tf.cond(x[1] > 0.5, lambda: tf.exp(x) * x, lambda: x * x * x)  # noqa: E731
    y = tf.cond(x[0] > 0, inner, lambda: tf.sin(x) * x)
    return [y, *tf.gradients(y, [x])], [*steps, {x: -some(3)}]


@program
def branch_in_loop_gradient():
    x, steps = vector()
    turn = lambda i, y: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.exp(y), lambda: tf.sin(y) * x))  # noqa: E731
    _, y = tf.while_loop(lambda i, _: i < 4, turn, [0, x])
    return [y, *tf.gradients(y, [x])], steps


@program
def second_gradient_of_a_branch():
    x, steps = vector()
    y = tf.cond(x[0] > 0, lambda: x * x * x, lambda: tf.sin(x))
    (first,) = tf.gradients(y, [x])
    return [first, *tf.gradients(first, [x])], steps


@program
def array_gradient():
    x, steps = vector()
    array = tf.TensorArray(tf.float32, 3).unstack(x)
    results = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    turn = lambda i, y, a: (i + 1, y * array.read(i), a.write(i, tf.sin(y)))  # noqa: E731
    _, y, results = tf.while_loop(lambda i, *_: i < 3, turn, [0, 1.0, results])
    return [y, results.size(), results.stack(), *tf.gradients([y, results.stack()], [x])], steps


@program
def array_scattered_and_gathered():
    x = tf.placeholder(tf.float32, [3, 2], name="x")
    array = tf.TensorArray(tf.float32, 5).scatter([4, 0, 2], x)
    y = array.gather([2, 4, 2]) * some(3, 2, seed=5) + array.read(0)
    return [y, *tf.gradients(y, [x])], [{x: some(3, 2)}]


@program
def array_split_and_joined():
    x = tf.placeholder(tf.float32, [6, 2], name="x")
    parts = tf.TensorArray(tf.float32, 3, infer_shape=False).split(x, [1, 3, 2])
    joined = (
        tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, parts.read(1) * 2.0).write(1, tf.sin(parts.read(2)))
    )
    y = joined.concat() * some(5, 2, seed=3)
    return [y, *tf.gradients(y, [x])], [{x: some(6, 2)}]


@program
def array_of_integers_and_flags():
    x = tf.placeholder(tf.int32, [3], name="x")
    array = tf.TensorArray(tf.int32, 3).unstack(x)
    flags = tf.TensorArray(tf.bool, 3)
    _, flags = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, array.read(i) > 1)), [0, flags])
    return [flags.stack(), array.gather([2, 0])], [{x: [0, 1, 2]}]


@program
def functions_of_elements_gradient():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
    z = tf.scan(lambda total, row: tf.sin(total) * row + row, x)
    w = tf.foldl(lambda total, row: total * row + 1.0, x)
    return [y, z, w, *tf.gradients([y, z, w], [x])], [{x: some(3, 2)}, {x: some(1, 2)}]


@program
def elements_that_are_not_read_gradient():
    x = tf.placeholder(tf.float32, [4, 2], name="x")
    array = tf.TensorArray(tf.float32, 4).unstack(x)
    squares = tf.TensorArray(tf.float32, 4)
    turn = lambda i, a: (i + 1, a.write(i, array.read(i) * array.read(i)))  # noqa: E731
    _, squares = tf.while_loop(lambda i, _: i < 4, turn, [0, squares])
    y = squares.read(2) + squares.gather([2, 1])[1]
    return [y, *tf.gradients(y, [x])], [{x: some(4, 2)}]


@program
def gradients_that_are_one_operation_here():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    rows = tf.gather(tf.tile(x, [2, 1]), [0, 1, 0, 2])
    parts = tf.slice(tf.nn.softmax(rows), [1, 0], [2, 3]) * tf.nn.log_softmax(x)[1:3, 1:]
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(x * 2.0), logits=x * 30.0)
    bias = tf.constant(some(4, seed=2))
    kept = tf.where(x > 0.1, x * bias, x + bias)
    y = tf.reduce_sum(parts) + tf.reduce_mean(loss, 0) + tf.reduce_sum(kept * tf.transpose(tf.transpose(x)), [0, -1])
    return [y, *tf.gradients(y, [x, bias])], [{x: some(3, 4)}, {x: some(5, 4, seed=1)}]


@program
def ranks_that_are_not_known():
    x = tf.placeholder(tf.float32, None, name="x")
    y = tf.transpose(x) * 2.0
    z = tf.linalg.matrix_transpose(x)
    return [y, z, *tf.gradients([y, z * z], [x])], [{x: some(2, 3)}, {x: some(2, 3, 4)}]


@program
def lstm_training():
    x = tf.placeholder(tf.float32, [3, None, 4], name="x")
    lengths = tf.placeholder(tf.int32, [3], name="lengths")
    outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(5), x, lengths, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs[:, :, :4] - x)) + tf.reduce_mean(tf.square(state.h))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    known = [tf.assign(v, some(*v.shape.as_list(), seed=i)) for i, v in enumerate(tf.trainable_variables())]
    with tf.control_dependencies([tf.global_variables_initializer()]):
        tf.group(*known, name="setup")
    feeds = [{x: some(3, 4 + step % 3, 4, seed=step), lengths: [4, 1 + step % 4, 2]} for step in range(20)]
    return [loss, train], feeds


@program
def areas_within_branches():
    x, steps = vector()
    plain = tf.contrib.staging.StagingArea([tf.float32, tf.int32], [[3], []])
    keyed = MapStagingArea([tf.float32], [[3]], ordered=True)

    def staged():
        with tf.control_dependencies([plain.put([x, 7])]):
            values, number = plain.get()
        with tf.control_dependencies([keyed.put(tf.constant(5, tf.int64), [values])]):
            _, (found,) = keyed.get()
        return found * tf.cast(number, tf.float32)

    return [tf.cond(tf.reduce_sum(x) > 2, staged, lambda: -x)], steps


def built(name):
    """The message of a program, what to fetch and to feed, by name, and what each step returns."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        fetches, steps = PROGRAMS[name]()
        fetches = [tf.identity(each) if isinstance(each, tf.Tensor) else each for each in fetches]
        if "setup" in graph:
            session.run(tf.global_variables_initializer())
            session.run("setup")
        results = [[value for value in session.run(fetches, step) if value is not None] for step in steps]
    fed = [{key.name: np.asarray(value, key.dtype.numpy) for key, value in step.items()} for step in steps]
    return to_tensorflow(graph), [fetch.name for fetch in fetches], fed, results


@pytest.mark.parametrize("name", PROGRAMS)
def test_written_graphs_compute_the_same_here(name):
    definition, fetches, steps, results = built(name)
    tf.import_graph_def(GraphDef.FromString(definition.SerializeToString()), name="")
    with tf.Session() as session:
        if "setup" in tf.get_default_graph():
            session.run([op.name for op in tf.get_default_graph().get_operations() if op.name == "init"])
            session.run("setup")
        for step, expected in zip(steps, results, strict=True):
            found = [value for value in session.run(fetches, step) if value is not None]
            for value, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(value, wanted, 1e-5, 1e-5)


RUN_BY_TENSORFLOW = """
import json, sys
import numpy as np, tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
folder = sys.argv[1]
for name, (fetches, steps) in json.load(open(f"{folder}/programs.json")).items():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(open(f"{folder}/{name}.pb", "rb").read()), name="")
        operations = {each.name for each in graph.get_operations()}
        for each in ("init", "setup"):
            if each in operations:
                session.run(each)
        found = {}
        for step in range(steps):
            feeds = dict(np.load(f"{folder}/{name}.{step}.npz"))
            values = [value for value in session.run(fetches, feeds) if value is not None]
            found |= {f"{step}/{index}": value for index, value in enumerate(values)}
        np.savez(f"{folder}/{name}.found.npz", **found)
"""


@pytest.mark.slow
@needs_peer
def test_tensorflow_computes_the_same(tmp_path):
    results, listed = {}, {}
    for name in PROGRAMS:
        definition, fetches, steps, results[name] = built(name)
        (tmp_path / f"{name}.pb").write_bytes(definition.SerializeToString())
        for index, step in enumerate(steps):
            np.savez(tmp_path / f"{name}.{index}.npz", **step)
        listed[name] = fetches, len(steps)
    (tmp_path / "programs.json").write_text(json.dumps(listed))
    environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [PEER, "-c", RUN_BY_TENSORFLOW, str(tmp_path)]
    done = subprocess.run(command, timeout=500, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, expected in results.items():
        with np.load(tmp_path / f"{name}.found.npz") as found:
            for step, values in enumerate(expected):
                for index, value in enumerate(values):
                    np.testing.assert_allclose(found[f"{step}/{index}"], value, 1e-5, 1e-5, err_msg=name)


GRAPHS = read_golden_graphs(GOLDEN / "control_flow.npz.xz")


def written_again(golden):
    """A graph of TensorFlow's, imported and written again."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(GraphDef.FromString(golden.graph), return_elements=golden.fetches, name="")
    return to_tensorflow(graph)


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("name", [name for name, golden in GRAPHS.items() if b"TensorArrayGrad" in golden.graph])
def test_imported_graphs_go_out_and_come_in_again(name):
    golden = GRAPHS[name]
    fetches = tf.import_graph_def(written_again(golden), return_elements=golden.fetches, name="")
    with tf.Session() as session:
        check_steps(golden, fetches, session)


ANOTHER_THERE = {"order_of_effects_in_branch"}
"""There TensorFlow returns what a reference points to at the end of the step."""


@pytest.mark.slow
@needs_peer
def test_tensorflow_runs_its_own_control_flow_again(tmp_path):
    graphs = [
        dataclasses.replace(golden, graph=written_again(golden).SerializeToString())
        for name, golden in GRAPHS.items()
        if name not in ANOTHER_THERE
    ]
    assert len(graphs) == 126 and differences(graphs, tmp_path) == {}


def test_a_list_of_several_dtypes_stays_what_it_is():
    """TensorFlow has no such lists."""
    flow = tf.TensorArray(tf.float32, 2).write(0, 1.0).flow
    tf.TensorArray(tf.int32, flow=flow).write(1, 2)
    written = to_tensorflow(tf.get_default_graph())
    with pytest.raises(UnimplementedError, match=r"no equivalent of: TensorArray \(1, the first is 'TensorArray'\)"):
        check_for_tensorflow(written)


@pytest.mark.parametrize("counts", [False, True])
def test_loops_tell_the_shapes_of_their_outputs_in_the_places_that_these_have_there(session, counts):
    first = tf.placeholder_with_default(some(2, 3), [2, 3])
    i, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2.0), [0, first], name="loop")
    wanted = tf.identity(tf.gradients(y, first)[0] if counts else y)  # a gradient asks for the number of turns
    for name in ("i", "y", "wanted"):
        tf.add_to_collection(name, locals()[name])
    made = tf.train.export_meta_graph()
    [loop] = [node for node in made.graph_def.node if node.name == "loop"]
    told = [tf.TensorShape(shape) for shape in loop.attr["_output_shapes"].list.shape]
    assert told[:2] == [tf.TensorShape([]), tf.TensorShape([2, 3])] and len(told) == len(loop.attr["T"].list.type)
    expected = session.run([i, y, wanted])
    with tf.Graph().as_default(), tf.Session() as other:
        tf.train.import_meta_graph(made)
        again = [tf.get_collection(name)[0] for name in ("i", "y", "wanted")]
        assert [tensor.shape for tensor in again[:2]] == [[], [2, 3]]
        for value, right in zip(other.run(again), expected, strict=True):
            np.testing.assert_array_equal(value, right)
