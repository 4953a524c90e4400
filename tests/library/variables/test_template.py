"""`tf.make_template`, and the relatives of `tf.custom_gradient`."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run_initialized as run


def scaled(x, initial=2.0):
    return x * tf.get_variable("factor", initializer=initial)


def test_calls_share_their_variables():
    first, second = tf.make_template("scale", scaled), tf.make_template("scale", scaled, initial=5.0)
    assert first.variables == [] and first.variable_scope is None
    results = [first(1.0), first(3.0), second(1.0)]
    assert run(results) == [2, 6, 5]
    assert [variable.op.name for variable in tf.global_variables()] == ["scale/factor", "scale_1/factor"]
    assert first.trainable_variables == first.global_variables == first.variables == tf.global_variables()[:1]
    assert (first.variable_scope_name, second.variable_scope_name) == ("scale/", "scale_1/")
    assert first.name == "scale" and first.func is scaled


def test_scopes_that_are_made_at_once_count_in_that_order():
    late, early = tf.make_template("scope", scaled), tf.make_template("scope", scaled, create_scope_now_=True)
    late(1.0), early(1.0)
    assert (early.variables[0].op.name, late.variables[0].op.name) == ("scope/factor", "scope_1/factor")


def test_unique_names_are_taken_as_they_are():
    first, second = (tf.make_template("a", scaled, unique_name_="same") for _ in range(2))
    first(1.0)
    assert first.variable_scope_name == "same/"
    with pytest.raises(ValueError, match="same/factor"):
        second(1.0)


def test_custom_getters():
    def fixed(getter, *args, **kwargs):
        return tf.stop_gradient(getter(*args, **kwargs))

    template = tf.make_template("scale", scaled, custom_getter_=fixed)
    result = template(1.0) + template(2.0)
    assert tf.gradients(result, template.variables) == [None]


def test_what_templates_refuse():
    loose = tf.make_template("loose", lambda: tf.Variable(1.0))
    loose()
    with pytest.raises(ValueError, match=r"tf\.Variable where tf\.get_variable is meant"):
        loose()
    with pytest.raises(ValueError, match="name cannot be None"):
        tf.make_template(None, scaled)


@pytest.mark.parametrize("broken", [lambda: tf.zeros([2]) + tf.zeros([3]), lambda: int("three")])
def test_an_error_within_a_template_says_where_the_template_was_made(broken):
    template = tf.make_template("broken", broken)
    with pytest.raises(ValueError, match=r"broken' was originally defined at: .*test_template\.py"):
        template()


# -- gradients of one's own ----------------------------------------------------------------------------

X = np.float32([0.4, 1.6])


def test_gradients_pass_through():
    x, v = tf.constant(X), tf.get_variable("v", initializer=3.0)
    rounded, product = tf.grad_pass_through(tf.round)(x), tf.grad_pass_through(lambda z: z * v)(x)
    assert tf.gradients(product, v) == [None]
    found = run([rounded, product, *tf.gradients([rounded, product], x)])
    for value, expected in zip(found, [[0, 2], X * 3, [2, 2]], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_functions_are_computed_again_for_their_gradients():
    calls = []
    x, v = tf.constant(X), tf.get_variable("v", initializer=3.0)

    def function(z):
        calls.append(z)
        return tf.exp(z) * v

    again = tf.recompute_grad(function)(x)
    assert len(calls) == 1
    found = run([again, *tf.gradients(again, [x, v])])
    assert len(calls) == 2
    for value, expected in zip(found, [3 * np.exp(X), 3 * np.exp(X), np.exp(X).sum()], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_structures_and_variables_of_custom_gradients():
    x, v = tf.constant(X), tf.get_variable("v", initializer=3.0)

    @tf.custom_gradient
    def both(a, b):
        return {"p": a * b, "q": (a + b,)}, lambda dp, dq: (dp * 2, dq * 3)

    results = both(x, x + 1)
    np.testing.assert_allclose(run(tf.gradients([results["p"], results["q"][0]], x)[0]), [5, 5])

    def returning(*d_variables):
        @tf.custom_gradient
        def product(a):
            return a * v, lambda dy, variables=None: (dy * 10, list(d_variables))

        return tf.gradients(product(x), [x, v])

    np.testing.assert_allclose(run(returning(tf.constant(7.0))[1]), 7)
    with pytest.raises(ValueError, match="must return the gradients of all 1 variables, got 0"):
        returning()
    with pytest.raises(ValueError, match="returned 1 gradients for 2 arguments"):
        tf.gradients(tf.custom_gradient(lambda a, b: (a * b, lambda dy: dy))(x, x), x)
    assert tf.no_gradient is tf.NoGradient is tf.NotDifferentiable
