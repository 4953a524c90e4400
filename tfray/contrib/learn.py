"""``tf.contrib.learn``: estimators that take arrays, experiments, data sets, texts as word numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfray.absent_names import absent
from tfray.contrib.aliases import learn_io as io
from tfray.contrib.aliases import learn_models as models
from tfray.contrib.aliases import learn_utils as utils
from tfray.contrib.aliases.learn_io import extract_pandas_data, extract_pandas_labels, extract_pandas_matrix
from tfray.library.input import vocabulary as preprocessing
from tfray.library.input.lookup import tables_initializer
from tfray.library.variables.variables import global_variables_initializer, local_variables_initializer
from tfray.programs.learn import experiment as learn_runner
from tfray.programs.learn import experiment as monitors
from tfray.programs.learn import ops
from tfray.programs.learn import small_datasets as datasets
from tfray.programs.learn.cluster_config import RunConfig, TaskType
from tfray.programs.learn.estimators import (
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    Estimator,
    InputFnOps,
    LinearClassifier,
    LinearRegressor,
    ModelFnOps,
    SKCompat,
    build_parsing_serving_input_fn,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from tfray.programs.learn.experiment import Experiment, ExportStrategy, make_export_strategy
from tfray.programs.learn.metrics import MetricSpec
from tfray.programs.learn.models import DynamicRnnEstimator, KMeansClustering, ProblemType
from tfray.session import Session
from tfray.training.checkpoints.saver import Saver
from tfray.training.input.record_batches import read_batch_examples, read_batch_features, read_batch_record_features
from tfray.training.threads.coordinator import Coordinator
from tfray.training.threads.queue_runner import start_queue_runners

# fmt: off
__all__ = [
    "DNNClassifier", "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "DNNRegressor", "DynamicRnnEstimator",
    "Estimator", "Experiment", "ExportStrategy", "InputFnOps", "KMeansClustering", "LinearClassifier",
    "LinearRegressor", "MetricSpec", "ModeKeys", "ModelFnOps", "PredictionKey", "ProblemType", "RunConfig", "SKCompat",
    "TaskType", "build_parsing_serving_input_fn", "datasets", "extract_pandas_data", "extract_pandas_labels",
    "extract_pandas_matrix", "infer_real_valued_columns_from_input", "infer_real_valued_columns_from_input_fn", "io",
    "learn_runner", "make_export_strategy", "models", "monitors", "ops", "preprocessing", "read_batch_examples",
    "read_batch_features", "read_batch_record_features", "run_n", "utils",
]
# fmt: on


class ModeKeys:
    """What a model function builds its graph for."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    INFER: Final = "infer"


class PredictionKey:
    """What predictions are called."""

    CLASSES: Final = "classes"
    GENERIC: Final = "output"
    LOGISTIC: Final = "logistic"
    LOGITS: Final = "logits"
    PROBABILITIES: Final = "probabilities"
    SCORES: Final = "scores"
    TOP_K: Final = "top_k"


def run_n(
    output_dict: Mapping[str, Any],
    feed_dict: Mapping[Any, Any] | None = None,
    restore_checkpoint_path: str | None = None,
    n: int = 1,
) -> list[dict[str, Any]]:
    """Run tensors several times in a session of their own, with queues filled by their runners.

    Args:
        output_dict: The tensors, of one graph, by names of one's own.
        feed_dict: What is fed, each time.
        restore_checkpoint_path: Take the variables from there; they are initialized when None.
        n: How often.

    Returns:
        The values, by the same names, of each run.

    Raises:
        ValueError: There are no tensors.
    """
    tensors = dict(output_dict)
    if not tensors:
        raise ValueError("run_n needs tensors to run: output_dict is empty")
    graph = next(iter(tensors.values())).graph
    with graph.as_default(), Session(graph=graph) as session:
        session.run([local_variables_initializer(), tables_initializer()])
        if restore_checkpoint_path:
            Saver().restore(session, restore_checkpoint_path)
        else:
            session.run(global_variables_initializer())
        coordinator = Coordinator()
        threads = start_queue_runners(session, coordinator)
        try:
            return [session.run(tensors, feed_dict) for _ in range(n)]
        finally:
            coordinator.request_stop()
            session.close()
            coordinator.join(threads, stop_grace_period_secs=10)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"tf.contrib.learn has no {name}")
    raise AttributeError(f"{absent(f'contrib.learn.{name}', __all__)}; models are tf.estimator's, or tf.keras's")
