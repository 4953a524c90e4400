"""The package `tensorflow` for programs that import it: tfray under TensorFlow's module paths.

`install` lets ``import tensorflow`` find it. Modules are made when they are first imported. A module stands either for
a public namespace, such as ``tensorflow.nn`` for `tf.nn`, or for one of TensorFlow's own modules, such as
``tensorflow.python.ops.array_ops``: then `module_paths.txt` says which public names it has.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.resources import files
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import tfray
from tfray.absent_names import absent
from tfray.errors import InvalidArgumentError

ROOT: Final = "tensorflow"
VERSIONS: Final = {"1.15": "1.15.5", "0.12": "0.12.1"}
"""The versions of TensorFlow that programs can find, the usual one first, and their ``tf.__version__``."""

VARIABLE: Final = "TFRAY_TENSORFLOW"
"""The environment variable that says which version programs find."""

_GENERATED: Final = re.compile(r"python\.(ops|training)\.(gen_)?\w+_ops|raw_ops")
"""Modules that have functions which TensorFlow generates for its operation types, or take them from one that has."""

_IMPORTED: Final = ("framework", "ops", "training", "util", "platform", "client", "eager")
"""Packages of ``python`` whose modules TensorFlow's own modules import: programs take them from these as well."""

_CONTRIBUTED: Final = re.compile(r"(contrib\.\w+)\.python\..+")
"""TensorFlow's own modules of a contributed package, which have the package's names."""

_SAME: Final = "compat.v1"
"""The path that leads back to the root."""

_ESTIMATOR: Final = "tensorflow_estimator"
"""The package that holds what TensorFlow has as ``tensorflow.estimator`` and ``tensorflow.python.estimator``."""


@functools.cache
def table() -> Mapping[str, Mapping[str, str]]:
    """What TensorFlow's own modules have: by path, and by name, the public name that it is.

    Each line is a path and what the module there has, a name and a public name as ``name=nn.name``, or ``nn.name``
    where the last part is the name. A target that begins with ``@`` is no public one: it is that of something in
    tfray's modules. A module whose only name is ``*`` is another one, public or not, as a whole. The lines are written
    by hand, in order of their paths: a new name of tfray's is added to the modules in which TensorFlow has it.
    """
    lines = files("tfray.programs").joinpath("module_paths.txt").read_text().splitlines()
    found = {}
    for line in lines:
        path, *entries = line.split()
        pairs = (entry.rpartition("=") for entry in entries)
        found[path] = {name or target.rpartition(".")[2]: target for name, _, target in pairs}
    return found


@functools.cache
def _packages() -> Mapping[str, Sequence[str]]:
    """The modules below each path of the table."""
    found: dict[str, set[str]] = {}
    for path in table():
        parts = path.split(".")
        for count in range(len(parts)):
            found.setdefault(".".join(parts[:count]), set()).add(parts[count])
    return {path: sorted(names) for path, names in found.items()}


def namespace(path: str) -> ModuleType | None:
    """The module of tfray that is the public namespace of this path; None if there is none."""
    found: Any = tfray
    for name in path.split("."):
        if not isinstance(found, ModuleType) or (found is tfray and name not in tfray.__all__):
            return None
        found = getattr(found, name, None)
    return found if isinstance(found, ModuleType) else None


class TensorFlowModule(ModuleType):
    """A module under TensorFlow's name. What it has is found when it is asked for, and kept.

    Args:
        path: Its path, without ``tensorflow.``; empty for the package itself.
        package: What it belongs to.
    """

    def __init__(self, path: str, package: TensorFlow) -> None:
        entries = table().get(path, {})
        base = package.base(path)
        super().__init__(
            f"{ROOT}.{path}".rstrip("."), base.__doc__ if base else f"Names that TensorFlow has in {path}."
        )
        self.__dict__.update(__path__=[], __all__=self._names(base, entries, package, path))
        self.__dict__.update(_path=path, _package=package, _entries=entries, _base=base, _replaced={})

    @staticmethod
    def _names(base: ModuleType | None, entries: Mapping[str, str], package: TensorFlow, path: str) -> list[str]:
        names = set(getattr(base, "__all__", ())) | set(entries) - {"*"} | set(package.older_names(path))
        return sorted(names if base else names | set(_packages().get(path, ())))

    def __dir__(self) -> list[str]:
        return list(self.__all__)

    def __getattr__(self, name: str) -> Any:
        try:
            value = self._package.value(self._path, name, self._entries, self._base)
        except AttributeError as error:
            raise AttributeError(str(error), name=name, obj=self) from None
        _tell_signatures(value)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a name. In one of TensorFlow's own modules it is replaced where tfray's code looks for it, too."""
        if (owner := self._owner(name)) is not None and not isinstance(value, TensorFlowModule):
            self._replaced.setdefault(name, getattr(*owner))
            setattr(*owner, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Take back what was set, as `unittest.mock.patch` does."""
        if name in self._replaced and (owner := self._owner(name)) is not None:
            setattr(*owner, self._replaced.pop(name))
        super().__delattr__(name)

    def _owner(self, name: str) -> tuple[ModuleType, str] | None:
        """The module of tfray, and the name there, that a name of one of TensorFlow's own modules is."""
        if "python" not in self._path.split(".") or name.startswith("__"):
            return None
        target = self._entries.get(name, "")
        if target.startswith("@"):
            module, _, last = target[1:].rpartition(".")
            return importlib.import_module(module), last
        base = self._base
        return (base, name) if not target and base is not None and name in vars(base) else None

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Other processes know tfray by its own name."""
        return importlib.import_module, (getattr(self._base, "__name__", "tfray"),)


_told: Final[set[type]] = set()


def _tell_signatures(value: Any) -> None:
    """Let `inspect.getfullargspec` see what a function, or a class's methods, take: it looks behind no wrapper."""
    if isinstance(value, FunctionType):
        _tell_signature(value)
    if not isinstance(value, type):
        return
    for kind in value.__mro__:
        if kind in _told or not kind.__module__.startswith("tfray."):
            continue
        _told.add(kind)
        inherited: Any = kind.__init__  # type: ignore[misc]
        if "__init__" not in vars(kind) and isinstance(inherited, FunctionType):
            _tell_inherited(kind, inherited)
        for name, held in vars(kind).items():
            method = held.__func__ if isinstance(held, (staticmethod, classmethod)) else held
            if isinstance(method, FunctionType):
                _tell_signature(method, kind if name == "__init__" else None)


