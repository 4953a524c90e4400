"""Callbacks: objects that `Model.fit` calls at each epoch and batch, to stop early, save weights, log and so on."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.events import Summary
from tfray.formats.files import failures_of, given_path
from tfray.keras import backend
from tfray.keras.files.board_summaries import summaries_of
from tfray.keras.progress_bar import Progbar
from tfray.library.inspect.event_writer import FileWriter
from tfray.library.platform import logging

# fmt: off
__all__ = [
    "BaseLogger", "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "ModelCheckpoint", "ProgbarLogger", "ReduceLROnPlateau", "RemoteMonitor", "TensorBoard",
    "TerminateOnNaN",
]
# fmt: on

_PATIENCE_S: Final = 10.0
"""How long a server may take to answer."""


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
    """Several callbacks as one: it has the methods of `Callback`, and calls those of each.

    Args:
        callbacks: The callbacks.
        model: The model that they are told of, if any.
        params: What they are told of the training, if anything.
    """

    def __init__(
        self, callbacks: Iterable[Callback] | None = None, model: Any = None, params: dict[str, Any] | None = None
    ) -> None:
        self.callbacks = list(callbacks or ())
        if params is not None:
            self.set_params(params)
        if model is not None:
            self.set_model(model)

    def append(self, callback: Callback) -> None:
        """Add a callback."""
        self.callbacks.append(callback)

    def set_params(self, params: dict[str, Any]) -> None:
        """Tell the callbacks of the training."""
        self.call("set_params", params)

    def set_model(self, model: Any) -> None:
        """Tell the callbacks of the model."""
        self.call("set_model", model)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        numbers = (
            0
            if name.endswith(("train_begin", "train_end", "test_begin", "test_end", "predict_begin", "predict_end"))
            else 1
        )
        return partial(self._tell, name, numbers)

    def _tell(self, event: str, numbers: int, *args: Any, logs: dict[str, Any] | None = None) -> None:
        self.call(event, *args, *([logs or {}] if len(args) == numbers else []))

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
    """Calls functions: arguments are named as the methods of `Callback`.

    Args:
        on_epoch_begin: Called with the number of the epoch and its logs.
        on_epoch_end: Likewise.
        on_batch_begin: Called with the number of the batch and its logs.
        on_batch_end: Likewise.
        on_train_begin: Called with logs.
        on_train_end: Likewise.
        **functions: Functions for further methods, by their names.
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., None] | None = None,
        on_epoch_end: Callable[..., None] | None = None,
        on_batch_begin: Callable[..., None] | None = None,
        on_batch_end: Callable[..., None] | None = None,
        on_train_begin: Callable[..., None] | None = None,
        on_train_end: Callable[..., None] | None = None,
        **functions: Callable[..., None],
    ) -> None:
        functions |= {name: each for name, each in locals().items() if name.startswith("on_") and each is not None}
        for name, function in functions.items():
            if function is not None:
                setattr(self, name, function)


class BaseLogger(Callback):
    """Sums up what batches log, and puts the means into the logs of epochs.

    Args:
        stateful_metrics: Names of those whose last value counts.
    """

    def __init__(self, stateful_metrics: Iterable[str] | None = None) -> None:
        self.stateful_metrics = set(stateful_metrics or ())

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.seen = 0
        self.totals: dict[str, float] = {}

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        size = (logs or {}).get("size", 0)
        self.seen += size
        for name, value in (logs or {}).items():
            kept = name in self.stateful_metrics
            self.totals[name] = value if kept else self.totals.get(name, 0.0) + value * size

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        for name, total in self.totals.items() if logs is not None else ():
            if name not in ("batch", "size") and name not in (logs or {}):
                logs[name] = total if name in self.stateful_metrics else total / max(self.seen, 1)  # type: ignore[index]


class CSVLogger(Callback):
    """Writes what each epoch logs as a row of a file, in the order of the names.

    Args:
        filename: The file.
        separator: What stands between values.
        append: Add to the file if it exists, without a row of names.
    """

    def __init__(self, filename: str, separator: str = ",", append: bool = False) -> None:
        self.filename, self.sep, self.append = given_path(filename, "filename"), separator, append
        self.keys: list[str] | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        has_rows = self.append and os.path.exists(self.filename) and os.path.getsize(self.filename) > 0
        self._needs_names = not has_rows
        with failures_of(self.filename):
            self._file = open(self.filename, "a" if self.append else "w", newline="")  # noqa: SIM115 (closed later)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        if self.keys is None:
            self.keys = sorted(logs)
        rows = csv.DictWriter(self._file, ["epoch", *self.keys], delimiter=self.sep)
        if self._needs_names:
            rows.writeheader()
            self._needs_names = False
        rows.writerow({"epoch": epoch, **{key: _as_text(logs.get(key, "NA")) for key in self.keys}})
        self._file.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._file.close()


