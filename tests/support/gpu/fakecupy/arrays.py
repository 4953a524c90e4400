"""Arrays that wrap NumPy's, their methods, operators and indices, and what of theirs NumPy is given."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.support.gpu.fakecupy.pretended_devices import Device, made_current
from tests.support.gpu.fakecupy.real_cupy import METHODS, check_arguments, check_dtype, is_scalar, real
from tests.support.gpu.fakecupy.recording import recorder


class _ArrayModule:
    """The array module. It stands above the arrays whose operators and methods call its functions."""

    def __init__(self) -> None:
        self.module: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


xp = _ArrayModule()
"""The array module for arrays and ufuncs. Its `module` is put there by `array_module`."""


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


VIEWS = {"reshape", "transpose", "swapaxes", "squeeze", "view", "diagonal", "ravel"}
"""Methods that launch nothing (or, for a copy that reshape needs, are counted apart)."""
WAITING_METHODS = {"nonzero", "compress"}
SORTS = {"sort", "argsort", "partition", "argpartition", "lexsort", "unique", "isin", "in1d", "median", "percentile"}
"""Functions and methods that sort. CuPy gives what is sorted to Thrust, if there is more than one element."""


def is_unsortable(value: Any) -> bool:
    return isinstance(value, ndarray) and value.size > 1 and value.dtype == ml_dtypes.bfloat16


class ndarray:
    """An array on the pretended device."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray, base: ndarray | None = None) -> None:
        self._host = host
        self.base = base
        self._device_id = made_current.devices[-1] if base is None else base._device_id

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
        self._host.real = on_host(value)

    @property
    def imag(self) -> ndarray:
        return self._seen(self._host.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        recorder.call("imag.setter")
        self._host.imag = on_host(value)

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
        parts, is_advanced, has_mask = host_index(key)
        if is_advanced:
            check_device(self)
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
                value = self._host[wrapped_around(parts, self._host)]
        return self._seen(np.asarray(value))

    def __setitem__(self, key: Any, value: Any) -> None:
        parts, is_advanced, _ = host_index(key)
        check_device(self)
        if is_advanced:
            check_apart(self, value)
        recorder.call("scatter" if is_advanced else "copy")
        if isinstance(value, np.ndarray):
            if value.ndim:
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        elif not isinstance(value, ndarray) and not is_scalar(value) and np.ndim(value):
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        host = on_host(value) if isinstance(value, ndarray) else value
        try:
            self._host[parts] = host
        except IndexError as error:
            if not is_advanced or "out of bounds" not in str(error):
                raise
            recorder.note("index out of range: CuPy wraps it around")
            self._host[wrapped_around(parts, self._host)] = host

    # functions of NumPy on this array ---------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        function = getattr(xp.module, name, None) if hasattr(real, name) else None
        if function is None:
            return NotImplemented
        if "out" in kwargs:
            kwargs["out"] = kwargs["out"][0] if len(kwargs["out"]) == 1 else kwargs["out"]
        if name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            inputs = tuple(x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs)
        return (function if method == "__call__" else getattr(function, method))(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        target: Any = xp.module
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
            check_device(self)
            recorder.call("reshape (copy)")
        return self._seen(value)

    def fill(self, value: Any) -> None:
        self[...] = value

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        recorder.upload("set", self.nbytes)
        self._host[...] = arr

    def take(self, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
        return xp.take(self, indices, axis, out)

    def put(self, indices: Any, v: Any, mode: str = "wrap") -> None:
        recorder.call("put")
        self._host.put(on_host(device_indices(indices)), on_host(device_indices(v)), mode=mode)

    def repeat(self, repeats: Any, axis: Any = None) -> ndarray:
        return xp.repeat(self, repeats, axis)

    def scatter_add(self, slices: Any, value: Any) -> None:
        xp.add.at(self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        xp.maximum.at(self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        xp.minimum.at(self, slices, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in METHODS:
            raise AttributeError(f"'ndarray' object has no attribute {name!r} (cupy {real.__version__})")
        return Method(self, name)


class Method:
    """NumPy's method on the host's array, with the arguments that CuPy's takes."""

    def __init__(self, array: ndarray, name: str) -> None:
        self.array, self.name = array, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name, host = self.name, self.array._host
        check_arguments(f"ndarray.{name}", METHODS[name], (self.array, *args), kwargs)
        if name not in VIEWS:
            check_device(self.array)
            recorder.call(name)
        if name in WAITING_METHODS:
            recorder.wait(name)
        if name in SORTS and is_unsortable(self.array):
            raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
        args, kwargs = all_on_host(args), {key: on_host(value) for key, value in kwargs.items()}
        if name == "astype":
            check_dtype(args[0] if args else kwargs["dtype"])
            kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if name == "dot" and (not args or not isinstance(args[0], np.ndarray)):
            raise TypeError("Argument 'b' has incorrect type")
        with np.errstate(all="ignore"):
            value = getattr(host, name)(*args, **kwargs)
        if value is host:
            return self.array
        return self.array._seen(value) if name in VIEWS else wrap(value)


def _binary(name: str, reflected: bool = False) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if isinstance(other, (str, bytes, list, tuple, dict)) or other is None:
            return NotImplemented
        function = getattr(xp, name)
        return function(other, self) if reflected else function(self, other)

    return method


def _inplace(name: str) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        return getattr(xp, name)(self, other, self)

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
    setattr(ndarray, f"__{_op}__", lambda self, _name=_ufunc: getattr(xp, _name)(self))


def _plain_shape(shape: Any) -> Any:
    for size in shape if isinstance(shape, (tuple, list)) else (shape,):
        if isinstance(size, ndarray):
            raise TypeError("'cupy.ndarray' object cannot be interpreted as an integer")
    return shape


def host_index(key: Any) -> tuple[Any, bool, bool]:
    """An index for NumPy; whether it is advanced; whether it has a mask, whose count the host must know."""
    parts, is_advanced, has_mask = [], False, False
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, ndarray):
            check_device(part)
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


def wrapped_around(parts: Any, host: np.ndarray) -> Any:
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


def device_indices(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        recorder.upload("indices", value.nbytes)
        return ndarray(value)
    return value


def check_device(array: ndarray) -> None:
    """CuPy reads arrays of another device over peer access, slowly; where there is none it raises, as this does."""
    current = made_current.devices[-1]
    if array._device_id != current:
        raise ValueError(
            "Array device must be same as the current device: "
            f"array device = {array._device_id} while current = {current}"
        )


def check_apart(target: ndarray, value: Any) -> None:
    """CuPy's scattering kernels do not look whether they read what they write; their threads would race."""
    if isinstance(value, ndarray) and np.may_share_memory(target._host, value._host):
        raise RuntimeError("what is scattered shares memory with its target")


def on_host(value: Any, where: str = "") -> Any:
    """`value` as NumPy takes it; refuses what CuPy refuses."""
    if isinstance(value, ndarray):
        check_device(value)
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}{where}")
    if isinstance(value, tuple):
        return tuple(on_host(v, where) for v in value)
    if isinstance(value, list):
        return [on_host(v, where) for v in value]
    return value


def all_on_host(values: Any, where: str = "") -> tuple:
    return tuple(on_host(v, where) for v in values)


def wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ndarray(value)
    if isinstance(value, np.generic):
        return ndarray(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(wrap, value))
    if isinstance(value, (tuple, list)):
        return type(value)(wrap(v) for v in value)
    return value


def operand_dtypes(values: tuple) -> tuple[np.dtype, ...]:
    """What CuPy looks for a loop with: Python's numbers adapt to the arrays beside them."""
    known = [value.dtype for value in values if isinstance(value, (ndarray, np.generic))]
    wide = [np.result_type(*known)] if known else []
    return tuple(
        value.dtype if isinstance(value, (ndarray, np.generic)) else np.result_type(*wide, value) for value in values
    )


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    """To the device, where it is not there yet."""
    if isinstance(a, ndarray):
        if a._device_id != made_current.devices[-1]:
            recorder.call("copy from another device")
            a = ndarray(a._host.copy())
        return a if dtype is None or np.dtype(dtype) == a.dtype else a.astype(dtype)
    if isinstance(a, (list, tuple)) and any(isinstance(v, ndarray) for v in a):
        return xp.stack([asarray(v) for v in a]) if dtype is None else xp.stack([asarray(v) for v in a]).astype(dtype)
    host = np.array(a, dtype=dtype, order=order or "K", copy=True)
    check_dtype(host.dtype)
    recorder.upload("asarray", host.nbytes)
    return ndarray(host)
