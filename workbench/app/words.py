"""Words of the library in the words of the page: no folder of the server, no flag of the command line."""

from __future__ import annotations

import re

from workbench.errors import WorkbenchError

SALVAGE = "Damaged file: import what is whole"
"""Label of the choice in the Open dialog."""
ANCHORED = "Scale from measurement"
"""Label of the choice in the editor."""
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?(?:[/\\][^/\\\s:]+)*[/\\](?=[^/\\\s]+\.(?:json|gz|csv|ya?ml)\b)")


def for_page(text: str) -> str:
    """Return a text of the library as the page says it.

    Parameters
    ----------
    text : str
        Of an error or a note.

    Returns
    -------
    str
        Files by their name alone, choices by their label.
    """
    text = _FOLDERS.sub("", text)
    return text.replace("with --salvage", f"with “{SALVAGE}” in Open").replace("--anchored", f"“{ANCHORED}”")


def fault_words(fault: Exception | None, otherwise: str) -> str:
    """Return what a person can do about a question that failed; of an unforeseen fault ``otherwise`` and its own text."""
    return f"{fault.what}: {fault.fix}" if isinstance(fault, WorkbenchError) else f"{otherwise}: {fault}"
