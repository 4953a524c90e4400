"""Exporting an estimator: graphs with signatures, and the variables of a checkpoint, in a new folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tfray.errors import FailedPreconditionError
from tfray.estimator.export_outputs import EvalOutput, ExportOutput, TrainOutput
from tfray.estimator.spec import EstimatorSpec, ModeKeys, outputs_of
from tfray.formats import files
from tfray.framework.graph import Graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.platform import logging
from tfray.library.variables.variables import global_variables_initializer
from tfray.session import Session
from tfray.training.checkpoints import saved_model
from tfray.training.checkpoints.saved_model import SavedModelBuilder, SignatureDef
from tfray.training.checkpoints.saver import Saver
from tfray.training.sessions.scaffold import Scaffold

TAGS: Final = {
    ModeKeys.PREDICT: saved_model.tag_constants.SERVING,
    ModeKeys.TRAIN: saved_model.tag_constants.TRAINING,
    ModeKeys.EVAL: saved_model.tag_constants.EVAL,
}
_ORDER: Final = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
"""The first of these modes saves the variables: a graph for training has most of them."""

_ATTEMPTS: Final = 10

TRAIN_OPS: Final = "saved_model_train_op"
"""The collection with the training step of a graph."""


def write(
    estimator: Any,
    base: str,
    receiver_fns: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, Any],
    as_text: bool,
    checkpoint_path: str | None,
) -> bytes:
    """Write a saved model into a new folder in `base`. See `Estimator.experimental_export_all_saved_models`."""
    modes = [mode for mode in _ORDER if receiver_fns.get(mode)]
    if not modes:
        raise ValueError(f"nothing to export: there is no input receiver function for {', '.join(_ORDER)}")
    folder = _new_folder(base)
    temporary = f"{base.rstrip('/')}/temp-{folder.rpartition('/')[2]}"
    builder = SavedModelBuilder(temporary)
    for number, mode in enumerate(modes):
        graph = Graph()
        graph.seed = estimator.config.tf_random_seed
        with graph.as_default():
            estimator._create_and_assert_global_step(graph)
            receiver = receiver_fns[mode]()
            spec = estimator.model_fn(receiver.features, getattr(receiver, "labels", None), mode, estimator.config)
            estimator._warm_start_without(checkpoint_path)
            _add(builder, spec, receiver, mode, checkpoint_path, estimator.config.session_config, first=number == 0)
    builder.save(as_text)
    for name, source in assets_extra.items():
        target = f"{temporary}/assets.extra/{name}"
        files.make_folders(target.rpartition("/")[0])
        files.copy(source, target)
    files.rename(temporary, folder)
    logging.info("exported a saved model: %s", folder)
    return folder.encode()


def _add(
    builder: SavedModelBuilder,
    spec: EstimatorSpec,
    receiver: Any,
    mode: str,
    checkpoint_path: str | None,
    config: Any,
    first: bool,
) -> None:
    """Add a graph; with the first, the values of the variables."""
    if mode == ModeKeys.PREDICT:
        signatures = _serving_signatures(spec, receiver)
    else:
        kind = TrainOutput if mode == ModeKeys.TRAIN else EvalOutput
        outputs = kind(spec.loss, spec.predictions, spec.eval_metric_ops)
        signatures = {mode: outputs.as_signature_def(receiver.receiver_tensors)}
    saver = spec.scaffold.saver or Saver(sharded=True, allow_empty=True)
    from_graph = spec.scaffold.local_init_op
    local_init_op = Scaffold.default_local_init_op() if from_graph is None else from_graph
    graph = local_init_op.graph
    options: dict[str, Any] = {
        "assets_collection": graph.get_collection(GraphKeys.ASSET_FILEPATHS),
        "main_op": local_init_op,
        "strip_default_attrs": True,
    }
    if mode == ModeKeys.TRAIN:
        graph.add_to_collection(TRAIN_OPS, spec.train_op)
    if not first:
        builder.add_meta_graph([TAGS[mode]], signatures, **options)
        return
    with Session("", graph, config) as session:
        if checkpoint_path is None:
            session.run(global_variables_initializer())
        else:
            saver.restore(session, checkpoint_path)
        builder.add_meta_graph_and_variables(session, [TAGS[mode]], signatures, **options)


def _serving_signatures(spec: EstimatorSpec, receiver: Any) -> dict[str, SignatureDef]:
    """A signature for each output, and for each other set of tensors that may be fed."""
    alternatives = receiver.receiver_tensors_alternatives
    found = build_all_signature_defs(receiver.receiver_tensors, outputs_of(spec), alternatives)
    if not found:
        raise ValueError("nothing of what the model gives fits what is fed: the saved model would have no signature")
    return found


def build_all_signature_defs(
    receiver_tensors: Any,
    export_outputs: Mapping[str, ExportOutput],
    receiver_tensors_alternatives: Mapping[str, Any] | None = None,
) -> dict[str, SignatureDef]:
    """The signatures of a saved model, without those that have no form.

    Args:
        receiver_tensors: What is fed: a tensor, named ``input``, or several by name.
        export_outputs: The outputs by the names of their signatures.
        receiver_tensors_alternatives: Other sets of what is fed. Their names and a colon begin the names of signatures.

    Raises:
        ValueError: The outputs are no dictionary.
    """
    if not isinstance(export_outputs, Mapping):
        raise ValueError(f"export_outputs must be a dict and not {type(export_outputs).__name__}")
    found: dict[str, SignatureDef] = {}
    for receiver_name, given in {"": receiver_tensors, **(receiver_tensors_alternatives or {})}.items():
        tensors = given if isinstance(given, Mapping) else {"input": given}
        for name, output in export_outputs.items():
            key = f"{receiver_name}:{name}" if receiver_name else name
            try:
                found[key] = output.as_signature_def(tensors)
            except ValueError as error:
                logging.info("the saved model has no signature %s: %s", key, error)
    return found


def _new_folder(base: str) -> str:
    """A path in `base` that is not there yet: the time in seconds.

    Raises:
        FailedPreconditionError: For several seconds there has been one already.
    """
    for _ in range(_ATTEMPTS):
        path = f"{base.rstrip('/')}/{int(time.time())}"
        if not files.exists(path):
            files.make_folders(base)
            return path
        time.sleep(1)
    raise FailedPreconditionError(f"no new folder can be named by the time in {base}: others make them all the time")
