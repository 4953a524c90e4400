"""How programs look at functions and wrap them by TensorFlow's means."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tfray as tf
from tfray.programs import python_tools
from tfray.programs.internal_names import get_json_type


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

    made = python_tools.make_decorator(plain, outer, decorator_doc="more")
    assert made is outer and made.__name__ == "plain" and made.__doc__ == "more" and made.__wrapped__ is plain
    assert python_tools.unwrap(made) == ([made._tf_decorator], plain) and python_tools.unwrap(plain) == ([], plain)
    assert made._tf_decorator.decorator_name == "test_decorators_are_found_again"
    assert python_tools.getargspec(made).args == ["a", "b", "c"]
    around = python_tools.TFDecorator("around", made, None, python_tools.ArgSpec(["x"], None, None, None))
    assert (around(1, 2), around.__name__, around.__doc__) == (1, "plain", "more")
    assert python_tools.unwrap(around) == ([around, made._tf_decorator], plain)
    assert python_tools.getargspec(around).args == ["x"]


def test_what_is_decorated_may_be_exchanged():
    def twice(target):
        def call(x):
            return call.__wrapped__(x) * 2

        return python_tools.make_decorator(target, call)

    def one_more(x):
        return x + 1

    first = twice(one_more)
    second = twice(python_tools.TFDecorator("between", first))
    assert second(1) == 8
    python_tools.rewrap(second, one_more, abs)
    assert second(-1) == 4 and python_tools.unwrap(second)[1] is abs
    python_tools.rewrap(second, first, abs)
    assert second(-1) == 2 and first(-1) == 2
    python_tools.rewrap(second, second._tf_decorator.decorated_target, one_more)
    assert second(1) == 4
    python_tools.rewrap(abs, abs, one_more)


def test_decorators_of_contexts_and_of_names():
    @python_tools.contextmanager
    def one_more(x, y=2):
        yield x + 1

    with one_more(1) as found:
        assert found == 2
    assert [each.decorator_name for each in python_tools.unwrap(one_more)[0]] == ["contextmanager"]
    assert python_tools.getargspec(one_more) == (["x", "y"], None, None, (2,))

    named = python_tools.keyword_args_only(plain)
    assert named(a=1, b=2) == 1
    with pytest.raises(ValueError, match=r"Must use keyword args to call plain\."):
        named(1, b=2)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (np.float32(2), 2.0),
        (np.arange(3), [0, 1, 2]),
        (tf.TensorShape([1, None]), [1, None]),
        (tf.Dimension(3), 3),
        (tf.nn.relu, "relu"),
        (dict, "dict"),
        (tf.keras.layers.Flatten(name="f"), ("class_name", "Flatten")),
    ],
)
def test_what_json_does_not_know(thing, expected):
    found = get_json_type(thing)
    assert (found == expected) if not isinstance(expected, tuple) else found[expected[0]] == expected[1]
    for unknown in (tf.float32, object(), {1, 2}):
        with pytest.raises(TypeError, match="Not JSON Serializable"):
            get_json_type(unknown)


def test_arguments_by_name():
    def takes(a, *, b=1, **rest):
        return a, b, rest

    assert python_tools.has_arg(takes, "a")
    assert python_tools.has_arg(takes, "b")
    assert not python_tools.has_arg(takes, "c")
    assert python_tools.has_arg(takes, "c", accept_all=True)


def test_names_and_code_of_functions():
    def named():
        pass

    called, partly = Called(1), functools.partial(named)
    assert python_tools.get_func_name(named) == "named"
    assert python_tools.get_func_name(called.__init__) == "Called.__init__"
    assert python_tools.get_func_name(partly) == "<class 'functools.partial'>"
    assert python_tools.get_func_code(named) is named.__code__
    assert python_tools.get_func_code(called.__init__) is Called.__init__.__code__
    assert python_tools.get_func_code(partly) is None
    for function in (python_tools.get_func_name, python_tools.get_func_code):
        with pytest.raises(ValueError, match="must be callable"):
            function(None)
