"""What an operation type is: signature, shape function, kernels and gradient, checked and registered.

The module `graph` imports this one, so this one cannot import `graph`: functions that take an `Operation` are declared
with `Any` in its place.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Lock
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.dtypes import DType
from tfray.framework.tensor_shape import UNKNOWN, TensorShape

Array = np.ndarray[Any, Any]
"""An array that a kernel takes or returns. CuPy's arrays and NumPy's scalars have the same methods and count too."""

ArrayModule = ModuleType
"""The module whose arrays a kernel computes with: ``numpy``, or ``cupy`` on a GPU."""

NumpyDType = np.dtype[Any]
"""The dtype of an array."""

NumpyDTypeLike = NumpyDType | type
"""The dtype of an array to make: a dtype, or a scalar type such as ``np.float32``."""

ShapeFunction = Callable[[Any], Sequence[TensorShape]]
"""From an `Operation`, its inputs and attributes set, to one static shape per output.

Raises `ValueError` when the input shapes do not fit together; the graph adds the operation's name."""

GradientFunction = Callable[..., Sequence[Any]]
"""``gradient(op, *d_outputs)``: one gradient (a Tensor, IndexedSlices or None) per input, built as graph.

A ``d_output`` is None where no gradient flows into that output."""

KernelFunction = Callable[..., Any]
"""``kernel(ctx, *arrays)``: one array; a sequence of arrays where several or a variadic output are declared;
None where none is."""


class StoredVariable(Protocol):
    """A variable on its device, as kernels get it for a handle."""

    array: Any
    """The value, None until it is initialised."""

    @property
    def name(self) -> str:
        """Name of the variable."""

    @property
    def lock(self) -> Lock:
        """Held by every update."""

    def read(self) -> Array:
        """The array itself. Raises `FailedPreconditionError` before initialisation."""


class KernelContext(Protocol):
    """What a kernel may know beyond its input arrays. One context per operation and plan.

    Attributes:
        kept: What the kernel keeps for later steps; None at first. Not for operations that read `step`.
    """

    kept: Any

    @property
    def xp(self) -> ArrayModule:
        """The array module: numpy, or cupy on a GPU."""

    @property
    def op_name(self) -> str:
        """Name of the operation in the graph."""

    @property
    def container(self) -> str:
        """The container that the program gives to the operation's resource, or ``""``: see `tf.container`."""

    @property
    def device(self) -> str:
        """Full name of the device."""

    @property
    def resources(self) -> Any:
        """The `ResourceContainer` of the device: variables and other state that sessions share."""

    @property
    def session_state(self) -> Any:
        """The `ResourceContainer` of the session on the device: random streams and other state that ends with it."""

    @property
    def step(self) -> Any:
        """The running `Step`; only for operations defined with ``uses_step=True`` or with regions that run in it."""

    def attr(self, name: str) -> Any:
        """The value of an attribute of the operation."""

    def region(self, name: str) -> Any:
        """Context manager that yields a region as a function of its inputs, which returns its outputs as a tuple."""

    def region_over_batch(self, name: str) -> Any:
        """A region of a function of elements for many of them at once, a `BatchFunction`; None if there is no way."""

    def output_dtype(self, index: int = 0) -> NumpyDType:
        """The NumPy dtype of an output."""

    def asarray(self, value: Any, dtype: Any = None) -> Array:
        """`value` as an array on this device."""

    def to_host(self, array: Array) -> Array:
        """`array` as a NumPy array."""


class Update(NamedTuple):
    """An update of a variable and its slots, as `Kernel.update` tells it.

    Attributes:
        formula: ``formula(xp, (t, u), gradient, variable, *slots, *scalars)`` calls ufuncs of `xp` with ``out=``, and
            takes the same course for all values.
        resources: The variable and its slots.
        gradient: The gradient, or what else the operation takes of their shape: its input ``grad`` or ``value``.
        scalars: The scalars of the formula.
    """

    formula: Callable[..., None]
    resources: Sequence[Any]
    gradient: Any
    scalars: Sequence[Any]


