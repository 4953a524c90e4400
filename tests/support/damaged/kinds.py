"""Files of each kind that is read, damaged at random: that they give what they gave, or one clear error.

    check_damaged(KINDS["graph"], folder, range(300))

Reading also takes no more memory than the file accounts for, ends, and reaches for nothing outside of its folder.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import re
import resource
import shutil
import signal
import sys
import tarfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import tfray as tf
from tests.support import GOLDEN, ROOT
from tests.support.damaged.damage import STRINGS, Damage, Donors
from tests.support.graphs.control_flow_graphs import read_golden_graphs
from tests.support.traced_memory import ResidentPeak, status_bytes
from tfray.cli import main
from tfray.errors import OpError
from tfray.exchange.op_table import _lines
from tfray.formats.bundles.saved_slices import SavedTensorSlices
from tfray.formats.bundles.sorted_table import read_table, table_bytes
from tfray.formats.bundles.tensor_bundle import BundleEntry, BundleHeader
from tfray.formats.checkpoint import Manifest, data_name
from tfray.formats.checkpoint_folder import write_manifest
from tfray.formats.checkpoint_shard import Piece, checksum, write_shard
from tfray.formats.graph_proto import GraphDef
from tfray.formats.message import message_of_file
from tfray.formats.meta_graph_proto import MetaGraphDef, QueueRunnerDef, SavedModel, VariableDef
from tfray.formats.open_checkpoint import open_checkpoint, verify_checkpoint
from tfray.formats.safetensors import save_safetensors
from tfray.training.checkpoints.checkpoint_management import get_checkpoint_state

ALLOWANCE = 16 << 20
"""16 MiB: what reading takes besides twice the file. These files are small, and each operation of a graph is some 4 KiB
of objects, whatever it is in the file. One may declare 32,768 outputs, of 400 bytes each; and the last of several
elements of a constant may stand for the rest of 4 MiB."""

CALLS = 100 << 20
"""100 MiB: what reading takes besides where functions call one another so often that it is refused at last."""

ROOM = 1 << 30
"""1 GiB of addresses: what takes more fails at once, and the machine lives on."""

SECONDS = 5.0
"""Of processor time, for a file that is read in a hundredth of it."""

INTERNAL = re.compile(
    r"\b((Key|Index|Attribute|Assertion|Recursion|UnicodeDecode|UnicodeEncode|Type|Value|Memory|Decode|Overflow|"
    r"ZeroDivision|UnboundLocal|struct\.)[eE]rror|StopIteration)\b"
    r"|to unpack|invalid literal|object has no|unhashable|list index|positional arg|keyword arg|NoneType|object is"
)
"""Python's names of errors, which say nothing to a person who has a file."""

VAGUE = re.compile("a part of it is not what belongs there")
"""What is said where no check has found what is wrong."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        prepare: Writes an intact one of each into a folder. Returns them, each as the argument of `read`.
        read: Reads one.
        victims: The files of one that may be damaged.
        rewrite: Damages the contents of a file, below its form: given `Damage`, what it may take from others, the
            file's name, and its contents.
        inspected: Whether ``tfray inspect`` reads it.
        few: How many are read in a second or two.
    """

    prepare: Callable[[Path], list[Path]]
    read: Callable[[Path], object]
    rewrite: Callable[[Damage, Donors, str, bytes], bytes] = lambda damage, donors, name, contents: contents
    victims: Callable[[Path], list[Path]] = lambda path: [path]
    inspected: bool = True
    few: int = 100


class NotClear(AssertionError):
    """What a damaged file gave was no clear error."""


class TooSlow(BaseException):
    """Reading takes too long."""


@dataclass
class Results:
    """What damaged files gave.

    Attributes:
        errors: How many gave which kind of error; those that could be read are under ``read``.
        vague: How many errors say only that something is wrong with a part.
        peak: The most memory that one took, in bytes; and that over what it may take.
        longest: Processor time of the longest, in seconds.
    """

    errors: Counter[str] = field(default_factory=Counter)
    vague: int = 0
    peak: int = 0
    share: float = 0.0
    longest: float = 0.0


