"""Callbacks of `tf.keras`, the bar that shows how far something is, and weights as checkpoints."""

from __future__ import annotations

import csv
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

import tfray as tf

keras = tf.keras
layers = keras.layers
callbacks = keras.callbacks
K = keras.backend

X, Y = np.ones([8, 2], np.float32), np.ones([8, 1], np.float32)


def fitted(*listeners, epochs=3, rate=0.1, validate=True, **settings):
    """A model of one layer that has been trained, and its history."""
    model = keras.Sequential([layers.Dense(1, input_shape=(2,))])
    model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    if validate:
        settings["validation_data"] = (X, Y)
    return model, model.fit(X, Y, batch_size=4, epochs=epochs, verbose=0, callbacks=list(listeners), **settings)


# -- files -----------------------------------------------------------------------------------------------


def test_rows_of_epochs(tmp_path):
    path = str(tmp_path / "log.csv")
    _, history = fitted(callbacks.CSVLogger(path, separator=";"))
    fitted(callbacks.CSVLogger(path, separator=";", append=True), epochs=1)
    with open(path, newline="") as file:
        names, *rows = csv.reader(file, delimiter=";")
    assert names == ["epoch", "loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error"]
    assert [row[0] for row in rows] == ["0", "1", "2", "0"]
    np.testing.assert_allclose([float(row[3]) for row in rows[:3]], history.history["val_loss"])


def test_when_weights_are_saved(tmp_path, capsys):
    def saved(**settings):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        path = str(folder / "w-{epoch:02d}.h5")
        fitted(callbacks.ModelCheckpoint(path, save_weights_only=True, **settings), rate=0.05)
        return sorted(each.name for each in folder.iterdir())

    assert saved() == ["w-01.h5", "w-02.h5", "w-03.h5"]
    assert saved(period=2) == ["w-02.h5"]
    assert saved(save_freq=12) == ["w-02.h5", "w-03.h5"]
    capsys.readouterr()
    saved(save_best_only=True, verbose=1)
    assert "Epoch 00001: val_loss improved from inf to" in capsys.readouterr().out
    assert saved(save_best_only=True, monitor="unknown") == []
    saved(save_best_only=True, mode="max", verbose=1)
    assert "Epoch 00002: val_loss did not improve from" in capsys.readouterr().out
    with pytest.raises(ValueError, match="Unrecognized save_freq"):
        saved(save_freq="batch")


@pytest.mark.parametrize("given", ["w", "w.ckpt", "w.h5", "tf", "h5"])
def test_weights_as_checkpoints_and_files(tmp_path, given):
    def build():
        x = keras.Input([4, 3])
        y = layers.TimeDistributed(layers.Dense(2))(layers.BatchNormalization()(x))
        return keras.Model(x, layers.Dense(1)(layers.LSTM(3)(y)))

    path = str(tmp_path / (given if "w" in given else "name"))
    model = build()
    model.set_weights([np.random.default_rng(0).normal(size=weights.shape) for weights in model.get_weights()])
    model.save_weights(path, save_format=None if "w" in given else given)
    is_checkpoint = given in ("w", "w.ckpt", "tf")
    assert (tf.train.latest_checkpoint(str(tmp_path)) == path) == is_checkpoint
    if is_checkpoint:
        names = dict(tf.train.list_variables(path))
        assert names["layer_with_weights-2/cell/recurrent_kernel/.ATTRIBUTES/VARIABLE_VALUE"] == [3, 12]
        assert names["layer_with_weights-1/layer/bias/.ATTRIBUTES/VARIABLE_VALUE"] == [2]
        assert len(names) == 1 + len(model.weights)  # and the description of the objects
    K.clear_session()
    other = build()
    other.load_weights(path)
    kept = K.get_session().run(other.weights)
    rows = np.random.default_rng(1).normal(size=(2, 4, 3))
    assert other.predict(rows).shape == (2, 1)
    assert all(np.isfinite(each).all() for each in kept)
    refusal = (AssertionError, "has no value of any object") if is_checkpoint else (ValueError, "weights")
    with pytest.raises(refusal[0], match=refusal[1]):
        keras.Sequential([layers.Dense(1, input_shape=(2,))]).load_weights(path)
    with pytest.raises(tf.errors.AlreadyExistsError):
        other.save_weights(path, overwrite=False, save_format=None if "w" in given else given)
    with pytest.raises(ValueError, match="Unknown format"):
        other.save_weights(path, save_format="other")


