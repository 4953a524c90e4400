"""Exporters: what `tf.estimator.train_and_evaluate` writes for serving after evaluations, and when."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tfray.errors import NotFoundError
from tfray.formats import files
from tfray.formats.events import summary_iterator
from tfray.framework.arguments import checked
from tfray.framework.graph_keys import GraphKeys
from tfray.library.platform import logging

if TYPE_CHECKING:
    from tfray.estimator.estimator import Estimator

LOSS: Final = "loss"
_VERSION: Final = re.compile(r"\d{10}")
"""Names of exported folders: the time in seconds."""


class Exporter(ABC):
    """Base of exporters."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name, the folder in ``export`` in the model's folder."""

    @abstractmethod
    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Export the model, or not.

        Args:
            estimator: The estimator.
            export_path: Folder in which a new one is made.
            checkpoint_path: The checkpoint.
            eval_result: What its evaluation gave.
            is_the_final_export: Whether training has ended.

        Returns:
            Path of the new folder, or None.
        """


class _SavedModelExporter(Exporter):
    """What the exporters of this module share.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: As of `Estimator.export_saved_model`.
        assets_extra: As there.
        as_text: As there.
        exports_to_keep: How many of the newest folders to keep; None for all.

    Raises:
        ValueError: `exports_to_keep` is not positive.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None,
        as_text: bool,
        exports_to_keep: int | None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(f"exports_to_keep is {exports_to_keep}, expected more than 0, or None")
        self._name = name
        self._receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._to_keep = exports_to_keep

    @property
    def name(self) -> str:
        """Name, the folder in ``export`` in the model's folder."""
        return self._name

    def _is_due(self, estimator: Estimator, eval_result: Mapping[str, Any], is_the_final_export: bool) -> bool:
        """Whether to export the model after this evaluation. By default it always is."""
        return True

    def export(
        self,
        estimator: Estimator,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        """Export the model where that is due, and delete the oldest folders. See `Exporter.export`."""
        if not self._is_due(estimator, eval_result, is_the_final_export):
            return None
        made = estimator.export_saved_model(
            export_path, self._receiver_fn, self._assets_extra, self._as_text, checkpoint_path
        )
        if self._to_keep is not None:
            versions = sorted(name for name in files.list_folder(export_path) if _VERSION.fullmatch(name))
            for name in versions[: -self._to_keep]:
                try:
                    files.remove_tree(f"{export_path.rstrip('/')}/{name}")
                except NotFoundError as error:
                    logging.warning("an old export could not be deleted: %s", error)
        return made


class FinalExporter(_SavedModelExporter):
    """Exports once, when training has ended.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: As of `Estimator.export_saved_model`.
        assets_extra: As there.
        as_text: As there.
    """

    @checked
    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, None)

    def _is_due(self, estimator: Estimator, eval_result: Mapping[str, Any], is_the_final_export: bool) -> bool:
        return is_the_final_export


class LatestExporter(_SavedModelExporter):
    """Exports after each evaluation, and keeps the newest.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: As of `Estimator.export_saved_model`.
        assets_extra: As there.
        as_text: As there.
        exports_to_keep: How many of the newest to keep; None for all.

    Raises:
        ValueError: `exports_to_keep` is not positive.
    """

    @checked
    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)


def loss_smaller(best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]) -> bool:
    """Whether an evaluation has a smaller loss than the best.

    Raises:
        ValueError: One has no loss.
    """
    for name, result in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not result or LOSS not in result:
            raise ValueError(f"{name} has no {LOSS!r}: {result}")
    return bool(best_eval_result[LOSS] > current_eval_result[LOSS])


class BestExporter(_SavedModelExporter):
    """Exports after an evaluation that is better than all before.

    What was best before this process began is read from event files. TensorFlow counts the evaluation at hand among
    those, and so does not export the very first; here it is exported.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: As of `Estimator.export_saved_model`.
        event_file_pattern: Event files of earlier evaluations, in the model's folder; None to forget those.
        compare_fn: Function of `best_eval_result` and `current_eval_result`: whether the current one is better.
        assets_extra: As of `Estimator.export_saved_model`.
        as_text: As there.
        exports_to_keep: How many of the newest to keep; None for all.

    Raises:
        ValueError: `compare_fn` takes other arguments, or `exports_to_keep` is not positive.
    """

    @checked
    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = loss_smaller,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        if compare_fn is None:
            raise ValueError("BestExporter: compare_fn is None, expected a function")
        try:
            names = set(inspect.signature(compare_fn).parameters)
        except ValueError:  # a builtin that does not tell
            names = set()
        if names != {"best_eval_result", "current_eval_result"}:
            raise ValueError(f"compare_fn takes {sorted(names)}, expected best_eval_result and current_eval_result")
        self._compare_fn = compare_fn
        self._pattern = event_file_pattern
        self._model_dir: str | None = None
        self._best: Mapping[str, Any] | None = None

    def _is_due(self, estimator: Estimator, eval_result: Mapping[str, Any], is_the_final_export: bool) -> bool:
        if self._pattern and self._model_dir != estimator.model_dir:
            self._model_dir = estimator.model_dir
            self._best = self._best_before(int(eval_result[GraphKeys.GLOBAL_STEP]))
        best = self._best
        if best is not None and not self._compare_fn(best_eval_result=best, current_eval_result=eval_result):
            return False
        self._best = eval_result
        return True

    def _best_before(self, step: int) -> Mapping[str, Any] | None:
        """The best of the evaluations in the event files, that of `step` left out."""
        best: dict[str, Any] | None = None
        for path in files.glob(f"{self._model_dir}/{self._pattern}"):
            for event in summary_iterator(path):
                if event.step == step or not event.HasField("summary"):
                    continue
                found = {
                    value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")
                }
                if found and (best is None or self._compare_fn(best_eval_result=best, current_eval_result=found)):
                    best = found
        return best