class Damaged:
    """Intact files of a kind in a folder, to be damaged one after the other.

    Args:
        kind: The kind.
        folder: An empty folder.
    """

    def __init__(self, kind: FileKind, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.files = kind.prepare(folder)
        self.donors = Donors()
        sizes = [max((each.stat().st_size for each in kind.victims(path)), default=1) for path in self.files]
        self._weights = [1 / (1000 + size) for size in sizes]  # large ones take longer, and have little else in them
        self.results = Results()
        self._seen: set[Path] = set()

    def check(self, seed: str) -> None:
        """Damage a file and read it. Raises `NotClear` unless it gives what it may."""
        damage = Damage(seed)
        path = damage.random.choices(self.files, self._weights)[0]
        if path not in self._seen:
            self._seen.add(path)
            self.kind.read(path)  # what is loaded once is not the damaged file's
        victim = damage.random.choice(self.kind.victims(path))
        contents = victim.read_bytes()
        changed = contents
        if damage.random.random() < 0.75:
            changed = self.kind.rewrite(damage, self.donors, victim.name, contents)
        if changed == contents or damage.random.random() < 0.1:
            changed = damage.octets(changed)
        allowed = 2 * len(changed) + ALLOWANCE
        victim.write_bytes(changed)
        started = time.process_time()
        try:
            with _limited(self.folder):
                result, text, peak = _read(
                    self.kind, path, inspect=self.kind.inspected and damage.random.random() < 0.1
                )
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            (self.folder.parent / "failed").write_bytes(changed)
            raise NotClear(f"{seed}: {victim.name}: {type(error).__name__}: {error}") from error
        finally:
            victim.write_bytes(contents)
        spent = time.process_time() - started
        allowed += CALLS if "call one another" in text else 0
        self.results.vague += VAGUE.search(text) is not None
        self.results.errors[result] += 1
        self.results.peak = max(self.results.peak, peak)
        self.results.share = max(self.results.share, peak / allowed)
        self.results.longest = max(self.results.longest, spent)
        if peak > allowed:
            raise NotClear(
                f"{seed}: {victim.name}: {peak} bytes of memory for a file of {len(changed)}, {allowed} allowed"
            )
        if spent > SECONDS:
            raise NotClear(f"{seed}: {victim.name}: {spent:.1f} s")


def check_damaged(kind: FileKind, folder: Path, numbers: Iterable[int]) -> Results:
    """Damage files of a kind, one for each number. Raises `NotClear` at the first that does not give what it may."""
    damaged = Damaged(kind, folder)
    for number in numbers:
        damaged.check(str(number))
    return damaged.results


def _read(kind: FileKind, path: Path, inspect: bool = False) -> tuple[str, str, int]:
    """Read a file; the kind of its error, what it says, and the memory that it took."""
    peak = ResidentPeak()
    if inspect:
        return *_inspect(path), peak.bytes()
    try:
        kind.read(path)
        return "read", "", peak.bytes()
    except OpError as error:
        found = peak.bytes()
        check_clear(str(error))
        return type(error).__name__, str(error), found


def _inspect(path: Path) -> tuple[str, str]:
    shown = CliRunner().invoke(main, ["inspect", str(path)])
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    if shown.exit_code:
        if not shown.output.startswith("tfray: "):
            raise NotClear(f"exit code {shown.exit_code}, {shown.output!r}")
        check_clear(shown.output)
    return f"inspect: exit code {shown.exit_code}", shown.output if shown.exit_code else ""


def check_clear(text: str) -> None:
    """Raise `NotClear` for a message that tells of Python rather than of the file, or that is none."""
    if "fits into memory" in text:
        raise NotClear(f"a size that was not checked before memory was asked for: {text[:2000]!r}")
    found = INTERNAL.search(text)
    if found or not text.strip() or len(text) > 8000:
        raise NotClear(f"no clear message: {text[:2000]!r}")
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in text):
        raise NotClear(f"a message with control characters: {text[:2000]!r}")


# -- limits --------------------------------------------------------------------------------------------

_guarded: list[str] = []
"""The folder that is read from now; empty when anything goes."""
_reached: list[str] = []

