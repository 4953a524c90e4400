"""`tf.contrib.tensorboard.plugins.projector`: says which variables TensorBoard's projector draws as points."""

from __future__ import annotations

import os
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.formats import files
from tfray.formats.message import Field, Message

PROJECTOR_FILENAME: Final = "projector_config.pbtxt"

__all__ = ["PROJECTOR_FILENAME", "EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]


class SpriteMetadata(Message):
    """One image with the pictures of all points: ``image_path``, and ``single_image_dim``, width and height of each."""

    FIELDS = (Field(1, "image_path", "string"), Field(2, "single_image_dim", "int32", repeated=True))


class EmbeddingInfo(Message):
    """A variable whose rows are points: ``tensor_name``, and in ``metadata_path`` the file with their labels."""

    FIELDS = (
        Field(1, "tensor_name", "string"),
        Field(2, "metadata_path", "string"),
        Field(3, "bookmarks_path", "string"),
        Field(4, "tensor_shape", "int32", repeated=True),
        Field(5, "sprite", SpriteMetadata),
        Field(6, "tensor_path", "string"),
    )


class ProjectorConfig(Message):
    """What the projector shows: ``embeddings``, with the values of ``model_checkpoint_path`` or the newest ones."""

    FIELDS = (
        Field(1, "model_checkpoint_path", "string"),
        Field(2, "embeddings", EmbeddingInfo, repeated=True),
        Field(3, "model_checkpoint_dir", "string"),
    )


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Write a configuration beside the events of a writer, where TensorBoard looks for it.

    Args:
        summary_writer: A `tf.summary.FileWriter`, or another object with ``get_logdir()``.
        config: What to show.

    Raises:
        InvalidArgumentError: The writer has no folder.
    """
    from google.protobuf import text_format

    folder = summary_writer.get_logdir()
    if not folder:
        raise InvalidArgumentError("the summary_writer of visualize_embeddings has no folder")
    text = text_format.MessageToString(config)
    files.write_bytes(os.path.join(os.fspath(folder), PROJECTOR_FILENAME), text.encode())
