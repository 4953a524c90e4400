"""CuPy's ufuncs: the loops and keywords that CuPy has, computed by NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.gpu.fakecupy.arrays import (
    asarray,
    check_apart,
    check_device,
    host_index,
    ndarray,
    on_host,
    operand_dtypes,
    wrap,
    wrapped_around,
    xp,
)
from tests.support.gpu.fakecupy.real_cupy import dtype_of, is_scalar
from tests.support.gpu.fakecupy.recording import recorder


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
                ins, outs = ([dtype_of(c) for c in part] for part in text.split("->"))
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
        dtypes = operand_dtypes(inputs)
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
            if not isinstance(value, ndarray) and not is_scalar(value):
                raise TypeError(f"Unsupported type {type(value)}")
        for value in outs:
            if value is not None and not isinstance(value, ndarray):
                raise TypeError("Output arguments type must be cupy.ndarray")
        for value in (*inputs, *outs):
            if isinstance(value, ndarray):
                check_device(value)

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
        check_apart(a, b)
        parts, _, _ = host_index(indices)
        parts = wrapped_around(parts, a._host)
        self.host.at(a._host, parts if len(parts) > 1 else parts[0], on_host(b))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.real.name}.reduce` is not supported yet")
        return getattr(xp, "sum" if self.__name__ == "add" else "prod")(array, axis, dtype, out, keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.real.name}.accumulate` is not supported yet")
        return getattr(xp, "cumsum" if self.__name__ == "add" else "cumprod")(array, axis, dtype, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ != "add":
            raise NotImplementedError(f"`{self.real.name}.reduceat` is not supported yet")
        recorder.call("add.reduceat")
        return wrap(np.add.reduceat(on_host(array), on_host(indices), axis, dtype, on_host(out)))

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        a, b = asarray(a), asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b.reshape((1,) * a.ndim + b.shape), **kwargs)
