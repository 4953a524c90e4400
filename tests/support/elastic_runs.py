"""Runs whose number of workers changes at stages that a test sets."""

from __future__ import annotations

import time


def paced(input_fn, barrier, steps=float("inf"), late_s=0.5):
    """Batches take their time until the test has seen enough; most of it towards the end, when workers come late."""

    def input_of(context):
        for number, batch in enumerate(input_fn(context), context.first_step):
            if not barrier.reached("fast"):
                time.sleep(0.02 if number < steps / 2 else late_s)
            yield batch

    return input_of


class Stages:
    """What to do at which number of live workers, one after the other; counts as `on_step`."""

    def __init__(self, barrier, *stages):
        self.barrier = barrier
        self.stages = list(stages)
        self.records = []

    def __call__(self, record):
        self.records.append(record)
        recent = [each.live for each in self.records[-3:]]
        if self.stages and recent == [self.stages[0][0]] * 3:
            self.stages.pop(0)[1]()
        if not self.stages:
            self.barrier.reach("fast")


def nothing():
    pass
