"""Loops of frames as While operations.

A loop of TensorFlow 1 is a frame: what flows in passes an Enter, what flows out an Exit. Of each carried value there
are a Merge (of its Enter and its NextIteration: its value at the start of a turn) and a Switch on the frame's LoopCond,
whose true side feeds the body, whose false side the Exit. An Enter with ``is_constant`` gives its value in every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tfray.exchange.branches import with_branches
from tfray.exchange.flow_graph import (
    ENTERS,
    EXITS,
    MERGES,
    NEXT_ITERATIONS,
    SWITCHES,
    Body,
    Node,
    Tensor,
    Workshop,
    in_order,
    sources,
)
from tfray.framework.traversal import reachable_backward

ALWAYS: Final = 0
"""What runs in every turn, the last one included, in which the condition no longer holds."""
IN_BODY: Final = 1
AT_END: Final = 2


class Frame:
    """A frame, or the graph around all frames.

    Attributes:
        name: The attribute ``frame_name`` of its Enters.
        outer: The frame around it; None for the graph.
        nodes: What stands in it; its Exits stand in the frame around it.
        enters: Its Enters.
        exits: Its Exits.
        controls: What must have run before it, besides what flows in.
        inner: The frames within it, by name.
    """

    def __init__(self, name: str = "", outer: Frame | None = None) -> None:
        self.name = name
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.nodes: list[Node] = []
        self.enters: list[Node] = []
        self.exits: list[Node] = []
        self.controls: list[Node] = []
        self.inner: dict[str, Frame] = {}


def with_loops(nodes: Sequence[Node], workshop: Workshop) -> list[Node]:
    """The operations outside of all frames, each loop one While, and each Exit an Identity of one of its results.

    The operations are changed. Raises `InvalidArgumentError` for frames that are not those of a loop.
    """
    graph = Frame()
    frames = sorted(find_frames(nodes, graph), key=lambda frame: -frame.depth)
    for frame in frames:
        if not frame.exits:
            raise frame.enters[0].error(f"enters frame {frame.name!r}, which no Exit leaves")
    wanted = reachable_backward(graph.nodes, sources)  # what stands in frames cannot be fetched
    for frame in frames:
        for kept in (frame.nodes, frame.enters, frame.exits):
            kept[:] = [node for node in kept if node in wanted]
    for frame in frames:
        if frame.exits:
            _Loop(frame, workshop).collapse()
    return graph.nodes


def find_frames(nodes: Sequence[Node], graph: Frame) -> list[Frame]:
    """All frames, filled with their operations; `graph` gets what stands in none."""
    found: list[Frame] = []
    places: dict[Node, Frame] = {}
    for node in in_order(nodes, _sources_in_turn):
        frame = _common_frame(node, places, graph)
        if node.op in ENTERS:
            name = node.attr("frame_name").s.decode()
            inner = frame.inner.get(name)
            if inner is None:
                inner = frame.inner[name] = Frame(name, frame)
                found.append(inner)
            inner.enters.append(node)
            frame = inner
        elif node.op in EXITS:
            if frame.outer is None:
                raise node.error("leaves a frame, and stands in none")
            frame.exits.append(node)
            frame = frame.outer
        elif frame.outer is None and (node.op in NEXT_ITERATIONS or node.op == "LoopCond"):
            raise node.error("belongs to a loop, and stands in no frame")
        places[node] = frame
        frame.nodes.append(node)
    return found


def _sources_in_turn(node: Node) -> Iterable[Node]:
    """What it reads from the same turn of a loop."""
    found = sources(node)
    return [each for each in found if each.op not in NEXT_ITERATIONS] if node.op in MERGES else found


def _common_frame(node: Node, places: dict[Node, Frame], graph: Frame) -> Frame:
    """The frame that its inputs come from. What it must only wait for may stand outside: then the frame waits."""
    read = [each for each, _ in node.inputs if each in places]
    around = read[:1] or node.controls
    frame = max((places[each] for each in around), key=lambda each: each.depth, default=graph)
    for each in read:
        if places[each] is not frame:
            found = f"{_called(frame)} and, by way of {each.name!r}, {_called(places[each])}"
            raise node.error(f"has inputs from different frames: {found}")
    for each in list(node.controls):
        outermost = frame
        while outermost.outer is not None and outermost.outer is not places[each] and outermost is not places[each]:
            outermost = outermost.outer
        if outermost.outer is not None and outermost is not places[each]:
            outermost.controls.append(each)
            node.controls.remove(each)
        elif outermost is not places[each]:
            raise node.error(f"waits for {each.name!r}, which stands in {_called(places[each])}")
    return frame


def _called(frame: Frame) -> str:
    return f"frame {frame.name!r}" if frame.outer is not None else "no frame"


class _Loop:
    """The loop of one frame; those within it are While operations already."""

    def __init__(self, frame: Frame, workshop: Workshop) -> None:
        self.frame = frame
        self.workshop = workshop
        self.nodes = in_order(frame.nodes, _sources_in_turn)
        self.condition = self._condition()
        self.merges: dict[Node, tuple[Node, Node]] = self._merges()
        self.phases: dict[Node, int] = self._phases()
        self.effects_of_condition: dict[Node, None] = {}

    def collapse(self) -> None:
        """Put a While into the frame around, in place of this frame."""
        frame, workshop = self.frame, self.workshop
        assert frame.outer is not None
        constant = [each for each in frame.enters if each.attr("is_constant").b]
        passed = [each for each in constant if not self._is_reference(each)]
        entered = {enter: merge for merge, (enter, _) in self.merges.items()}
        carried = [each for each in frame.enters if each in entered]
        self._check_enters(set(constant) | set(carried))

        results: dict[Tensor, int] = {}  # of the While, by what gives the value within the frame
        inputs: list[Tensor] = []
        for enter in carried:
            results[entered[enter], 0] = len(inputs)
            inputs.append(enter.inputs[0])
        known: dict[Tensor, int] = {}
        for enter in passed:
            if enter.inputs[0] not in known:
                known[enter.inputs[0]] = len(inputs)
                inputs.append(enter.inputs[0])
            results[enter, 0] = known[enter.inputs[0]]
        controls = [*frame.controls, *(each for enter in frame.enters for each in enter.controls)]
        for enter in constant:
            if self._is_reference(enter):
                controls += workshop.referred(enter.inputs[0])[1]

        dtypes = [workshop.dtype(each) for each in inputs]
        next_ones = [self.merges[entered[enter]][1] for enter in carried]
        body_controls = [each for node in next_ones for each in node.controls]
        body = self._extract([node.inputs[0] for node in next_ones], body_controls, results, dtypes, IN_BODY)
        body.outputs += [(arg, 0) for arg in body.args[len(carried) :]]
        waits = [each for node in self._around_condition() for each in node.controls if self.phases[each] == ALWAYS]
        condition = self._extract([(self.condition, 0)], [*waits, *self.effects_of_condition], results, dtypes, ALWAYS)
        bodies = with_branches(condition, workshop), with_branches(body, workshop)

        loop = make_while(frame.name, inputs, controls, bodies, dtypes, workshop)
        turns = frame.enters[0].attr("parallel_iterations").i
        loop.message.attr["parallel_iterations"].i = turns or 10
        self._leave(loop, results)

    def _condition(self) -> Node:
        found = [node for node in self.nodes if node.op == "LoopCond"]
        if len(found) != 1:
            what = "has no LoopCond" if not found else f"has more than one LoopCond: {found[1].name!r} is another"
            raise (found or self.frame.enters)[0].error(f"stands in frame {self.frame.name!r}, which {what}")
        return found[0]

    def _merges(self) -> dict[Node, tuple[Node, Node]]:
        """Enter and NextIteration of each carried value, by its Merge."""
        found = {}
        for node in self.nodes:
            if node.op in MERGES and any(each.op in NEXT_ITERATIONS for each, _ in node.inputs):
                enters = [each for each, _ in node.inputs if each.op in ENTERS]
                nexts = [each for each, _ in node.inputs if each.op in NEXT_ITERATIONS]
                if len(enters) != 1 or len(nexts) != 1 or len(node.inputs) != 2:
                    names = ", ".join(repr(each.name) for each, _ in node.inputs)
                    raise node.error(f"must merge one Enter and one NextIteration; its inputs are {names}")
                found[node] = enters[0], nexts[0]
        return found

    def _phases(self) -> dict[Node, int]:
        phases: dict[Node, int] = {}
        for node in self.nodes:
            before = [phases[each] for each in node.controls if each in phases]
            for each, index in node.inputs:
                if self._decides(each):
                    before.append(IN_BODY if index else AT_END)
                elif each in phases:
                    before.append(phases[each])
            if node.op == "ControlTrigger" and AT_END not in before:
                before = [IN_BODY]
            if {IN_BODY, AT_END} <= set(before):
                raise node.error("reads what only a turn computes, and what is there only after the last one")
            phases[node] = max(before, default=ALWAYS)
        return phases

    def _decides(self, node: Node) -> bool:
        """Whether it is a Switch between another turn and the end."""
        return node.op in SWITCHES and node.inputs[1][0] is self.condition

    def _is_reference(self, enter: Node) -> bool:
        return enter.op == "RefEnter" and self.workshop.is_reference(enter.inputs[0])

    def _check_enters(self, used: set[Node]) -> None:
        for node in self.nodes:
            for each, _ in node.inputs:
                if each.op in ENTERS and each not in used and each in self.frame.enters:
                    raise node.error(f"reads {each.name!r}, a value of the first turn only: no Merge carries it on")
                if each in self.merges and (each, 1) in node.inputs:
                    raise node.error(f"reads the value_index of {each.name!r}, the Merge of a loop")

    def _around_condition(self) -> list[Node]:
        return [self.condition, *self.merges, *(node for node in self.nodes if self._decides(node))]

    def _resolve(self, tensor: Tensor) -> Tensor:
        """Where a value comes from that Switches and the LoopCond only pass on."""
        while True:
            if self._decides(tensor[0]) or tensor[0] is self.condition:
                tensor = tensor[0].inputs[0]
            else:
                return tensor

    def _extract(
        self,
        outputs: Sequence[Tensor],
        controls: Sequence[Node],
        args: dict[Tensor, int],
        dtypes: Sequence[int],
        phase: int,
    ) -> Body:
        """The condition or the body as a function: what `outputs` and `controls` need, copied."""
        body = Body([Node(f"arg{index}", "", None, dtype=dtype) for index, dtype in enumerate(dtypes)])
        given = {node for node, _ in args}
        waits: dict[Node, list[Node]] = {}

        def before(node: Node) -> list[Node]:
            if node in given or node.op in ENTERS:
                return []
            waits[node] = self._waits(node.controls, phase)
            return [*(self._resolve(each)[0] for each in node.inputs), *waits[node]]

        outputs = [self._resolve(each) for each in outputs]
        controls = self._waits(controls, phase)
        wanted = reachable_backward([*(node for node, _ in outputs), *controls], before)
        copies: dict[Node, Node] = {}
        variables: dict[Node, Node] = {}

        def value(tensor: Tensor) -> Tensor:
            tensor = self._resolve(tensor)
            if tensor in args:
                return body.args[args[tensor]], 0
            return copies[tensor[0]], tensor[1]

        for node in self.nodes:
            if node not in wanted or node in given:
                continue
            if node.op in ENTERS:
                variable = self.workshop.referred(node.inputs[0])[0]
                if variable not in variables:
                    variables[variable] = self.workshop.another(variable)
                    body.nodes.append(variables[variable])
                copies[node] = variables[variable]
                continue
            if self.phases[node] > phase:
                raise node.error("is computed in the body of a loop, or after it, and the loop's condition needs it")
            if self.phases[node] < phase and self.workshop.has_effects(node):
                raise node.error("stands in the condition of a loop, has effects, and the body reads what it returns")
            copies[node] = node.copy(map(value, node.inputs), [copies[each] for each in waits[node]])
            body.nodes.append(copies[node])
        body.outputs = [value(each) for each in outputs]
        body.controls = [copies[each] for each in controls]
        return body

    def _waits(self, controls: Iterable[Node], phase: int) -> list[Node]:
        """Which of these a node in the condition or the body has to wait for.

        What the body waits for in the condition has run before it; what has effects there is noted.
        """
        found: dict[Node, None] = {}
        waiting = list(controls)
        while waiting:
            node = waiting.pop()
            if node in found or node in self.merges or node.op in ENTERS:
                continue
            if self._decides(node) or node is self.condition:
                waiting.append(node.inputs[0][0])
            elif node not in self.phases:
                raise node.error(f"stands elsewhere than in frame {self.frame.name!r}, where something waits for it")
            elif node.op == "Identity" and self._is_pivot(node):
                waiting += sources(node)
            elif self.phases[node] < phase:
                if any(map(self.workshop.has_effects, reachable_backward([node], self._sources_within))):
                    self.effects_of_condition[node] = None
            else:
                found[node] = None
        return list(reversed(found))

    def _is_pivot(self, node: Node) -> bool:
        """Whether it only passes on a carried value."""
        return any(self._decides(each) or each in self.merges for each, _ in node.inputs)

    def _sources_within(self, node: Node) -> list[Node]:
        return [] if node in self.merges or node.op in ENTERS else sources(node)

    def _leave(self, loop: Node, results: dict[Tensor, int]) -> None:
        """Let what stood behind the frame read the results of the While."""
        outer = self.frame.outer
        assert outer is not None
        moved = [node for node in self.nodes if self.phases[node] == AT_END]
        for node in [*moved, *self.frame.exits]:
            node.inputs = [self._left(node, each, loop, results) for each in node.inputs]
            node.controls = [each for each in node.controls if each in moved]
        for node in self.frame.exits:
            node.op, node.message = "Identity", self.workshop.identity("", node.inputs).message
        outer.nodes += [loop, *moved]

    def _left(self, node: Node, tensor: Tensor, loop: Node, results: dict[Tensor, int]) -> Tensor:
        if self.phases.get(tensor[0], ALWAYS) == AT_END and not self._decides(tensor[0]):
            return tensor
        if node.op in EXITS and not (self._decides(tensor[0]) and tensor[1] == 0):
            raise node.error(f"must read the false side of a Switch on its frame's LoopCond, not {tensor[0].name!r}")
        found = self._resolve(tensor)
        if found not in results:
            raise node.error("reads, when a loop has ended, what its last turn has computed and no Merge carries")
        return loop, results[found]


def make_while(
    frame: str,
    inputs: Sequence[Tensor],
    controls: Iterable[Node],
    bodies: tuple[Body, Body],
    dtypes: Sequence[int],
    workshop: Workshop,
) -> Node:
    """A While of these inputs, which its body returns anew."""
    stateful = any(workshop.has_effects(node) for body in bodies for node in body.nodes)
    name = frame.removesuffix("/while_context") + "/While"
    loop = workshop.node("While" if stateful else "StatelessWhile", name.lstrip("/"), inputs, controls)
    loop.bodies = bodies
    loop.message.attr["T"].list.type.extend(dtypes)
    return loop
