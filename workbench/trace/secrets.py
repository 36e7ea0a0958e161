"""What a recording's metadata should not carry on: passwords and tokens of the environment it was recorded in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

WITHHELD = "(withheld)"
_NAMES = r"token(?!iz)|secret|passw|credential|(?:api|access|private|account)[_-]?key|auth(?!or)|cookie"
_NAME = re.compile(_NAMES, re.IGNORECASE)
_ASSIGNED = re.compile(rf"([\w.-]*(?:{_NAMES})[\w.-]*\s*[=:]\s*)(\S+)", re.IGNORECASE)


def without_secrets(value: Any, name: str = "") -> Any:
    """Return metadata with texts that look like secrets withheld; structure, numbers and all other texts stay.

    Parameters
    ----------
    value : mapping, list, str or other
        As read from JSON.
    name : str
        The key it stands under. Texts under a name like ``HF_TOKEN`` or ``password`` are withheld whole, of other texts what follows
        such a name and ``=`` or ``:``.
    """
    if isinstance(value, Mapping):
        return {key: without_secrets(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner, name) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    return WITHHELD if _NAME.search(name) else _ASSIGNED.sub(rf"\g<1>{WITHHELD}", value)
