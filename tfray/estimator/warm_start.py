"""What an estimator's argument `warm_start_from` means: from which checkpoint variables begin, and which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tfray.formats import files
from tfray.formats.files import PathLike, as_path, given_path
from tfray.library.platform import logging
from tfray.training.checkpoints import warm_start as checkpoints_warm_start
from tfray.training.checkpoints.warm_start import VocabInfo

_VALUES: Final = "variables/variables"
"""The checkpoint in the folder of a saved model."""


class WarmStartSettings(NamedTuple):
    """From what variables begin, and which. See `tf.train.warm_start`.

    Attributes:
        ckpt_to_initialize_from: A checkpoint, a folder of checkpoints (the newest is taken), or a saved model.
        vars_to_warm_start: A regular expression for names of trainable variables; ``".*"`` for all of them; a list of
            regular expressions for names of any variables, or of variables; None for those with vocabularies.
        var_name_to_vocab_info: The vocabularies of variables by name.
        var_name_to_prev_var_name: Names in the checkpoint of variables by name, where they differ.
    """

    ckpt_to_initialize_from: PathLike
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None


def settings_of(warm_start_from: Any) -> WarmStartSettings | None:
    """The settings that an estimator's argument `warm_start_from` stands for.

    Raises:
        ValueError: It is neither a path nor `WarmStartSettings`.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    return WarmStartSettings(given_path(warm_start_from, "warm_start_from"))


def warm_start(settings: WarmStartSettings) -> None:
    """Let the initializers of the current graph's variables take values from a checkpoint."""
    path = as_path(settings.ckpt_to_initialize_from).rstrip("/")
    if files.is_folder(f"{path}/{_VALUES.partition('/')[0]}"):
        path = f"{path}/{_VALUES}"
    checkpoints_warm_start.warm_start(path, *settings[1:])
    logging.info("variables begin with values of %s", path)
