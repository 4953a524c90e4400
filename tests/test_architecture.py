"""The layers, the names and the packaging, as the house rules have them."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import tfray
from tests.support.processes import PATIENCE_S
from tfray.framework.traversal import reachable_backward

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("ops", "actors", "placement")
"""Top-level folders that import as ``tfray.<folder>``."""

LAYERS = (
    ("tfray.absent_names", "tfray.bulk", "tfray.early_interrupts", "tfray.errors", "tfray.once"),
    ("tfray.framework",),
    ("tfray.formats",),
    ("tfray.options",),
    ("tfray.ops.kernels",),
    ("tfray.ops.arrays", "tfray.ops.resources", "tfray.ops.system"),
    ("tfray.ops.math", "tfray.ops.state"),
    ("tfray.ops.checks", "tfray.ops.linalg", "tfray.ops.random", "tfray.ops.strings"),
    ("tfray.ops.dataflow", "tfray.ops.sparse"),
    ("tfray.ops.control",),
    ("tfray.ops.nn",),
    ("tfray.ops.image", "tfray.ops.quantized"),
    ("tfray.ops",),
    ("tfray.region_gradients", "tfray.runtime"),
    ("tfray.gradients", "tfray.placement"),
    ("tfray.jacobians",),
    ("tfray.exchange",),
    ("tfray.actors.links",),
    ("tfray.actors.devices",),
    ("tfray.actors.clusters",),
    ("tfray.actors.replicas", "tfray.actors.launching", "tfray.actors"),
    ("tfray.session_target",),
    ("tfray.session",),
    ("tfray.library.distributions", "tfray.library.variables"),
    ("tfray.library.input", "tfray.library.metrics", "tfray.library.platform"),
    ("tfray.library.forest", "tfray.library.functions", "tfray.library.inspect", "tfray.library.layers"),
    ("tfray.library.networks", "tfray.library.rnn"),
    ("tfray.library.namespaces.config",),
    ("tfray.library.namespaces", "tfray.library"),
    ("tfray.training.optimizers",),
    ("tfray.training.threads",),
    ("tfray.training.checkpoints", "tfray.training.input"),
    ("tfray.training.sessions",),
    ("tfray.training.trainer",),
    ("tfray.training",),
    (
        "tfray.__main__",
        "tfray.cli",
        "tfray.compat",
        "tfray.contrib",
        "tfray.distribute",
        "tfray.estimator",
        "tfray.keras",
        "tfray.lazy_modules",
        "tfray.onnx",
        "tfray.programs",
        "tfray",
    ),
)
"""A module imports from earlier rows, or from its own package; those of the last row also from one another."""

RANKS = {name: rank for rank, row in enumerate(LAYERS) for name in row}
LARGEST_FOLDER = 30
MIRRORS = {"contrib", "distribute", "estimator", "keras", "namespaces"}
"""Folders whose modules are named as TensorFlow names them."""

HEAVY = (
    "ray",
    "cupy",
    "scipy",
    "pyarrow",
    "pandas",
    "sklearn",
    "matplotlib",
    "rich",
    "click",
    "google.protobuf",
    "absl",
    "onnx",
    "h5py",
)
IMPORT_BUDGET = 1.4
"""What `import tfray` may call besides its packages, in imports of NumPy. It takes about 2.3 times NumPy's time."""


def source_files() -> dict[str, Path]:
    """Module name to file, for the whole package."""
    files: dict[str, Path] = {}
    for folder in ("tfray", *MAPPED):
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = path.relative_to(ROOT)
            if folder == "tfray" and len(relative.parts) > 2 and relative.parts[1] in MAPPED:
                continue  # seen through the link
            parts = relative.with_suffix("").parts if folder == "tfray" else ("tfray", *relative.with_suffix("").parts)
            files[".".join(parts).removesuffix(".__init__")] = path
    return files


FILES = source_files()


@dataclass
class Source:
    """What the tests ask of a module. Its tree is not kept: the garbage collector would visit a million nodes."""

    imports: dict[str, int] = field(default_factory=dict)
    """Names of the modules that it imports, in functions and for type checking too, each with its last line."""

    functions: list[tuple[str, int, int]] = field(default_factory=list)
    """Names of functions, where they begin, and the lines of each without its docstring."""


