"""Names of the collections that libraries and programs share."""

from __future__ import annotations

from typing import Final


class GraphKeys:
    """Standard names of graph collections, as in TensorFlow 1.

    Each holds objects in the order in which they were added: see `tf.get_collection`.
    """

    GLOBAL_VARIABLES: Final = "variables"
    """Variables shared by all tasks; what a checkpoint saves by default."""
    VARIABLES: Final = GLOBAL_VARIABLES
    """The older name of `GLOBAL_VARIABLES`."""
    LOCAL_VARIABLES: Final = "local_variables"
    """Variables of one process that no checkpoint saves: counters, metric state."""
    METRIC_VARIABLES: Final = "metric_variables"
    """Accumulators of `tf.metrics`."""
    MODEL_VARIABLES: Final = "model_variables"
    """Variables that inference needs."""
    TRAINABLE_VARIABLES: Final = "trainable_variables"
    """Variables that optimizers change by default."""
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    """Variables of which `tf.train.ExponentialMovingAverage` keeps an average."""
    GLOBAL_STEP: Final = "global_step"
    EVAL_STEP: Final = "eval_step"

    LOSSES: Final = "losses"
    REGULARIZATION_LOSSES: Final = "regularization_losses"
    UPDATE_OPS: Final = "update_ops"
    """Operations to run with each training step, such as those that keep batch statistics."""
    TRAIN_OP: Final = "train_op"
    WEIGHTS: Final = "weights"
    BIASES: Final = "biases"
    ACTIVATIONS: Final = "activations"
    CONCATENATED_VARIABLES: Final = "concatenated_variables"

    SUMMARIES: Final = "summaries"
    SUMMARY_OP: Final = "summary_op"
    QUEUE_RUNNERS: Final = "queue_runners"
    TABLE_INITIALIZERS: Final = "table_initializer"
    ASSET_FILEPATHS: Final = "asset_filepaths"
    SAVERS: Final = "savers"
    SAVEABLE_OBJECTS: Final = "saveable_objects"

    INIT_OP: Final = "init_op"
    LOCAL_INIT_OP: Final = "local_init_op"
    READY_OP: Final = "ready_op"
    READY_FOR_LOCAL_INIT_OP: Final = "ready_for_local_init_op"
    COND_CONTEXT: Final = "cond_context"
    WHILE_CONTEXT: Final = "while_context"
