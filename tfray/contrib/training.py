"""``tf.contrib.training``: hyperparameters, a training loop, and placing variables by their size."""

from tfray.training.sessions.hparams import HParams
from tfray.training.sessions.train_loop import train
from tfray.training.threads.device_setter import GreedyLoadBalancingStrategy, byte_size_load_fn

__all__ = ["GreedyLoadBalancingStrategy", "HParams", "byte_size_load_fn", "train"]
