"""What TensorFlow keeps to itself, and programs import nevertheless."""

from __future__ import annotations

import importlib
import itertools
import re
import sys
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from tfray.absent_names import absent
from tfray.formats.message import Field, Message
from tfray.framework import device_spec
from tfray.framework.convert import convert_to_tensor
from tfray.framework.device_spec import DeviceSpec, canonical_name
from tfray.framework.dtypes import DTypeLike, int32, resource
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from tfray.framework.scopes import control_dependencies
from tfray.framework.sparse_tensor import SparseTensor, SparseTensorValue
from tfray.framework.tensor_shape import Dimension, TensorShape
from tfray.library.variables.variables import Variable
from tfray.ops.arrays.broadcast_ops import ones_like
from tfray.ops.arrays.construction_ops import range_
from tfray.ops.arrays.partition_ops import dynamic_stitch
from tfray.ops.arrays.shape_ops import cast, identity, rank, shape, size
from tfray.ops.math.rounding_ops import floormod
from tfray.ops.state.state_ops import read_variable
from tfray.options import ConfigProto
from tfray.runtime.device import cpu_device_count, local_device_names
from tfray.training.checkpoints.checkpoint_management import latest_checkpoint
from tfray.training.checkpoints.checkpoint_utils import load_checkpoint

_Decorated = TypeVar("_Decorated")

_MEMORY_OF_A_CPU = 256 << 20
"""What TensorFlow says of a CPU's memory, whatever the machine has."""


class DeviceAttributes(Message):
    """A device: ``name``, ``device_type`` (``CPU`` or ``GPU``), ``memory_limit`` in bytes, ``incarnation``."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "device_type", "string"),
        Field(4, "memory_limit", "int64"),
        Field(6, "incarnation", "uint64"),
        Field(7, "physical_device_desc", "string"),
    )


def list_local_devices(session_config: ConfigProto | None = None) -> list[Any]:
    """The devices of this process, as `DeviceAttributes`.

    Args:
        session_config: Says by ``device_count`` how many there are to be; one CPU and all GPUs when None.
    """
    counts = session_config.device_count if session_config is not None else {}
    names = (
        name.partition("/device:")[2]
        for name in local_device_names(counts.get("CPU", cpu_device_count()), counts.get("GPU"))
    )
    return [
        DeviceAttributes(
            name=f"/device:{name}",
            device_type=name.partition(":")[0],
            memory_limit=_MEMORY_OF_A_CPU,
            incarnation=number,
        )
        for number, name in enumerate(names, start=1)
    ]


def with_dependencies(dependencies: Iterable[Any], output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor`, once the operations and tensors of `dependencies` are done. It keeps its shape and its device.

    Of the reference of a variable (what its method ``_ref`` returns) it is the value.
    """
    graph = get_default_graph()
    if not hasattr(output_tensor, "op"):
        output_tensor = convert_to_tensor(output_tensor)
    with (
        graph.name_scope(name or "control_dependency") as scope,
        graph.colocate_with(getattr(output_tensor, "values", output_tensor)),
        control_dependencies(list(dependencies)),
    ):
        is_reference = isinstance(output_tensor, Tensor) and output_tensor.dtype is resource
        return read_variable(output_tensor, scope) if is_reference else identity(output_tensor, name=scope)


def global_step_in_checkpoint(checkpoint_dir: Any) -> int:
    """The global step of a folder's latest checkpoint, 0 if there is none."""
    if (path := latest_checkpoint(checkpoint_dir)) is None:
        return 0
    values = load_checkpoint(path)
    return int(values.get_tensor(GraphKeys.GLOBAL_STEP)) if values.has_tensor(GraphKeys.GLOBAL_STEP) else 0


def convert_n_to_tensor(
    values: Iterable[Any], dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Tensor]:
    """Each of `values` as a tensor, as `tf.convert_to_tensor` makes them, with a number behind `name`."""
    names = (None if name is None else f"{name}_{index}" for index in itertools.count())
    return [convert_to_tensor(value, dtype, each, preferred_dtype) for value, each in zip(values, names, strict=False)]


def convert_n_to_tensor_or_indexed_slices(
    values: Iterable[Any], dtype: Any = None, name: str | None = None
) -> list[Tensor | IndexedSlices | None]:
    """As `convert_n_to_tensor`; `IndexedSlices` and None stay."""
    names = (None if name is None else f"{name}_{index}" for index in itertools.count())
    return [
        None if value is None else convert_to_tensor_or_indexed_slices(value, dtype, each)
        for value, each in zip(values, names, strict=False)
    ]


def is_sparse(tensor: Any) -> bool:
    """Whether `tensor` is a `SparseTensor`, or the value of one."""
    return isinstance(tensor, (SparseTensor, SparseTensorValue))


class TensorLike(ABC):  # noqa: B024 (nothing derives from it)
    """What stands for values in a graph: tensors, sparse ones, and rows with their indices."""


class CompositeTensor(ABC):  # noqa: B024 (TensorFlow's has no method that every subclass here would need)
    """A value that is made of several tensors, such as a sparse one."""


