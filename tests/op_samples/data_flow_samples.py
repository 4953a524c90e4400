"""Queues and what is like them: their operations wait for one another, which takes more than a row."""

from __future__ import annotations

SAMPLES = []

TESTED_ELSEWHERE = dict.fromkeys(
    [
        "FIFOQueue",
        "PaddingFIFOQueue",
        "PriorityQueue",
        "RandomShuffleQueue",
        "SelectQueue",
        "QueueEnqueue",
        "QueueEnqueueMany",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueUpTo",
        "QueueClose",
        "QueueSize",
        "QueueIsClosed",
    ],
    "operations of queues: test_queues.py",
) | dict.fromkeys(
    ["SerializeSparse", "SerializeManySparse", "DeserializeSparse"], "sparse tensors: test_sparse_transport.py"
)

TESTED_ELSEWHERE |= dict.fromkeys(
    [
        "TextLineReader",
        "FixedLengthRecordReader",
        "TFRecordReader",
        "WholeFileReader",
        "IdentityReader",
        "ReaderRead",
        "ReaderReadUpTo",
        "ReaderNumRecordsProduced",
        "ReaderNumWorkUnitsCompleted",
        "ReaderSerializeState",
        "ReaderRestoreState",
        "ReaderReset",
    ],
    "operations of readers: test_readers.py",
)

TESTED_ELSEWHERE |= dict.fromkeys(
    [
        "ConditionalAccumulator",
        "SparseConditionalAccumulator",
        "AccumulatorApplyGradient",
        "AccumulatorTakeGradient",
        "SparseAccumulatorApplyGradient",
        "SparseAccumulatorTakeGradient",
        "AccumulatorNumAccumulated",
        "AccumulatorSetGlobalStep",
    ],
    "operations of accumulators: test_accumulators.py",
)

TESTED_ELSEWHERE |= dict.fromkeys(
    [
        "StagingArea",
        "Stage",
        "Unstage",
        "StagePeek",
        "StageSize",
        "StageClear",
        "MapStagingArea",
        "MapStage",
        "MapUnstage",
        "MapUnstageNoKey",
        "MapPeek",
        "MapIncompleteSize",
    ],
    "operations of staging areas: test_staging.py",
)

TESTED_ELSEWHERE |= dict.fromkeys(
    ["Barrier", "BarrierInsertMany", "BarrierTakeMany", "BarrierClose", "BarrierReadySize", "BarrierIncompleteSize"],
    "operations of barriers: test_barriers.py",
)
