"""``tf.summary``, with what of it writes event files in the steps themselves, as ``tf.contrib.summary`` does."""

from tfray.library.namespaces.summary import *  # noqa: F403  (all of them)
from tfray.library.namespaces.summary import __all__ as _names
from tfray.training.sessions.step_summaries import all_summary_ops as all_v2_summary_ops
from tfray.training.sessions.step_summaries import initialize

__all__ = [*_names, "all_v2_summary_ops", "initialize"]