@dataclass(frozen=True)
class Kernel:
    """How one device type computes an operation.

    Attributes:
        function: ``function(ctx, *arrays)``.
        accepts_out: The function takes ``out=``, a buffer of the first output's shape and dtype (or None),
            fills it and returns it. The buffer shares no memory with the inputs, except for `may_overwrite`.
            Without `accepts_out` the outputs are assumed to share memory with the inputs, but for `makes_new`.
        may_overwrite: Indices of inputs whose memory ``out`` may be, when shape and dtype agree.
        ufunc: Name of the array module's ufunc that is the whole kernel: generated code calls it
            directly, ``ufunc(*arrays, out)``.
        infix: Python expression for the same on scalars, such as ``"{0} + {1}"``.
        inline: Python expression for the same where generated code knows the running ``step``, with the inputs by
            number and the attributes by name, such as ``"step.close({handle}, {0})"``. On a CPU a function may decide
            by the operation: ``{np.matmul}`` is a function of NumPy's, ``{out}`` the buffer to fill or None. It gives
            None where only the kernel will do. It spares what a kernel looks at before it begins, which takes longer
            than NumPy takes for a small array, where the shapes that are known say the same.
        elementwise: Whether an element of the output depends on the same element of each input alone, inputs being
            broadcast from their last dimension on. Such a kernel may be called on any part of the elements. A function
            decides by the operation.
        element_ns: About how many nanoseconds an element takes on a CPU when it is in the cache.
        element: For an elementwise kernel, an element of the output as an expression of those of the inputs, such as
            ``"maximum({0}, 0)"``, from which a loop is compiled (see `ops.kernels.element_loops`). A function gives it
            for an operation. None for a ufunc, whose name says it, and where there is none.
        update: For an optimizer's update by a dense gradient, ``update(ctx, *inputs)`` gives the `Update` that the
            function carries out. On a GPU, the updates of all variables are then one kernel.
        makes_new: Whether no result shares memory with an input although there is no `accepts_out`. A function decides
            by the operation.
        prepares: The index of an input, and ``prepare(ctx, array)``: the function takes what that gives in place of
            the array too. Where all turns of a loop take the same array, it is called once, before the first.
    """

    function: KernelFunction
    accepts_out: bool = False
    may_overwrite: tuple[int, ...] = ()
    ufunc: str | None = None
    infix: str | None = None
    inline: str | Callable[[Any], str | None] | None = None
    elementwise: bool | Callable[[Any], bool] = False
    element_ns: float = 0.2
    element: str | Callable[[Any], str] | None = None
    update: Callable[..., Update] | None = None
    makes_new: bool | Callable[[Any], bool] = False
    prepares: tuple[int, Callable[[KernelContext, Any], Any]] | None = None

    def gives_new(self, op: Any, index: int) -> bool:
        """Whether that result of an operation shares no memory with its inputs."""
        if self.accepts_out and not index:
            return True
        return self.makes_new(op) if callable(self.makes_new) else self.makes_new


_UFUNC_NS: Final = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log1p", "log2"), 1.8),
    **dict.fromkeys(("sin", "cos", "tanh", "arctan"), 2.5),
    **dict.fromkeys(("arcsin", "arccos", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "tan", "arctan2"), 8.0),
    **dict.fromkeys(("power", "float_power", "hypot", "logaddexp"), 10.0),
}
"""Nanoseconds an element of the ufuncs whose time is computing, and not waiting for memory; see `element_ns`."""


def ufunc_kernel(name: str, infix: str | None = None, arity: int = 2) -> Kernel:
    """A kernel that is one ufunc of the array module, named `name`, with `arity` inputs."""

    def kernel(ctx: KernelContext, *arrays: Array, out: Array | None = None) -> Array:
        return getattr(ctx.xp, name)(*arrays, out=out)

    kernel.__name__ = f"_{name}_kernel"
    overwrite = tuple(range(arity))
    return Kernel(kernel, True, overwrite, name, infix, elementwise=True, element_ns=_UFUNC_NS.get(name, 0.2))


def out_kernel(
    function: KernelFunction,
    may_overwrite: tuple[int, ...] = (),
    elementwise: bool | Callable[[Any], bool] = False,
    element_ns: float = 0.5,
    element: str | Callable[[Any], str] | None = None,
    inline: Callable[[Any], str | None] | None = None,
    prepares: tuple[int, Callable[[KernelContext, Any], Any]] | None = None,
) -> Kernel:
    """A kernel whose function takes ``out=`` (see `Kernel`). It is elementwise if `element` is given."""
    elementwise = elementwise or element is not None
    return Kernel(
        function,
        True,
        may_overwrite,
        inline=inline,
        elementwise=elementwise,
        element_ns=element_ns,
        element=element,
        prepares=prepares,
    )


def on_every_device(kernel: KernelFunction | Kernel) -> Mapping[str, Kernel]:
    """The same kernel, written against ``ctx.xp``, for CPU and GPU."""
    kernel = _as_kernel(kernel)
    return {"CPU": kernel, "GPU": kernel}


