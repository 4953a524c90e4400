"""Compiled kernels: made from the Python of `ops.compiled`, where the extra ``fast`` has installed numba.

A kernel is compiled when it is first asked for on this machine, which takes about a second, and kept as machine code in
the user's cache folder. From then on llvmlite alone loads it, in a millisecond; numba is imported by a process only if
it compiles. A kernel is called with the addresses of arrays, without the interpreter's lock. Every thread that takes
part enters it once, and takes items from a common counter until none are left.

With ``TFRAY_KERNELS=numpy`` in the environment, or without the extra, nothing is compiled and NumPy computes.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import inspect
import logging
import os
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module, util
from pathlib import Path
from typing import Any, Final

import numpy as np

from tfray.once import once
from tfray.ops.kernels.addresses import address_of
from tfray.ops.kernels.cpu_threads import MOST_THREADS, free_helpers, thread_count
from tfray.ops.kernels.native.native_helpers import Entry, Helpers
from tfray.ops.kernels.native.onednn import PATHS_VARIABLE

_PACKAGE: Final = "tfray.ops.compiled"
_LONG_S: Final = 2.0
"""Seconds of compiling from which the user is told."""

LEAST_ELEMENTS: Final = 1 << 14
"""Elements from which a kernel is worth loading the compiler's library for: NumPy takes microseconds for fewer."""

LARGE_ELEMENTS: Final = 1 << 18
"""Elements from which a second thread pays, for kernels that do more than pass over memory."""

STEP_ELEMENTS: Final = 1 << 14
"""Elements that a thread takes at a time: some microseconds of work, so that none waits long for another."""

_HEADER: Final = 4
"""Numbers of eight bytes at the begin of a block: how many times threads have taken items, how many threads have, how
many items one takes at a time, and how many there are. Arguments follow."""

_FORMS: Final[Mapping[str, str]] = {"Float": "f4x", "Double": "d"}
"""How arguments lie in a block, by the names that annotations use. All others are whole numbers or addresses."""

_log = logging.getLogger(__name__)


@cache
def can_compile() -> bool:
    """Whether kernels are compiled: the libraries are there, and ``TFRAY_KERNELS`` is not ``numpy``."""
    if os.environ.get(PATHS_VARIABLE) == "numpy":
        return False
    return all(util.find_spec(name) is not None for name in ("numba", "llvmlite"))


