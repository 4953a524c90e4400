"""How models train: the graph of loss, metrics and training step, and the loops over batches that run it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras import losses as keras_losses
from tfray.keras import metrics as keras_metrics
from tfray.keras import optimizers as keras_optimizers
from tfray.keras.backend import get_session, phase_feed
from tfray.keras.batch_sources import BatchSource, is_source, parts_of, refuse_batch_size
from tfray.keras.callbacks import Callback, CallbackList, History
from tfray.keras.layers.remembered_layers import mask_of
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
    input_names: Any
    output_names: Any
    name: Any
    losses: Any
    updates: Any
    trainable_variables: Any
    state_updates: Any

    def _init_training(self) -> None:
        self.optimizer: Any = None
        self.stop_training = False
        self._input_keys: list[str] | None = None
        self._compiled_loss: Any = None
        self._compiled_metrics: Any = ()
        self._compiled_weighted_metrics: Any = ()
        self._sample_weight_mode: str | None = None
        self._compiled_loss_weights: Any = None
        self.__numbers: list[Tensor] | None = None
        self.__train_op: Any = None
        self.__running: list[Any] = []
        self.__running_places: list[int] = []
        self._compiled_targets: list[Tensor] = []
        self.__weights_input: Any = None
        self.metrics_names: list[str] = []

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: str | None = None,
        weighted_metrics: Any = None,
        **unused: Any,
    ) -> None:
        """Say how the model is to be trained.

        Args:
            optimizer: An optimizer of ``tf.keras.optimizers`` or ``tf.train``, or a name.
            loss: A loss of ``tf.keras.losses``, a function of targets and predictions, or a name; for several
                outputs a list, or a dictionary by their names.
            metrics: Metrics of all outputs; a list of lists or a dictionary for those of each. ``"accuracy"``, in logs
                ``acc``, is the one that suits the loss.
            loss_weights: Weights of the outputs' losses, a list or a dictionary.
            sample_weight_mode: ``temporal`` for a weight of each step of sequences, ``[batch, time]``.
            weighted_metrics: Metrics in which examples count by their weights.
            **unused: Accepted for Keras's sake.
        """
        self.optimizer = keras_optimizers.get(optimizer)
        self._compiled_loss = loss
        self._compiled_metrics = metrics if isinstance(metrics, Mapping) else list(metrics or ())
        of_weights = weighted_metrics if isinstance(weighted_metrics, Mapping) else list(weighted_metrics or ())
        self._compiled_weighted_metrics = of_weights
        self._compiled_loss_weights = loss_weights
        self._sample_weight_mode = sample_weight_mode
        self.__numbers = self.__train_op = None

    def _training_settings(self) -> dict[str, Any]:
        """What `compile` was given."""
        settings = {"optimizer": self.optimizer, "loss": self._compiled_loss, "metrics": self._compiled_metrics}
        return {
            **settings,
            "loss_weights": self._compiled_loss_weights,
            "sample_weight_mode": self._sample_weight_mode,
            "weighted_metrics": self._compiled_weighted_metrics,
        }

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
        names = self.output_names
        found = [keras_losses.get(loss) for loss in _for_outputs(self._compiled_loss, names)]
        loss_weights = _for_outputs(self._compiled_loss_weights or 1.0, names, 1.0)
        with get_default_graph().name_scope(f"{self.name}_training"):
            self._compiled_targets = [
                placeholder(_target_dtype(target), [None, *target.shape[1:]], name="target") for target in targets
            ]
            weights_shape = [None, None] if self._sample_weight_mode == "temporal" else [None]
            ones = constant(1.0, shape=[1] * len(weights_shape))
            self.__weights_input = placeholder_with_default(ones, weights_shape, name="sample_weights")
            outputs = list(zip(found, self._compiled_targets, self.outputs, strict=True))
            parts = [mean_loss(*each, self.__weights_input) for each in outputs]
            total = math_ops.add_n(
                [weight * part for weight, part in zip(loss_weights, parts, strict=True)]
                + [array_ops.cast(loss, dtypes.float32) for loss in self.losses]
            )
            own = [(f"{name}_loss", (part, constant(1.0))) for name, part in zip(names, parts, strict=True)]
            values = own if len(names) > 1 else []
            self.__running, self.__running_places = [], []
            self.__add_metrics(values, outputs, names)
        self.metrics_names = ["loss", *_unique([name for name, _ in values])]
        self.__numbers = [total, *(number for _, both in values for number in both)]
        return self.__numbers

    def __add_metrics(self, values: list[tuple[str, tuple[Any, Any]]], outputs: Any, names: Sequence[str]) -> None:
        """Add names of all metrics, with their sums and how much these are of."""
        kinds = (None, self._compiled_metrics), (self.__weights_input, self._compiled_weighted_metrics)
        for place, (name, (loss, target, output)) in enumerate(zip(names, outputs, strict=True)):
            for weights, metrics in kinds:
                for metric in _metrics_of(metrics, names, place):
                    own = keras_metrics.name_of(metric, weights is not None)
                    if isinstance(metric, keras_metrics.Metric):
                        self.__running.append(metric)
                        self.__running_places.append(1 + len(values))
                        both = _result_after_update(metric, target, output, weights), constant(1.0)
                    else:
                        both = _sum_and_count(metric, loss, target, output, weights)
                    values.append((f"{name}_{own}" if len(names) > 1 else own, both))

    def __begin_metrics(self) -> None:
        """Let metrics that are objects forget what they have seen."""
        for metric in self.__running:
            metric.reset_states()

    def __training_step(self) -> Any:
        if self.__train_op is None:
            assert self.__numbers is not None
            variables = self.trainable_variables
            steps = [self.optimizer.minimize(self.__numbers[0], variables)] if variables else []
            self.__train_op = grouping_ops.group(*steps, *self.updates)
        return self.__train_op

    def _build_for(self, x: Sequence[np.ndarray]) -> None:
        """Make inputs and outputs for arrays like `x`, if the model has none yet."""

    # -- one batch -------------------------------------------------------------------------------

    def train_on_batch(self, x: Any, y: Any, sample_weight: Any = None, class_weight: Any = None) -> Any:
        """Make one training step; returns the loss, or a list of loss and metrics."""
        inputs, targets, weights = self.__standardized(x, y, sample_weight, class_weight)
        self.__prepare(targets)
        self.__begin_metrics()
        return _one_or_list(_means(self.__run_batch(inputs, targets, weights, True)))

    def test_on_batch(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
        """The loss of one batch, or a list of loss and metrics."""
        inputs, targets, weights = self.__standardized(x, y, sample_weight, None)
        self.__prepare(targets)
        self.__begin_metrics()
        return _one_or_list(_means(self.__run_batch(inputs, targets, weights, False)))

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch."""
        inputs = self.__given_inputs(x)
        feeds = {**phase_feed(False), **dict(zip(self.inputs, inputs, strict=True))}
        return _one_or_list(get_session().run([self.outputs, self.state_updates], feeds)[0])

    def __given_inputs(self, x: Any) -> list[np.ndarray]:
        """Arrays for the inputs, in their order. A model that has none yet is built for them."""
        if not self.inputs:
            self._input_keys = list(x) if isinstance(x, Mapping) else None
        inputs = _arrays(x, self._input_keys or self.input_names)
        self._build_for(inputs)
        ranks = (tensor.shape.rank for tensor in self.inputs)
        fitting = (
            _with_last_dimension(array) if rank != 1 else array for array, rank in zip(inputs, ranks, strict=False)
        )
        return [*fitting, *inputs[len(self.inputs) :]]

    def __standardized(self, x: Any, y: Any, sample_weight: Any, class_weight: Any) -> tuple[Any, Any, Any]:
        inputs = self.__given_inputs(x)
        targets = [_with_last_dimension(target) for target in _arrays(y, self.output_names)]
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

    def __run_batch(self, inputs: Any, targets: Any, weights: Any, training: bool) -> np.ndarray:
        """The loss, and for each metric its sum and how much it is of."""
        numbers = self.__prepare(targets)
        made = self.__training_step() if training else self.state_updates
        feeds = {
            **phase_feed(training),
            **dict(zip(self.inputs, inputs, strict=True)),
            **dict(zip(self._compiled_targets, targets, strict=True)),
        }
        if weights is not None:
            feeds[self.__weights_input] = weights
        return np.array(get_session().run([numbers, made], feeds)[0], np.float64)

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
        refuse_batch_size(x, batch_size)
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
            if index == 0:
                self.__prepare(targets)
                self.__begin_metrics()
            values = self.__run_batch(inputs, targets, weights, training)
            loss = float(values[0])
            values[0] *= size
            sums = values if made == 0 else sums + values
            for place in self.__running_places:  # these have seen the batches before, too
                sums[2 * place - 1 : 2 * place + 1] = values[2 * place - 1 : 2 * place + 1]
            count, made = count + size, made + 1
            if listeners is not None:
                named = dict(zip(self.metrics_names, [loss, *_means(sums)[1:]], strict=True))
                listeners.call("on_batch_end", index, {"batch": index, "size": size, **named})
            if training and self.stop_training:
                break
        if not made:
            return {}, 0
        sums[0] /= max(count, 1)
        return dict(zip(self.metrics_names, _means(sums), strict=True)), made

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
        refuse_batch_size(x, batch_size)
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
        refuse_batch_size(x, batch_size)
        if is_source(x):
            parts = [self.predict_on_batch(parts_of(batch)[0]) for batch in BatchSource(x, steps, False).epoch()]
        else:
            count = None if steps is None else math.ceil(steps)
            sliced = _sliced(self.__given_inputs(x), [], None, batch_size or 32, False, count)
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


