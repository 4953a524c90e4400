"""`tf.train.warm_start`: lets variables begin with the values of a checkpoint, of another vocabulary if need be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.formats import files
from tfray.formats.files import PathLike, as_path
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype, float32
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.op_def import Array
from tfray.library.variables.initializers import (
    PartitionInfo,
    truncated_normal_initializer,
    zeros_initializer,
)
from tfray.library.variables.partitioned_variables import PartitionedVariable
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.join_ops import concat
from tfray.ops.state.state_ops import assign, colocated_with
from tfray.training.checkpoints.checkpoint_utils import checkpoint_path, init_from_checkpoint, load_checkpoint
from tfray.training.checkpoints.object_graph import VALUE


class VocabInfo(
    NamedTuple(
        "VocabInfo",
        [
            ("new_vocab", str),
            ("new_vocab_size", int),
            ("num_oov_buckets", int),
            ("old_vocab", str),
            ("old_vocab_size", int),
            ("backup_initializer", Any),
            ("axis", int),
        ],
    )
):
    """The vocabularies of a variable that `warm_start` gives a value, whose rows or columns stand for words.

    Attributes:
        new_vocab: File of the words of the variable, a line each.
        new_vocab_size: How many of them count; -1 for all.
        num_oov_buckets: How many further rows or columns stand for words that are in no vocabulary.
        old_vocab: File of the words of the checkpoint.
        old_vocab_size: How many of them count; -1 for all.
        backup_initializer: Initialises the rows of words that the checkpoint does not have; zeros when None.
        axis: 0 if rows stand for words, 1 if columns do.
    """

    def __new__(
        cls,
        new_vocab: str,
        new_vocab_size: int,
        num_oov_buckets: int,
        old_vocab: str,
        old_vocab_size: int = -1,
        backup_initializer: Any = None,
        axis: int = 0,
    ) -> VocabInfo:
        if axis not in (0, 1):
            raise InvalidArgumentError(f"VocabInfo: axis is {axis}, expected 0 or 1")
        values = new_vocab, new_vocab_size, num_oov_buckets, old_vocab, old_vocab_size, backup_initializer, axis
        return super().__new__(cls, *values)


def warm_start(
    ckpt_to_initialize_from: PathLike,
    vars_to_warm_start: str | Sequence[Any] | None = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Let initializers of variables take values from a checkpoint. Call it before `tf.global_variables_initializer`.

    Args:
        ckpt_to_initialize_from: A checkpoint, or a folder, of which the newest is taken.
        vars_to_warm_start: Regular expression, which the names of trainable variables begin with; a list of such
            expressions, for all global variables; a list of variables; or None for the variables with a `VocabInfo`.
        var_name_to_vocab_info: Vocabularies, by the names of variables.
        var_name_to_prev_var_name: Names in the checkpoint, by the names of variables, where they differ.

    Raises:
        ArgumentError: `vars_to_warm_start` is none of these.
        InvalidArgumentError: The checkpoint lacks a tensor, it does not fit, or a name stands for no variable.
    """
    vocabularies, renamed = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    path = checkpoint_path(ckpt_to_initialize_from)
    reader = load_checkpoint(path)
    grouped = _grouped(vars_to_warm_start)
    if vars_to_warm_start is None:
        grouped = {name: variables for name, variables in _grouped([".*"]).items() if name in vocabularies}
    unknown = (vocabularies.keys() | renamed.keys()) - grouped.keys()
    if unknown:
        raise InvalidArgumentError(f"warm_start: no variable that is to be warm-started is one of {sorted(unknown)}")
    for name, variables in grouped.items():
        previous = renamed.get(name, name)
        if not reader.has_tensor(previous) and reader.has_tensor(f"{previous}/{VALUE}"):
            previous = f"{previous}/{VALUE}"
        if name in vocabularies:
            _from_vocabulary(variables, reader.get_tensor(previous), vocabularies[name])
        else:
            init_from_checkpoint(path, {previous: variables if len(variables) > 1 else variables[0]})


