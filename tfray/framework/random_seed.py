"""Seeds of random operations: one for the graph, one for each operation."""

from __future__ import annotations

from typing import Final

from tfray.framework.arguments import checked
from tfray.framework.graph import get_default_graph

DEFAULT_GRAPH_SEED: Final = 87654321
"""The graph's seed when only the operation has one: TensorFlow's value."""

_MAX_SEED: Final = 2**31 - 1  # seeds are taken modulo this number, as in TensorFlow


@checked
def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph.

    A random operation takes its numbers from two seeds, the graph's and its own:

    - neither is set: its numbers differ from run to run of the program;
    - only the graph's is set: the operation's follows from its place in the order of construction;
    - the operation's is set: the numbers depend on the two alone.

    Args:
        seed: An integer, or None to take the seed back.
    """
    get_default_graph().seed = seed


@checked
def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of an operation that is about to be added to the default graph, or a pair of None.

    Args:
        op_seed: The operation's own seed, or None.
    """
    graph = get_default_graph()
    if graph.seed is None and op_seed is None:
        return None, None
    graph_seed = DEFAULT_GRAPH_SEED if graph.seed is None else graph.seed
    seeds = int(graph_seed) % _MAX_SEED, int(graph.op_count if op_seed is None else op_seed) % _MAX_SEED
    # Two zeros mark an operation without seeds.
    return (0, _MAX_SEED) if seeds == (0, 0) else seeds
