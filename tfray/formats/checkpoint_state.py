"""The file ``checkpoint`` of a folder, which names its checkpoints, in the text form of protocol buffers."""

from __future__ import annotations

from typing import Final

from tfray.formats.message import Enumeration, Field, Message, message_of_text


class CheckpointState(Message):
    """The checkpoints of a folder: ``model_checkpoint_path`` is the newest, ``all_model_checkpoint_paths`` are all."""

    FIELDS = (
        Field(1, "model_checkpoint_path", "string"),
        Field(2, "all_model_checkpoint_paths", "string", repeated=True),
        Field(3, "all_model_checkpoint_timestamps", "double", repeated=True),
        Field(4, "last_preserved_timestamp", "double"),
    )


def read_checkpoint_state(text: str) -> CheckpointState:
    """What the file says, in the text of a message (``str(state)``). Raises `DataLossError` for other text."""
    state: CheckpointState = message_of_text(CheckpointState, text)
    return state


_VERSIONS: Final = Enumeration(__name__, "CheckpointFormatVersion", {"LEGACY": 0, "V1": 1, "V2": 2})


class SaverDef(Message):
    """How a `Saver` is found in its graph: the names of its operations, and its settings."""

    FIELDS = (
        Field(1, "filename_tensor_name", "string"),
        Field(2, "save_tensor_name", "string"),
        Field(3, "restore_op_name", "string"),
        Field(4, "max_to_keep", "int32"),
        Field(5, "sharded", "bool"),
        Field(6, "keep_checkpoint_every_n_hours", "float"),
        Field(7, "version", _VERSIONS),
    )

    LEGACY = 0
    V1 = 1
    V2 = 2
