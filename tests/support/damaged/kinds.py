"""Files of each kind that is read, damaged at random.

check_damaged(KINDS["graph"], folder, range(300))
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tfray as tf
from tests.support import GOLDEN
from tests.support.damaged.checked_reading import FileKind
from tests.support.damaged.damage import STRINGS, Damage, Donors
from tests.support.damaged.message_damage import GRAPH_EDITS, META_EDITS, as_message, signature_ends
from tests.support.graphs.control_flow_graphs import read_golden_graphs
from tfray.errors import OpError
from tfray.formats.bundles.saved_slices import SavedTensorSlices
from tfray.formats.bundles.sorted_table import read_table, table_bytes
from tfray.formats.bundles.tensor_bundle import BundleEntry, BundleHeader
from tfray.formats.checkpoint import Manifest, data_name
from tfray.formats.checkpoint_folder import write_manifest
from tfray.formats.checkpoint_shard import Piece, checksum, write_shard
from tfray.formats.graph_proto import GraphDef
from tfray.formats.message import message_of_file
from tfray.formats.meta_graph_proto import MetaGraphDef, SavedModel, VariableDef
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint
from tfray.formats.safetensors import save_safetensors
from tfray.training.checkpoints.checkpoint_management import get_checkpoint_state

# -- graphs --------------------------------------------------------------------------------------------


def _copied(folder: Path, sources: Iterable[Path]) -> list[Path]:
    return [Path(shutil.copy(source, folder)) for source in sources]


def _golden_graphs(folder: Path) -> list[Path]:
    made = _copied(folder, sorted((GOLDEN / "graphs").glob("*.pb")))
    with tf.Graph().as_default() as graph:  # with operations that TensorFlow does not have
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sort(x), lambda: tf.map_fn(tf.erf, x))
        tf.distributions.Normal(0.0, 1.0).log_cdf(y)
        queue = tf.FIFOQueue(3, [tf.float32])
        tf.QueueBase.from_list(0, [queue, queue]).dequeue()
    made.append(folder / "own.pb")
    made[-1].write_bytes(graph.as_graph_def().SerializeToString())
    return made


def _control_flow(folder: Path) -> list[Path]:
    """Graphs with TensorFlow 1's own operations of branches and loops, and some with functions."""
    made = []
    for name, golden in read_golden_graphs(GOLDEN / "control_flow.npz.xz").items():
        made.append(folder / f"{name}.pb")
        made[-1].write_bytes(golden.graph)
    return made


def _as_text(folder: Path) -> list[Path]:
    made = []
    for source in sorted((GOLDEN / "graphs").glob("*.pb")):
        if source.stat().st_size < 15000:
            made.append(folder / f"{source.stem}.pbtxt")
            made[-1].write_text(str(GraphDef.FromString(source.read_bytes())))
    return made


def _read_graph(path: Path) -> None:
    definition = tf.GraphDef()
    definition.ParseFromString(path.read_bytes())
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")


def _read_text(path: Path) -> None:
    definition = message_of_file(GraphDef, path.read_bytes())
    with tf.Graph().as_default():
        tf.import_graph_def(definition)


def _own_graphs(folder: Path) -> list[Path]:
    """Graphs in tfray's own form."""
    made = []
    for name in ("frozen_convnet", "loops", "branches", "variables_resource", "strings", "trained_adam_resource"):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(GraphDef.FromString((GOLDEN / "graphs" / f"{name}.pb").read_bytes()), name="")
        made.append(folder / f"{name}.json")
        made[-1].write_bytes(graph.as_plain().SerializeToString())
    return made


def _rewrite_json(damage: Damage, donors: Donors, name: str, contents: bytes) -> bytes:
    return damage.json(contents)


# -- meta graphs and saved models ----------------------------------------------------------------------


@functools.cache
def _archive() -> dict[str, bytes]:
    with tarfile.open(GOLDEN / "saved_models" / "of_tensorflow.tar.xz") as archive:
        return {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}


def _extracted(folder: Path, *patterns: str) -> list[Path]:
    made = []
    for name, contents in _archive().items():
        if any(re.match(pattern, name) for pattern in patterns):
            made.append(folder / name)
            made[-1].parent.mkdir(parents=True, exist_ok=True)
            made[-1].write_bytes(contents)
    return made


