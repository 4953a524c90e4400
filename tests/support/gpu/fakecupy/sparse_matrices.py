"""Matrices of `cupyx.scipy.sparse`, computed by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tests.support.gpu.fakecupy.arrays import ndarray, on_host, wrap
from tests.support.gpu.fakecupy.recording import recorder


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
        return wrap(self.host @ other._host)


def sparse_constructor(name: str) -> Any:
    def make(arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseMatrix:
        recorder.call(f"sparse.{name}")
        plain = on_host(arg)
        data = plain[0] if isinstance(plain, tuple) else plain
        if np.dtype(dtype or data.dtype) not in [np.dtype(c) for c in "?fdFD"]:
            raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
        if isinstance(plain, tuple) and len(plain) == 3 and len(plain[2]):
            recorder.wait("sparse.check")  # the index arrays are checked on the host
        return SparseMatrix(getattr(scipy.sparse, name)(plain, shape=shape, dtype=dtype))

    return make
