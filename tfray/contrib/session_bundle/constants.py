"""Names of the files and the collections of an exported model."""

from typing import Final

ASSETS_DIRECTORY: Final = "assets"
ASSETS_KEY: Final = "serving_assets"
CLASSIFICATION_SIGNATURE: Final = "classification_signature"
EXPORT_BASE_NAME: Final = "export"
EXPORT_SUFFIX_NAME: Final = "meta"
GENERIC_SIGNATURE: Final = "generic_signature"
GRAPH_KEY: Final = "serving_graph"
INIT_OP_KEY: Final = "serving_init_op"
META_GRAPH_DEF_FILENAME: Final = "export.meta"
REGRESSION_SIGNATURE: Final = "regression_signature"
SIGNATURES_KEY: Final = "serving_signatures"
VARIABLES_FILENAME: Final = "export"
VARIABLES_FILENAME_PATTERN: Final = "export-?????-of-?????"
VARIABLES_FILENAME_PATTERN_V2: Final = "export.data-?????-of-?????"
VARIABLES_INDEX_FILENAME_V2: Final = "export.index"
VERSION_FORMAT_SPECIFIER: Final = "%08d"

# fmt: off
__all__ = [
    "ASSETS_DIRECTORY", "ASSETS_KEY", "CLASSIFICATION_SIGNATURE", "EXPORT_BASE_NAME", "EXPORT_SUFFIX_NAME",
    "GENERIC_SIGNATURE", "GRAPH_KEY", "INIT_OP_KEY", "META_GRAPH_DEF_FILENAME", "REGRESSION_SIGNATURE",
    "SIGNATURES_KEY", "VARIABLES_FILENAME", "VARIABLES_FILENAME_PATTERN", "VARIABLES_FILENAME_PATTERN_V2",
    "VARIABLES_INDEX_FILENAME_V2", "VERSION_FORMAT_SPECIFIER",
]
# fmt: on