def _as_text(value: Any) -> Any:
    several = isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0
    return f'"[{", ".join(map(str, value))}]"' if several else value


class ProgbarLogger(Callback):
    """Prints how far an epoch is, and its metrics.

    Args:
        count_mode: What is counted: ``samples`` or ``steps``.
        stateful_metrics: Names of metrics whose last value is shown, not a mean.

    Raises:
        ValueError: There is no such `count_mode`.
    """

    def __init__(self, count_mode: str = "samples", stateful_metrics: Iterable[str] | None = None) -> None:
        if count_mode not in ("samples", "steps"):
            raise ValueError(f"Unknown `count_mode`: {count_mode}")
        self.use_steps, self.stateful_metrics = count_mode == "steps", set(stateful_metrics or ())

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        verbose, epochs = self.params.get("verbose", 1), self.params.get("epochs", 1)
        if verbose and epochs > 1:
            print(f"Epoch {epoch + 1}/{epochs}")
        self.seen, self._last = 0, list[tuple[str, Any]]()
        self.progbar = Progbar(
            self.params.get("steps" if self.use_steps else "samples"),
            verbose=verbose,
            stateful_metrics=self.stateful_metrics,
            unit_name="step" if self.use_steps else "sample",
        )

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        self.seen += 1 if self.use_steps else logs.get("size", 0)
        self._last = [(name, value) for name, value in logs.items() if name not in ("batch", "size")]
        if self.progbar.target is None or self.seen < self.progbar.target:
            self.progbar.update(self.seen, self._last)
            self._last = []

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.progbar.target is None:
            self.progbar.target = self.seen
        self.progbar.update(self.seen, [*self._last, *(logs or {}).items()])


def listening(
    callbacks: Iterable[Callback] | None, model: Any, params: dict[str, Any]
) -> tuple[CallbackList, ProgbarLogger]:
    """The callbacks of a training or the like, who are told what TensorFlow 1 tells them, and its progress bar.

    They are told either how many samples there are and how large a batch is, or of how many steps an epoch is, which
    are its samples then.

    Args:
        callbacks: The callbacks of the user.
        model: What is trained.
        params: Settings of the training.
    """
    steps, samples = params["steps"], params["samples"]
    bar = ProgbarLogger("steps" if samples is None else "samples")
    bar.set_params(params)
    told = {"epochs": 1, "do_validation": False, "metrics": [], **params}
    told |= {"batch_size": None, "samples": steps} if samples is None else {"steps": None}
    return CallbackList(callbacks, model, told), bar


class _Best:
    """Remembers the best number so far, to tell whether a new one is better."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0, start: float | None = None) -> None:
        if mode not in ("auto", "min", "max"):
            logging.warning("mode %r is unknown, and taken as auto", mode)
        self.higher = mode == "max" or (mode != "min" and ("acc" in monitor or monitor.startswith("fmeasure")))
        self.min_delta = abs(min_delta)
        self.value = (-math.inf if self.higher else math.inf) if start is None else start

    def improves(self, value: float) -> bool:
        """Whether `value` is better than all before. If so it is remembered as the best."""
        if (value - self.value if self.higher else self.value - value) > self.min_delta:
            self.value = value
            return True
        return False


def _monitored(logs: dict[str, Any] | None, monitor: str, what: str) -> Any:
    """The number of that name; None, with a warning, where there is none."""
    logs = logs or {}
    if monitor not in logs:
        names = ",".join(logs)
        logging.warning("%s `%s` which is not available. Available metrics are: %s", what, monitor, names)
    return logs.get(monitor)


class EarlyStopping(Callback):
    """Ends training when a number no longer improves.

    Args:
        monitor: Name of the number.
        min_delta: What counts as an improvement.
        patience: Epochs without improvement to wait for.
        verbose: 1 to print when training has ended.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
        baseline: What the number has to be better than from the first epoch on.
        restore_best_weights: At the end go back to the weights of the best epoch.

    Attributes:
        best: The best number so far.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.restore_best_weights = restore_best_weights
        self._settings = (monitor, mode, min_delta, baseline)
        self.wait = self.stopped_epoch = 0

    @property
    def best(self) -> float:
        """The best number so far."""
        return self._best.value

    def get_monitor_value(self, logs: dict[str, Any] | None) -> Any:
        """The number that is looked at; None, with a warning, where it was not logged."""
        return _monitored(logs, self.monitor, "Early stopping conditioned on metric")

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._best = _Best(*self._settings)
        self.wait = self.stopped_epoch = 0
        self.best_weights: list[Any] | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = self.get_monitor_value(logs)
        if value is None:
            return
        if self._best.improves(value):
            self.wait = 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.best_weights is not None:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.")
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.stopped_epoch > 0 and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1:05d}: early stopping")


