"""Values of a graph, from a session that is made for them; names of its variables, and values for them."""

import numpy as np

from tfray.library.variables.variables import global_variables, global_variables_initializer
from tfray.session import Session


def run(fetches, feeds=None):
    """The values of `fetches`."""
    with Session() as session:
        return session.run(fetches, feeds)


def run_initialized(fetches, feeds=None):
    """The values of `fetches`, after all variables have been initialised."""
    with Session() as session:
        session.run(global_variables_initializer())
        return session.run(fetches, feeds)


def variable_names(variables=None):
    """The names of variables, or of all in the graph."""
    return [variable.op.name for variable in (global_variables() if variables is None else variables)]


def randomized(session, scope="", scale=0.7):
    """Give every variable random values. Those within `scope` come back, by their names in it."""
    values = {}
    for seed, variable in enumerate(global_variables()):
        value = np.random.default_rng(seed).normal(size=variable.shape.as_list()) * scale
        variable.load(value.astype(variable.dtype.as_numpy_dtype), session)
        if variable.op.name.startswith(scope):
            values[variable.op.name.removeprefix(f"{scope}/")] = value
    return values
