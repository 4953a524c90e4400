"""What processes of a cluster say to each other.

A message is a tuple of one of the types of `MESSAGES`. Over a link it travels as a list: the number of its type among
these, then its fields (`plain`). `read` checks every field against its annotation, and names one that does not fit.
"""

from __future__ import annotations

import itertools
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgpack

import tfray.errors
from tfray.actors.links.frames import pack
from tfray.errors import DataLossError, OpError, UnknownError

if TYPE_CHECKING:
    from tfray.actors.links.handshake import LinkAddress


class StepKey(NamedTuple):
    """Identity of a step on devices.

    Attributes:
        driver: The driver that hands it out.
        number: Its number, in the order in which the driver hands steps out.
        serves: Whether a shard serves one replica in it. Such steps have a sequence of numbers of their own. On a
            worker it is what combines the contributions to the step of that number; see `Combiner`.
    """

    driver: str
    number: int
    serves: bool = False


_numbers: Final = itertools.count(1)


def session_of(driver: str) -> str:
    """The session whose state the steps of a driver use: the driver itself, or the one behind which `beside` put it."""
    return driver.partition("/")[0]


def beside(session: str) -> str:
    """A name for a further driver, whose steps use the state of a session."""
    return f"{session}/{next(_numbers)}"


class PlanId(NamedTuple):
    """Identity of a plan on devices.

    Attributes:
        driver: The driver that has registered it.
        name: Its name among the plans of that driver.
        role: What the device does: ``"step"``, its part of a step; ``"serving"``, what one replica asks of it;
            ``"parameters"``, only sending a replica the parameters that the replica does not ask for.
    """

    driver: str
    name: str
    role: str = "step"

    def of_role(self, role: Literal["step", "serving", "parameters"]) -> PlanId:
        """The plan for the same steps in another role."""
        return self._replace(role=role)


@dataclass(frozen=True)
class InputShare:
    """The part of the input that a replica reads, from some step on.

    Attributes:
        index: Number of the part, from 0.
        replicas: Number of parts.
        step: Number of the first step.
        batches: How many batches all replicas together took in the steps before that.
    """

    index: int
    replicas: int
    step: int
    batches: int


ReadInput = Callable[[int], Sequence[Any]]
"""Given the number of a step, returns the values to feed in it. Raises `StopIteration` at the end of the input."""

OpenInput = Callable[[], ReadInput]
"""Opens an input pipeline, in the actor that reads it."""


class Presence(NamedTuple):
    """What an actor says of itself once it has started.

    Attributes:
        node: Ray's identity of its node.
        pid: Its process on that node.
        address: Where it listens for links.
    """

    node: str
    pid: int
    address: LinkAddress


class Combiner(NamedTuple):
    """Where replicas of one node combine what they contribute to a step, before it goes to shards on other nodes.

    Attributes:
        device: The device of one of them, which combines.
        replicas: These replicas.
        shards: Full names of the shards.
        patience_s: Seconds after which a replica that has sent everything waits no longer for the others: it sends its
            contributions itself.
    """

    device: str
    replicas: tuple[int, ...]
    shards: tuple[str, ...]
    patience_s: float

    @staticmethod
    def own(step: StepKey) -> StepKey:
        """Identity under which contributions to a step are combined."""
        return step._replace(serves=True)


