"""The file ``checkpoint`` of a folder, which names its checkpoints, in the text form of protocol buffers."""

from __future__ import annotations

import re
from typing import Final

from tfray.errors import DataLossError
from tfray.formats.message import Field, Message

_LINE: Final = re.compile(r'\s*(\w+)\s*:\s*(?:"((?:[^"\\]|\\.)*)"|(\S+))\s*')
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
_NAMED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class CheckpointState(Message):
    """The checkpoints of a folder: ``model_checkpoint_path`` is the newest, ``all_model_checkpoint_paths`` are all."""

    FIELDS = (
        Field(1, "model_checkpoint_path", "string"),
        Field(2, "all_model_checkpoint_paths", "string", repeated=True),
        Field(3, "all_model_checkpoint_timestamps", "double", repeated=True),
        Field(4, "last_preserved_timestamp", "double"),
    )

    def to_text(self) -> str:
        """The contents of the file."""
        return repr(self)

    @classmethod
    def from_text(cls, text: str) -> CheckpointState:
        """What `to_text` gave, or TensorFlow wrote. Raises `DataLossError` for anything else."""
        state = cls()
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _LINE.fullmatch(line)
            field = next((field for field in cls.FIELDS if match and field.name == match[1]), None)
            try:
                if match is None or field is None or (field.kind == "string") != (match[2] is not None):
                    raise ValueError(f"{line[:80]!r} is no field of it")
                value = _unescaped(match[2]) if field.kind == "string" else float(match[3])
            except ValueError as error:
                raise DataLossError(f"line {number} of the checkpoint state cannot be read: {error}") from error
            if field.repeated:
                getattr(state, field.name).append(value)
            else:
                setattr(state, field.name, value)
        return state


def _unescaped(text: str) -> str:
    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1] == b"x" and len(code) > 1:
            return bytes([int(code[1:], 16)])
        return bytes([int(code, 8) & 255]) if code.isdigit() else _NAMED.get(code, code)

    return _ESCAPE.sub(replace, text.encode()).decode()


class SaverDef(Message):
    """How a `Saver` is found in its graph: the names of its operations, and its settings."""

    FIELDS = (
        Field(1, "filename_tensor_name", "string"),
        Field(2, "save_tensor_name", "string"),
        Field(3, "restore_op_name", "string"),
        Field(4, "max_to_keep", "int32"),
        Field(5, "sharded", "bool"),
        Field(6, "keep_checkpoint_every_n_hours", "float"),
        Field(7, "version", "enum"),
    )

    LEGACY = 0
    V1 = 1
    V2 = 2