def _arrays(values: Any, names: Sequence[str]) -> list[np.ndarray]:
    """Inputs or targets as a list of arrays, of a dictionary by their names; 64-bit floats become 32-bit ones."""
    if values is None:
        raise InvalidArgumentError("inputs and targets must be given, as arrays")
    if isinstance(values, Mapping):
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"No data provided for {missing[0]!r}. Need data for each key in: {list(names)}")
        items: Sequence[Any] = [values[name] for name in names]
    else:
        items = values if isinstance(values, (list, tuple)) and np.ndim(values[0]) > 0 else [values]
    arrays = [np.asarray(item) for item in items]
    return [array.astype(np.float32) if array.dtype == np.float64 else array for array in arrays]


def _for_outputs(given: Any, names: Sequence[str], default: Any = None) -> list[Any]:
    """What is given for each output: one for all, a list, or a dictionary by the names of outputs."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"Unknown entries: {unknown}. Only expected following keys: {list(names)}")
        return [given.get(name, default) for name in names]
    return list(given) if isinstance(given, (list, tuple)) else [given] * len(names)


def _metrics_of(metrics: Any, names: Sequence[str], place: int) -> list[Any]:
    """The metrics of one output."""
    nested = len(names) > 1 and any(isinstance(each, (list, tuple)) for each in metrics)
    if isinstance(metrics, Mapping) or nested:
        found = _for_outputs(metrics, names, ())[place]
        return list(found) if isinstance(found, (list, tuple)) else [found]
    return list(metrics)


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


def mean_loss(loss: Any, target: Tensor, output: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean of a loss over all its elements, in which those that are masked are zeros.

    Args:
        loss: A loss of ``tf.keras.losses``, or a function.
        target: The target.
        output: The output, and with it its mask.
        weights: What examples, or steps of sequences, count.
    """
    values = values_of(loss, target, output)
    return math_ops.reduce_mean(values * importance(values, output, weights))