for _kind in (Tensor, SparseTensor, IndexedSlices):
    TensorLike.register(_kind)
for _kind in (SparseTensor, IndexedSlices):
    CompositeTensor.register(_kind)


def is_dense_tensor_like(t: Any) -> bool:
    """Whether `t` is a tensor or a variable."""
    return isinstance(t, (Tensor, Variable))


def unchanged(*args: Any, **kwargs: Any) -> Callable[[_Decorated], _Decorated]:
    """A decorator that changes nothing: what TensorFlow marks as public or deprecated with it is used as it is."""
    return lambda decorated: decorated


def get_name_scope() -> str:
    """The current name scope, without a slash at its end."""
    return get_default_graph().get_name_scope()


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """A name without the scope that it begins with; ``^`` and ``loc:@`` before it stay."""
    if not export_scope:
        return name
    for mark in ("^", "loc:@", ""):
        if name.startswith(f"{mark}{export_scope.rstrip('/')}/"):
            return mark + name[len(mark) + len(export_scope.rstrip("/")) :].lstrip("/")
    return name


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """A name within a scope; ``^`` and ``loc:@`` stay before it."""
    if not import_scope:
        return name
    mark = next(mark for mark in ("^", "loc:@", "") if name.startswith(mark))
    return f"{mark}{import_scope.rstrip('/')}/{name[len(mark) :]}"


def is_resource_variable(var: Any) -> bool:
    """Whether `var` is a variable: each has a handle, one made with ``use_resource=False`` as well."""
    return isinstance(var, Variable)


def executing_eagerly_outside_functions() -> bool:
    """Whether operations run at once: they never do."""
    return False


def inside_function() -> bool:
    """Whether operations go into the body of a function."""
    return bool(get_default_graph().building_function)


def in_graph_mode() -> bool:
    """Whether operations go into a graph: they always do."""
    return True


def no_context(*args: Any) -> None:
    """The context of an operation that is in a branch, a loop or a compiled cluster: there are none."""


def is_in_no_context(*args: Any) -> bool:
    """Whether an operation is in such a context: see `no_context`."""
    return False


ENABLE_CONTROL_FLOW_V2 = False
"""Whether branches and loops are to be functions. Programs set it; those of tfray are nested graphs in any case."""


class ShardContext(NamedTuple):
    """Over how many shards of a TPU a model runs: there are none."""

    number_of_shards: int | None = None


@contextmanager
def nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context in which nothing is different."""
    yield


def internal_convert_to_tensor(
    value: Any,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
    **_unused: Any,
) -> Tensor:
    """`tf.convert_to_tensor` with the arguments that functions of `tf.register_tensor_conversion_function` are given.

    Args:
        value: As there.
        dtype: Likewise.
        name: Likewise.
        as_ref: Not used: what is given is read.
        preferred_dtype: As there.
        dtype_hint: Likewise.
        **_unused: Accepted for TensorFlow 1's sake.

    Returns:
        The tensor.
    """
    return convert_to_tensor(value, dtype, name, preferred_dtype, dtype_hint)


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument with two names.

    Raises:
        ValueError: Both are given.
    """
    if old_value is not None and new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return new_value if old_value is None else old_value


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names of a module."""
    return [name for name in vars(sys.modules[module_name]) if not name.startswith("_")]


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None) -> None:
    """Nothing: names of a program's modules stay."""


def canonical_device(device: str | DeviceSpec | None) -> str:
    """The canonical form of the name of a device. Raises `ValueError` for what is none."""
    return canonical_name(str(device or ""))


def merge_device(spec: str | DeviceSpec | None) -> Callable[[Operation], str]:
    """A function for `tf.device` that asks for what `spec` says where nothing inside it asks for another."""
    device = canonical_device(spec)
    return lambda op: device_spec.merge_device(device, op.device)


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = int32) -> Tensor:
    """The shape of a tensor; where it is known, a constant."""
    return shape(input, name, out_type)


def rank_internal(input: Any, name: str | None = None, optimize: bool = True) -> Tensor:
    """The number of dimensions of a tensor, an int32 scalar; where it is known, a constant."""
    return rank(input, name)


def size_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = int32) -> Tensor:
    """The number of elements of a tensor, a scalar of dtype `out_type`; where it is known, a constant."""
    return size(input, name, out_type)