def on_cpu(kernel: KernelFunction | Kernel) -> Mapping[str, Kernel]:
    """A kernel for the CPU alone; with soft placement the operation goes there."""
    return {"CPU": _as_kernel(kernel)}


def _as_kernel(kernel: KernelFunction | Kernel) -> Kernel:
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


FLAT: Final[Any] = object()
"""What a gradient function gives for an input where the gradient is 0 everywhere: nothing is computed of it.

None says that the output does not depend on the input in a way that has a gradient; `tf.gradients` then gives None.
"""


def not_differentiable(op: Any, *d_outputs: Any) -> list[None]:
    """A gradient function: no gradient flows through the operation, which is no error."""
    return [None] * len(op.inputs)


@dataclass(frozen=True)
class Argument:
    """One declared input or output: ``"x: T"``, ``"values: T*"``, ``"parts: T*num_split"``.

    Attributes:
        name: The argument's name.
        type: A type variable of `OpDef.types` or an attribute's name, a dtype's name, or ``any``.
        count: None for exactly one tensor, ``""`` for any number, otherwise the attribute that counts them.
    """

    name: str
    type: str
    count: str | None

    @classmethod
    @cache  # many operations declare the same
    def parse(cls, text: str) -> Argument:
        match = re.fullmatch(r"(\w+): (\w+)(?:(\*)(\w*))?", text)
        if match is None:
            raise ValueError(f"argument {text!r} is not of the form 'name: type', 'name: type*' or 'name: type*count'")
        name, type_name, star, count = match.groups()
        return cls(name, type_name, count if star else None)


@dataclass(frozen=True)
class Reach:
    """What a kernel uses outside of its graph. To load a graph with such an operation, the user has to allow it.

    Attributes:
        kind: ``"files"`` or ``"python"``.
        path: Index of the input that holds the path, where one does.
        is_fed: Whether the caller feeds the path, as for a `Saver`. Such a path needs no permission.
        attr: The attribute that holds the path. If it is empty, the operation uses nothing.
    """

    kind: str
    path: int | None = None
    is_fed: bool = False
    attr: str | None = None


