"""Names of Python and NumPy that were there in TensorFlow 1's days and have gone since, for programs of then.

A program of 2016 to 2019 says ``np.float``, ``collections.Iterable`` or ``inspect.getargspec``. Where such a name had
one meaning that another name has today, `restore` gives it back. What this Python and this NumPy have stays as it is.
"""

from __future__ import annotations

import ast
import base64
import collections
import collections.abc
import errno
import fractions
import functools
import importlib
import importlib.util
import inspect
import math
import os
import sys
import threading
import time
import unittest
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np

ArgSpec = collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """``inspect.getargspec``: names and defaults of what a function takes by place.

    Raises:
        ValueError: It has arguments that are given by name alone, or annotations.
        TypeError: It is no function.
    """
    found = inspect.getfullargspec(func)
    if found.kwonlyargs or found.annotations:
        raise ValueError(
            "Function has keyword-only parameters or annotations, use inspect.signature() API which can support them"
        )
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def load_source(name: str, pathname: str) -> ModuleType:
    """``imp.load_source``: the module that a file has under a name."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"{pathname} is no file that Python can import")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Casts(dict[Any, Callable[[Any], Any]]):
    """``np.cast``: for each dtype what makes an array of it."""

    def __missing__(self, dtype: Any) -> Callable[[Any], Any]:
        return lambda value: np.asarray(value).astype(dtype)


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    dtype = np.dtype(dtype)
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _ragged(make: Callable[..., Any]) -> Callable[..., Any]:
    """``np.array`` as until NumPy 1.23: sequences of unlike lengths become an array of objects.

    So programs make batches of pairs, ``np.array(list(zip(images, labels)))``. Modules of tfray and of packages that
    know the new meaning, such as NumPy's own, see the error as it is.
    """

    @functools.wraps(make)
    def with_objects(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except ValueError as error:
            if "inhomogeneous" not in str(error) or len(args) > 1 or kwargs.get("dtype") is not None:
                raise
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.partition(".")[0] in _KNOWING:
                raise
        return make(*args, **{**kwargs, "dtype": object})

    return with_objects


_KNOWING: Final = frozenset({"tfray", "numpy", "scipy", "pandas", "matplotlib", "sklearn"})
"""Packages whose releases for this NumPy expect its errors."""

_ABSTRACT: Final = {name: getattr(collections.abc, name) for name in collections.abc.__all__}

_OF_MODULES: Final[Mapping[Any, Mapping[str, Any]]] = {
    collections: _ABSTRACT,  # until Python 3.9
    inspect: {"getargspec": getargspec, "ArgSpec": ArgSpec},  # until 3.10
    time: {"clock": time.process_time},  # until 3.7
    fractions: {"gcd": math.gcd},  # until 3.8
    base64: {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes},  # until 3.8
    os: {"errno": errno},  # until 3.6
    threading.Thread: {"isAlive": threading.Thread.is_alive},  # until 3.8
    unittest.TestCase: {  # until 3.11
        "assertEquals": unittest.TestCase.assertEqual,
        "assertNotEquals": unittest.TestCase.assertNotEqual,
        "assertAlmostEquals": unittest.TestCase.assertAlmostEqual,
        "assertNotAlmostEquals": unittest.TestCase.assertNotAlmostEqual,
        "assertRegexpMatches": unittest.TestCase.assertRegex,
        "assertNotRegexpMatches": unittest.TestCase.assertNotRegex,
        "assertRaisesRegexp": unittest.TestCase.assertRaisesRegex,
        "assert_": unittest.TestCase.assertTrue,
    },
}

_OF_NUMPY: Final[Mapping[str, Any]] = {
    # until NumPy 1.23
    "float": float, "int": int, "bool": bool, "object": object, "str": str, "complex": complex, "unicode": str,
    "asscalar": lambda a: np.asarray(a).item(), "rank": np.ndim,
    "typeDict": np.sctypeDict, "bool8": np.bool_, "int0": np.intp, "uint0": np.uintp, "math": math,
    # until NumPy 1.26
    "float_": np.float64, "complex_": np.complex128, "cfloat": np.complex128, "singlecomplex": np.complex64,
    "longfloat": np.longdouble, "unicode_": np.str_, "string_": np.bytes_,
    "Inf": np.inf, "Infinity": np.inf, "PINF": np.inf, "infty": np.inf, "NINF": -np.inf, "NaN": np.nan, "NAN": np.nan,
    "PZERO": 0.0, "NZERO": -0.0,
    "product": np.prod, "cumproduct": np.cumprod, "alltrue": np.all, "sometrue": np.any, "round_": np.round,
    "mat": np.asmatrix, "msort": lambda a: np.sort(a, axis=0), "asfarray": _asfarray, "cast": _Casts(),
    "safe_eval": ast.literal_eval,
    # until NumPy 2.3
    "in1d": _in1d, "trapz": getattr(np, "trapezoid", None) or getattr(np, "trapz", None), "row_stack": np.vstack,
}  # fmt: skip


def restore() -> None:
    """Give the modules of this process the names that they had. Those that they have stay."""
    for owner, names in {**_OF_MODULES, np: _OF_NUMPY, np.lib: {"pad": np.pad}}.items():
        for name, meaning in names.items():
            if name not in vars(owner):
                setattr(owner, name, meaning)
    for name in ("AxisError", "ComplexWarning", "RankWarning", "VisibleDeprecationWarning"):  # until NumPy 1.26
        if name not in vars(np):
            setattr(np, name, getattr(np.exceptions, name))
    for name in ("array", "asarray"):  # until NumPy 1.23
        if not hasattr(getattr(np, name), "__wrapped__"):
            setattr(np, name, _ragged(getattr(np, name)))
    if importlib.util.find_spec("imp") is None:  # until Python 3.11
        imp = sys.modules["imp"] = ModuleType("imp", "The part of a former module that programs use.")
        imp.__dict__.update(reload=importlib.reload, load_source=load_source)
