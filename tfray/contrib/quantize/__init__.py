"""``tf.contrib.quantize``: graphs rewritten so that they compute with the errors that quantization will make.

Weights and activations of convolutions and dense layers are rounded to a few bits, in ranges that are variables
(``weights_quant/min`` and so on); batch normalization is folded into weights first. Gradients pass the rounding as if
it were not there. Fused batch normalization with channels last is folded, and no other.
"""

from __future__ import annotations

from tfray.contrib.quantize.folding import fold_batch_norms
from tfray.contrib.quantize.insertion import Quantizer
from tfray.framework.graph import Graph, get_default_graph
from tfray.framework.graph_keys import GraphKeys

__all__ = [
    "create_eval_graph",
    "create_training_graph",
    "experimental_create_eval_graph",
    "experimental_create_training_graph",
]


def create_training_graph(input_graph: Graph | None = None, quant_delay: int = 0) -> None:
    """Rewrite a graph for training, before its gradients are taken.

    Args:
        input_graph: The graph, which is changed; the default graph when None.
        quant_delay: Round after so many steps. A network that is trained from the beginning learns better so.

    Raises:
        ValueError: The graph has operations of an optimizer already.
    """
    _rewrite(input_graph, Quantizer(True, delay=quant_delay), None)


def create_eval_graph(input_graph: Graph | None = None) -> None:
    """Rewrite a graph for inference: it restores what one for training has learned.

    Args:
        input_graph: The graph, which is changed; the default graph when None.

    Raises:
        ValueError: The graph has operations of an optimizer.
    """
    _rewrite(input_graph, Quantizer(False), None)


def experimental_create_training_graph(
    input_graph: Graph | None = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int = 0,
    freeze_bn_delay: int | None = None,
    scope: str | None = None,
) -> None:
    """`create_training_graph` with more options.

    Args:
        input_graph: The graph, which is changed; the default graph when None.
        weight_bits: So many bits a weight has, 2 to 16.
        activation_bits: So many bits an activation has, likewise.
        symmetric: Whether ranges are the same on both sides of 0.
        quant_delay: Round after so many steps.
        freeze_bn_delay: After so many steps the averages of batch normalization stay as they are, and are used.
        scope: Leave what is elsewhere as it is.

    Raises:
        ValueError: The graph has operations of an optimizer already.
    """
    quantizer = Quantizer(True, weight_bits, activation_bits, symmetric, quant_delay, scope)
    _rewrite(input_graph, quantizer, freeze_bn_delay)


def experimental_create_eval_graph(
    input_graph: Graph | None = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int | None = None,
    scope: str | None = None,
) -> None:
    """`create_eval_graph` with more options.

    Args:
        input_graph: The graph, which is changed; the default graph when None.
        weight_bits: As for `experimental_create_training_graph`.
        activation_bits: Likewise.
        symmetric: Likewise.
        quant_delay: Likewise.
        scope: Likewise.

    Raises:
        ValueError: The graph has operations of an optimizer.
    """
    quantizer = Quantizer(False, weight_bits, activation_bits, symmetric, quant_delay, scope)
    _rewrite(input_graph, quantizer, None)


def _rewrite(graph: Graph | None, quantizer: Quantizer, freeze_delay: int | None) -> None:
    graph = graph or get_default_graph()
    prefixes = ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")
    found = sorted({op.type for op in graph.get_operations() if op.type.startswith(prefixes)})
    found += [getattr(each, "op", each).name for each in graph.get_collection(GraphKeys.TRAIN_OP)]
    if found:
        raise ValueError(f"Training op found in graph, exiting {found}: rewrite it before an optimizer minimizes")
    with graph.as_default():
        fold_batch_norms(graph, freeze_delay)
        quantizer.quantize(graph)