class StepRequest(NamedTuple):
    """How one device takes part in one step.

    Attributes:
        step: Identity of the step.
        floor: All steps of this driver below this number are over: messages that still arrive for them are dropped.
        timeout_s: Seconds after which waits give up, or None.
        replica: Number of the replica that this device computes, or None when it is not a replica. A replica fetches
            one more array of bytes: the name of a shard that did not take what it sent, though all others did; empty
            if all did.
        receivers: Replicas to which tensors for `REPLICA_DEVICE` go, by full device name.
        members: Replicas whose contributions count, or None while that is undecided.
        read_input: Whether the device takes its feeds from its own input pipeline.
        served: Identity of the step in which shards serve the replica; None if no shard serves it.
        serves: Whether the device is a shard that serves that replica: it takes part under the identity `served`.
        combiner: Where the replica's contributions to some shards are combined with others; None if they are not.
        after: Number of the step of the same driver that must be over on this device first; None for none.
        quiet_senders: Whether devices that only send (`Partition.only_sends`) answer only if their part fails: the
            other devices cannot end theirs before it, so their answers tell that it has ended.
        trace: How much to record: `tf.RunOptions.trace_level`. The device then returns a pair of what it fetched and a
            `tracing.DeviceRecord`.
        ring: Full names of the devices that reduce among themselves what their replicas contribute, in the order of
            the ring; empty if they contribute to shards.
    """

    step: StepKey
    floor: int
    timeout_s: float | None = None
    replica: int | None = None
    receivers: tuple[str, ...] = ()
    members: tuple[int, ...] | None = None
    read_input: bool = False
    served: StepKey | None = None
    serves: bool = False
    combiner: Combiner | None = None
    after: int | None = None
    quiet_senders: bool = False
    trace: int = 0
    ring: tuple[str, ...] = ()

    @property
    def own(self) -> StepKey:
        """Identity under which the device takes part, and is sent tensors."""
        return self.served if self.serves and self.served is not None else self.step


