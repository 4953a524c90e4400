"""What maps between sets of tensors have in common (`Bijector`), and such maps made of others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from tfray.errors import ArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_rank
from tfray.ops.math import math_ops


class Bijector:
    """A differentiable map of tensors that has an inverse: the base of one's own.

    A subclass defines ``_forward(x)``, ``_inverse(y)``, and ``_forward_log_det_jacobian(x)`` or
    ``_inverse_log_det_jacobian(y)``: of one event of the fewest dimensions that the map works on. One that changes
    shapes defines `_forward_event_shape`, `_inverse_event_shape`, `_forward_event_shape_tensor` and
    `_inverse_event_shape_tensor` too. What `forward` gave is known to `inverse`, and the other way round.

    Where several values have the same image, a subclass sets ``_is_injective = False``, and ``_inverse`` and
    ``_inverse_log_det_jacobian`` give a tuple, with one tensor for each of them; `inverse` and
    `inverse_log_det_jacobian` do so too then.

    Args:
        graph_parents: Tensors that the map depends on.
        is_constant_jacobian: Whether the determinant is the same everywhere.
        validate_args: Check values when a step runs.
        dtype: Dtype that values must have; any when None.
        forward_min_event_ndims: The fewest dimensions that `forward` works on.
        inverse_min_event_ndims: The fewest that `inverse` does; as many when None.
        name: Prefix of the operations' names; that of the class when None, as ``one_of_these`` for ``OneOfThese``.

    Raises:
        ValueError: Neither number of dimensions is given, or one is negative.
        TypeError: It is no subclass.
    """

    _is_injective = True

    def __init__(
        self,
        graph_parents: Sequence[Tensor] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: DTypeLike | None = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:
        if type(self) is Bijector:
            raise TypeError("Can't instantiate abstract class Bijector with abstract methods __init__")
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ValueError("Must specify at least one of `forward_min_event_ndims` and `inverse_min_event_ndims`.")
        forward = inverse_min_event_ndims if forward_min_event_ndims is None else forward_min_event_ndims
        inverse = forward_min_event_ndims if inverse_min_event_ndims is None else inverse_min_event_ndims
        for number in (forward, inverse):
            if not isinstance(number, (int, np.integer)) or number < 0:
                raise ValueError(f"the fewest dimensions of an event must be a non-negative integer, not {number!r}")
        self._forward_ndims, self._inverse_ndims = int(forward or 0), int(inverse or 0)
        self._graph_parents = list(graph_parents or ())
        self._is_constant = is_constant_jacobian
        self._validate_args = validate_args
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._name = (name or _in_lower_case(type(self).__name__)).rstrip("/").rpartition("/")[2]
        self._images: dict[tuple[Tensor, Graph], Tensor] = {}
        self._origins: dict[tuple[Tensor, Graph], Tensor] = {}
        self._log_dets: dict[tuple[Tensor, Graph, int | Tensor, bool], Tensor] = {}

    # -- what it is made of ----------------------------------------------------------------------

    @property
    def graph_parents(self) -> list[Tensor]:
        """Tensors that the map depends on."""
        return list(self._graph_parents)

    @property
    def forward_min_event_ndims(self) -> int:
        """The fewest dimensions that `forward` works on."""
        return self._forward_ndims

    @property
    def inverse_min_event_ndims(self) -> int:
        """The fewest dimensions that `inverse` works on."""
        return self._inverse_ndims

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether the determinant of the Jacobian is the same everywhere."""
        return self._is_constant

    @property
    def validate_args(self) -> bool:
        """Whether values are checked."""
        return self._validate_args

    @property
    def dtype(self) -> DType | None:
        """Dtype that values must have; None when they may have any."""
        return self._dtype

    @property
    def name(self) -> str:
        """Prefix of the operations' names."""
        return self._name

    # -- what is asked of it ---------------------------------------------------------------------

    def forward(self, x: TensorLike, name: str = "forward") -> Tensor:
        """The image of `x`.

        Raises:
            TypeError: `x` has another dtype than the map.
            NotImplementedError: The map has no such direction.
        """
        with self._scope(name):
            x = self._tensor(x, "x")
            graph = get_default_graph()  # what a branch computes is not known outside of it
            if (x, graph) not in self._images:
                self._remember(x, self._forward(x), graph)
            return self._images[x, graph]

    def inverse(self, y: TensorLike, name: str = "inverse") -> Tensor:
        """What has the image `y`. Raises as `forward` does."""
        with self._scope(name):
            y = self._tensor(y, "y")
            if not self._is_injective:
                return self._inverse(y)
            graph = get_default_graph()
            if (y, graph) not in self._origins:
                self._remember(self._inverse(y), y, graph)
            return self._origins[y, graph]

    def forward_log_det_jacobian(
        self, x: TensorLike, event_ndims: TensorLike, name: str = "forward_log_det_jacobian"
    ) -> Tensor:
        """Logarithm of the absolute determinant of the Jacobian of `forward`, at `x`.

        Args:
            x: The values.
            event_ndims: How many of the last dimensions of `x` are one event: at least `forward_min_event_ndims`.
            name: Name of the operations.

        Returns:
            One number for each event, or a shape that broadcasts to that.

        Raises:
            ValueError: `event_ndims` is smaller.
            NotImplementedError: The map has no such direction, or several values have the same image.
        """
        if not self._is_injective:
            raise NotImplementedError("forward_log_det_jacobian cannot be implemented for non-injective transforms.")
        with self._scope(name):
            return self._log_det(self._tensor(x, "x"), event_ndims, self._forward_ndims, forward=True)

    def inverse_log_det_jacobian(
        self, y: TensorLike, event_ndims: TensorLike, name: str = "inverse_log_det_jacobian"
    ) -> Tensor:
        """Logarithm of the absolute determinant of the Jacobian of `inverse`, at `y`.

        Args:
            y: The values.
            event_ndims: How many of the last dimensions of `y` are one event: at least `inverse_min_event_ndims`.
            name: Name of the operations.

        Returns:
            As `forward_log_det_jacobian`.

        Raises:
            ValueError: `event_ndims` is smaller.
        """
        with self._scope(name):
            return self._log_det(self._tensor(y, "y"), event_ndims, self._inverse_ndims, forward=False)

    def forward_event_shape(self, input_shape: ShapeLike) -> TensorShape:
        """The static shape of the image of an event of a static shape."""
        return TensorShape(self._forward_event_shape(TensorShape(input_shape)))

    def inverse_event_shape(self, output_shape: ShapeLike) -> TensorShape:
        """The static shape of what has an image of a static shape."""
        return TensorShape(self._inverse_event_shape(TensorShape(output_shape)))

    def forward_event_shape_tensor(self, input_shape: TensorLike, name: str = "forward_event_shape_tensor") -> Tensor:
        """The shape of the image of an event of a shape, as an int32 vector."""
        with self._scope(name):
            return self._forward_event_shape_tensor(convert_to_tensor(input_shape, dtypes.int32))

    def inverse_event_shape_tensor(self, output_shape: TensorLike, name: str = "inverse_event_shape_tensor") -> Tensor:
        """The shape of what has an image of a shape, as an int32 vector."""
        with self._scope(name):
            return self._inverse_event_shape_tensor(convert_to_tensor(output_shape, dtypes.int32))

    # -- what a subclass knows -------------------------------------------------------------------

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"forward not implemented: {type(self).__name__}")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"inverse not implemented: {type(self).__name__}")

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"forward_log_det_jacobian not implemented: {type(self).__name__}")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"inverse_log_det_jacobian not implemented: {type(self).__name__}")

    def _forward_event_shape(self, input_shape: TensorShape) -> ShapeLike:
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> ShapeLike:
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape

    # -- both directions -------------------------------------------------------------------------

    def _remember(self, x: Tensor, y: Tensor, graph: Graph) -> None:
        self._images[x, graph], self._origins[y, graph] = y, x

    def _log_det(self, at: Tensor, event_ndims: TensorLike, fewest: int, forward: bool) -> Tensor:
        """The logarithm in one direction; that of the other one, negative, if this is known at the same point."""
        count = _scalar_ndims(event_ndims, self._validate_args)
        if isinstance(count, int) and count < fewest:
            raise ValueError(f"event_ndims ({count}) must be larger than min_event_ndims ({fewest})")
        graph = get_default_graph()
        if (at, graph, count, forward) not in self._log_dets:
            there = (self._images if forward else self._origins).get((at, graph)) if self._is_injective else None
            change = self._inverse_ndims - self._forward_ndims
            other = None
            if there is not None and isinstance(count, int):
                other = self._log_dets.get((there, graph, count + (change if forward else -change), not forward))
            found = self._computed_log_det(at, count, fewest, forward) if other is None else -other
            self._log_dets[at, graph, count, forward] = found
        return self._log_dets[at, graph, count, forward]

    def _computed_log_det(self, at: Tensor, count: int | Tensor, fewest: int, forward: bool) -> Tensor:
        """The logarithm in one direction, by its own formula, or else by that of the other."""
        own = self._forward_log_det_jacobian if forward else self._inverse_log_det_jacobian
        try:
            found = own(at)
            if not self._is_injective:
                return tuple(_over_event(at, each, fewest, count) for each in found)  # type: ignore[return-value]
            return _over_event(at, found, fewest, count)
        except NotImplementedError as error:
            missing = error
        other = self._inverse_log_det_jacobian if forward else self._forward_log_det_jacobian
        fewest_there = self._inverse_ndims if forward else self._forward_ndims
        try:
            there = self.forward(at) if forward else self.inverse(at)
            return -_over_event(there, other(there), fewest_there, count - fewest + fewest_there)
        except NotImplementedError:
            raise missing from None

    def _tensor(self, value: TensorLike, name: str) -> Tensor:
        tensor = convert_to_tensor(value, name=name, preferred_dtype=self._dtype)
        if self._dtype is not None and tensor.dtype.base_dtype is not self._dtype:
            raise TypeError(f"Input had dtype {tensor.dtype!r} but expected {self._dtype!r}.")
        return tensor

    @contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        graph = get_default_graph()
        with graph.name_scope(self._name), graph.name_scope(name):
            yield

    def __repr__(self) -> str:
        return f"<tfp.bijectors.{type(self).__name__} {self._name!r}>"


