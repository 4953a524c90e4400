"""When and which weights are masked: more and more of the smallest ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tfray.contrib.model_pruning.masks import get_masks, get_thresholds, get_weights
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.type_aliases import TensorLike
from tfray.library.inspect import summaries
from tfray.library.platform import logging
from tfray.library.variables.initializers import zeros_initializer
from tfray.library.variables.variable_scope import AUTO_REUSE, get_variable, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.math import math_ops
from tfray.ops.math.search_ops import top_k
from tfray.ops.math.sorting_ops import repeat
from tfray.ops.nn.nn_ops import zero_fraction
from tfray.ops.nn.pooling_ops import pool
from tfray.training.sessions import learning
from tfray.training.sessions.hparams import HParams
from tfray.training.threads.global_step import get_or_create_global_step


def get_pruning_hparams() -> HParams:
    """The settings of `Pruning`, with their defaults.

    Masks are updated from ``begin_pruning_step`` to ``end_pruning_step`` (-1: to the end), every ``pruning_frequency``
    steps. From ``sparsity_function_begin_step`` to ``sparsity_function_end_step`` the share of masked weights goes from
    ``initial_sparsity`` to ``target_sparsity``: what is missing falls by the power ``sparsity_function_exponent`` of
    the share of steps that are left. ``weight_sparsity_map`` has other targets, such as ``conv1:0.9``, by expressions
    that names of weights match; ``block_dims_map`` likewise has sizes of blocks that are masked as a whole, such as
    ``dense:4x4``, in place of ``block_height`` and ``block_width``; -1 stands for the whole height or width. Of blocks
    the mean counts, or with ``block_pooling_function`` MAX the largest. ``threshold_decay`` smooths thresholds. The
    others are not used.
    """
    return HParams(
        name="model_pruning",
        begin_pruning_step=0,
        end_pruning_step=-1,
        weight_sparsity_map=[""],
        block_dims_map=[""],
        threshold_decay=0.0,
        pruning_frequency=10,
        nbins=256,
        block_height=1,
        block_width=1,
        block_pooling_function="AVG",
        initial_sparsity=0.0,
        target_sparsity=0.5,
        sparsity_function_begin_step=0,
        sparsity_function_end_step=100,
        sparsity_function_exponent=3.0,
        use_tpu=False,
    )


class Pruning:
    """Updates the masks of a graph's weights (Zhu and Gupta, arXiv:1710.01878).

    Args:
        spec: Settings, such as `get_pruning_hparams` returns.
        global_step: The step, a scalar; that of the graph when None.
        sparsity: The share of weights to mask, a scalar, in place of what the settings say.

    Raises:
        ValueError: A setting is out of range.
    """

    def __init__(
        self, spec: Any = None, global_step: TensorLike | None = None, sparsity: TensorLike | None = None
    ) -> None:
        settings: Any = spec or get_pruning_hparams()
        self._spec = settings
        self._validate()
        step = get_or_create_global_step() if global_step is None else global_step
        self._step = array_ops.cast(convert_to_tensor(step), dtypes.int32)
        self._sparsity = self._planned() if sparsity is None else convert_to_tensor(sparsity)
        with variable_scope(self._spec.name, reuse=AUTO_REUSE):
            self._last = get_variable("last_mask_update_step", [], dtypes.int32, zeros_initializer(), trainable=False)
        self._targets = _by_expression(self._spec.weight_sparsity_map, float)
        if any(target >= 1 for target in self._targets.values()):
            raise ValueError("Weight sparsity can not exceed 1.0: a target of weight_sparsity_map must be less")
        self._blocks = _by_expression(self._spec.block_dims_map, lambda text: [int(size) for size in text.split("x")])
        for expression, sizes in self._blocks.items():
            if len(sizes) != 2:
                raise ValueError(f"Expected 2 values for block dim for {expression.pattern}, got {sizes}")

    def _validate(self) -> None:
        spec = self._spec
        right = {
            "begin_pruning_step must not be negative": spec.begin_pruning_step >= 0,
            "Pruning must begin before it can end; set end_pruning_step to -1 for no end": spec.end_pruning_step == -1
            or spec.begin_pruning_step < spec.end_pruning_step,
            "sparsity_function_begin_step must not be negative": spec.sparsity_function_begin_step >= 0,
            "Sparsity function requires begin_step < end_step": spec.sparsity_function_begin_step
            < spec.sparsity_function_end_step,
            "threshold_decay must be in range [0,1)": 0 <= spec.threshold_decay < 1,
            "initial_sparsity must be in range [0,1)": 0 <= spec.initial_sparsity < 1,
            "target_sparsity must be in range [0,1)": 0 <= spec.target_sparsity < 1,
        }
        for message, holds in right.items():
            if not holds:
                raise ValueError(message)

    def _planned(self) -> Tensor:
        spec = self._spec
        begin, end = spec.sparsity_function_begin_step, spec.sparsity_function_end_step
        with get_default_graph().name_scope(spec.name):
            done = array_ops.cast(self._step - begin, dtypes.float32) / float(end - begin)
            left = 1.0 - math_ops.minimum(math_ops.maximum(done, 0.0), 1.0)
            missing = (spec.initial_sparsity - spec.target_sparsity) * left**spec.sparsity_function_exponent
            return math_ops.add(missing, spec.target_sparsity, name="sparsity")

    def _sparsity_of(self, name: str) -> Tensor:
        target = _only(self._targets, name, "weight_sparsity_map")
        return self._sparsity if target is None else self._sparsity * (target / self._spec.target_sparsity)

    def _updated(self, name: str, sizes: Tensor, threshold: Any) -> tuple[Tensor, Tensor]:
        """The new threshold, and the new mask of weights of these sizes."""
        count = array_ops.size(sizes)
        kept = math_ops.round(array_ops.cast(count, dtypes.float32) * (1 - self._sparsity_of(name)))
        ordered = top_k(array_ops.reshape(sizes, [-1]), count)[0]
        # At least one is kept: of none there is no smallest.
        smallest = array_ops.gather(ordered, array_ops.cast(math_ops.maximum(kept, 1.0), dtypes.int32) - 1)
        decay = self._spec.threshold_decay
        limit = smallest * (1 - decay) + threshold * decay
        return limit, array_ops.cast(sizes >= limit, sizes.dtype)

    def _updated_by_blocks(self, weights: Any, threshold: Any) -> tuple[Tensor, Tensor]:
        name, sizes = _name(weights), math_ops.abs(convert_to_tensor(weights))
        block = _only(self._blocks, name, "block_dims_map") or [self._spec.block_height, self._spec.block_width]
        known = [size for size in weights.shape.as_list() if size != 1]
        if len(known) != 2 or list(block) == [1, 1]:
            return self._updated(name, sizes, threshold)
        kind = self._spec.block_pooling_function
        if kind not in ("AVG", "MAX"):
            raise ValueError(f"Unknown pooling function for block sparsity: {kind}")
        height, width = (whole if size == -1 else size for size, whole in zip(block, known, strict=True))
        image = array_ops.reshape(sizes, [1, *known, 1])
        pooled = pool(image, [height, width], kind, "SAME", strides=[height, width])
        limit, mask = self._updated(name, array_ops.squeeze(pooled, [0, 3]), threshold)
        every = repeat(repeat(mask, height, 0), width, 1)[: known[0], : known[1]]
        return limit, array_ops.reshape(every, weights.shape.as_list())

    def mask_update_op(self) -> Operation:
        """An operation that updates all masks."""
        graph, updates = get_default_graph(), []
        with graph.name_scope(self._spec.name):
            for mask, threshold, weights in zip(get_masks(), get_thresholds(), get_weights(), strict=True):
                limit, values = self._updated_by_blocks(weights, threshold)
                updates += nest.flatten([threshold.assign(limit), mask.assign(values)])
            return group(*updates, self._last.assign(self._step), name="mask_update")

    def conditional_mask_update_op(self) -> Any:
        """An operation that updates all masks when it is time to; it runs in each step of training."""
        spec, step = self._spec, self._step
        with get_default_graph().name_scope(spec.name):
            is_due = math_ops.logical_and(step >= spec.begin_pruning_step, self._last + spec.pruning_frequency <= step)
            if spec.end_pruning_step >= 0:
                is_due = math_ops.logical_and(is_due, step <= spec.end_pruning_step)
        return cond(is_due, self.mask_update_op, no_op)

    def add_pruning_summaries(self) -> None:
        """Write the share of masked weights, and the thresholds, as summaries."""
        with get_default_graph().name_scope(f"{self._spec.name}_summaries"):
            summaries.scalar("sparsity", self._sparsity)
            summaries.scalar("last_mask_update_step", self._last)
            for mask, threshold in zip(get_masks(), get_thresholds(), strict=True):
                summaries.scalar(f"{_name(mask)}/sparsity", zero_fraction(mask))
                summaries.scalar(f"{_name(threshold)}/threshold", threshold)

    def print_hparams(self) -> None:
        """Log the settings."""
        logging.info(self._spec.to_json())


def _name(variable: Any) -> str:
    """The name of a variable, which may consist of parts, or of a tensor."""
    return str(variable.name.partition(":")[0])


def _by_expression(entries: Sequence[str], parse: Any) -> dict[re.Pattern[str], Any]:
    pairs = (entry.rpartition(":") for entry in entries if entry)
    return {re.compile(name): parse(value) for name, _, value in pairs}


def _only(found: dict[re.Pattern[str], Any], name: str, setting: str) -> Any:
    """The value of the one expression that a name matches; None if there is none."""
    values = [value for expression, value in found.items() if expression.search(name)]
    if len(values) > 1:
        raise ValueError(f"Multiple matches in {setting} for weight {name}")
    return values[0] if values else None


def train(
    train_op: Any,
    logdir: str | None,
    mask_update_op: Any,
    train_step_fn: Callable[..., tuple[Any, bool]] = learning.train_step,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """`tf.contrib.slim.learning.train` that also updates masks after each step.

    Args:
        train_op: The training step, whose value is the loss.
        logdir: Folder of the checkpoints and the event file; None for neither.
        mask_update_op: Updates the masks: see `Pruning.conditional_mask_update_op`.
        train_step_fn: Makes a step; see `tf.contrib.slim.learning.train_step`.
        args: Further arguments of `tf.contrib.slim.learning.train`.
        kwargs: Likewise, by name.

    Returns:
        The last loss, or None if there was no step.
    """

    def step(session: Any, *arguments: Any) -> tuple[Any, bool]:
        outcome = train_step_fn(session, *arguments)
        session.run(mask_update_op)
        return outcome

    return learning.train(train_op, logdir, step, *args, **kwargs)