def _tell_inherited(kind: type, inherited: FunctionType) -> None:
    """Give a class an ``__init__`` of its own to tell its arguments, where the one that it inherits takes any."""
    if inspect.unwrap(inherited).__code__.co_flags & inspect.CO_VARARGS:
        own = FunctionType(
            inherited.__code__, inherited.__globals__, "__init__", inherited.__defaults__, inherited.__closure__
        )
        own.__dict__.update((name, value) for name, value in vars(inherited).items() if name != "__signature__")
        own.__kwdefaults__, own.__qualname__ = inherited.__kwdefaults__, inherited.__qualname__
        own.__doc__, own.__annotations__ = inherited.__doc__, inherited.__annotations__
        _tell_signature(own, kind)
        setattr(kind, "__init__", own)  # noqa: B010 (an assignment would be refused by type checkers)


def _tell_signature(function: FunctionType, made: type | None = None) -> None:
    """Say what a wrapped function takes; as ``__init__`` of `made`, by name what it hands on to those of bases."""
    if "__signature__" in function.__dict__ or not hasattr(function, "__wrapped__"):
        return
    with suppress(TypeError, ValueError):
        signature = inspect.signature(function)
        own = list(signature.parameters.values())
        if made is not None and any(each.kind is each.VAR_POSITIONAL for each in own):
            signature = signature.replace(parameters=[own[0], *inspect.signature(made).parameters.values()])
        function.__dict__["__signature__"] = signature


