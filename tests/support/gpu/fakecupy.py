"""A stand-in for CuPy that computes with NumPy, for machines without a GPU.

Arrays of this module wrap NumPy arrays and behave as CuPy's do wherever CuPy is stricter:

* every name, keyword and arity is looked up in the *installed* CuPy (which imports and shows its signatures without
  a driver or CUDA's libraries), ufuncs only take CuPy's loops;
* NumPy arrays are refused where CuPy refuses them; an implicit copy to the device (an index) is counted;
* `numpy.asarray(x)` raises, `range(x)` raises (no `__index__`; slices of CuPy arrays take them, and wait), results of
  rank 0 stay arrays, `flags` know contiguity alone;
* there are no strings, objects or dates;
* what waits for the device is counted with the line that asked for it: `get`, `item`, `int`, `float`, `bool`,
  `tolist`, and the functions whose result has a size that depends on values (`nonzero`, masks, `unique`, ...);
* every call of a function, ufunc or method that would launch kernels is counted.

Behaviour follows CuPy 14.2 (`cupy/_core/core.pyx`, `_kernel.pyx`, `_routines_indexing.pyx`). What it does not model:
the numerics of CUDA libraries, races, memory limits, streams. It proves Python paths, nothing about kernels.

Use: ``xp = fakecupy.install()`` puts the stand-ins for `cupyx.scipy.*` in place and returns the array module;
``recorder`` holds the counts. `install` must run before `cupyx` is imported by what is tested.
"""

from __future__ import annotations

import collections
import inspect
import os
import sys
import threading
import types
import warnings
from contextlib import nullcontext
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.special

from tests.support.gpu import fakecublas, fakegraphs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cupy as real
    from cupy_backends.cuda import libs

    try:
        from cupy_backends.cuda.libs import cublas  # noqa: F401
    except ImportError:  # not installed: CuPy's modules that name it show their signatures all the same
        libs.cublas = types.ModuleType("cublas")
    import cupyx.scipy.linalg
    import cupyx.scipy.sparse
    import cupyx.scipy.special
    from cupyx._ufunc_config import get_config_linalg

REAL_MODULES = {module.__name__: module for module in (cupyx.scipy.linalg, cupyx.scipy.sparse, cupyx.scipy.special)}
_SHOWN = os.environ.get("CUDA_VISIBLE_DEVICES")
GPUS = int(os.environ.get("FAKE_GPUS", "2")) if _SHOWN is None else len(_SHOWN.split(","))
"""How many devices the process sees. CUDA's own variable goes first: Ray shows its actors their GPUs by it."""


class _Current(threading.local):
    """The devices that a thread has made current, the latest last."""

    def __init__(self) -> None:
        self.devices = [0]


_current = _Current()

SCALARS = (bool, int, float, complex, np.generic)


# -- what is counted -----------------------------------------------------------------------------------


