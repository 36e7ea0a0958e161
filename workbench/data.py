"""Where the catalogue and the sample data lie: beside the package in a checkout, inside it when installed from a wheel."""

from __future__ import annotations

from pathlib import Path

from workbench.errors import UnreadableInput


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
