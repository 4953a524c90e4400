"""``tf.keras.utils.multi_gpu_model``: one model on several GPUs of a process, each with its part of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfray.framework.graph import Tensor, get_default_graph
from tfray.keras.files.saving import clone_model
from tfray.keras.layers import Lambda, concatenate
from tfray.keras.models import Model
from tfray.ops.arrays import array_ops
from tfray.runtime.device import local_device_names


def multi_gpu_model(
    model: Any, gpus: int | Sequence[int], cpu_merge: bool = True, cpu_relocation: bool = False
) -> Model:
    """A model that computes each batch in parts, one on each of several GPUs, with the weights of `model`.

    Args:
        model: The model, with inputs. Made under ``tf.device("/cpu:0")``, it has its weights in the main memory.
        gpus: How many GPUs, or a list of their numbers.
        cpu_merge: Join the parts on the CPU.
        cpu_relocation: Make the model anew, with weights in the main memory.

    Returns:
        The model to train; save `model` itself.

    Raises:
        ValueError: There are fewer than two, or this machine does not have them.
    """
    numbers = list(range(gpus)) if isinstance(gpus, int) else list(gpus)
    if len(numbers) <= 1:
        wanted = "gpus" if isinstance(gpus, int) else "len(gpus)"
        raise ValueError(
            f"For multi-gpu usage to be effective, call `multi_gpu_model` with `{wanted} >= 2`. Received: `gpus={gpus}`"
        )
    needed = ["/cpu:0", *(f"/gpu:{number}" for number in numbers)]
    there = [f"/{name.rpartition('/device:')[2].lower()}" for name in local_device_names()]
    if not set(needed) <= set(there):
        raise ValueError(
            f"To call `multi_gpu_model` with `gpus={gpus}`, we expect the following devices to be available: {needed}. "
            f"However this machine only has: {there}. Try reducing `gpus`."
        )
    graph = get_default_graph()
    if cpu_relocation:
        with graph.device("/cpu:0"):
            model = clone_model(model)
    parts: list[list[Any]] = []
    for place, number in enumerate(numbers):
        with graph.device(f"/gpu:{number}"), graph.name_scope(f"replica_{number}"):
            own = [
                Lambda(_part, tuple(each.shape.as_list()[1:]), arguments={"place": place, "count": len(numbers)})(each)
                for each in model.inputs
            ]
            made = model(own if len(own) > 1 else own[0])
            parts.append(list(made) if isinstance(made, (list, tuple)) else [made])
    with graph.device("/cpu:0" if cpu_merge else f"/gpu:{numbers[0]}"):
        names = _unique(model.output_names)
        joined = [concatenate([part[place] for part in parts], axis=0, name=name) for place, name in enumerate(names)]
    return Model(model.inputs, joined)


def _part(values: Tensor, place: int, count: int) -> Tensor:
    """Part `place` of `count` of a batch; the last one takes what is left over."""
    size = array_ops.shape(values)[0]
    step = size // count
    return values[place * step : size if place == count - 1 else (place + 1) * step]


def _unique(names: Sequence[str]) -> list[str]:
    """Names that occur several times, with numbers."""
    return [
        name if names.count(name) == 1 else f"{name}_{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
