"""``tf.contrib.estimator.SavedModelEstimator``: an estimator whose model is a saved one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from tfray.errors import NotFoundError
from tfray.estimator.estimator import Estimator
from tfray.estimator.saved_models import TAGS, TRAIN_OPS
from tfray.estimator.spec import EstimatorSpec, ModeKeys
from tfray.estimator.warm_start import WarmStartSettings
from tfray.formats.files import PathLike, as_path
from tfray.framework.arguments import checked
from tfray.framework.dtypes import as_dtype
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.platform import logging
from tfray.training.checkpoints import saved_model
from tfray.training.checkpoints.checkpoint_utils import list_variables
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.threads.global_step import get_global_step

_MAIN_OPS = ("saved_model_assets", "legacy_init_op", "saved_model_main_op", TRAIN_OPS)
"""Collections that a graph must not have when it is exported again."""


class SavedModelEstimator(Estimator):
    """Trains, evaluates and predicts with the graphs of a saved model, beginning with its variables.

    What input functions return has, as features or labels, the inputs of the graph's signature by name.

    Args:
        saved_model_dir: The folder that `experimental_export_all_saved_models` of an estimator has written. One by
            `export_saved_model` can predict.
        model_dir: Folder of the checkpoints.
        allow: What operations of the saved model may use: see `tf.import_graph_def`.

    Raises:
        NotFoundError: There is no saved model.
    """

    @checked
    def __init__(
        self, saved_model_dir: PathLike, model_dir: PathLike | None = None, *, allow: Collection[str] = ()
    ) -> None:
        self._allow = allow
        self.saved_model_dir = as_path(saved_model_dir)
        values = f"{self.saved_model_dir.rstrip('/')}/variables/variables"
        names = [re.escape(name) for name, _ in list_variables(values)]
        super().__init__(self._loaded, model_dir, warm_start_from=WarmStartSettings(values, vars_to_warm_start=names))
        self._available = [mode for mode in TAGS if self._signature(mode) is not None]

    def _signature(self, mode: str) -> Any:
        """The signature of the graph of a mode; None where there is none."""
        key = saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY if mode == ModeKeys.PREDICT else mode
        try:
            signatures = saved_model.find_graph(self.saved_model_dir, [TAGS[mode]]).signature_def
        except NotFoundError:
            logging.warning("the saved model in %s has no graph to %s", self.saved_model_dir, mode)
            return None
        return signatures.get(key)

    def _create_and_assert_global_step(self, graph: Graph) -> Any:
        return None  # that of the graph counts, which is not there yet

    def _loaded(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if mode not in self._available:
            raise RuntimeError(f"{mode} mode is not available in the SavedModel {self.saved_model_dir}")
        graph = get_default_graph()
        if get_global_step(graph) is not None:
            raise RuntimeError("Graph must not contain a global step tensor before the SavedModel is loaded")
        signature = self._signature(mode)
        found = saved_model.find_graph(self.saved_model_dir, [TAGS[mode]])
        main_op = saved_model.main_op_of(found)
        steps = list(found.collection_def[TRAIN_OPS].node_list.value) if TRAIN_OPS in found.collection_def else []
        names = [*(info.name for info in signature.outputs.values()), *steps, *filter(None, [main_op])]
        # What input functions have made may have taken the names that these have in the saved graph.
        made: dict[str, Any] = dict.fromkeys(names)
        given = _inputs(signature, features, labels)
        saved_model.add_graph(found, self.saved_model_dir, None, given, self._allow, made=made)
        outputs = {key: made[info.name] for key, info in signature.outputs.items()}
        for name in _MAIN_OPS:
            graph.get_collection_ref(name).clear()
        names = [key.removesuffix("/value") for key in outputs if key.startswith("metrics/") and key.endswith("/value")]
        metrics = {
            name: (outputs[f"{name}/value"], outputs[f"{name}/update_op"])
            for name in names
            if f"{name}/update_op" in outputs
        }
        is_prediction = mode == ModeKeys.PREDICT
        return EstimatorSpec(
            mode,
            outputs if is_prediction else {key: each for key, each in outputs.items() if key.startswith("predictions")},
            None if is_prediction else outputs["loss"],
            made[steps[0]] if steps else None,
            metrics,
            scaffold=Scaffold(local_init_op=made[main_op] if main_op else None),
        )


def _inputs(signature: Any, features: Any, labels: Any) -> dict[str, Tensor | SparseTensor]:
    """Features and labels by the names of the tensors whose places they take."""
    given = {**_named(labels, "label"), **_named(features, "feature")}
    mapped: dict[str, Tensor | SparseTensor] = {}
    for key, info in signature.inputs.items():
        if key not in given:
            raise ValueError(
                f'Key "{key}" not found in features or labels passed in to the model function. '
                f"All required keys: {list(signature.inputs)}"
            )
        tensor, dtype, shape = given[key], as_dtype(info.dtype), TensorShape(info.tensor_shape)
        wrong = f"\n\tExpected dtype: {dtype}, Got: {tensor.dtype}" if tensor.dtype != dtype else ""
        if not tensor.shape.is_compatible_with(shape):
            wrong += f"\n\tExpected shape: {shape}, Got: {tensor.shape}"
        if wrong:
            raise ValueError(f"Tensor shape and/or dtype validation failed for input {key}:{wrong}")
        mapped[info.name] = tensor
    return mapped


def _named(values: Any, name: str) -> dict[str, Tensor | SparseTensor]:
    if values is None:
        return {}
    named = values if isinstance(values, Mapping) else {name: values}
    return {key: convert_to_tensor_or_sparse_tensor(value) for key, value in named.items()}
