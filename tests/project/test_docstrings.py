"""What the docstring of an operation tells: the shapes of what it takes and returns, and an example that holds."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import tfray as tf
import tfray.ops
from tfray import lazy_modules
from tfray.cli.ops_command import program_symbols

SHAPE = re.compile(
    r"""(?ix) ``\[
    | \b( shapes? | ranks? | scalars? | vectors? | matri(x|ces) | broadcast(s|ed)? | element\sby\selement )\b
    | \b( a | an | one )\s( number | integer | int | float | bool | string | fraction | axis | handle )\b(?!\sdtype)
    | \A\s*( the | make\sthe )\s( handle | operation )\b
    | \b( likewise | not\sused | accepted )
    | \b( old | older | newer | another )\s( name | spelling )\sof\b
    """
)
"""Words that tell a shape ("a number" and its like: a scalar), that another argument tells it, or that none matters."""

TENSOR = re.compile(r"\bAny\b|Tensor(?!Shape)|(?<!Shape)(?<!DType)Like\b|IndexedSlices|Variable")
"""Annotations of what a tensor is accepted for or returned as."""

MAKES_OPERATIONS = re.compile(
    r"""(?x) tfray\. ( ops\.(?!kernels) | library\.metrics | library\.layers\.(losses|slim_|\w+_layers) | library\.rnn
    | library\.variables\.clip | training\.input\.batching | training\.optimizers | contrib\.(losses|metrics) )
    """
)
"""Modules whose functions take tensors and return tensors."""

SHAPELESS = re.compile(
    r"""(?x) name | dtype | Tout | output_stream | scope | reuse | state_saver | state_name | kwargs | args
    | padding | ksize | ksizes | strides | rates | dilations | dilation_rate
    | handles? | queue_handle | table | resources
    | activation | cells? (_fw|_bw)? | .*_(initializers? | regularizers? | constraint | collections | fn | params)
    """
)
"""Names of arguments that are no tensors, or handles, whatever their annotation is."""

SHAPELESS_RESULTS = (
    "None",
    "Operation",
    "bool",
    "int",
    "str",
    "DType",
    "TensorShape",
    "initializers.VarianceScaling",
    "type[Optimizer]",
)
"""Annotations of results that have no shape to tell."""

EXAMPLES = 200
"""So many of the operations that TensorFlow 1 programs use most have an example."""


def namespaces() -> Iterator[tuple[str, ModuleType]]:
    """The facade, the modules in it that are parts of the API, and the modules in those."""
    waiting: list[tuple[str, ModuleType]] = [("tf", tf)]
    while waiting:
        path, namespace = waiting.pop()
        yield path, namespace
        for name in dir(namespace):
            value = getattr(namespace, name)
            if isinstance(value, ModuleType) and _is_part(namespace, name, value):
                waiting.append((f"{path}.{name}", value))


def _is_part(namespace: ModuleType, name: str, module: ModuleType) -> bool:
    if namespace is tf:  # a package that Python has put there itself, such as `tfray.runtime`, is no part of the API
        leaked = module.__name__ == f"tfray.{name}" and name not in lazy_modules.LAZY
        return module.__name__.startswith("tfray.") and not leaked
    return module.__name__.startswith(("tfray.library.namespaces.", "tfray.contrib."))


def operations() -> dict[str, FunctionType]:
    """Public name to function, for each public function that makes operations of tensors."""
    found: dict[FunctionType, str] = {}
    for path, namespace in namespaces():
        for name, value in vars(namespace).items():
            if inspect.isfunction(value) and not name.startswith("_") and MAKES_OPERATIONS.match(value.__module__):
                names = (found.get(value, f"{path}.{name}"), f"{path}.{name}")
                found[value] = min(names, key=lambda known: (len(known), known))
    return {name: function for function, name in sorted(found.items(), key=lambda item: item[1])}


def inner_operations() -> dict[str, FunctionType]:
    """Module and name to function, for operations that `ops/` defines for other modules: no namespace has them."""
    public = {inspect.unwrap(function) for function in OPERATIONS.values()}
    found = {}
    for module in pkgutil.walk_packages(tfray.ops.__path__, "tfray.ops."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if not inspect.isfunction(value) or value.__module__ != module.name or name.startswith("_"):
                continue
            takes_name = inspect.signature(value).parameters.get("name")
            if inspect.unwrap(value) not in public and takes_name and takes_name.annotation == "str | None":
                found[f"{module.name}.{name}"] = value
    return found


OPERATIONS = operations()
INNER_OPERATIONS = inner_operations()


def sections(docstring: str) -> tuple[str, dict[str, str], str]:
    """The text before the first section, the entries of `Args`, and the text of `Returns`."""
    text, *rest = re.split(r"(?m)^(Args|Returns|Raises|Examples|References):\n", inspect.cleandoc(docstring))
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    entries = re.finditer(r"(?ms)^    ([*\w, ]+): (.*?)(?=^    \S|\Z)", parts.get("Args", ""))
    told = {name.strip(" *"): entry[2] for entry in entries for name in entry[1].split(",")}
    return text, told, parts.get("Returns", "")


def what_is_missing(function: FunctionType) -> list[str]:
    """Arguments of which the docstring tells no shape, and "result" if it does not tell that one's.

    Where arguments are not listed, one sentence about all of them is enough.
    """
    text, told, returned = sections(function.__doc__ or "")
    missing = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = str(parameter.annotation)
        if SHAPELESS.fullmatch(name) or not TENSOR.search(kind) or kind.startswith(("Callable", "Mapping")):
            continue
        entry = told.get(name, "" if told else text + returned)
        if not SHAPE.search(entry):
            missing.append(name)
    result = str(inspect.signature(function).return_annotation)
    if result not in SHAPELESS_RESULTS and not (SHAPE.search(text) or SHAPE.search(returned)):
        missing.append("result")
    return missing


@pytest.mark.parametrize("name", [*OPERATIONS, *INNER_OPERATIONS])
def test_a_docstring_tells_the_shapes_of_arguments_and_result(name: str) -> None:
    missing = what_is_missing((OPERATIONS | INNER_OPERATIONS)[name])
    assert not missing, f"the docstring of {name} does not tell the shape of: {', '.join(missing)}"


class NearEnough(doctest.OutputChecker):
    """Compares words as text and numbers to four digits: the last ones depend on the processor."""

    NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        wanted, found = ([float(number) for number in self.NUMBER.findall(text)] for text in (want, got))
        words, said = ("".join(self.NUMBER.sub("0.", text).split()) for text in (want, got))
        return words == said and wanted == pytest.approx(found, rel=1e-4, abs=1e-6)


def examples() -> dict[str, list[doctest.Example]]:
    parser = doctest.DocTestParser()
    return {name: found for name, value in OPERATIONS.items() if (found := parser.get_examples(value.__doc__ or ""))}


WITH_EXAMPLES = examples()


def test_the_most_used_operations_have_examples() -> None:
    public = {inspect.unwrap(function): name for name, function in OPERATIONS.items()}
    uses: Counter[str] = Counter()
    for symbol, count in program_symbols():
        with contextlib.suppress(AttributeError):  # some symbols are not tfray's
            uses[public.get(inspect.unwrap(attrgetter(symbol.removeprefix("tf."))(tf)), "")] += count
    del uses[""]
    most_used = [name for name, _ in uses.most_common(EXAMPLES)]
    assert len(most_used) == EXAMPLES
    assert [name for name in most_used if name not in WITH_EXAMPLES] == []


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_prints_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    with tf.Graph().as_default(), tf.Session() as session:
        case = doctest.DocTest(WITH_EXAMPLES[name], {"tf": tf, "session": session}, name, None, None, None)
        doctest.DocTestRunner(NearEnough(), verbose=False).run(case, out=told.append)
    assert not told, "".join(told)