_RUNS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "pickle.find_class",
         "socket.connect", "socket.bind", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.link",
         "os.symlink", "shutil.rmtree", "ctypes.dlopen", "marshal.load")  # fmt: skip


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _guarded:
        return
    if event in _RUNS:
        _reached.append(f"{event}{args}")
    elif event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(args[0]))
        writes = (isinstance(args[1], str) and set(args[1]) & set("wax+")) or (
            isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if not path.startswith((_guarded[0], "/proc/self/")) and (writes or not path.startswith(_CODE)):
            _reached.append(f"open {path}")


_CODE = (str(ROOT), sys.prefix, os.path.realpath(sys.prefix), sys.base_prefix, os.path.dirname(os.__file__),
         "/sys", "/dev", "/usr", "/lib", "/etc/mime")  # fmt: skip
"""Where Python's own modules and libraries are read from when they are first needed."""


@functools.cache
def _install_audit() -> None:
    sys.addaudithook(_audit)  # for good: it does nothing while nothing is guarded


@contextlib.contextmanager
def _limited(folder: Path):
    """Within it reading ends soon, and nothing is opened outside of the folder, written or started."""

    def stop(number: int, frame: Any) -> None:
        raise TooSlow(f"more than {SECONDS} s")

    _install_audit()
    before = signal.signal(signal.SIGVTALRM, stop)
    most, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (status_bytes("VmSize") + ROOM, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    _reached.clear()
    _guarded.append(str(folder))
    try:
        yield
    finally:
        _guarded.clear()
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if _reached:
        raise NotClear(f"reading reached for {_reached}")


# -- messages ------------------------------------------------------------------------------------------


def as_message(declared: Any, *edits: Callable[[Damage, Any], None], text: bool = False) -> Any:
    """A rewrite of files that hold a message of a class; `edits` are changes of it that are more than of fields."""

    binary: dict[bytes, bytes] = {}  # to parse a text takes long

    def rewrite(damage: Damage, donors: Donors, name: str, contents: bytes) -> bytes:
        if contents not in binary:
            binary[contents] = message_of_file(declared, contents).SerializeToString()
            donors.add(declared.FromString(binary[contents]))
        message = declared.FromString(binary[contents])
        if edits and damage.random.random() < 0.4:
            damage.random.choice(edits)(damage, message)
        else:
            damage.message(message, donors)
        return str(message).encode() if text else message.SerializeToString()

    return rewrite


def graphs_in(message: Any) -> list[Any]:
    if hasattr(message, "meta_graphs"):
        return [each.graph_def for each in message.meta_graphs]
    return [message.graph_def if hasattr(message, "graph_def") else message]


def _bodies(message: Any) -> list[Any]:
    graph = graphs_in(message)[0]
    return [graph.node, *(each.node_def for each in graph.library.function if each.node_def)]


def rewired(damage: Damage, message: Any) -> None:
    """Operations that read others, later ones, themselves, or what is not there."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    for _ in range(rng.choice((1, 2, 5))):
        node, other = rng.choice(nodes), rng.choice(nodes)
        index = rng.choice((0, 1, 2, 99, 1 << 40))
        text = rng.choice((other.name, f"^{other.name}", f"{other.name}:{index}", node.name, f"^{node.name}",
                           f"{other.name}:output:0", *STRINGS[:16]))  # fmt: skip
        if node.input and rng.random() < 0.8:
            node.input[rng.randrange(len(node.input))] = text
        else:
            node.input.append(text)


def of_another_type(damage: Damage, message: Any) -> None:
    """Operations of another type, with the attributes and inputs that they had."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    for _ in range(rng.choice((1, 1, 3))):
        rng.choice(nodes).op = rng.choice(_types()) if rng.random() < 0.6 else rng.choice(nodes).op


@functools.cache
def _types() -> list[str]:
    return [*sorted(_lines()), "Tfray>RegionInput", "Tfray>Const", "Tfray>", "NoSuchType"]


def attributes_mixed(damage: Damage, message: Any) -> None:
    """Attributes with the values of others, of any kind."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    values = [node.attr[name] for node in nodes for name in sorted(node.attr)]
    for _ in range(rng.choice((1, 2, 6))):
        node = rng.choice(nodes)
        if node.attr and values:
            node.attr[rng.choice(sorted(node.attr))].CopyFrom(rng.choice(values))


def names_mixed(damage: Damage, message: Any) -> None:
    """Operations with names of others, or odd ones; readers follow, or do not."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    node = rng.choice(nodes)
    to = rng.choice(
        (rng.choice(nodes).name, rng.choice(STRINGS), node.name + "/", f"{node.name}/read", node.name.upper())
    )
    if rng.random() < 0.5:
        for each in nodes:
            each.input[:] = [to if text == node.name else text for text in each.input]
    node.name = to


def functions_nested(damage: Damage, message: Any) -> None:
    """Functions that call one another: in circles, deep, or each the next one several times."""
    rng = damage.random
    graph = graphs_in(message)[0]
    count, width = rng.choice(((1, 1), (2, 1), (3, 2), (40, 1), (200, 1), (30, 2), (9, 10), (60, 2)))
    circle = rng.random() < 0.3
    caller = rng.choice(("call", "StatefulPartitionedCall", "While", "If"))
    for index in range(count):
        function = graph.library.function.add()
        function.signature.name = f"nest_{index}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        inner = f"nest_{(index + 1) % count if circle else index + 1}"
        text = "x"
        if circle or index + 1 < count:
            for call in range(width):
                node = function.node_def.add(name=f"n{call}", input=[text])
                _make_call(node, caller, inner)
                text = f"n{call}:output:0"
        function.ret["y"] = text
    graph.node.add(name="nest_x", op="Placeholder").attr["dtype"].type = 1
    _make_call(graph.node.add(name="nest_call", input=["nest_x"]), caller, "nest_0")
    if hasattr(message, "meta_graphs"):
        for signature in message.meta_graphs[0].signature_def.values():
            for info in signature.outputs.values():
                info.name = "nest_call:0"


def _make_call(node: Any, caller: str, function: str) -> None:
    if caller == "call":
        node.op = function
        return
    node.op = caller
    node.attr["T" if caller == "While" else "Tin"].list.type.append(1)
    node.attr["Tout"].list.type.append(1)
    node.attr["Tcond"].type = 1
    if caller == "If":
        node.input.append(node.input[0])
    for name in {"While": ("cond", "body"), "If": ("then_branch", "else_branch")}.get(caller, ("f",)):
        node.attr[name].func.name = function


def sizes_declared(damage: Damage, message: Any) -> None:
    """Constants, and shapes anywhere, with sizes that are not theirs."""
    rng = damage.random
    nodes = rng.choice(_bodies(message))
    sizes = (0, 1, 2, 1 << 10, 1 << 20, 1 << 24, 1 << 28, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -1, -5)
    values = [value for node in nodes for _, value in sorted(node.attr.items())]
    tensors = [value.tensor for value in values if value.HasField("tensor")]
    shapes = [tensor.tensor_shape for tensor in tensors]
    shapes += [value.shape for value in values if value.HasField("shape")]
    for _ in range(rng.choice((1, 2, 20))):
        shape = rng.choice(shapes) if shapes else nodes[0].attr["shape"].shape
        if shape.dim and rng.random() < 0.6:
            rng.choice(shape.dim).size = rng.choice(sizes)
        else:
            shape.dim.add(size=rng.choice(sizes))
    if tensors and rng.random() < 0.7:  # large numbers, which other operations take for sizes
        tensor = rng.choice(tensors)
        if tensor.dtype in (3, 9):
            kind = np.int32 if tensor.dtype == 3 else np.int64
            had = np.frombuffer(tensor.tensor_content, kind) if tensor.tensor_content else np.ones(1, kind)
            made = had.copy()
            made[rng.randrange(len(made)) if len(made) else slice(0, 0)] = rng.choice(
                (1 << 20, 1 << 28, (1 << 31) - 1, -1)
            )
            tensor.ClearField("int_val")
            tensor.tensor_content = made.tobytes()


GRAPH_EDITS = (rewired, of_another_type, attributes_mixed, names_mixed, functions_nested, sizes_declared)


COLLECTIONS = ["variables", "trainable_variables", "savers", "queue_runners", "global_step", "saved_model_main_op",
               "while_context"]  # fmt: skip


def collections_damaged(damage: Damage, message: Any) -> None:
    """Collections whose members are messages with other fields, or of another kind."""
    rng = damage.random
    meta = message.meta_graphs[0] if hasattr(message, "meta_graphs") else message
    names = sorted(meta.collection_def)
    for _ in range(rng.choice((1, 2))):
        if not names:
            return
        found = meta.collection_def[rng.choice(names)]
        if found.bytes_list.value and rng.random() < 0.7:
            at = rng.randrange(len(found.bytes_list.value))
            declared = QueueRunnerDef if rng.random() < 0.1 else VariableDef
            with contextlib.suppress(OpError):
                inner = declared.FromString(found.bytes_list.value[at])
                donors = Donors()
                donors.add(inner)
                damage.message(inner, donors)
                found.bytes_list.value[at] = inner.SerializeToString()
        else:
            found.CopyFrom(meta.collection_def[rng.choice(names)])
            meta.collection_def[rng.choice(COLLECTIONS)].CopyFrom(found)


def ends_damaged(damage: Damage, message: Any) -> None:
    """Savers, signatures, assets and tags that name what is not there, or is something else."""
    rng = damage.random
    meta = message.meta_graphs[0] if hasattr(message, "meta_graphs") else message
    names = [node.name for node in meta.graph_def.node] or [""]
    name = rng.choice((rng.choice(names), rng.choice(names) + ":0", rng.choice(names) + ":7", *STRINGS[:12]))
    infos = _infos(meta)
    match rng.choice(("saver", "signature", "asset", "main", "main")):
        case "saver":
            setattr(meta.saver_def, rng.choice(("filename_tensor_name", "save_tensor_name", "restore_op_name")), name)
        case "signature" if infos:
            rng.choice(infos).name = name
        case "asset":
            asset = (
                meta.asset_file_def.add() if not meta.asset_file_def or rng.random() < 0.5 else meta.asset_file_def[0]
            )
            asset.filename = rng.choice(("../../etc/passwd", "/etc/passwd", "..", "", ".", "a/b", "\0", "x" * 300))
            if rng.random() < 0.5:
                asset.tensor_info.name = name
        case _:
            meta.collection_def["saved_model_main_op"].node_list.value[:] = [name]


def _infos(meta: Any) -> list[Any]:
    """The inputs and outputs of all signatures."""
    found = []
    for _, signature in sorted(meta.signature_def.items()):
        found += [info for ends in (signature.inputs, signature.outputs) for _, info in sorted(ends.items())]
    return found


META_EDITS = (*GRAPH_EDITS, collections_damaged, ends_damaged)


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
    roots += [info.name for info in _infos(meta)]
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
