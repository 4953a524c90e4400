"""Functions of the elements of datasets, as regions of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.errors import ArgumentError, InvalidArgumentError
from tfray.framework import nest
from tfray.framework.dtypes import DType
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.op_def import OpDef
from tfray.framework.region import Region
from tfray.framework.tensor_shape import TensorShape
from tfray.library.input.dataset_structure import as_element, carrier_of, carriers_of, kind_of, shape_of, unwrapped
from tfray.library.input.function_effects import with_effects
from tfray.ops.dataflow import dataset_ops


class TracedFunction:
    """A function of elements as a region.

    Args:
        function: Function of an element, its components as arguments when it is a tuple.
        dataset: The `tf.data.Dataset` whose elements it takes.
        what: What it is given to, for errors.

    Attributes:
        returned: What the function returned.
        kinds: Kinds of the results, in the structure of `returned`.
        shapes: Static shapes.

    Raises:
        ArgumentError: It is no function, or returns what is no element.
    """

    def __init__(self, function: Callable[..., Any], dataset: Any, what: str = "a dataset") -> None:
        if not callable(function):
            raise ArgumentError(f"{function!r} is not a function")
        graph = get_default_graph()
        self.region = Region(graph, runs_often=True)
        with graph.name_scope(getattr(function, "__name__", "function").strip("<>_") or "function") as scope:
            pass
        with self.region.as_default(), self.region.name_scope(scope):
            carriers = carriers_of(dataset._kinds, dataset.output_shapes)
            parameters = [self.region.add_input(dtype, shape, "component") for dtype, shape in carriers]
            element = unwrapped(dataset._kinds, dataset.output_shapes, parameters)
            returned = function(*element) if type(element) is tuple else function(element)
            # The results of an operation, in a list, are several components, as in TensorFlow.
            self._set_returned(tuple(returned) if isinstance(returned, list) else returned, what)
        self._parameters = len(parameters)

    def _set_returned(self, returned: Any, what: str) -> None:
        try:
            self.returned = as_element(returned)
        except InvalidArgumentError as error:
            raise ArgumentError(
                f"Unsupported return value from function passed to {what}: {returned!r}. {error.message}"
            ) from error
        leaves = nest.flatten(self.returned)
        self.kinds = nest.map_structure(kind_of, self.returned)
        self.shapes = nest.map_structure(shape_of, self.returned)
        self.region.outputs = with_effects(self.region, [self.region.own(carrier_of(leaf)) for leaf in leaves])

    def add_reduction(
        self, parent: Any, initial: Sequence[Tensor], carriers: Sequence[tuple[DType, TensorShape]]
    ) -> list[Tensor]:
        """The results of applying the function to a state and every element of `parent`."""
        graph = get_default_graph()
        attrs = {
            "function": self.region,
            "parameters": self._parameters,
            "states": len(initial),
            "output_types": [dtype for dtype, _ in carriers],
            "output_shapes": [shape for _, shape in carriers],
        }
        inputs = [graph.own(parent._variant_tensor), *initial, *self.region.captures]
        controls = list(self.region.outer_controls)
        return list(graph.add_operation(dataset_ops.REDUCE.name, inputs, attrs, control_inputs=controls).outputs)

    def add(self, definition: OpDef, parent: Any, initial: Sequence[Tensor] = (), **attrs: Any) -> Tensor:
        """The dataset that `definition` makes of the elements of `parent`, and of a state, with the function."""
        attrs = {**attrs, "function": self.region, "parameters": self._parameters}
        controls = list(self.region.outer_controls)
        graph = get_default_graph()
        inputs = [graph.own(parent._variant_tensor), *map(graph.own, initial), *self.region.captures]
        return graph.add_operation(definition.name, inputs, attrs, control_inputs=controls).outputs[0]
