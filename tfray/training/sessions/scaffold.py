"""`Scaffold`: the operations that a monitored session needs besides the training step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfray.framework.arguments import checked
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.input.lookup import tables_initializer
from tfray.library.inspect.summaries import merge_all
from tfray.library.variables.registered_resources import initialize_resources, shared_resources
from tfray.library.variables.variables import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from tfray.ops.arrays.grouping_ops import group
from tfray.training.checkpoints.saver import Saver


class Scaffold:
    """The operations that a monitored session needs besides the training step.

    `finalize` takes those that are not given from the graph's collections, or makes them.

    Args:
        init_op: Gives the variables values when there is no checkpoint.
        init_feed_dict: Values for tensors while `init_op` runs.
        init_fn: Function of the scaffold and the session, called after `init_op`.
        ready_op: Names of the variables without a value; empty when the model is ready.
        ready_for_local_init_op: The same for `local_init_op`: what it waits for.
        local_init_op: Run in every new session, after the variables have values: local variables and tables.
        summary_op: All summaries in one.
        saver: Saves and restores checkpoints.
        copy_from_scaffold: A scaffold from which to take what is not given here.
        local_init_feed_dict: Values for tensors while `local_init_op` runs.
    """

    @checked
    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        def given(value: Any, name: str) -> Any:
            return getattr(copy_from_scaffold, f"_{name}", None) if value is None else value

        self._init_op = given(init_op, "init_op")
        self._init_feed_dict = given(init_feed_dict, "init_feed_dict")
        own_init_fn = None if init_fn is None else (lambda session: init_fn(self, session))
        self._init_fn = given(own_init_fn, "init_fn")
        self._ready_op = given(ready_op, "ready_op")
        self._ready_for_local_init_op = given(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = given(local_init_op, "local_init_op")
        self._local_init_feed_dict = given(local_init_feed_dict, "local_init_feed_dict")
        self._summary_op = given(summary_op, "summary_op")
        self._saver = given(saver, "saver")

    def finalize(self) -> Scaffold:
        """Make what is missing, and make the graph read-only. Returns the scaffold."""
        if self._init_op is None:
            self._init_op = Scaffold.get_or_default("init_op", GraphKeys.INIT_OP, _default_init_op)
        if self._ready_op is None:
            self._ready_op = Scaffold.get_or_default("ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = Scaffold.get_or_default(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = Scaffold.get_or_default(
                "local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
            )
        if self._summary_op is None:
            self._summary_op = Scaffold.get_or_default("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = saver_or_default()
        if not get_default_graph().finalized:
            self._saver.build()
            get_default_graph().finalize()
        return self

    @property
    def init_op(self) -> Any:
        """Gives the variables values when there is no checkpoint."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        """Values for tensors while `init_op` runs."""
        return self._init_feed_dict

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """Function of the session, called after `init_op`."""
        return self._init_fn

    @property
    def ready_op(self) -> Any:
        """Names of the variables without a value."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """Names of the variables for which `local_init_op` waits."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """Run in every new session."""
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Mapping[Any, Any] | None:
        """Values for tensors while `local_init_op` runs."""
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        """All summaries in one."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """Saves and restores checkpoints."""
        return self._saver

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The member of a collection. If there is none, a function makes it, and it is added to the collection.

        Args:
            arg_name: Name of the scaffold's argument, for the error message.
            collection_key: The collection.
            default_constructor: The function that makes a member; it may return None.

        Raises:
            RuntimeError: The collection has several members.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(f"the graph has {len(found)} of {collection_key!r}: tell Scaffold which by {arg_name}")
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """An operation that gives local variables and tables values."""
        return group(local_variables_initializer(), tables_initializer())


def saver_or_default() -> Any:
    """The graph's saver, or a new one for all its variables.

    Raises:
        RuntimeError: There are several.
    """
    return Scaffold.get_or_default("saver", GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True))


def _default_init_op() -> Any:
    """Gives the global variables their initial values, and makes the resources that were registered."""
    variables, resources = global_variables_initializer(), shared_resources()
    return group(variables, initialize_resources(resources)) if resources else variables
