"""What is said of a file whose bytes cannot be understood."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fenchel.errors import InputError


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Whatever a parser raises on this file, as one InputError; `kind` is what it should be.

    The parsers document no list of exceptions for damaged files, so all are caught; only the
    operating system's own errors (those with a number) are something else than damage.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} {_complaint(error, kind)}") from error


def _complaint(error: Exception, kind: str) -> str:
    if isinstance(error, OSError) and error.errno:
        return f"cannot be read ({error.strerror}); check the path and its permissions."
    if "Object arrays" in str(error):
        return (
            "holds Python objects, which are not loaded because they can run code; "
            "save it again as an array of numbers."
        )
    return f"is damaged or not {kind}; save or download it again."