class Recorder:
    """Counts of what a GPU would do, each with the line of tfray that asked for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.calls: collections.Counter = collections.Counter()  # name -> calls that launch kernels
        self.waits: collections.Counter = collections.Counter()  # (what, place) -> times the host waited
        self.uploads: collections.Counter = collections.Counter()  # (how, place) -> copies to the device
        self.notes: collections.Counter = collections.Counter()  # other deviations, e.g. a dtype that differs
        self.upload_bytes = self.download_bytes = 0

    @staticmethod
    def place() -> str:
        """The line of tfray that asked; "outside" where that is a test or this harness."""
        frame = sys._getframe(2)
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith("tests.") and module != __name__:
                break
            if module.startswith("tfray.") and module != "tfray.runtime.device":
                return f"{module.removeprefix('tfray.').replace('.', '/')}.py:{frame.f_lineno}"
            frame = frame.f_back
        return "outside"

    def call(self, name: str) -> None:
        self.calls[name] += 1

    def wait(self, what: str, nbytes: int = 0) -> None:
        fakegraphs.waits()
        self.waits[what, self.place()] += 1
        self.download_bytes += nbytes

    def upload(self, how: str, nbytes: int) -> None:
        fakegraphs.meets_host()
        self.uploads[how, self.place()] += 1
        self.upload_bytes += nbytes

    def note(self, what: str) -> None:
        self.notes[what, self.place()] += 1

    def cost(self) -> dict[str, int]:
        """`report.COUNTS`."""
        products = sum(self.calls[name] for name in PRODUCTS)
        return {
            "kernels": self.calls.total() - products,
            "GEMMs": products,
            "waits": self.waits.total(),
            "uploads": self.uploads.total(),
        }


PRODUCTS = ("matmul", "dot", "vdot", "inner", "tensordot", "einsum", "gemmStridedBatchedEx")
"""Calls that cuBLAS carries out."""

recorder = Recorder()

# -- dtypes --------------------------------------------------------------------------------------------

_CHARS = {"E": np.dtype(ml_dtypes.bfloat16)}


def _dtype_of(char: str) -> np.dtype:
    return _CHARS.get(char) or np.dtype(char)


def _check_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc" or dtype == ml_dtypes.bfloat16 or (dtype.kind == "V" and dtype.fields):
        return dtype
    raise ValueError(f"Unsupported dtype {dtype}")


def _as_cupy_scalar(value: Any) -> bool:
    return isinstance(value, SCALARS) and not isinstance(value, (np.str_, np.bytes_, np.void))


# -- arrays --------------------------------------------------------------------------------------------


class Flags:
    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata

    def __getitem__(self, name: str) -> bool:
        return {"C_CONTIGUOUS": self.c_contiguous, "F_CONTIGUOUS": self.f_contiguous, "OWNDATA": self.owndata}[name]

    @property
    def forc(self) -> bool:
        return self.c_contiguous or self.f_contiguous


class MemoryPointer:
    def __init__(self, array: np.ndarray) -> None:
        self.ptr = array.__array_interface__["data"][0]


def _signature_of_method(name: str) -> inspect.Signature | None:
    line = (getattr(real.ndarray, name).__doc__ or "").strip().split("\n")[0]
    if "(" not in line:
        return None
    text = (
        line[line.index("(") : line.rindex(")") + 1]
        if " -> " not in line
        else line[line.index("(") : line.index(" -> ")]
    )
    text = (
        text.replace("_ndarray_base ", "").replace("Py_ssize_t ", "").replace("int axis", "axis").replace("bint ", "")
    )
    try:
        space: dict[str, Any] = {}
        exec(f"def f{text}: pass", space)
        return inspect.signature(space["f"])
    except SyntaxError:
        return None


METHODS = {
    name: _signature_of_method(name)
    for name in dir(real.ndarray)
    if not name.startswith("_") and callable(getattr(real.ndarray, name))
}
VIEWS = {"reshape", "transpose", "swapaxes", "squeeze", "view", "diagonal", "ravel"}
"""Methods that launch nothing (or, for a copy that reshape needs, are counted apart)."""
WAITING_METHODS = {"nonzero", "compress"}


class ndarray:
    """An array on the pretended device."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray, base: ndarray | None = None) -> None:
        self._host = host
        self.base = base
        self._device_id = _current.devices[-1] if base is None else base._device_id

    def _seen(self, host: np.ndarray) -> ndarray:
        """Another view of this array's memory, which stays on its device whichever is the current one."""
        return ndarray(host, self if self.base is None else self.base)

    # attributes -------------------------------------------------------------------------------------

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: Flags(self._host.flags))
    data = property(lambda self: MemoryPointer(self._host))
    device = property(lambda self: Device(self._device_id))
    T = property(lambda self: self._seen(self._host.T))
    mT = property(lambda self: self._seen(self._host.mT))

    @shape.setter
    def shape(self, value: Any) -> None:
        self._host.shape = value

    @property
    def real(self) -> ndarray:
        return self._seen(self._host.real)

    @real.setter
    def real(self, value: Any) -> None:
        recorder.call("real.setter")
        self._host.real = _operand(value)

    @property
    def imag(self) -> ndarray:
        return self._seen(self._host.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        recorder.call("imag.setter")
        self._host.imag = _operand(value)

    @property
    def flat(self) -> Any:
        raise NotImplementedError("the stand-in has no flatiter")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False), "version": 3}

    # to the host ------------------------------------------------------------------------------------

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        recorder.wait("get", self.nbytes)
        if out is not None:
            out[...] = self._host
            return out
        return self._host.copy(order)

    def _scalar(self, what: str) -> Any:
        recorder.wait(what, self.nbytes)
        return self._host

    def item(self) -> Any:
        return self._scalar("item").item()

    def tolist(self) -> Any:
        return self._scalar("tolist").tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self._scalar("tobytes").tobytes(order)

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size > 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous.")
        return bool(self._scalar("bool()").item())

    def __repr__(self) -> str:
        return repr(self._scalar("repr"))

    def __format__(self, spec: str) -> str:
        return format(self._scalar("format").item() if self.ndim == 0 else self._host, spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __reduce__(self) -> Any:
        recorder.wait("pickle", self.nbytes)
        return asarray, (self._host,)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    # items ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        recorder.note("iteration over an array")
        return (self[i] for i in range(self.shape[0]))

    def __getitem__(self, key: Any) -> ndarray:
        parts, is_advanced, has_mask = _index(key)
        if is_advanced:
            _check_device(self)
            recorder.call("getitem")
            if has_mask:
                recorder.wait("mask index")
        with np.errstate(all="ignore"):
            try:
                value = self._host[parts]
            except IndexError as error:
                if not is_advanced or has_mask or "out of bounds" not in str(error):
                    raise
                recorder.note("index out of range: CuPy wraps it around")
                value = self._host[_wrapped(parts, self._host)]
        return self._seen(np.asarray(value))

    def __setitem__(self, key: Any, value: Any) -> None:
        parts, is_advanced, _ = _index(key)
        _check_device(self)
        if is_advanced:
            _check_apart(self, value)
        recorder.call("scatter" if is_advanced else "copy")
        if isinstance(value, np.ndarray):
            if value.ndim:
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        elif not isinstance(value, ndarray) and not _as_cupy_scalar(value) and np.ndim(value):
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        host = _operand(value) if isinstance(value, ndarray) else value
        try:
            self._host[parts] = host
        except IndexError as error:
            if not is_advanced or "out of bounds" not in str(error):
                raise
            recorder.note("index out of range: CuPy wraps it around")
            self._host[_wrapped(parts, self._host)] = host

    # functions of NumPy on this array ---------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        function = getattr(MODULE, name, None) if hasattr(real, name) else None
        if function is None:
            return NotImplemented
        if "out" in kwargs:
            kwargs["out"] = kwargs["out"][0] if len(kwargs["out"]) == 1 else kwargs["out"]
        if name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            inputs = tuple(x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs)
        return (function if method == "__call__" else getattr(function, method))(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        target: Any = MODULE
        try:
            for part in [*func.__module__.split(".")[1:], func.__name__]:
                target = getattr(target, part)
        except AttributeError:
            return NotImplemented
        return target(*args, **kwargs)

    # methods that differ from NumPy's on the host's array -------------------------------------------

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        value = self._host.reshape(_plain_shape(sizes), order=order)
        if not np.may_share_memory(value, self._host) and self.size:
            _check_device(self)
            recorder.call("reshape (copy)")
        return self._seen(value)

    def fill(self, value: Any) -> None:
        self[...] = value

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        recorder.upload("set", self.nbytes)
        self._host[...] = arr

    def take(self, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
        return take(self, indices, axis, out)

    def put(self, indices: Any, v: Any, mode: str = "wrap") -> None:
        recorder.call("put")
        self._host.put(_operand(_indices(indices)), _operand(_indices(v)), mode=mode)

    def repeat(self, repeats: Any, axis: Any = None) -> ndarray:
        return repeat(self, repeats, axis)

    def scatter_add(self, slices: Any, value: Any) -> None:
        MODULE.add.at(self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        MODULE.maximum.at(self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        MODULE.minimum.at(self, slices, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in METHODS:
            raise AttributeError(f"'ndarray' object has no attribute {name!r} (cupy {real.__version__})")
        return _Method(self, name)


class _Method:
    """NumPy's method on the host's array, with the arguments that CuPy's takes."""

    def __init__(self, array: ndarray, name: str) -> None:
        self.array, self.name = array, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name, host = self.name, self.array._host
        _check_arguments(f"ndarray.{name}", METHODS[name], (self.array, *args), kwargs)
        if name not in VIEWS:
            _check_device(self.array)
            recorder.call(name)
        if name in WAITING_METHODS:
            recorder.wait(name)
        if name in SORTS and _is_unsortable(self.array):
            raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
        args, kwargs = _operands(args), {key: _operand(value) for key, value in kwargs.items()}
        if name == "astype":
            _check_dtype(args[0] if args else kwargs["dtype"])
            kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if name == "dot" and (not args or not isinstance(args[0], np.ndarray)):
            raise TypeError("Argument 'b' has incorrect type")
        with np.errstate(all="ignore"):
            value = getattr(host, name)(*args, **kwargs)
        if value is host:
            return self.array
        return self.array._seen(value) if name in VIEWS else _wrap(value)


def _binary(name: str, reflected: bool = False) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if isinstance(other, (str, bytes, list, tuple, dict)) or other is None:
            return NotImplemented
        function = getattr(MODULE, name)
        return function(other, self) if reflected else function(self, other)

    return method


def _inplace(name: str) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        return getattr(MODULE, name)(self, other, self)

    return method


for _op, _ufunc in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "matmul": "matmul",
    "divmod": "divmod",
}.items():
    setattr(ndarray, f"__{_op}__", _binary(_ufunc))
    setattr(ndarray, f"__r{_op}__", _binary(_ufunc, True))
    if _op not in ("divmod", "matmul"):
        setattr(ndarray, f"__i{_op}__", _inplace(_ufunc))
for _op, _ufunc in {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}.items():
    setattr(ndarray, f"__{_op}__", _binary(_ufunc))
for _op, _ufunc in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_op}__", lambda self, _name=_ufunc: getattr(MODULE, _name)(self))


def _plain_shape(shape: Any) -> Any:
    for size in shape if isinstance(shape, (tuple, list)) else (shape,):
        if isinstance(size, ndarray):
            raise TypeError("'cupy.ndarray' object cannot be interpreted as an integer")
    return shape


def _index(key: Any) -> tuple[Any, bool, bool]:
    """An index for NumPy; whether it is advanced; whether it has a mask, whose count the host must know."""
    parts, is_advanced, has_mask = [], False, False
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, ndarray):
            _check_device(part)
            is_advanced, has_mask = True, has_mask or part.dtype == bool
            if part.dtype.kind not in "biu":
                raise IndexError(f"arrays used as indices must be of integer or boolean type (actual: {part.dtype})")
            parts.append(part._host)
        elif isinstance(part, (np.ndarray, list, tuple)):
            array = np.asarray(
                [p._host if isinstance(p, ndarray) else p for p in part] if isinstance(part, (list, tuple)) else part
            )
            recorder.upload("index", array.nbytes)
            is_advanced, has_mask = True, has_mask or array.dtype == bool
            parts.append(array.astype(np.int32) if array.size == 0 and array.dtype.kind == "f" else array)
        elif isinstance(part, slice):
            # CuPy reads such bounds by int(), although `range` refuses them.
            bounds = [int(b) if isinstance(b, ndarray) else b for b in (part.start, part.stop, part.step)]
            parts.append(slice(*bounds))
        else:
            parts.append(part)
    return tuple(parts), is_advanced, has_mask


def _wrapped(parts: Any, host: np.ndarray) -> Any:
    axis, wrapped = 0, []
    for part in parts:
        if isinstance(part, np.ndarray):
            wrapped.append(part % max(host.shape[axis], 1))
        else:
            wrapped.append(part)
        axis += part is not None
    return tuple(wrapped)


def _refuse_array_repeats(repeats: Any) -> None:
    if isinstance(repeats, ndarray):
        raise ValueError("cupy.ndaray `repeats` is not supported")


def _indices(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        recorder.upload("indices", value.nbytes)
        return ndarray(value)
    return value


def _check_device(array: ndarray) -> None:
    """CuPy reads arrays of another device over peer access, slowly; where there is none it raises, as this does."""
    current = _current.devices[-1]
    if array._device_id != current:
        raise ValueError(
            "Array device must be same as the current device: "
            f"array device = {array._device_id} while current = {current}"
        )


def _check_apart(target: ndarray, value: Any) -> None:
    """CuPy's scattering kernels do not look whether they read what they write; their threads would race."""
    if isinstance(value, ndarray) and np.may_share_memory(target._host, value._host):
        raise RuntimeError("what is scattered shares memory with its target")


def _operand(value: Any, where: str = "") -> Any:
    """`value` as NumPy takes it; refuses what CuPy refuses."""
    if isinstance(value, ndarray):
        _check_device(value)
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}{where}")
    if isinstance(value, tuple):
        return tuple(_operand(v, where) for v in value)
    if isinstance(value, list):
        return [_operand(v, where) for v in value]
    return value


def _operands(values: Any, where: str = "") -> tuple:
    return tuple(_operand(v, where) for v in values)


def _wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ndarray(value)
    if isinstance(value, np.generic):
        return ndarray(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_wrap, value))
    if isinstance(value, (tuple, list)):
        return type(value)(_wrap(v) for v in value)
    return value


def _operand_dtypes(values: tuple) -> tuple[np.dtype, ...]:
    """What CuPy looks for a loop with: Python's numbers adapt to the arrays beside them."""
    known = [value.dtype for value in values if isinstance(value, (ndarray, np.generic))]
    wide = [np.result_type(*known)] if known else []
    return tuple(
        value.dtype if isinstance(value, (ndarray, np.generic)) else np.result_type(*wide, value) for value in values
    )


# -- ufuncs --------------------------------------------------------------------------------------------


def _integer_power(base: Any, exponent: Any, **options: Any) -> np.ndarray:
    """CuPy's `power` of integers: it has values for negative exponents, which NumPy refuses."""
    inverse = np.where(base == -1, np.where(exponent & 1, -1, 1), base == 1)
    value = np.power(base, np.maximum(exponent, 0), **options)
    return np.where(np.less(exponent, 0), inverse, value).astype(value.dtype)


SCATTERED = {"add": "iqefdIQ", "subtract": "iI", "maximum": "iqfdIQ", "minimum": "iqfdIQ"}
"""Dtypes of `ufunc.at` (`_scatter_op_default`)."""


class ufunc:
    """One of CuPy's ufuncs: its loops, its keywords."""

    def __init__(self, name: str, real_ufunc: Any, host: Any) -> None:
        self.__name__, self.real, self.host = name, real_ufunc, host
        self.nin, self.nout, self.nargs = real_ufunc.nin, real_ufunc.nout, real_ufunc.nargs
        self.types = real_ufunc.types
        self._loops: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<ufunc '{self.real.name}'>"

    def _results(self, dtypes: tuple[np.dtype, ...]) -> list[np.dtype]:
        """Dtypes of the results of the first loop that takes operands of these."""
        if dtypes not in self._loops:
            for text in self.types:
                ins, outs = ([_dtype_of(c) for c in part] for part in text.split("->"))
                if all(np.can_cast(have, want) for have, want in zip(dtypes, ins, strict=True)):
                    self._loops[dtypes] = outs
                    break
            else:
                raise TypeError(f"Wrong type ({', '.join(map(str, dtypes))}) of arguments for {self.real.name}")
        return self._loops[dtypes]

    def __call__(
        self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", **kwargs: Any
    ) -> Any:
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(f"Wrong number of arguments for {self.real.name!r}")
        inputs, outs = args[: self.nin], args[self.nin :]
        if out is not None:
            outs = out if isinstance(out, tuple) else (out,)
        self._check(inputs, outs)
        recorder.call(self.__name__)
        dtypes = _operand_dtypes(inputs)
        results = self._results(dtypes if dtype is None else (np.dtype(dtype),) * self.nin)
        values = self._compute(inputs, outs, dtype, casting)
        if any(value is not None for value in outs):
            return outs[0] if self.nout == 1 else tuple(outs)
        arrays = []
        for value, wanted in zip(map(np.asarray, values), results, strict=True):
            if dtype is None and value.dtype != wanted:
                recorder.note(f"{self.__name__}{[str(d) for d in dtypes]}: NumPy gives {value.dtype}, CuPy {wanted}")
                value = value.astype(wanted)
            arrays.append(ndarray(value))
        return arrays[0] if self.nout == 1 else tuple(arrays)

    @staticmethod
    def _check(inputs: tuple, outs: tuple) -> None:
        for value in inputs:
            if not isinstance(value, ndarray) and not _as_cupy_scalar(value):
                raise TypeError(f"Unsupported type {type(value)}")
        for value in outs:
            if value is not None and not isinstance(value, ndarray):
                raise TypeError("Output arguments type must be cupy.ndarray")
        for value in (*inputs, *outs):
            if isinstance(value, ndarray):
                _check_device(value)

    def _compute(self, inputs: tuple, outs: tuple, dtype: Any, casting: str) -> tuple:
        """NumPy's results; written to `outs` where there are any."""
        operands = [value._host if isinstance(value, ndarray) else value for value in inputs]
        host = self.host
        if self.__name__ == "power" and all(np.asarray(operand).dtype.kind in "iu" for operand in operands):
            host = _integer_power
        targets = tuple(value._host if value is not None else None for value in outs)
        options: dict[str, Any] = {}
        if isinstance(host, np.ufunc):
            options["casting"] = casting
            if any(target is not None for target in targets):
                options["out"] = targets
        if dtype is not None:
            options["dtype"] = dtype
        with np.errstate(all="ignore"):
            value = host(*operands, **options)
        if not isinstance(host, np.ufunc) and targets and targets[0] is not None:
            targets[0][...] = value
        return value if isinstance(value, tuple) else (value,)

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if self.__name__ not in ("add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"):
            raise NotImplementedError(f"`{self.real.name}.at` is not supported yet")
        if not isinstance(a, ndarray):
            raise AttributeError("'numpy.ndarray' object has no attribute '_scatter_op'")
        recorder.call(f"{self.__name__}.at")
        supported = SCATTERED.get(self.__name__, "iIqQ")
        if a.dtype not in [np.dtype(c) for c in supported]:
            names = ", ".join(np.dtype(c).name for c in supported)
            raise TypeError(f"cupy.{self.__name__}.at only supports {names} as data type")
        _check_apart(a, b)
        parts, _, _ = _index(indices)
        parts = _wrapped(parts, a._host)
        self.host.at(a._host, parts if len(parts) > 1 else parts[0], _operand(b))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.real.name}.reduce` is not supported yet")
        return getattr(MODULE, "sum" if self.__name__ == "add" else "prod")(array, axis, dtype, out, keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.real.name}.accumulate` is not supported yet")
        return getattr(MODULE, "cumsum" if self.__name__ == "add" else "cumprod")(array, axis, dtype, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ != "add":
            raise NotImplementedError(f"`{self.real.name}.reduceat` is not supported yet")
        recorder.call("add.reduceat")
        return _wrap(np.add.reduceat(_operand(array), _operand(indices), axis, dtype, _operand(out)))

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        a, b = asarray(a), asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b.reshape((1,) * a.ndim + b.shape), **kwargs)


class Lanes:
    """Consecutive elements of an array, from each of some indices on: of each thread its own.

    Raises:
        ValueError: An address is not one from which a GPU can load so many at once.
    """

    def __init__(self, array: np.ndarray, count: int, first: np.ndarray | None = None) -> None:
        self.values: dict[str, Any] = {}
        self.array, self.count = array, count
        if first is not None:
            self.values["loaded"] = array[_aligned(array, count, first) + np.arange(count)]

    def __getitem__(self, k: np.ndarray) -> np.ndarray:
        return self.values["loaded"][..., k]

    def __setitem__(self, k: np.ndarray, values: Any) -> None:
        self.values["stored"] = values


def _aligned(array: np.ndarray, count: int, first: Any) -> np.ndarray:
    first = np.asarray(first, np.int64)
    addresses = array.__array_interface__["data"][0] + first * array.itemsize
    if np.any(addresses % min(16, array.itemsize * count)):
        raise ValueError("CUDA_ERROR_MISALIGNED_ADDRESS")
    return first


def _store(array: np.ndarray, first: Any, lanes: Lanes) -> None:
    array[_aligned(array, lanes.count, first) + np.arange(lanes.count)] = lanes.values["stored"]


class ElementwiseKernel:
    """A kernel of a user's own, whose source is as `tfray.ops.kernels.gpu.device_loops` writes it.

    It runs section by section: an index array stands for the threads of one, so that each line is NumPy's.
    """

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "where": np.where,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "negative": np.negative,
        "absolute": np.absolute,
        "invert": np.logical_not,
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "quotient": np.floor_divide,
        "store": _store,
        **{f"load{n}": (lambda array, first, _n=n: Lanes(array, _n, first)) for n in (4, 8)},
        **{f"lanes{n}": (lambda array, _n=n: Lanes(array, _n)) for n in (4, 8)},
        **{name: getattr(np, name) for name in ("sqrt", "rint", "floor", "ceil", "exp", "log", "tanh", "power")},
        **{name: getattr(np, name) for name in ("exp2", "expm1", "log1p", "log2", "sin", "cos", "tan", "sinh", "cosh")},
        **{
            name: (lambda x, _type=_type: np.asarray(x).astype(_type)[()])
            for name, _type in {
                "bool_": np.bool_,
                **{n: np.dtype(n) for n in ("float32", "float64", "int32", "int64", "float16", "bfloat16")},
            }.items()
        },
    }

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", *, preamble: str = ""
    ) -> None:
        real.ElementwiseKernel  # noqa: B018 (the name is there)
        self.name, self.lines = name, operation.split("\n")
        self.params = [text.split() for text in f"{in_params}, {out_params}".split(", ")]

    def __call__(self, *args: Any, size: int) -> None:
        if len(args) != len(self.params):
            raise TypeError(f"Wrong number of arguments for {self.name!r}")
        recorder.call(self.name)
        if self.name == "tfray_uniform":
            _draw(*args)
            return
        space: dict[str, Any] = dict(self.FUNCTIONS)
        for (*kind, dtype, name), value in zip(self.params, args, strict=True):
            if not kind:
                if isinstance(value, (ndarray, np.ndarray)):
                    raise ValueError("Specified size can be used only if all of the ndarray are 'raw'.")
                space[name] = np.dtype(dtype).type(value)
                continue
            host = _operand(value)
            if host.dtype != np.dtype(dtype):
                raise TypeError(f"Type is mismatched. {name} {host.dtype} {dtype}")
            is_written = name.startswith("out")
            if is_written and not host.flags.c_contiguous:
                raise RuntimeError("the stand-in stores to contiguous arrays alone")
            space[name] = host.reshape(-1)
        with np.errstate(all="ignore"):
            self._run(space, size)

    def _run(self, space: dict[str, Any], size: int) -> None:
        done = 0
        for line in self.lines:
            text = line.strip()
            if text.startswith("for "):
                space["k"] = np.arange(int(text.split("k < ")[1].split(";")[0]))
            elif text.endswith("{"):
                count = space[text.split("< ")[1].removesuffix(") {")]
                # Beside the threads, an axis for the elements of each.
                space["j"], done = np.arange(count)[:, None], done + int(count)
            elif text == "}" or text.endswith("j = i;"):
                continue
            elif "auto " in text:
                name, rest = text.removesuffix(";").split("auto ", 1)[1].split(" = ", 1)
                space[name] = eval(rest, space)
            elif text.startswith("const "):
                _, dtype, name, rest = text.removesuffix(";").split(" ", 3)
                space[name] = space[dtype](eval(rest.removeprefix("= "), space))
            else:
                exec(text.removesuffix(";"), space)
        if done != size:
            raise RuntimeError(f"the sections have {done} elements, and the kernel is launched for {size}")