@dataclass(frozen=True)
class OpDef:
    """A type of operation. Frozen, and checked by `register`.

    Attributes:
        name: The type's name in graphs, TensorFlow's where it has one: ``MatMul``.
        inputs: Declared inputs, each ``"name: type"``. The type is a dtype name, ``any``, or a type variable:
            all inputs with the same variable have the same dtype, and the attribute of that name holds it.
            Only the last input may be variadic, ``"values: T*"``.
        outputs: Declared outputs in the same form. ``"parts: T*num_split"`` are as many as the attribute says;
            ``"values: Tout*"`` takes dtypes one by one from the list attribute ``Tout``.
        shape: The shape function.
        kernels: Device type to `Kernel`.
        gradient: The gradient function, or None for an operation through which no gradient flows.
        types: Type variable to the dtypes that it may be.
        host_inputs: Names of the inputs that kernels read on the host: axes, shapes, counts. On every device a kernel
            gets them as NumPy arrays or scalars. What is computed for them alone is computed on the host, so that
            nothing waits for the device (TensorFlow's ``HostMemory``; see `tfray.runtime.host_values`).
        shape_inputs: Names of the inputs of which kernels read the shape alone.
        attrs: Names of further attributes, each a plain value (number, string, bytes, DType, TensorShape,
            array, None, or a list or dictionary of these).
        later: Of these, the ones that came later, with the value that they have in graphs from before.
        stateful: Not a pure function of its inputs: never folded, merged or moved.
        access: ``"read"`` or ``"update"``: the first input is a resource, and the operation reads or updates it and
            every further input that is a resource. Within a step, reads come before updates unless dependencies say
            otherwise.
        blocking: May wait for another device or step, or for code of the user's. A plan's segment is left there if
            it has to wait. Its results share no memory with anything else, unless `keeps_inputs`.
        uses_step: The kernel reads ``ctx.step``.
        keeps_inputs: The kernel stores its input arrays beyond the call, or hands them to the user.
        reach: What it uses outside of the graph: files, or Python functions.
        forwards_input: Output 0 is input 0 unchanged: the operation may be left out of a compiled graph.
        regions: Names of the attributes that are regions (nested graphs). The last inputs of each region are the
            operation's last inputs. Before them come as many parameters as the attribute ``parameters`` says, if there
            is one. The operation is stateful, and accesses variables, as the operations in its regions do.
        defers_regions: Its regions run later, outside of the step that runs the operation: functions of datasets.
        over_batch: How it works on many elements at once (see `tfray.ops.kernels.batch_rules`); elementwise kernels do
            so without it. A stateful operation with it only reads what does not change while a batch is made.
        late: The attribute that may also be a tensor (see `register_late`): the type gets a variant
            that takes it as first input.
        shape_value: From an operation to its output 0 as a list with None for unknown entries, for operations
            from which shapes are computed; None when even the length is unknown.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: ShapeFunction
    kernels: Mapping[str, Kernel]
    gradient: GradientFunction | None = None
    types: Mapping[str, Sequence[DType]] = field(default_factory=lambda: MappingProxyType({}))
    host_inputs: tuple[str, ...] = ()
    shape_inputs: tuple[str, ...] = ()
    attrs: tuple[str, ...] = ()
    later: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    stateful: bool = False
    access: str | None = None
    blocking: bool = False
    uses_step: bool = False
    keeps_inputs: bool = False
    reach: Reach | None = None
    forwards_input: bool = False
    regions: tuple[str, ...] = ()
    defers_regions: bool = False
    over_batch: Callable[..., Any] | None = None
    late: str | None = None
    shape_value: Callable[[Any], list[int | None] | None] | None = None

    input_arguments: tuple[Argument, ...] = field(init=False)
    output_arguments: tuple[Argument, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_arguments", tuple(map(Argument.parse, self.inputs)))
        object.__setattr__(self, "output_arguments", tuple(map(Argument.parse, self.outputs)))

    @property
    def is_stateful(self) -> bool:
        """`stateful`, as TensorFlow calls it."""
        return self.stateful

    @property
    def returns_sequence(self) -> bool:
        """Whether kernels return a sequence of arrays: there are several outputs, or any number of them."""
        return len(self.output_arguments) > 1 or any(a.count is not None for a in self.output_arguments)

    def reads_on_host(self, index: int) -> bool:
        """Whether kernels read the input with that index on the host."""
        return self.input_arguments[min(index, len(self.inputs) - 1)].name in self.host_inputs

    def reads_shape_alone(self, index: int) -> bool:
        """Whether kernels read no more of the input with that index than its shape."""
        return self.input_arguments[min(index, len(self.inputs) - 1)].name in self.shape_inputs

    def kernel_for(self, device_type: str) -> Kernel | None:
        """The kernel for a device type, or None."""
        return self.kernels.get(device_type)


_FIXED_TYPES: Final = frozenset(dtype.name for dtype in dtypes.ALL) | {"any"}
_REGISTRY: Final[dict[str, OpDef]] = {}
_unloaded: list[str] = []
"""Modules that register more types. They are imported when a type is asked for that is not known yet."""


def load_later(module: str) -> None:
    """Import `module`, which registers types, only when an unknown type, or every type, is asked for."""
    _unloaded.append(module)


def _load_all() -> None:
    while _unloaded:
        importlib.import_module(_unloaded.pop())


def register(op_def: OpDef) -> OpDef:
    """Check an `OpDef` and make it known by its name. Returns it.

    Raises:
        ValueError: Another operation has that name, it has no kernel, or its signature is inconsistent.
    """
    if op_def.name in _REGISTRY:
        raise ValueError(f"operation type {op_def.name!r} is registered already")
    if not op_def.kernels:
        raise ValueError(f"operation type {op_def.name!r} has no kernel")
    if op_def.access not in (None, "read", "update"):
        raise ValueError(f"operation type {op_def.name!r}: access must be 'read' or 'update', not {op_def.access!r}")
    known = _FIXED_TYPES | set(op_def.types) | set(op_def.attrs)
    for argument in (*op_def.input_arguments, *op_def.output_arguments):
        if argument.type not in known:
            raise ValueError(f"operation type {op_def.name!r}: {argument.name} has undeclared type {argument.type!r}")
        if argument.count and argument.count not in op_def.attrs:
            raise ValueError(f"operation type {op_def.name!r}: {argument.name} is counted by no attribute")
    unknown = {*op_def.host_inputs, *op_def.shape_inputs} - {argument.name for argument in op_def.input_arguments}
    if unknown:
        raise ValueError(f"operation type {op_def.name!r} has no input {', '.join(sorted(unknown))}")
    if any(argument.count is not None for argument in op_def.input_arguments[:-1]):
        raise ValueError(f"operation type {op_def.name!r}: only the last input may be variadic")
    _REGISTRY[op_def.name] = op_def
    return op_def


def is_built_in(definition: OpDef) -> bool:
    """Whether a type is one of tfray's own, which every process knows."""
    return all(kernel.function.__module__.startswith("tfray.") for kernel in definition.kernels.values())


