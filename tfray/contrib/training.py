"""The names of ``tf.contrib.training``."""

# isort: skip_file
from tfray.training.device_setter import (
    GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy,
    byte_size_load_fn as byte_size_load_fn,
)
from tfray.training.hparams import HParams as HParams
from tfray.training.train_loop import train as train
