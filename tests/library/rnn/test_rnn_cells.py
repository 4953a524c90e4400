"""Recurrent cells and their wrappers: values, names of variables, states, errors."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.gradient_check import check_gradients
from tests.support.references.recurrent_reference import basic_step, gru_step, layer_norm_lstm_step, lstm_step, sigmoid
from tests.support.sessions import randomized
from tfray.contrib import rnn as contrib_rnn
from tfray.errors import InvalidArgumentError

rnn_cell = tf.nn.rnn_cell
X = np.random.default_rng(0).normal(size=(3, 2))
H = np.random.default_rng(1).normal(size=(3, 4))
C = np.random.default_rng(2).normal(size=(3, 4))


@pytest.mark.parametrize("make", [rnn_cell.BasicLSTMCell, rnn_cell.GRUCell, rnn_cell.BasicRNNCell])
def test_a_cell_that_stands_in_a_stack_twice_shares_its_weights(session, make):
    cell, alone = make(4), make(4)
    x = tf.ones([3, 4])
    state = cell.zero_state(3, tf.float32)
    output, _ = rnn_cell.MultiRNNCell([cell] * 2)(x, (state, state))
    names = {variable.op.name for variable in tf.trainable_variables()}
    assert all(name.startswith("multi_rnn_cell/cell_0/") for name in names)  # TensorFlow 1.15's names
    with tf.variable_scope("multi_rnn_cell/cell_0", reuse=True):
        first, _ = alone(x, state)
        second, _ = alone(first, state)
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(*session.run([output, second]), rtol=1e-6)
    with tf.variable_scope("wide"), pytest.raises(ValueError, match="Dimensions must be equal"):
        wide = make(5)
        rnn_cell.MultiRNNCell([wide] * 2)(x, (wide.zero_state(3, tf.float32),) * 2)


# -- cells ---------------------------------------------------------------------------------------------

CELLS = {
    "basic": (lambda: rnn_cell.BasicRNNCell(4), "basic_rnn_cell", basic_step, ["kernel", "bias"]),
    "gru": (
        lambda: rnn_cell.GRUCell(4),
        "gru_cell",
        gru_step,
        ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"],
    ),
    "basic lstm": (lambda: rnn_cell.BasicLSTMCell(4), "basic_lstm_cell", lstm_step, ["kernel", "bias"]),
    "basic lstm, other bias": (
        lambda: rnn_cell.BasicLSTMCell(4, forget_bias=0.25),
        "basic_lstm_cell",
        lambda w, x, s: lstm_step(w, x, s, forget_bias=0.25),
        ["kernel", "bias"],
    ),
    "basic lstm, other activation": (
        lambda: rnn_cell.BasicLSTMCell(4, activation=tf.nn.relu),
        "basic_lstm_cell",
        lambda w, x, s: lstm_step(w, x, s, activation=lambda v: np.maximum(v, 0)),
        ["kernel", "bias"],
    ),
    "lstm": (lambda: rnn_cell.LSTMCell(4), "lstm_cell", lstm_step, ["kernel", "bias"]),
    "lstm, peepholes": (
        lambda: rnn_cell.LSTMCell(4, use_peepholes=True),
        "lstm_cell",
        lstm_step,
        ["kernel", "bias", "w_f_diag", "w_i_diag", "w_o_diag"],
    ),
    "lstm, clipped": (
        lambda: rnn_cell.LSTMCell(4, cell_clip=0.3, activation="tanh"),
        "lstm_cell",
        lambda w, x, s: lstm_step(w, x, s, cell_clip=0.3),
        ["kernel", "bias"],
    ),
    "lstm, named": (
        lambda: rnn_cell.LSTMCell(4, name="memory", activation="sigmoid"),
        "memory",
        lambda w, x, s: lstm_step(w, x, s, activation=sigmoid),
        ["kernel", "bias"],
    ),
    "layer norm": (
        lambda: contrib_rnn.LayerNormBasicLSTMCell(4),
        "layer_norm_basic_lstm_cell",
        layer_norm_lstm_step,
        ["kernel"]
        + [f"{s}/{v}" for s in ("input", "transform", "forget", "output", "state") for v in ("gamma", "beta")],
    ),
    "block": (lambda: contrib_rnn.LSTMBlockCell(4), "lstm_cell", lstm_step, ["kernel", "bias"]),
}


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("kind", CELLS)
def test_one_step(session, kind, dtype):
    make, scope, step, names = CELLS[kind]
    cell, is_lstm = make(), "lstm" in kind or kind in ("layer norm", "block")
    x, c, h = (tf.placeholder(dtype, [None, size]) for size in (2, 4, 4))
    state = rnn_cell.LSTMStateTuple(c, h) if is_lstm else h
    output, new_state = cell(x, state)
    assert [v.op.name for v in cell.variables] == [f"{scope}/{name}" for name in names]
    assert all(variable.dtype is dtype for variable in tf.trainable_variables())
    weights = randomized(session, scope)
    expected = step(weights, X, (C, H) if is_lstm else H)
    got = session.run((output, new_state), {x: X, c: C, h: H})
    tolerance = 1e-5 if dtype is tf.float32 else 1e-12
    np.testing.assert_allclose(got[0], expected[0], tolerance, tolerance)
    np.testing.assert_allclose(np.stack(got[1]), np.stack(expected[1]), tolerance, tolerance)
    if is_lstm:
        assert type(new_state) is rnn_cell.LSTMStateTuple and type(got[1]) is rnn_cell.LSTMStateTuple
    assert output.shape.as_list() == [None, 4] and cell.output_size == 4


def test_projected_lstm(session):
    cell = rnn_cell.LSTMCell(4, num_proj=3, proj_clip=0.4, use_peepholes=True, initializer=tf.ones_initializer())
    assert cell.state_size == (4, 3) and cell.output_size == 3
    x, c, h = (tf.placeholder(tf.float64, [3, size]) for size in (2, 4, 3))
    output, state = cell(x, rnn_cell.LSTMStateTuple(c, h))
    session.run(tf.global_variables_initializer())
    assert session.run(cell.trainable_variables[0]).min() == 1
    weights = randomized(session, "lstm_cell")
    assert weights["projection/kernel"].shape == (4, 3)
    expected, expected_state = lstm_step(weights, X, (C, H[:, :3]), proj_clip=0.4)
    got, got_state = session.run([output, state], {x: X, c: C, h: H[:, :3]})
    np.testing.assert_allclose(got, expected, 1e-12)
    np.testing.assert_allclose(got_state.c, expected_state[0], 1e-12)


def test_partitioned_lstm(session):
    cell = rnn_cell.LSTMCell(4, num_unit_shards=2, num_proj=2, num_proj_shards=2)
    output, _ = cell(tf.ones([3, 2]), cell.zero_state(3, tf.float32))
    names = [variable.op.name for variable in tf.global_variables()]
    assert names[:2] == ["lstm_cell/kernel/part_0", "lstm_cell/kernel/part_1"] and len(names) == 5
    session.run(tf.global_variables_initializer())
    assert session.run(output).shape == (3, 2)


@pytest.mark.parametrize("make", [rnn_cell.BasicLSTMCell, rnn_cell.LSTMCell])
def test_states_in_one_tensor(session, make):
    together, apart = make(4, state_is_tuple=False, name="cell"), make(4, name="cell", reuse=True)
    assert together.state_size == 8
    output, state = together(tf.constant(X), tf.constant(np.concatenate([C, H], 1)))
    expected, expected_state = apart(tf.constant(X), rnn_cell.LSTMStateTuple(tf.constant(C), tf.constant(H)))
    session.run(tf.global_variables_initializer())
    got = session.run([output, state, expected, tf.concat(expected_state, 1)])
    np.testing.assert_array_equal(got[0], got[2])
    np.testing.assert_array_equal(got[1], got[3])


def test_initial_values_are_those_of_tensorflow(session):
    cell = rnn_cell.GRUCell(4)
    cell(tf.ones([1, 2]), tf.zeros([1, 4]))
    session.run(tf.global_variables_initializer())
    values = {v.op.name: session.run(v) for v in tf.global_variables()}
    assert (values["gru_cell/gates/bias"] == 1).all() and (values["gru_cell/candidate/bias"] == 0).all()
    assert np.abs(values["gru_cell/gates/kernel"]).max() <= (6 / (6 + 8)) ** 0.5  # Glorot


def test_zero_states():
    lstm = rnn_cell.BasicLSTMCell(4)
    state = lstm.zero_state(3, tf.float64)
    assert type(state) is rnn_cell.LSTMStateTuple and state.c.shape.as_list() == [3, 4] and state.dtype is tf.float64
    multi = rnn_cell.MultiRNNCell([rnn_cell.GRUCell(2), lstm])
    batch = tf.placeholder(tf.int32, [])
    sizes = multi.zero_state(batch, tf.float32)
    assert sizes[0].shape.as_list() == [None, 2] and sizes[1].h.shape.as_list() == [None, 4]
    with tf.Session() as session:
        assert session.run(sizes[1].h, {batch: 5}).tolist() == np.zeros((5, 4)).tolist()
    x = tf.placeholder(tf.float32, [None, 2])
    assert lstm.get_initial_state(inputs=x).c.shape.as_list() == [None, 4]
    assert lstm.zero_state(tf.constant(2), tf.float32).c.shape.as_list() == [2, 4]
    with pytest.raises(InvalidArgumentError, match="batch_size and dtype"):
        lstm.get_initial_state(batch_size=3)


def test_a_cell_used_twice_shares_its_variables():
    cell = rnn_cell.GRUCell(4)
    _, state = cell(tf.ones([1, 2]), tf.zeros([1, 4]))
    cell(tf.ones([1, 2]), state)
    assert len(tf.global_variables()) == 4
    other = rnn_cell.GRUCell(4)
    other(tf.ones([1, 2]), state)
    assert tf.global_variables()[4].op.name == "gru_cell_1/gates/kernel"


def test_cells_in_scopes():
    with tf.variable_scope("model"):
        rnn_cell.BasicRNNCell(4)(tf.ones([1, 2]), tf.zeros([1, 4]), scope="inner")
    assert tf.global_variables()[0].op.name == "model/inner/kernel"


def test_a_cell_of_ones_own(session):
    class Counting(rnn_cell.RNNCell):
        @property
        def state_size(self):
            return 2

        @property
        def output_size(self):
            return 2

        def call(self, inputs, state):
            scale = tf.get_variable("scale", [2], initializer=tf.constant_initializer(2.0))
            return inputs * scale + state, state + 1

    cell = Counting()
    outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([1, 3, 2]), dtype=tf.float32)
    assert [v.op.name for v in cell.trainable_variables] == ["rnn/counting/scale"]
    session.run(tf.global_variables_initializer())
    assert session.run(outputs)[0].tolist() == [[2, 2], [3, 3], [4, 4]] and session.run(state).tolist() == [[3, 3]]


def test_a_cell_that_overrides_the_call_as_older_programs_do(session):
    class Older(rnn_cell.RNNCell):
        @property
        def state_size(self):
            return 1

        @property
        def output_size(self):
            return 1

        def __call__(self, inputs, state, scope=None):
            with tf.variable_scope(scope or type(self).__name__):
                w = tf.get_variable("w", [1], initializer=tf.ones_initializer())
            return inputs + state * w, state + inputs

    inputs = [tf.constant([[float(i)]]) for i in range(3)]
    outputs, _ = tf.nn.static_rnn(Older(), inputs, dtype=tf.float32)
    assert [v.op.name for v in tf.trainable_variables()] == ["rnn/Older/w"]
    session.run(tf.global_variables_initializer())
    assert [float(value[0, 0]) for value in session.run(outputs)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: rnn_cell.GRUCell(4)(tf.placeholder(tf.float32, [3, None]), tf.zeros([3, 4])), ValueError, "known"),
        (lambda: rnn_cell.GRUCell(4)(tf.ones([3]), tf.zeros([3, 4])), ValueError, "rank"),
        (lambda: rnn_cell.MultiRNNCell([]), ValueError, "at least one"),
        (lambda: rnn_cell.MultiRNNCell(rnn_cell.GRUCell(2)), TypeError, "list of cells"),
        (lambda: rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(2)], state_is_tuple=False), ValueError, "state_is_tuple"),
        (lambda: rnn_cell.DropoutWrapper(3), TypeError, "no RNNCell"),
        (
            lambda: rnn_cell.DropoutWrapper(rnn_cell.GRUCell(2), 1.5),
            ValueError,
            "input_keep_prob must be between 0 and 1: 1.5",
        ),
        (lambda: rnn_cell.DropoutWrapper(rnn_cell.GRUCell(2), 0.5, variational_recurrent=True), ValueError, "dtype"),
        (
            lambda: rnn_cell.LSTMStateTuple(tf.ones([1]), tf.constant([1])).dtype,
            TypeError,
            "Inconsistent internal state",
        ),
        (lambda: rnn_cell.BasicRNNCell(2, activation="nothing"), ValueError, "no activation"),
    ],
)
def test_refusals(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_dtypes_are_known_after_the_first_inputs():
    for cell, given in ((rnn_cell.GRUCell(2), None), (rnn_cell.GRUCell(2, dtype=tf.float64), tf.float64)):
        assert cell.dtype is given
        cell(tf.ones([1, 2], tf.float64), tf.zeros([1, 2], tf.float64))
        assert cell.dtype == "float64"


def test_a_getter_makes_variables_that_are_not_trainable():
    def frozen(getter, *args, **kwargs):
        return getter(*args, **{**kwargs, "trainable": False})

    for make in (lambda: rnn_cell.BasicRNNCell(2), lambda: rnn_cell.GRUCell(2)):
        cell = make()
        with tf.variable_scope("root", custom_getter=frozen):
            cell(tf.zeros([1, 2]), tf.zeros([1, 2]))
        assert not cell.trainable_variables and len(cell.non_trainable_variables) in (2, 4)


# -- wrappers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (rnn_cell.DropoutWrapper, {"input_keep_prob": 0.5, "seed": 3}),
        (rnn_cell.DropoutWrapper, {"dropout_state_filter_visitor": lambda state: True}),
        (rnn_cell.ResidualWrapper, {"residual_fn": lambda i, o: i + i + o}),
        (rnn_cell.DeviceWrapper, {"device": "/cpu:0"}),
    ],
)
def test_wrappers_are_made_anew_from_their_configuration(kind, settings):
    wrapper = kind(rnn_cell.LSTMCell(10, use_peepholes=True, name="within"), name="around", **settings)
    config = wrapper.get_config()
    assert config["cell"]["config"]["num_units"] == 10 and config["name"] == "around"
    made = kind.from_config(config)
    other = kind.from_config({**config, "cell": rnn_cell.LSTMCell.from_config(config["cell"]["config"])})
    for each in (made, other):
        assert type(each) is kind and type(each.wrapped_cell) is rnn_cell.LSTMCell and each.get_config() == config
    assert made.wrapped_cell is not wrapper.wrapped_cell and made.name == "around"


def test_stacked_cells(session):
    cell = rnn_cell.MultiRNNCell([rnn_cell.GRUCell(4), rnn_cell.BasicLSTMCell(3)])
    assert cell.state_size == (4, (3, 3)) and cell.output_size == 3
    state = (tf.constant(H), rnn_cell.LSTMStateTuple(tf.constant(C[:, :3]), tf.constant(H[:, :3])))
    output, new_state = cell(tf.constant(X), state)
    names = [v.op.name for v in cell.trainable_variables]
    assert names[0] == "multi_rnn_cell/cell_0/gru_cell/gates/kernel"
    assert names[4:] == [f"multi_rnn_cell/cell_1/basic_lstm_cell/{name}" for name in ("kernel", "bias")]
    weights = randomized(session, "multi_rnn_cell")
    first = {k.removeprefix("cell_0/gru_cell/"): v for k, v in weights.items()}
    second = {k.removeprefix("cell_1/basic_lstm_cell/"): v for k, v in weights.items()}
    middle, _ = gru_step(first, X, H)
    expected, (c, _) = lstm_step(second, middle, (C[:, :3], H[:, :3]))
    got, got_state = session.run([output, new_state])
    np.testing.assert_allclose(got, expected, 1e-12)
    np.testing.assert_allclose(got_state[0], middle, 1e-12)
    np.testing.assert_allclose(got_state[1].c, c, 1e-12)


def test_stacked_cells_with_one_tensor_as_state(session):
    cell = rnn_cell.MultiRNNCell([rnn_cell.GRUCell(4), rnn_cell.GRUCell(3)], state_is_tuple=False)
    assert cell.state_size == 7
    _, state = cell(tf.ones([2, 2]), cell.zero_state(2, tf.float32))
    session.run(tf.global_variables_initializer())
    assert session.run(state).shape == (2, 7)


def test_dropout_wrapper(session):
    tf.set_random_seed(3)
    inner = rnn_cell.BasicRNNCell(200)
    plain, _ = inner(tf.ones([5, 300]), tf.ones([5, 200]))
    cell = rnn_cell.DropoutWrapper(inner, output_keep_prob=0.5, state_keep_prob=tf.constant(0.25))
    output, state = cell(tf.ones([5, 300]), tf.ones([5, 200]))
    session.run(tf.global_variables_initializer())
    expected, got, after = session.run([plain, output, state])
    kept = got != 0
    np.testing.assert_allclose(got[kept], 2 * expected[kept], 1e-6)
    assert 0.4 < kept.mean() < 0.6 and 0.15 < (after != 0).mean() < 0.35
    assert cell.trainable_variables == inner.trainable_variables and cell.wrapped_cell is inner
    same = rnn_cell.DropoutWrapper(inner)
    assert session.run(same(tf.ones([5, 300]), tf.ones([5, 200]))[0]).tolist() == expected.tolist()


@pytest.mark.parametrize("part", ["input_keep_prob", "output_keep_prob", "state_keep_prob"])
def test_a_variable_says_how_much_dropout_keeps(session, part):
    share = tf.Variable(1.0, trainable=False)
    inner = rnn_cell.BasicRNNCell(50)
    results = [
        cell(tf.ones([2, 60]), tf.ones([2, 50])) for cell in (inner, rnn_cell.DropoutWrapper(inner, **{part: share}))
    ]
    session.run(tf.global_variables_initializer())
    for plain, dropped in zip(*session.run(results), strict=True):
        np.testing.assert_array_equal(plain, dropped)
    session.run(share.assign(0.5))
    plain, dropped = session.run(results)
    assert any((first != second).any() for first, second in zip(plain, dropped, strict=True))


def test_dropout_of_a_state_spares_the_memory(session):
    cell = rnn_cell.DropoutWrapper(rnn_cell.BasicLSTMCell(100, forget_bias=5.0), state_keep_prob=0.5)
    _, state = cell(tf.ones([2, 3]), rnn_cell.LSTMStateTuple(tf.ones([2, 100]), tf.ones([2, 100])))
    session.run(tf.global_variables_initializer())
    c, h = session.run(state)
    assert (c != 0).all() and 0.3 < (h == 0).mean() < 0.7


def test_variational_dropout_drops_the_same_in_every_step(session):
    cell = rnn_cell.DropoutWrapper(
        rnn_cell.BasicRNNCell(100), 0.5, 0.5, 0.5, variational_recurrent=True, input_size=3, dtype=tf.float32, seed=1
    )
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.random_normal([2, 6, 3]), dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    dropped = session.run(outputs) == 0
    assert (dropped == dropped[:1, :1]).all() and 0.2 < dropped.mean() < 0.8
    again = session.run(outputs) == 0
    assert (dropped != again).any()


def test_residual_and_highway_wrappers(session):
    x, state = tf.constant(X), tf.constant(H[:, :2])
    inner = rnn_cell.BasicRNNCell(2)
    plain, _ = inner(x, state)
    residual, _ = rnn_cell.ResidualWrapper(inner)(x, state)
    other, _ = rnn_cell.ResidualWrapper(inner, lambda i, o: o - i)(x, state)
    with tf.variable_scope("highway"):
        highway, _ = contrib_rnn.HighwayWrapper(inner, carry_bias_init=50.0)(x, state)
    session.run(tf.global_variables_initializer())
    values = session.run([plain, residual, other, highway])
    np.testing.assert_allclose(values[1], values[0] + X)
    np.testing.assert_allclose(values[2], values[0] - X)
    np.testing.assert_allclose(values[3], X)
    assert {v.op.name for v in tf.global_variables()} >= {"highway/carry_w", "highway/carry_b"}


def test_device_wrapper():
    cell = rnn_cell.DeviceWrapper(rnn_cell.GRUCell(2), "/cpu:1")
    output, _ = cell(tf.ones([1, 2]), cell.zero_state(1, tf.float32))
    assert output.device == "/device:CPU:1" and tf.global_variables()[0].device == "/device:CPU:1"


def test_projections_and_embedding(session):
    cell = rnn_cell.OutputProjectionWrapper(
        rnn_cell.InputProjectionWrapper(rnn_cell.BasicRNNCell(3), 4, activation=tf.nn.relu), 6
    )
    output, state = cell(tf.constant(X), cell.zero_state(3, tf.float64))
    embedded = rnn_cell.EmbeddingWrapper(rnn_cell.BasicRNNCell(3), 10, 4)
    looked_up, _ = embedded(tf.constant([1, 9]), embedded.zero_state(2, tf.float32))
    session.run(tf.global_variables_initializer())
    assert session.run(output).shape == (3, 6) and session.run(state).shape == (3, 3)
    assert session.run(looked_up).shape == (2, 3)
    names = {v.op.name: v.shape.as_list() for v in tf.global_variables()}
    assert names["output_projection_wrapper/kernel"] == [3, 6]
    assert names["output_projection_wrapper/input_projection_wrapper/kernel"] == [2, 4]
    assert names["output_projection_wrapper/input_projection_wrapper/basic_rnn_cell/kernel"] == [7, 3]
    assert names["embedding_wrapper/embedding"] == [10, 4]


# -- gradients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["basic", "gru", "basic lstm", "lstm, peepholes", "layer norm"])
def test_gradients_equal_differences(kind):
    make, _, _, _ = CELLS[kind]
    is_lstm = kind not in ("basic", "gru")
    weights = np.random.default_rng(5).normal(size=200) * 0.5

    def build(x, c, h, pool):
        taken = [0]

        def getter(_, name, shape=None, **unused):
            size = int(np.prod(shape))
            start, taken[0] = taken[0], taken[0] + size
            return tf.reshape(tf.tile(pool, [4])[start : start + size], shape)

        with tf.variable_scope("s", custom_getter=getter):
            output, state = make()(x, rnn_cell.LSTMStateTuple(c, h) if is_lstm else h)
        return [output, *(state if is_lstm else [])]

    check_gradients(build, [X[:2], C[:2], H[:2], weights], tolerance=1e-6, twice=kind != "layer norm")


def test_joined_states_may_be_wider_than_the_cells():
    """The value is that of TensorFlow 1.15, whose cells take the first columns."""
    cells = [tf.nn.rnn_cell.GRUCell(n, kernel_initializer=tf.ones_initializer()) for n in (3, 2)]
    state = tf.reshape(tf.range(18.0) / 18, [2, 9])
    output, following = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=False)(tf.ones([2, 4]), state)
    assert following.shape == [2, 5]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = [[0.21811873, 0.2641195], [0.6722556, 0.7268665]]
        np.testing.assert_allclose(session.run(output), expected, 1e-6)
