"""Loading of models that are saved as `tf.saved_model` has them, or were exported before there was one."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from tfray.contrib.session_bundle import constants, session_bundle
from tfray.contrib.session_bundle.manifest import Signatures
from tfray.formats.files import PathLike, as_path
from tfray.formats.meta_graph_proto import MetaGraphDef, SignatureDef, TensorInfo
from tfray.library.platform import logging
from tfray.session import Session
from tfray.training.checkpoints import saved_model
from tfray.training.checkpoints.import_meta_graph import read_meta_graph
from tfray.training.checkpoints.saved_model_files import maybe_saved_model_directory
from tfray.training.checkpoints.signatures import signature_constants as names

__all__ = ["load_session_bundle_or_saved_model_bundle_from_path"]


def load_session_bundle_or_saved_model_bundle_from_path(
    export_dir: PathLike,
    tags: Collection[str] | None = None,
    target: str = "",
    config: Any = None,
    *,
    allow: Collection[str] = (),
) -> tuple[Session, MetaGraphDef]:
    """Load a saved model into the default graph, or an exported one into a new one.

    Args:
        export_dir: The folder of the model.
        tags: Tags of the graph in a saved model.
        target: As for `tf.Session`.
        config: Likewise.
        allow: What its operations may use besides its own assets; see `tf.saved_model.load`.

    Returns:
        A session with its variables, and the graph with its collections. The signatures of an exported model are among
        its ``signature_def``, too: the default one as ``serving_default``, and one of the generic signatures
        ``inputs`` and ``outputs``, which has ``_from_named`` after its name if there are both.

    Raises:
        RuntimeError: There is no model, or an exported one has signatures of both forms or unexpected kinds.
    """
    folder = as_path(export_dir)
    if maybe_saved_model_directory(folder):
        sess = Session(target, config=config)
        return sess, saved_model.load(sess, tags or (), folder, allow=allow)
    if not session_bundle.maybe_session_bundle_dir(folder):
        raise RuntimeError(f"SessionBundle or SavedModelBundle not found at specified export location: {folder}")
    found = read_meta_graph(os.path.join(folder, constants.META_GRAPH_DEF_FILENAME))
    if found.signature_def:
        raise RuntimeError("Legacy graph contains signature def, unable to up-convert.")
    signatures = Signatures()
    found.collection_def[constants.SIGNATURES_KEY].any_list.value[0].Unpack(signatures)
    default = _default_signature(signatures) if signatures.HasField("default_signature") else None
    named = _named_signature(signatures) if len(signatures.named_signatures) > 1 else None
    key = names.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if default is not None:
        found.signature_def[key].CopyFrom(default)
    if named is not None:
        found.signature_def[key if default is None else f"{key}_from_named"].CopyFrom(named)
    return session_bundle.load_session_bundle_from_path(folder, target, config, found, allow=allow)


def _default_signature(signatures: Any) -> SignatureDef | None:
    default = signatures.default_signature
    kind = default.WhichOneof("type")
    if kind == constants.REGRESSION_SIGNATURE:
        found = default.regression_signature
        inputs, outputs = {names.REGRESS_INPUTS: found.input}, {names.REGRESS_OUTPUTS: found.output}
        return _signature(inputs, outputs, names.REGRESS_METHOD_NAME)
    if kind == constants.CLASSIFICATION_SIGNATURE:
        found = default.classification_signature
        outputs = {names.CLASSIFY_OUTPUT_CLASSES: found.classes, names.CLASSIFY_OUTPUT_SCORES: found.scores}
        return _signature({names.CLASSIFY_INPUTS: found.input}, outputs, names.CLASSIFY_METHOD_NAME)
    logging.error(
        "Only classification and regression default signatures are supported for up-conversion. %s is not supported",
        kind,
    )
    return None


def _named_signature(signatures: Any) -> SignatureDef:
    found = [signatures.named_signatures[key] for key in (names.PREDICT_INPUTS, names.PREDICT_OUTPUTS)]
    kinds = [each.WhichOneof("type") for each in found]
    if kinds != [constants.GENERIC_SIGNATURE] * 2:
        raise RuntimeError(
            "Named input and output signatures can only be up-converted if they are generic signature. Input signature "
            f"type is {kinds[0]}, output signature type is {kinds[1]}"
        )
    inputs, outputs = (each.generic_signature.map for each in found)
    return _signature(inputs, outputs, names.PREDICT_METHOD_NAME)


def _signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str) -> SignatureDef:
    """A signature of bindings by name."""
    taken, given = (
        {key: TensorInfo(name=binding.tensor_name) for key, binding in each.items()} for each in (inputs, outputs)
    )
    return SignatureDef(inputs=taken, outputs=given, method_name=method)