def _draw(key0: int, key1: int, request: int, count: int, blocks: int, *rest: Any) -> None:
    """The kernel of `device_random`, by NumPy's own generator."""
    steps, width, low, out = rest
    flat = out._host.reshape(-1)
    for chunk, first in enumerate(range(0, count, 8 * blocks)):
        part = flat[first : first + 8 * blocks]
        bits = np.random.Philox(key=[key0, key1], counter=[0, 0, chunk, request])
        words = bits.random_raw(-(-part.size // 2)).view(np.uint32)[: part.size]
        numbers = (words >> 9).astype(np.float32) / np.float32(1 << 23)
        if steps:
            numbers = np.floor(numbers * steps) / steps
        part[...] = (numbers * width + low).astype(part.dtype)


class ReductionKernel:
    """A sum of what an expression gives, as `tfray.ops.kernels.gpu.device_loops.device_sum` writes it."""

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: str,
        name: str = "reduce", *, reduce_type: str = "", preamble: str = "",
    ) -> None:  # fmt: skip
        real.ReductionKernel  # noqa: B018 (the name is there)
        self.result, wide = np.dtype(out_params.split()[0]), {"float": np.float32, "double": np.float64}[reduce_type]
        last = "a * scale" if self.result == wide else f"{self.result.name}(a * scale)"
        if (reduce_expr, post_map_expr, identity) != ("a + b", f"total = {last}", "0"):
            raise NotImplementedError("the stand-in reduces by scaled sums alone")
        self.name, self.element = name, map_expr
        self.params = [text.split() for text in in_params.split(", ")]

    def __call__(self, *args: Any, axis: Any, keepdims: bool) -> ndarray:
        recorder.call(self.name)
        space: dict[str, Any] = dict(ElementwiseKernel.FUNCTIONS)
        for (dtype, name), value in zip(self.params, args, strict=True):
            host = _operand(value)
            if host.dtype != np.dtype(dtype):
                raise TypeError(f"Type is mismatched. {name} {host.dtype} {dtype}")
            space[name] = host
        with np.errstate(all="ignore"):
            total = np.sum(eval(self.element, space), axis=axis, keepdims=keepdims) * space["scale"]
            return _wrap(np.asarray(total).astype(self.result))


# -- functions -----------------------------------------------------------------------------------------

WAITING_FUNCTIONS = {
    "nonzero",
    "argwhere",
    "flatnonzero",
    "unique",
    "bincount",
    "extract",
    "compress",
    "union1d",
    "setdiff1d",
    "intersect1d",
    "trim_zeros",
    "histogram",
}
NO_LAUNCH = {
    "empty",
    "empty_like",
    "reshape",
    "transpose",
    "swapaxes",
    "squeeze",
    "expand_dims",
    "broadcast_to",
    "moveaxis",
    "rollaxis",
    "ravel",
    "broadcast_arrays",
    "shape",
    "ndim",
    "size",
    "result_type",
    "can_cast",
    "may_share_memory",
    "shares_memory",
    "diagonal",
    "split",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "isscalar",
    "as_strided",
    "flip",
    "flipud",
    "fliplr",
    "rot90",
    "iscomplexobj",
    "isrealobj",
    "broadcast",
    "stack_views",
    "dtype",
    "finfo",
    "iinfo",
    "ndindex",
    "promote_types",
    "min_scalar_type",
    "issubdtype",
    "common_type",
    "real",
    "imag",
}


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    """To the device, where it is not there yet."""
    if isinstance(a, ndarray):
        if a._device_id != _current.devices[-1]:
            recorder.call("copy from another device")
            a = ndarray(a._host.copy())
        return a if dtype is None or np.dtype(dtype) == a.dtype else a.astype(dtype)
    if isinstance(a, (list, tuple)) and any(isinstance(v, ndarray) for v in a):
        return (
            MODULE.stack([asarray(v) for v in a])
            if dtype is None
            else MODULE.stack([asarray(v) for v in a]).astype(dtype)
        )
    host = np.array(a, dtype=dtype, order=order or "K", copy=True)
    _check_dtype(host.dtype)
    recorder.upload("asarray", host.nbytes)
    return ndarray(host)


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    value = asarray(obj, dtype)
    if copy and value is obj:
        value = value.copy()
    return ndarray(np.array(value._host, ndmin=ndmin, copy=None))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
    """CuPy's `take` wraps indices around that are out of range."""
    recorder.call("take")
    indices = _indices(indices)
    host, at = _operand(a), _operand(indices)
    if isinstance(at, float) or (isinstance(at, np.ndarray) and at.dtype.kind not in "iub"):
        raise TypeError("indices must be integers")
    count = host.size if axis is None else host.shape[axis]
    outside = np.size(at) and count and (np.max(at) >= count or np.min(at) < -count)
    if outside:
        recorder.note("index out of range: CuPy wraps it around")
    target = _operand(out)
    if target is not None and target.dtype != host.dtype:
        raise TypeError("Output dtype mismatch")
    if host.size:
        value = np.take(host, at, axis=axis, mode="wrap")
    else:
        before, after = ((), ()) if axis is None else (host.shape[:axis], host.shape[axis:][1:])
        value = np.empty((*before, *np.shape(at), *after), host.dtype)
        if value.size:
            raise IndexError("cannot do a non-empty take from an empty axes.")
    if out is not None:
        if target.shape != value.shape:
            raise ValueError("Output shape mismatch")
        target[...] = value
        return out
    return _wrap(value)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    recorder.call("copyto")
    if not isinstance(dst, ndarray):
        raise TypeError("dst must be cupy.ndarray")
    if isinstance(src, np.ndarray) and src.ndim:
        raise TypeError("cannot assign a NumPy array")
    np.copyto(
        dst._host,
        src if isinstance(src, np.ndarray) else _operand(src),
        casting,
        **({} if where is None else {"where": _operand(where)}),
    )


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        recorder.wait("where")
        recorder.call("where")
        return _wrap(np.where(_operand(condition)))
    for value in (condition, x, y):
        if not isinstance(value, ndarray) and not _as_cupy_scalar(value):
            raise TypeError(f"Unsupported type {type(value)}")
    recorder.call("where")
    value = np.where(_operand(condition), _operand(x), _operand(y))
    if value.dtype == ml_dtypes.bfloat16:  # its ufunc has no such loop
        value = value.astype(np.float32)
    return _wrap(value)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    _refuse_array_repeats(repeats)
    recorder.call("repeat")
    return _wrap(np.repeat(_operand(a), repeats, axis))


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return np.may_share_memory(_operand(a), _operand(b))


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def _check_arguments(name: str, signature: inspect.Signature | None, args: Any, kwargs: Any) -> None:
    if signature is not None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"cupy.{name}: {error}") from None


