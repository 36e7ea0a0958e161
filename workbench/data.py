"""Where the catalogue and the sample data lie (beside the package in a checkout, inside it in a wheel); small files of a person's own."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.errors import UnreadableInput

MOST_BYTES = 256 << 20  # a description or a table of times is far smaller


def data_path(*parts: str) -> Path:
    """Return the path of a file or folder of the project's own data.

    Parameters
    ----------
    *parts : str
        Path below ``data/``, e.g. ``"npu"`` or ``"traces", "cpu_resnet_b4.json.gz"``; nothing for ``data/`` itself.

    Returns
    -------
    pathlib.Path
        An existing file or folder.

    Raises
    ------
    UnreadableInput
        When there is no such file in this installation.
    """
    package = Path(__file__).resolve().parent
    installed = package / "_data"
    root = installed if installed.is_dir() else package.parent / "data"
    path = root.joinpath(*parts)
    if not path.exists():
        raise UnreadableInput(str(path), "this installation has no such data", "reinstall npu-workbench, or check the name")
    return path


def read_small(path: str | os.PathLike[str], fix: str) -> bytes:
    """Return the content of a description or table a person names; never waits on a pipe, never reads a device or a huge file.

    Parameters
    ----------
    path : str or path
        A regular file of at most 256 MiB.
    fix : str
        What to give instead, for the message.

    Raises
    ------
    UnreadableInput
        Missing, not a regular file, not permitted, or too large.
    """
    content = read_head(path, MOST_BYTES + 1, fix)
    if len(content) > MOST_BYTES:
        raise UnreadableInput(str(path), f"is larger than {MOST_BYTES >> 20} MiB, too large for what it should be", fix)
    return content


def read_head(path: str | os.PathLike[str], count: int, fix: str) -> bytes:
    """Return the first ``count`` bytes of a regular file (all, where it is shorter); see `read_small`."""
    where = str(path)
    try:
        file = Path(path)
        if file.exists() and not file.is_file():
            raise UnreadableInput(where, "cannot be read: is a directory" if file.is_dir() else "is not a regular file", fix)
        with file.open("rb") as stream:
            return stream.read(count)
    except OSError as error:
        raise UnreadableInput(where[:200], f"cannot be read: {error.strerror or error}", fix) from None
    except (ValueError, TypeError) as error:  # a NUL in the name, or no name
        raise UnreadableInput(repr(path), f"is not a path: {error}", fix) from None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a regular file; what cannot be a path does not."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a name too long, a NUL in it
        return False
