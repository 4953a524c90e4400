"""Options of sessions and steps, under TensorFlow 1's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


class OptimizerOptions:
    """How much a graph is rewritten before it runs.

    Args:
        opt_level: `L1` (the default) folds constants, merges equal operations and skips identities;
            `L0` runs every operation as written.
    """

    L0: Final = -1
    L1: Final = 0
    DEFAULT: Final = 0

    def __init__(self, opt_level: int = L1) -> None:
        self.opt_level = opt_level


@dataclass
class GraphOptions:
    """Options of graph compilation.

    Attributes:
        optimizer_options: See `OptimizerOptions`.
    """

    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)


@dataclass
class ConfigProto:
    """Options of a session.

    Attributes:
        device_count: Number of devices by type; ``{"CPU": 4}`` offers four CPU devices in this process, so that a
            partitioned graph can be tried without a cluster. GPUs are found, and ``{"GPU": 0}`` hides them.
        allow_soft_placement: Whether an operation without a kernel for the device that it asks for may go to
            another device type of the same task.
        log_device_placement: Whether to print the device of every operation when a step is compiled.
        graph_options: See `GraphOptions`.
        operation_timeout_in_ms: Default timeout of every step in milliseconds; 0 for none.
    """

    device_count: dict[str, int] = field(default_factory=dict)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    graph_options: GraphOptions = field(default_factory=GraphOptions)
    operation_timeout_in_ms: int = 0


@dataclass
class RunOptions:
    """Options of one step.

    Attributes:
        timeout_in_ms: Milliseconds after which the step fails with `DeadlineExceededError`; 0 takes the session's.
    """

    timeout_in_ms: int = 0
