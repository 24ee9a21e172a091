"""Writing pictures so that a reader never sees half of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fenchel.files import refuse_unwritable


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """A partial file to write to, which takes the name `path` when all went well."""
    path = Path(path)
    refuse_unwritable(path)
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
