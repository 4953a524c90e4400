"""Metrics of Keras as objects, which keep what they have seen in variables, over as many batches as there are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.keras import backend, initializers, losses
from tfray.library.functions.traced_function import Function
from tfray.library.layers.base_layer import snake_case
from tfray.library.layers.descriptions import Described
from tfray.library.layers.keras_layer import unique_layer_name
from tfray.library.layers.layer_history import Unconnected
from tfray.library.metrics.confusion import confusion_matrix
from tfray.library.variables.variables import Variable, VariableAggregation, VariableSynchronization
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.arrays.band_ops import matrix_diag_part
from tfray.ops.math import math_ops, search_ops
from tfray.ops.state import state_ops


def _without_result(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    function(*args, **kwargs)


def _recorded(update_state: Callable[..., Any]) -> Callable[..., Any]:
    """A method `update_state` that leaves its operation in `updates`, once where it calls that of a base.

    That of a program is a function, as in TensorFlow: its changes are made in the order in which it asks for them, and
    all of them, whatever it returns: nothing, in TensorFlow's examples.
    """
    is_of_program = not update_state.__module__.startswith(__name__.partition(".")[0] + ".")

    @functools.wraps(update_state)
    def recorded(self: Metric, *args: Any, **kwargs: Any) -> Any:
        before, within = self.updates, self._updates_itself
        self._updates_itself = is_of_program or within
        try:
            if is_of_program and not within:
                update = Function(functools.partial(_without_result, update_state, self, *args, **kwargs))()
            else:
                update = update_state(self, *args, **kwargs)
        finally:
            self._updates_itself = within
        self.updates = before if update is None else [*before, update]
        return update

    return recorded


class Metric(Unconnected, Described):
    """A metric that a program may derive its own from.

        class Positives(tf.keras.metrics.Metric):
            def __init__(self, name="positives", **kwargs):
                super().__init__(name=name, **kwargs)
                self.count = self.add_weight("count", initializer="zeros")

            def update_state(self, y_true, y_pred, sample_weight=None):
                return self.count.assign_add(tf.reduce_sum(tf.cast(y_pred > 0.5, tf.float32)))

            def result(self):
                return tf.identity(self.count)

    Called, it gives the result after an update.

    Args:
        name: Name; by default that of the class, with a number from the second of the graph on: ``auc``, ``auc_1``.
        dtype: Dtype; float32 when None.

    Attributes:
        updates: The operations that `update_state` has made.
    """

    stateful: ClassVar[bool] = True

    def __init__(self, name: str | None = None, dtype: DTypeLike | None = None, **kwargs: Any) -> None:
        self.name = name or unique_layer_name(snake_case(type(self).__name__))
        self.dtype = dtypes.as_dtype(dtype or dtypes.float32)
        self._own_variables: list[Any] = []
        self.updates: list[Any] = []
        self._updates_itself = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "update_state" in vars(cls):
            setattr(cls, "update_state", _recorded(cls.update_state))  # noqa: B010 (mypy takes no other method)

    def get_config(self) -> dict[str, Any]:
        """The arguments with which it was made, its name and the name of its dtype."""
        own = {"name": self.name, "dtype": self.dtype.name}
        return {**super().get_config(), **{key: value for key, value in own.items() if self._takes(key)}}

    def fresh(self) -> Metric:
        """One like this that has seen nothing."""
        made = type(self).from_config(self.get_config())
        return made

    @property
    def variables(self) -> list[Any]:
        """The variables: its own, and those of metrics that it has as attributes, or in lists that are."""
        within = [each for value in vars(self).values() for each in nest.flatten(value) if isinstance(each, Metric)]
        return [*self._own_variables, *(variable for metric in within for variable in metric.variables)]

    @property
    def weights(self) -> list[Any]:
        """The variables."""
        return self.variables

    def add_weight(
        self,
        name: str,
        shape: Any = (),
        aggregation: Any = None,
        synchronization: Any = None,
        initializer: Any = None,
        dtype: Any = None,
    ) -> Variable:
        """A variable of the metric, which no optimizer changes.

        Args:
            name: Its name.
            shape: Its shape.
            aggregation: How the changes by several replicas become one; their sum when None.
            synchronization: As for `tf.Variable`; each replica has its own part when None.
            initializer: What it begins with, zeros when None.
            dtype: Its dtype; that of the metric when None.
        """
        kind = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        start = initializers.get(initializer or "zeros")
        made = Variable(
            lambda: start(list(shape), dtype=kind),
            False,
            [GraphKeys.LOCAL_VARIABLES],
            dtype=kind,
            name=name,
            synchronization=synchronization or VariableSynchronization.ON_READ,
            aggregation=aggregation or VariableAggregation.SUM,
        )
        self._own_variables.append(made)
        return made

    add_variable = add_weight

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """An operation that takes a batch into account. Derived classes define this."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self) -> Any:
        """The value for all batches so far. Derived classes define this."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def reset_states(self) -> None:
        """Forget all batches."""
        zeros = [np.zeros(variable.shape.as_list(), variable.dtype.as_numpy_dtype) for variable in self.variables]
        backend.batch_set_value(zip(self.variables, zeros, strict=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        update = self.update_state(*args, **kwargs)
        with get_default_graph().control_dependencies([] if update is None else [update]):
            result = array_ops.identity(self.result())
        get_default_graph().extra("keras_metric_results", dict)[result] = self  # for `add_metric`
        return result

    apply = __call__


class Mean(Metric):
    """The weighted mean of all values."""

    def __init__(self, name: str | None = "mean", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)
        self.total, self.count = self.add_weight("total"), self.add_weight("count")

    def update_state(self, values: Any, sample_weight: Any = None) -> Operation:
        """Take values into account, as often as the weights say."""
        values = array_ops.cast(convert_to_tensor(values), self.dtype)
        counts = array_ops.ones_like(values)
        if sample_weight is not None:
            weights = array_ops.cast(convert_to_tensor(sample_weight), self.dtype)
            own, others = weights.shape.rank, values.shape.rank
            if own is not None and others is not None:
                if own == others + 1:
                    weights = array_ops.squeeze(weights, [-1])
                for _ in range(others - own):
                    weights = array_ops.expand_dims(weights, -1)
            values, counts = values * weights, counts * weights
        total = state_ops.assign_add(self.total, math_ops.reduce_sum(values))
        return grouping_ops.group(total, state_ops.assign_add(self.count, math_ops.reduce_sum(counts)))

    def result(self) -> Tensor:
        """The mean; 0 without values."""
        return math_ops.div_no_nan(self.total, self.count)


class Sum(Mean):
    """The weighted sum of all values."""

    def __init__(self, name: str | None = "sum", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def result(self) -> Tensor:
        """The sum."""
        return array_ops.identity(self.total)


class MeanMetricWrapper(Mean):
    """The weighted mean of a function of targets and predictions.

    Args:
        fn: The function.
        name: Name.
        dtype: Dtype.
        **kwargs: Further arguments of the function.
    """

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: DTypeLike | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name, dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:  # type: ignore[override]
        """Take a batch of targets and predictions into account."""
        return super().update_state(self._fn(y_true, y_pred, **self._fn_kwargs), sample_weight)


def _kind(name: str, function: Callable[..., Any], words: str, default_name: str | None = None) -> Any:
    """A class for the mean of a function, whose further arguments follow the name and the dtype; `k` comes first."""
    further = list(inspect.signature(function).parameters.values())[2:]
    both = [
        inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for each in ("name", "dtype")
    ]
    both[0] = both[0].replace(default=default_name or snake_case(name))
    ordered = [*further, *both] if [each.name for each in further] == ["k"] else [*both, *further]
    signature = inspect.Signature(ordered)

    class Made(MeanMetricWrapper):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            super().__init__(function, **bound.arguments)

        @classmethod
        def _parameters(cls) -> dict[str, inspect.Parameter]:
            return dict(signature.parameters)

    Made.__name__ = Made.__qualname__ = name
    Made.__module__, Made.__doc__ = __name__, f"{words} `name` and `dtype` are optional."
    return Made


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether predictions are equal to the targets."""
    y_true = convert_to_tensor(y_true)
    return array_ops.to_float(math_ops.equal(y_true, array_ops.cast(y_pred, y_true.dtype)))


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """How often predictions are on the right side of a threshold, along the last dimension."""
    y_pred = convert_to_tensor(y_pred)
    says_yes = array_ops.cast(math_ops.greater(y_pred, threshold), y_pred.dtype)
    hits = math_ops.equal(array_ops.cast(y_true, y_pred.dtype), says_yes)
    return math_ops.reduce_mean(array_ops.to_float(hits), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest prediction is the one of the target vector."""
    return array_ops.to_float(math_ops.equal(search_ops.argmax(y_true, -1), search_ops.argmax(y_pred, -1)))


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the class with the highest prediction is the target."""
    y_pred = convert_to_tensor(y_pred)
    return array_ops.to_float(math_ops.equal(_classes(y_true, y_pred), search_ops.argmax(y_pred, -1)))


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the class of the target vector is among the k highest predictions."""
    return array_ops.to_float(search_ops.in_top_k(y_pred, search_ops.argmax(y_true, -1), k))


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the target is among the k highest predictions."""
    y_pred = convert_to_tensor(y_pred)
    return array_ops.to_float(search_ops.in_top_k(y_pred, _classes(y_true, y_pred), k))


def _classes(y_true: Any, y_pred: Tensor) -> Tensor:
    classes = array_ops.to_int64(y_true)
    if classes.shape.rank is not None and classes.shape.rank == y_pred.shape.rank:
        classes = array_ops.squeeze(classes, [-1])
    return classes


Accuracy = _kind("Accuracy", accuracy, "How often predictions are equal to the targets.")
BinaryAccuracy = _kind("BinaryAccuracy", binary_accuracy, "How often they are on the right side of `threshold`.")
CategoricalAccuracy = _kind("CategoricalAccuracy", categorical_accuracy, "How often the right class is the highest.")
SparseCategoricalAccuracy = _kind(
    "SparseCategoricalAccuracy", sparse_categorical_accuracy, "The same for targets that are numbers of classes."
)
TopKCategoricalAccuracy = _kind(
    "TopKCategoricalAccuracy", top_k_categorical_accuracy, "How often the right class is among the `k` highest."
)
SparseTopKCategoricalAccuracy = _kind(
    "SparseTopKCategoricalAccuracy", sparse_top_k_categorical_accuracy, "The same for numbers of classes."
)
MeanSquaredError = _kind("MeanSquaredError", losses.mean_squared_error, "The mean of squared errors.")
MeanAbsoluteError = _kind("MeanAbsoluteError", losses.mean_absolute_error, "The mean of absolute errors.")
MeanAbsolutePercentageError = _kind(
    "MeanAbsolutePercentageError", losses.mean_absolute_percentage_error, "The mean of errors in percent."
)
MeanSquaredLogarithmicError = _kind(
    "MeanSquaredLogarithmicError", losses.mean_squared_logarithmic_error, "The mean of squared errors of logarithms."
)
Hinge = _kind("Hinge", losses.hinge, "The mean of `tf.keras.losses.hinge`.")
CategoricalHinge = _kind(
    "CategoricalHinge", losses.categorical_hinge, "The mean of `tf.keras.losses.categorical_hinge`."
)
SquaredHinge = _kind("SquaredHinge", losses.squared_hinge, "The mean of `tf.keras.losses.squared_hinge`.")
Poisson = _kind("Poisson", losses.poisson, "The mean of `tf.keras.losses.poisson`.")
BinaryCrossentropy = _kind("BinaryCrossentropy", losses.binary_crossentropy, "The mean of the binary cross entropy.")
CategoricalCrossentropy = _kind(
    "CategoricalCrossentropy", losses.categorical_crossentropy, "The mean of the cross entropy."
)
SparseCategoricalCrossentropy = _kind(
    "SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy, "The same for numbers of classes."
)

KLDivergence = _kind(
    "KLDivergence",
    losses.kullback_leibler_divergence,
    "The mean of `tf.keras.losses.kullback_leibler_divergence`.",
    "kullback_leibler_divergence",
)
LogCoshError = _kind(
    "LogCoshError", losses.logcosh, "The mean of logarithms of hyperbolic cosines of errors.", "logcosh"
)


CosineSimilarity = _kind(
    "CosineSimilarity", losses.cosine_proximity, "The mean of the cosine between vectors along `axis`."
)


class MeanRelativeError(Mean):
    """The mean of absolute errors over a normalizer; 0 where that is 0.

    Args:
        normalizer: Of the shape of the predictions.
        name: Name.
        dtype: Dtype.
    """

    def __init__(self, normalizer: Any, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)
        self.normalizer = normalizer

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:  # type: ignore[override]
        """Take a batch of targets and predictions into account."""
        targets, predictions, normalizer = (
            array_ops.cast(convert_to_tensor(each), self.dtype) for each in (y_true, y_pred, self.normalizer)
        )
        errors = math_ops.div_no_nan(math_ops.abs(targets - predictions), normalizer)
        return super().update_state(errors, sample_weight)


class MeanTensor(Metric):
    """The weighted mean of tensors, element by element. The first that it is given says what shape they have."""

    def __init__(self, name: str | None = "mean_tensor", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)
        self.total: Any = None
        self.count: Any = None

    def update_state(self, values: Any, sample_weight: Any = None) -> Operation:
        """Take a tensor into account, as often as the weights say.

        Raises:
            ValueError: It has another shape than the first.
        """
        values = array_ops.cast(convert_to_tensor(values), self.dtype)
        if self.total is None:
            shape = values.shape.as_list()
            self.total, self.count = self.add_weight("total", shape), self.add_weight("count", shape)
        elif not values.shape.is_compatible_with(self.total.shape):
            raise ValueError(
                "MeanTensor input values must always have the same shape. Expected shape (set during the first call): "
                f"{self.total.shape}. Got: {values.shape}"
            )
        counts = array_ops.ones_like(values)
        if sample_weight is not None:
            weights = losses.like_losses(array_ops.cast(convert_to_tensor(sample_weight), self.dtype), values)
            values, counts = values * weights, counts * weights
        return grouping_ops.group(state_ops.assign_add(self.total, values), state_ops.assign_add(self.count, counts))

    def result(self) -> Tensor:
        """The mean; 0 where nothing has counted.

        Raises:
            ValueError: It has seen nothing.
        """
        if self.total is None:
            raise ValueError(
                "MeanTensor does not have any result yet. Please call the MeanTensor instance or use "
                "`.update_state(value)` before retrieving the result."
            )
        return math_ops.div_no_nan(self.total, self.count)


class MeanIoU(Metric):
    """The mean over classes of how often predictions and targets are both of a class over how often one of them is.

    Classes that neither has do not count.

    Args:
        num_classes: Number of classes.
        name: Name.
        dtype: Dtype.
    """

    def __init__(self, num_classes: int, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight("total_confusion_matrix", (num_classes, num_classes))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:
        """Take a batch of classes into account."""
        flat = [array_ops.reshape(array_ops.to_int64(each), [-1]) for each in (y_true, y_pred)]
        weights = None if sample_weight is None else array_ops.reshape(array_ops.cast(sample_weight, self.dtype), [-1])
        found = confusion_matrix(flat[0], flat[1], self.num_classes, dtype=self.dtype, weights=weights)
        return grouping_ops.group(state_ops.assign_add(self.total_cm, found))

    def result(self) -> Tensor:
        """The mean."""
        matrix = convert_to_tensor(self.total_cm)
        both = matrix_diag_part(matrix)
        either = math_ops.reduce_sum(matrix, 0) + math_ops.reduce_sum(matrix, 1) - both
        count = math_ops.reduce_sum(array_ops.cast(math_ops.not_equal(either, 0.0), self.dtype))
        return math_ops.div_no_nan(math_ops.reduce_sum(math_ops.div_no_nan(both, either)), count)


class RootMeanSquaredError(Mean):
    """The square root of the mean of squared errors."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:  # type: ignore[override]
        """Take a batch of targets and predictions into account."""
        y_pred = array_ops.cast(convert_to_tensor(y_pred), self.dtype)
        errors = math_ops.squared_difference(y_pred, array_ops.cast(convert_to_tensor(y_true), self.dtype))
        return super().update_state(errors, sample_weight)

    def result(self) -> Tensor:
        """The square root."""
        return math_ops.sqrt(super().result())


# -- of decisions ------------------------------------------------------------------------------------------


_ANY: Final = -1e10
"""The threshold with which all predictions are positive."""


def _check_thresholds(thresholds: Iterable[Any]) -> None:
    invalid = [each for each in thresholds if each is None or not 0 <= each <= 1]
    if invalid:
        raise ValueError(f"Threshold values must be in [0, 1]. Invalid values: {invalid}")


class _Decisions(Metric):
    """What counts how often predictions beyond thresholds are right.

    Args:
        thresholds: Predictions greater than this are positive: a number, or several; 0.5 when None.
        name: Name.
        dtype: Dtype.
    """

    _counted: ClassVar[Sequence[str]] = ()

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, dtype)
        given: Any = 0.5 if thresholds is None else thresholds
        self._is_one = not isinstance(given, (list, tuple, np.ndarray))
        _check_thresholds([] if given is _ANY else [given] if self._is_one else given)
        self.thresholds = self._limits([float(given)] if self._is_one else list(map(float, given)))
        self._counts = {name: self.add_weight(name, (len(self.thresholds),)) for name in self._counted}

    def _limits(self, thresholds: list[float]) -> list[float]:
        """The thresholds that are tried, of those given."""
        return thresholds

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:
        """Take a batch of targets and predictions into account."""
        predictions = array_ops.cast(convert_to_tensor(y_pred), self.dtype)
        targets = array_ops.cast(convert_to_tensor(y_true), self.dtype)
        weights = array_ops.ones_like(predictions)
        if sample_weight is not None:
            given = array_ops.cast(convert_to_tensor(sample_weight), self.dtype)
            for _ in range((predictions.shape.rank or 0) - (given.shape.rank or 0)):
                given = array_ops.expand_dims(given, -1)
            weights = weights * given
        flat = [array_ops.reshape(each, [1, -1]) for each in (predictions, targets, weights)]
        limits = np.array(self.thresholds, self.dtype.as_numpy_dtype)[:, None]
        says_yes = array_ops.cast(math_ops.greater(flat[0], limits), self.dtype)
        is_yes = array_ops.cast(math_ops.not_equal(flat[1], 0.0), self.dtype)
        shares = {
            "true_positives": says_yes * is_yes,
            "false_positives": says_yes * (1.0 - is_yes),
            "false_negatives": (1.0 - says_yes) * is_yes,
            "true_negatives": (1.0 - says_yes) * (1.0 - is_yes),
        }
        updates = [
            state_ops.assign_add(variable, math_ops.reduce_sum(shares[name] * flat[2], 1))
            for name, variable in self._counts.items()
        ]
        return grouping_ops.group(*updates)

    def result(self) -> Tensor:
        """One number, or one for each threshold."""
        value = self._value(*self._counts.values())
        return value[0] if self._is_one else value

    def _value(self, *counts: Any) -> Tensor:
        return array_ops.identity(counts[0])


class TruePositives(_Decisions):
    """How often predictions are rightly positive. Arguments: ``thresholds``, ``name``, ``dtype``."""

    _counted = ("true_positives",)


class FalsePositives(_Decisions):
    """How often predictions are wrongly positive. Arguments: ``thresholds``, ``name``, ``dtype``."""

    _counted = ("false_positives",)


class TrueNegatives(_Decisions):
    """How often predictions are rightly negative. Arguments: ``thresholds``, ``name``, ``dtype``."""

    _counted = ("true_negatives",)


class FalseNegatives(_Decisions):
    """How often predictions are wrongly negative. Arguments: ``thresholds``, ``name``, ``dtype``."""

    _counted = ("false_negatives",)


class Precision(_Decisions):
    """The share of positive predictions that are right.

    Args:
        thresholds: Predictions greater than this are positive: a number, or several; 0.5 when None.
        top_k: Only the highest predictions of each example may be positive, and without thresholds all of them are.
        class_id: The only class that counts.
        name: Name.
        dtype: Dtype.
    """

    _counted = ("true_positives", "false_positives")

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(_ANY if thresholds is None and top_k is not None else thresholds, name, dtype)
        self.top_k, self.class_id = top_k, class_id

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:
        """Take a batch of targets and predictions into account."""
        y_true, y_pred = convert_to_tensor(y_true), convert_to_tensor(y_pred)
        if self.top_k is not None:
            highest = search_ops.top_k(y_pred, self.top_k)[1]
            chosen = math_ops.reduce_sum(array_ops.one_hot(highest, y_pred.shape.as_list()[-1]), -2)
            y_pred = y_pred * chosen - 1e10 * (1.0 - chosen)
        if self.class_id is not None:
            y_true, y_pred = y_true[..., self.class_id], y_pred[..., self.class_id]
        return super().update_state(y_true, y_pred, sample_weight)

    def _value(self, *counts: Any) -> Tensor:
        return math_ops.div_no_nan(counts[0], counts[0] + counts[1])


class Recall(Precision):
    """The share of positive targets that are found. Arguments as for `Precision`."""

    _counted = ("true_positives", "false_negatives")


class _AtRate(_Decisions):
    """A share at that of many thresholds at which another share is nearest to a value."""

    _counted = ("true_positives", "true_negatives", "false_positives", "false_negatives")

    def __init__(self, value: float, what: str, num_thresholds: int, name: str | None, dtype: DTypeLike | None) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"`{what}` must be in the range [0, 1].")
        if num_thresholds <= 0:
            raise ValueError("`num_thresholds` must be > 0.")
        inner = [(number + 1) / (num_thresholds - 1) for number in range(num_thresholds - 2)]
        super().__init__([0.5] if num_thresholds == 1 else [0.0, *inner, 1.0], name, dtype)
        self.num_thresholds = num_thresholds
        self._wanted = value

    def _nearest(self, rates: Tensor, shares: Tensor) -> Tensor:
        return shares[array_ops.cast(search_ops.argmin(math_ops.abs(rates - self._wanted), 0), "int32")]

    def _rates(self) -> tuple[Tensor, Tensor]:
        """How many of the positive targets are found, and how many of the negative ones are rejected."""
        hits, rejected, false, missed = self._counts.values()
        return math_ops.div_no_nan(hits, hits + missed), math_ops.div_no_nan(rejected, rejected + false)


class SensitivityAtSpecificity(_AtRate):
    """The share of positive targets that are found, where a given share of the negative ones is rejected.

    Args:
        specificity: That share.
        num_thresholds: How many thresholds are tried.
        name: Name.
        dtype: Dtype.

    Raises:
        ValueError: It is not between 0 and 1, or there are no thresholds.
    """

    def __init__(
        self, specificity: float, num_thresholds: int = 200, name: str | None = None, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(specificity, "specificity", num_thresholds, name, dtype)
        self.specificity = specificity

    def result(self) -> Tensor:
        """The share."""
        sensitivities, specificities = self._rates()
        return self._nearest(specificities, sensitivities)


class SpecificityAtSensitivity(_AtRate):
    """The share of negative targets that are rejected, where a given share of the positive ones is found.

    Args:
        sensitivity: That share.
        num_thresholds: How many thresholds are tried.
        name: Name.
        dtype: Dtype.

    Raises:
        ValueError: It is not between 0 and 1, or there are no thresholds.
    """

    def __init__(
        self, sensitivity: float, num_thresholds: int = 200, name: str | None = None, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(sensitivity, "sensitivity", num_thresholds, name, dtype)
        self.sensitivity = sensitivity

    def result(self) -> Tensor:
        """The share."""
        sensitivities, specificities = self._rates()
        return self._nearest(sensitivities, specificities)


class AUC(_Decisions):
    """The area under a curve of decisions at many thresholds.

    Args:
        num_thresholds: How many.
        curve: ``ROC``, of true over false positives, or ``PR``, of precision over recall.
        summation_method: ``interpolation``: trapezoids, and for ``PR`` counts on straight lines; ``minoring`` or
            ``majoring``: rectangles under or above the curve.
        name: Name.
        dtype: Dtype.
        thresholds: Numbers between 0 and 1 to try, besides one below and one above all predictions; evenly spaced
            ones, `num_thresholds` in all, when None.

    Raises:
        ValueError: There is no such curve or method, `num_thresholds` is less than 2, or a threshold is below 0 or
            above 1.
    """

    _counted = ("true_positives", "true_negatives", "false_positives", "false_negatives")
    _HEIGHTS: ClassVar[Mapping[str, Callable[[Tensor, Tensor], Tensor]]] = {
        "interpolation": lambda one, other: (one + other) / 2.0,
        "minoring": math_ops.minimum,
        "majoring": math_ops.maximum,
    }

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        for kind, value, allowed in (
            ("curve", curve, ("ROC", "PR")),
            ("summation method", summation_method, tuple(self._HEIGHTS)),
        ):
            if value not in allowed:
                raise ValueError(f'Invalid AUC {kind} value "{value}". Valid options are: {", ".join(allowed)}')
        if thresholds is not None:
            inner, num_thresholds = sorted(thresholds), len(thresholds) + 2
        elif num_thresholds <= 1:
            raise ValueError("`num_thresholds` must be > 1.")
        else:
            inner = [(number + 1) / (num_thresholds - 1) for number in range(num_thresholds - 2)]
        super().__init__(inner, name, dtype)
        self.num_thresholds, self.curve, self.summation_method = num_thresholds, curve, summation_method

    def _limits(self, thresholds: list[float]) -> list[float]:
        return [-1e-7, *thresholds, 1 + 1e-7]

    def result(self) -> Tensor:
        """The area."""
        hits, rejected, false, missed = self._counts.values()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self.interpolate_pr_auc()
        found = math_ops.div_no_nan(hits, hits + missed)
        if self.curve == "PR":
            x, y = found, math_ops.div_no_nan(hits, hits + false)
        else:
            x, y = math_ops.div_no_nan(false, false + rejected), found
        return math_ops.reduce_sum((x[:-1] - x[1:]) * self._HEIGHTS[self.summation_method](y[:-1], y[1:]))

    def interpolate_pr_auc(self) -> Tensor:
        """The area under precision over recall, a scalar, with counts between two thresholds on a straight line.

        As in Davis and Goadrich, "The relationship between precision-recall and ROC curves", 2006, section 4.
        """
        hits, _, false, missed = self._counts.values()
        said = hits + false
        step, wide = hits[:-1] - hits[1:], said[:-1] - said[1:]
        slope = math_ops.div_no_nan(step, math_ops.maximum(wide, 0.0))
        start = hits[1:] - slope * said[1:]
        both = math_ops.logical_and(said[:-1] > 0.0, said[1:] > 0.0)
        ratio = math_ops.div_no_nan(said[:-1], math_ops.maximum(said[1:], 0.0))
        ratio = array_ops.where(both, ratio, array_ops.ones_like(ratio))
        area = slope * (step + start * math_ops.log(ratio))
        return math_ops.reduce_sum(math_ops.div_no_nan(area, math_ops.maximum(hits[1:] + missed[1:], 0.0)))
