"""``tf.keras.experimental``: models in folders for serving, ready-made ones, learning rates, cells and layers."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from tfray.errors import DataLossError, NotFoundError
from tfray.formats.files import failures_of, given_path
from tfray.framework.graph import Tensor
from tfray.keras.files.saving import model_from_json
from tfray.keras.layers.recurrent_layers import LSTMCell
from tfray.keras.learning_rate_schedules import LearningRateSchedule
from tfray.keras.premade_models import LinearModel as LinearModel
from tfray.keras.premade_models import WideDeepModel as WideDeepModel
from tfray.library.layers.feature_column import SequenceFeatures as SequenceFeatures
from tfray.library.variables.kept_session import get_session
from tfray.ops.arrays import array_ops
from tfray.training.checkpoints.checkpoint_utils import load_checkpoint
from tfray.training.checkpoints.saved_model import simple_save
from tfray.training.optimizers import learning_rate_decay

__all__ = [
    "CosineDecay", "CosineDecayRestarts", "LinearCosineDecay", "LinearModel", "NoisyLinearCosineDecay",
    "PeepholeLSTMCell", "SequenceFeatures", "WideDeepModel", "export_saved_model", "load_from_saved_model",
    "terminate_keras_multiprocessing_pools",
]  # fmt: skip

_DESCRIPTION = "saved_model.json"
_WEIGHTS = "saved_model_weights.json"


def export_saved_model(
    model: Any,
    saved_model_path: str,
    custom_objects: Mapping[str, Any] | None = None,
    as_text: bool = False,
    input_signature: Any = None,
    serving_only: bool = False,
) -> None:
    """Write a model into a folder, to be served and to be loaded again.

    The signature for serving has the names of the model's inputs, and of the layers of its outputs.

    Args:
        model: The model.
        saved_model_path: The folder, which must be new.
        custom_objects: Accepted for TensorFlow 1's sake: a model knows its classes.
        as_text: Not used.
        input_signature: Not used.
        serving_only: Leave out what `load_from_saved_model` needs.

    Raises:
        ValueError: The model has no inputs yet.
        InvalidArgumentError: A part of it cannot be described, unless `serving_only`.
    """
    if not model.inputs:
        raise ValueError(f"model {model.name!r} has no inputs yet: fit it, or call its build, before it is exported")
    told = None if serving_only else model.to_json()
    inputs = dict(zip(model.input_names, model.inputs, strict=True))
    outputs = dict(zip(model.output_names, model.outputs, strict=True))
    path = given_path(saved_model_path, "saved_model_path")
    simple_save(get_session(), path, inputs, outputs)
    if told is not None:
        folder = os.path.join(path, "assets")
        with failures_of(folder):
            os.makedirs(folder, exist_ok=True)
            for name, text in ((_DESCRIPTION, told), (_WEIGHTS, json.dumps([v.op.name for v in model.variables]))):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)


def load_from_saved_model(saved_model_path: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model that `export_saved_model` has written; it has to be compiled.

    Args:
        saved_model_path: The folder.
        custom_objects: Classes and functions of the program that the model has, by name.

    Raises:
        NotFoundError: It is not there, or was written for serving only.
        DataLossError: It is damaged.
    """
    path = given_path(saved_model_path, "saved_model_path")
    folder = os.path.join(path, "assets")
    if not os.path.exists(os.path.join(folder, _DESCRIPTION)):
        raise NotFoundError(f"{path!r} holds no model of tf.keras, or one that was exported for serving only")
    with failures_of(folder):
        texts = []
        for name in (_DESCRIPTION, _WEIGHTS):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append(file.read())
    model = model_from_json(texts[0], custom_objects)
    try:
        names = json.loads(texts[1])
    except ValueError as error:
        raise DataLossError(f"{path!r}: {_WEIGHTS} is damaged: {error}") from error
    reader = load_checkpoint(os.path.join(path, "variables", "variables"))
    model._set_checked_weights([reader.get_tensor(name) for name in names], path)
    return model


# -- learning rates ------------------------------------------------------------------------------------


def _schedule(name: str, function: Callable[..., Tensor]) -> Any:
    """A class for a function of `tf.train`, with its arguments but the step."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "global_step"]
    signature = inspect.Signature([parameters[0].replace(name="initial_learning_rate"), *parameters[1:]])

    class Made(LearningRateSchedule):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()  # without these, args ends before the first argument that is not given
            self._given = bound.args

        def __call__(self, step: Any) -> Tensor:
            rate, *further = self._given
            return function(rate, step, *further)

        @classmethod
        def _parameters(cls) -> dict[str, inspect.Parameter]:
            return dict(signature.parameters)

    Made.__name__ = Made.__qualname__ = name
    Made.__module__, Made.__doc__ = __name__, f"`tf.train.{function.__name__}` as a schedule."
    return Made


CosineDecay = _schedule("CosineDecay", learning_rate_decay.cosine_decay)
CosineDecayRestarts = _schedule("CosineDecayRestarts", learning_rate_decay.cosine_decay_restarts)
LinearCosineDecay = _schedule("LinearCosineDecay", learning_rate_decay.linear_cosine_decay)
NoisyLinearCosineDecay = _schedule("NoisyLinearCosineDecay", learning_rate_decay.noisy_linear_cosine_decay)


# -- cells ---------------------------------------------------------------------------------------------


class PeepholeLSTMCell(LSTMCell):
    """`tf.keras.layers.LSTMCell` whose gates see the memory too, through weights of their own."""

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        names = "input_gate_peephole_weights", "forget_gate_peephole_weights", "output_gate_peephole_weights"
        self.peepholes = [self.add_weight(name, [self.units], initializer=self.kernel_initializer) for name in names]

    def _step(self, inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        before, memory = states
        product = self._of_inputs(inputs) + self._of_state(before)
        enter, forget, new, leave = array_ops.split(product, 4, axis=1)
        kept = self.recurrent_activation(forget + memory * self.peepholes[1]) * memory
        after = kept + self.recurrent_activation(enter + memory * self.peepholes[0]) * self.activation(new)
        output = self.recurrent_activation(leave + after * self.peepholes[2]) * self.activation(after)
        return output, [output, after]


def terminate_keras_multiprocessing_pools(grace_period: float = 0.1, use_sigkill: bool = False) -> list[str]:
    """End the processes that prepare batches, which TensorFlow forks. Here threads do, and end with what uses them.

    Args:
        grace_period: Seconds to wait; not used.
        use_sigkill: Whether to end them at once; not used.

    Returns:
        What went wrong, for people to read: an empty list.
    """
    return []