def _check_values(name: str, args: Any) -> None:
    """Refuse what these functions refuse in CuPy and not in NumPy or SciPy."""
    if name == "solve_triangular" and np.ndim(_operand(args[0])) != 2:
        raise ValueError("expected square matrix")
    if name == "solve":
        a, b = (_operand(value) for value in args[:2])
        if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    if name in ("linspace", "arange") and any(isinstance(value, ndarray) for value in args):
        raise TypeError(f"cupy.{name}: unsupported type cupy.ndarray")
    if name in SORTS and any(_is_unsortable(value) for value in args):
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    if name == "searchsorted" and args[0].size and (args[0]._host[1:] < args[0]._host[:-1]).any():
        raise ValueError("what is searched does not ascend: what CuPy gives is not defined")
    joins = name in ("concatenate", "stack", "vstack", "hstack")
    if joins and any(not isinstance(value, ndarray) for value in args[0]):
        raise TypeError("Only cupy arrays can be concatenated")


SORTS = {"sort", "argsort", "partition", "argpartition", "lexsort", "unique", "isin", "in1d", "median", "percentile"}
"""Functions and methods that sort. CuPy gives what is sorted to Thrust, if there is more than one element."""


def _is_unsortable(value: Any) -> bool:
    return isinstance(value, ndarray) and value.size > 1 and value.dtype == ml_dtypes.bfloat16


