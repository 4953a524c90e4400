"""Warm start: variables that begin with the values of another model's checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfray.formats import files
from tfray.formats.files import PathLike, as_path, given_path
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.tensor_shape import TensorShape
from tfray.library.platform import logging
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.state.state_ops import assign, colocated_with
from tfray.ops.system.checkpoint_ops import restore_tensor
from tfray.training.checkpoints.checkpoint_utils import checkpoint_path, init_from_checkpoint

_SAVED_MODEL_VALUES = "variables/variables"


class VocabInfo(NamedTuple):
    """The vocabulary of a variable, and that of the checkpoint from which it begins.

    Attributes:
        new_vocab: File of the variable's vocabulary, a word in each line.
        new_vocab_size: How many of its lines count.
        num_oov_buckets: Rows of the variable after those of the vocabulary.
        old_vocab: File of the checkpoint's vocabulary.
        old_vocab_size: How many of its lines count; -1 for all.
        backup_initializer: Initializer of rows whose words the old vocabulary lacks; the variable's own when None.
        axis: The dimension of the variable that the vocabulary numbers: 0 for rows, or 1 for columns.
    """

    new_vocab: PathLike
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: PathLike
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class WarmStartSettings(NamedTuple):
    """From what variables begin, and which.

    Attributes:
        ckpt_to_initialize_from: A checkpoint, a folder of checkpoints (the newest is taken), or a saved model.
        vars_to_warm_start: A regular expression for names of trainable variables; ``".*"`` for all of them; a list of
            regular expressions for names of any variables, or of variables; None for none but those with vocabularies.
        var_name_to_vocab_info: The vocabularies of variables by name.
        var_name_to_prev_var_name: Names in the checkpoint of variables by name, where they differ.
    """

    ckpt_to_initialize_from: PathLike
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None


def settings_of(warm_start_from: Any) -> WarmStartSettings | None:
    """The settings that an estimator's argument `warm_start_from` stands for.

    Raises:
        ValueError: It is neither a path nor `WarmStartSettings`.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    return WarmStartSettings(given_path(warm_start_from, "warm_start_from"))


def warm_start(settings: WarmStartSettings) -> None:
    """Let the initializers of the current graph's variables take values from a checkpoint.

    Raises:
        ValueError: A name is that of no variable, or a setting concerns a variable that is not warm-started.
        InvalidArgumentError: The checkpoint lacks a variable, or has it in another shape.
        NotFoundError: There is no checkpoint.
    """
    path = _checkpoint(settings.ckpt_to_initialize_from)
    previous, vocabularies = dict(settings.var_name_to_prev_var_name or {}), dict(settings.var_name_to_vocab_info or {})
    chosen = _grouped(_chosen(settings.vars_to_warm_start))
    everything = _grouped(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))
    for name in vocabularies:  # a variable with a vocabulary is warm-started in any case
        if name not in chosen and name in everything:
            chosen[name] = everything[name]
    unused = [name for name in (*previous, *vocabularies) if name not in chosen]
    if unused:
        raise ValueError(f"warm start: {', '.join(unused)}: no such variable is warm-started")
    saved = open_checkpoint(path).tensors
    for name, parts in sorted(chosen.items()):
        old_name = previous.get(name, name)
        if name in vocabularies:
            for part in parts:
                _begin_by_vocabulary(part, path, old_name, saved[old_name].shape, vocabularies[name])
        else:
            init_from_checkpoint(path, {old_name: parts})
    logging.info("%d variables begin with values of %s", len(chosen), path)


def _checkpoint(given: PathLike) -> str:
    path = as_path(given)
    values = f"{path.rstrip('/')}/{_SAVED_MODEL_VALUES}"
    if files.is_folder(path) and files.is_folder(f"{path.rstrip('/')}/variables"):
        return values
    return checkpoint_path(path)


def _chosen(which: Any) -> list[Variable]:
    graph = get_default_graph()
    if which is None:
        return []
    if isinstance(which, str):
        return [v for v in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) if re.match(which, v.op.name)]
    if not isinstance(which, Sequence) or not which:
        raise ValueError(f"warm start: vars_to_warm_start is {which!r}, expected a regular expression, or a list")
    if all(isinstance(each, str) for each in which):
        found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        return [v for v in found if any(re.match(each, v.op.name) for each in which)]
    parts: list[Variable] = []
    for each in which:
        if isinstance(each, PartitionedVariable):
            parts += list(each)
        elif isinstance(each, Variable):
            parts.append(each)
        elif isinstance(each, (list, tuple)) and all(isinstance(part, Variable) for part in each):
            parts += each
        else:
            raise ValueError(f"warm start: vars_to_warm_start holds {each!r}, expected variables or names, not both")
    return parts


def _grouped(variables: Sequence[Variable]) -> dict[str, list[Variable]]:
    """Variables by name; the parts of a partitioned one together."""
    found: dict[str, list[Variable]] = {}
    for variable in dict.fromkeys(variables):
        info = variable._save_slice_info
        found.setdefault(variable.op.name if info is None else info.full_name, []).append(variable)
    return found


# -- vocabularies ------------------------------------------------------------------------------------------


def _words(path: PathLike, size: int) -> list[bytes]:
    words = files.read_bytes(path).splitlines()
    if size > len(words):
        raise ValueError(f"warm start: vocabulary {as_path(path)} has {len(words)} words, fewer than {size}")
    return words if size < 0 else words[:size]


def _begin_by_vocabulary(
    variable: Variable, path: str, old_name: str, old_shape: Sequence[int], info: VocabInfo
) -> None:
    """Let a variable, or a part of one, take the rows (or columns) of the words that the old vocabulary has too."""
    if info.axis not in (0, 1):
        raise ValueError(f"warm start: the axis of a vocabulary is {info.axis}, expected 0 or 1")
    places = {word: place for place, word in enumerate(_words(info.old_vocab, info.old_vocab_size))}
    new = _words(info.new_vocab, info.new_vocab_size)
    sources = np.array([places.get(word, -1) for word in new] + [-1] * info.num_oov_buckets, np.int64)
    part = variable._save_slice_info
    shape = [int(size or 0) for size in variable.shape.as_list()]
    size = shape[info.axis]
    begin = 0 if part is None else part.var_offset[info.axis]
    if part is None and len(sources) != size:
        raise ValueError(
            f"warm start: {variable.op.name!r} has {size} {'columns' if info.axis else 'rows'}, and its vocabulary "
            f"{len(new)} words and {info.num_oov_buckets} others"
        )
    sources = sources[begin : begin + size]
    sources = np.where(sources < old_shape[info.axis], sources, -1)
    graph = variable.graph
    with graph.as_default(), graph.control_dependencies(None), colocated_with(variable.handle):
        old = restore_tensor(path, old_name, variable.dtype, TensorShape(list(old_shape)), None, name="old_vocabulary")
        rows = array_ops.gather(old, np.maximum(sources, 0), axis=info.axis)
        own = variable._initial_value
        if info.backup_initializer is not None:
            own = info.backup_initializer(shape, dtype=variable.dtype)
        mask = np.reshape(sources >= 0, [-1, *[1] * (len(old_shape) - 1)] if info.axis == 0 else [1, -1])
        known = np.broadcast_to(mask, shape)
        value = array_ops.where(known, rows, convert_to_tensor(own))
        variable._initial_value = value
        variable.initializer = assign(variable, value, name="Assign").op