class StepCall(NamedTuple):
    """A driver's call for a step. Devices pass it on as it is to devices that they wake.

    Attributes:
        plan_id: The plan.
        request: The step.
        number: Number of the call. The answer has the same.
    """

    plan_id: PlanId
    request: StepRequest
    number: int

    def to_bytes(self) -> bytes:
        """The call as it travels."""
        return pack(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> StepCall:
        """The call that `to_bytes` gave. Raises `DataLossError` for anything else."""
        try:
            fields = msgpack.unpackb(data, use_list=False)
            if type(fields) is not tuple:
                raise ValueError("it is no list")
        except (ValueError, msgpack.UnpackException) as error:
            raise DataLossError(f"a message that makes no sense: the call of a step: {error!r}") from error
        call: StepCall = _read_step_call(fields)
        return call


# -- to a device -----------------------------------------------------------------------------------------


class Hello(NamedTuple):
    """Say who is at the other end of a link. The first message of another device.

    Attributes:
        device: Full name of the sender's device.
    """

    device: str


class RunStep(NamedTuple):
    """Take part in a step. The tensors of the frame are the values to feed.

    Attributes:
        call: The `StepCall`, packed, so that it can be passed on without packing it again.
    """

    call: bytes


class Description(NamedTuple):
    """What a process needs to find an object in its node's store, in Ray's own form.

    Attributes:
        identity: Ray's identity of the object.
        owner: The address of its owner.
        status: What the owner knows of the object.
    """

    identity: bytes
    owner: bytes
    status: bytes


class Loan(NamedTuple):
    """A tensor in an object of Ray's store. The sender writes there again only when the loan has been returned.

    Attributes:
        number: Number of the loan, to return it by.
        identity: Ray's identity of the object.
        dtype: Name of the tensor's dtype.
        shape: The tensor's shape.
        owner: As in `Description`; empty for a receiver that has mapped the object already.
        status: The same.
    """

    number: int
    identity: bytes
    dtype: str
    shape: tuple[int, ...]
    owner: bytes = b""
    status: bytes = b""


class Streamed(NamedTuple):
    """A tensor that comes over streams (`tensor_streams.py`).

    Attributes:
        number: Its number there.
        dtype: Name of its dtype.
        shape: Its shape.
    """

    number: int
    dtype: str
    shape: tuple[int, ...]


class Onward(NamedTuple):
    """A tensor that its receiver passes on to another device of its node: so it crosses the network once for both.

    Attributes:
        number: The tensor's number among those that come over streams.
        device: Full name of the other device.
        step: For which step of that device it is.
        replicas: As in `Deliver`.
        key: The same.
        call: The same.
    """

    number: int
    device: str
    step: StepKey
    replicas: tuple[int, ...]
    key: str
    call: bytes | None = None


class Deliver(NamedTuple):
    """Take tensors for a step: those of the frame, then described objects, loans, and those that come over streams.

    Attributes:
        step: The step.
        replicas: The replicas that contribute them; empty if they are no contributions.
        keys: The `EdgeKey` of each tensor, as text.
        number: Number for the answer; 0 if none is wanted.
        call: The `StepCall` with which to begin the step, unless it has begun already.
        objects: Descriptions of tensors that are objects of the store.
        loans: Tensors that are lent.
        returned: Numbers of loans that the receiver made to the sender, and that the sender now returns.
        sender: Full name of the sender's device, if there are loans or returned ones.
        streamed: Tensors that come over streams.
        onward: To whom the receiver passes some of these on. Its answer says that it has done so.
    """

    step: StepKey
    replicas: tuple[int, ...]
    keys: tuple[str, ...]
    number: int = 0
    call: bytes | None = None
    objects: tuple[Description, ...] = ()
    loans: tuple[Loan, ...] = ()
    returned: tuple[int, ...] = ()
    sender: str = ""
    streamed: tuple[Streamed, ...] = ()
    onward: tuple[Onward, ...] = ()


class Unmap(NamedTuple):
    """Unmap an object: it will not be lent again.

    Attributes:
        identity: Ray's identity of the object.
    """

    identity: bytes


class CommitStep(NamedTuple):
    """The replicas whose contributions to a step count. None at all reopens the step: other replicas may join it."""

    step: StepKey
    members: tuple[int, ...]


class JoinStep(NamedTuple):
    """Let one more replica take part in a running step; `receiver` is the full name of the replica's device."""

    step: StepKey
    receiver: str


class AbortStep(NamedTuple):
    """End a step that has failed on another device: what waits in it raises `AbortedError`."""

    step: StepKey
    reason: str


class CancelStep(NamedTuple):
    """End a step that is not wanted any more: what waits in it raises `CancelledError`."""

    step: StepKey
    reason: str


class EndCombining(NamedTuple):
    """Combine the contributions to a step no more, because a replica that was to contribute is gone.

    `step` is the identity under which they are combined, see `Combiner.own`. The others send theirs themselves.
    """

    step: StepKey
    reason: str


StepNotice = CommitStep | JoinStep | AbortStep | CancelStep | EndCombining
"""A message about a step, to which nothing is answered."""


# -- from a device ---------------------------------------------------------------------------------------


class ErrorReport(NamedTuple):
    """An `OpError` as it travels: its type's name and its attributes."""

    kind: str
    message: str
    op_name: str | None
    device: str | None
    site: str | None

    @classmethod
    def of(cls, error: OpError) -> ErrorReport:
        """The report of an error."""
        return cls(type(error).__name__, error.message, error.op_name, error.device, error.site)

    def to_error(self) -> OpError:
        """The error. It is an `UnknownError` if this process does not know its type."""
        kind = getattr(tfray.errors, self.kind, UnknownError)
        if not (isinstance(kind, type) and issubclass(kind, OpError)):
            kind = UnknownError
        return kind(self.message, op_name=self.op_name, device=self.device, site=self.site)


class Answer(NamedTuple):
    """The answer to a `StepCall` or to a `Deliver`. The tensors of the frame are those that the step fetched.

    Attributes:
        number: Number of the call, or of the `Deliver`.
        error: The error, if it failed.
        token: For collecting the fetched tensors by a call of Ray, if they are too large for a frame.
        is_missing: Whether the receiver could not find the objects or loans: they must be sent by a call of Ray.
        may_come_late: Whether the driver may already have ended the step without this answer.
    """

    number: int
    error: ErrorReport | None = None
    token: str | None = None
    is_missing: bool = False
    may_come_late: bool = False


class Returned(NamedTuple):
    """Return these loans, by number: the sender of this message reads them no more, so they may be written again."""

    loans: tuple[int, ...]


Message = (
    Hello
    | RunStep
    | Deliver
    | Answer
    | Returned
    | Unmap
    | CommitStep
    | JoinStep
    | AbortStep
    | CancelStep
    | EndCombining
)

MESSAGES: Final[tuple[type[Message], ...]] = typing.get_args(Message)
"""The types of messages. A frame names the type by its position here."""

_NUMBERS: Final = {kind: number for number, kind in enumerate(MESSAGES)}


def plain(message: Message) -> tuple[Any, ...]:
    """A message as plain data, for a frame."""
    return _NUMBERS[type(message)], *message


# -- the form of messages --------------------------------------------------------------------------------


_Build = Callable[[Any], Any]
"""Checks the parts of a field's value, and makes of them what the field holds. Raises `ValueError` for others."""


class _Form:
    """What the fields of a type of messages must be, from their annotations. Each attribute has one item per field.

    Attributes:
        kind: The type of messages.
        allowed: The types that the field may have as it arrives.
        records: The type of the messages that the field holds, or None.
        items: For a field that is a sequence, what its items must be.
    """

    def __init__(self, kind: Any) -> None:
        hints = typing.get_type_hints(kind)
        fields = [_field_of(hints[name]) for name in kind._fields]
        self.kind = kind
        self.allowed, self.records, self.items = zip(*fields, strict=True)
        self._words = [getattr(hint, "__forward_arg__", hint) for hint in kind.__annotations__.values()]

    def misfit(self, values: Sequence[Any]) -> DataLossError:
        """The error for values of which one does not fit."""
        name, names = self.kind.__name__, self.kind._fields
        if len(values) != len(names):
            return DataLossError(f"a message that makes no sense: {name} has {len(names)} fields, not {len(values)}")
        for position, value in enumerate(values):
            record = self.records[position]
            if not self._fits(position, value):
                words = f"{value!r:.200}, not {self._words[position]}"
                return DataLossError(f"a message that makes no sense: {name}.{names[position]} is {words}")
            if record is not None and value is not None:
                _reader(record)(value)  # it names what does not fit within the record
        raise AssertionError(f"all fields of {name} fit")

    def _fits(self, position: int, value: Any) -> bool:
        items = self.items[position]
        return type(value) in self.allowed[position] and (items is None or not value or items.fit(value))


class _Items(NamedTuple):
    """What the items of a sequence must be.

    Attributes:
        allowed: Their types as they arrive.
        record: The type of the messages that they hold, or None.
    """

    allowed: frozenset[type]
    record: Any

    def fit(self, values: Sequence[Any]) -> bool:
        """Whether the values are such items."""
        return self.allowed.issuperset(map(type, values))

    def read(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The messages that such items hold."""
        return tuple(map(_reader(self.record), values))


@cache
def _reader(kind: Any) -> _Build:
    """A function that makes a message of that type from the values of its fields, or raises `DataLossError`.

    It is called several times in every step. So its source is generated: one expression checks all fields, those of the
    messages within it too, without a call for each.
    """
    namespace: dict[str, Any] = {"misfit": _Form(kind).misfit, "new": tuple.__new__}
    lines, tests, result = _read_source(_Form(kind), "f", "values", "", namespace)
    source = [
        "try:",
        *_indented(lines),
        *_indented(_returned(tests, result)),
        "except (TypeError, ValueError):",
        "    pass",
    ]
    return _function(["def read(values):", *_indented([*source, "raise misfit(values)"])], namespace)


def _header_reader() -> Callable[[Any], Message]:
    """The function `read`, generated as those of `_reader`: it looks for the most frequent types first."""
    namespace: dict[str, Any] = {"misfit": _misfit, "new": tuple.__new__}
    source = ["number = header[0]"]
    for kind in sorted(MESSAGES, key=lambda kind: kind not in (Deliver, Answer)):
        number = _NUMBERS[kind]
        lines, tests, result = _read_source(_Form(kind), f"m{number}_", "header", "number, ", namespace)
        source += [f"if number == {number}:", *_indented([*lines, *_returned(["type(number) is int", *tests], result)])]
    source = ["try:", *_indented(source), "except (TypeError, ValueError, KeyError, IndexError):", "    pass"]
    return _function(["def read(header):", *_indented([*source, "raise misfit(header)"])], namespace)


def _misfit(header: Any) -> DataLossError:
    """The error for what is not a message."""
    if type(header) is not tuple or not header:
        return DataLossError(f"a message that makes no sense: {header!r:.200}")
    number = header[0]
    if type(number) is not int or not 0 <= number < len(MESSAGES):
        return DataLossError(f"a message that makes no sense: nobody knows type {number!r:.200}")
    return _Form(MESSAGES[number]).misfit(header[1:])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _returned(tests: Sequence[str], result: str) -> list[str]:
    return [f"if ({') and ('.join(tests)}):", f"    return {result}"]


def _function(source: Sequence[str], namespace: dict[str, Any]) -> Any:
    """The function ``read`` of some source."""
    exec("\n".join(source), namespace)
    return namespace["read"]


def _read_source(
    form: _Form, prefix: str, values: str, before: str, namespace: dict[str, Any]
) -> tuple[list[str], list[str], str]:
    """Source that reads a message: lines that unpack its fields, conditions that they must meet, and the message.

    Args:
        form: The message's form.
        prefix: What names of variables begin with.
        values: An expression for the values.
        before: Variables for the values that come before those of the fields, each with a comma after it.
        namespace: Where the source finds what it names.
    """
    names = [f"{prefix}{position}" for position in range(len(form.kind._fields))]
    lines, tests, results = [f"{before}{', '.join(names)}, = {values}"], [], list(names)
    namespace[f"{prefix}_kind"] = form.kind
    for position, (name, allowed, record, items) in enumerate(
        zip(names, form.allowed, form.records, form.items, strict=True)
    ):
        namespace |= {f"{name}_{each.__name__}": each for each in allowed}
        test = " or ".join(f"type({name}) is {name}_{each.__name__}" for each in sorted(allowed, key=str))
        if record is not None and type(None) in allowed:
            namespace[f"{name}_read"] = _reader(record)
            results[position] = f"{name} if {name} is None else {name}_read({name})"
        elif record is not None:
            inner_lines, inner_tests, results[position] = _read_source(_Form(record), f"{name}_", name, "", namespace)
            lines += inner_lines
            tests += inner_tests
        if items is not None:
            namespace[f"{name}_items"], namespace[f"{name}_fit"] = items, items.allowed.issuperset
            test = f"({test}) and (not {name} or {name}_fit(map(type, {name})))"
            if items.record is not None:
                results[position] = f"{name}_items.read({name}) if {name} else {name}"
        tests.append(test)
    return lines, tests, f"new({prefix}_kind, ({', '.join(results)},))"


def _field_of(hint: Any) -> tuple[frozenset[type], Any, _Items | None]:
    """The types that a field may have as it arrives, the message that it holds, and what its items must be."""
    if isinstance(hint, types.UnionType):
        allowed, records, sequences = zip(*map(_field_of, typing.get_args(hint)), strict=True)
        return frozenset().union(*allowed), next(filter(None, records), None), next(filter(None, sequences), None)
    if hint is float:
        return frozenset({float, int}), None, None
    if typing.get_origin(hint) is tuple:
        return frozenset({tuple}), None, _Items(*_field_of(typing.get_args(hint)[0])[:2])
    if issubclass(hint, tuple):
        return frozenset({tuple}), hint, None
    return frozenset({hint}), None, None


read: Final = _header_reader()
"""The message that `plain` gave. Raises `DataLossError` for anything else; the error names the field that is wrong."""

_read_step_call: Final = _reader(StepCall)