def _turned(name: str, value: Any) -> Any:
    """Singular vectors or eigenvectors as another library may give them: with other signs, the surplus ones turned."""
    if name == "eigh":
        return type(value)(value[0], value[1] * _signs(value[1].shape[-1]))
    u, s, vh = value
    rank = s.shape[-1]
    columns = [*range(rank), *range(u.shape[-1] - 1, rank - 1, -1)]
    rows = [*range(rank), *range(vh.shape[-2] - 1, rank - 1, -1)]
    u, vh = u * _signs(u.shape[-1]), vh * _signs(vh.shape[-2])[:, None]
    return type(value)(u[..., columns], s, vh[..., rows, :])


def _signs(count: int) -> np.ndarray:
    return np.where(np.arange(count) % 2, 1.0, -1.0).astype(np.float32)


SOLVERS = {"inv": 0, "cholesky": 0, "solve": 1, "solve_triangular": 1}
"""Functions that refuse matrices in NumPy, and the argument that has the shape of the result."""


def _solved(name: str, host: Any, operands: tuple, options: dict[str, Any]) -> np.ndarray:
    """The result; NaN where NumPy refuses a matrix and CuPy does not look whether cuSOLVER did (`cupyx.errstate`)."""
    is_checked = name != "solve_triangular" and get_config_linalg() == "raise"
    if is_checked:
        recorder.wait(name)
    try:
        return host(*operands, **options)
    except np.linalg.LinAlgError:
        if is_checked:
            raise
        return np.full_like(operands[SOLVERS[name]], np.nan)