def _in_lower_case(name: str) -> str:
    parted = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name.lstrip("_"))
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", parted).lower()


def _scalar_ndims(event_ndims: TensorLike, check: bool) -> int | Tensor:
    """A number of dimensions; a tensor if it is not known before a step runs, which checks its rank if asked to.

    Raises:
        ValueError: It is no integer, or no scalar.
    """
    number = constant_value(event_ndims) if isinstance(event_ndims, Tensor) else np.asarray(event_ndims)
    given = event_ndims if number is None and isinstance(event_ndims, Tensor) else number
    if not (given.dtype.is_integer if isinstance(given, Tensor) else given is not None and given.dtype.kind in "iu"):
        raise ArgumentError(f"Expected integer dtype: event_ndims is {event_ndims!r}")
    if not isinstance(given, Tensor):
        if given is None or given.ndim:
            raise ArgumentError(f"Expected scalar event_ndims, not {event_ndims!r}")
        return int(given)
    if given.shape.rank not in (None, 0):
        raise ArgumentError(f"Expected scalar event_ndims, got shape {given.shape}")
    if check and given.shape.rank is None:
        with get_default_graph().control_dependencies([assert_rank(given, 0, message="Expected scalar.")]):
            given = array_ops.identity(given)
    return array_ops.cast(given, dtypes.int32)


