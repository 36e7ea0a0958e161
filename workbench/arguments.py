"""What a verb of the front says when it was given something else than it asks for: a refusal that names the argument.

A verb is called as it is. Only where it fails as Python does (no attribute, no such operation) are its arguments held against its
annotations; one that does not fit is the reason, and is named. A failure with fitting arguments stays what it is.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

from workbench.errors import Refused, WorkbenchError

P = ParamSpec("P")
R = TypeVar("R")
MAKERS = {
    "Trace": "open_trace", "NpuSpec": "load_npu", "ClusterSpec": "load_cluster", "HostSpec": "load_host", "Prediction": "predict",
    "Scenario": "Scenario", "Operators": "read_operators", "VendorTimes": "read_vendor", "Dataset": "sweep, estimate or stacks",
    "Model": "load_model", "ParallelPlan": "parse_plan",
}  # fmt: skip
"""Who returns what a verb asks for."""


def checked(verb: Callable[P, R]) -> Callable[P, R]:
    """Return a verb that refuses arguments of a wrong type by name, where they make it fail.

    Parameters
    ----------
    verb : callable
        A public function; its annotations say what it asks for.

    Returns
    -------
    callable
        The same, raising `Refused` in place of Python's own errors where an argument does not fit its annotation.
    """

    @functools.wraps(verb)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return verb(*args, **kwargs)
        except WorkbenchError:
            raise
        except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError) as fault:
            reason = _misfit(verb, args, kwargs)
            if reason is None:
                raise
            raise reason from fault

    return called


def _misfit(verb: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Refused | None:
    """Return the refusal of the first argument that does not fit its annotation, None where all do."""
    try:
        given = inspect.signature(verb).bind(*args, **kwargs).arguments
    except TypeError:  # a wrong name or number of arguments: Python says which
        return None
    for name, value in given.items():
        hint = _hint(verb, name)
        if not fits(value, hint):
            wanted = _name(hint)
            maker = next((MAKERS[part] for part in wanted.replace("[", " ").replace("]", " ").split() if part in MAKERS), "")
            fix = f"pass what {maker} returns" if maker else f"pass {wanted}; see help(workbench.{verb.__name__})"
            return Refused(verb.__name__, f"{name} = {repr(value)[:60]} is of type {type(value).__name__}, not {wanted}", fix)
    return None


def _hint(verb: Callable[..., object], name: str) -> object:
    """Return the annotation of a parameter as an object; `typing.Any` where it names what is imported for type checkers alone."""
    written = getattr(verb, "__annotations__", {}).get(name, typing.Any)
    if not isinstance(written, str):
        return written
    try:
        return eval(written, dict(getattr(verb, "__globals__", {})))  # the project's own source
    except Exception:
        return typing.Any


def fits(value: object, hint: object) -> bool:
    """Tell whether a value is of an annotated type; what cannot be told is taken to be.

    Parameters
    ----------
    value : object
    hint : type or special form
        Of collections the first thousand elements are looked at.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if hint is None or hint is type(None):
        return value is None
    if hint is bool:
        return type(value).__name__ in ("bool", "bool_")
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and type(value).__name__ not in ("bool", "bool_")
    kind = origin if isinstance(origin, type) else hint
    if not isinstance(kind, type):
        return True
    try:
        if not isinstance(value, kind):
            return False
    except TypeError:  # a protocol that cannot be asked
        return True
    if inner and isinstance(value, str | bytes):  # a sequence of letters, not of what is asked for
        return inner[0] is str
    if len(inner) == 2 and isinstance(value, dict):
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items())
    if inner and isinstance(value, list | tuple) and inner[-1] is not Ellipsis and len(inner) == 1:
        return all(fits(one, inner[0]) for one in value[:1000])
    return True


def _name(hint: object) -> str:
    """Return an annotation as a person reads it: ``Trace``, ``str | None``, ``Sequence[Trace]``."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_name(one) for one in inner)
    if inner and isinstance(origin, type):
        return f"{origin.__name__}[{', '.join(_name(one) for one in inner)}]"
    if hint is None or hint is type(None):
        return "None"
    return getattr(hint, "__name__", str(hint))
