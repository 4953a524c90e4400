"""`RecordInput`: shuffled records of files, without end."""

from __future__ import annotations

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import string
from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.input.dataset_files import TFRecordDataset
from tfray.library.input.datasets import Dataset
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import cond
from tfray.ops.system.io_ops import matching_files


class RecordInput:
    """Shuffled records of TFRecord files, again and again. Each of an epoch comes before the next epoch begins.

    Args:
        file_pattern: Which files, a pattern with wildcards.
        batch_size: How many records there are at a time.
        buffer_size: Among how many records the next one is chosen.
        parallelism: From how many files records are read in turns.
        shift_ratio: Accepted for TensorFlow 1's sake: every epoch is shuffled anew.
        seed: Seed of the choice; 0 for any.
        name: Name of the operations; ``RecordInput`` when None.
        batches: Give so many batches at a time, as lists of records; one, as a vector, when None.
        compression_type: ``GZIP``, ``ZLIB`` or a `TFRecordCompressionType`; none when None.

    Raises:
        InvalidArgumentError: A size is not positive.
    """

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: str | int | None = None,
    ) -> None:
        if min(batch_size, buffer_size, parallelism, 1 if batches is None else batches) < 1:
            raise InvalidArgumentError("RecordInput: batch_size, buffer_size, parallelism and batches must be positive")
        self._file_pattern = file_pattern
        self._count = batch_size * (batches or 1)
        self._buffer_size, self._parallelism, self._seed = buffer_size, parallelism, seed
        self._name, self._batches = name or "RecordInput", batches
        kinds = {0: "", 1: "ZLIB", 2: "GZIP"}
        self._compression = kinds[compression_type] if isinstance(compression_type, int) else compression_type or ""

    def get_yield_op(self) -> Tensor | list[list[Tensor]]:
        """The next records: a string vector, or with `batches` a list of so many lists of scalars.

        Raises:
            NotFoundError: While running: no file matches the pattern.
        """
        with get_default_graph().name_scope(self._name):
            records = self._dataset().make_one_shot_iterator().get_next()
            if self._batches is None:
                return array_ops.identity(records)
            single = array_ops.unstack(records, self._count)
            return [single[first :: self._batches] for first in range(self._batches)]

    def _dataset(self) -> Dataset:
        def matching(pattern: Tensor) -> Tensor:
            found = matching_files(pattern)
            # Where nothing matches, that there is no file of the name is told when it is opened.
            return cond(array_ops.size(found) > 0, lambda: found, lambda: array_ops.reshape(pattern, [1]))

        names = Dataset.from_tensors(convert_to_tensor(self._file_pattern, string)).map(matching)
        files = names.flat_map(Dataset.from_tensor_slices).shuffle(1 << 16, self._seed or None)
        records = files.interleave(
            lambda name: TFRecordDataset(name, self._compression), cycle_length=self._parallelism
        )
        return records.shuffle(self._buffer_size, self._seed or None).repeat().batch(self._count, drop_remainder=True)