def values_of(function: Any, target: Tensor, output: Tensor) -> Tensor:
    """The values of a loss or a metric, for each example if it has them."""
    found = function.per_example(target, output) if hasattr(function, "per_example") else function(target, output)
    return array_ops.cast(found, dtypes.float32) if not found.dtype.is_floating else found


def importance(values: Tensor, output: Tensor, weights: Tensor | None = None) -> Tensor:
    """What each of the values counts: the weights of examples, and 0 where the output is masked.

    A single value for all examples counts as often as they do.
    """
    factors = [array_ops.cast(each, values.dtype) for each in (weights, mask_of(output)) if each is not None]
    rank = values.shape.rank or max((factor.shape.rank or 0 for factor in factors), default=None)
    product = constant(1.0, values.dtype)
    for factor in factors:
        product = product * _with_rank(factor, rank)
    return product


def _result_after_update(metric: Any, target: Tensor, output: Tensor, weights: Tensor | None) -> Tensor:
    """The result of a metric that is an object, when it has seen the batch, without what is masked."""
    factors = [each for each in (weights, mask_of(output)) if each is not None]
    more = {}
    if factors:
        rank = max((output.shape.rank or 1) - 1, *(factor.shape.rank or 0 for factor in factors))
        product = constant(1.0)
        for factor in factors:
            product = product * _with_rank(array_ops.cast(factor, dtypes.float32), rank)
        examples = array_ops.ones_like(_with_rank(array_ops.cast(output, dtypes.float32)[..., 0], rank))
        more["sample_weight"] = product * examples
    update = metric.update_state(target, output, **more)
    with get_default_graph().control_dependencies([] if update is None else [update]):
        return array_ops.cast(array_ops.identity(metric.result()), dtypes.float32)


def _sum_and_count(metric: Any, loss: Any, target: Tensor, output: Tensor, weights: Tensor | None) -> tuple[Any, Any]:
    """The sum of a metric over what is not masked, and how much that is."""
    values = values_of(keras_metrics.get(metric, loss, output), target, output)
    counts = importance(values, output, weights)
    return math_ops.reduce_sum(values * counts), math_ops.reduce_sum(array_ops.ones_like(values) * counts)


def _means(numbers: np.ndarray) -> list[float]:
    """The loss, and the metrics: each is a sum over how much it is of."""
    metrics = [total / count if count else 0.0 for total, count in numbers[1:].reshape(-1, 2)]
    return [float(numbers[0]), *map(float, metrics)]


def _with_rank(tensor: Tensor, rank: int | None) -> Tensor:
    """A tensor of weights with dimensions of size 1 at its end, or fewer, so that it has this rank."""
    own = tensor.shape.rank
    if rank is None or own is None:
        return tensor
    if own == rank + 1:
        return array_ops.squeeze(tensor, [-1])
    for _ in range(rank - own):
        tensor = array_ops.expand_dims(tensor, -1)
    return tensor


def _unique(names: Sequence[str]) -> list[str]:
    return [name if name not in names[:i] else f"{name}_{names[:i].count(name)}" for i, name in enumerate(names)]
