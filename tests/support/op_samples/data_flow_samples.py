"""Operations on resources and files: queues, datasets, tables, checkpoints. They take more than a row to test."""

from __future__ import annotations

from tfray.framework.op_def import registered_ops

SAMPLES = []

TESTED_ELSEWHERE = (
    dict.fromkeys(
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
    )
    | dict.fromkeys(
        ["QueueDequeueSome", "QueueEnqueueSome", "ReaderReadSome"], "several elements at once: test_several.py"
    )
    | dict.fromkeys(
        ["SerializeSparse", "SerializeManySparse", "DeserializeSparse"], "sparse tensors: test_sparse_transport.py"
    )
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

TESTED_ELSEWHERE |= dict.fromkeys(
    ["Mutex", "MutexLock", "ConsumeMutexLock"], "operations of locks: test_critical_section.py"
)

TESTED_ELSEWHERE |= dict.fromkeys(
    ["AddSparseToTensorsMap", "AddManySparseToTensorsMap", "TakeManySparseFromTensorsMap"],
    "operations of kept sparse tensors: test_sparse_maps.py",
)

TESTED_ELSEWHERE |= dict.fromkeys(
    ["StatsAggregatorHandle", "StatsAggregatorSummary"], "statistics of datasets: test_data_experimental.py"
)

TESTED_ELSEWHERE |= dict.fromkeys(
    [
        "SummaryWriter",
        "CreateSummaryFileWriter",
        "WriteRawProtoSummary",
        "WriteGraphSummary",
        "ImportEvent",
        "FlushSummaryWriter",
        "CloseSummaryWriter",
    ],
    "writers of event files: test_step_summaries.py",
)

TESTED_ELSEWHERE |= {
    name: "tests/library/input/test_data.py"
    for name in registered_ops()
    if name.endswith("Dataset")
    or name in ("Iterator", "MakeIterator", "IteratorGetNext", "IteratorToStringHandle", "IteratorFromStringHandle")
    or name in ("MatchingDatasetFiles", "DatasetToSingleElement", "DatasetCardinality", "DatasetToTFRecord")
    or name.startswith("Optional")
    or name in ("IteratorGetNextAsOptional", "DenseRowShape")
}

TESTED_ELSEWHERE |= {
    **dict.fromkeys(
        [
            "RowIndex",
            "AssignRows",
            "FindRows",
            "TakeReusedRows",
            "RowIndexSize",
            "RowIndexEntries",
        ],
        "change with every call: test_dynamic_embedding.py",
    ),
    **dict.fromkeys(
        [
            "RandomForest",
            "RandomForestFeatureCounts",
            "RandomForestPredictions",
            "RandomForestSizes",
            "TrainRandomForest",
        ],
        "work on forests: tests/library/forest/test_forest_graphs.py",
    ),
    **dict.fromkeys(["ReadFile", "WriteFile", "MatchingFiles"], "read and write files: test_io_ops.py"),
    **dict.fromkeys(["GenerateVocabRemapping", "LoadAndRemapMatrix"], "read files: test_remap_ops.py"),
    **dict.fromkeys(
        [
            "HashTable",
            "InitializeTable",
            "InitializeTableFromTextFile",
            "InitializeTableFromTextFileOnce",
            "InitializeTableOnce",
            "LookupTableExport",
            "LookupTableFind",
            "LookupTableInsert",
            "LookupTableRemove",
            "LookupTableSize",
            "MutableDenseHashTable",
        ],
        "work on tables: test_lookup_ops.py",
    ),
}

TESTED_ELSEWHERE |= dict.fromkeys(
    (
        "SaveShard",
        "MergeCheckpoint",
        "Snapshot",
        "TakeSnapshot",
        "WriteSnapshot",
        "RestoreShard",
        "RestoreTensor",
        "RandomStates",
    ),
    "works on files and resources: tests/training/checkpoints/test_saver.py",
)

TESTED_ELSEWHERE |= dict.fromkeys(
    ["SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename"],
    "works on files: tests/ops/system/test_tensor_files_ops.py",
)

TESTED_ELSEWHERE |= dict.fromkeys(
    ["DecodeWav", "EncodeWav", "DecodeJSONExample"], "files of sound and JSON: tests/ops/strings/test_audio_codec.py"
)
