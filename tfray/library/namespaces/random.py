"""``tf.random``: seeds, random tensors and candidate samplers. The ``stateless`` ones depend on their seed alone."""

from tfray.framework.random_seed import get_seed, set_random_seed
from tfray.library.variables import random_generator as experimental
from tfray.ops.nn.candidate_sampling_ops import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from tfray.ops.random.random_ops import categorical, multinomial, truncated_normal
from tfray.ops.random.random_ops import random_gamma as gamma
from tfray.ops.random.random_ops import random_normal as normal
from tfray.ops.random.random_ops import random_poisson as poisson
from tfray.ops.random.random_ops import random_shuffle as shuffle
from tfray.ops.random.random_ops import random_uniform as uniform
from tfray.ops.random.stateless_random_ops import (
    stateless_categorical,
    stateless_multinomial,
    stateless_truncated_normal,
)
from tfray.ops.random.stateless_random_ops import stateless_random_normal as stateless_normal
from tfray.ops.random.stateless_random_ops import stateless_random_uniform as stateless_uniform

# fmt: off
__all__ = [
    "all_candidate_sampler", "categorical", "experimental", "fixed_unigram_candidate_sampler", "gamma", "get_seed",
    "learned_unigram_candidate_sampler", "log_uniform_candidate_sampler", "multinomial", "normal", "poisson",
    "set_random_seed", "shuffle", "stateless_categorical", "stateless_multinomial", "stateless_normal",
    "stateless_truncated_normal", "stateless_uniform", "truncated_normal", "uniform", "uniform_candidate_sampler",
]
# fmt: on