@functools.cache
def source(module: str) -> Source:
    """What is in the file of a module."""
    found = Source()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.Import):
            found.imports.update((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{FILES[module]}:{node.lineno} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.imports[inner if inner in FILES else node.module or ""] = node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            found.functions.append((node.name, node.lineno, (node.end_lineno or 0) - body[0].lineno + 1))
    return found


def imports(module: str) -> dict[str, int]:
    """Names of the modules that a module imports, each with its last line."""
    return source(module).imports


def roots(module: str) -> set[str]:
    """The top-level packages that a module imports."""
    return {name.split(".")[0] for name in imports(module)}


def layer(module: str) -> str:
    """The entry of `RANKS` for a module of tfray: that of the innermost package that has one."""
    while module not in RANKS:
        module = module.rpartition(".")[0]
    return module


def test_every_module_has_a_layer():
    for module in FILES:
        if module != "tfray":
            assert layer(module) != "tfray", f"{module} stands in no layer: add it to LAYERS"


def test_imports_go_down():
    top = RANKS["tfray"]
    for module, path in FILES.items():
        mine = layer(module)
        for name, line in imports(module).items():
            if name == "tfray" or name.startswith("tfray."):
                theirs = layer(name)
                fine = theirs == mine or RANKS[theirs] < RANKS[mine] or RANKS[mine] == top
                assert fine, f"{path}:{line} imports {name} ({theirs}) from {mine}"
                assert name != "tfray" or RANKS[mine] == top, f"{path}:{line} imports the facade"


def test_folders_are_imported_under_their_full_names():
    for module, path in FILES.items():
        for name, line in imports(module).items():
            assert name.split(".")[0] not in MAPPED, f"{path}:{line} imports {name}: write tfray.{name}"


def test_ray_is_imported_in_actors_only_and_cupy_in_one_place():
    for module, path in FILES.items():
        if "ray" in roots(module):
            assert module.startswith("tfray.actors."), f"{path} imports ray"
        if roots(module) & {"cupy", "cupyx"}:
            assert module == "tfray.runtime.device", f"{path} imports cupy"
        assert not roots(module) & {"torch", "jax", "tensorflow"}, path


def test_protocols_know_nothing_of_ray():
    for name in ("replicas.replica_protocol", "devices.replica_inbox"):
        assert roots(f"tfray.actors.{name}") <= {"__future__", "collections", "dataclasses", "typing"}


def test_few_modules_know_ray():
    knowing = {module for module in FILES if "ray" in roots(module)}
    assert len(knowing) < 10, sorted(knowing)


@pytest.mark.parametrize("name", ["replicas.membership", "replicas.step_in_flight", "links.messages"])
def test_what_needs_no_ray_reaches_no_module_that_does(name):
    reached = reachable_backward([f"tfray.actors.{name}"], lambda each: imports(each).keys() & FILES.keys())
    found = {each for each in reached if "ray" in roots(each)}
    assert not found


def test_modules_do_not_import_each_other_in_circles():
    """Nor do imports in functions or for type checking alone close one: modules can be read from the bottom up."""
    edges = {module: {name for name in imports(module) if name in FILES and name != module} for module in FILES}
    for module in edges:
        behind = reachable_backward(edges[module], lambda name: edges.get(name, ()))
        assert module not in behind, f"{module} imports itself by way of others"


def test_nothing_is_unpickled():
    """What is loaded from files or graphs is never executed; Ray's own transport is the only place for pickles."""
    for module, path in FILES.items():
        assert not roots(module) & {"pickle", "marshal", "shelve", "dill", "joblib"}, path


# -- packaging -----------------------------------------------------------------------------------------


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_packages_listed_are_the_tree():
    setuptools = project()["tool"]["setuptools"]
    there = {module for module, path in FILES.items() if path.name == "__init__.py"}
    assert set(setuptools["packages"]) == there
    assert setuptools["package-dir"] == {"tfray": "tfray"} | {f"tfray.{folder}": folder for folder in MAPPED}


@pytest.mark.parametrize("folder", MAPPED)
def test_mapped_folders_are_linked_and_guard_their_name(folder):
    link = ROOT / "tfray" / folder
    assert link.is_symlink() and os.readlink(link) == f"../{folder}"
    found = run_python(f"import {folder}", check=False)
    assert found.returncode != 0 and f"import this package as tfray.{folder}" in found.stderr


def test_the_top_level_holds_what_it_may():
    there = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    tracked = set(git("ls-files").split("\n"))
    top = {name.split("/")[0] for name in tracked if not name.startswith(".")} & there
    allowed = {"pyproject.toml", "README.md", "LICENSE", "tfray", "tests", "examples", "scripts", *MAPPED}
    assert top <= allowed, top - allowed


def git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("not a git checkout")
    return found.stdout


def test_folders_stay_small():
    folders = [path.parent for path in FILES.values()]
    assert {folder for folder in folders if folders.count(folder) > LARGEST_FOLDER} == set()


def test_a_name_stands_for_one_module():
    """Save for the folders that mirror namespaces of TensorFlow, in which a name means what it means there."""
    names = Counter(path.stem for path in FILES.values() if not set(path.relative_to(ROOT).parts) & MIRRORS)
    assert {name for name, count in names.items() if count > 1} == {"__init__", "__main__"}


def test_rooms_of_tests_share_by_support_alone():
    """No test imports another: what several need stands in `tests.support`."""
    paths = list((ROOT / "tests").rglob("*.py"))
    folders = [path.parent for path in paths]
    assert {folder for folder in folders if folders.count(folder) > LARGEST_FOLDER} == set()
    for path in paths:
        text = path.read_text()
        if re.search(r"^ *from tests(?!\.support\.)", text, re.MULTILINE):  # or it need not be parsed
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("tests"):
                    shared = node.module if node.module != "tests" else f"tests.{node.names[0].name}"
                    assert f"{shared}.".startswith("tests.support."), f"{path}:{node.lineno} imports {shared}"


def test_files_and_functions_stay_small():
    for module, path in FILES.items():
        assert len(path.read_text().splitlines()) <= 800, f"{path} has more than 800 lines"
        for name, line, length in source(module).functions:
            assert length <= 80, f"{path}:{line} {name} has {length} lines"


# -- importing -----------------------------------------------------------------------------------------


def run_python(code: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=check,
        env=environment,
        timeout=PATIENCE_S,
    )


def test_importing_is_light():
    found = run_python(f"import sys, tfray; print([name for name in {HEAVY} if name in sys.modules])")
    assert found.stdout.strip() == "[]"
    assert found.stderr == ""


def test_importing_is_fast():
    # Calls are counted, which a busy machine does not change, in place of seconds. NumPy's import is the measure.
    code = """
import sys
calls = 0
def count(*_):
    global calls
    calls += 1
sys.setprofile(count)
import numpy
of_numpy = calls
import ml_dtypes
before = calls
import tfray
print(of_numpy, calls - before)
"""
    of_numpy, own = map(int, run_python(code).stdout.split())
    assert own < IMPORT_BUDGET * of_numpy, f"import tfray makes {own} calls, NumPy's {of_numpy}"


BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""

LOCAL_PROGRAM = """
import numpy as np, tfray as tf
x = tf.placeholder(tf.float32, [None, 2])
w = tf.Variable(tf.ones([2, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
    session.run(tf.global_variables_initializer())
    for _ in range(20):
        session.run(step, {x: np.eye(2)})
    print(round(float(session.run(loss, {x: np.eye(2)})), 6))
"""


def test_a_local_session_needs_no_ray():
    found = run_python(BLOCK.format(blocked=("ray", "cupy", "pyarrow", "pandas")) + LOCAL_PROGRAM)
    assert float(found.stdout) < 1.0


def test_without_ray_a_cluster_says_what_to_install():
    found = run_python(BLOCK.format(blocked=("ray",)) + "import tfray as tf\ntf.Cluster({'worker': 1})", check=False)
    assert "NotFoundError" in found.stderr and "pip install" in found.stderr


# -- the facade ----------------------------------------------------------------------------------------


def test_every_public_name_resolves_and_is_documented():
    for module in (tfray, tfray.train):
        names = [name for name in dir(module) if not name.startswith("_")]
        assert names
        for name in names:
            value = getattr(module, name)
            is_ours = getattr(value, "__module__", "").startswith("tfray") and callable(value)
            assert not is_ours or value.__doc__, f"{module.__name__}.{name} has no docstring"


def test_the_facade_only_lists_names():
    top = ast.parse(FILES["tfray"].read_text()).body
    for node in [inner for each in top for inner in (each.body if isinstance(each, ast.With) else [each])]:
        allowed = isinstance(node, (ast.ImportFrom, ast.Import, ast.Assign, ast.Expr, ast.AnnAssign, ast.If))
        allowed = allowed or (isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__"))
        assert allowed, f"{FILES['tfray']}:{node.lineno} does more than list names"