def _metas(folder: Path) -> list[Path]:
    found = _extracted(folder, r".*\.meta")
    found += [_smaller(path, MetaGraphDef) for path in found]
    return [*found, _own_meta(folder / "graph.meta")]


def _own_meta(path: Path, as_text: bool = False) -> Path:
    """A small meta graph of tfray's, with collections of each kind."""
    with tf.Graph().as_default() as graph:
        x = tf.train.shuffle_batch([tf.random_uniform([2])], 4, 10, 5)
        w = tf.get_variable("w", [2, 3], partitioner=tf.fixed_size_partitioner(2))
        loss = tf.reduce_sum(tf.matmul(x, tf.convert_to_tensor(w)))
        tf.add_to_collection("outputs", loss)
        tf.add_to_collection("rates", 0.5)
        tf.add_to_collection("notes", "text")
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
        tf.train.export_meta_graph(path, graph=graph, saver_def=tf.train.Saver().saver_def, as_text=as_text)
    return path


def _text_metas(folder: Path) -> list[Path]:
    found = _extracted(folder, r"references/text\.pbtxt")
    return [*found, _own_meta(folder / "own.pbtxt", as_text=True)]


def _smaller(path: Path, declared: Any) -> Path:
    """A file beside a meta graph or saved model, without the operations that train."""
    message = message_of_file(declared, path.read_bytes())
    meta = message.meta_graphs[0] if declared is SavedModel else message
    roots = [meta.saver_def.save_tensor_name, meta.saver_def.restore_op_name, "y", "init"]
    variables = [VariableDef.FromString(each) for each in meta.collection_def["variables"].bytes_list.value]
    roots += [name for each in variables for name in (each.initializer_name, each.snapshot_name)]
    roots += [info.name for info in signature_ends(meta)]
    names = {node.name for node in meta.graph_def.node}
    roots = [name for text in roots if (name := text.partition(":")[0]) in names]
    meta.graph_def.CopyFrom(tf.graph_util.extract_sub_graph(meta.graph_def, roots))
    kept = {node.name for node in meta.graph_def.node}
    for name in [*meta.collection_def]:
        members = meta.collection_def[name].node_list.value
        if members and not {text.partition(":")[0] for text in members} <= kept:
            del meta.collection_def[name]
    made = path.with_stem(f"{path.stem}-smaller")
    made.write_bytes(message.SerializeToString())
    return made


def _read_meta(path: Path) -> None:
    with tf.Graph().as_default():
        tf.train.import_meta_graph(path, allow=["files"] if path.name.startswith("old") else ())


def _saved(*names: str) -> Callable[[Path], list[Path]]:
    def prepare(folder: Path) -> list[Path]:
        _extracted(folder, *(f"{name}/saved/" for name in names))
        made = [folder / name / "saved" for name in names]
        for path in [folder / name / "saved" for name in names if name in ("references", "resources")]:
            made.append(Path(shutil.copytree(path, path.with_name("smaller"))))
            _smaller(made[-1] / "saved_model.pb", SavedModel).replace(made[-1] / "saved_model.pb")
        return made

    return prepare


def _in_saved(path: Path) -> list[Path]:
    found = sorted(each for each in path.rglob("*") if each.is_file())
    return [*found, *[each for each in found if each.name.startswith("saved_model.")] * 6]


def _read_saved(path: Path) -> None:
    with tf.Session(graph=tf.Graph()) as session:
        tf.saved_model.loader.load(session, ["serve"], path)


_rewrite_saved_message = as_message(SavedModel, *META_EDITS)


def _rewrite_saved(damage: Damage, donors: Donors, name: str, contents: bytes) -> bytes:
    if name == "saved_model.json":
        return damage.json(contents)
    if name == "saved_model.pb":
        return _rewrite_saved_message(damage, donors, name, contents)
    return _rewrite_checkpoint(damage, donors, name, contents)


def _old_saved(folder: Path) -> list[Path]:
    return [Path(shutil.copytree(GOLDEN / "saved_models" / "json", folder / "old"))]


