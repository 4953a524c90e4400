"""``tf.queue``: queues that steps share. Use them to hand tensors from one part of a program to another."""

from tfray.library.input.queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]
