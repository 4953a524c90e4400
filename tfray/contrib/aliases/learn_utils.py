"""``tf.contrib.learn.utils``: how a model is served and exported."""

from tfray.programs import learn_estimators, learn_experiment
from tfray.programs.learn_estimators import InputFnOps, build_default_serving_input_fn, build_parsing_serving_input_fn
from tfray.programs.learn_experiment import make_export_strategy

__all__ = [
    "InputFnOps",
    "build_default_serving_input_fn",
    "build_parsing_serving_input_fn",
    "make_export_strategy",
]

input_fn_utils = learn_estimators
saved_model_export_utils = learn_experiment
