"""Steps of optimizers against a reference in NumPy."""

from __future__ import annotations

import numpy as np

from tfray.library.variables.variables import Variable, global_variables_initializer
from tfray.session import Session

TOLERANCES = {"float64": 1e-12, "float32": 2e-6, "float16": 6e-3, "bfloat16": 5e-2}


def check_steps(optimizer, reference, initial, feeds, gradient, rows_of, steps=5):
    """Run `steps` steps of `optimizer` and of `reference`, which computes in 64 bits, and compare."""
    var = Variable(initial)
    train_op = optimizer.apply_gradients([(gradient, var)])
    expected = initial.astype(np.float64)
    with Session() as session:
        session.run(global_variables_initializer())
        for step in range(steps):
            session.run(train_op, feeds(step))
            reference.step(expected, *rows_of(step))
        actual = session.run(var)
    assert actual.dtype == initial.dtype
    tolerance = TOLERANCES[initial.dtype.name]
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
