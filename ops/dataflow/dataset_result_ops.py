"""What a step learns of a whole dataset: its only element, the number of its elements, a file of its records."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.formats.tfrecord import TFRecordOptions, TFRecordWriter
from tfray.framework.op_def import (
    Array,
    KernelContext,
    OpDef,
    Reach,
    not_differentiable,
    on_cpu,
    register,
)
from tfray.framework.shape_functions import no_outputs, scalar
from tfray.ops.kernels.text import as_string
from tfray.ops.resources.dataset_cardinality import cardinality
from tfray.ops.resources.dataset_values import DatasetValue, walked


def _single_kernel(ctx: KernelContext, dataset: DatasetValue) -> list[Any]:
    with walked(dataset, ctx) as elements:
        found = next(elements, None)
        if found is None:
            raise InvalidArgumentError("Dataset was empty. Expected one element.")
        if next(elements, None) is not None:
            raise InvalidArgumentError("Dataset had more than one element.")
    return list(found)


SINGLE_ELEMENT: Final = register(
    OpDef(
        name="DatasetToSingleElement",
        inputs=("dataset: variant",),
        outputs=("components: output_types*",),
        attrs=("output_types", "output_shapes"),
        shape=lambda op: list(op.attrs["output_shapes"]),
        kernels=on_cpu(_single_kernel),
        gradient=not_differentiable,
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
    )
)
"""The element of a dataset that has one."""

CARDINALITY: Final = register(
    OpDef(
        name="DatasetCardinality",
        inputs=("dataset: variant",),
        outputs=("cardinality: int64",),
        shape=scalar,
        kernels=on_cpu(lambda ctx, dataset: np.int64(cardinality(dataset))),
        gradient=not_differentiable,
        stateful=True,
        keeps_inputs=True,
    )
)
"""The number of elements; -1 without end, -2 when it is not known."""


def _write_kernel(ctx: KernelContext, filename: Array, compression: Array, dataset: DatasetValue) -> None:
    options = TFRecordOptions(as_string(compression).decode() or None)
    path = as_string(filename).decode()
    with TFRecordWriter(path, options) as writer, walked(dataset, ctx) as elements:
        for element in elements:
            writer.write(np.asarray(element[0], object).item())


WRITE_RECORDS: Final = register(
    OpDef(
        name="DatasetToTFRecord",
        inputs=("filename: string", "compression: string", "dataset: variant"),
        outputs=(),
        shape=no_outputs,
        kernels=on_cpu(_write_kernel),
        gradient=not_differentiable,
        stateful=True,
        uses_step=True,
        keeps_inputs=True,
        reach=Reach("files", path=0),
    )
)
"""Write the elements, string scalars, into a file."""