class ModelCheckpoint(Callback):
    """Saves the model after each epoch, for `tf.keras.models.load_model`; its weights alone if it has no description.

    Args:
        filepath: Where to: a name in which ``{epoch:02d}``, ``{val_loss:.2f}`` and the like are filled in.
        monitor: Name of the number that says which epoch is best.
        verbose: 1 to print what is saved.
        save_best_only: Save only when the number has improved.
        save_weights_only: Save the weights alone, for `load_weights`.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
        save_freq: ``"epoch"``, or a number of examples after which to save.
        period: Number of epochs between two saves.
        **unused: Accepted for Keras's sake.

    Raises:
        ValueError: `save_freq` is something else.
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str | int = "epoch",
        period: int = 1,
        **unused: Any,
    ) -> None:
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}")
        self.filepath = given_path(filepath, "filepath")
        self.monitor, self.verbose, self.save_freq, self.period = monitor, verbose, save_freq, period
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self._best = _Best(monitor, mode)
        self._seen = self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if isinstance(self.save_freq, int):
            self._seen += (logs or {}).get("size", 1)
            if self._seen >= self.save_freq:
                self._seen = 0
                self._save_if_due(self._epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.save_freq == "epoch" and (epoch + 1) % self.period == 0:
            self._save_if_due(epoch, logs or {})

    def _save_if_due(self, epoch: int, logs: dict[str, Any]) -> None:
        numbers = {name: value for name, value in logs.items() if name not in ("batch", "size")}
        path, what = self.filepath.format(epoch=epoch + 1, **numbers), ""
        if self.save_best_only:
            before = self._best.value
            value = _monitored(logs, self.monitor, "Can save best model only with")
            if value is None or not self._best.improves(value):
                if self.verbose and value is not None:
                    print(f"\nEpoch {epoch + 1:05d}: {self.monitor} did not improve from {before:0.5f}")
                return
            what = f"{self.monitor} improved from {before:0.5f} to {value:0.5f}, "
        if self.verbose:
            print(f"\nEpoch {epoch + 1:05d}: {what}saving model to {path}")
        self._save(path)

    def _save(self, path: str) -> None:
        if not self.save_weights_only:
            try:
                self.model.save(path)
                return
            except InvalidArgumentError as error:
                logging.warning("%s has the weights of the model alone: %s", path, error.message)
        self.model.save_weights(path)


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch to what ``schedule(epoch, rate)`` or ``schedule(epoch)`` returns.

    The rate is logged as ``lr``; `verbose` of 1 prints it.

    Raises:
        ValueError: The optimizer has no learning rate that can be set, or the function gives no number.
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        rate = self.model.optimizer.lr
        if not hasattr(rate, "handle"):
            raise ValueError('Optimizer must have a "lr" attribute.')
        try:
            new = self.schedule(epoch, float(backend.get_value(rate)))
        except TypeError:
            new = self.schedule(epoch)
        if not isinstance(new, (float, np.floating)):
            raise ValueError('The output of the "schedule" function should be float.')
        backend.set_value(rate, new)
        if self.verbose:
            print(f"\nEpoch {epoch + 1:05d}: LearningRateScheduler reducing learning rate to {new}.")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["lr"] = float(backend.get_value(self.model.optimizer.lr))


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by `factor` when a number has not improved for `patience` epochs.

    The rate is logged as ``lr``.

    Args:
        monitor: Name of the number.
        factor: The factor.
        patience: Epochs without improvement to wait for.
        verbose: 1 to print new rates.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
        min_delta: What counts as an improvement.
        cooldown: Epochs after a change in which nothing is waited for.
        min_lr: The least learning rate.
        **unused: Accepted for Keras's sake.

    Raises:
        ValueError: `factor` is 1 or more.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
        **unused: Any,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("ReduceLROnPlateau does not support a factor >= 1.0.")
        self.monitor, self.factor, self.patience, self.verbose = monitor, factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self._settings = (monitor, mode, min_delta)
        self.wait = self.cooldown_counter = 0

    @property
    def best(self) -> float:
        """The best number so far."""
        return self._best.value

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._best = _Best(*self._settings)
        self.wait = self.cooldown_counter = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = _monitored(logs, self.monitor, "Reduce LR on plateau conditioned on metric")
        rate = self.model.optimizer.lr
        before = float(backend.get_value(rate))
        if logs is not None:
            logs["lr"] = before
        if value is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._best.improves(value):
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience and before > self.min_lr:
                new = max(before * self.factor, self.min_lr)
                backend.set_value(rate, new)
                if self.verbose:
                    print(f"\nEpoch {epoch + 1:05d}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Whether a change was so recent that nothing is waited for."""
        return self.cooldown_counter > 0


