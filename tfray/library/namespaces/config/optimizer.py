"""``tf.config.optimizer``: how TensorFlow rewrites graphs. Here `tf.OptimizerOptions.opt_level` says that alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfray.options import OptimizerOptions, RewriterConfig, default_config

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

_TOGGLES: Final = (
    "layout_optimizer", "constant_folding", "shape_optimization", "remapping", "arithmetic_optimization",
    "dependency_optimization", "loop_optimization", "function_optimization", "debug_stripper",
    "scoped_allocator_optimization", "pin_to_host_optimization", "implementation_selector", "auto_mixed_precision",
)  # fmt: skip
_VALUES: Final = ("disable_model_pruning", "disable_meta_optimizer", "min_graph_nodes")


def get_jit() -> bool:
    """Whether TensorFlow is to compile what it can."""
    level = default_config().graph_options.optimizer_options.global_jit_level
    return level in (OptimizerOptions.ON_1, OptimizerOptions.ON_2)


def set_jit(enabled: bool) -> None:
    """Say whether TensorFlow is to compile what it can; sessions here always do.

    Args:
        enabled: Whether.
    """
    options = default_config().graph_options.optimizer_options
    options.global_jit_level = OptimizerOptions.ON_1 if enabled else OptimizerOptions.OFF


def get_experimental_options() -> dict[str, Any]:
    """The rewritings that were chosen, by name: bools, and a number as ``min_graph_nodes``."""
    options = default_config().graph_options.rewrite_options
    found: dict[str, Any] = {
        name: getattr(options, name) == RewriterConfig.ON for name in _TOGGLES if getattr(options, name)
    }
    found.update({name: getattr(options, name) for name in _VALUES[:2]})
    return {**found, "min_graph_nodes": options.min_graph_nodes} if options.min_graph_nodes else found


def set_experimental_options(options: Mapping[str, Any]) -> None:
    """Choose rewritings.

    Args:
        options: Bools by name, and a number as ``min_graph_nodes``. Others stay as they are, and unknown names count
            for nothing.
    """
    chosen = default_config().graph_options.rewrite_options
    for name in _TOGGLES:
        if options.get(name) is not None:
            setattr(chosen, name, RewriterConfig.ON if options[name] else RewriterConfig.OFF)
    for name in _VALUES:
        if options.get(name) is not None:
            setattr(chosen, name, options[name])
