"""Callbacks: objects that `Model.fit` calls at each epoch and batch, to stop early, save weights, log and so on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.events import Summary
from tfray.formats.files import given_path
from tfray.keras import backend
from tfray.library.inspect.event_writer import FileWriter
from tfray.library.platform import logging
from tfray.ops.system.summary_ops import encode_image, make_histogram

# fmt: off
__all__ = [
    "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "ModelCheckpoint", "ReduceLROnPlateau", "TensorBoard", "TerminateOnNaN",
]
# fmt: on


class Callback:
    """Base of callbacks: override the methods for the events that you need.

    Attributes:
        model: The model that is trained.
        params: Settings of the training: ``epochs``, ``batch_size``, ``samples``, ...
    """

    model: Any = None
    params: dict[str, Any]

    def set_model(self, model: Any) -> None:
        """Called before training."""
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Called before training."""
        self.params = params

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called when training begins."""

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called when training ends."""

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when an epoch begins."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called when an epoch ends, with the means of loss and metrics."""

    def on_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called before a batch."""

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called after a batch, with its loss and metrics."""

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called before a batch of training; by default as `on_batch_begin`."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called after a batch of training; by default as `on_batch_end`."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called before a batch of an evaluation."""

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called before an evaluation."""

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called after a batch of an evaluation."""

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called after an evaluation."""

    def on_predict_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called before a batch of predictions."""

    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Called before predictions."""

    def on_predict_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called after a batch of predictions."""

    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None:
        """Called after predictions."""


class CallbackList:
    """Several callbacks as one."""

    def __init__(self, callbacks: Iterable[Callback], model: Any, params: dict[str, Any]) -> None:
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            callback.set_params(params)
            callback.set_model(model)

    def call(self, event: str, *args: Any) -> None:
        """Call the method of that name of all."""
        for callback in self.callbacks:
            getattr(callback, event)(*args)


class History(Callback):
    """Records loss and metrics at the end of each epoch. `Model.fit` returns one.

    Attributes:
        epoch: Numbers of the epochs.
        history: Lists with a value for each epoch, by name.
    """

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Calls functions: arguments are named as the methods of `Callback`."""

    def __init__(self, **functions: Callable[..., None]) -> None:
        for name, function in functions.items():
            setattr(self, name, function)


class _Best:
    """Remembers the best number so far, to tell whether a new one is better."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        self.higher = mode == "max" or (mode == "auto" and "acc" in monitor)
        self.min_delta = abs(min_delta)
        self.value = -math.inf if self.higher else math.inf

    def improves(self, value: float) -> bool:
        """Whether `value` is better than all before. If so it is remembered as the best."""
        if (value - self.value if self.higher else self.value - value) > self.min_delta:
            self.value = value
            return True
        return False


class EarlyStopping(Callback):
    """Ends training when a number no longer improves.

    Args:
        monitor: Name of the number.
        min_delta: What counts as an improvement.
        patience: Epochs without improvement to wait for.
        verbose: Accepted for Keras's sake.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
        restore_best_weights: At the end go back to the weights of the best epoch.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        restore_best_weights: bool = False,
    ) -> None:
        self.monitor = monitor
        self.patience = patience
        self.restore_best_weights = restore_best_weights
        self._settings = (monitor, mode, min_delta)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best = _Best(*self._settings)
        self.wait = self.stopped_epoch = 0
        self.best_weights: list[Any] | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = (logs or {}).get(self.monitor)
        if value is None:
            return
        if self.best.improves(value):
            self.wait = 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.best_weights is not None:
                self.model.set_weights(self.best_weights)


