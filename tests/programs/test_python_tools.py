"""How programs look at functions and wrap them by TensorFlow's means."""

from __future__ import annotations

import functools

import pytest

import tfray as tf
from tfray.programs import python_tools


def plain(a, b, c=3, *rest, d=4, **others):
    return a


class Called:
    def __init__(self, size, depth=2):
        self.size = size

    def __call__(self, x, y=1):
        return x

    def method(self, z):
        return z


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, (["a", "b", "c"], "rest", "others", (3,))),
        (Called, (["self", "size", "depth"], None, None, (2,))),
        (Called(1), (["self", "x", "y"], None, None, (1,))),
        (Called(1).method, (["self", "z"], None, None, None)),
        (functools.partial(plain, 1), (["b", "c"], "rest", "others", (3,))),
        (functools.partial(plain, 1, b=5), (["b", "c"], "rest", "others", (5, 3))),
        (tf.matmul, (["a", "b", "transpose_a", "transpose_b"], None, None, (False, False))),
    ],
)
def test_arguments_of_functions(function, expected):
    args, *others = python_tools.getargspec(function)
    assert (args[: len(expected[0])], *others)[:3] == expected[:3]
    assert (others[2] or ())[: len(expected[3] or ())] == (expected[3] or ())


def test_full_arguments_have_no_annotations():
    def same(x, dtype, name=None):
        return x

    assert python_tools.getfullargspec(tf.cast) == python_tools.getfullargspec(same)


def test_a_partial_function_without_an_order():
    with pytest.raises(ValueError, match="'b'"):
        python_tools.getargspec(functools.partial(plain, a=1))


def test_names_of_arguments():
    assert python_tools.fn_args(plain) == ("a", "b", "c", "d")
    assert python_tools.fn_args(Called(1).method) == ("z",)
    assert python_tools.fn_args(Called(1)) == ("x", "y")
    assert python_tools.fn_args(functools.partial(plain, 1, c=2)) == ("b", "d")
    assert python_tools.has_kwargs(plain) and not python_tools.has_kwargs(Called(1).method)
    with pytest.raises(TypeError, match="function-like"):
        python_tools.has_kwargs(3)


def test_decorators_are_found_again():
    def outer(*args, **kwargs):
        return plain(*args, **kwargs)

    made = python_tools.make_decorator(plain, outer)
    assert made is outer and made.__name__ == "plain"
    assert python_tools.unwrap(made) == ([outer], plain) and python_tools.unwrap(plain) == ([], plain)
    assert python_tools.getargspec(made).args == ["a", "b", "c"]
