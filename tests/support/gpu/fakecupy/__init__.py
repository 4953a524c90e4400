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

The modules, from the bottom up: `real_cupy` (what the installed CuPy says), `recording` (what is counted),
`pretended_devices`, `arrays`, `ufuncs`, `generated_kernels`, `functions`, `sparse_matrices`, and `array_module`, which
is installed.
"""

from tests.support.gpu.fakecupy.array_module import install
from tests.support.gpu.fakecupy.recording import recorder

__all__ = ["install", "recorder"]
