"""``tf.contrib.input_pipeline``: the strings of a list in turn, at a place that a variable keeps."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.variables.variable_scope import get_variable, variable_scope
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.gather_ops import gather
from tfray.ops.arrays.shape_ops import identity, size
from tfray.ops.state.state_ops import assign

__all__ = ["obtain_next", "seek_next"]


def obtain_next(string_list_tensor: TensorLike, counter: Variable) -> Tensor:
    """The element after the last one; the first one follows the last of the list.

    Args:
        string_list_tensor: The strings, shape ``[n]``.
        counter: An int64 variable, the place of the last element; -1 before the first.

    Returns:
        A string scalar.
    """
    graph = get_default_graph()
    with graph.name_scope("ObtainNext"):
        strings = convert_to_tensor(string_list_tensor, dtypes.string)
        with graph.colocate_with(counter):
            place = assign(counter, (identity(counter) + 1) % size(strings, out_type=dtypes.int64))
            return gather(strings, identity(place))


def seek_next(
    string_list: Sequence[str], shuffle: bool = False, seed: int | None = None, num_epochs: int | None = None
) -> Tensor:
    """The next of a list of strings whenever it is computed.

    The place and the list are variables of the scope ``obtain_next``.

    Args:
        string_list: The strings.
        shuffle: Whether each round has an order of its own.
        seed: Seed of the orders.
        num_epochs: Number of rounds; no end when None.

    Returns:
        A string scalar.

    Raises:
        OutOfRangeError: While running: that many rounds are over.
    """
    chooser = random.Random(seed) if seed else random.Random()
    rounds = [list(string_list) for _ in range(num_epochs or 1)]
    for each in rounds if shuffle else ():
        chooser.shuffle(each)
    elements = [string for each in rounds for string in each]
    graph = get_default_graph()
    with variable_scope("obtain_next"):
        counter = _counter("obtain_next_counter", -1)
        with graph.colocate_with(counter):
            initial = convert_to_tensor(elements, dtypes.string)
            strings = get_variable("obtain_next_expanded_list", initializer=initial, trainable=False)
        if not num_epochs:
            return obtain_next(strings, counter)
        counted = _counter("obtain_next_filename_counter", 0).count_up_to(len(elements))
        with graph.control_dependencies([counted]):
            return obtain_next(strings, counter)


def _counter(name: str, start: int) -> Variable:
    return get_variable(name, initializer=convert_to_tensor(start, dtypes.int64), trainable=False)