class ModelCheckpoint(Callback):
    """Saves the model after each epoch, for `tf.keras.models.load_model`; its weights alone if it has no description.

    Args:
        filepath: Where to: a name in which ``{epoch:02d}``, ``{val_loss:.2f}`` and the like are filled in.
        monitor: Name of the number that says which epoch is best.
        verbose: Accepted for Keras's sake.
        save_best_only: Save only when the number has improved.
        save_weights_only: Save the weights alone, for `load_weights`.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
        period: Number of epochs between two saves.
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        period: int = 1,
    ) -> None:
        self.filepath = given_path(filepath, "filepath")
        self.monitor = monitor
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.period = period
        self._best = _Best(monitor, mode)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        if (epoch + 1) % self.period:
            return
        if not self.save_best_only or (self.monitor in logs and self._best.improves(logs[self.monitor])):
            self._save(self.filepath.format(epoch=epoch + 1, **logs))

    def _save(self, path: str) -> None:
        if not self.save_weights_only:
            try:
                self.model.save(path)
                return
            except InvalidArgumentError as error:
                logging.warning("%s has the weights of the model alone: %s", path, error.message)
        self.model.save_weights(path)


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch to what ``schedule(epoch, rate)`` or ``schedule(epoch)`` returns."""

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule = schedule

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        rate = self.model.optimizer.lr
        try:
            new = self.schedule(epoch, float(backend.get_value(rate)))
        except TypeError:
            new = self.schedule(epoch)
        backend.set_value(rate, new)


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by `factor` when a number has not improved for `patience` epochs.

    Args:
        monitor: Name of the number.
        factor: The factor.
        patience: Epochs without improvement to wait for.
        verbose: Accepted for Keras's sake.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
        min_delta: What counts as an improvement.
        min_lr: The least learning rate.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        min_lr: float = 0.0,
    ) -> None:
        self.monitor = monitor
        self.factor = factor
        self.patience = patience
        self.min_lr = min_lr
        self._settings = (monitor, mode, min_delta)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best = _Best(*self._settings)
        self.wait = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = (logs or {}).get(self.monitor)
        if value is None or self.best.improves(value):
            self.wait = 0
            return
        self.wait += 1
        if self.wait >= self.patience:
            rate = self.model.optimizer.lr
            backend.set_value(rate, max(float(backend.get_value(rate)) * self.factor, self.min_lr))
            self.wait = 0


class TerminateOnNaN(Callback):
    """Ends training when the loss is not a number or infinite."""

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            self.model.stop_training = True


class TensorBoard(Callback):
    """Writes what happens during training for TensorBoard: see ``tfray board``.

    Losses and metrics become ``epoch_loss``, ``epoch_val_loss``, ..., and ``batch_loss``, ... where `update_freq` asks
    for batches.

    Args:
        log_dir: Folder of the event file.
        histogram_freq: Epochs from one histogram of the weights to the next; 0 for none.
        batch_size: Accepted for Keras's sake.
        write_graph: Write the graph.
        write_images: Show weights that are matrices as images, with the histograms.
        update_freq: ``"epoch"``, ``"batch"``, or a number of examples from one batch that is written to the next.
    """

    def __init__(
        self,
        log_dir: str = "logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_images: bool = False,
        update_freq: str | int = "epoch",
    ) -> None:
        self.log_dir = given_path(log_dir, "log_dir")
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_images = write_images
        self._every = {"epoch": math.inf, "batch": 1}.get(update_freq) if isinstance(update_freq, str) else update_freq
        if self._every is None:
            raise InvalidArgumentError(f"update_freq is {update_freq!r}, expected 'epoch', 'batch' or a number")

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._writer = FileWriter(self.log_dir)
        self._batches = 0
        self._examples = self._written = 0
        if self.write_graph:
            self._writer.add_graph(backend.get_session().graph)

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        self._batches += 1
        self._examples += logs.get("size", 1)
        if self._every is not None and self._examples - self._written >= self._every:
            self._written = self._examples
            self._write("batch_", logs, self._batches)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._write("epoch_", logs or {}, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._write_weights(epoch)
        self._writer.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._writer.close()

    def _write(self, prefix: str, logs: dict[str, Any], step: int) -> None:
        numbers = {name: number for name, number in logs.items() if name not in ("batch", "size")}
        values = [Summary.Value(tag=prefix + name, simple_value=float(number)) for name, number in numbers.items()]
        self._writer.add_summary(Summary(value=values), step)

    def _write_weights(self, epoch: int) -> None:
        values = []
        for weight, array in zip(self.model.weights, self.model.get_weights(), strict=True):
            tag = weight.name.replace(":", "_")
            values.append(Summary.Value(tag=tag, histo=make_histogram(array)))
            if self.write_images and array.ndim == 2 and array.size:
                span = max(float(array.max() - array.min()), 1e-12)
                pixels = ((array - array.min()) * (255 / span)).astype(np.uint8)[..., None]
                values.append(Summary.Value(tag=f"{tag}/image", image=encode_image(pixels)))
        self._writer.add_summary(Summary(value=values), epoch)