class TensorFlow(MetaPathFinder, Loader):
    """Finds and makes the modules of `tensorflow`.

    Args:
        version: What ``tf.__version__`` is.
        older: Names that older versions had, by their paths, and what they stand for. They hide newer ones.
    """

    def __init__(self, version: str, older: Mapping[str, Any]) -> None:
        # Versions are found as names of older versions are: before what tfray has under these names.
        released = {"VERSION": version, "GIT_VERSION": f"v{version}"}
        self._older: dict[str, Any] = dict(released)
        for path in ("", "compat.v2."):
            self._older.update({f"{path}__{name.lower()}__": value for name, value in released.items()})
            self._older.update({f"{path}version.{name}": value for name, value in released.items()})
        self._older.update(older)
        self._specs: dict[str, ModuleSpec | None] = {}

    def base(self, path: str) -> ModuleType | None:
        """The module of tfray behind a path, if there is one."""
        head, rest = path, ""
        while head:
            if (target := table().get(head, {}).get("*")) is not None:
                target = f"{target}.{rest}".rstrip(".")
                return _own_module(target[1:]) if target.startswith("@") else namespace(target)
            head, _, last = head.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
        return namespace(path) if path else tfray

    def older_names(self, path: str) -> Iterator[str]:
        """Names of a module that older versions had."""
        for name in self._older:
            before, _, last = name.rpartition(".")
            if before == path:
                yield last

    def value(self, path: str, name: str, entries: Mapping[str, str], base: ModuleType | None) -> Any:
        """What a module has under a name.

        Raises:
            AttributeError: It has nothing. The message says what there is.
        """
        inner = f"{path}.{name}".lstrip(".")
        if inner in self._older:
            return self._older[inner]
        if name in entries:
            return self._target(entries[name])
        if base is not None and (name in getattr(base, "__all__", ()) or name.startswith("__")):
            value = getattr(base, name)
            return self._module(inner) if isinstance(value, ModuleType) and self.base(inner) is value else value
        if not name.startswith("__") and self.has(inner):
            return self._module(inner)
        if base is not None and (own := vars(base).get("__getattr__")):
            value = own(name)
            return self._module(inner) if isinstance(value, ModuleType) else value
        if _GENERATED.fullmatch(path) and (function := _generated(name)):
            return function
        if (match := _CONTRIBUTED.match(path)) and name in getattr(namespace(match[1]), "__all__", ()):
            return self._target(f"{match[1]}.{name}")
        if "python" in path.split("."):
            for package in _IMPORTED:
                if f"python.{package}.{name}" in table():
                    return self._module(f"python.{package}.{name}")
        if name.startswith("__"):  # Python's `inspect` asks every module for such names, again and again
            raise AttributeError(f"tf.{inner} does not exist")
        raise absent(inner, _listed(path, entries, base))

    def _target(self, target: str) -> Any:
        """What an entry of the table stands for."""
        if target.startswith("@"):
            module, _, name = target[1:].rpartition(".")
            return getattr(importlib.import_module(module), name)
        return functools.reduce(getattr, target.split("."), sys.modules[ROOT])

    def _module(self, path: str) -> ModuleType:
        return importlib.import_module(f"{ROOT}.{path}")

    def has(self, path: str) -> bool:
        """Whether there is a module of this path."""
        older = self._older.get(path)
        return path in table() or path in _packages() or isinstance(older, ModuleType) or self.base(path) is not None

    # -- Python's import system ------------------------------------------------------------------------------

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module below `tensorflow`. Raises `ModuleNotFoundError` for one that does not exist."""
        if fullname == _ESTIMATOR:
            return ModuleSpec(fullname, self, is_package=True)
        root, _, path_below = fullname.partition(".")
        if root not in (ROOT, _ESTIMATOR) or not path_below:
            return None
        inner = _without_same(path_below)
        if inner and not self.has(inner):
            parent = inner.rpartition(".")[0]
            entries = table().get(parent, {})
            said = str(absent(inner, _listed(parent, entries, self.base(parent))))
            # Without its name, Python passes the error on where a `from` asks for what is no module either. What asks
            # for a module by its path, such as `pydoc.locate`, goes by the name.
            raise ModuleNotFoundError(said, name=None if _is_from() else fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module: a new one, or the one that it is by a shorter path."""
        root, _, path = spec.name.partition(".")
        inner = _without_same(path)
        if inner == path and root == ROOT:
            older = self._older.get(path)
            return older if isinstance(older, ModuleType) else TensorFlowModule(path, self)
        module = importlib.import_module(f"{ROOT}.{inner}") if inner else sys.modules[ROOT]
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave a module of a shorter path what it is."""
        spec = module.__spec__
        if spec is not None and spec.name in self._specs:
            module.__spec__ = self._specs.pop(spec.name)


def _own_module(path: str) -> ModuleType | None:
    """The module of tfray of this path; None if there is none."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if not f"{path}.".startswith(f"{error.name}."):
            raise
        return None


def _is_from() -> bool:
    """Whether Python is looking for a name that a `from` takes out of a module."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


def _without_same(path: str) -> str:
    """A path without ``compat.v1``, which leads back to the root."""
    while f"{path}.".startswith(f"{_SAME}."):
        path = path.removeprefix(_SAME).removeprefix(".")
    return path


def _listed(path: str, entries: Mapping[str, str], base: ModuleType | None) -> list[str]:
    """What there is below a path, for messages."""
    return sorted({*getattr(base, "__all__", ()), *entries, *_packages().get(path, ())} - {"*"})


def _generated(name: str) -> Callable[..., Any] | None:
    from tfray.programs.generated_functions import generated_function  # what imports graphs is rarely needed

    return generated_function(name)


def install(version: str | None = None) -> ModuleType:
    """Let ``import tensorflow``, in all modules of this process, find tfray, whether or not TensorFlow is there.

    Args:
        version: ``"1.15"``, or ``"0.12"``: with it a program finds the names of TensorFlow 0.12, some of which have
            other arguments or another order of them than in 1.x. The environment variable `VARIABLE` when None.

    Returns:
        The module `tensorflow`.

    Raises:
        InvalidArgumentError: There is no such version.
    """
    version = version or os.environ.get(VARIABLE) or next(iter(VERSIONS))
    if version not in VERSIONS:
        raise InvalidArgumentError(f"tfray has the names of TensorFlow {' and '.join(VERSIONS)}, not of {version}")
    older: Mapping[str, Any] = {}
    if version.startswith("0."):
        from tfray.programs.older_names import older_names

        older = older_names()
    version = VERSIONS[version]
    _forget()
    package = TensorFlow(version, older)
    module = TensorFlowModule("", package)
    module.__dict__.update(
        __file__=tfray.__file__,
        __path__=[os.path.dirname(str(tfray.__file__))],
        __spec__=ModuleSpec(ROOT, package, is_package=True),
    )
    sys.modules[ROOT] = module
    sys.meta_path.insert(0, package)
    return module


def _forget() -> None:
    """Take `tensorflow` out of this process."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TensorFlow)]
    for name in [name for name in sys.modules if name.partition(".")[0] in (ROOT, _ESTIMATOR)]:
        del sys.modules[name]
