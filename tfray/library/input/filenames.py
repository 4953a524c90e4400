"""File names as a variable, made from patterns, for `tf.train.string_input_producer`."""

from __future__ import annotations

from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variables import Variable
from tfray.ops.system.io_ops import matching_files


def match_filenames_once(pattern: TensorLike, name: str | None = None) -> Variable:
    """The files that match patterns, listed when `tf.local_variables_initializer` runs.

    Args:
        pattern: A string scalar or vector, as for `tf.matching_files`.
        name: Name scope of the operations.

    Returns:
        A local variable that holds a string vector.
    """
    with get_default_graph().name_scope(name or "matching_filenames"):
        return Variable(
            initial_value=matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
            name="matching_filenames",
        )