def adopt(definition: OpDef) -> None:
    """Register a type of another process in this one too. If its name is known here already, nothing changes."""
    _load_all()
    if definition.name not in _REGISTRY:
        register(definition)


def lookup(name: str) -> OpDef:
    """The `OpDef` of that name.

    Raises:
        KeyError: There is none; the message names close matches.
    """
    if name not in _REGISTRY:
        _load_all()
    try:
        return _REGISTRY[name]
    except KeyError:
        import difflib

        close = difflib.get_close_matches(name, _REGISTRY, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise KeyError(f"no operation type {name!r} is registered{hint}") from None


def registered_ops() -> Mapping[str, OpDef]:
    """Every registered operation type by name."""
    _load_all()
    return MappingProxyType(_REGISTRY)


# -- attributes that may be known only when a step runs ------------------------------------------------
#
# A program may give an attribute such as the axis of a concatenation as a tensor. Where the graph determines its value,
# that is the attribute, and the operation is as fast as with a number. Elsewhere `add_op` takes the operation's
# variant, in which it is the first input:
#
#     ConcatV2(values, axis=1)    ConcatV2ByAxis(axis, values)


def register_late(definition: OpDef) -> OpDef:
    """`register` for an operation with a late attribute: the variant is registered as well."""
    register(variant_of(definition))
    return register(definition)


def variant_name(definition: OpDef) -> str:
    """Name of the variant whose first input is the attribute."""
    return f"{definition.name}By{(definition.late or '').capitalize()}"


def variant_of(definition: OpDef) -> OpDef:
    """The operation with its late attribute as first input.

    Kernels and gradient are those of `definition`. A shape is what the shapes for all possible axes have in common.
    """
    attr = definition.late
    assert attr is not None
    return replace(
        definition,
        name=variant_name(definition),
        inputs=(f"{attr}: T{attr}", *definition.inputs),
        types={**definition.types, f"T{attr}": dtypes.INDICES},
        host_inputs=(attr, *definition.host_inputs),
        attrs=tuple(name for name in definition.attrs if name != attr),
        shape=lambda op: _common_shapes(definition, op),
        kernels={device: _reading(kernel, attr) for device, kernel in definition.kernels.items()},
        gradient=definition.gradient and (lambda op, *d_outputs: _gradient(definition, op, *d_outputs)),
        over_batch=None,
        shape_value=None,
        late=None,
    )


class _Seen:
    """An operation, or a kernel's context, as the functions of the definition without the input know it."""

    def __init__(self, seen: Any, attr: str, value: Any, inputs: Sequence[Any] = ()) -> None:
        self._seen = seen
        self._attr = attr
        self._value = value
        self.inputs = inputs

    def attr(self, name: str) -> Any:
        return self._value if name == self._attr else self._seen.attr(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)


def _reading(kernel: Kernel, attr: str) -> Kernel:
    function = kernel.function

    def read(ctx: KernelContext, value: Array, *arrays: Array, **out: Any) -> Any:
        try:
            return function(_Seen(ctx, attr, ctx.to_host(value).tolist()), *arrays, **out)
        except ValueError as error:
            raise InvalidArgumentError(f"{error} ({attr} {ctx.to_host(value).tolist()})") from error

    return replace(kernel, function=read, may_overwrite=tuple(index + 1 for index in kernel.may_overwrite))


def _gradient(definition: OpDef, op: Any, *d_outputs: Any) -> list[Any]:
    assert definition.late is not None and definition.gradient is not None
    value, *inputs = op.inputs
    return [None, *definition.gradient(_Seen(op, definition.late, value, inputs), *d_outputs)]


def _common_shapes(definition: OpDef, op: Any) -> list[TensorShape]:
    """Of each output, what its shapes for all axes agree in. Raises `ValueError` if no axis is possible."""
    assert definition.late is not None
    value, *inputs = op.inputs
    ranks = [tensor.shape.rank for tensor in inputs if tensor.shape.rank is not None]
    common: list[TensorShape] = []
    refusal: ValueError | None = None
    for axis in range(max([1, *ranks]) if ranks else 0):
        seen = _Seen(op, definition.late, [axis] if value.shape.rank == 1 else axis, inputs)
        try:
            shapes = definition.shape(seen)
        except ValueError as error:
            refusal = error
            continue
        common = (
            [a.most_specific_compatible_shape(b) for a, b in zip(common, shapes, strict=True)]
            if common
            else list(shapes)
        )
    if refusal is not None and not common:
        raise refusal
    return common or [UNKNOWN] * len(op.outputs)
