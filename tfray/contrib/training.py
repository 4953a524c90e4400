"""The names of ``tf.contrib.training``."""

# isort: skip_file
from tfray.training.threads.device_setter import (
    GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy,
    byte_size_load_fn as byte_size_load_fn,
)
from tfray.training.sessions.hparams import HParams as HParams
from tfray.training.sessions.train_loop import train as train
