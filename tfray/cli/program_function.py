"""Finds and calls the function of a program that a `tfray` command names, and checks what it returns."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tfray.cli.command import BadRequest, errors_of
from tfray.training.input.inputs import Batch
from tfray.training.trainer.trainer import Trainer

Build = Callable[..., Trainer | tuple[Trainer, Iterable[Batch]]]
"""What can be trained: a function that returns a `Trainer`, or one and the batches to test on afterwards."""

SCRIPT_MODULE: Final = "__tfray_script__"


def load_function(target: str, debug: bool = False) -> Build:
    """The function that ``SCRIPT.py:FUNCTION`` or ``package.module:FUNCTION`` names.

    Args:
        target: The name.
        debug: Whether an error of the script is raised as it is.

    Raises:
        BadRequest: There is no such file, module or function.
        click.ClickException: The script or the module failed.
    """
    source, _, name = target.rpartition(":")
    if not source or not name:
        raise BadRequest(f"{target!r} is not SCRIPT.py:FUNCTION or package.module:FUNCTION")
    module = _load(source, debug)
    function = getattr(module, name, None)
    if not callable(function):
        found = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        own = [key for key in found if getattr(module, key).__module__ == module.__name__]
        raise BadRequest(f"{source} has no function {name!r}; it has {', '.join(own) or 'none'}")
    return function


def _load(source: str, debug: bool) -> ModuleType:
    """The module of a script, or of that name."""
    if source.endswith(".py") or os.sep in source:
        return _load_script(Path(source), debug)
    return _load_module(source, debug)


def _load_script(path: Path, debug: bool) -> ModuleType:
    """Execute a file, much as ``python FILE`` does, but with `SCRIPT_MODULE` as its name."""
    if not path.is_file():
        raise BadRequest(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(SCRIPT_MODULE, path)
    if spec is None or spec.loader is None:
        raise BadRequest(f"{path} is not a Python file")
    # Ray lets workers import from the directories of sys.argv[0] and of this process.
    sys.argv[0] = str(path)
    sys.path.insert(0, str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[SCRIPT_MODULE] = module
    try:
        with errors_of(str(path), debug):
            spec.loader.exec_module(module)
    finally:
        # Workers cannot import a module of that name. So what it defines must travel by value, like ``__main__``'s.
        del sys.modules[SCRIPT_MODULE]
    return module


def _load_module(name: str, debug: bool) -> ModuleType:
    if not all(name.split(".")):
        raise BadRequest(f"{name!r} is neither a script (SCRIPT.py) nor the name of a module (package.module)")
    sys.path.insert(0, os.getcwd())
    with errors_of(name, debug):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if name != missing and not name.startswith(f"{missing}."):
                raise
            raise BadRequest(f"there is no module {missing!r} on sys.path or in {os.getcwd()}") from error


def _parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    parsed = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.isidentifier():
            raise BadRequest(f"{setting!r} is not KEY=VALUE")
        try:
            parsed[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parsed[key] = text
    return parsed


def built_trainer(build: Build, settings: Sequence[str], debug: bool) -> tuple[Trainer, Iterable[Batch] | None]:
    """Call the user's function and check what it returns."""
    name = getattr(build, "__name__", repr(build))
    built = called(build, settings, debug)
    trainer, batches = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
    if not isinstance(trainer, Trainer):
        raise BadRequest(
            f"{name} returned a {type(trainer).__name__}, expected a tf.train.Trainer, or one and its test batches"
        )
    if batches is not None and not isinstance(batches, Iterable):
        raise BadRequest(f"{name} returned a {type(batches).__name__} for the test batches, expected an iterable")
    return trainer, batches


def called(build: Callable[..., Any], settings: Sequence[str], debug: bool) -> Any:
    """Call the user's function with the arguments ``KEY=VALUE``."""
    arguments, name = _parse_settings(settings), getattr(build, "__name__", repr(build))
    try:
        signature = inspect.signature(build)
    except ValueError as error:  # some built-in types, such as int, have no signature
        raise BadRequest(f"{name} is no function of a program") from error
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise BadRequest(f"{name}{signature} cannot be called with {arguments}: {error}") from error
    with errors_of(name, debug):
        return build(**arguments)


def built_by(target: str, settings: Sequence[str], debug: bool) -> Any:
    """What a function of a script returns, its `build` unless another is named; None for a script without functions."""
    if ":" not in target:
        module = _load(target, debug)
        if not callable(getattr(module, "build", None)):
            return None
        function = module.build
    else:
        function = load_function(target, debug)
    built = called(function, settings, debug)
    return built[0] if isinstance(built, tuple) and built else built
