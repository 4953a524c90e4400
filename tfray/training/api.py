"""The names of ``tf.train``."""

# isort: skip_file
from tfray.framework.example import (
    BytesList as BytesList,
    Example as Example,
    Feature as Feature,
    FeatureList as FeatureList,
    FeatureLists as FeatureLists,
    Features as Features,
    FloatList as FloatList,
    Int64List as Int64List,
    SequenceExample as SequenceExample,
)
from tfray.training.adadelta import AdadeltaOptimizer as AdadeltaOptimizer
from tfray.training.adagrad import AdagradOptimizer as AdagradOptimizer
from tfray.training.adagrad_da import AdagradDAOptimizer as AdagradDAOptimizer
from tfray.training.adam import AdamOptimizer as AdamOptimizer
from tfray.training.device_setter import (
    GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy,
    byte_size_load_fn as byte_size_load_fn,
    replica_device_setter as replica_device_setter,
)
from tfray.training.ftrl import FtrlOptimizer as FtrlOptimizer
from tfray.training.global_step import (
    create_global_step as create_global_step,
    get_global_step as get_global_step,
    get_or_create_global_step as get_or_create_global_step,
    global_step as global_step,
)
from tfray.training.gradient_descent import GradientDescentOptimizer as GradientDescentOptimizer
from tfray.training.inputs import InputContext as InputContext, array_input as array_input
from tfray.training.learning_rate_decay import (
    cosine_decay as cosine_decay,
    cosine_decay_restarts as cosine_decay_restarts,
    exponential_decay as exponential_decay,
    inverse_time_decay as inverse_time_decay,
    linear_cosine_decay as linear_cosine_decay,
    natural_exp_decay as natural_exp_decay,
    noisy_linear_cosine_decay as noisy_linear_cosine_decay,
    piecewise_constant as piecewise_constant,
    piecewise_constant_decay as piecewise_constant_decay,
    polynomial_decay as polynomial_decay,
)
from tfray.training.model import ModeKeys as ModeKeys, ModelSpec as ModelSpec
from tfray.training.momentum import MomentumOptimizer as MomentumOptimizer
from tfray.training.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from tfray.training.optimizer import Optimizer as Optimizer
from tfray.training.proximal_adagrad import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from tfray.training.proximal_gradient_descent import (
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
)
from tfray.training.rms_prop import RMSPropOptimizer as RMSPropOptimizer
from tfray.training.trainer import (
    Result as Result,
    RunConfig as RunConfig,
    ScalingConfig as ScalingConfig,
    StepRecord as StepRecord,
    Trainer as Trainer,
)
