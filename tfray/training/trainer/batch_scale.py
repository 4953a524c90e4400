"""`batch_scale`: the size of an elastic run's steps as a tensor, for learning rates that follow it."""

from __future__ import annotations

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.variables import Variable

NAME = "batch_scale"
"""Name of the variable, and of the collection that has it alone."""


def batch_scale(graph: Graph | None = None) -> Tensor:
    """The number of examples that count in a step, divided by ``batch_size``, as a float32 scalar.

    It is 1, except in an elastic run of a `Trainer` with ``elastic_batch="scaled"``. There it is the number of replicas
    that count, divided by the least that there may be, and changes when workers come and go. Use it for the learning
    rate: ``rate * tf.train.batch_scale()`` is the linear scaling rule for SGD with or without momentum
    (Goyal et al., "Accurate, Large Minibatch SGD", arXiv:1706.02677); ``rate * tf.sqrt(tf.train.batch_scale())`` suits
    adaptive optimizers.

    Args:
        graph: The graph; the default graph when None.

    Returns:
        The tensor, the same for every call in one graph.
    """
    graph = graph or get_default_graph()
    found = scale_variable(graph)
    if found is None:
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            found = Variable(
                1.0,
                trainable=False,
                dtype=dtypes.float32,
                name=NAME,
                collections=[GraphKeys.LOCAL_VARIABLES, NAME],
            )
    return found.value()


def scale_variable(graph: Graph) -> Variable | None:
    """The variable behind `batch_scale`, if a graph has it."""
    found = graph.get_collection(NAME)
    if len(found) > 1:
        raise InvalidArgumentError(f"the collection {NAME!r} is tfray's own: it has {len(found)} entries")
    return found[0] if found else None