class CompiledKernel:
    """A kernel, compiled or loaded at the first call.

    Args:
        source: The source of a module that defines it.
        name: Its name there. Its first two arguments are the range of items to compute.
        load: Gives the module's namespace, to compile it.
    """

    def __init__(self, source: str, name: str, load: Callable[[], Mapping[str, Any]]) -> None:
        self._source = source
        self._name = name
        self._load = load
        self._lock = threading.Lock()

    @cached_property
    def _types(self) -> list[str]:
        """The types of the arguments after the range."""
        tree = ast.parse(self._source)
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == self._name)
        return [ast.unparse(argument.annotation) for argument in function.args.args[2:] if argument.annotation]

    @cached_property
    def _entry(self) -> Entry:
        with self._lock:
            key = hashlib.sha256(repr((self._source, self._name, _surroundings())).encode()).hexdigest()[:32]
            entry = _engine().function(key, lambda: _compiled(self._load()[self._name], self._types))
        return Entry(entry)

    @cached_property
    def _layout(self) -> struct.Struct:
        """How the arguments lie in a block, behind its header: each in eight bytes."""
        passed = [_FORMS.get(kind, "q") for kind in self._types if kind != "Thread"]
        return struct.Struct(f"={_HEADER}q{''.join(passed)}")

    def prepare(self) -> None:
        """Load it, and compile it first where that has not been done."""
        self._entry  # noqa: B018 (a cached property)

    def run(self, count: int, step: int, *arguments: Any, is_large: bool = True) -> None:
        """Compute all items.

        Args:
            count: Number of items.
            step: Items that a thread takes at a time.
            *arguments: Numbers, and C-contiguous arrays, as the kernel's annotations say.
            is_large: Whether several threads take part.
        """
        self.bind(count, step, *arguments).run(is_large)

    def bind(self, count: int, step: int, *arguments: Any) -> KernelCall:
        """A call with these arguments, see `run`, to be made any number of times. The caller keeps the arrays alive."""
        layout = self._layout
        block = ctypes.create_string_buffer(layout.size)
        values = [address_of(value) if isinstance(value, np.ndarray) else value for value in arguments]
        layout.pack_into(block, 0, 0, 0, step, count, *values)
        return KernelCall(self._entry, block, -(-count // step))


class KernelCall:
    """A kernel with its arguments; one thread makes the call at a time.

    Args:
        entry: The kernel.
        block: The arguments.
        shares: Among how many threads the items can be divided.
    """

    __slots__ = ("_block", "_entry", "_shares")

    def __init__(self, entry: Entry, block: Any, shares: int) -> None:
        self._entry = entry
        self._block = block
        self._shares = shares

    def run(self, is_large: bool) -> None:
        """Compute all items, on several threads if the work is large."""
        self._block[:16] = _NOTHING_TAKEN
        if is_large and self._shares > 1 and (helpers := free_helpers()) is not None:
            _shared_helpers().share(self._entry, self._block, min(helpers, self._shares - 1))
        else:
            self._entry.call(self._block)


_NOTHING_TAKEN: Final = bytes(16)
"""The first two numbers of a block before a call."""


_helpers: Helpers | None = None
_helpers_lock = threading.Lock()


def _shared_helpers() -> Helpers:
    """The helpers of this process."""
    global _helpers
    if _helpers is None:
        with _helpers_lock:
            if _helpers is None:
                serve, join, share = (kernel("handoff", name)._entry for name in ("serve", "join", "share"))
                # As many other threads may join in. Kernels have memory of their own for `MOST_THREADS`.
                _helpers = Helpers(serve, join, share, min(thread_count() - 1, MOST_THREADS // 2))
    return _helpers


def _forget_helpers() -> None:
    # A forked child has no threads but its own.
    global _helpers, _helpers_lock
    _helpers, _helpers_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


@cache
def kernel(module: str, name: str) -> CompiledKernel:
    """The kernel `name` of a module of `ops.compiled`."""
    found = util.find_spec(f"{_PACKAGE}.{module}")
    assert found is not None and found.origin is not None
    source = Path(found.origin).read_text(encoding="utf-8")
    return CompiledKernel(source, name, lambda: vars(import_module(f"{_PACKAGE}.{module}")))


def kernel_of_source(source: str, name: str) -> CompiledKernel:
    """The kernel `name` of generated source, in which the names of `ops.compiled.vectors` are known."""

    def load() -> Mapping[str, Any]:
        namespace = dict(vars(import_module(f"{_PACKAGE}.vectors")))
        exec(compile(source, f"<kernel {name}>", "exec", dont_inherit=True), namespace)
        return namespace

    return CompiledKernel(source, name, load)


@cache
def _surroundings() -> tuple[str, ...]:
    """What else the code of a kernel depends on: the functions that kernels share, the compiler, and the CPU."""
    from importlib import metadata  # it takes 10 ms to import

    import llvmlite.binding as llvm

    shared = util.find_spec(f"{_PACKAGE}.vectors")
    assert shared is not None and shared.origin is not None
    versions = [metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    own = inspect.getsource(sys.modules[__name__])
    return (own, Path(shared.origin).read_text(encoding="utf-8"), *versions, *cpu)


# -- compiling -------------------------------------------------------------------------------------------


def _compiled(function: Callable[..., None], types: Sequence[str]) -> bytes:
    """The machine code of a kernel and of the loop that takes items for it, as an object file with `_ENTRY`."""
    import llvmlite.binding as llvm
    from numba import cfunc, njit
    from numba import types as numba_types

    vectors = import_module(f"{_PACKAGE}.vectors")
    names = ["who" if kind == "Thread" else f"a{index}" for index, kind in enumerate(types)]
    passed = [name for name in names if name != "who"]
    source = (
        "def entry(block):\n"
        + "".join(f"    {name} = argument(block, {_HEADER + place}, t_{name})\n" for place, name in enumerate(passed))
        + "    step, count = block[2], block[3]\n"
        "    first = take(block) * step\n"
        "    if first < count:\n"
        "        who = take(behind(block, 1))\n"
        "        while first < count:\n"
        f"            kernel(first, min(first + step, count), {', '.join(names)})\n"
        "            first = take(block) * step\n"
    )
    namespace = {
        "take": vectors.take,
        "argument": vectors.argument,
        "behind": vectors.behind,
        "kernel": njit(error_model="numpy", forceinline=True)(function),
        **{f"t_{name}": vectors.ARGUMENT_TYPES[kind] for name, kind in zip(names, types, strict=True)},
    }
    exec(source, namespace)
    signature = numba_types.void(numba_types.CPointer(numba_types.int64))
    # All in one function: LLVM sees there that no call fails, and leaves out what would raise errors (see `_RAISING`).
    entry = cfunc(signature, error_model="numpy", forceinline=True)(namespace["entry"])
    text = entry.inspect_llvm().replace(entry.native_name, _ENTRY)
    machine = _machine("-prefer-256-bit")  # vectors as wide as the CPU has them
    code: bytes = machine.emit_object(llvm.parse_assembly(text))
    return code


_ENTRY: Final = "tfray_kernel"


def _machine(*features: str) -> Any:
    """A description of this CPU, for LLVM."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    flags = ",".join([llvm.get_host_cpu_features().flatten(), *features])
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=flags, opt=3, reloc="pic", codemodel="jitdefault", jit=True
    )


_RAISING: Final = (
    *("numba_gil_ensure", "numba_gil_release", "numba_runtime_build_excinfo_struct", "NRT_Free"),
    *("numba_unpickle", "numba_do_raise"),
)
"""Functions of numba that a kernel calls to raise an error, as ``range`` does for a step of 0. No kernel gets there."""


class _Engine:
    """Loads machine code, which stays for the life of the process."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        # While any function is missing, LLVM finds none, not even ``memset``, of which it makes calls of its own.
        abort = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
        for name in _RAISING:
            if llvm.address_of_symbol(name) is None:
                llvm.add_symbol(name, abort)
        self._loaded: list[Any] = []
        self._lock = threading.Lock()
        self._spent_s = 0.0
        self._told = False

    def function(self, key: str, compiled: Callable[[], bytes]) -> int:
        """The address of the kernel with that key; `compiled` makes its object file where the cache has none."""
        with self._lock:
            path = _folder() / f"{key}.o"
            try:
                code = path.read_bytes()
            except OSError:
                code = self._timed(compiled)
                _keep(path, code)
            return self._linked(code)

    def _timed(self, compiled: Callable[[], bytes]) -> bytes:
        started = time.monotonic()
        code = compiled()
        self._spent_s += time.monotonic() - started
        if self._spent_s > _LONG_S and not self._told:
            self._told = True
            print(f"tfray: compiling kernels for this CPU, once; they are kept in {_folder()}", file=sys.stderr)
        return code

    def _linked(self, code: bytes) -> int:
        import llvmlite.binding as llvm

        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._loaded.append(engine)
        address: int = engine.get_function_address(_ENTRY)
        return address


@once
def _engine() -> _Engine:
    return _Engine()


@cache
def _folder() -> Path:
    """The folder of kept kernels: the user's own, which nobody else can write to.

    It is a temporary one, for this process, where the user has none.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "tfray" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid == os.getuid() and not state.st_mode & 0o022:
            return folder
        _log.warning("%s belongs to another user or can be written by others: kernels are compiled anew", folder)
    except OSError as error:
        _log.warning("compiled kernels cannot be kept in %s: %s", folder, error)
    return Path(tempfile.mkdtemp(prefix="tfray-kernels-"))


def kept_text(name: str) -> str | None:
    """What `keep_text` has kept under a name."""
    try:
        return (_folder() / f"{name}.txt").read_text(encoding="utf-8")
    except OSError:
        return None


def keep_text(name: str, text: str) -> None:
    """Keep a text beside the kernels, for later processes: what was measured once on this machine."""
    _keep(_folder() / f"{name}.txt", text.encode())


def _keep(path: Path, code: bytes) -> None:
    """Write a file as a whole: another process may do the same."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        os.replace(file.name, path)
    except OSError as error:
        _log.warning("a compiled kernel cannot be kept in %s: %s", path, error)