# -- numbers that are watched ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "epochs"),
    [
        ({"min_delta": 10.0, "patience": 2}, 3),
        ({"min_delta": 10.0, "patience": 2, "mode": "other"}, 3),
        ({"baseline": -1.0}, 1),
        ({"baseline": 1e6, "patience": 9}, 5),
        ({"monitor": "unknown"}, 5),
    ],
)
def test_when_training_stops_early(settings, epochs, capsys):
    stopping = callbacks.EarlyStopping(**settings, verbose=1)
    _, history = fitted(stopping, epochs=5)
    assert len(history.epoch) == epochs
    assert ("early stopping" in capsys.readouterr().out) == (1 < epochs < 5)
    assert settings.get("monitor") or stopping.best <= max([*history.history["val_loss"], stopping.best])


def test_learning_rates_are_logged(capsys):
    model, history = fitted(callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2, verbose=1), rate=0.125)
    assert history.history["lr"] == [0.0625, 0.03125, 0.015625]
    assert K.get_value(model.optimizer.lr) == 0.015625
    assert "Epoch 00002: LearningRateScheduler reducing learning rate to 0.03125." in capsys.readouterr().out
    _, history = fitted(callbacks.LearningRateScheduler(lambda epoch: 1.0 / (epoch + 2)))
    np.testing.assert_allclose(history.history["lr"], [1 / 2, 1 / 3, 1 / 4], rtol=1e-6)
    with pytest.raises(ValueError, match="should be float"):
        fitted(callbacks.LearningRateScheduler(lambda epoch: "fast"))
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    with pytest.raises(ValueError, match='must have a "lr" attribute'):
        fitted(callbacks.LearningRateScheduler(lambda epoch: 0.1), rate=schedule)


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"patience": 1}, [1.0, 1.0, 0.5, 0.25, 0.125]),
        ({"patience": 1, "cooldown": 2}, [1.0, 1.0, 0.5, 0.5, 0.25]),
        ({"patience": 1, "min_lr": 0.4}, [1.0, 1.0, 0.5, 0.4, 0.4]),
        ({"patience": 2}, [1.0, 1.0, 1.0, 0.5, 0.5]),
    ],
)
def test_learning_rates_fall_on_plateaus(settings, rates):
    reducing = callbacks.ReduceLROnPlateau(factor=0.5, min_delta=1e9, **settings)
    _, history = fitted(reducing, epochs=5, rate=1.0)
    np.testing.assert_allclose(history.history["lr"], rates, rtol=1e-6)
    with pytest.raises(ValueError, match="factor >= 1"):
        callbacks.ReduceLROnPlateau(factor=2.0)


def test_means_of_what_batches_log():
    logger = callbacks.BaseLogger(["kept"])
    logger.on_epoch_begin(0)
    for size, value in ((4, 1.0), (2, 4.0)):
        logger.on_batch_end(0, {"size": size, "loss": value, "kept": value})
    logs = {}
    logger.on_epoch_end(0, logs)
    assert logs == {"loss": 2.0, "kept": 4.0}


# -- bars ------------------------------------------------------------------------------------------------