def _grouped(chosen: Any) -> dict[str, list[Variable]]:
    """Variables by name, the parts of a partitioned one together."""
    graph = get_default_graph()
    if chosen is None:
        return {}
    if isinstance(chosen, str):
        found = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, chosen)
    elif isinstance(chosen, Sequence) and all(isinstance(each, str) for each in chosen):
        found = [v for each in chosen for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, each)]
    elif isinstance(chosen, Sequence) and all(isinstance(each, (Variable, PartitionedVariable)) for each in chosen):
        found = [part for each in chosen for part in (each if isinstance(each, PartitionedVariable) else [each])]
    else:
        raise ArgumentError(f"warm_start: vars_to_warm_start is {chosen!r}, expected a pattern, or a list of one kind")
    grouped: dict[str, list[Variable]] = {}
    for variable in dict.fromkeys(found):
        info = variable._save_slice_info
        grouped.setdefault(variable.op.name if info is None else info.full_name, []).append(variable)
    return grouped


def _from_vocabulary(variables: list[Variable], old: Any, info: VocabInfo) -> None:
    """Let the initializers of a variable, or of the parts of one, move rows (columns) to the places of their words."""
    new_words, old_words = _words(info.new_vocab, info.new_vocab_size), _words(info.old_vocab, info.old_vocab_size)
    axis = info.axis
    if old.shape[axis] < len(old_words):
        raise InvalidArgumentError(
            f"warm_start: {variables[0].op.name!r} has {old.shape[axis]} words in the checkpoint, and "
            f"{info.old_vocab} {len(old_words)}"
        )
    sources = _places(new_words, old_words, info.num_oov_buckets)
    initializer = info.backup_initializer or zeros_initializer()
    for variable in variables:
        part = variable._save_slice_info
        begin = 0 if part is None else part.var_offset[axis]
        size = int(variable.shape[axis])
        chosen = sources[begin : begin + size]
        source = old
        if part is not None and axis == 1:  # words stand for columns, and this part has its own rows
            source = old[part.var_offset[0] : part.var_offset[0] + int(variable.shape[0])]
        if len(chosen) != size:
            raise InvalidArgumentError(
                f"warm_start: {variable.op.name!r} has shape {variable.shape}, and there are {len(new_words)} words in "
                f"{info.new_vocab} and {info.num_oov_buckets} buckets"
            )
        graph = variable.graph
        with graph.as_default(), graph.control_dependencies(None), colocated_with(variable.handle):
            fresh = convert_to_tensor(initializer(variable.shape.as_list(), dtype=variable.dtype))
            value = _moved(convert_to_tensor(source, variable.dtype), fresh, chosen, axis)
            variable._initial_value = value
            variable.initializer = assign(variable, value, name="Assign").op


def _places(new_words: list[bytes], old_words: list[bytes], buckets: int) -> Array:
    """Where the old words are that are new words, too; -1 for others, and for each bucket."""
    place = {word: index for index, word in enumerate(old_words)}
    return np.array([place.get(word, -1) for word in new_words] + [-1] * buckets, np.int64)


def _moved(old: Tensor, fresh: Tensor, chosen: Array, axis: int = 0) -> Tensor:
    """The rows (columns) `chosen` of a table; where that is -1, those of `fresh` at the same place."""
    places = np.where(chosen < 0, int(old.shape[axis]) + np.arange(len(chosen)), chosen)
    return gather(concat([old, fresh], axis), places, axis=axis)


