"""``tf.contrib.hooks``: `tf.train.ProfilerHook` under its older name."""

from tfray.training.sessions.hooks_saving import ProfilerHook

__all__ = ["ProfilerHook"]
