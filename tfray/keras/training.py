"""How models train: the graph of loss, metrics and training step, and the loops over batches that run it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras import losses as keras_losses
from tfray.keras import metrics as keras_metrics
from tfray.keras import optimizers as keras_optimizers
from tfray.keras.backend import get_session, phase_feed
from tfray.keras.batch_sources import (
    BatchSource,
    DataTensors,
    batch_of,
    given_to_generator_method,
    is_source,
    parts_of,
    refuse_batch_size,
    refuse_beside_batches,
    with_tensors,
)
from tfray.keras.callbacks import Callback, CallbackList, History, ProgbarLogger, listening
from tfray.keras.mixed_precision.experimental import optimizer_under
from tfray.keras.settings import floatx
from tfray.keras.step_values import Head, mean_loss, result_after_update, sum_and_count
from tfray.keras.training_data import (
    Batch,
    arrays_of,
    check_count,
    check_fits,
    check_loss_weights,
    check_steps,
    cut,
    expected_shape,
    feeds_of,
    for_outputs,
    is_validated,
    means,
    metrics_of,
    one_or_list,
    refuse_data,
    said_first,
    shaped,
    sliced,
    target_tensors_of,
    weights_for,
    weights_of,
)
from tfray.library.input.datasets import Dataset
from tfray.library.layers.layer_nodes import given_states, trainable_states
from tfray.library.layers.losses import share_of_replica
from tfray.library.platform import logging
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.arrays.source_ops import constant
from tfray.ops.math import math_ops


class Trainable:
    """The part of `Model` that compiles, trains, evaluates and predicts."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    input_names: Any
    output_names: Any
    name: Any
    losses: Any
    get_losses_for: Any
    get_updates_for: Any
    _take_awaited_weights: Any
    trainable_variables: Any
    _dtype_policy: Any
    state_updates: Any
    _metrics_of_inputs: Any

    def _init_training(self) -> None:
        self.optimizer: Any = None
        self.stop_training = False
        self.history: Any = None
        self._input_keys: list[str] | None = None
        self._built_for_data = False
        self._with_tests: tuple[Tensor, Callable[[Any], None]] | None = None
        self._compiled_loss: Any = None
        self._compiled_metrics: Any = ()
        self._compiled_weighted_metrics: Any = ()
        self._sample_weight_mode: Any = None
        self._compiled_loss_weights: Any = None
        self._target_tensors: Any = None
        self._weight_tensors: Any = None
        self.__heads: list[Head] | None = None
        self.__numbers: list[Tensor] | None = None
        self.__train_op: Any = None
        self.__running: list[Any] = []
        self.__running_places: list[int] = []
        self.__totals: np.ndarray | None = None
        self.__metrics: list[Any] | None = None
        self.__compiled_states: dict[Any, bool] = {}

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        **unused: Any,
    ) -> None:
        """Say how the model is to be trained.

        Args:
            optimizer: An optimizer of ``tf.keras.optimizers`` or ``tf.train``, or a name.
            loss: A loss of ``tf.keras.losses``, a function of targets and predictions, or a name; for several
                outputs a list, or a dictionary by their names. Outputs without one are not trained. Without any, the
                loss is what `add_loss` has added.
            metrics: Metrics of all outputs; a list of lists or a dictionary for those of each. ``"accuracy"``, in logs
                ``acc``, is the one that suits the loss.
            loss_weights: Weights of the outputs' losses, a list or a dictionary.
            sample_weight_mode: ``temporal`` for a weight of each step of sequences, ``[batch, time]``; for several
                outputs a list or a dictionary.
            weighted_metrics: Metrics in which examples count by their weights.
            target_tensors: Tensors that are the targets, which are not fed then: one, a list or a dictionary.
            distribute: Accepted for TensorFlow 1's sake, which refuses it: `Trainer` distributes.
            **unused: Accepted for Keras's sake.

        Raises:
            ValueError: There is no such optimizer, loss or metric; dictionaries have other names than the outputs;
                nothing is left to optimize.
        """
        self.optimizer = optimizer_under(self._dtype_policy, keras_optimizers.get(optimizer))
        self._compiled_loss = loss
        self._compiled_metrics = metrics if isinstance(metrics, Mapping) else list(metrics or ())
        of_weights = weighted_metrics if isinstance(weighted_metrics, Mapping) else list(weighted_metrics or ())
        self._compiled_weighted_metrics = of_weights
        self._compiled_loss_weights = loss_weights
        self._sample_weight_mode = sample_weight_mode
        self.loss, self.loss_weights, self.sample_weight_mode = loss, loss_weights, sample_weight_mode
        self._target_tensors = target_tensors
        self.__heads = self.__numbers = self.__train_op = self.__totals = self.__metrics = None
        self.__compiled_states = trainable_states(self)
        if not self.outputs:  # these say what there is to be checked
            for each in nest.flatten(loss):
                keras_losses.get(each)
            return
        if not self.__trained_heads() and not self.losses:
            raise ValueError("The model cannot be compiled because it has no loss to optimize.")
        self.__planned_metrics()

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
        return [head.target for head in self.__fed_heads()] if self.__train_op is not None else []

    @property
    def total_loss(self) -> Tensor:
        """What training makes smaller, a scalar: the losses of all outputs, and those that layers add.

        Raises:
            RuntimeError: The model has not been compiled.
        """
        fed = self.__fed_heads()
        return self.__prepare([expected_shape(head.loss, self.outputs[head.place]) for head in fed])[0]

    @property
    def _feed_inputs(self) -> list[Tensor]:
        """What a step is fed. Weights of examples are 1 by default."""
        return self.__fed_inputs()

    @property
    def _feed_targets(self) -> list[Tensor]:
        # The targets are made with the loss.
        return [head.target for head in self.__fed_heads() if self.total_loss is not None]

    def _prepare_training(self, targets: Sequence[np.ndarray]) -> Any:
        """Make the training step for targets like these arrays, and with it the optimizer's variables; returns it."""
        self.__prepare(map(np.shape, targets))
        return self.__training_step()

    def _evaluated_metrics(self) -> dict[str, Any]:
        """The compiled metrics by their names, as objects that are updated for the targets; see `compile`."""
        self.__prepare(())
        found, running = {}, iter(self.__running)
        for (name, head, metric, weighted), made in zip(self.__planned_metrics(), self.metrics, strict=False):
            if isinstance(metric, keras_metrics.Metric):
                found[name] = next(running)
            else:
                result_after_update(made, head.target, head.output, head.weights if weighted else None)
                found[name] = made
        return found

    # -- outputs, losses and metrics --------------------------------------------------------------

    def __trained_heads(self) -> list[Head]:
        """The outputs that have a loss."""
        if self.optimizer is None:
            raise RuntimeError(
                "You must compile your model before training/testing. Use `model.compile(optimizer, loss)`."
            )
        if self.__heads is None:
            names = self.output_names
            losses = [keras_losses.get(loss) for loss in for_outputs(self._compiled_loss, names, "loss")]
            check_loss_weights(self._compiled_loss_weights)
            shares = for_outputs(self._compiled_loss_weights or 1.0, names, "loss_weights", 1.0)
            targets = target_tensors_of(self._target_tensors, names)
            modes = for_outputs(self._sample_weight_mode, names, "sample_weight_mode")
            weights = for_outputs(self._weight_tensors, names, "sample_weights")
            rows = zip(names, losses, shares, targets, modes, weights, strict=True)
            self.__heads = [
                Head(name, place, loss, share, target, mode, weight)
                for place, (name, loss, share, target, mode, weight) in enumerate(rows)
                if loss is not None
            ]
        return self.__heads

    def __fed_heads(self) -> list[Head]:
        return [head for head in self.__trained_heads() if head.is_fed]

    def __planned_metrics(self) -> list[tuple[str, Head, Any, bool]]:
        """Name, output, and metric of all that was compiled, and whether examples count by their weights."""
        names, planned = self.output_names, []
        for head in self.__trained_heads():
            for weighted, metrics in ((False, self._compiled_metrics), (True, self._compiled_weighted_metrics)):
                # Of metrics of one name the last counts.
                own = {keras_metrics.name_of(each, weighted): each for each in metrics_of(metrics, names, head.place)}
                prefix = f"{head.name}_" if len(names) > 1 else ""
                planned += [(prefix + name, head, metric, weighted) for name, metric in own.items()]
        return planned

    @property
    def metrics_names(self) -> list[str]:
        """Names of the loss and the metrics, in the order in which `evaluate` gives them."""
        if self.optimizer is None or not self.outputs:
            return [] if self.optimizer is None else ["loss"]
        heads = self.__trained_heads()
        parts = [f"{head.name}_loss" for head in heads] if len(self.output_names) > 1 else []
        planned = [name for name, *_ in self.__planned_metrics()]
        return ["loss", *unique_names([*parts, *planned, *(name for name, *_ in self._metrics_of_inputs())])]

    @property
    def metrics(self) -> list[Any]:
        """The metrics, as objects; those that `add_metric` has added are the last."""
        if self.optimizer is None or not self.outputs:
            return [metric for _, metric, _ in self._metrics_of_inputs()]
        if self.__metrics is None:
            self.__metrics = []
            for name, head, metric, _ in self.__planned_metrics():
                output = self.outputs[head.place]
                made = metric if isinstance(metric, keras_metrics.Metric) else None
                if made is None:
                    function: Any = keras_metrics.get(metric, head.loss, output)
                    made = keras_metrics.MeanMetricWrapper(function, name)
                self.__metrics.append(made)
        return [*self.__metrics, *(metric for _, metric, _ in self._metrics_of_inputs())]

    def reset_metrics(self) -> None:
        """Let the metrics forget what they have seen."""
        self.__totals = None
        for metric in self.__running:
            metric.reset_states()

    # -- graph -----------------------------------------------------------------------------------

    def __prepare(self, shapes: Iterable[Sequence[int | None]]) -> list[Tensor]:
        """Loss and metrics, built for targets of these shapes when they are first asked for."""
        if self.__numbers is not None:
            return self.__numbers
        heads, given = self.__trained_heads(), iter(shapes)
        if not heads and not self.losses:
            raise ValueError("The model cannot be compiled because it has no loss to optimize.")
        for head in heads:
            head.receive(self.outputs[head.place], next(given)[1:] if head.is_fed else ())
        with get_default_graph().name_scope("loss"):
            parts = [mean_loss(head.loss, head.target, head.output, head.weights) for head in heads]
            total = math_ops.add_n(
                [array_ops.cast(head.share * part, floatx()) for head, part in zip(heads, parts, strict=True)]
                + [array_ops.cast(loss, floatx()) for loss in self._losses_of_inputs()]
            )
            values = [(part, constant(1.0)) for part in parts] if len(self.output_names) > 1 else []
            self.__running, self.__running_places = [], []
            self.__add_metrics(values)
        self.__numbers = [total, *(array_ops.cast(number, "float32") for both in values for number in both)]
        return self.__numbers

    def __add_metrics(self, values: list[tuple[Any, Any]]) -> None:
        """Add the sums of all metrics, and how much these are of."""
        seen: list[Any] = []
        for _, head, metric, weighted in self.__planned_metrics():
            weights = head.weights if weighted else None
            if isinstance(metric, keras_metrics.Metric):
                if any(metric is each for each in seen):  # each output has a metric of its own
                    metric = metric.fresh()
                seen.append(metric)
                self.__running.append(metric)
                self.__running_places.append(1 + len(values))
                values.append((result_after_update(metric, head.target, head.output, weights), constant(1.0)))
            else:
                values.append(sum_and_count(metric, head.loss, head.target, head.output, weights))
        for _, metric, result in self._metrics_of_inputs():
            self.__running.append(metric)
            self.__running_places.append(1 + len(values))
            values.append((result, constant(1.0)))

    def __training_step(self) -> Any:
        if self.__train_op is None:
            assert self.__numbers is not None
            # What was trainable when the model was compiled is trained, as in TensorFlow: the discriminator of a GAN is
            # compiled first, and then held still within the model that trains the generator.
            with given_states(self, self.__compiled_states):
                variables = self.trainable_variables
                with get_default_graph().name_scope("training"):
                    loss = share_of_replica(self.__numbers[0])
                    steps = self._updates_for(loss, variables) if variables else []
                self.__train_op = grouping_ops.group(*steps, *self._updates_of_inputs())
            self._take_awaited_weights()  # those of the optimizer
        return self.__train_op

    def _updates_for(self, loss: Tensor, variables: Sequence[Any]) -> list[Any]:
        """What changes the variables in a step."""
        made: list[Any] = self.optimizer.get_updates(loss, variables)
        return made

    def _losses_of_inputs(self) -> list[Tensor]:
        """The losses of layers, but those of other inputs: a model within this one has been called on its own too."""
        return [*self.get_losses_for(None), *self.get_losses_for(self.inputs)]

    def _updates_of_inputs(self) -> list[Any]:
        """The updates of layers, likewise."""
        return [*self.get_updates_for(None), *self.get_updates_for(self.inputs)]

    def _build_for(self, x: Sequence[np.ndarray]) -> None:
        """Make inputs and outputs for arrays like `x`, if the model has none yet."""

    # -- one batch -------------------------------------------------------------------------------

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        reset_metrics: bool = True,
    ) -> Any:
        """Make one training step; returns the loss, or a list of loss and metrics.

        Args:
            x: Inputs.
            y: Targets.
            sample_weight: What each example counts.
            class_weight: What examples count, by their classes.
            reset_metrics: Whether metrics are of this batch alone, and the next begins anew.
        """
        return self.__on_batch(self.__given(x, y, sample_weight, class_weight), True, reset_metrics)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True) -> Any:
        """The loss of one batch, or a list of loss and metrics; arguments as for `train_on_batch`."""
        return self.__on_batch(self.__given(x, y, sample_weight, None), False, reset_metrics)

    def __given(self, x: Any, y: Any, sample_weight: Any, class_weight: Any) -> Batch:
        """A batch of arrays, or the next one of a dataset, or of tensors."""
        refuse_beside_batches(x, y=y, sample_weight=sample_weight)
        source = with_tensors(x, y, sample_weight)
        x, y, sample_weight = parts_of(batch_of(x, y, sample_weight))
        return self.__standardized(x, y, sample_weight, class_weight, source is None)

    def __on_batch(self, batch: Batch, training: bool, reset_metrics: bool) -> Any:
        self.__prepare(map(np.shape, batch[1]))
        if reset_metrics:
            self.reset_metrics()
        values = self.__run_batch(*batch, training)
        totals = self.__added(values)
        if reset_metrics:
            self.reset_metrics()
        return one_or_list([float(values[0]), *means(totals)[1:]])

    def __added(self, values: np.ndarray) -> np.ndarray:
        """What metrics have summed up, with one batch more."""
        totals = values.copy() if self.__totals is None else self.__totals + values
        for place in self.__running_places:  # these have seen the batches before, too
            totals[2 * place - 1 : 2 * place + 1] = values[2 * place - 1 : 2 * place + 1]
        self.__totals = totals
        return totals

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch."""
        inputs = self.__given_inputs(parts_of(batch_of(x))[0])
        feeds = {**phase_feed(False), **feeds_of(self.__fed_inputs(), inputs)}
        return one_or_list(get_session().run([self.outputs, self.state_updates], feeds)[0])

    def __fed_inputs(self) -> list[Tensor]:
        """The inputs that are placeholders. Others have values of their own."""
        return [tensor for tensor in self.inputs if tensor.op.type.startswith("Placeholder")]

    def __given_inputs(self, x: Any) -> list[np.ndarray]:
        """Arrays for the inputs, in their order. A model that has none yet is built for them."""
        if not self.inputs:
            self._input_keys = sorted(x) if isinstance(x, Mapping) else None
        fed = self.__fed_inputs()
        names = [name for name, tensor in zip(self.input_names, self.inputs, strict=True) if tensor in fed]
        if self.inputs and not fed:
            refuse_data(x, "input")
            return []
        arrays = arrays_of(x, self._input_keys or names)
        self._build_for(arrays)
        fed = fed or self.__fed_inputs()
        check_count(arrays, len(fed), "input")
        names = names or self.input_names
        return [shaped(array, each.shape, "input", name) for array, each, name in zip(arrays, fed, names, strict=True)]

    def __standardized(
        self, x: Any, y: Any, sample_weight: Any, class_weight: Any, checks_targets: bool = True
    ) -> Batch:
        """Arrays for inputs and targets, and weights. Targets of datasets are broadcast as a loss has it, unchecked."""
        inputs = self.__given_inputs(x)
        heads = self.__fed_heads()
        if not heads:
            refuse_data(y, "target")
        targets = arrays_of(y, [head.name for head in heads]) if heads else []
        check_count(targets, len(heads), "target")
        targets = [shaped(target, None, "target", head.name) for target, head in zip(targets, heads, strict=True)]
        for target, head in zip(targets, heads, strict=True) if checks_targets else ():
            check_fits(target, head.loss, self.outputs[head.place])
        sizes = {len(array) for array in [*inputs, *targets]}
        if len(sizes) > 1:
            raise InvalidArgumentError(f"inputs and targets have different numbers of examples: {sorted(sizes)}")
        names = [head.name for head in heads]
        given = weights_for(sample_weight, names, "sample_weight")
        by_class = weights_for(class_weight, names, "class_weight")
        rows = zip(heads, targets, given, by_class, strict=True)
        return inputs, targets, [weights_of(head.mode, *row) for head, *row in rows]

    def __run_batch(self, inputs: Any, targets: Any, weights: Any, training: bool) -> np.ndarray:
        """The loss, and for each metric its sum and how much it is of."""
        numbers = self.__prepare(map(np.shape, targets))
        made = self.__training_step() if training else self.state_updates
        heads = self.__fed_heads()
        feeds = {
            **phase_feed(training),
            **feeds_of(self.__fed_inputs(), inputs),
            **{head.target: target for head, target in zip(heads, targets, strict=True)},
            **{head.weights: each for head, each in zip(heads, weights, strict=True) if each is not None},
        }
        also, take = (None, None) if training or self._with_tests is None else self._with_tests
        found, _, *more = get_session().run([numbers, made, *([] if also is None else [also])], feeds)
        if take is not None:
            take(*more)
        return np.array(found, np.float64)

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
        validation_freq: int | Sequence[int] = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> History:
        """Train.

        Args:
            x: Inputs: an array, or a list of one for each input. Or batches of inputs and targets, and possibly
                weights, one after the other: a generator, a `tf.keras.utils.Sequence`, a `tf.data.Dataset` or an
                iterator of one. Tensors are evaluated in each step.
            y: Targets likewise; None for batches, and where nothing is fed.
            batch_size: Examples in a step; 32 when None.
            epochs: How often to go over all examples, counted from 0.
            verbose: 0 to print nothing, 1 for a bar, 2 for a line for each epoch.
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
            validation_freq: Evaluate after every so many epochs, or after those with these numbers, from 1.
            max_queue_size: Not used, nor are `workers` and `use_multiprocessing`: batches are taken when they are
                needed.
            workers: Not used.
            use_multiprocessing: Not used.

        Returns:
            The history: loss and metrics at the end of each epoch. Training ends when there are no more batches.
        """
        refuse_batch_size(x, batch_size)
        refuse_beside_batches(x, y=y, sample_weight=sample_weight, validation_split=validation_split)
        size, samples, source = batch_size or 32, None, with_tensors(x, y, sample_weight)
        if source is not None:
            if validation_split and isinstance(source, DataTensors):
                raise ValueError("If your data is in the form of symbolic tensors, you cannot use `validation_split`.")
            taken = BatchSource(source, steps_per_epoch, shuffle, "steps_per_epoch")
            epoch_batches = functools.partial(self.__taken, taken, class_weight)
            steps = taken.steps
        else:
            inputs, targets, weights = self.__standardized(x, y, sample_weight, class_weight)
            if validation_split and validation_data is None:
                first = int(len([*inputs, *targets][0]) * (1 - validation_split))
                validation_data = tuple(cut(arrays, slice(first, None)) for arrays in (inputs, targets, weights))
                inputs, targets, weights = (cut(arrays, slice(first)) for arrays in (inputs, targets, weights))
            self._prepare_training(targets)  # makes the variables of the optimizer, which callbacks may read or set
            check_steps([*inputs, *targets], steps_per_epoch, "steps_per_epoch")
            steps = None if steps_per_epoch is None else math.ceil(steps_per_epoch)
            samples = len([*inputs, *targets][0]) if steps is None else None
            epoch_batches = functools.partial(sliced, inputs, targets, weights, size, shuffle, steps)
            steps = math.ceil(samples / size) if samples is not None else steps
        validation: Callable[[], Iterator[Batch]] | None = None
        counts: list[int | None] = [None, None]
        if validation_data is not None:
            validation, *counts = self.__evaluation(validation_data, size, validation_steps, None, "validation_steps")
        record = History()
        params: dict[str, Any] = {"epochs": epochs, "batch_size": size, "samples": samples, "steps": steps}
        names = [*self.metrics_names, *(f"val_{name}" for name in self.metrics_names if validation is not None)]
        params |= {"verbose": verbose, "do_validation": validation is not None, "metrics": names}
        self.history = record
        listeners, bar = listening([*(callbacks or ()), record], self, params)
        if verbose and (not is_source(x) or isinstance(x, Dataset)):
            print(said_first(params, counts, is_source(x)))
        self.stop_training = False
        first_batches = epoch_batches()
        if samples is None:
            first_batches = self.__prepared_by(first_batches)
        listeners.call("on_train_begin", {})
        for epoch in range(initial_epoch, epochs):
            listeners.call("on_epoch_begin", epoch, {})
            bar.on_epoch_begin(epoch)
            batches = first_batches if epoch == initial_epoch else epoch_batches()
            weight = 1 if samples is None and not is_source(x) else None
            logs, made = self.__over(batches, "train", listeners, bar if verbose else None, weight)
            if not self.stop_training and steps is not None and made < steps and samples is None:
                logging.warning("model %r was to train for %d steps, and there were %d batches", self.name, steps, made)
                self.stop_training = True
            if validation is not None and is_validated(epoch, validation_freq):
                listeners.call("on_test_begin", {})
                found = self.__over(validation(), "test", listeners)[0]
                listeners.call("on_test_end", {})
                logs |= {f"val_{name}": value for name, value in found.items()}
            listeners.call("on_epoch_end", epoch, logs)
            bar.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        listeners.call("on_train_end", {})
        return record

    def __evaluation(
        self, data: Any, size: int, steps: float | None, sample_weight: Any = None, argument: str = "steps"
    ) -> tuple[Callable[[], Iterator[Batch]], int | None, int | None]:
        """A function that gives the batches of an evaluation, from a source or from arrays; how many examples, steps.

        Either number is None where it is not known.
        """
        x, y, weights = (data, None, None) if is_source(data) else parts_of(data)
        weights = sample_weight if weights is None else weights
        source = with_tensors(x, y, weights)
        if source is not None:
            taken = BatchSource(source, steps, False, argument, anew=True)
            return functools.partial(self.__taken, taken, None), None, taken.steps
        arrays = self.__standardized(x, y, weights, None)
        check_steps([*arrays[0], *arrays[1]], steps, argument)
        count = None if steps is None else math.ceil(steps)
        samples = len([*arrays[0], *arrays[1]][0]) if arrays[0] or arrays[1] else None
        return functools.partial(sliced, *arrays, size, False, count), samples, count

    def __taken(self, source: BatchSource, class_weight: dict[int, float] | None) -> Iterator[Batch]:
        for batch in source.epoch():
            x, y, weights = parts_of(batch)
            yield self.__standardized(x, y, weights, class_weight, source.checks_targets)

    def __prepared_by(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; the first says what targets are like."""
        first = next(batches, None)
        if first is None:
            return iter(())
        self._prepare_training(first[1])
        return itertools.chain([first], batches)

    def __over(
        self,
        batches: Iterator[Batch],
        mode: str,
        listeners: CallbackList,
        bar: ProgbarLogger | None = None,
        weight: int | None = None,
    ) -> tuple[dict[str, float], int]:
        """Means of loss and metrics over batches, and how many batches there were.

        A batch counts as often as it has examples when `weight` is None.
        """
        total, count, made = 0.0, 0, 0
        for index, (inputs, targets, weights) in enumerate(batches):
            size = weight or (len([*inputs, *targets][0]) if inputs or targets else 1)
            listeners.call(f"on_{mode}_batch_begin", index, {"batch": index, "size": size})
            if index == 0:
                self.__prepare(map(np.shape, targets))
                self.reset_metrics()
                if bar is not None:
                    bar.progbar.stateful_metrics.update(self.metrics_names[1:])
            values = self.__run_batch(inputs, targets, weights, mode == "train")
            found = [float(values[0]), *means(self.__added(values))[1:]]
            total, count, made = total + found[0] * size, count + size, made + 1
            named = dict(zip(self.metrics_names, found, strict=True))
            listeners.call(f"on_{mode}_batch_end", index, {"batch": index, "size": size, **named})
            if bar is not None:
                bar.on_batch_end(index, {"size": size, **named})
            if mode == "train" and self.stop_training:
                break
        if not made:
            return {}, 0
        found[0] = total / max(count, 1)
        return dict(zip(self.metrics_names, found, strict=True)), made

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
        refuse_beside_batches(x, y=y, sample_weight=sample_weight)
        data = x if is_source(x) else (x, y)
        batches, samples, count = self.__evaluation(data, batch_size or 32, steps, sample_weight)
        samples = samples if steps is None else None
        params: dict[str, Any] = {"steps": count, "samples": samples, "verbose": verbose}
        params |= {"batch_size": batch_size or 32, "metrics": self.metrics_names}
        listeners, bar = listening(callbacks, self, params)
        listeners.call("on_test_begin", {})
        bar.on_epoch_begin(0)
        found = self.__over(batches(), "test", listeners, bar if verbose else None)[0]
        bar.on_epoch_end(0, found)
        listeners.call("on_test_end", {})
        return one_or_list(list(found.values()))

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
        batches: Iterator[Any]
        count, samples, source = None if steps is None else math.ceil(steps), None, with_tensors(x)
        size = batch_size or 32
        if source is not None:
            taken = BatchSource(source, steps, False)
            batches, count = (parts_of(batch)[0] for batch in taken.epoch()), taken.steps
        else:
            given = self.__given_inputs(x)
            check_steps(given, steps, "steps")
            batches = (inputs for inputs, _, _ in sliced(given, [], [], size, False, count))
            samples = len(given[0]) if given and steps is None else None
        params = {"batch_size": size, "steps": count, "samples": samples, "verbose": verbose}
        listeners, bar = listening(callbacks, self, params)
        listeners.call("on_predict_begin", {})
        bar.on_epoch_begin(0)
        parts = []
        for index, inputs in enumerate(batches):
            arrays = nest.flatten(inputs)
            logs = {"batch": index, "size": len(arrays[0]) if arrays else batch_size or 1}
            listeners.call("on_predict_batch_begin", index, logs)
            parts.append(self.predict_on_batch(inputs))
            listeners.call("on_predict_batch_end", index, {**logs, "outputs": parts[-1]})
            bar.on_batch_end(index, {"size": logs["size"]})
        bar.on_epoch_end(0)
        listeners.call("on_predict_end", {})
        if len(self.outputs) == 1:
            return np.concatenate(parts)
        return [np.concatenate(values) for values in zip(*parts, strict=True)]

    # -- by the names of TensorFlow 1 ------------------------------------------------------------

    def fit_generator(
        self,
        generator: Any,
        steps_per_epoch: float | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Iterable[Callback] | None = None,
        validation_data: Any = None,
        validation_steps: float | None = None,
        validation_freq: int | Sequence[int] = 1,
        class_weight: dict[int, float] | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        shuffle: bool = True,
        initial_epoch: int = 0,
    ) -> History:
        """`fit` with batches: `generator` is its `x`; see there for the other arguments."""
        settings = {name: value for name, value in locals().items() if name not in ("self", "generator")}
        x, y, weights = given_to_generator_method(generator)
        return self.fit(x, y, sample_weight=weights, **settings)

    def evaluate_generator(
        self,
        generator: Any,
        steps: float | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
    ) -> Any:
        """`evaluate` with batches."""
        queue: dict[str, Any] = {
            "max_queue_size": max_queue_size,
            "workers": workers,
            "use_multiprocessing": use_multiprocessing,
        }
        x, y, weights = given_to_generator_method(generator)
        return self.evaluate(x, y, sample_weight=weights, steps=steps, callbacks=callbacks, verbose=verbose, **queue)

    def predict_generator(
        self,
        generator: Any,
        steps: float | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
    ) -> Any:
        """`predict` with batches."""
        queue: dict[str, Any] = {
            "max_queue_size": max_queue_size,
            "workers": workers,
            "use_multiprocessing": use_multiprocessing,
        }
        x, _, _ = given_to_generator_method(generator)
        return self.predict(x, steps=steps, callbacks=callbacks, verbose=verbose, **queue)


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with a number behind each that has come before."""
    return [name if name not in names[:i] else f"{name}_{names[:i].count(name)}" for i, name in enumerate(names)]
