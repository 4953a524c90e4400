"""``tf.contrib.predictor``: saved models and estimators as functions of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.allowed_uses import KINDS
from tfray.framework.graph import Graph, Tensor
from tfray.options import ConfigProto
from tfray.session import Session
from tfray.training.checkpoints import saved_model

__all__ = ["from_contrib_estimator", "from_estimator", "from_saved_model"]

DEFAULT_KEY: Final = "serving_default"


class Predictor:
    """A function from arrays to arrays, by name.

    Args:
        session: The session in which it runs.
        feed_tensors: What it takes.
        fetch_tensors: What it returns.
    """

    def __init__(
        self, session: Session, feed_tensors: Mapping[str, Tensor], fetch_tensors: Mapping[str, Tensor]
    ) -> None:
        self._session, self._feeds, self._fetches = session, dict(feed_tensors), dict(fetch_tensors)

    @property
    def session(self) -> Session:
        """The session in which it runs."""
        return self._session

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return self._session.graph

    @property
    def feed_tensors(self) -> dict[str, Tensor]:
        """What it takes."""
        return self._feeds

    @property
    def fetch_tensors(self) -> dict[str, Tensor]:
        """What it returns."""
        return self._fetches

    def __repr__(self) -> str:
        return f"Predictor with feed tensors {self._feeds} and fetch_tensors {self._fetches}"

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Run it.

        Raises:
            ValueError: A name is not among `feed_tensors`.
        """
        unknown = sorted(set(input_dict) - set(self._feeds))
        if unknown:
            raise InvalidArgumentError(f"Got unexpected keys in input_dict: {unknown}; expected {sorted(self._feeds)}")
        feeds = {self._feeds[name]: value for name, value in input_dict.items()}
        found: dict[str, Any] = self._session.run(self._fetches, feeds)
        return found


def from_saved_model(
    export_dir: str | bytes | os.PathLike[str],
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | Collection[str] | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
    *,
    allow: Collection[str] = (),
) -> Predictor:
    """A saved model as a `Predictor`.

    Args:
        export_dir: Its folder.
        signature_def_key: Name of the signature; ``serving_default`` when None.
        signature_def: The signature itself, in place of its name.
        input_names: Names of tensors, by those of the inputs, in place of a signature.
        output_names: Likewise for the outputs.
        tags: Tags of the graph, in a collection or with commas between; ``serve`` when None.
        graph: Graph to load it into; a new one when None.
        config: Options of the session.
        allow: What operations of the model may use: see `tf.import_graph_def`.

    Raises:
        PermissionDeniedError: Its operations use more than `allow` says.
        ValueError: There is no such signature; both a signature and names are given, or names of one kind only.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be unspecified.")
    if sum(each is not None for each in (signature_def_key, signature_def, input_names)) > 1:
        raise ValueError("You must specify at most one of signature_def_key, signature_def, or input_names")
    wanted = tags.split(",") if isinstance(tags, str) else list(tags or ("serve",))
    with (graph or Graph()).as_default() as found:
        session = Session(graph=found, config=config)
        loaded = saved_model.load(session, wanted, os.fsdecode(export_dir), allow=allow)
        if input_names is None or output_names is None:
            signature = signature_def
            if signature is None:
                key = signature_def_key or DEFAULT_KEY
                if key not in loaded.signature_def:
                    known = ", ".join(sorted(loaded.signature_def))
                    raise ValueError(f"Got signature_def_key {key!r}. Available signatures are {known}")
                signature = loaded.signature_def[key]
            input_names = {name: info.name for name, info in signature.inputs.items()}
            output_names = {name: info.name for name, info in signature.outputs.items()}
        feeds = {name: found.get_tensor_by_name(each) for name, each in input_names.items()}
        fetches = {name: found.get_tensor_by_name(each) for name, each in output_names.items()}
    return Predictor(session, feeds, fetches)


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
    *,
    allow: Collection[str] = KINDS,
) -> Predictor:
    """The newest checkpoint of an estimator as a `Predictor`.

    Args:
        estimator: The estimator.
        serving_input_receiver_fn: Makes what it takes, a `tf.estimator.export.ServingInputReceiver`.
        output_key: Name of its ``export_outputs``; ``serving_default`` when None.
        graph: Graph to load it into; a new one when None.
        config: Options of the session.
        allow: What operations of the model may use, as for `from_saved_model`: all, since this process has made them.
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = estimator.export_savedmodel(folder, serving_input_receiver_fn)
        return from_saved_model(path, output_key, graph=graph, config=config, allow=allow)


from_contrib_estimator = from_estimator