def _blas_threads(name: str) -> Any:
    """A context manager: products run on one thread, since small ones by several take 20 times as long."""
    if name not in PRODUCTS:
        return nullcontext()
    from tfray.ops.kernels.cpu_threads import one_blas_thread  # not before the GPU has been opened

    return one_blas_thread()


class _Grid:
    """`ogrid` and `mgrid`."""

    def __init__(self, grid: Any) -> None:
        self.grid = grid

    def __getitem__(self, key: Any) -> Any:
        recorder.call("ogrid")
        return _wrap(self.grid[key])


class Broadcast:
    """`cupy.broadcast`."""

    def __init__(self, *arrays: Any) -> None:
        host = np.broadcast(*_operands(arrays)) if len(arrays) > 1 else _operand(arrays[0])
        self.shape, self.size, self.nd = host.shape, host.size, host.ndim
        self.values = [ndarray(a) for a in np.broadcast_arrays(*_operands(arrays))]


class Device:
    """`cupy.cuda.Device`: as a context manager it makes a device the current one of the thread."""

    def __init__(self, device: int | None = None) -> None:
        self.id = _current.devices[-1] if device is None else int(device)
        if not 0 <= self.id < GPUS:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        _current.devices.append(self.id)
        return self

    def __exit__(self, *args: Any) -> None:
        _current.devices.pop()

    def use(self) -> Device:
        _current.devices[-1] = self.id
        return self

    def synchronize(self) -> None:
        recorder.wait("Device.synchronize")


