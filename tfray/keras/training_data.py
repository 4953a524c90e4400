"""What models are given to train with: arrays that fit inputs and outputs, weights of examples, and batches of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Tensor
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue, is_tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.keras import losses as keras_losses
from tfray.keras.settings import floatx

Batch = tuple[list[np.ndarray], list[np.ndarray], Any]
"""Inputs, targets and weights."""


def arrays_of(values: Any, names: Sequence[str]) -> list[np.ndarray]:
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
    arrays = [np.asarray(item.toarray() if hasattr(item, "toarray") else item) for item in items]  # SciPy's are sparse
    floats = [array.dtype in (np.float64, np.float32, np.float16) for array in arrays]
    return [array.astype(floatx()) if is_float else array for array, is_float in zip(arrays, floats, strict=True)]


def feeds_of(inputs: Sequence[Any], arrays: Sequence[np.ndarray]) -> dict[Any, Any]:
    """What feeds arrays to inputs: sparse ones take the numbers that are not 0."""
    return {
        tensor: SparseTensorValue(np.argwhere(array), array[array.nonzero()], array.shape)
        if isinstance(tensor, SparseTensor)
        else array
        for tensor, array in zip(inputs, arrays, strict=True)
    }


def for_outputs(given: Any, names: Sequence[str], what: str, default: Any = None) -> list[Any]:
    """What is given for each output: one for all, a list, or a dictionary by the names of outputs.

    Args:
        given: What is given.
        names: The names of the outputs.
        what: The argument that it is of, for messages.
        default: What counts for an output that a dictionary does not have.

    Raises:
        ValueError: A dictionary has other names, or a list another length.
    """
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                f"Unknown entries in {what} dictionary: {unknown}. Only expected following keys: {list(names)}"
            )
        return [given.get(name, default) for name in names]
    if not isinstance(given, (list, tuple)):
        return [given] * len(names)
    if len(given) != len(names):
        outputs = "outputs" if what == "loss" else "output"
        raise ValueError(
            f"When passing a list as {what}, it should have one entry per model {outputs}. The model has {len(names)} "
            f"outputs, but you passed {what}={given}"
        )
    return list(given)


def metrics_of(metrics: Any, names: Sequence[str], place: int) -> list[Any]:
    """The metrics of one output."""
    nested = any(isinstance(each, (list, tuple)) for each in metrics)
    if isinstance(metrics, Mapping) or nested:
        found = for_outputs(metrics, names, "metrics", ())[place]
        return list(found) if isinstance(found, (list, tuple)) else [found]
    return list(metrics)


def refuse_data(values: Any, what: str) -> None:
    """Raise `ValueError` for data where nothing is fed, such as targets of a model whose targets are tensors."""
    if hasattr(values, "__len__") and len(values):
        raise ValueError(f"Error when checking model {what}: expected no data, but got: {values}")


def check_steps(inputs: Sequence[Any], steps: float | None, argument: str) -> None:
    """Raise `ValueError` where nothing is fed, and no number of steps is given."""
    if not inputs and steps is None:
        raise ValueError(f"When using data tensors as input to a model, you should specify the `{argument}` argument.")


def target_tensors_of(given: Any, names: Sequence[str]) -> list[Any]:
    """The tensor that is the target of each output; None for targets that are fed.

    Args:
        given: ``target_tensors`` of `compile`.
        names: The names of the outputs.

    Raises:
        ValueError: A list has another length than there are outputs, or a dictionary has other names.
        TypeError: It is neither of these, nor a tensor.
    """
    if given is not None and not isinstance(given, (list, tuple, Mapping)) and not is_tensor(given):
        raise TypeError(
            f"Expected `target_tensors` to be a list or tuple or dict or a single tensor, but got: {given!r}"
        )
    is_empty = isinstance(given, (list, tuple)) and not given
    return for_outputs(None if is_empty else given, names, "target_tensors")


def check_loss_weights(given: Any) -> None:
    """Raise `TypeError` for what cannot be ``loss_weights``."""
    if given is not None and not isinstance(given, (list, tuple, Mapping)):
        raise TypeError(f"Could not interpret loss_weights argument: {given!r} - expected a list or a dictionary.")


def check_count(arrays: Sequence[Any], count: int, what: str) -> None:
    if len(arrays) != count:
        raise InvalidArgumentError(
            f"Error when checking model {what}: the list of Numpy arrays that you are passing to your model is not the "
            f"size the model expected. Expected to see {count} array(s), but instead got {len(arrays)}"
        )


def shaped(array: np.ndarray, shape: TensorShape | None, what: str, name: str) -> np.ndarray:
    """An array that fits a shape. A vector becomes a column, unless vectors are wanted.

    Raises:
        InvalidArgumentError: It does not fit.
    """
    if array.ndim == 1 and (shape is None or shape.rank != 1):
        array = array[:, None]
    if shape is None or shape.rank is None:
        return array
    sizes = shape.as_list()
    if array.ndim != len(sizes):
        raise InvalidArgumentError(
            f"Error when checking {what}: expected {name} to have {len(sizes)} dimensions, but got array with shape "
            f"{array.shape}"
        )
    if any(size not in (None, own) for size, own in zip(sizes[1:], array.shape[1:], strict=True)):
        raise InvalidArgumentError(
            f"Error when checking {what}: expected {name} to have shape {tuple(sizes[1:])} but got array with shape "
            f"{array.shape[1:]}"
        )
    return array


def _built_in(loss: Any) -> str:
    """The name of a loss of ``tf.keras.losses``; none for those of programs."""
    function = getattr(loss, "function", loss)
    is_own = getattr(function, "__module__", "") == keras_losses.__name__
    return str(getattr(function, "__name__", "")) if is_own else ""


_LIKE_OUTPUTS: Final = ("binary_crossentropy", "categorical_crossentropy", "mean_squared_error")
"""Losses whose targets have the shape of the output. Those of others are broadcast."""


def check_fits(target: np.ndarray, loss: Any, output: Tensor) -> None:
    """Raise `ValueError` for targets that a loss cannot take.

    Args:
        target: The targets.
        loss: The loss.
        output: The output of the model.
    """
    name = _built_in(loss)
    if name == "categorical_crossentropy" and target.shape[-1] == 1:
        raise ValueError(
            f"You are passing a target array of shape {target.shape} while using as loss `categorical_crossentropy`. "
            "`categorical_crossentropy` expects targets to be binary matrices (1s and 0s) of shape (samples, classes). "
            "If your targets are integer classes, use the loss `sparse_categorical_crossentropy`"
        )
    if name not in _LIKE_OUTPUTS or output.shape.rank is None:
        return
    sizes = output.shape.as_list()[1:]
    if any(size not in (None, own) for size, own in zip(sizes, target.shape[1:], strict=False)):
        raise ValueError(
            f"A target array with shape {target.shape} was passed for an output of shape {(None, *sizes)} while "
            f"using as loss `{name}`. This loss expects targets to have the same shape as the output."
        )


def expected_shape(loss: Any, output: Tensor) -> list[int | None]:
    """The shape of the targets that a loss takes for an output, the batch in front."""
    shape: list[int | None] = output.shape.as_list()
    return [None] * len(shape) if _built_in(loss) == "sparse_categorical_crossentropy" else shape


def weights_for(given: Any, names: Sequence[str], what: str) -> list[Any]:
    """The weights of examples, or of classes, for each output that is trained."""
    if given is None:
        return [None] * len(names)
    if isinstance(given, (list, tuple)) and (
        len(names) > 1 or (len(given) == 1 and (given[0] is None or np.ndim(given[0])))
    ):
        if len(given) != len(names):
            raise ValueError(
                f"Provided `{what}` was a list of {len(given)} elements, but the model has {len(names)} outputs. You "
                "should provide one array per model output."
            )
        return list(given)
    if isinstance(given, Mapping) and (len(names) > 1 or any(name in given for name in names)):
        return [given.get(name) for name in names]
    if len(names) > 1:
        raise TypeError(
            f"The model has multiple outputs, so `{what}` should be either a list or a dict. Provided `{what}` type "
            f"not understood: {given}"
        )
    return [given] * len(names)


def weights_of(mode: str | None, target: np.ndarray, given: Any, by_class: Any) -> np.ndarray | None:
    """What the examples of a batch count, or their steps.

    Raises:
        ValueError: The weights have another form than they are to have, or a class has none.
    """
    weights = None if given is None else np.asarray(given, np.float32)
    if weights is not None:
        if mode == "temporal" and (target.ndim < 3 or weights.ndim != 2):
            raise ValueError(
                f"Found a sample_weight array with shape {weights.shape} for an input with shape {target.shape}. "
                "Timestep-wise sample weighting is restricted to 2D weights, and to outputs that are at least 3D."
            )
        if mode is None and weights.ndim != 1 and not (weights.ndim == 2 and weights.shape[1] == 1):
            raise ValueError(
                f"Found a sample_weight array with shape {weights.shape}. In order to use timestep-wise sample "
                'weights, you should specify sample_weight_mode="temporal" in compile(); found "None" instead.'
            )
        weights = weights.reshape(len(weights)) if mode is None else weights
    if by_class is None:
        return weights
    if target.ndim > 2:
        raise ValueError("`class_weight` not supported for 3+ dimensional targets.")
    classes = target.argmax(-1) if target.ndim > 1 and target.shape[-1] > 1 else target.reshape(len(target))
    missing = {int(each) for each in classes} - set(by_class)
    if missing:
        raise ValueError(
            f"`class_weight` must contain all classes in the data. The classes {missing} exist in the data but not in "
            "`class_weight`."
        )
    own = np.array([by_class[int(each)] for each in classes], np.float32)
    return own if weights is None else weights * own


def cut(arrays: Sequence[Any], rows: Any) -> list[Any]:
    """Rows of arrays; None stays None."""
    return [None if array is None else array[rows] for array in arrays]


def sliced(inputs: Any, targets: Any, weights: Any, size: int, shuffle: bool, steps: int | None) -> Iterator[Batch]:
    """Batches of arrays. With a number of steps, each step takes all of them."""
    if steps is not None or not (inputs or targets):
        yield from itertools.repeat((inputs, targets, weights), steps or 0)
        return
    count = len([*inputs, *targets][0])
    order = np.random.permutation(count) if shuffle else np.arange(count)
    starts = range(0, count, size)
    for start in starts:
        rows = order[start : start + size]
        yield cut(inputs, rows), cut(targets, rows), cut(weights, rows)


def one_or_list(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def means(numbers: np.ndarray) -> list[float]:
    """The loss, and the metrics: each is a sum over how much it is of."""
    metrics = [total / count if count else 0.0 for total, count in numbers[1:].reshape(-1, 2)]
    return [float(numbers[0]), *map(float, metrics)]


def said_first(params: Mapping[str, Any], counts: Sequence[int | None], is_dataset: bool) -> str:
    """How much a run trains on, and validates on: steps of a dataset, else samples, or steps under their name."""
    unit = "steps" if is_dataset else "samples"
    own = params["samples"] if params["samples"] is not None else params["steps"]
    other = next((count for count in (counts[::-1] if is_dataset else counts) if count is not None), None)
    also = "" if other is None else f", validate on {other} {unit}"
    return f"Train on {own} {unit}{also}"


def is_validated(epoch: int, every: int | Sequence[int]) -> bool:
    """Whether a model is evaluated after an epoch.

    Args:
        epoch: Its number, from 0.
        every: How many epochs lie between two evaluations, at least 1; or numbers of epochs, from 1.

    Raises:
        ValueError: `every` is a number below 1.
    """
    if isinstance(every, int):
        if every < 1:
            raise ValueError("`validation_freq` can not be less than 1.")
        return (epoch + 1) % every == 0
    return epoch + 1 in every
