"""Operations on files and tables, which need state that a row cannot give."""

from __future__ import annotations

SAMPLES = []

TESTED_ELSEWHERE = {
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
    **dict.fromkeys(["ReadFile", "WriteFile", "MatchingFiles"], "read and write files: test_io_ops.py"),
    **dict.fromkeys(
        [
            "HashTable",
            "InitializeTable",
            "InitializeTableFromTextFile",
            "LookupTableExport",
            "LookupTableFind",
            "LookupTableInsert",
            "LookupTableRemove",
            "LookupTableSize",
        ],
        "work on tables: test_lookup_ops.py",
    ),
}
