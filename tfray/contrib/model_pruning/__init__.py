"""``tf.contrib.model_pruning``: more and more of the smallest weights are set to 0 while a network trains."""

from tfray.contrib.model_pruning.masks import (
    MaskedBasicLSTMCell,
    MaskedLSTMCell,
    apply_mask,
    get_masked_weights,
    get_masks,
    get_thresholds,
    get_weight_sparsity,
    get_weights,
    masked_conv2d,
    masked_convolution,
    masked_fully_connected,
)
from tfray.contrib.model_pruning.pruning import Pruning, get_pruning_hparams, train
from tfray.contrib.model_pruning.stripping import graph_def_from_checkpoint, strip_pruning_vars_fn

# fmt: off
__all__ = [
    "MaskedBasicLSTMCell", "MaskedLSTMCell", "Pruning", "apply_mask", "get_masked_weights", "get_masks",
    "get_pruning_hparams", "get_thresholds", "get_weight_sparsity", "get_weights", "graph_def_from_checkpoint",
    "masked_conv2d", "masked_convolution", "masked_fully_connected", "strip_pruning_vars_fn", "train",
]
# fmt: on
