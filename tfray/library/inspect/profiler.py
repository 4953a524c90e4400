"""`tf.profiler`: the time and memory of recorded steps, and counts of parameters and floating-point operations.

`show`, `rows`, `scopes` and `peak_memory` take the `tf.RunMetadata` of a step. `profile` is TensorFlow 1's interface to
the same, for the views ``scope``, ``graph`` and ``op``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats.files import failures_of, given_path
from tfray.formats.step_stats import RunMetadata
from tfray.framework.graph import Graph, Operation, get_default_graph
from tfray.library.inspect.profile_tables import (
    Row as Row,
)
from tfray.library.inspect.profile_tables import (
    Scope as Scope,
)
from tfray.library.inspect.profile_tables import (
    as_table as as_table,
)
from tfray.library.inspect.profile_tables import (
    as_tree as as_tree,
)
from tfray.library.inspect.profile_tables import (
    format_bytes,
)
from tfray.library.inspect.profile_tables import (
    memory_table as memory_table,
)
from tfray.library.inspect.profile_tables import (
    rows as rows,
)
from tfray.library.inspect.profile_tables import (
    scopes as scopes,
)
from tfray.library.inspect.profile_tables import (
    show as show,
)
from tfray.library.inspect.step_spans import (
    PeakMemory as PeakMemory,
)
from tfray.library.inspect.step_spans import (
    StepSpan,
    spans_of,
)
from tfray.library.inspect.step_spans import (
    coverage as coverage,
)
from tfray.library.inspect.step_spans import (
    peak_memory as peak_memory,
)
from tfray.runtime.float_operations import float_operations
from tfray.runtime.float_operations import total_float_operations as total_float_operations

# fmt: off
__all__ = [
    "GraphNodeProto", "MultiGraphNodeProto", "PeakMemory", "ProfileNode", "ProfileOptionBuilder", "Profiler", "Row",
    "Scope", "as_table", "as_tree", "coverage", "memory_table", "peak_memory", "profile", "rows", "scopes", "show",
    "total_float_operations",
]
# fmt: on

_TRAINABLE: Final = "trainable_variables"

_ORDERS: Final = {
    "name": lambda node: node.name,
    "micros": lambda node: -node.total_exec_micros,
    "bytes": lambda node: -node.total_requested_bytes,
    "params": lambda node: -node.total_parameters,
    "float_ops": lambda node: -node.total_float_ops,
    "occurrence": lambda node: -node.total_run_count,
}


@dataclass
class ProfileNode:
    """The cost of a name scope, an operation or a type of operations. ``total_`` numbers include all nodes below it.

    Attributes:
        name: Full name.
        exec_micros: Microseconds over all recorded runs.
        requested_bytes: Bytes of outputs.
        parameters: Elements of variables.
        float_ops: Floating-point operations of one run, from static shapes.
        run_count: Recorded runs.
        children: The nodes directly below.
    """

    name: str
    exec_micros: int = 0
    requested_bytes: int = 0
    parameters: int = 0
    float_ops: int = 0
    run_count: int = 0
    total_exec_micros: int = 0
    total_requested_bytes: int = 0
    total_parameters: int = 0
    total_float_ops: int = 0
    total_run_count: int = 0
    children: list[ProfileNode] = field(default_factory=list)

    def add_up(self) -> None:
        """Compute the totals of this node from those of its children."""
        for child in self.children:
            child.add_up()
        for name in ("exec_micros", "requested_bytes", "parameters", "float_ops", "run_count"):
            below = sum(getattr(child, f"total_{name}") for child in self.children)
            setattr(self, f"total_{name}", getattr(self, name) + below)


GraphNodeProto = MultiGraphNodeProto = ProfileNode
"""TensorFlow's names for what `profile` returns by scopes, and by types of operations."""