class Stream(fakegraphs.Stream):
    """`cupy.cuda.Stream`."""

    def synchronize(self) -> None:
        recorder.wait("Stream.synchronize")


POOL = fakegraphs.MemoryPool()


class OutOfMemoryError(MemoryError):
    pass


cuda = types.SimpleNamespace(
    Device=Device,
    cublas=fakecublas.make(recorder.call),
    device=types.SimpleNamespace(get_cublas_handle=lambda: 1),
    Stream=Stream,
    get_current_stream=lambda: Stream() if (stream := fakegraphs.current_stream()).ptr == 0 else stream,
    MemoryPool=fakegraphs.MemoryPool,
    using_allocator=fakegraphs.using_allocator,
    is_available=lambda: True,
    memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    runtime=types.SimpleNamespace(
        getDeviceCount=lambda: GPUS,
        getDevice=lambda: _current.devices[-1],
        CUDARuntimeError=RuntimeError,
        cudaGraphDebugDotFlagsMemcpyNodeParams=32,
        getDeviceProperties=lambda i: {
            "name": b"pretended GPU",
            "totalGlobalMem": 16 << 30,
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 100,
        },
    ),
)


class FakeModule(types.ModuleType):
    """A module of CuPy, by name: what the real one lacks is missing here too."""

    def __init__(self, name: str, real_module: Any, host: Any, own: dict[str, Any] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(own or {})
        self.__dict__["_real"], self.__dict__["_host"] = real_module, host

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            target = getattr(self._real, name)
        except AttributeError:
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r} (cupy {real.__version__})"
            ) from None
        host = getattr(self._host, name, None)
        if isinstance(target, types.ModuleType):
            value: Any = FakeModule(f"{self.__name__}.{name}", target, host)
        elif isinstance(target, real.ufunc) or (isinstance(host, np.ufunc) and type(target).__name__ == "ufunc"):
            value = ufunc(name, target, host)
        elif isinstance(target, type) or not callable(target):
            value = target
        else:
            value = self._function(name, target, host)
        self.__dict__[name] = value
        return value

    def _function(self, name: str, target: Any, host: Any) -> Any:
        try:
            signature = inspect.signature(target)
        except (TypeError, ValueError):
            signature = None
        dotted = f"{self.__name__}.{name}".removeprefix("cupy.")
        if host is None:
            raise NotImplementedError(f"the stand-in cannot compute {dotted}")

        def function(*args: Any, **kwargs: Any) -> Any:
            _check_arguments(dotted, signature, args, kwargs)
            _check_values(name, args)
            if name not in NO_LAUNCH:
                recorder.call(dotted)
            if name in WAITING_FUNCTIONS:
                recorder.wait(name)
            out = kwargs.get("out")
            plain = {k: _operand(v) for k, v in kwargs.items() if v is not None}
            plain.pop("blocking", None)
            with np.errstate(all="ignore"), warnings.catch_warnings(), _blas_threads(name):
                warnings.simplefilter("ignore")
                operands = _operands(args, f" in cupy.{dotted}")
                value = _solved(name, host, operands, plain) if name in SOLVERS else host(*operands, **plain)
                if name in ("eigh", "svd") and isinstance(value, tuple):
                    value = _turned(name, value)
            for array in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(array, (np.ndarray, np.generic)):
                    _check_dtype(array.dtype)
            return out if out is not None else _wrap(value)

        function.__name__ = name
        return fakegraphs.recorded(function)


