"""How models train: the graph of loss, metrics and training step, and the loops over batches that run it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras import losses as keras_losses
from tfray.keras import metrics as keras_metrics
from tfray.keras import optimizers as keras_optimizers
from tfray.keras.backend import get_session, phase_feed
from tfray.keras.batch_sources import BatchSource, is_source, parts_of
from tfray.keras.callbacks import Callback, CallbackList, History
from tfray.library.platform import logging
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.arrays.source_ops import constant, placeholder, placeholder_with_default
from tfray.ops.math import math_ops

_Batch = tuple[list[np.ndarray], list[np.ndarray], Any]
"""Inputs, targets and weights."""


class Trainable:
    """The part of `Model` that compiles, trains, evaluates and predicts."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    name: Any
    losses: Any
    updates: Any
    trainable_variables: Any

    def _init_training(self) -> None:
        self.optimizer: Any = None
        self.stop_training = False
        self._compiled_loss: Any = None
        self._compiled_metrics: Sequence[Any] = ()
        self._compiled_loss_weights: Any = None
        self.__numbers: list[Tensor] | None = None
        self.__train_op: Any = None
        self._compiled_targets: list[Tensor] = []
        self.__weights_input: Any = None
        self.metrics_names: list[str] = []

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Sequence[Any] | None = None,
        loss_weights: Sequence[float] | None = None,
        **unused: Any,
    ) -> None:
        """Say how the model is to be trained.

        Args:
            optimizer: An optimizer of ``tf.keras.optimizers`` or ``tf.train``, or a name.
            loss: A loss of ``tf.keras.losses``, a function of targets and predictions, or a name; for several
                outputs a list.
            metrics: Metrics likewise; ``"accuracy"``, in logs ``acc``, is the one that suits the loss.
            loss_weights: Weights of the outputs' losses.
            **unused: Accepted for Keras's sake.
        """
        self.optimizer = keras_optimizers.get(optimizer)
        self._compiled_loss = loss
        self._compiled_metrics = list(metrics or ())
        self._compiled_loss_weights = loss_weights
        self.__numbers = self.__train_op = None

    def _training_settings(self) -> dict[str, Any]:
        """What `compile` was given."""
        settings = {"optimizer": self.optimizer, "loss": self._compiled_loss, "metrics": self._compiled_metrics}
        return {**settings, "loss_weights": self._compiled_loss_weights}

    def _training_targets(self) -> list[Tensor]:
        """Where the training step takes its targets; empty while there is no such step."""
        return self._compiled_targets if self.__train_op is not None else []

    def _prepare_training(self, targets: Sequence[np.ndarray]) -> None:
        """Make the training step for targets like these arrays, and with it the optimizer's variables."""
        self.__prepare(targets)
        self.__training_step()

    # -- graph -----------------------------------------------------------------------------------

    def __prepare(self, targets: Sequence[np.ndarray]) -> list[Tensor]:
        """Loss and metrics, built for targets like these arrays when they are first asked for."""
        if self.__numbers is not None:
            return self.__numbers
        if self.optimizer is None or self._compiled_loss is None:
            raise InvalidArgumentError(f"model {self.name!r} must be compiled with an optimizer and a loss first")
        chosen = (
            self._compiled_loss
            if isinstance(self._compiled_loss, (list, tuple))
            else [self._compiled_loss] * len(self.outputs)
        )
        found = [keras_losses.get(loss) for loss in chosen]
        weights = self._compiled_loss_weights or [1.0] * len(found)
        with get_default_graph().name_scope(f"{self.name}_training"):
            self._compiled_targets = [
                placeholder(_target_dtype(target), [None, *target.shape[1:]], name="target") for target in targets
            ]
            self.__weights_input = placeholder_with_default(constant([1.0]), [None], name="sample_weights")
            outputs = list(zip(self._compiled_targets, self.outputs, found, strict=True))
            parts = [self.__weighted(loss, target, output) for target, output, loss in outputs]
            total = math_ops.add_n(
                [weight * part for weight, part in zip(weights, parts, strict=True)]
                + [array_ops.cast(loss, dtypes.float32) for loss in self.losses]
            )
            values = [
                (
                    keras_metrics.name_of(metric),
                    math_ops.reduce_mean(keras_metrics.get(metric, loss, output)(target, output)),
                )
                for metric in self._compiled_metrics
                for target, output, loss in outputs
            ]
        self.metrics_names = ["loss", *_unique([name for name, _ in values])]
        self.__numbers = [total, *(value for _, value in values)]
        return self.__numbers

    def __weighted(self, loss: Any, target: Tensor, output: Tensor) -> Tensor:
        values = loss.per_example(target, output) if hasattr(loss, "per_example") else loss(target, output)
        if values.shape.rank == 0:
            return values
        if values.shape.rank is not None and values.shape.rank > 1:
            values = math_ops.reduce_mean(values, list(range(1, values.shape.rank)))
        weights = array_ops.ones_like(values) * array_ops.cast(self.__weights_input, values.dtype)
        present = math_ops.reduce_sum(array_ops.cast(math_ops.not_equal(weights, 0.0), values.dtype))
        return math_ops.div_no_nan(math_ops.reduce_sum(values * weights), present)

    def __training_step(self) -> Any:
        if self.__train_op is None:
            assert self.__numbers is not None
            step = self.optimizer.minimize(self.__numbers[0], self.trainable_variables)
            self.__train_op = grouping_ops.group(step, *self.updates)
        return self.__train_op

    def _build_for(self, x: Sequence[np.ndarray]) -> None:
        """Make inputs and outputs for arrays like `x`, if the model has none yet."""

    # -- one batch -------------------------------------------------------------------------------

    def train_on_batch(self, x: Any, y: Any, sample_weight: Any = None, class_weight: Any = None) -> Any:
        """Make one training step; returns the loss, or a list of loss and metrics."""
        inputs, targets, weights = self.__standardized(x, y, sample_weight, class_weight)
        return _one_or_list(self.__run_batch(inputs, targets, weights, True))

    def test_on_batch(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
        """The loss of one batch, or a list of loss and metrics."""
        inputs, targets, weights = self.__standardized(x, y, sample_weight, None)
        return _one_or_list(self.__run_batch(inputs, targets, weights, False))

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch."""
        inputs = _arrays(x)
        self._build_for(inputs)
        feeds = {**phase_feed(False), **dict(zip(self.inputs, inputs, strict=True))}
        return _one_or_list(get_session().run(self.outputs, feeds))

    def __standardized(self, x: Any, y: Any, sample_weight: Any, class_weight: Any) -> tuple[Any, Any, Any]:
        inputs, targets = _arrays(x), [_with_last_dimension(target) for target in _arrays(y)]
        self._build_for(inputs)
        if len(inputs) != len(self.inputs) or len(targets) != len(self.outputs):
            raise InvalidArgumentError(
                f"model {self.name!r} has {len(self.inputs)} inputs and {len(self.outputs)} outputs, "
                f"got {len(inputs)} and {len(targets)} arrays"
            )
        sizes = {len(array) for array in [*inputs, *targets]}
        if len(sizes) > 1:
            raise InvalidArgumentError(f"inputs and targets have different numbers of examples: {sorted(sizes)}")
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float32)
        if class_weight is not None:
            target = targets[0]
            classes = target.argmax(-1) if target.ndim > 1 and target.shape[-1] > 1 else target.reshape(len(target))
            by_class = np.array([class_weight.get(int(c), 1.0) for c in classes], np.float32)
            weights = by_class if weights is None else weights * by_class
        return inputs, targets, weights

    def __run_batch(self, inputs: Any, targets: Any, weights: Any, training: bool) -> list[float]:
        numbers = self.__prepare(targets)
        fetches = [self.__training_step(), *numbers] if training else [None, *numbers]
        feeds = {
            **phase_feed(training),
            **dict(zip(self.inputs, inputs, strict=True)),
            **dict(zip(self._compiled_targets, targets, strict=True)),
        }
        if weights is not None:
            feeds[self.__weights_input] = weights
        values = get_session().run([fetch for fetch in fetches if fetch is not None], feeds)
        return [float(value) for value in values[1 if training else 0 :]]

    # -- all batches -----------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Iterable[Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: float | None = None,
        validation_steps: float | None = None,
        validation_freq: int = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> History:
        """Train.

        Args:
            x: Inputs: an array, or a list of one for each input. Or batches of inputs and targets, and possibly
                weights, one after the other: a generator, a `tf.keras.utils.Sequence`, a `tf.data.Dataset` or an
                iterator of one. Tensors are evaluated in each step.
            y: Targets likewise; None for batches.
            batch_size: Examples in a step; 32 when None.
            epochs: How often to go over all examples, counted from 0.
            verbose: 0 to print nothing, else a line for each epoch.
            callbacks: See ``tf.keras.callbacks``.
            validation_split: Fraction of the examples, from the end, to evaluate with after each epoch.
            validation_data: Inputs, targets and possibly weights to evaluate with, instead.
            shuffle: Take the examples in random order.
            class_weight: What an example counts, by its class.
            sample_weight: What each example counts.
            initial_epoch: Number of the first epoch.
            steps_per_epoch: Steps in an epoch, rounded up; as many as there are batches when None, which a generator
                does not say.
            validation_steps: Steps of an evaluation with `validation_data`, likewise.
            validation_freq: Evaluate after every so many epochs.
            max_queue_size: Not used, nor are `workers` and `use_multiprocessing`: batches are taken when they are
                needed.
            workers: Not used.
            use_multiprocessing: Not used.

        Returns:
            The history: loss and metrics at the end of each epoch. Training ends when there are no more batches.
        """
        size, samples = batch_size or 32, None
        if is_source(x):
            source = BatchSource(x if y is None else (x, y), steps_per_epoch, shuffle)
            epoch_batches = functools.partial(self.__taken, source, class_weight)
            steps = source.steps
        else:
            inputs, targets, weights = self.__standardized(x, y, sample_weight, class_weight)
            if validation_split and validation_data is None:
                first = int(len(inputs[0]) * (1 - validation_split))
                validation_data = ([value[first:] for value in inputs], [value[first:] for value in targets])
                inputs, targets = [value[:first] for value in inputs], [value[:first] for value in targets]
                weights = None if weights is None else weights[:first]
            self._prepare_training(targets)  # makes the learning rate a variable, which callbacks may read or set
            samples = len(inputs[0])
            steps = math.ceil(samples / size if steps_per_epoch is None else steps_per_epoch)
            epoch_batches = functools.partial(_sliced, inputs, targets, weights, size, shuffle, steps)
        validation = None if validation_data is None else self.__evaluation(validation_data, size, validation_steps)
        record = History()
        params = {"epochs": epochs, "batch_size": size, "samples": samples, "steps": steps, "verbose": verbose}
        listeners = CallbackList([record, *(callbacks or ())], self, params)
        self.stop_training = False
        first_batches = epoch_batches()
        if samples is None:
            first_batches = self.__prepared_by(first_batches)
        listeners.call("on_train_begin", {})
        for epoch in range(initial_epoch, epochs):
            listeners.call("on_epoch_begin", epoch, {})
            logs, made = self.__over(first_batches if epoch == initial_epoch else epoch_batches(), True, listeners)
            if not self.stop_training and steps is not None and made < steps and samples is None:
                logging.warning("model %r was to train for %d steps, and there were %d batches", self.name, steps, made)
                self.stop_training = True
            if validation is not None and (epoch + 1) % validation_freq == 0:
                logs |= {f"val_{name}": value for name, value in self.__over(validation(), False, None)[0].items()}
            listeners.call("on_epoch_end", epoch, logs)
            if verbose:
                numbers = " - ".join(f"{name}: {value:.4f}" for name, value in logs.items())
                print(f"Epoch {epoch + 1}/{epochs} - {numbers}")
            if self.stop_training:
                break
        listeners.call("on_train_end", {})
        return record

    def __evaluation(
        self, data: Any, size: int, steps: float | None, sample_weight: Any = None
    ) -> Callable[[], Iterator[_Batch]]:
        """A function that gives the batches of an evaluation, from a source or from arrays."""
        if is_source(data):
            return functools.partial(self.__taken, BatchSource(data, steps, False), None)
        x, y, *weights = data
        arrays = self.__standardized(x, y, weights[0] if weights else sample_weight, None)
        count = None if steps is None else math.ceil(steps)
        return functools.partial(_sliced, *arrays, size, False, count)

    def __taken(self, source: BatchSource, class_weight: dict[int, float] | None) -> Iterator[_Batch]:
        for batch in source.epoch():
            x, y, weights = parts_of(batch)
            yield self.__standardized(x, y, weights, class_weight)

    def __prepared_by(self, batches: Iterator[_Batch]) -> Iterator[_Batch]:
        """The same batches; the first says what targets are like."""
        first = next(batches, None)
        if first is None:
            return iter(())
        self._prepare_training(first[1])
        return itertools.chain([first], batches)

    def __over(
        self, batches: Iterator[_Batch], training: bool, listeners: CallbackList | None
    ) -> tuple[dict[str, float], int]:
        """Means of loss and metrics over batches, and how many batches there were."""
        sums, count, made = np.zeros(0), 0, 0
        for index, (inputs, targets, weights) in enumerate(batches):
            size = len(inputs[0])
            if listeners is not None:
                listeners.call("on_batch_begin", index, {"batch": index, "size": size})
            values = np.array(self.__run_batch(inputs, targets, weights, training))
            sums = values * size if made == 0 else sums + values * size
            count, made = count + size, made + 1
            if listeners is not None:
                named = dict(zip(self.metrics_names, values.tolist(), strict=True))
                listeners.call("on_batch_end", index, {"batch": index, "size": size, **named})
            if training and self.stop_training:
                break
        if not made:
            return {}, 0
        return dict(zip(self.metrics_names, (sums / max(count, 1)).tolist(), strict=True)), made

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: float | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The mean loss over all examples, or a list of loss and metrics; arguments as for `fit`."""
        data = x if is_source(x) and y is None else (x, y)
        batches = self.__evaluation(data, batch_size or 32, steps, sample_weight)
        return _one_or_list(list(self.__over(batches(), False, None)[0].values()))

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: float | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The outputs for all examples: an array, or a list of one for each output; arguments as for `evaluate`."""
        if is_source(x):
            parts = [self.predict_on_batch(parts_of(batch)[0]) for batch in BatchSource(x, steps, False).epoch()]
        else:
            sliced = _sliced(_arrays(x), [], None, batch_size or 32, False, None if steps is None else math.ceil(steps))
            parts = [self.predict_on_batch(inputs) for inputs, _, _ in sliced]
        if len(self.outputs) == 1:
            return np.concatenate(parts)
        return [np.concatenate(values) for values in zip(*parts, strict=True)]

    # -- by the names of TensorFlow 1 ------------------------------------------------------------

    def fit_generator(self, generator: Any, steps_per_epoch: float | None = None, *args: Any, **kwargs: Any) -> History:
        """`fit` with batches.

        Args:
            generator: As `x` of `fit`.
            steps_per_epoch: See `fit`.
            *args: ``epochs``, ``verbose``, ``callbacks``, ``validation_data``, ``validation_steps``,
                ``validation_freq``, ``class_weight``, ``max_queue_size``, ``workers``, ``use_multiprocessing``,
                ``shuffle`` and ``initial_epoch`` of `fit`, in this order.
            **kwargs: The same by name.
        """
        return self.fit(generator, steps_per_epoch=steps_per_epoch, **_named(_FIT_GENERATOR, args), **kwargs)

    def evaluate_generator(self, generator: Any, steps: float | None = None, *args: Any, **kwargs: Any) -> Any:
        """`evaluate` with batches; further arguments are ``callbacks`` and those of queues."""
        return self.evaluate(generator, steps=steps, **_named(_GENERATOR, args), **kwargs)

    def predict_generator(self, generator: Any, steps: float | None = None, *args: Any, **kwargs: Any) -> Any:
        """`predict` with batches; further arguments are ``callbacks`` and those of queues."""
        return self.predict(generator, steps=steps, **_named(_GENERATOR, args), **kwargs)


_GENERATOR: Final = ("callbacks", "max_queue_size", "workers", "use_multiprocessing", "verbose")
_FIT_GENERATOR: Final = (
    "epochs",
    "verbose",
    "callbacks",
    "validation_data",
    "validation_steps",
    "validation_freq",
    "class_weight",
    "max_queue_size",
    "workers",
    "use_multiprocessing",
    "shuffle",
    "initial_epoch",
)


def _named(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=False))


def _arrays(values: Any) -> list[np.ndarray]:
    """Inputs or targets as a list of arrays; 64-bit floats become 32-bit ones."""
    if values is None:
        raise InvalidArgumentError("inputs and targets must be given, as arrays")
    items = values if isinstance(values, (list, tuple)) and np.ndim(values[0]) > 0 else [values]
    arrays = [np.asarray(item) for item in items]
    return [array.astype(np.float32) if array.dtype == np.float64 else array for array in arrays]


def _with_last_dimension(array: np.ndarray) -> np.ndarray:
    return array[:, None] if array.ndim == 1 else array


def _target_dtype(array: np.ndarray) -> Any:
    return dtypes.int64 if array.dtype.kind in "iub" else dtypes.float32


def _sliced(inputs: Any, targets: Any, weights: Any, size: int, shuffle: bool, steps: int | None) -> Iterator[_Batch]:
    """Batches of arrays."""
    count = len(inputs[0])
    order = np.random.permutation(count) if shuffle else np.arange(count)
    starts = range(0, count, size)
    for start in starts if steps is None else starts[:steps]:
        rows = order[start : start + size]
        taken = [value[rows] for value in inputs], [value[rows] for value in targets]
        yield (*taken, None if weights is None else weights[rows])


def _one_or_list(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _unique(names: Sequence[str]) -> list[str]:
    return [name if name not in names[:i] else f"{name}_{names[:i].count(name)}" for i, name in enumerate(names)]
