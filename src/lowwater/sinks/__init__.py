"""Sinks, the destinations of results: memory, a function, or a folder of files."""

from lowwater.sinks.folder import FORMATS, MODES, SPARKS_LOG, Folder, FolderSink, Mode
from lowwater.sinks.folder_lock import FolderLock, FolderLocked
from lowwater.sinks.sink import (
    FunctionSink,
    LastRows,
    MemorySink,
    Sink,
    SinkByStream,
    SinkCall,
    complete,
    count_delivered,
    make_sink,
    on_failure,
)

__all__ = [
    "FORMATS",
    "MODES",
    "SPARKS_LOG",
    "Folder",
    "FolderLock",
    "FolderLocked",
    "FolderSink",
    "FunctionSink",
    "LastRows",
    "MemorySink",
    "Mode",
    "Sink",
    "SinkByStream",
    "SinkCall",
    "complete",
    "count_delivered",
    "make_sink",
    "on_failure",
]
