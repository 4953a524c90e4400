"""Annotations say what functions take: `Any` is for what can be anything."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import tfray as tf
from tests.support import ROOT
from tfray.framework import type_aliases

MOST_ANY = 0.08
"""Share of the arguments of operations and library that may be `Any`, or hold it. A third of them did once."""


def arguments() -> Iterator[ast.arg]:
    """Every argument of every function, but for `self` and `cls`."""
    for path in (path for folder in ("ops", "tfray/library") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arguments):
                last = [argument for argument in (node.vararg, node.kwarg) if argument is not None]
                for argument in (*node.posonlyargs, *node.args, *last, *node.kwonlyargs):
                    if argument.arg not in ("self", "cls") and argument.annotation is not None:
                        yield argument


def members(annotation: ast.expr) -> Iterator[ast.expr]:
    """The members of a union; what is none is its own only member."""
    if isinstance(annotation, ast.BinOp):
        yield from members(annotation.left)
        yield from members(annotation.right)
    else:
        yield annotation


def names_in(annotation: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}


def test_few_arguments_are_any():
    annotations = [argument.annotation for argument in arguments()]
    unknown = [annotation for annotation in annotations if "Any" in names_in(annotation)]
    assert len(unknown) < MOST_ANY * len(annotations)


@pytest.mark.parametrize("folder", ["ops", "tfray"])
def test_no_name_stands_for_any(folder):
    """An alias that is `Any`, or a union with it, says nothing and hides that it does not."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.Name, ast.BinOp)):
                found = [part for part in members(node.value) if isinstance(part, ast.Name) and part.id == "Any"]
                assert not found, f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_every_alias_has_a_description():
    tree = ast.parse(inspect.getsource(type_aliases))
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert described, f"line {node.lineno} is not described: {ast.unparse(node)}"


def test_protocols_hold_for_the_classes_that_they_stand_for():
    variable = tf.Variable([1.0, 2.0])
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    for value in (variable, slices, tf.constant(1.0)):
        assert isinstance(value.dtype, tf.DType) and isinstance(value.shape, tf.TensorShape)
    assert isinstance(variable.handle, tf.Tensor)
    with tf.Session() as session:
        session.run(variable.initializer)
        found = session.run([tf.convert_to_tensor(value) for value in (variable, slices, np.float32(3))])
    assert [array.tolist() for array in found] == [[1, 2], [[1, 1], [0, 0], [0, 0]], 3]
