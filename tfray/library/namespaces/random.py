"""The names of ``tf.random``."""

# isort: skip_file
from tfray.framework.random_seed import (
    get_seed as get_seed,
    set_random_seed as set_random_seed,
)
from tfray.ops.nn.candidate_sampling_ops import (
    all_candidate_sampler as all_candidate_sampler,
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from tfray.ops.random.stateless_random_ops import (
    stateless_categorical as stateless_categorical,
    stateless_multinomial as stateless_multinomial,
    stateless_random_normal as stateless_normal,
    stateless_random_uniform as stateless_uniform,
    stateless_truncated_normal as stateless_truncated_normal,
)
from tfray.ops.random.random_ops import (
    categorical as categorical,
    random_gamma as gamma,
    multinomial as multinomial,
    random_normal as normal,
    random_poisson as poisson,
    random_shuffle as shuffle,
    truncated_normal as truncated_normal,
    random_uniform as uniform,
)