def _old_meta(folder: Path) -> list[Path]:
    """A meta graph in the form that tfray once wrote."""
    plain = json.loads((GOLDEN / "saved_models" / "json" / "saved_model.json").read_bytes())["graphs"][0]["meta_graph"]
    for node in plain["graph"]["node"]:
        for key, value in node["attr"].items():
            if isinstance(value, dict) and "dict" in value:  # a constant that is stored elsewhere
                shape = node["shapes"][0]["shape"]
                data = base64.b64encode(np.zeros(shape, np.float32)).decode()
                node["attr"][key] = {"array": {"dtype": "float32", "shape": shape, "data": data}}
    (folder / "old.meta").write_text(json.dumps(plain))
    return [folder / "old.meta"]


# -- checkpoints ---------------------------------------------------------------------------------------

ARRAYS = {
    "weights": np.arange(300, dtype=np.float32).reshape(20, 15),
    "names": np.array([b"one", b"", b"three"], object),
    "step": np.array(7, np.int64),
    "empty": np.zeros((3, 0)),
}


def write_arrow(folder: Path, arrays: Mapping[str, Any] = ARRAYS) -> str:
    """A checkpoint of tfray's in two shards: all arrays, and one in two parts. Returns its path."""
    prefix = f"{folder}/model"
    parts = np.arange(12.0).reshape(6, 2)
    first = [Piece.whole(name, array) for name, array in arrays.items()]
    groups = [[*first, Piece("parts", parts[:4], [6, 2], [0, 0])], [Piece("parts", parts[4:], [6, 2], [4, 0])]]
    records = [write_shard(f"{folder}/{data_name(prefix, i, 2)}", group) for i, group in enumerate(groups)]
    write_manifest(prefix, Manifest.of_shards(records))
    return prefix


def signed(plain: Any) -> bytes:
    """A manifest under a checksum that fits."""
    body = json.dumps(plain, separators=(",", ":")).encode()
    return b'{"tfray_checkpoint":1,"checksum":"%016x","manifest":%s}\n' % (checksum(body), body)


def _arrow(folder: Path) -> list[Path]:
    return [Path(write_arrow(folder))]


def _bundle(folder: Path) -> list[Path]:
    _copied(folder, (GOLDEN / "checkpoints").glob("model-20.*"))
    return [folder / "model-20"]


def _slices(folder: Path) -> list[Path]:
    _copied(folder, [*(GOLDEN / "checkpoints" / "v1").glob("shards-*"), GOLDEN / "checkpoints" / "v1" / "whole"])
    return [folder / "whole", folder / "shards-?????-of-00002"]


def _beside(path: Path) -> list[Path]:
    """The files of a checkpoint."""
    return sorted(path.parent.glob(path.name if "?" in path.name else f"{path.name}*"))


def _safetensors(folder: Path) -> list[Path]:
    save_safetensors({"a": np.arange(6.0), "b": np.array([True])}, folder / "model.safetensors")
    return [folder / "model.safetensors"]


def _state(folder: Path) -> list[Path]:
    tf.train.update_checkpoint_state(folder, "a-1", ["a-0", "a-1"], all_model_checkpoint_timestamps=[1.5, 2.5])
    return [folder / "checkpoint"]


def _read_checkpoint(path: Path) -> None:
    verify_checkpoint(open_checkpoint(str(path)))


def _rewrite_checkpoint(damage: Damage, donors: Donors, name: str, contents: bytes) -> bytes:
    """Changed contents under checksums that fit: what a malicious file may be."""
    if name.endswith(".safetensors"):
        length = int.from_bytes(contents[:8], "little")
        header = damage.json(contents[8 : 8 + length])
        return len(header).to_bytes(8, "little") + header + contents[8 + length :]
    start = contents.find(b'"manifest":')
    if start >= 0:
        return signed(json.loads(damage.json(contents[start + len(b'"manifest":') : -2])))
    if name.endswith((".index", "whole")) or name.startswith("shards"):
        return _rewrite_table(damage, contents, is_bundle=name.endswith(".index"))
    return contents


