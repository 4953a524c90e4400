"""The names of ``tf.estimator.export``: what exported models are fed, and what they give."""

from tfray.estimator.export_outputs import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from tfray.estimator.receivers import (
    ServingInputReceiver,
    TensorServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
    build_raw_serving_input_receiver_fn,
)

# fmt: off
__all__ = [
    "ClassificationOutput", "ExportOutput", "PredictOutput", "RegressionOutput", "ServingInputReceiver",
    "TensorServingInputReceiver", "build_parsing_serving_input_receiver_fn", "build_raw_serving_input_receiver_fn",
]
# fmt: on
