"""Branches made of dead tensors as If operations.

A Switch passes its input on to one of its two outputs; the other one is dead, and so is all that reads it or waits for
it. A Merge passes on the input that is not dead. So each operation has a *place*: the predicates of which it is known,
when it runs, on which side they are. A Merge joins two places that differ in the side of one predicate.

All operations whose places begin with the same predicate become branches of an If. They become several when that is
what keeps the graph free of circles, as when the gradient of a branch comes after the loss, which depends on the
branch: then values of the first If's branches are among its results, and the second one takes them in. In the
outermost graph they also become several when a fetch could tell: a result whose branches read a placeholder or have an
effect is computed apart from one whose branches do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tfray.errors import InternalError
from tfray.exchange.flow_graph import (
    BOOL,
    INT32,
    MERGES,
    STRING,
    SWITCHES,
    Body,
    Node,
    Tensor,
    Workshop,
    in_order,
    sources,
)
from tfray.framework.traversal import reachable_backward

Literal = tuple[Tensor, int]
"""A predicate, and 1 where it holds or 0."""

Place = tuple[Literal, ...]
"""What is known of predicates where an operation runs, outermost branch first."""


def with_branches(body: Body, workshop: Workshop) -> Body:
    """A function without Switch and Merge, equal to `body`, which has them.

    Raises `InvalidArgumentError` for a Merge whose inputs are not the two sides of a Switch.
    """
    if not any(node.op in SWITCHES or node.op in MERGES or node.op == "ControlTrigger" for node in body.nodes):
        return body
    return _Branches(body, workshop, False, ()).rebuilt()


def graph_with_branches(nodes: Sequence[Node], workshop: Workshop, kept: Iterable[str] = ()) -> list[Node]:
    """As `with_branches`, for a graph that programs fetch from.

    Each Merge outside of branches becomes an Identity of its name. An operation with effects in a branch leaves an
    NoOp of its name that runs the branch, and so does each operation that `kept` names. For a tensor that it names
    there is an operation that returns it, and fails where that branch did not run.
    """
    return _Branches(Body((), nodes), workshop, True, kept).rebuilt().nodes


_Part = tuple[Place, Tensor, int | Node]
"""An input of a Merge: where it is alive, what it is, and its number, or the Merge of several inputs that knows it."""


@dataclass
class _Join:
    """What a Merge is: a choice between two values by a predicate."""

    predicate: Tensor
    values: tuple[Tensor, Tensor]
    indices: tuple[int | Node, int | Node]
    """Which input each one is; or the Merge of several inputs that knows."""


class _Branches:
    """The branches of one function, or of the graph."""

    def __init__(self, body: Body, workshop: Workshop, is_graph: bool, kept: Iterable[str]) -> None:
        self.body = body
        self.workshop = workshop
        self.is_graph = is_graph
        self.places: dict[Node, Place | None] = dict.fromkeys(body.args, ())
        self.joins: dict[Node, _Join] = {}
        self.alone: frozenset[Node] = frozenset()
        self.flags: dict[Node, Node] = {}
        self.within: set[Node] = set()
        self.single: dict[Node, tuple[Tensor, int]] = {}
        self.nodes: list[Node] = []
        for node in in_order(body.nodes):
            self.places[node] = self._joined(node) if node.op in MERGES else self._place(node)
            self.nodes.append(node)
        self.nodes = [node for node in self.nodes if self.places[node] is not None and node.op not in SWITCHES]
        for node, _ in map(self.resolve, body.outputs):
            if self.places[node] is None:
                raise node.error("can never run: it needs both sides of one Switch")
        self.names = frozenset(kept)
        self.kept = self._kept()
        self.flags |= {node: self._flag(node) for node in self.kept}
        self.waits = {node: self._waits(node) for node in self.nodes}
        self.before = {node: [*self._read(node), *self.waits[node]] for node in self.nodes}
        wanted = reachable_backward(self._roots(), lambda node: self.before.get(node, ()))
        self.nodes = [node for node in self.nodes if node in wanted]
        self.readers = self._readers()
        self.touched = self._touched() if is_graph else {}

    def rebuilt(self) -> Body:
        """The function, or graph, with If operations."""
        whole = _Scope(self, None)
        for arg in self.body.args:
            whole.values[arg, 0] = arg, 0
        self.build(whole, self.nodes, 0)
        outputs = [whole.value(each) for each in self.body.outputs]
        controls = whole.wait_for(self._expanded(self.body.controls))
        for node in self.kept:
            self._keep(whole, node)
        return Body(self.body.args, whole.nodes, outputs, [] if self.is_graph else whole.ends(outputs, controls))

    # -- where operations run --------------------------------------------------------------------------

    def resolve(self, tensor: Tensor) -> Tensor:
        """What a Switch passes on."""
        while tensor[0].op in SWITCHES:
            tensor = tensor[0].inputs[0]
        return tensor

    def _place(self, node: Node) -> Place | None:
        if node.op == "ControlTrigger":  # never dead
            return ()
        place: Place | None = ()
        for tensor in node.inputs:
            place = _both(place, self._place_of(tensor))
        return _both(place, self._waited(node))

    def _place_of(self, tensor: Tensor) -> Place | None:
        node, index = tensor
        if node.op in SWITCHES:
            predicate, holds = self._predicate(node)
            return _both(self.places[node], ((predicate, index if holds else 1 - index),))
        return self.places[node]

    def _predicate(self, switch: Node) -> tuple[Tensor, bool]:
        """What a Switch decides by, and whether by this or by its opposite.

        Switches on one predicate may read it by several names, or ask which input a Merge on it has taken.
        """
        tensor, holds = switch.inputs[1], True
        for node, takes in self._predicate_path(switch):
            tensor, holds = self.joins[node].predicate if node in self.joins else node.inputs[0], holds == takes
        return tensor, holds

    def _predicate_path(self, switch: Node) -> Iterator[tuple[Node, bool]]:
        """What a predicate comes through without being another one, and whether it stays the same or is negated."""
        node = switch.inputs[1][0]
        while True:
            if not node.inputs:
                return
            if node.op == "Identity" or node.op in SWITCHES:
                yield node, True
            elif node.op == "LogicalNot":
                yield node, False
            elif (
                node.op == "Equal"
                and len(node.inputs) == 2
                and node.inputs[0][0] in self.joins
                and node.inputs[0][1] == 1
            ):
                node, asked = node.inputs[0][0], self.workshop.whole_number(node.inputs[1])
                indices = self.joins[node].indices
                if asked not in indices or any(isinstance(each, Node) for each in indices):
                    return
                yield node, indices.index(asked) == 1
            else:
                return
            node = (self.joins[node].predicate if node in self.joins else node.inputs[0])[0]

    def _joined(self, node: Node) -> Place | None:
        """The place of a Merge; notes what it joins."""
        waiting = []
        for index, each in enumerate(node.inputs):
            place = self._place_of(each)
            if place is not None:
                waiting.append((place, each, index))
        # Of an input that is there whenever another one is, it takes this one, which can be no later.
        others = [place for place, _, _ in waiting]
        waiting = [part for part in waiting if not any(set(place) < set(part[0]) for place in others)]
        parts: list[_Part] = list(waiting)
        if len(parts) == 1:
            self.single[node] = parts[0][1], waiting[0][2]
            return _both(parts[0][0], self._waited(node))
        while len(parts) > 1:
            first, second, predicate, place = self._pair(node, parts)
            sides = sorted([first, second], key=lambda part: dict(part[0])[predicate])
            last = len(parts) == 2
            join = node if last else Node(self.workshop.unique_name(node.name), node.op, node.message)
            values = [self.resolve(part[1]) for part in sides]
            self.joins[join] = _Join(predicate, (values[0], values[1]), (sides[0][2], sides[1][2]))
            if not last:
                self.places[join] = place
                join.inputs = [part[1] for part in sides]
                self.nodes.append(join)
            parts = [part for part in parts if part is not first and part is not second]
            parts.append((place, (join, 0), join))
        return _both(parts[0][0], self._waited(node)) if parts else None

    def _waited(self, node: Node) -> Place | None:
        place: Place | None = ()
        for each in node.controls:
            place = _both(place, self.places[each])
        return place

    def _pair(self, node: Node, parts: list[_Part]) -> tuple[_Part, _Part, Tensor, Place]:
        """Two of the inputs of a Merge that are sides of one predicate, this, and the place of both."""
        for position, first in enumerate(parts):
            for second in parts[position + 1 :]:
                differing = set(first[0]) ^ set(second[0])
                if len(differing) == 2 and len({predicate for predicate, _ in differing}) == 1:
                    predicate = next(iter(differing))[0]
                    return first, second, predicate, tuple(each for each in first[0] if each[0] != predicate)
        if not any(place for place, _, _ in parts):
            raise node.error("merges values that no Switch decides between")
        names = ", ".join(repr(each.name) for each, _ in node.inputs)
        raise node.error(f"merges what are not the two sides of one Switch: {names}")

    def _kept(self) -> list[Node]:
        """The operations in branches of which programs fetch tensors by name."""
        owners = {name.partition(":")[0] for name in self.names if ":" in name}
        return [node for node in self.nodes if node.name in owners and self.places[node]]

    def _flag(self, node: Node) -> Node:
        """An operation beside `node` that returns True; what stands in for it elsewhere is False."""
        flag = self.workshop.constant(f"{node.name}/has_run", BOOL, "bool_val", True)
        self.places[flag] = self.places[node]
        self.nodes.append(flag)
        return flag

    def _read(self, node: Node) -> list[Node]:
        """What it reads, and what decides whether it runs."""
        return [each for each, _ in self._read_tensors(node)]

    def _read_tensors(self, node: Node) -> list[Tensor]:
        join = self.joins.get(node)
        if join is not None:
            read = [*join.values, join.predicate, *((each, 1) for each in join.indices if isinstance(each, Node))]
        else:
            read = [self.resolve(each) for each in ([self.single[node][0]] if node in self.single else node.inputs)]
        return list(dict.fromkeys([*read, *(predicate for predicate, _ in self.places[node] or ())]))

    def _waits(self, node: Node) -> list[Node]:
        """What it must wait for: for itself, and for the Switches that pass it something."""
        controls = list(node.controls)
        passing = [each for each, _ in node.inputs if each.op in SWITCHES]
        for switch in passing:  # grows
            controls += switch.controls
            for each, _ in switch.inputs:
                if each.op in SWITCHES:
                    passing.append(each)
            controls += [each for node, _ in self._predicate_path(switch) for each in node.controls]
        return self._expanded(controls)

    def _expanded(self, controls: Iterable[Node]) -> list[Node]:
        """What to wait for in place of Switches and what only passes values on in branches."""
        found: dict[Node, None] = {}
        seen: set[Node] = set()
        waiting = list(controls)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.op in SWITCHES or (node.op == "Identity" and self.places[node] and node not in self.flags):
                waiting += sources(node)
            elif node.op and self.places[node] is not None:
                found[node] = None
        return list(reversed(found))

    def _roots(self) -> list[Node]:
        if not self.is_graph:
            return [*(self.resolve(each)[0] for each in self.body.outputs), *self._expanded(self.body.controls)]
        plain = [node for node in self.nodes if not self.places[node]]
        needed = reachable_backward(plain, lambda node: self.before.get(node, ()))
        owners, flags = {node.name for node in self.kept}, set(self.flags.values())
        by_name = self.names - owners
        self.alone = frozenset(
            node
            for node in self.nodes
            if self.places[node]
            and node not in flags
            and (node.name in by_name or (node not in needed and self.workshop.is_effect(node)))
        )
        return [*plain, *self.alone, *self.kept, *self.flags.values()]

    def _readers(self) -> dict[Tensor, list[Node | None]]:
        """Who reads a tensor; None for who calls the function."""
        readers: dict[Tensor, list[Node | None]] = {}
        for node in self.nodes:
            for each in self._read_tensors(node):
                readers.setdefault(each, []).append(node)
        kept = [(node, index) for node in self.kept for index in range(self.workshop.output_count(node))]
        kept += [(node, 1) for node in [*self.joins, *self.single] if f"{node.name}:1" in self.names]
        for each in [*map(self.resolve, self.body.outputs), *kept, *((flag, 0) for flag in self.flags.values())]:
            readers.setdefault(each, []).append(None)
        return readers

    def _touched(self) -> dict[Node, int]:
        """Of each operation in branches, what every step touches that needs it: placeholders and effects, as bits."""
        conditional = {node for node in self.nodes if self.places[node] or node in self.joins}
        if not conditional:
            return {}
        all_touched: dict[Node, int] = {}
        bits = 0
        for node in self.nodes:
            touched = 0
            for each in self.before[node]:
                touched |= all_touched.get(each, 0)
            if self.workshop.is_effect(node) or node.op.startswith("Placeholder"):
                touched |= 1 << bits
                bits += 1
            all_touched[node] = touched
        found: dict[Node, int] = {}
        asked = {*self.kept, *self.flags.values()}
        for node in reversed(self.nodes):
            if node not in conditional:
                by_all = all_touched[node]
            elif node in found and self.places[node] and node not in asked:
                by_all = found[node]
            else:
                by_all = found[node] = all_touched[self._owner(node)]
            for each in self.before[node]:
                if each in conditional:
                    found[each] = found[each] & by_all if each in found else by_all
        return found

    def _owner(self, node: Node) -> Node:
        return next((each for each, flag in self.flags.items() if flag is node), node)

    # -- building --------------------------------------------------------------------------------------

    def _before(self, node: Node) -> Iterator[Node]:
        """What must have run before, with what is read by the Merges of the Ifs that are being built."""
        waiting = list(self.before[node])
        seen = set(waiting)
        for each in waiting:  # grows
            if each in self.within:
                waiting += [further for further in self.before[each] if further not in seen]
                seen.update(self.before[each])
            else:
                yield each

    def build(self, scope: _Scope, nodes: Sequence[Node], depth: int) -> None:
        """Add operations, all of places that begin with the same `depth` predicates, to `scope`."""
        for predicate, members in self._groups(nodes, depth):
            if predicate is None:
                scope.add(members[0])
            else:
                self._add_if(scope, predicate, members, depth)

    def _groups(self, nodes: Sequence[Node], depth: int) -> Iterator[tuple[Tensor | None, list[Node]]]:
        """Operations in an order in which they can run: one alone, or with its predicate all that share an If.

        An If is built as late as possible, so that as much as possible is in it.
        """
        groups = {node: self._group(node, depth) for node in nodes}
        waiting = dict.fromkeys(nodes, 0)
        readers: dict[Node, list[Node]] = {node: [] for node in nodes}
        left: dict[Hashable, int] = {}
        for node in nodes:
            left[groups[node]] = left.get(groups[node], 0) + 1
            for each in self._before(node):
                if each in waiting:
                    waiting[node] += 1
                    readers[each].append(node)
        ready = deque(node for node in nodes if not waiting[node])
        open_groups: dict[Hashable, list[Node]] = {}

        def release(node: Node, within: bool) -> None:
            for reader in readers[node]:
                if groups[node] is None or (groups[reader] == groups[node]) == within:
                    waiting[reader] -= 1
                    if not waiting[reader]:
                        ready.append(reader)

        while ready or open_groups:
            while ready:
                node = ready.popleft()
                group = groups[node]
                left[group] -= 1
                if group is None:
                    yield None, [node]
                    release(node, False)
                else:
                    open_groups.setdefault(group, []).append(node)
                    release(node, True)
            if open_groups:
                group = next((each for each in open_groups if not left[each]), next(iter(open_groups)))
                members = open_groups.pop(group)
                yield group[0], members  # type: ignore[index]
                for node in members:
                    release(node, False)

    def _group(self, node: Node, depth: int) -> Hashable:
        """The predicate of the If in which an operation stands, and what tells it from other Ifs of this predicate."""
        place = self.places[node] or ()
        touched = self.touched.get(node, 0) if depth == 0 else 0
        if len(place) > depth:
            return place[depth][0], touched
        return (self.joins[node].predicate, touched) if node in self.joins else None

    def _add_if(self, scope: _Scope, predicate: Tensor, members: Sequence[Node], depth: int) -> None:
        workshop = self.workshop
        joins = [node for node in members if len(self.places[node] or ()) == depth]
        sides = _Scope(self, scope), _Scope(self, scope)
        self.within.update(joins)
        for value, side in enumerate(sides):
            side.joined = dict.fromkeys(joins, value)
            inner = [node for node in members if node not in joins and self._side(node, depth) == value]
            self.build(side, inner, depth + 1)
        results: list[tuple[Tensor, Tensor]] = []
        positions: dict[Tensor, int] = {}

        def give(tensor: Tensor, values: Sequence[Tensor]) -> None:
            positions[tensor] = len(results)
            results.append((values[0], values[1]))

        for join in joins:
            give((join, 0), [side.value(each) for side, each in zip(sides, self.joins[join].values, strict=True)])
            if (join, 1) in self.readers:
                give((join, 1), [side.index(each) for side, each in zip(sides, self.joins[join].indices, strict=True)])
        inside = set(members)
        for tensor in self._exported(members, joins, inside):
            value = self._side(tensor[0], depth)
            given = sides[value].value(tensor)
            other = sides[1 - value].absent(tensor[0], workshop.dtype(given))
            give(tensor, [given, other] if value == 0 else [other, given])

        name = _scope_of(joins[0] if joins else predicate[0])
        node = self._make_if(scope, name, predicate, sides, results)
        scope.nodes.append(node)
        scope.done.update(dict.fromkeys(members, node))
        for tensor, position in positions.items():
            scope.values[tensor] = node, position
        is_graph = self.is_graph and scope.outer is None
        for join in joins:
            if is_graph or self.waits[join]:
                scope.name_join(join)
        for each in members:
            if is_graph and each in self.alone:
                scope.nodes.append(Node(each.name, "NoOp", workshop.message(), controls=[node]))

    def _side(self, node: Node, depth: int) -> int:
        return (self.places[node] or ())[depth][1]

    def _exported(self, members: Sequence[Node], joins: Sequence[Node], inside: set[Node]) -> list[Tensor]:
        found = []
        for node in members:
            if node not in joins:
                for tensor in self._read_outputs(node):
                    if any(reader is None or reader not in inside for reader in self.readers[tensor]):
                        found.append(tensor)
        return found

    def _read_outputs(self, node: Node) -> list[Tensor]:
        if node in self.joins:
            return [(node, index) for index in (0, 1) if (node, index) in self.readers]
        return [(node, index) for index in range(self.workshop.output_count(node)) if (node, index) in self.readers]

    def _make_if(
        self,
        scope: _Scope,
        name: str,
        predicate: Tensor,
        sides: tuple[_Scope, _Scope],
        results: Sequence[tuple[Tensor, Tensor]],
    ) -> Node:
        workshop = self.workshop
        outputs = [[pair[value] for pair in results] for value in (0, 1)]
        taken = list(dict.fromkeys([*sides[0].args, *sides[1].args]))
        bodies = []
        for side, returned in zip(sides, outputs, strict=True):
            args = [side.args.get(each) or Node("arg", "", None, dtype=workshop.dtype(each)) for each in taken]
            bodies.append(Body(args, side.nodes, returned, side.ends(returned)))
        stateful = any(workshop.has_effects(node) for body in bodies for node in body.nodes)
        inputs = [scope.value(predicate), *taken]
        read = {node for node, _ in inputs}
        controls = [node for side in sides for node in side.controls if node not in read]
        made = workshop.node("If" if stateful else "StatelessIf", name, inputs, controls)
        made.bodies = bodies[1], bodies[0]
        attr = made.message.attr
        attr["Tcond"].type = workshop.dtype(inputs[0])
        attr["Tin"].list.type.extend(workshop.dtype(each) for each in taken)
        attr["Tout"].list.type.extend(workshop.dtype(first) for first, _ in results)
        return made

    def _keep(self, whole: _Scope, node: Node) -> None:
        """Leave an operation of the name of one in a branch, which fails where that did not run."""
        workshop = self.workshop
        message = f"{node.name!r} is fetched, and stands in a branch that was not taken"
        data = workshop.constant(f"{node.name}/message", STRING, "string_val", message.encode())
        check = workshop.node("Assert", f"{node.name}/check", [whole.value((self.flags[node], 0)), (data, 0)])
        check.message.attr["T"].list.type.append(STRING)
        values = [whole.value((node, index)) for index in range(workshop.output_count(node))]
        if values:
            kept = workshop.identity(node.name, values, [check])
        else:
            kept = Node(node.name, "NoOp", workshop.message(), controls=[check, whole.done[node]])
        whole.nodes += [data, check, kept]


@dataclass
class _Scope:
    """A function, or the graph, while it is built.

    Attributes:
        branches: What it is built of.
        outer: The one around it.
        nodes: Its operations.
        values: What stands here for tensors of the original graph that none of its operations return.
        done: What stands here for operations, on their own or in an If.
        args: Its inputs, by the tensors around it that they stand for.
        controls: What must have run around it before it runs.
        joined: The Merges of the If whose branch it is, and their values' number in this branch.
    """

    branches: _Branches
    outer: _Scope | None
    nodes: list[Node] = field(default_factory=list)
    values: dict[Tensor, Tensor] = field(default_factory=dict)
    done: dict[Node, Node] = field(default_factory=dict)
    copies: dict[Node, Node] = field(default_factory=dict)
    args: dict[Tensor, Node] = field(default_factory=dict)
    variables: dict[Node, Node] = field(default_factory=dict)
    controls: dict[Node, None] = field(default_factory=dict)
    joined: dict[Node, int] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Add an operation of its own."""
        branches = self.branches
        controls = self.wait_for(branches.waits[node])
        if node in branches.single:
            tensor, index = branches.single[node]
            self.values[node, 0] = self.value(tensor)
            if (node, 1) in branches.readers:
                self.values[node, 1] = self.index(index)
            self.name_join(node, controls)
            return
        inputs = [self.value(each) for each in node.inputs]
        read = {each for each, _ in inputs}
        copy = node.copy(inputs, [each for each in controls if each not in read or self.outer is None])
        if node.op == "ControlTrigger":
            copy.op = "NoOp"
        self.nodes.append(copy)
        self.copies[node] = self.done[node] = copy

    def name_join(self, node: Node, controls: Sequence[Node] = ()) -> None:
        """Add an Identity of a Merge's name that returns what it returns."""
        values = [self.values[node, index] for index in (0, 1) if (node, index) in self.values]
        controls = [*controls, *self.wait_for(self.branches.waits[node])]
        named = self.branches.workshop.identity(node.name, values, controls, node.message.device)
        self.nodes.append(named)
        self.done[node] = named
        for index in range(len(values)):
            self.values[node, index] = named, index

    def value(self, tensor: Tensor) -> Tensor:
        """What stands here for a tensor of the original graph. One from outside becomes an input."""
        tensor = self.branches.resolve(tensor)
        found = self.values.get(tensor)
        if found is None and tensor[0] in self.copies:
            found = self.copies[tensor[0]], tensor[1]
        if found is None and tensor[0] in self.joined:
            join, side = self.branches.joins[tensor[0]], self.joined[tensor[0]]
            found = self.values[tensor] = self.index(join.indices[side]) if tensor[1] else self.value(join.values[side])
        if found is None:
            found = self.values[tensor] = self._from_outside(tensor)
        return found

    def _from_outside(self, tensor: Tensor) -> Tensor:
        workshop = self.branches.workshop
        if self.outer is None:
            raise InternalError(f"{tensor[0]!r} is read before it is there")
        if tensor[0].op and workshop.is_reference(tensor):
            variable, passed = workshop.referred(tensor)
            self.wait_for(passed)
            if variable not in self.variables:
                self.variables[variable] = workshop.another(variable)
                self.nodes.append(self.variables[variable])
            return self.variables[variable], 0
        outer = self.outer.value(tensor)
        if outer not in self.args:
            self.args[outer] = Node("arg", "", None, dtype=workshop.dtype(outer))
        return self.args[outer], 0

    def index(self, index: int | Node) -> Tensor:
        """The number of the input that a Merge takes, when it is this one or the one that an inner Merge takes."""
        if isinstance(index, Node):
            return self.value((index, 1))
        constant = self.branches.workshop.constant("value_index", INT32, "int_val", index)
        self.nodes.append(constant)
        return constant, 0

    def absent(self, node: Node, dtype: int) -> Tensor:
        """What is returned here for a value that the other branch computes."""
        workshop = self.branches.workshop
        if node in self.branches.flags.values():
            made = workshop.constant(node.name, BOOL, "bool_val", False)
        else:
            made = workshop.no_value(f"{node.name}/absent", dtype)
        self.nodes.append(made)
        return made, 0

    def wait_for(self, nodes: Iterable[Node]) -> list[Node]:
        """What to wait for here, so that these have run. What runs outside must run before this function does."""
        found: dict[Node, None] = {}
        for node in nodes:
            if node in self.done:
                found[self.done[node]] = None
            elif node in self.joined:
                awaited = [self.branches.joins[node].values[self.joined[node]][0], *self.branches.waits[node]]
                found.update(dict.fromkeys(self.wait_for(each for each in awaited if each.op)))
            elif self.outer is not None:
                self.controls.update(dict.fromkeys(self.outer.wait_for([node])))
        return list(found)

    def ends(self, outputs: Iterable[Tensor], controls: Iterable[Node] = ()) -> list[Node]:
        """The operations that must run for their effects: those that no other one here, and no result, waits for."""
        awaited = {each for node in self.nodes for each in sources(node)} | {node for node, _ in outputs}
        return list(dict.fromkeys([*controls, *(node for node in self.nodes if node not in awaited)]))


def _both(first: Place | None, second: Place | None) -> Place | None:
    """The place where both run; None where one predicate would have to be true and false."""
    if first is None or second is None:
        return None
    if len(second) > len(first):
        first, second = second, first
    known = dict(first)
    for predicate, side in second:
        if known.setdefault(predicate, side) != side:
            return None
    return tuple(known.items())


def _scope_of(node: Node) -> str:
    scope = node.name.rpartition("/")[0]
    return f"{scope}/If" if scope else "If"
