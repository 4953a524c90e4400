"""``tf.contrib.learn.utils``: how a model is served and exported."""

from tfray.contrib.session_bundle import gc
from tfray.programs.learn import experiment, served_inputs
from tfray.programs.learn.experiment import make_export_strategy
from tfray.programs.learn.served_inputs import (
    InputFnOps,
    build_default_serving_input_fn,
    build_parsing_serving_input_fn,
)

__all__ = [
    "InputFnOps",
    "build_default_serving_input_fn",
    "build_parsing_serving_input_fn",
    "gc",
    "make_export_strategy",
]

input_fn_utils = served_inputs
saved_model_export_utils = experiment
