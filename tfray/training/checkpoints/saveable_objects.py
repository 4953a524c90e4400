"""State that a program says itself how to save and restore: TensorFlow 1's ``BaseSaverBuilder.SaveableObject``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Operation, Tensor
from tfray.framework.type_aliases import TensorLike
from tfray.ops.system.checkpoint_ops import Part
from tfray.ops.system.tensor_files_ops import part_of


class SaveSpec:
    """One tensor of what a `SaveableObject` saves.

    Args:
        tensor: What is saved, any shape and dtype, or a function without arguments that makes it.
        slice_spec: Empty for a whole tensor, or which part of one it is, such as ``"8 3 0,4:-"``.
        name: Its name in checkpoints.
        dtype: Its dtype; that of the tensor when None. It must be given with a function.
        device: Its device; that of the tensor when None.

    Raises:
        InvalidArgumentError: ``slice_spec`` is no part.
        ValueError: A function is given without a dtype.
    """

    def __init__(
        self,
        tensor: TensorLike | Callable[[], Tensor],
        slice_spec: str,
        name: str,
        dtype: DType | None = None,
        device: str | None = None,
    ) -> None:
        if not callable(tensor):
            tensor = convert_to_tensor(tensor)
        elif dtype is None:
            raise ValueError("SaveSpec: a function that makes the tensor needs dtype beside it")
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = tensor.dtype if isinstance(tensor, Tensor) else dtype
        self.device = tensor.device if device is None and isinstance(tensor, Tensor) else device
        self.part: Part = None
        self._part_sizes: Sequence[int] | None = None
        if slice_spec:
            whole, offset, self._part_sizes = part_of(slice_spec)
            self.part = whole, offset

    @property
    def tensor(self) -> Tensor:
        """What is saved."""
        return self._tensor if isinstance(self._tensor, Tensor) else self._tensor()

    def saved_shape(self, tensor: Tensor) -> Sequence[int] | None:
        """The static shape of what a checkpoint has: that of the part; None of a whole, which may get another one.

        Args:
            tensor: What is saved.

        Raises:
            InvalidArgumentError: The tensor is not of the part's shape.
        """
        sizes = self._part_sizes
        if sizes is not None and not tensor.shape.is_compatible_with(sizes):
            raise InvalidArgumentError(
                f"SaveSpec {self.name!r}: {self.slice_spec!r} is {sizes}, and the tensor {tensor.shape}"
            )
        return sizes


class SaveableObject:
    """State that is saved as tensors and restored from them by `restore`, which a subclass defines.

    It stands in the ``var_list`` of a `Saver`, or in the collection ``GraphKeys.SAVEABLE_OBJECTS``.

    Args:
        op: What the state is, for `restore`: a variable, an operation, or any other object.
        specs: The tensors that are saved.
        name: Name of the whole.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def optional_restore(self) -> bool:
        """Whether a checkpoint may lack it: not here."""
        return False

    @property
    def device(self) -> str | None:
        """The device of its first tensor."""
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Operation | Tensor:
        """Make the operation that restores the state.

        Args:
            restored_tensors: What the checkpoint has, in the order of the specs.
            restored_shapes: For a `Saver` with ``reshape``, the shapes that the state has now; None for others.

        Returns:
            The operation, or a tensor of it.

        Raises:
            ValueError: The subclass does not define it.
        """
        del restored_tensors, restored_shapes
        raise ValueError("Calling an abstract method.")


class BaseSaverBuilder:
    """Holds the classes by TensorFlow 1's names. A `Saver` makes its operations itself."""

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject
