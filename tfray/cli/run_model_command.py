"""``tfray run-model``: a signature of a saved model is run on values of files and of the command line."""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import numpy as np

from tfray.cli.command import BadRequest, GivenPath, OneLineErrors, reported_errors
from tfray.cli.file_commands import ALLOW, SIGNATURE, TAGS, opened_model
from tfray.cli.file_tables import printable, shape_text
from tfray.cli.model_contents import signature_records
from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.formats.meta_graph_proto import TensorInfo
from tfray.formats.npy import read_npy, read_npz
from tfray.framework import dtypes
from tfray.framework.sparse_tensor import SparseTensorValue
from tfray.training.checkpoints.saved_model import LoadedModel

_ARCHIVED: Final = re.compile(r"(.+\.npz)\[(.+)\]")
_PARTS: Final = ("indices", "values", "dense_shape")
_SHOWN: Final = 60
"""Elements above which the values of an output are shortened."""


@click.command("run-model", cls=OneLineErrors)
@click.argument("path", type=GivenPath())
@SIGNATURE
@TAGS
@click.option(
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    help="The value of an input: FILE.npy, FILE.npz[NAME], or JSON such as '[[1, 2]]'.",
)
@click.option("--output-dir", type=GivenPath(), metavar="FOLDER", help="Write each output there as NAME.npy.")
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
@ALLOW
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
def run_model(
    path: str, signature: str | None, tags: Sequence[str], inputs: Sequence[str], output_dir: str | None,
    overwrite: bool, allow: Sequence[str], debug: bool,
) -> None:  # fmt: skip
    """Run a signature of a saved model, and print what it gives.

    PATH is the folder of a model of tfray or TensorFlow, or a file that ends in .onnx. `tfray inspect` tells its
    signatures and their inputs.
    """
    with reported_errors(debug, ()):
        texts = _given(inputs)
        model = opened_model(path, signature, tags, allow)
        _check_names(texts, model.inputs)
        values = {key: _value(key, text) for key, text in texts.items()}
        paths = _paths(model.outputs, output_dir, overwrite)
        outputs = _outputs(model, values)
        for key, array in outputs.items():
            _show(key, array)
        storable = {key: _storable(key, outputs[key]) for key in paths}
        for key, array in storable.items():
            _write(paths[key], array)


def _outputs(model: LoadedModel, values: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that the model gives, by their names: a sparse output has three."""
    fed = {info.name.partition(":")[0] for info in model.inputs.values()}
    try:
        return {key: array for name, value in sorted(model(**values).items()) for key, array in _arrays(name, value)}
    except InvalidArgumentError as error:
        if error.op_name not in fed:
            raise
        raise BadRequest(f"{error.message}; {_taken(model.inputs)}") from error
    finally:
        model.close()


# -- inputs --------------------------------------------------------------------------------------------


def _given(inputs: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise BadRequest(f"--input {text}: expected NAME=VALUE")
        if name in given:
            raise BadRequest(f"--input {name} is given twice")
        given[name] = value
    return given


def _check_names(given: Mapping[str, str], infos: Mapping[str, TensorInfo]) -> None:
    unknown, missing = sorted(set(given) - set(infos)), sorted(set(infos) - set(given))
    if not unknown and not missing:
        return
    what = f"no input {unknown[0]!r}" if unknown else f"input {missing[0]!r} is missing (--input {missing[0]}=VALUE)"
    raise BadRequest(f"{what}; {_taken(infos)}")


def _taken(infos: Mapping[str, TensorInfo]) -> str:
    lines = [
        f"\n  {printable(key)}: {each['dtype']}, {shape_text(each['shape'])}, for {printable(each['tensor'])}"
        for key, each in signature_records(infos).items()
    ]
    return f"the signature takes{''.join(lines) or ' nothing'}"


def _value(name: str, text: str) -> Any:
    """The value of an input. Nothing in a file is unpickled."""
    archived = _ARCHIVED.fullmatch(text)
    path = archived[1] if archived else text
    if archived or text.endswith(".npy"):
        if not files.exists(path):
            raise BadRequest(f"--input {name}: there is no file {path}")
        return _member(name, path, archived[2]) if archived else read_npy(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"--input {name}: {text!r} is no FILE.npy, no FILE.npz[NAME] and no JSON: {error}") from error


def _member(name: str, path: str, member: str) -> Any:
    arrays = read_npz(path)
    if member not in arrays:
        raise BadRequest(f"--input {name}: {path} has no array {member!r}; it has {', '.join(arrays) or 'none'}")
    return arrays[member]


# -- outputs -------------------------------------------------------------------------------------------


def _arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    if isinstance(value, SparseTensorValue):
        yield from ((f"{name}.{part}", np.asarray(getattr(value, part))) for part in _PARTS)
    else:
        yield name, np.asarray(value)


def _show(name: str, array: np.ndarray[Any, Any]) -> None:
    click.echo(f"{printable(name)}: {dtypes.as_dtype(array.dtype).name}, {shape_text(array.shape)}")
    click.echo(np.array2string(array, threshold=_SHOWN, edgeitems=3, max_line_width=100))


def _paths(outputs: Mapping[str, TensorInfo], folder: str | None, overwrite: bool) -> dict[str, str]:
    """Where each output is to be written."""
    if folder is None:
        return {}
    names = [
        key
        for name, info in sorted(outputs.items())
        for key in ([f"{name}.{part}" for part in _PARTS] if info.WhichOneof("encoding") == "coo_sparse" else [name])
    ]
    # The model chooses the names: quoted, they lead nowhere else.
    paths = {name: f"{folder.rstrip('/') or '/'}/{urllib.parse.quote(name, safe=' ')}.npy" for name in names}
    for path in paths.values():
        if files.exists(path) and not overwrite:
            raise BadRequest(f"{path} is there: give another folder, or --overwrite")
    return paths


def _write(path: str, array: np.ndarray[Any, Any]) -> None:
    files.make_folders(os.path.dirname(path))
    with files.open_file(path, "wb") as file:
        np.save(file, array, allow_pickle=False)
    click.echo(f"wrote {path}")


def _storable(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of a dtype that files of NumPy have: text of one length, numbers of theirs."""
    if array.dtype == object:
        if any(item.endswith(b"\0") for item in array.flat):
            raise InvalidArgumentError(
                f"output {name!r} has text that ends in a zero byte, which .npy files cannot hold"
            )
        return array.astype("S")
    return array.astype(np.float32) if array.dtype == dtypes.bfloat16.numpy else array