def test_bars(capsys):
    bar = keras.utils.Progbar(10, width=10, interval=0, stateful_metrics=["last"])
    bar.update(5, [("mean", 1.0), ("last", 1.0)])
    assert capsys.readouterr().out.startswith(" 5/10 [====>.....] - ETA: ")
    bar.add(5, [("mean", 2.0), ("last", 7.0)])
    shown = capsys.readouterr().out
    assert "10/10 [==========]" in shown and shown.endswith("/step - mean: 1.5000 - last: 7.0000\n")
    lines = keras.utils.Progbar(2, verbose=2)
    lines.update(1, [("x", 1e-5)])
    assert capsys.readouterr().out == ""
    lines.update(2)
    assert capsys.readouterr().out.endswith(" - x: 1.0000e-05\n")
    keras.utils.Progbar(None).update(3)
    assert "3/Unknown" in capsys.readouterr().out


def test_bars_of_epochs(capsys):
    """The mean counts what the last batch had too; nothing is shown where ``verbose`` is 0, as in TensorFlow."""
    for verbose in (1, 0):
        logger = callbacks.ProgbarLogger("steps")
        logger.set_params({"verbose": verbose, "epochs": 2, "steps": 2})
        logger.on_epoch_begin(1)
        for batch, loss in enumerate((1.0, 2.0)):
            logger.on_batch_end(batch, {"size": 3, "loss": loss})
        logger.on_epoch_end(1, {"loss": 1.5})
        shown = capsys.readouterr().out
        if verbose:
            assert shown.startswith("Epoch 2/2\n") and "2/2 [" in shown and shown.endswith(" - loss: 1.5000\n")
        else:
            assert shown == ""
    with pytest.raises(ValueError, match="Unknown `count_mode`"):
        callbacks.ProgbarLogger("batches")


# -- clones ----------------------------------------------------------------------------------------------


def test_clones():
    hidden = layers.Lambda(lambda v: v * 2.0)  # which no description could tell
    sequential = keras.Sequential([layers.Dense(3, input_shape=(2,), trainable=False), hidden, layers.Dropout(0.5)])
    x = keras.Input([2])
    model = keras.Model(x, layers.Dense(1)(sequential(x)))
    rows = np.ones([4, 2], np.float32)
    for source in (model, sequential):
        copy = keras.models.clone_model(source)
        assert type(copy) is type(source) and not set(copy.weights) & set(source.weights)
        copy.set_weights(source.get_weights())
        np.testing.assert_allclose(copy.predict(rows), source.predict(rows), rtol=1e-6)
        assert len(copy.trainable_weights) == len(source.trainable_weights)
        fed = keras.models.clone_model(source, input_tensors=tf.constant(rows))
        fed.set_weights(source.get_weights())
        np.testing.assert_allclose(fed.predict(None, steps=1), source.predict(rows), rtol=1e-6)
    shared = keras.models.clone_model(sequential, clone_function=lambda layer: layer)
    assert shared.weights == sequential.weights


