"""A model that counts its steps, and what hooks and savers make of them."""

from __future__ import annotations

import os

import tfray as tf


def counting_model():
    """A global step, and the operation that increases it."""
    step = tf.train.get_or_create_global_step()
    return step, step.assign_add(1, name="count")


class Recorder(tf.train.SessionRunHook):
    """Notes what is called."""

    def __init__(self, fetches=None, feeds=None, options=None):
        self.calls = []
        self.values = []
        self.args = None if fetches is feeds is options is None else tf.train.SessionRunArgs(fetches, feeds, options)

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        assert isinstance(coord, tf.train.Coordinator)
        self.calls.append("after_create_session")

    def before_run(self, run_context):
        self.calls.append("before_run")
        self.original = run_context.original_args
        return self.args

    def after_run(self, run_context, run_values):
        self.calls.append("after_run")
        self.values.append(run_values)

    def end(self, session):
        self.calls.append("end")


def saved_steps(folder):
    found = [name for name in os.listdir(folder) if name.endswith(".index")]
    return sorted(int(name.removesuffix(".index").rpartition("-")[2]) for name in found)
