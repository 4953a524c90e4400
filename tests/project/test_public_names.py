"""The public names: what `dir` and editors show of the facade and of its namespaces."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.processes import PATIENCE_S
from tfray.lazy_modules import LAZY

TYPED_PROGRAM = ROOT / "tests" / "support" / "typed_program.py"


def namespaces() -> dict[str, ModuleType]:
    """The facade and every namespace that is reached through public names, by its shortest expression."""
    found: dict[str, ModuleType] = {"tf": tf}
    waiting = [("tf", tf)]
    while waiting:
        path, module = waiting.pop(0)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType) and value.__name__.startswith("tfray.") and value not in found.values():
                found[f"{path}.{name}"] = value
                waiting.append((f"{path}.{name}", value))
    return found


NAMESPACES = namespaces()


def bound(body: list[ast.stmt]) -> dict[str, str]:
    """Names that statements of a module bind, those for type checkers included, and the modules that they come from."""
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = ""
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update((each.id, "") for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            found.update((name, f"{node.module}.{name}") for name in importlib.import_module(str(node.module)).__all__)
        elif isinstance(node, ast.ImportFrom):
            found.update((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, (ast.If, ast.With)):
            found.update(bound(node.body))
    return found


def test_namespaces_are_found():
    assert len(NAMESPACES) > 60
    assert {"tf.nn", "tf.train", "tf.keras.layers", "tf.contrib.slim", "tf.nn.rnn_cell", "tf.errors"} <= set(NAMESPACES)


@pytest.mark.parametrize("path", NAMESPACES)
def test_dir_lists_what_is_public(path):
    module = NAMESPACES[path]
    assert dir(module) == sorted(set(module.__all__)) and len(module.__all__) == len(set(module.__all__))
    assert not [name for name in module.__all__ if name.startswith("_")]
    for name in module.__all__:
        assert hasattr(module, name), f"{path}.{name} is listed and not there"


@pytest.mark.parametrize("path", NAMESPACES)
def test_what_is_public_is_visible_to_type_checkers(path):
    """Every name is bound by a statement that they read; what is loaded later, by an import for them alone."""
    module = NAMESPACES[path]
    statements = bound(ast.parse(Path(module.__file__).read_text()).body)
    assert set(module.__all__) <= set(statements), set(module.__all__) - set(statements)
    if path == "tf":
        assert {name: statements[name] for name in LAZY} == LAZY


def test_modules_of_the_package_are_no_public_names():
    inner = {path.stem for path in (ROOT / "tfray").iterdir() if path.suffix == ".py" or path.is_dir()}
    # TensorFlow has something of this name, but for `onnx`, a namespace of tfray's own.
    both = {"compat", "contrib", "distribute", "errors", "estimator", "gradients", "keras", "onnx"}
    assert inner & set(dir(tf)) == both
    assert callable(tf.gradients)


def test_names_can_be_imported_all_at_once():
    names: dict[str, object] = {}
    exec("from tfray.library.platform.testing import *", names)
    assert names["TestCase"] is tf.test.TestCase and "annotations" not in names


# -- type checkers ------------------------------------------------------------------------------------------


def pyright(*files: Path) -> dict[str, list[str]]:
    """What pyright has to say on each file: a line for each error. Tests are skipped where it is not installed."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which("basedpyright", path=places) or shutil.which("pyright", path=places)
    if command is None:
        pytest.skip("pyright is not installed")
    settings = files[0].with_name("pyrightconfig.json")
    included = [path.name for path in files]
    settings.write_text(json.dumps({"extraPaths": [str(ROOT)], "typeCheckingMode": "standard", "include": included}))
    done = subprocess.run(
        [command, "--outputjson", "--pythonpath", sys.executable, "--project", settings],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(files), done.stderr
    errors: dict[str, list[str]] = {path.name: [] for path in files}
    for each in found["generalDiagnostics"]:
        if each["severity"] == "error":
            errors[Path(each["file"]).name].append(f"{each['range']['start']['line'] + 1} {each['message']}")
    return errors


EVERY_NAME = [f"{path}.{name}" for path, module in NAMESPACES.items() for name in module.__all__]


@pytest.fixture(scope="module")
def errors_of_pyright(tmp_path_factory) -> dict[str, list[str]]:
    """What pyright says on a program with every public name and two others, and on a typed one: at once, since most
    of its time is for tfray."""
    folder = tmp_path_factory.mktemp("pyright")
    program, copy = folder / "every_name.py", folder / TYPED_PROGRAM.name
    listed = "\n".join(f"_ = {line}" for line in [*EVERY_NAME, "tf.no_such_name", "tf.contrib.no_such_name"])
    program.write_text(f"import tfray as tf\n\n{listed}\n")
    copy.write_text(TYPED_PROGRAM.read_text())
    return pyright(program, copy)


@pytest.mark.slow
def test_pyright_knows_every_public_name(errors_of_pyright):
    assert len(EVERY_NAME) > 1500
    errors = errors_of_pyright["every_name.py"]
    assert [error for error in errors if "no_such_name" not in error] == []
    assert len(errors) == 2


@pytest.mark.slow
def test_pyright_accepts_a_typed_program(errors_of_pyright):
    assert errors_of_pyright[TYPED_PROGRAM.name] == []


@pytest.mark.slow
def test_mypy_accepts_a_typed_program(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    copy = tmp_path / TYPED_PROGRAM.name
    copy.write_text(TYPED_PROGRAM.read_text())
    options = ["--strict", "--follow-imports=silent", "--config-file", "", "--cache-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(copy)],
        env={"MYPYPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
