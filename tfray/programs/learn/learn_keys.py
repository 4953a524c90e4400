"""Names that ``tf.contrib.learn`` has for modes, predictions, metrics and kinds of problems."""

from __future__ import annotations

from typing import Final

__all__ = ["MetricKey", "ModeKeys", "PredictionKey", "ProblemType"]


class ModeKeys:
    """What a model function builds its graph for."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    INFER: Final = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise `ValueError` if `key` is none of the modes."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class PredictionKey:
    """What predictions are called."""

    CLASSES: Final = "classes"
    GENERIC: Final = "output"
    LOGISTIC: Final = "logistic"
    LOGITS: Final = "logits"
    PROBABILITIES: Final = "probabilities"
    SCORES: Final = "scores"
    TOP_K: Final = "top_k"


class MetricKey:
    """What metrics are called."""

    LOSS: Final = "loss"
    AUC: Final = "auc"
    AUC_PR: Final = "auc_precision_recall"
    CLASS_AUC: Final = "auc/class%d"
    CLASS_AUC_PR: Final = "auc_precision_recall/class%d"
    PREDICTION_MEAN: Final = "labels/prediction_mean"
    CLASS_PREDICTION_MEAN: Final = "labels/prediction_mean/class%d"
    CLASS_LOGITS_MEAN: Final = "labels/logits_mean/class%d"
    CLASS_PROBABILITY_MEAN: Final = "labels/probability_mean/class%d"
    LABEL_MEAN: Final = "labels/actual_label_mean"
    CLASS_LABEL_MEAN: Final = "labels/actual_label_mean/class%d"
    ACCURACY: Final = "accuracy"
    ACCURACY_BASELINE: Final = "accuracy/baseline_label_mean"
    ACCURACY_MEAN: Final = "accuracy/threshold_%f_mean"
    PRECISION_MEAN: Final = "precision/positive_threshold_%f_mean"
    RECALL_MEAN: Final = "recall/positive_threshold_%f_mean"


class ProblemType:
    """What a model is to find."""

    UNSPECIFIED: Final = 0
    CLASSIFICATION: Final = 1
    LINEAR_REGRESSION: Final = 2
    LOGISTIC_REGRESSION: Final = 3
