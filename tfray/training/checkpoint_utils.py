"""Looking into checkpoints, and starting variables from them."""

from __future__ import annotations

from typing import Any

from tfray.errors import NotFoundError
from tfray.formats import files
from tfray.formats.checkpoint import CheckpointFiles
from tfray.formats.files import PathLike, as_path
from tfray.formats.open_checkpoint import open_checkpoint
from tfray.framework.dtypes import DType
from tfray.training.checkpoint_management import latest_checkpoint


class CheckpointReader:
    """Tensors of a checkpoint by name. Nothing is read before it is asked for.

    Args:
        filepattern: Path of a checkpoint of tfray or TensorFlow, or of a ``.safetensors`` file.

    Raises:
        NotFoundError: There is none.
        DataLossError: It is damaged.
    """

    def __init__(self, filepattern: PathLike) -> None:
        self._checkpoint: CheckpointFiles = open_checkpoint(as_path(filepattern))

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of that name."""
        return tensor_str in self._checkpoint.tensors

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of a tensor: an array, read-only where it is a view of the file.

        Raises:
            NotFoundError: There is no such tensor.
            DataLossError: Its file is damaged.
        """
        return self._checkpoint.read(tensor_str)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of every tensor."""
        return {name: list(entry.shape) for name, entry in self._checkpoint.tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of every tensor."""
        return {name: entry.dtype for name, entry in self._checkpoint.tensors.items()}

    def debug_string(self) -> bytes:
        """A line for every tensor."""
        lines = [f"{e.name} ({e.dtype.name}) {list(e.shape)}" for e in self._checkpoint.tensors.values()]
        return "\n".join(lines).encode()


NewCheckpointReader = CheckpointReader


def load_checkpoint(ckpt_dir_or_file: PathLike) -> CheckpointReader:
    """A reader of a checkpoint.

    Args:
        ckpt_dir_or_file: Path of a checkpoint, or a folder: its newest checkpoint.

    Raises:
        NotFoundError: There is none.
    """
    return CheckpointReader(checkpoint_path(ckpt_dir_or_file))


def checkpoint_path(ckpt_dir_or_file: PathLike) -> str:
    """The path of a checkpoint, given that or its folder. Raises `NotFoundError` when the folder has none."""
    path = as_path(ckpt_dir_or_file)
    if not files.is_folder(path):
        return path
    found = latest_checkpoint(path)
    if found is None:
        raise NotFoundError(f"there is no checkpoint in {path}")
    return found


def load_variable(ckpt_dir_or_file: PathLike, name: str) -> Any:
    """The value of one tensor of a checkpoint, or of the newest one of a folder.

    Args:
        ckpt_dir_or_file: As for `load_checkpoint`.
        name: Name of the tensor; ``:0`` at its end is left out.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: PathLike) -> list[tuple[str, list[int]]]:
    """Name and shape of every tensor of a checkpoint, sorted by name; argument as of `load_checkpoint`."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