def known_length(shape: Tensor) -> int | None:
    """How many sizes a shape has; None if that is not known before a step runs."""
    size: int | None = shape.shape.as_list()[0] if shape.shape.rank == 1 else None
    return size


def length_of(shape: Tensor) -> int | Tensor:
    """How many sizes a shape has, as a tensor if it is not known."""
    known = known_length(shape)
    return array_ops.size(shape) if known is None else known


def last_axes(count: int | Tensor) -> list[int] | Tensor:
    """The last dimensions of a tensor, so many of them."""
    return list(range(-count, 0)) if isinstance(count, int) else array_ops.range(-count, 0)


def _over_event(at: Tensor, log_det: Tensor, fewest: int, event_ndims: int | Tensor) -> Tensor:
    """What the determinants of the smallest events in an event come to together."""
    extra = event_ndims - fewest
    if isinstance(extra, int) and not extra:
        return log_det
    sizes, rank = array_ops.shape(at), array_ops.rank(at)
    spread = log_det * array_ops.ones(sizes[rank - event_ndims : rank - fewest], log_det.dtype)
    return math_ops.reduce_sum(spread, last_axes(extra))


def nothing_like(value: Tensor) -> Tensor:
    """Zero: the logarithm of the determinant where volumes are kept."""
    return convert_to_tensor(np.zeros([], value.dtype.as_numpy_dtype))


class Identity(Bijector):
    """The map that leaves everything as it is.

    Args:
        validate_args: Not used.
        name: See `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "identity") -> None:
        super().__init__(is_constant_jacobian=True, validate_args=validate_args, forward_min_event_ndims=0, name=name)

    def _forward(self, x: Tensor) -> Tensor:
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return nothing_like(x)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return nothing_like(y)


def _check_injective(bijector: Bijector, owner: str) -> None:
    if not bijector._is_injective:
        raise NotImplementedError(f"{owner} is not implemented for non-injective bijectors, and {bijector.name} is one")


class Invert(Bijector):
    """The inverse of a map.

    Args:
        bijector: The map.
        validate_args: Not used: `bijector` checks its own values.
        name: See `Bijector`; ``invert_`` and the name of `bijector` when None.

    Raises:
        NotImplementedError: Several values have the same image under `bijector`.
    """

    def __init__(self, bijector: Bijector, validate_args: bool = False, name: str | None = None) -> None:
        _check_injective(bijector, "Invert")
        self.bijector = bijector
        super().__init__(
            bijector.graph_parents,
            bijector.is_constant_jacobian,
            validate_args,
            bijector.dtype,
            bijector.inverse_min_event_ndims,
            bijector.forward_min_event_ndims,
            name or f"invert_{bijector.name}",
        )

    def _forward(self, x: Tensor) -> Tensor:
        return self.bijector.inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.bijector.forward(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self.bijector.inverse_log_det_jacobian(x, self.forward_min_event_ndims)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return self.bijector.forward_log_det_jacobian(y, self.inverse_min_event_ndims)

    def _forward_event_shape(self, input_shape: TensorShape) -> ShapeLike:
        return self.bijector.inverse_event_shape(input_shape)

    def _inverse_event_shape(self, output_shape: TensorShape) -> ShapeLike:
        return self.bijector.forward_event_shape(output_shape)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self.bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self.bijector.forward_event_shape_tensor(output_shape)


class Chain(Bijector):
    """Maps one after the other: the last of them comes first, as in ``f(g(x))``.

    Args:
        bijectors: The maps; none make the identity.
        validate_args: Not used: the maps check their own values.
        name: See `Bijector`; ``chain_of_`` and the names of the maps when None.

    Raises:
        ValueError: Maps are for different dtypes.
        NotImplementedError: One of the maps has several values with the same image.
    """

    def __init__(
        self, bijectors: Sequence[Bijector] | None = None, validate_args: bool = False, name: str | None = None
    ) -> None:
        self.bijectors = tuple(bijectors or ())
        for bijector in self.bijectors:
            _check_injective(bijector, "Chain")
        kinds = {bijector.dtype for bijector in self.bijectors if bijector.dtype is not None}
        if len(kinds) > 1:
            raise ValueError(f"incompatible dtypes: {sorted(kind.name for kind in kinds)}")
        super().__init__(
            [parent for bijector in self.bijectors for parent in bijector.graph_parents],
            all(bijector.is_constant_jacobian for bijector in self.bijectors),
            validate_args,
            next(iter(kinds), None),
            _fewest_of_chain(
                [(b.forward_min_event_ndims, b.inverse_min_event_ndims) for b in reversed(self.bijectors)]
            ),
            _fewest_of_chain([(b.inverse_min_event_ndims, b.forward_min_event_ndims) for b in self.bijectors]),
            name or ("_of_".join(["chain", *(b.name for b in self.bijectors)]) if self.bijectors else "identity"),
        )

    def _forward(self, x: Tensor) -> Tensor:
        for bijector in reversed(self.bijectors):
            x = bijector.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for bijector in self.bijectors:
            y = bijector.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        total, count = nothing_like(x), self.forward_min_event_ndims
        for bijector in reversed(self.bijectors):
            total = total + bijector.forward_log_det_jacobian(x, count)
            count += bijector.inverse_min_event_ndims - bijector.forward_min_event_ndims
            x = bijector.forward(x)
        return total

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        total, count = nothing_like(y), self.inverse_min_event_ndims
        for bijector in self.bijectors:
            total = total + bijector.inverse_log_det_jacobian(y, count)
            count += bijector.forward_min_event_ndims - bijector.inverse_min_event_ndims
            y = bijector.inverse(y)
        return total

    def _forward_event_shape(self, input_shape: TensorShape) -> ShapeLike:
        for bijector in reversed(self.bijectors):
            input_shape = bijector.forward_event_shape(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> ShapeLike:
        for bijector in self.bijectors:
            output_shape = bijector.inverse_event_shape(output_shape)
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        for bijector in reversed(self.bijectors):
            input_shape = bijector.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        for bijector in self.bijectors:
            output_shape = bijector.inverse_event_shape_tensor(output_shape)
        return output_shape


def _fewest_of_chain(steps: Sequence[tuple[int, int]]) -> int:
    """How many dimensions go in at least where each step takes some number of the last ones, and gives another."""
    taken = there = 0
    for before, after in steps:
        taken += max(0, before - there)
        there = max(before, there) - before + after
    return taken


class Inline(Bijector):
    """A map by functions.

    Args:
        forward_fn: The image of a tensor; or None, as for all functions.
        inverse_fn: What has an image.
        inverse_log_det_jacobian_fn: Logarithm of the determinant of the Jacobian of the inverse.
        forward_log_det_jacobian_fn: Likewise of `forward_fn`.
        forward_event_shape_fn: The static shape of an image; that of its origin when None.
        forward_event_shape_tensor_fn: The shape of an image as a tensor.
        inverse_event_shape_fn: The static shape of what has an image.
        inverse_event_shape_tensor_fn: Likewise as a tensor.
        is_constant_jacobian: See `Bijector`.
        validate_args: See `Bijector`.
        forward_min_event_ndims: See `Bijector`.
        inverse_min_event_ndims: See `Bijector`.
        name: See `Bijector`.
    """

    def __init__(
        self,
        forward_fn: Callable[[Tensor], Tensor] | None = None,
        inverse_fn: Callable[[Tensor], Tensor] | None = None,
        inverse_log_det_jacobian_fn: Callable[[Tensor], Tensor] | None = None,
        forward_log_det_jacobian_fn: Callable[[Tensor], Tensor] | None = None,
        forward_event_shape_fn: Callable[[TensorShape], ShapeLike] | None = None,
        forward_event_shape_tensor_fn: Callable[[Tensor], Tensor] | None = None,
        inverse_event_shape_fn: Callable[[TensorShape], ShapeLike] | None = None,
        inverse_event_shape_tensor_fn: Callable[[Tensor], Tensor] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
    ) -> None:
        super().__init__(
            None,
            is_constant_jacobian,
            validate_args,
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            name=name,
        )
        given = {
            "_forward": forward_fn,
            "_inverse": inverse_fn,
            "_inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "_forward_log_det_jacobian": forward_log_det_jacobian_fn,
            "_forward_event_shape": forward_event_shape_fn,
            "_forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "_inverse_event_shape": inverse_event_shape_fn,
            "_inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }
        for method, function in given.items():
            if function is not None:
                setattr(self, method, function)
