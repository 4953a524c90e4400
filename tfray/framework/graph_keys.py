"""Names of the collections that libraries and programs share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tfray.framework.plain_graph import messages


class GraphKeys:
    """Standard names of graph collections, as in TensorFlow 1.

    Each holds objects in the order in which they were added: see `tf.get_collection`.
    """

    GLOBAL_VARIABLES: Final = "variables"
    """Variables shared by all tasks; what a checkpoint saves by default."""
    VARIABLES: Final = GLOBAL_VARIABLES
    """The older name of `GLOBAL_VARIABLES`."""
    LOCAL_VARIABLES: Final = "local_variables"
    """Variables of one process that no checkpoint saves: counters, metric state."""
    METRIC_VARIABLES: Final = "metric_variables"
    """Accumulators of `tf.metrics`."""
    MODEL_VARIABLES: Final = "model_variables"
    """Variables that inference needs."""
    TRAINABLE_VARIABLES: Final = "trainable_variables"
    """Variables that optimizers change by default."""
    TRAINABLE_RESOURCE_VARIABLES: Final = "trainable_resource_variables"
    """Empty, as it is in TensorFlow 1 unless a program adds to it: all variables are in the collection before it."""
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    """Variables of which `tf.train.ExponentialMovingAverage` keeps an average."""
    GLOBAL_STEP: Final = "global_step"
    EVAL_STEP: Final = "eval_step"

    LOSSES: Final = "losses"
    REGULARIZATION_LOSSES: Final = "regularization_losses"
    UPDATE_OPS: Final = "update_ops"
    """Operations to run with each training step, such as those that keep batch statistics."""
    TRAIN_OP: Final = "train_op"
    WEIGHTS: Final = "weights"
    BIASES: Final = "biases"
    ACTIVATIONS: Final = "activations"
    CONCATENATED_VARIABLES: Final = "concatenated_variables"

    SUMMARIES: Final = "summaries"
    SUMMARY_OP: Final = "summary_op"
    QUEUE_RUNNERS: Final = "queue_runners"
    TABLE_INITIALIZERS: Final = "table_initializer"
    RESOURCES: Final = "resources"
    LOCAL_RESOURCES: Final = "local_resources"
    ASSET_FILEPATHS: Final = "asset_filepaths"
    SAVERS: Final = "savers"
    SAVEABLE_OBJECTS: Final = "saveable_objects"

    INIT_OP: Final = "init_op"
    LOCAL_INIT_OP: Final = "local_init_op"
    READY_OP: Final = "ready_op"
    READY_FOR_LOCAL_INIT_OP: Final = "ready_for_local_init_op"
    COND_CONTEXT: Final = "cond_context"
    WHILE_CONTEXT: Final = "while_context"


class GraphCollections:
    """The collections of a graph, its versions, whether it may still be changed, and what of it may be run."""

    def __init__(self) -> None:
        self._collections: dict[str, list[Any]] = {}
        self._finalized = False
        self._not_fed: set[Any] = set()
        self._not_fetched: set[Any] = set()
        self._versions: tuple[int, int] | None = None

    @property
    def finalized(self) -> bool:
        """Whether the graph is read-only."""
        return self._finalized

    def finalize(self) -> None:
        """Make the graph read-only: adding an operation, or to a collection, raises `RuntimeError`."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        """Make the graph writable again. Nothing may run it that relies on what `finalize` promises."""
        self._finalized = False

    def _check_not_finalized(self, change: str) -> None:
        if self._finalized:
            raise RuntimeError(
                f"Graph is finalized and cannot be modified: {change}; build it before the session starts"
            )

    def add_to_collection(self, name: str, value: Any) -> None:
        """Append `value` to the collection `name`. Raises `RuntimeError` when the graph is finalized."""
        self._check_not_finalized(f"nothing can be added to the collection {name!r}")
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Iterable[str] | str, value: Any) -> None:
        """Append `value` to each collection named, once."""
        for name in [names] if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """A copy of the collection, in order; with `scope`, the items whose name the expression matches."""
        values = self._collections.get(name, [])
        if scope is None:
            return list(values)
        pattern = re.compile(scope)
        return [value for value in values if hasattr(value, "name") and pattern.match(value.name)]

    def get_collection_ref(self, name: str) -> list[Any]:
        """The collection itself: changing the list changes the graph's collection."""
        return self._collections.setdefault(name, [])

    @property
    def collections(self) -> list[str]:
        """Names of all collections, also of those that are empty."""
        return list(self._collections)

    def get_all_collection_keys(self) -> list[str]:
        """Names of the collections that are not empty."""
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: str) -> None:
        """Empty the collection. Raises `RuntimeError` when the graph is finalized."""
        self._check_not_finalized(f"the collection {name!r} cannot be emptied")
        self._collections.pop(name, None)

    # -- growing ---------------------------------------------------------------------------------

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Any],
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: Mapping[str, Any] | None = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Any:
        """Add an operation of a type that TensorFlow has. What tfray makes of it may be several operations.

        Args:
            op_type: Name of the type.
            inputs: Tensors.
            dtypes: Not used: the type tells what it returns.
            input_types: Not used, likewise.
            name: Name, made unique below the current scope, unless it ends in a slash; that of the type when None.
            attrs: A `tf.AttrValue` for each attribute. Those that inputs tell, such as ``T``, may be left out.
            op_def: Not used.
            compute_shapes: Not used: shapes are always inferred.
            compute_device: Not used.

        Raises:
            TypeError: An input is no tensor.
            RuntimeError: There is no such type.
            InvalidArgumentError: Inputs and attributes do not fit the type. It is also a `ValueError`.
        """
        return messages().added_operation(self, op_type, inputs, name, attrs or {})

    # -- what may be run -------------------------------------------------------------------------

    def prevent_feeding(self, tensor: Any) -> None:
        """Let no value be fed for a tensor."""
        self._not_fed.add(tensor)

    def prevent_fetching(self, op: Any) -> None:
        """Let neither an operation nor its outputs be fetched."""
        self._not_fetched.add(op)

    # -- versions --------------------------------------------------------------------------------

    @property
    def graph_def_versions(self) -> Any:
        """The versions of TensorFlow's form of graphs, a ``VersionDef``: of which one this is, and who may read it.

        Those of an imported graph stay with it. It is a copy: changing it changes nothing.
        """
        return messages().versions_message(self)

    def take_versions(self, producer: int, min_consumer: int, is_first: bool) -> None:
        """Note the versions of a graph whose operations are to be added: the first ones, or beside others."""
        if not is_first:
            own = self.graph_def_versions
            producer, min_consumer = min(producer, own.producer), max(min_consumer, own.min_consumer)
        self._versions = producer, min_consumer

    @property
    def versions(self) -> tuple[int, int] | None:
        """Those that `take_versions` has noted: of the producer, and the least of consumers."""
        return self._versions


def is_within(graph: Any, other: Any) -> bool:
    """Whether the graph `other` is a region of `graph`, a branch or a loop, or one of those within."""
    return not graph.admits(other) and bool(other.admits(graph))