def load_embedding_initializer(
    ckpt_path: PathLike,
    embedding_tensor_name: str,
    new_vocab_size: int,
    embedding_dim: int,
    old_vocab_file: Any,
    new_vocab_file: Any,
    old_vocab_size: int = -1,
    num_oov_buckets: int = 0,
    initializer: Callable[..., Tensor] | None = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Tensor]:
    """An initializer that takes rows of a table from a checkpoint, to the places that their words have now.

    Args:
        ckpt_path: The checkpoint.
        embedding_tensor_name: Name of the table in it.
        new_vocab_size: How many words of the new vocabulary count.
        embedding_dim: Size of a row.
        old_vocab_file: File of the words of the checkpoint: a path, or a constant tensor.
        new_vocab_file: File of the new words, likewise.
        old_vocab_size: How many of the old words count; -1 for all.
        num_oov_buckets: Rows at the end for other words.
        initializer: Initializer of rows that are not in the checkpoint; by default of random numbers whose standard
            deviation is that of a row of length 1.
        max_rows_in_memory: Accepted for TensorFlow 1's sake.

    Returns:
        A function ``(shape, dtype, partition_info)``, for a float32 variable of the shape ``[new_vocab_size +
        num_oov_buckets, embedding_dim]``, or a part of its rows.
    """
    return _remapped(
        ckpt_path,
        embedding_tensor_name,
        initializer or truncated_normal_initializer(stddev=embedding_dim**-0.5),
        (new_vocab_size + num_oov_buckets, embedding_dim),
        (new_vocab_file, new_vocab_size, old_vocab_file, old_vocab_size, num_oov_buckets),
    )


Words = tuple[Any, int, Any, int, int]
"""File of the new words and how many count, the same of the old ones, and further places; no files: no words."""


def _remapped(
    ckpt_path: PathLike,
    tensor_name: str,
    fresh: Callable[..., Tensor],
    sizes: tuple[int, int],
    of_rows: Words,
    of_columns: Words | None = None,
    place: PartitionInfo | None = None,
) -> Callable[..., Tensor]:
    """An initializer that takes a matrix from a checkpoint, with rows, or columns too, where their words are now."""

    def initial(shape: Any, dtype: DTypeLike = float32, partition_info: PartitionInfo | None = None) -> Tensor:
        part = place or partition_info
        begin = 0 if part is None else part.var_offset[0]
        rows, columns = (int(size) for size in shape)
        if as_dtype(dtype) != float32:
            raise TypeError(f"Currently, only float32 is supported. Received dtype: {as_dtype(dtype).name}")
        if columns != sizes[1] or begin + rows > sizes[0]:
            raise ValueError(f"{tensor_name}: rows from {begin} on have shape {shape}, of {[*sizes]} in all")
        path = ckpt_path[0] if isinstance(ckpt_path, list) else ckpt_path
        old = convert_to_tensor(load_checkpoint(path).get_tensor(tensor_name))
        new = convert_to_tensor(fresh([rows, columns], dtype=float32))
        if of_columns is not None:
            # Rows without a source keep their fresh numbers: columns are moved first, with fresh ones beside them.
            beside = convert_to_tensor(fresh([int(old.shape[0]), columns], dtype=float32))
            old = _moved(old, beside, _sources(of_columns), axis=1)
        return _moved(old, new, _sources(of_rows)[begin : begin + rows])

    return initial


def _sources(words: Words) -> Array:
    new_file, new_size, old_file, old_size, buckets = words
    return _places(_words(_path(new_file), new_size), _words(_path(old_file), old_size), buckets)


