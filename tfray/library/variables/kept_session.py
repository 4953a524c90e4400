"""The session that belongs to a graph: Keras runs in it what no session of the program is open for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfray.framework.graph import Graph, get_default_graph, get_default_session
from tfray.library.variables.variables import (
    global_variables,
    local_variables,
    report_uninitialized_variables,
    variables_initializer,
)
from tfray.session import Session


def get_session(op_input_list: Iterable[Any] = ()) -> Session:
    """The default session, or one that is kept for the current graph; its variables are initialised.

    Args:
        op_input_list: Tensors or variables; the graph of the first counts in place of the current one.
    """
    graph = next((each.graph for each in op_input_list if hasattr(each, "graph")), None) or get_default_graph()
    session = get_default_session()
    if session is None or session.graph is not graph:
        sessions: dict[str, Session] = graph.extra("keras_session", dict)
        if "session" not in sessions:
            sessions["session"] = Session(graph=graph)
        session = sessions["session"]
    if _settings["initializes"]:
        _initialize(graph, session)
    return session


def kept_session() -> Session | None:
    """The session that is kept for the current graph, if Keras has run anything in it or was given one."""
    kept: Session | None = get_default_graph().extra("keras_session", dict).get("session")
    return kept


_settings = {"initializes": True}


def initialize_in_session(value: bool) -> None:
    """Whether `get_session` initialises variables."""
    _settings["initializes"] = value


def set_session(session: Session) -> None:
    """Use a session for its graph."""
    session.graph.extra("keras_session", dict)["session"] = session


def _initialize(graph: Graph, session: Session) -> None:
    """Initialise the variables of the graph that are not initialised yet, each only once."""
    known: dict[Any, set[Any]] = graph.extra("keras_initialized", dict)
    done = known.setdefault(id(session), set())
    variables = [variable for variable in global_variables() + local_variables() if variable not in done]
    if not variables:
        return
    missing = {name.decode() for name in session.run(report_uninitialized_variables(variables))}
    session.run(variables_initializer([variable for variable in variables if variable.op.name in missing]))
    done.update(variables)