class ProfileOptionBuilder:
    """Builds the options of `profile`: a dictionary under TensorFlow 1's names.

    Args:
        options: What to begin with; without it, everything is shown.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = dict(options or {"max_depth": 10000, "order_by": "name", "output": "stdout"})

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options that count the elements of trainable variables."""
        return ProfileOptionBuilder().order_by("params").select(["params"]).account_type([_TRAINABLE]).build()

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options that count floating-point operations."""
        return ProfileOptionBuilder().with_min_float_operations(1).order_by("float_ops").select(["float_ops"]).build()

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Options that show the time and memory of recorded steps. Only the first two minima matter here."""
        builder = ProfileOptionBuilder().with_min_execution_time(min_micros).with_min_memory(min_bytes)
        return builder.order_by("micros").select(["micros", "bytes"]).build()

    def build(self) -> dict[str, Any]:
        """The options."""
        return dict(self._options)

    def _with(self, **options: Any) -> ProfileOptionBuilder:
        self._options.update(options)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Show at most this number of levels."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0
    ) -> ProfileOptionBuilder:
        """Show only nodes whose outputs have at least these numbers of bytes; no others are counted."""
        return self._with(min_bytes=max(min_bytes, min_peak_bytes, min_residual_bytes, min_output_bytes))

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Show only nodes that took at least these times, which are one time here."""
        return self._with(min_micros=max(min_micros, min_accelerator_micros, min_cpu_micros))

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Show only nodes with at least this number of elements of variables."""
        return self._with(min_params=min_params)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Show only nodes with at least this number of floating-point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Show only nodes that ran at least this number of times."""
        return self._with(min_occurrence=min_occurrence)

    def with_node_names(
        self,
        start_name_regexes: Iterable[str] = (".*",),
        show_name_regexes: Iterable[str] = (".*",),
        hide_name_regexes: Iterable[str] = (),
        trim_name_regexes: Iterable[str] = (),
    ) -> ProfileOptionBuilder:
        """Show only what these regular expressions of names choose; of what is trimmed, nothing is shown either."""
        hide_name_regexes = [*hide_name_regexes, *trim_name_regexes]
        return self._with(show_name_regexes=list(show_name_regexes), hide_name_regexes=list(hide_name_regexes))

    def account_type(self, account_type_regexes: Iterable[str]) -> ProfileOptionBuilder:
        """Count only operations of these types or devices, or ``trainable_variables``."""
        return self._with(account_type_regexes=list(account_type_regexes))

    with_accounted_types = account_type

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """``name``, ``micros``, ``bytes``, ``params``, ``float_ops`` or ``occurrence``."""
        if attribute not in _ORDERS:
            raise InvalidArgumentError(f"profiles are ordered by {', '.join(_ORDERS)}, not {attribute!r}")
        return self._with(order_by=attribute)

    def select(self, attributes: Iterable[str]) -> ProfileOptionBuilder:
        """What to show: ``micros``, ``bytes``, ``params``, ``float_ops``, ``occurrence``."""
        return self._with(select=list(attributes))

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Accepted for TensorFlow 1 programs: totals count everything."""
        return self._with(account_displayed_op_only=is_true)

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Profile the step that `Profiler.add_step` knows by this number; all of them with -1."""
        return self._with(step=step)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Print nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Print to standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Write to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> ProfileOptionBuilder:
        """Write the timeline of the step to a file; see `tf.timeline`."""
        return self._with(output=f"timeline:outfile={timeline_file}")


def profile(
    graph: Graph | None = None,
    run_meta: RunMetadata | None = None,
    op_log: object = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | None = None,
) -> ProfileNode:
    """Profile a graph, and a step if one was recorded, under TensorFlow 1's name.

    Args:
        graph: The graph; the default graph when None.
        run_meta: What a step recorded.
        op_log: Accepted for TensorFlow 1 programs.
        cmd: View: ``scope`` or ``graph`` by name scope, ``op`` or ``code`` by type.
        options: What `ProfileOptionBuilder` builds.

    Returns:
        The root of the profile.
    """
    if cmd not in ("scope", "graph", "op", "code"):
        raise InvalidArgumentError(f"there is no view {cmd!r}: take 'scope', 'graph', 'op' or 'code'")
    options = options or ProfileOptionBuilder().build()
    root = _collect(graph or get_default_graph(), [run_meta] if run_meta else [], cmd in ("op", "code"), options)
    _write(root, options, run_meta)
    return root


class Profiler:
    """Profiles several recorded steps of a graph.

    Args:
        graph: The graph; the default graph when None.
        op_log: Accepted for TensorFlow 1 programs.
    """

    def __init__(self, graph: Graph | None = None, op_log: object = None) -> None:
        self._graph = graph or get_default_graph()
        self._steps: dict[int, list[RunMetadata]] = {}

    def add_step(self, step: int, run_meta: RunMetadata) -> None:
        """Add what a step recorded. What is added for the same number is taken together."""
        self._steps.setdefault(step, []).append(run_meta)

    def profile_operations(self, options: Mapping[str, Any]) -> ProfileNode:
        """By type of operation."""
        return self._profile(options, by_type=True)

    def profile_name_scope(self, options: Mapping[str, Any]) -> ProfileNode:
        """By name scope."""
        return self._profile(options, by_type=False)

    profile_graph = profile_name_scope
    profile_python = profile_operations

    def _profile(self, options: Mapping[str, Any], by_type: bool) -> ProfileNode:
        chosen = int(options.get("step", -1))
        steps = [each for number, added in self._steps.items() if chosen in (-1, number) for each in added]
        root = _collect(self._graph, steps, by_type, options)
        _write(root, options, steps[-1] if steps else None)
        return root


def _collect(graph: Graph, steps: list[RunMetadata], by_type: bool, options: Mapping[str, Any]) -> ProfileNode:
    root = ProfileNode("_TFProfRoot")
    nodes: dict[str, ProfileNode] = {"": root}
    accounted = [re.compile(each) for each in options.get("account_type_regexes", (".*",))]

    def place(name: str, kind: str) -> ProfileNode:
        name = kind if by_type else name
        if name not in nodes:
            above = place(name.rpartition("/")[0], "") if "/" in name and not by_type else root
            nodes[name] = ProfileNode(name)
            above.children.append(nodes[name])
        return nodes[name]

    trainable = {variable.op.name: variable for variable in graph.get_collection(_TRAINABLE)}
    for op in graph.get_operations():
        if _is_accounted(op, op.name in trainable, accounted):
            node = place(op.name, op.type)
            node.float_ops += float_operations(op) or 0
            if op.name in trainable:
                node.parameters += trainable[op.name].shape.num_elements() or 0
    for span in [span for step in steps for span in spans_of(step)]:
        if span.is_operation and any(each.fullmatch(span.type) or each.fullmatch(span.device) for each in accounted):
            _count(place(span.name, span.type), span)
    root.add_up()
    return root


def _is_accounted(op: Operation, trainable: bool, accounted: list[re.Pattern[str]]) -> bool:
    names = (op.type, op.device, *([_TRAINABLE] if trainable else []))
    return any(each.fullmatch(name) for each in accounted for name in names)


def _count(node: ProfileNode, span: StepSpan) -> None:
    node.exec_micros += -(-span.self_ns // 1000)
    node.requested_bytes += span.output_bytes
    node.run_count += 1


def _write(root: ProfileNode, options: Mapping[str, Any], run_meta: RunMetadata | None) -> None:
    output, _, path = str(options.get("output", "none")).partition(":outfile=")
    if output == "stdout":
        print("\n".join(_lines(root, options)))
    elif output == "file":
        with failures_of(given_path(path, "outfile")), open(path, "w") as file:
            file.write("\n".join(_lines(root, options)) + "\n")
    elif output == "timeline" and run_meta is not None:
        from tfray.library.inspect.timeline import Timeline

        Timeline(run_meta).save(path)


def _lines(root: ProfileNode, options: Mapping[str, Any], depth: int = 0) -> list[str]:
    if depth > options.get("max_depth", 10000):
        return []
    lines = [f"{'  ' * depth}{root.name} ({_numbers(root, options)})"] if _is_shown(root, options) else []
    order = _ORDERS[options.get("order_by", "name")]
    for child in sorted(root.children, key=order):
        lines += _lines(child, options, depth + 1)
    return lines


def _is_shown(node: ProfileNode, options: Mapping[str, Any]) -> bool:
    if not (
        node.total_exec_micros >= options.get("min_micros", 0)
        and node.total_requested_bytes >= options.get("min_bytes", 0)
        and node.total_parameters >= options.get("min_params", 0)
        and node.total_float_ops >= options.get("min_float_ops", 0)
        and node.total_run_count >= options.get("min_occurrence", 0)
    ):
        return False
    shown = any(re.fullmatch(each, node.name) for each in options.get("show_name_regexes", (".*",)))
    return shown and not any(re.fullmatch(each, node.name) for each in options.get("hide_name_regexes", ()))


def _numbers(node: ProfileNode, options: Mapping[str, Any]) -> str:
    numbers = {
        "micros": f"{node.exec_micros / 1e3:.2f}/{node.total_exec_micros / 1e3:.2f} ms",
        "bytes": f"{format_bytes(node.requested_bytes)}/{format_bytes(node.total_requested_bytes)}",
        "params": f"{node.parameters}/{node.total_parameters} params",
        "float_ops": f"{node.float_ops}/{node.total_float_ops} flops",
        "occurrence": f"{node.run_count}/{node.total_run_count} runs",
    }
    return ", ".join(numbers[name] for name in options.get("select", numbers) if name in numbers)