def load_and_remap_matrix_initializer(
    ckpt_path: Any,
    old_tensor_name: str,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Callable[..., Tensor] | None = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Tensor]:
    """As `load_embedding_initializer`, for a matrix whose columns may stand for words, too.

    Args:
        ckpt_path: The checkpoint, or a list with it.
        old_tensor_name: Name of the matrix in it.
        new_row_vocab_size: How many words of the new vocabulary of rows count.
        new_col_vocab_size: How many of that of columns; where columns have no words, how many columns there are.
        old_row_vocab_size: How many words of the old vocabulary of rows count; -1 for all.
        old_row_vocab_file: File of the words of the rows of the checkpoint.
        new_row_vocab_file: File of the new words.
        old_col_vocab_file: The same of columns; None where they have no words.
        new_col_vocab_file: Likewise.
        num_row_oov_buckets: Rows at the end for other words.
        num_col_oov_buckets: Columns at the end for other words.
        initializer: Initializer of what is not in the checkpoint; zeros when None.
        max_rows_in_memory: Accepted for TensorFlow 1's sake.
    """
    return load_variable_slot_initializer(
        ckpt_path,
        old_tensor_name,
        None,
        new_row_vocab_size,
        new_col_vocab_size,
        old_row_vocab_size,
        old_row_vocab_file,
        new_row_vocab_file,
        old_col_vocab_file,
        new_col_vocab_file,
        num_row_oov_buckets,
        num_col_oov_buckets,
        initializer,
    )


def load_variable_slot_initializer(
    ckpt_path: Any,
    old_tensor_name: str,
    primary_partition_info: PartitionInfo | None,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Callable[..., Tensor] | None = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Tensor]:
    """`load_and_remap_matrix_initializer` for a slot of an optimizer, which belongs to a part of a variable.

    Args:
        ckpt_path: See there.
        old_tensor_name: See there.
        primary_partition_info: The part of the variable that the slot belongs to; None for a whole one.
        new_row_vocab_size: See there; so are all others.
    """
    if new_row_vocab_file is None or old_row_vocab_file is None:
        raise InvalidArgumentError(f"{old_tensor_name}: rows need a file of new words and one of old words")
    of_columns = None
    if new_col_vocab_file is not None:
        of_columns = (new_col_vocab_file, new_col_vocab_size, old_col_vocab_file, -1, num_col_oov_buckets)
    return _remapped(
        ckpt_path,
        old_tensor_name,
        initializer or zeros_initializer(),
        (new_row_vocab_size + num_row_oov_buckets, new_col_vocab_size + num_col_oov_buckets),
        (new_row_vocab_file, new_row_vocab_size, old_row_vocab_file, old_row_vocab_size, num_row_oov_buckets),
        of_columns,
        primary_partition_info,
    )


def load_linear_multiclass_bias_initializer(
    ckpt_path: Any,
    bias_tensor_name: str,
    new_class_vocab_size: int,
    old_class_vocab_file: Any,
    new_class_vocab_file: Any,
    num_class_oov_buckets: int = 0,
    initializer: Callable[..., Tensor] | None = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Tensor]:
    """`load_and_remap_matrix_initializer` for the biases of classes, a matrix with one column.

    Args:
        ckpt_path: See there.
        bias_tensor_name: Name of the biases in the checkpoint.
        new_class_vocab_size: How many of the new classes count.
        old_class_vocab_file: File of the classes of the checkpoint.
        new_class_vocab_file: File of the new classes.
        num_class_oov_buckets: Rows at the end for other classes.
        initializer: Initializer of classes that are not in the checkpoint; zeros when None.
        max_rows_in_memory: Accepted for TensorFlow 1's sake.
    """
    return load_and_remap_matrix_initializer(
        ckpt_path,
        bias_tensor_name,
        new_class_vocab_size,
        1,
        old_row_vocab_file=old_class_vocab_file,
        new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets,
        initializer=initializer,
    )


def _path(file: Any) -> str:
    found = constant_value(file) if isinstance(file, Tensor) else file
    if found is None:
        raise ArgumentError(f"load_embedding_initializer: the path {file!r} must be a constant")
    return as_path(found.item() if isinstance(found, np.ndarray) else found)


def _words(path: str, size: int) -> list[bytes]:
    words = files.read_bytes(path).splitlines()
    if size > len(words):
        raise InvalidArgumentError(f"warm_start: {path} has {len(words)} words, expected {size}")
    return words if size < 0 else words[:size]
