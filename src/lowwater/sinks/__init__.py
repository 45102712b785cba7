"""Where results go: memory, a function, or a folder of Parquet, CSV or JSON files."""

from lowwater.sinks.claim import Claim, FolderTaken
from lowwater.sinks.folder import FORMATS, MODES, SPARKS_LOG, Folder, FolderSink, Mode
from lowwater.sinks.handing import Handing
from lowwater.sinks.sink import (
    FunctionSink,
    LastRows,
    MemorySink,
    Sink,
    SinkByStream,
    complete,
    make_sink,
    on_failure,
    standing,
)

__all__ = [
    "FORMATS",
    "MODES",
    "SPARKS_LOG",
    "Claim",
    "Folder",
    "FolderSink",
    "FolderTaken",
    "FunctionSink",
    "Handing",
    "LastRows",
    "MemorySink",
    "Mode",
    "Sink",
    "SinkByStream",
    "complete",
    "make_sink",
    "on_failure",
    "standing",
]
