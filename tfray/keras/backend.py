"""``tf.keras.backend``: the session of Keras models, the learning phase, and other settings that programs use."""

from __future__ import annotations

from typing import Any

from tfray.framework.graph import Graph, Tensor, get_default_graph, get_default_session, reset_default_graph
from tfray.library.rnn.sequence_labels import ctc_batch_cost as ctc_batch_cost
from tfray.library.rnn.sequence_labels import ctc_decode as ctc_decode
from tfray.library.rnn.sequence_labels import ctc_label_dense_to_sparse as ctc_label_dense_to_sparse
from tfray.library.variables.variables import (
    global_variables,
    local_variables,
    report_uninitialized_variables,
    variables_initializer,
)
from tfray.ops.arrays.source_ops import constant, placeholder_with_default
from tfray.session import Session

# fmt: off
__all__ = [
    "clear_session", "ctc_batch_cost", "ctc_decode", "ctc_label_dense_to_sparse", "epsilon", "floatx", "get_session",
    "get_value", "image_data_format", "int_shape", "learning_phase", "set_learning_phase", "set_session", "set_value",
]
# fmt: on

_EPSILON = 1e-7


def epsilon() -> float:
    """The small number that losses add or clip by, to keep logarithms finite."""
    return _EPSILON


def floatx() -> str:
    """The dtype of inputs and weights."""
    return "float32"


def image_data_format() -> str:
    """The order of dimensions of images."""
    return "channels_last"


def learning_phase() -> Any:
    """A bool: whether the step trains. It is False unless `fit` feeds True or `set_learning_phase` has fixed it."""
    graph = get_default_graph()
    phases: dict[str, Any] = graph.extra("keras_learning_phase", dict)
    if "phase" not in phases:
        with graph.name_scope(None), graph.control_dependencies(None):
            phases["phase"] = placeholder_with_default(constant(False), [], name="keras_learning_phase")
    return phases["phase"]


def set_learning_phase(value: Any) -> None:
    """Fix the learning phase of the current graph: 0 or False to predict, 1 or True to train."""
    get_default_graph().extra("keras_learning_phase", dict)["phase"] = bool(value)


def phase_feed(training: bool) -> dict[Tensor, Any]:
    """The feed that sets the learning phase."""
    phase = learning_phase()
    return {phase: training} if isinstance(phase, Tensor) else {}


def get_session() -> Session:
    """The default session, or one that is kept for the current graph; its variables are initialised."""
    graph = get_default_graph()
    session = get_default_session()
    if session is None or session.graph is not graph:
        sessions: dict[str, Session] = graph.extra("keras_session", dict)
        if "session" not in sessions:
            sessions["session"] = Session(graph=graph)
        session = sessions["session"]
    _initialize(graph, session)
    return session


def set_session(session: Session) -> None:
    """Use a session for its graph."""
    session.graph.extra("keras_session", dict)["session"] = session


def clear_session() -> None:
    """Start anew with an empty default graph."""
    reset_default_graph()


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


def get_value(x: Any) -> Any:
    """The value of a variable or tensor."""
    return get_session().run(x)


def set_value(x: Any, value: Any) -> None:
    """Set a variable."""
    session = get_session()
    x.load(value, session)


def int_shape(x: Any) -> tuple[int | None, ...]:
    """Static shape as a tuple."""
    return tuple(x.shape.as_list())
