"""``tf.config.threading``: numbers of threads. TensorFlow's programs set them; see `tf.ConfigProto` for what counts."""

from __future__ import annotations

from tfray.options import default_config

__all__ = [
    "get_inter_op_parallelism_threads", "get_intra_op_parallelism_threads", "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]  # fmt: skip


def get_inter_op_parallelism_threads() -> int:
    """How many operations run at a time; 0 lets the system choose."""
    found: int = default_config().inter_op_parallelism_threads
    return found


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Say how many operations run at a time.

    Args:
        num_threads: As ``tf.ConfigProto(inter_op_parallelism_threads=num_threads)``.
    """
    default_config().inter_op_parallelism_threads = num_threads


def get_intra_op_parallelism_threads() -> int:
    """How many threads an operation uses; 0 lets the system choose."""
    found: int = default_config().intra_op_parallelism_threads
    return found


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Say how many threads an operation uses.

    Args:
        num_threads: As ``tf.ConfigProto(intra_op_parallelism_threads=num_threads)``.
    """
    default_config().intra_op_parallelism_threads = num_threads
