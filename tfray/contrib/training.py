"""``tf.contrib.training``: hyperparameters, a training loop, evaluation, and placing variables by their size."""

from tfray.training.checkpoints.checkpoint_management import checkpoints_iterator, wait_for_new_checkpoint
from tfray.training.input.bucketing import bucket, bucket_by_sequence_length
from tfray.training.input.sampling import rejection_sample, resample_at_rate, stratified_sample, weighted_resample
from tfray.training.input.sequence_states import (
    NextQueuedSequenceBatch,
    SequenceQueueingStateSaver,
    batch_sequences_with_states,
)
from tfray.training.optimizers.learning_rate_decay import sgdr_decay
from tfray.training.sessions.evaluation import (
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    evaluate_once,
    evaluate_repeatedly,
    get_or_create_eval_step,
)
from tfray.training.sessions.hparams import HParams, parse_values
from tfray.training.sessions.learning import (
    add_gradients_summaries,
    clip_gradient_norms,
    clip_gradient_norms_fn,
    create_train_op,
    multiply_gradients,
)
from tfray.training.sessions.train_loop import train
from tfray.training.threads.device_setter import GreedyLoadBalancingStrategy, RandomStrategy, byte_size_load_fn

# fmt: off
__all__ = [
    "GreedyLoadBalancingStrategy", "HParams", "NextQueuedSequenceBatch", "RandomStrategy", "SequenceQueueingStateSaver",
    "StopAfterNEvalsHook", "SummaryAtEndHook", "add_gradients_summaries", "batch_sequences_with_states", "bucket",
    "bucket_by_sequence_length", "byte_size_load_fn", "checkpoints_iterator", "clip_gradient_norms",
    "clip_gradient_norms_fn", "create_train_op", "evaluate_once", "evaluate_repeatedly", "get_or_create_eval_step",
    "multiply_gradients", "parse_values", "rejection_sample", "resample_at_rate", "sgdr_decay", "stratified_sample",
    "train", "wait_for_new_checkpoint", "weighted_resample",
]
# fmt: on