def test_a_list_of_callbacks_has_their_methods():
    from tfray.keras.callbacks import CallbackList

    told = []

    class Telling(keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            told.append((self.model, self.params["epochs"], batch, logs))

        def on_train_end(self, logs):
            told.append(logs)

    listeners = CallbackList([Telling()])
    listeners.append(Telling())
    listeners.set_model("model")
    listeners.set_params({"epochs": 3})
    listeners.on_batch_begin(1)
    listeners.on_batch_end(1, logs={"loss": 2.0})
    assert told == [("model", 3, 1, {"loss": 2.0})] * 2
    listeners.on_train_end()
    assert told[2:] == [{}] * 2
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        listeners.nonsense()


def test_epochs_are_sent_to_a_server(caplog):
    received = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        monitor = keras.callbacks.RemoteMonitor(f"http://127.0.0.1:{server.server_port}", send_as_json=True)
        monitor.on_epoch_end(3, {"loss": np.float32(0.5)})
        thread.join(60)
    assert received == [("/publish/epoch/end/", b'{"epoch": 3, "loss": 0.5}')]
    monitor.on_epoch_end(4, {"loss": 0.5})  # nobody listens any more
    assert "Could not reach RemoteMonitor root server" in caplog.text


def test_what_event_files_are_not_written_for(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="embeddings_freq"):
        keras.callbacks.TensorBoard(str(tmp_path), embeddings_freq=1)


HISTOGRAMS = ["dense/kernel_0", "dense/bias_0", "dense_out", "out/kernel_0", "out/bias_0", "out_out"]
IMAGES = ["dense/kernel_0_1/image/0", "dense/bias_0_1/image/0", "out/kernel_0_1/image/0"]
GRADIENTS = ["dense/kernel_0_grad", "dense/bias_0_grad", "out/kernel_0_grad", "out/bias_0_grad"]
EPOCH = ["epoch_loss", "epoch_mean_absolute_error", "epoch_val_loss", "epoch_val_mean_absolute_error"]
BATCH = ["batch_loss", "batch_mean_absolute_error"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [(0, EPOCH), (1, EPOCH)]),
        ({"histogram_freq": 1}, [(step, HISTOGRAMS) for step in range(4)] + [(0, EPOCH), (1, EPOCH)]),
        (
            {"histogram_freq": 2, "write_grads": True},
            [(step, HISTOGRAMS + GRADIENTS) for step in range(2)] + [(0, EPOCH), (1, EPOCH)],
        ),
        (
            {"histogram_freq": 2, "write_images": True},
            [(step, HISTOGRAMS + IMAGES) for step in range(2)] + [(0, EPOCH), (1, EPOCH)],
        ),
        ({"update_freq": "batch"}, [(step, BATCH) for step in range(4)] + [(10, EPOCH), (20, EPOCH)]),
        ({"update_freq": 8}, [(1, BATCH), (3, BATCH), (10, EPOCH), (20, EPOCH)]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_event_files_have_what_tensorflow_1_15_writes(settings, expected, tmp_path):
    layers = [keras.layers.Dense(2, input_shape=(3,), name="dense"), keras.layers.Dense(1, name="out")]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", metrics=["mae"])
    data = np.ones((10, 3), np.float32), np.ones((10, 1), np.float32)
    board = keras.callbacks.TensorBoard(str(tmp_path), **settings)
    model.fit(*data, batch_size=5, epochs=2, verbose=0, validation_data=data, callbacks=[board])
    found = {}
    for path in sorted(tmp_path.iterdir()):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.setdefault((event.step, value.tag), []).append(value)
    assert sorted(found) == sorted((step, tag) for step, tags in expected for tag in tags)
    assert model.evaluate(*data, verbose=0) is not None and model._with_tests is None


def test_callbacks_are_told_as_in_tensorflow():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(3,))])
    model.compile("sgd", "mse", metrics=["mae"])
    x, y, told = np.ones((10, 3)), np.ones((10, 1)), []
    asks = ("on_train_begin", "on_test_begin", "on_predict_begin")
    each = callbacks.LambdaCallback()
    for name in asks:
        setattr(each, name, lambda logs: told.append(each.params))
    names = ["loss", "mean_absolute_error"]
    usual = {"epochs": 1, "verbose": 0, "do_validation": False, "metrics": names}
    model.fit(x, y, 4, verbose=0, callbacks=[each])
    model.fit(x, y, steps_per_epoch=2, verbose=0, callbacks=[each])
    model.evaluate(x, y, verbose=0, callbacks=[each])
    model.evaluate(x, y, steps=2, verbose=0, callbacks=[each])
    model.predict(x, callbacks=[each])
    assert told == [
        {**usual, "batch_size": 4, "samples": 10, "steps": None},
        {**usual, "batch_size": None, "samples": 2, "steps": 2},
        {**usual, "batch_size": 32, "samples": 10, "steps": None},
        {**usual, "batch_size": None, "samples": 2, "steps": 2},
        {**usual, "batch_size": 32, "samples": 10, "steps": None, "metrics": []},
    ]
