"""``tf.keras.utils``' enqueuers: batches of a sequence or a generator that threads make ready ahead of their use."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final

_PAUSE_S: Final = 0.1
"""How often a wait looks whether it is to end."""


class SequenceEnqueuer:
    """What `OrderedEnqueuer` and `GeneratorEnqueuer` have in common; derive from it and override `_fill`.

    Args:
        sequence: Where the batches come from.
        use_multiprocessing: Accepted for TensorFlow 1's sake: threads make the batches.
    """

    def __init__(self, sequence: Any, use_multiprocessing: bool = False) -> None:
        self.sequence = sequence
        self.use_multiprocessing = use_multiprocessing
        self.queue: queue.Queue[Future[Any] | None] = queue.Queue()
        self.stop_signal = threading.Event()
        self.run_thread: threading.Thread | None = None

    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self.run_thread is not None and not self.stop_signal.is_set()

    def start(self, workers: int = 1, max_queue_size: int = 10) -> None:
        """Begin to make batches.

        Args:
            workers: How many threads make them.
            max_queue_size: How many batches wait at most.
        """
        self.queue = queue.Queue(max_queue_size)
        self.stop_signal.clear()
        self.run_thread = threading.Thread(target=self._work, args=(max(workers, 1),), daemon=True)
        self.run_thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """Make no more batches, and wait for the threads, `timeout` seconds at most."""
        self.stop_signal.set()
        if self.run_thread is not None:
            self.run_thread.join(timeout)

    def get(self) -> Iterator[Any]:
        """The batches, one after the other. An error of the sequence is raised, and ends them."""
        while self.is_running():
            try:
                made = self.queue.get(timeout=_PAUSE_S)
            except queue.Empty:
                continue
            if made is None:
                break
            try:
                batch = made.result()
            except Exception:
                self.stop()
                raise
            if batch is not None:
                yield batch
        self.stop()

    def _work(self, workers: int) -> None:
        try:
            self._fill(workers)
        except Exception as error:  # noqa: BLE001 (`get` raises it)
            failed: Future[Any] = Future()
            failed.set_exception(error)
            self._put(failed)
        self._put(None)

    def _fill(self, workers: int) -> None:
        """Put batches into the queue, each as a future, until there are no more or `stop_signal` is set."""
        raise NotImplementedError(f"{type(self).__name__} does not define _fill")

    def _put(self, made: Future[Any] | None) -> None:
        while not self.stop_signal.is_set():
            with suppress(queue.Full):
                self.queue.put(made, timeout=_PAUSE_S)
                return


class OrderedEnqueuer(SequenceEnqueuer):
    """Batches of a `Sequence` in its order, epoch after epoch, without end unless it has none.

    Args:
        sequence: The sequence. Its ``on_epoch_end`` is called when all batches of an epoch are made.
        use_multiprocessing: Accepted for TensorFlow 1's sake: threads make the batches.
        shuffle: Take the batches of each epoch in an order of its own.
    """

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, shuffle: bool = False) -> None:
        super().__init__(sequence, use_multiprocessing)
        self.shuffle = shuffle

    def _fill(self, workers: int) -> None:
        with ThreadPoolExecutor(workers) as pool:
            while not self.stop_signal.is_set() and (order := list(range(len(self.sequence)))):
                if self.shuffle:
                    random.shuffle(order)
                made = []
                for index in order:
                    if not self.stop_signal.is_set():
                        made.append(pool.submit(self.sequence.__getitem__, index))
                        self._put(made[-1])
                wait(made)
                if not self.stop_signal.is_set():
                    self.sequence.on_epoch_end()


class GeneratorEnqueuer(SequenceEnqueuer):
    """Batches of a generator, until it ends.

    Args:
        sequence: The generator.
        use_multiprocessing: Accepted for TensorFlow 1's sake: a thread makes the batches.
        random_seed: Accepted for TensorFlow 1's sake.
    """

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, random_seed: int | None = None) -> None:
        super().__init__(sequence, use_multiprocessing)
        self.random_seed = random_seed

    def _fill(self, workers: int) -> None:
        for batch in self.sequence:
            if self.stop_signal.is_set():
                return
            made: Future[Any] = Future()
            made.set_result(batch)
            self._put(made)