def shape_as_tensor(s: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    """A known shape as a vector. Raises `ValueError` for one with unknown sizes."""
    if not s.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {s}")
    return convert_to_tensor(s.as_list(), int32 if dtype is None else dtype, name=name or "shape_as_tensor")


def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """The shape of a vector; None for an unknown length."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix; None for unknown sizes."""
    return TensorShape([rows, cols])


def unknown_shape(rank: int | None = None, ndims: int | None = None) -> TensorShape:
    """A shape of which nothing is known, or only how many dimensions there are."""
    count = rank if ndims is None else ndims
    return TensorShape(None if count is None else [None] * count)


def reduced_shape(input_shape: Any, axes: Any) -> Tensor:
    """The shape, a vector, of what a reduction along `axes` gives that keeps them."""
    sizes, axes = cast(input_shape, int32), cast(axes, int32)
    count = size(sizes)
    return dynamic_stitch([range_(count), floormod(axes, count)], [sizes, ones_like(axes)])


_converted: Final[list[type]] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], tuple[Sequence[Any], Callable[[list[Any]], Any]]] | None = None,
    feed_function: Callable[[Any, Any], Sequence[tuple[Any, Any]]] | None = None,
    feed_function_for_partial_run: Callable[[Any], Sequence[Any]] | None = None,
) -> None:
    """Let sessions fetch and feed objects of a type that stand for tensors.

    Args:
        tensor_type: The type.
        fetch_function: Gives, of an object, what to fetch and the function from the list of its values to the result.
        feed_function: Gives, of an object and the value that it is fed, tensors with the values of each.
        feed_function_for_partial_run: Gives the tensors alone.

    Raises:
        ValueError: There are such functions of the type, or of one that derives from it.
    """
    kinds = [kind for kind in _converted if issubclass(kind, tensor_type)]
    if kinds:
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _converted.append(tensor_type)
    named = (
        ("_fetch_parts", fetch_function),
        ("_feed_pairs", feed_function),
        ("_feed_parts", feed_function_for_partial_run),
    )
    for name, function in named:
        if function is not None:
            setattr(tensor_type, name, lambda *args, function=function: function(*args))


_numbers: Final = itertools.count()


def uid() -> int:
    """A number that this process has not given before."""
    return next(_numbers)


def graph_of_inputs(op_input_list: Iterable[Any], graph: Any = None) -> Any:
    """The graph of tensors and operations; the default one if there are none.

    Raises:
        ValueError: They are of several graphs, or not of `graph`.
    """
    known = [given for given in op_input_list if getattr(given, "graph", None) is not None]
    for given in known:
        if graph is not None and given.graph is not graph:
            raise ValueError(f"{given!r} is not from the passed-in graph.")
        if given.graph is not known[0].graph:
            raise ValueError(f"{given!r} must be from the same graph as {known[0]!r}.")
    return graph or (known[0].graph if known else get_default_graph())


def do_not_convert(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator that changes nothing: nothing converts functions. It is also called for one."""
    return func if callable(func) else unchanged()


class SourceTransformer:
    """What classes that rewrite Python's source derive from. They can be defined, and not made: nothing rewrites it.

    Raises:
        AttributeError: One is made. The message says what there is instead.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise absent("python.autograph.pyct.transformer.Base", [])


STANDARD_PS_OPS: Final = ("Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "VarHandleOp")
"""Operation types that TensorFlow puts on parameter servers, and some of tfray's."""


class ControlFlowContext:
    """The context of a branch, a loop or a compiled cluster: see `no_context`."""


class PredictionKeys:
    """What the predictions of ready-made estimators are called."""

    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"
    TOP_K = "top_k"


class MetricKeys:
    """What the metrics of ready-made estimators are called."""

    ACCURACY = "accuracy"
    ACCURACY_AT_THRESHOLD = "accuracy/positive_threshold_%g"
    ACCURACY_BASELINE = "accuracy_baseline"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    LABEL_MEAN = "label/mean"
    LOSS = "loss"
    LOSS_MEAN = "average_loss"
    LOSS_REGULARIZATION = "regularization_loss"
    PRECISION = "precision"
    PRECISION_AT_THRESHOLD = "precision/positive_threshold_%g"
    PREDICTION_MEAN = "prediction/mean"
    RECALL = "recall"
    RECALL_AT_THRESHOLD = "recall/positive_threshold_%g"


class LazyLoader(ModuleType):
    """A module that is imported once something of it is asked for.

    Args:
        local_name: What `parent_module_globals` is to call it.
        parent_module_globals: The names of the module that uses it.
        name: The path by which it is imported.
    """

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str) -> None:
        super().__init__(name)
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals

    def _load(self) -> ModuleType:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> list[str]:
        return dir(self._load())


INVALID_SCOPE_CHARACTERS: Final = re.compile(r"[^-_/.A-Za-z0-9]")
"""What names of scopes cannot have."""


class NoTPU:
    """A class for TPUs: programs may import it. Raises `AttributeError` when one is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise absent("tpu.Topology", [])


def get_json_type(obj: Any) -> Any:
    """What `json` writes of an object that it does not know: as ``default`` of `json.dumps`.

    Layers and models become their class and configuration; arrays and shapes lists; functions and classes their names.

    Raises:
        TypeError: It is nothing of these.
    """
    if hasattr(obj, "get_config"):
        return {"class_name": type(obj).__name__, "config": obj.get_config()}
    if isinstance(obj, np.ndarray):
        return obj.tolist()
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, TensorShape):
        return obj.as_list()
    if isinstance(obj, Dimension):
        return obj.value
    if callable(obj) and hasattr(obj, "__name__"):
        return obj.__name__
    raise TypeError("Not JSON Serializable:", obj)