def _rewrite_table(damage: Damage, contents: bytes, is_bundle: bool) -> bytes:
    rng = damage.random
    entries = read_table(contents)
    for _ in range(rng.choice((1, 1, 2, 4))):
        key = rng.choice(sorted(entries))
        match rng.choice(("message", "message", "message", "delete", "rename", "octets", "copy")):
            case "message" if is_bundle or not key:
                declared = (BundleEntry if key else BundleHeader) if is_bundle else SavedTensorSlices
                message, donors = declared(), Donors()
                with contextlib.suppress(OpError):
                    message.ParseFromString(entries[key])
                    donors.add(declared.FromString(entries[key]))
                damage.message(message, donors)
                entries[key] = message.SerializeToString()
            case "delete" if len(entries) > 1:
                del entries[key]
            case "rename":
                to = rng.choice((key + b"x", key[:-1], b"\xff\xfe", b"../../etc/passwd", b"a" * 200, b"\0a"))
                entries[to] = entries.pop(key)
            case "copy":
                entries[key] = entries[rng.choice(sorted(entries))]
            case _:
                entries[key] = damage.octets(entries[key])
    return table_bytes(sorted(entries.items()))


# -- ONNX ----------------------------------------------------------------------------------------------


def _onnx(folder: Path) -> list[Path]:
    from tests.support.onnx_models import MODELS, exported

    made = []
    for name, model in MODELS.items():
        with tf.Graph().as_default():
            exported(model, folder / f"{name}.onnx", 17)
        if (folder / f"{name}.onnx").stat().st_size < 20000:
            made.append(folder / f"{name}.onnx")
    return made


def _read_onnx(path: Path) -> None:
    tf.onnx.load(path).close()


def _rewrite_onnx(damage: Damage, donors: Donors, name: str, contents: bytes) -> bytes:
    import onnx

    model = onnx.ModelProto.FromString(contents)
    if not donors.messages:
        donors.add(onnx.ModelProto.FromString(contents))
    rng = damage.random
    nodes = model.graph.node
    if nodes and rng.random() < 0.3:
        match rng.choice(("input", "type", "attribute", "nest")):
            case "input":
                rng.choice(nodes).input[:] = [rng.choice(rng.choice(nodes).output), rng.choice(STRINGS)][
                    : rng.randint(0, 2)
                ]
            case "type":
                rng.choice(nodes).op_type = rng.choice([each.name for each in onnx.defs.get_all_schemas()])
            case "attribute":
                node, other = rng.choice(nodes), rng.choice(nodes)
                node.attribute.extend(list(other.attribute))
            case _:
                inner = nodes.add(op_type="If", input=[nodes[0].input[0]], output=["nested"])
                for _ in range(rng.choice((1, 20))):
                    for branch in ("then_branch", "else_branch"):
                        graph = inner.attribute.add(name=branch, type=5).g
                        graph.output.add(name="inner")
                        following = graph.node.add(op_type="If", input=[nodes[0].input[0]], output=["inner"])
                    inner = following
    else:
        damage.message(model, donors)
    return bytes(model.SerializeToString())


KINDS = {
    "graph": FileKind(_golden_graphs, _read_graph, as_message(GraphDef, *GRAPH_EDITS)),
    "control flow": FileKind(_control_flow, _read_graph, as_message(GraphDef, *GRAPH_EDITS), few=40),
    "text graph": FileKind(_as_text, _read_text, as_message(GraphDef, *GRAPH_EDITS, text=True), few=40),
    "own graph": FileKind(_own_graphs, _read_graph, _rewrite_json),
    "meta graph": FileKind(_metas, _read_meta, as_message(MetaGraphDef, *META_EDITS)),
    "text meta graph": FileKind(_text_metas, _read_meta, as_message(MetaGraphDef, *META_EDITS, text=True), few=25),
    "own meta graph": FileKind(_old_meta, _read_meta, _rewrite_json),
    "saved model 1": FileKind(_saved("references", "resources"), _read_saved, _rewrite_saved, _in_saved, few=60),
    "saved model 2": FileKind(_saved("convolutions", "functions"), _read_saved, _rewrite_saved, _in_saved),
    "own saved model": FileKind(_old_saved, _read_saved, _rewrite_saved, _in_saved),
    "checkpoint V1": FileKind(_slices, _read_checkpoint, _rewrite_checkpoint, _beside),
    "checkpoint V2": FileKind(_bundle, _read_checkpoint, _rewrite_checkpoint, _beside),
    "own checkpoint": FileKind(_arrow, _read_checkpoint, _rewrite_checkpoint, _beside),
    "safetensors": FileKind(_safetensors, _read_checkpoint, _rewrite_checkpoint),
    "checkpoint state": FileKind(_state, lambda path: get_checkpoint_state(path.parent), inspected=False),
    "onnx": FileKind(_onnx, _read_onnx, _rewrite_onnx),
}
