"""Edits as a person types them: ``fuse:aten::addmm > aten::gelu``, ``retype:*linear*=bf16``, ``capture:*``, ``batch:2x`` ..."""

from __future__ import annotations

from workbench.errors import UnreadableInput
from workbench.graph.rewrite import Rewrite
from workbench.graph.rewrite_batch import ScaleBatch
from workbench.graph.rewrite_capture import Capture
from workbench.graph.rewrite_drop import Drop, Split
from workbench.graph.rewrite_fuse import Fuse
from workbench.graph.rewrite_move import Move, Overlap
from workbench.graph.rewrite_retype import Retype

FORMS = (
    "write fuse:A > B[,keep], drop:PATTERN, retype:PATTERN=TYPE[,nocasts], split:PATTERN=PARTS, move:PATTERN=STREAM[,until=PATTERN], "
    "overlap:PATTERN[,until=PATTERN], capture[:PATTERN] or batch:FACTORx[,from=BATCH]"
)


def parse_rewrite(text: str) -> Rewrite:
    """Read one edit.

    Parameters
    ----------
    text : str
        ``fuse:aten::addmm > aten::gelu``, ``drop:*dropout*``, ``retype:*linear*=bf16``, ``split:gemm=2``,
        ``move:PATTERN=STREAM,until=PATTERN``, ``overlap:PATTERN,until=PATTERN``, ``capture:*``, ``batch:2x``.

    Returns
    -------
    Rewrite

    Raises
    ------
    UnreadableInput
        The text has another form.
    """
    verb, _, rest = text.strip().partition(":")
    rest = rest.strip()
    if verb == "capture":
        return Capture(rest or "*")
    if rest and verb in ("fuse", "drop", "retype", "split", "move", "overlap", "batch"):
        made = _read(verb, rest)
        if made is not None:
            return made
    raise UnreadableInput(f"rewrite {text!r}", "not an edit", FORMS)


def _read(verb: str, rest: str) -> Rewrite | None:
    """Return the edit, None where the text does not settle it."""
    if verb == "drop":
        return Drop(rest)
    if verb == "fuse":
        return Fuse(rest.removesuffix(",keep").strip(), rest.endswith(",keep"))
    if verb in ("move", "overlap"):
        head, _, until = rest.partition(",until=")
        pattern, _, stream = head.rpartition("=")
        if verb == "overlap":
            return Overlap(head.strip(), until.strip())
        return Move(pattern.strip(), stream.strip(), until.strip()) if pattern and stream.strip() else None
    if verb == "batch":
        factor, _, base = rest.partition(",from=")
        number = _number(factor.strip().removesuffix("x"))
        return ScaleBatch(number, int(base)) if number and base.isdecimal() else ScaleBatch(number) if number and not base else None
    pattern, _, value = rest.removesuffix(",nocasts").rpartition("=")
    if not pattern or not value.strip():
        return None
    if verb == "split":
        return Split(pattern.strip(), int(value)) if value.strip().isdecimal() else None
    return Retype(pattern.strip(), value.strip().lower(), not rest.endswith(",nocasts"))


def _number(text: str) -> float:
    """Return a positive number, 0 where the text is none."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 < value < float("inf") else 0.0