# -- sparse matrices -----------------------------------------------------------------------------------


class SparseMatrix:
    """A matrix of `cupyx.scipy.sparse`."""

    def __init__(self, host: Any) -> None:
        self.host = host

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    data = property(lambda self: ndarray(self.host.data))
    T = property(lambda self: SparseMatrix(self.host.T))

    def tocsr(self) -> SparseMatrix:
        recorder.call("sparse.tocsr")
        recorder.wait("sparse.tocsr")  # coo.tocsr sums duplicates, whose number the host must know
        return SparseMatrix(self.host.tocsr())

    def tocsc(self) -> SparseMatrix:
        recorder.call("sparse.tocsc")
        return SparseMatrix(self.host.tocsc())

    def transpose(self) -> SparseMatrix:
        return self.T

    def toarray(self) -> ndarray:
        recorder.call("sparse.toarray")
        return ndarray(self.host.toarray())

    def dot(self, other: Any) -> Any:
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, ndarray):
            return NotImplemented
        recorder.call("sparse.matmul")
        return _wrap(self.host @ other._host)


def _sparse(name: str) -> Any:
    def make(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseMatrix:
        recorder.call(f"sparse.{name}")
        plain = _operand(arg)
        data = plain[0] if isinstance(plain, tuple) else plain
        if np.dtype(dtype or data.dtype) not in [np.dtype(c) for c in "?fdFD"]:
            raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
        if isinstance(plain, tuple) and len(plain) == 3 and len(plain[2]):
            recorder.wait("sparse.check")  # the index arrays are checked on the host
        return SparseMatrix(getattr(scipy.sparse, name)(plain, shape=shape, dtype=dtype))

    return make


# -- the module ----------------------------------------------------------------------------------------

MODULE = FakeModule(
    "cupy",
    real,
    np,
    {
        "ndarray": ndarray,
        "asarray": asarray,
        "array": array,
        "asanyarray": asarray,
        "take": take,
        "copyto": copyto,
        "where": where,
        "repeat": repeat,
        "asnumpy": asnumpy,
        "may_share_memory": may_share_memory,
        "get_default_memory_pool": lambda: POOL,
        "cuda": cuda,
        "broadcast": Broadcast,
        "ogrid": _Grid(np.ogrid),
        "mgrid": _Grid(np.mgrid),
        "ufunc": ufunc,
        "ElementwiseKernel": ElementwiseKernel,
        "ReductionKernel": ReductionKernel,
        "newaxis": None,
        "shape": lambda a: np.shape(getattr(a, "_host", a)),
    },
)


def _ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    value = asarray(a, dtype)
    if not value._host.flags.c_contiguous:
        recorder.call("ascontiguousarray")
        value = ndarray(np.ascontiguousarray(value._host))
    return value if value.ndim else value.reshape(1)


MODULE.ascontiguousarray = _ascontiguousarray


def _outs(function: ufunc, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """What a ufunc returns that is called with these arguments."""
    outs = args[function.nin :] or (out if isinstance(out, tuple) else (out,))
    return fakegraphs.NEW if outs[0] is None else outs[0] if function.nout == 1 else tuple(outs)


def _written(method: _Method, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """What a method returns that is called with these arguments."""
    changes = method.name in ("fill", "sort", "partition", "put", "itemset", "resize")
    return None if changes else fakegraphs.keyword_out(out=out)


for _owner, _name, _target in (
    (ndarray, "__getitem__", fakegraphs.keyword_out),
    (ndarray, "__setitem__", fakegraphs.nothing),
    (_Method, "__call__", _written),
    (ufunc, "__call__", _outs),
    (ufunc, "at", fakegraphs.nothing),
    (ufunc, "reduceat", fakegraphs.keyword_out),
    (ElementwiseKernel, "__call__", fakegraphs.nothing),
    (ReductionKernel, "__call__", fakegraphs.keyword_out),
    (MODULE, "copyto", fakegraphs.nothing),
    *((MODULE, _name, fakegraphs.keyword_out) for _name in ("array", "take", "where", "repeat", "ascontiguousarray")),
):
    setattr(_owner, _name, fakegraphs.recorded(getattr(_owner, _name), _target))


def modules() -> dict[str, types.ModuleType]:
    """Stand-ins by name, for `sys.modules`."""
    special = FakeModule("cupyx.scipy.special", REAL_MODULES["cupyx.scipy.special"], scipy.special)
    linalg = FakeModule("cupyx.scipy.linalg", REAL_MODULES["cupyx.scipy.linalg"], scipy.linalg)
    sparse = FakeModule(
        "cupyx.scipy.sparse",
        REAL_MODULES["cupyx.scipy.sparse"],
        scipy.sparse,
        {name: _sparse(name) for name in ("csr_matrix", "csc_matrix", "coo_matrix")},
    )
    return {"cupyx.scipy.special": special, "cupyx.scipy.linalg": linalg, "cupyx.scipy.sparse": sparse}


def install() -> FakeModule:
    """Put the stand-ins in place of the modules that kernels import by name. Returns the array module."""
    sys.modules.update(modules())
    return MODULE
