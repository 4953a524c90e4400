"""`tf.train.Checkpoint`, `CheckpointManager` and `warm_start`; names of tensors are TensorFlow's."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tfray as tf
from tfray.formats.meta_graph_proto import TrackableObjectGraph
from tfray.training.checkpoints import retention

VALUE = ".ATTRIBUTES/VARIABLE_VALUE"
DESCRIPTION = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Counter(tf.train.experimental.PythonState):
    def serialize(self):
        return "1"

    def deserialize(self, string_value):
        pass


def names_in(path):
    found = {name.removesuffix(f"/{VALUE}") for name, _ in tf.train.list_variables(path)}
    assert DESCRIPTION in found
    return found - {DESCRIPTION}


def test_names_are_the_paths_of_attributes(session, tmp_path):
    v, w = tf.get_variable("v", [2]), tf.get_variable("w", [2])
    optimizer = tf.train.AdamOptimizer(0.1)
    optimizer.minimize(tf.reduce_sum(v * w))
    layer = tf.layers.Dense(2)
    layer(tf.ones([1, 3]))
    session.run(tf.global_variables_initializer())
    checkpoint = tf.train.Checkpoint(v=v, more={"w": w, "a.b/c": [w]}, optimizer=optimizer, layer=layer)
    assert names_in(checkpoint.save(tmp_path / "ckpt", session)) == {
        "v",
        "v/.OPTIMIZER_SLOT/optimizer/m",
        "v/.OPTIMIZER_SLOT/optimizer/v",
        "more/w",
        "more/w/.OPTIMIZER_SLOT/optimizer/m",
        "more/w/.OPTIMIZER_SLOT/optimizer/v",
        "optimizer/beta1_power",
        "optimizer/beta2_power",
        "layer/kernel",
        "layer/bias",
        "save_counter",
    }
    alone = tf.train.Checkpoint(list=[3, w, "text"], nested=tf.train.Checkpoint(v=v), odd={"a.b/c": w})
    assert names_in(alone.write(tmp_path / "alone", session)) == {"list/1", "nested/v"}
    odd = tf.train.Checkpoint(odd={"a.b/c": w})
    assert names_in(odd.write(tmp_path / "odd", session)) == {"odd/a..b.Sc"}


def test_layers_of_models_are_counted_and_attributes_of_classes_name_theirs(session, tmp_path):
    class Own(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = tf.keras.layers.Dense(2)
            self.rest = [tf.keras.layers.Dense(1)]

        def call(self, inputs):
            return self.rest[0](self.first(inputs))

    own, layers = Own(), tf.keras.layers
    own(tf.ones([1, 3]))
    sequential = tf.keras.Sequential([layers.Dense(2, input_shape=(3,)), layers.ReLU(), layers.Dense(1)])
    session.run(tf.global_variables_initializer())
    path = tf.train.Checkpoint(own=own, sequential=sequential).save(tmp_path / "ckpt", session)
    assert names_in(path) - {"save_counter"} == {
        f"{layer}/{weight}"
        for layer in (
            "own/first",
            "own/rest/0",
            "sequential/layer_with_weights-0",
            "sequential/layer_with_weights-1",
        )
        for weight in ("kernel", "bias")
    }


def test_objects_are_described_as_those_of_tensorflow(session, tmp_path):
    v = tf.get_variable("v", [2])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(tf.reduce_sum(v))
    session.run(tf.global_variables_initializer())
    held = {"v": v, "optimizer": optimizer, "more": {"empty": [], "again": v, "state": Counter()}}
    path = tf.train.Checkpoint(**held).write(tmp_path / "ckpt", session)
    message = TrackableObjectGraph.FromString(tf.train.load_variable(path, DESCRIPTION))

    def reached(node, name=""):
        for child in node.children:
            yield from reached(message.nodes[child.node_id], f"{name}/{child.local_name}".lstrip("/"))
        yield from ((name, each.name, each.full_name, each.checkpoint_key) for each in node.attributes)
        for slot in node.slot_variables:
            names = [message.nodes[index] for index in (slot.original_variable_node_id, slot.slot_variable_node_id)]
            yield (name, slot.slot_name, *(each.attributes[0].checkpoint_key for each in names))

    assert sorted(reached(message.nodes[0])) == [
        ("more/again", "VARIABLE_VALUE", "v", f"v/{VALUE}"),
        ("more/state", "PYTHON_STATE", "", "more/state/.ATTRIBUTES/PYTHON_STATE"),
        ("optimizer", "momentum", f"v/{VALUE}", f"v/.OPTIMIZER_SLOT/optimizer/momentum/{VALUE}"),
        ("v", "VARIABLE_VALUE", "v", f"v/{VALUE}"),
    ]
    assert len(message.nodes) == 6  # what leads to no value is not described


def test_private_attributes_of_programs_are_saved(session, tmp_path):
    class Own(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self._first = tf.keras.layers.Dense(2)
            self.__hidden = [tf.keras.layers.Dense(1)]

        def call(self, inputs):
            return self.__hidden[0](self._first(inputs))

    class Two(tf.keras.layers.Layer):
        def build(self, shape):
            self._scale = self.add_weight("factor", [])
            self._left, self._right = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1)

        def call(self, inputs):
            return self._scale * self._left(inputs) + self._right(inputs)

    class Part(tf.contrib.checkpoint.Checkpointable):
        def __init__(self):
            self._v = tf.get_variable("v", [])
            self.parts = [tf.contrib.checkpoint.Checkpointable()]
            self.parts[0].w = tf.get_variable("w", [])

    held = {"own": Own(), "two": Two(), "part": Part()}
    held["own"](tf.ones([1, 3])), held["two"](tf.ones([1, 3]))
    session.run(tf.global_variables_initializer())
    assert names_in(tf.train.Checkpoint(**held).write(tmp_path / "ckpt", session)) == {
        *(f"own/{layer}/{name}" for layer in ("_first", "_Own__hidden/0") for name in ("kernel", "bias")),
        *(f"two/{layer}/{name}" for layer in ("_left", "_right") for name in ("kernel", "bias")),
        "two/factor",
        "part/_v",
        "part/parts/0/w",
    }


def test_a_model_is_saved_from_the_session_of_keras(tmp_path):
    inputs = tf.keras.Input([1])
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    model.fit(np.ones([1, 1]), np.ones([1, 1]), verbose=0)
    path = tf.train.Checkpoint(model=model).write(tmp_path / "ckpt")
    kernel = tf.train.load_variable(path, f"model/layer_with_weights-0/kernel/{VALUE}")
    assert kernel.tolist() == model.get_weights()[0].tolist()


def test_cells_have_the_names_of_tensorflow_and_lose_no_variable(session, tmp_path):
    cells = tf.nn.rnn_cell
    parts = [cells.DropoutWrapper(cells.GRUCell(2)), cells.ResidualWrapper(cells.BasicLSTMCell(2))]
    stack = cells.MultiRNNCell([*parts, cells.LSTMCell(2, use_peepholes=True, num_proj=2)])
    stack(tf.ones([1, 2]), stack.zero_state(1, tf.float32))
    session.run(tf.global_variables_initializer())
    gates = [f"cell-0/cell/{part}.S{kind}" for part in ("gates", "candidate") for kind in ("kernel", "bias")]
    last = [f"cell-2/{name}" for name in ("kernel", "bias", "projection.Skernel", "w_f_diag", "w_i_diag", "w_o_diag")]
    names = {*gates, "cell-1/cell/kernel", "cell-1/cell/bias", *last}  # TensorFlow 1.15's
    checkpoint = tf.train.Checkpoint(stack=stack)
    path = checkpoint.save(tmp_path / "ckpt", session)
    assert names_in(path) == {f"stack/{name}" for name in names} | {"save_counter"}
    values = session.run(stack.weights)
    session.run([variable.assign(tf.zeros_like(variable)) for variable in stack.weights])
    checkpoint.restore(path).assert_consumed().run_restore_ops(session)
    for value, restored in zip(values, session.run(stack.weights), strict=True):
        np.testing.assert_array_equal(value, restored)


def test_values_come_back_in_another_graph(tmp_path):
    def model():
        weights = tf.get_variable("any_name", [2], initializer=tf.zeros_initializer())
        optimizer = tf.train.MomentumOptimizer(0.5, 0.9)
        train = optimizer.minimize(tf.reduce_sum(tf.square(weights - 1.0)))
        return weights, train, tf.train.Checkpoint(weights=weights, optimizer=optimizer)

    with tf.Graph().as_default(), tf.Session() as session:
        weights, train, checkpoint = model()
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = checkpoint.save(tmp_path / "ckpt", session)
        assert path == str(tmp_path / "ckpt-1") and tf.train.latest_checkpoint(tmp_path) == path
        session.run(train)
        expected = session.run(weights)
    with tf.Graph().as_default(), tf.Session() as session, tf.variable_scope("other"):
        weights, train, checkpoint = model()
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        session.run(train)  # with the momentum of the first step
        np.testing.assert_allclose(session.run(weights), expected)
        assert checkpoint.save(tmp_path / "ckpt", session) == str(tmp_path / "ckpt-2")


def test_what_has_no_counterpart_is_found(session, tmp_path):
    v, w = tf.get_variable("v", initializer=1.0), tf.get_variable("w", initializer=2.0)
    session.run(tf.global_variables_initializer())
    path = tf.train.Checkpoint(v=v).save(tmp_path / "ckpt", session)
    session.run([v.assign(7.0), w.assign(7.0)])
    more = tf.train.Checkpoint(v=v, w=w).restore(path)
    for check in (more.assert_consumed, more.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match=f"w/{VALUE}"):
            check()
    more.assert_nontrivial_match().expect_partial().initialize_or_restore(session)
    assert session.run([v, w]) == [1.0, 2.0]
    less = tf.train.Checkpoint().restore(path)
    less.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=f"no object: v/{VALUE}"):
        less.assert_consumed()
    with pytest.raises(AssertionError, match="no value of any object"):
        less.assert_nontrivial_match()


def test_without_a_checkpoint_everything_is_initialised(session, tmp_path):
    v = tf.get_variable("v", initializer=3.0)
    checkpoint = tf.train.Checkpoint(v=v)
    status = checkpoint.restore(tf.train.latest_checkpoint(tmp_path))
    for check in (status.assert_consumed, status.assert_existing_objects_matched, status.run_restore_ops):
        with pytest.raises(AssertionError, match="no checkpoint was given"):
            check()
    status.initialize_or_restore(session)
    assert session.run(v) == 3.0
    with pytest.raises(tf.errors.NotFoundError, match="no checkpoint"):
        checkpoint.restore(tmp_path / "nothing")
    with pytest.raises(ValueError, match="expecting a trackable object for v"):
        tf.train.Checkpoint(v=3)


def test_a_checkpoint_of_a_saver_is_restored_by_the_names_of_variables(session, tmp_path):
    v = tf.get_variable("v", initializer=1.0)
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver([v]).save(session, tmp_path / "named")
    session.run(v.assign(2.0))
    tf.train.Checkpoint(another=[v]).restore(path).assert_consumed().run_restore_ops(session)
    assert session.run(v) == 1.0


def test_python_state_is_saved_and_restored(session, tmp_path):
    class Epochs(tf.train.experimental.PythonState):
        count = 0

        def serialize(self):
            return str(self.count)

        def deserialize(self, string_value):
            self.count = int(string_value)

    epochs = Epochs()
    checkpoint = tf.train.Checkpoint(epochs=epochs)
    epochs.count = 5
    path = checkpoint.save(tmp_path / "ckpt", session)
    epochs.count = 0
    checkpoint.restore(path).assert_consumed()
    assert epochs.count == 5


def test_a_manager_keeps_the_newest_and_goes_on_with_those_of_another(session, tmp_path):
    v = tf.get_variable("v", initializer=1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    session.run(tf.global_variables_initializer())
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    saved = [manager.save(session=session) for _ in range(3)]
    assert [os.path.basename(path) for path in saved] == ["ckpt-1", "ckpt-2", "ckpt-3"]
    assert manager.checkpoints == saved[1:] and manager.latest_checkpoint == saved[-1]
    assert not tf.train.checkpoint_exists(saved[0]) and tf.train.latest_checkpoint(tmp_path) == saved[-1]
    again = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    assert again.checkpoints == saved[1:]
    numbered = again.save(session=session, checkpoint_number=tf.constant(40))
    assert os.path.basename(numbered) == "ckpt-40" and again.checkpoints == [numbered]
    assert not any(map(tf.train.checkpoint_exists, saved))
    with pytest.raises(ValueError, match="positive integer or None"):
        tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=0)


class Clock:
    """Replaces the module `time` where managers ask for it."""

    def __init__(self, now):
        self.now = now

    def time(self):
        return self.now


def test_hours_of_a_manager_begin_with_the_checkpoint_kept_last(session, tmp_path, monkeypatch):
    clock = Clock(3.0)
    monkeypatch.setattr(retention, "time", clock)
    checkpoint = tf.train.Checkpoint()
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 1, keep_checkpoint_every_n_hours=1)
    saved = []
    for clock.now in (10_000, 13_599, 13_600, 17_199, 17_200):  # 10,000 is kept for good, and 13,600: an hour later
        saved.append(manager.save(session=session))
    assert [tf.train.checkpoint_exists(path) for path in saved] == [True, False, True, False, True]
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state.last_preserved_timestamp == 13_600 and state.all_model_checkpoint_timestamps == [17_200]
    again = tf.train.CheckpointManager(checkpoint, tmp_path, 1, keep_checkpoint_every_n_hours=1)
    saved.append(again.save(session=session))
    assert tf.train.checkpoint_exists(saved[4]), "it is an hour newer than the one kept last"


def test_a_clock_set_back_deletes_nothing(session, tmp_path, monkeypatch, caplog):
    clock = Clock(10_000.0)
    monkeypatch.setattr(retention, "time", clock)
    checkpoint = tf.train.Checkpoint()
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 1)
    first = manager.save(session=session)
    clock.now = 5_000.0
    with caplog.at_level("WARNING"):
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, 1)
    assert "behind the last preserved checkpoint timestamp" in caplog.text
    assert manager.checkpoints == [] and manager.latest_checkpoint == first
    clock.now = 5_010.0
    second = manager.save(session=session)
    assert manager.checkpoints == [second] and tf.train.checkpoint_exists(first)


def test_a_manager_deletes_no_checkpoint_that_none_has_saved(session, tmp_path):
    checkpoint = tf.train.Checkpoint()
    other = checkpoint.save(tmp_path / "other", session)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 1)
    assert manager.latest_checkpoint == other and manager.checkpoints == []
    saved = [manager.save(session=session) for _ in range(2)]
    assert manager.checkpoints == saved[1:] and tf.train.checkpoint_exists(other)


def test_saves_with_numbers_of_their_own_are_counted_too(session, tmp_path):
    checkpoint = tf.train.Checkpoint()
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 2)
    names = [os.path.basename(manager.save(number, session)) for number in (7, None)]
    assert names == ["ckpt-7", "ckpt-2"] and session.run(checkpoint.save_counter) == 2


def test_the_newest_checkpoint_is_added_to_the_list_that_was_given():
    paths = ["model-2"]
    state = tf.train.generate_checkpoint_state_proto("/folder", "/folder/model-0", paths)
    assert paths == state.all_model_checkpoint_paths == ["model-2", "/folder/model-0"]


# -- warm start ----------------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path):
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nx\na\n")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("table", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        tf.get_variable("weights", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, tmp_path / "trained")


@pytest.mark.parametrize("parts", [None, 2])
def test_rows_go_where_their_words_are(session, trained, tmp_path, parts):
    partitioner = tf.fixed_size_partitioner(parts) if parts else None
    table = tf.get_variable("table", [4, 2], partitioner=partitioner)
    weights = tf.get_variable("weights", [2])
    words = tf.train.VocabInfo(str(tmp_path / "new"), 3, 1, str(tmp_path / "old"))
    tf.train.warm_start(trained, var_name_to_vocab_info={"table": words})
    session.run(tf.global_variables_initializer())
    assert session.run(tf.convert_to_tensor(table)).tolist() == [[4, 5], [0, 0], [0, 1], [0, 0]]
    assert session.run(weights).tolist() == [1, 2]


@pytest.mark.parametrize("parts", [None, 3])
def test_columns_and_renamed_variables_are_warm_started(session, trained, tmp_path, parts):
    partitioner = tf.fixed_size_partitioner(parts) if parts else None
    wide = tf.get_variable("wide", [3, 2], partitioner=partitioner)
    backup = tf.constant_initializer(9.0)
    (tmp_path / "two").write_text("a\nb\n")
    (tmp_path / "other").write_text("b\nx\n")
    words = tf.train.VocabInfo(str(tmp_path / "other"), -1, 0, str(tmp_path / "two"), 2, backup, axis=1)
    tf.train.warm_start(trained, [wide], {"wide": words}, {"wide": "table"})
    session.run(tf.global_variables_initializer())
    assert session.run(tf.convert_to_tensor(wide)).tolist() == [[1, 9], [3, 9], [5, 9]]


def test_what_cannot_be_warm_started_is_refused(session, trained):
    tf.get_variable("weights", [2])
    tf.get_variable("unknown", [2])
    with pytest.raises(TypeError, match="expected a pattern"):
        tf.train.warm_start(trained, 3)
    with pytest.raises(ValueError, match="no variable that is to be warm-started"):
        tf.train.warm_start(trained, ["weights"], None, {"another": "weights"})
    with pytest.raises(ValueError, match="Tensor unknown is not found"):
        tf.train.warm_start(trained, "unknown")
    with pytest.raises(ValueError, match="axis is 2"):
        tf.train.VocabInfo("a", 1, 0, "b", axis=2)


def test_an_object_in_the_place_of_another_is_saved(session, tmp_path):
    """Its variables have the names that those of the other one had."""
    checkpoint = tf.train.Checkpoint(number=tf.Variable(1.0))
    session.run(tf.global_variables_initializer())
    checkpoint.write(str(tmp_path / "first"))
    checkpoint.number = tf.Variable(2.0)
    session.run(checkpoint.number.initializer)
    checkpoint.write(str(tmp_path / "second"))
    name = "number/.ATTRIBUTES/VARIABLE_VALUE"
    assert [tf.train.load_variable(str(tmp_path / each), name) for each in ("first", "second")] == [1.0, 2.0]