class RemoteMonitor(Callback):
    """Sends what each epoch logs to a server, as JSON by HTTP. A server that cannot be reached is warned of.

    Args:
        root: Address of the server.
        path: Where on it.
        field: Name of the form's field that has the JSON.
        headers: Headers of HTTP, by their names.
        send_as_json: Send the JSON alone, not in a form.
    """

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Mapping[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        self.root, self.path, self.field, self.headers = root, path, field, headers
        self.send_as_json = send_as_json

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        told = json.dumps({"epoch": epoch, **{name: float(value) for name, value in (logs or {}).items()}})
        body = told if self.send_as_json else urlencode({self.field: told})
        kind = "application/json" if self.send_as_json else "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, **(self.headers or {})}
        try:
            with urlopen(Request(self.root + self.path, body.encode(), headers), timeout=_PATIENCE_S):
                pass
        except OSError as error:
            logging.warning("Could not reach RemoteMonitor root server at %s: %s", self.root, error)


class TerminateOnNaN(Callback):
    """Ends training when the loss is not a number or infinite."""

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            self.model.stop_training = True


class TensorBoard(Callback):
    """Writes what happens during training for TensorBoard: see ``tfray board``.

    Losses and metrics become ``epoch_loss``, ``epoch_val_loss``, ..., and ``batch_loss``, ... where `update_freq` asks
    for batches. Those of epochs are written for the number of the epoch, or where `update_freq` asks for batches for
    that of all examples until then.

    Args:
        log_dir: Folder of the event file.
        histogram_freq: Epochs from one to the next in which each batch of the validation writes histograms of weights,
            and of what layers give; 0 for none.
        batch_size: Accepted for Keras's sake.
        write_graph: Write the graph.
        write_grads: Write histograms of gradients, with the others.
        write_images: Show weights as images, with the histograms.
        embeddings_freq: Has to be 0: ``tf.contrib.tensorboard.plugins.projector`` shows embeddings.
        embeddings_layer_names: Without embeddings of no effect.
        embeddings_metadata: Likewise.
        embeddings_data: Likewise.
        update_freq: ``"epoch"``, ``"batch"``, or a number of examples from one batch that is written to the next.
        profile_batch: Accepted for Keras's sake: ``tfray timeline`` shows what a step does.

    Attributes:
        writer: The writer of the event file, from the beginning of training on.

    Raises:
        InvalidArgumentError: One of these arguments is what it has not to be.
    """

    writer: Any

    def __init__(
        self,
        log_dir: str = "logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        embeddings_freq: int = 0,
        embeddings_layer_names: Sequence[str] | None = None,
        embeddings_metadata: Any = None,
        embeddings_data: Any = None,
        update_freq: str | int = "epoch",
        profile_batch: int = 2,
    ) -> None:
        if embeddings_freq:
            raise InvalidArgumentError(
                f"embeddings_freq is {embeddings_freq}: tf.contrib.tensorboard.plugins.projector shows embeddings"
            )
        self.log_dir = given_path(log_dir, "log_dir")
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_grads = write_grads
        self.write_images = write_images
        self.merged: Any = None
        self.update_freq = 1 if update_freq == "batch" else update_freq
        if isinstance(self.update_freq, str) and update_freq != "epoch":
            raise InvalidArgumentError(f"update_freq is {update_freq!r}, expected 'epoch', 'batch' or a number")
        self._batches = self._tests = self._examples = self._written = 0

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        self._init_writer(model)
        if self.histogram_freq and self.merged is None and model.inputs:
            self.merged = summaries_of(model, self.write_grads, self.write_images)

    def _init_writer(self, model: Any) -> None:
        graph = backend.get_session().graph if self.write_graph else None
        self.writer = FileWriter(self.log_dir, graph)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.merged is not None and self.histogram_freq and epoch % self.histogram_freq == 0:
            self.model._with_tests = self.merged, self._write_histograms

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        self._examples += logs.get("size", 1)
        if not isinstance(self.update_freq, str) and self._examples - self._written >= self.update_freq:
            self._written = self._examples
            self._write("batch_", logs, self._batches)
        self._batches += 1

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._write("epoch_", logs or {}, epoch if isinstance(self.update_freq, str) else self._examples)
        if self.merged is not None:
            self.model._with_tests = None

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self.writer.close()

    def _write(self, prefix: str, logs: dict[str, Any], step: int) -> None:
        for name, number in logs.items():
            if name not in ("batch", "size", "num_steps"):
                value = Summary.Value(tag=prefix + name, simple_value=float(number))
                self.writer.add_summary(Summary(value=[value]), step)
        self.writer.flush()

    def _write_histograms(self, merged: bytes) -> None:
        self.writer.add_summary(merged, self._tests)
        self._tests += 1
