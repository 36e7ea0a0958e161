"""What a layer of a description becomes: forward operators and how they run backward, weights, what is kept; and what flows on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.operators.blocks import Axis, BlockMessage, BlockOp, Divided, Limit, Role, Saved, Weight
from workbench.operators.table import ITEMSIZE, Dtype, Kind

ROWS = Divided((Axis.CP,))
"""Tokens inside a region of tensor parallelism: all of a sequence's share."""
SPREAD = Divided((Axis.CP, Axis.SP))
"""Tokens outside of it: sequence parallelism divides them too."""
OUTSIDE, INSIDE = (Axis.CP, Axis.SP), (Axis.CP, Axis.TP)
"""Axes that divide activations outside and inside a region of tensor parallelism."""
STATE = MappingProxyType({"training": True, "prefill": False, "decode": False})
"""Phases of a job, and whether there is a backward pass."""


@dataclass(frozen=True)
class Job:
    """How a model runs: ``batch`` samples of ``tokens`` tokens, the elements' type; in decoding ``context`` tokens lie in the cache.

    ``attention``: "flash" (one operator, no scores in memory) or "unfused" (product, softmax, product).
    """

    batch: int
    tokens: int
    dtype: Dtype
    phase: str = "training"
    context: int = 0
    attention: str = "flash"

    @property
    def training(self) -> bool:
        """Whether there is a backward pass."""
        return STATE[self.phase]

    @property
    def size(self) -> float:
        """Bytes an element [B]."""
        return ITEMSIZE[self.dtype]

    @property
    def keys(self) -> int:
        """Keys that a query of self-attention meets."""
        return self.context + 1 if self.phase == "decode" else self.tokens


@dataclass(frozen=True)
class Flow:
    """What goes from layer to layer: ``rows`` vectors of ``width``, or ``images`` of ``width`` channels and ``height`` x ``breadth``."""

    rows: int
    width: int
    images: int = 0
    height: int = 0
    breadth: int = 0

    @property
    def elements(self) -> int:
        """Elements of the whole microbatch."""
        return self.rows * self.width

    def image(self, channels: int, height: int, breadth: int) -> Flow:
        """Return the flow after a layer of images."""
        return Flow(self.images * height * breadth, channels, self.images, height, breadth)


@dataclass(frozen=True)
class Forward:
    """A forward operator; ``weight``: its second factor is a parameter; ``back`` reads and writes of an element-wise backward pass.

    ``first``: nothing needs the gradient of its input. ``bias``: elements of a bias whose gradient is a sum over rows.
    """

    op: BlockOp
    weight: bool = False
    back: tuple[float, float] | None = None
    first: bool = False
    bias: int = 0


@dataclass(frozen=True)
class Part:
    """One layer: steps in order, and what it holds."""

    flow: Flow
    steps: tuple[Forward | BlockMessage, ...] = ()
    weights: tuple[Weight, ...] = ()
    saved: tuple[Saved, ...] = ()
    cache: tuple[Saved, ...] = ()
    limits: tuple[Limit, ...] = ()


def linear(name: str, job: Job, m: int, n: int, k: int, *, m_by: Divided = ROWS, by: Mapping[str, Divided], bias: bool = False) -> Forward:
    """Return a product with a weight.

    Parameters
    ----------
    name : str
        Its name.
    job : Job
        How the model runs.
    m, n, k : int
        Rows, columns of the weight, rows of the weight.
    m_by : Divided
        How the rows are divided.
    by : mapping
        How n or k is.
    bias : bool
        A vector of n is added: its gradient is a sum over the rows.
    """
    op = BlockOp(name, Kind.GEMM, job.dtype, MappingProxyType({"batch": 1, "m": m, "n": n, "k": k}), MappingProxyType({"m": m_by, **by}))
    return Forward(op, weight=True, bias=n if bias else 0)


def elementwise(
    name: str, job: Job, elements: int, divided: Divided, reads: float, writes: float, back: tuple[float, float], operations: float = 1.0
) -> Forward:
    """Return an element-wise operator.

    Parameters
    ----------
    name : str
        Its name.
    job : Job
        How the model runs.
    elements : int
        Elements of a full-size operand.
    divided : Divided
        How they are divided.
    reads, writes : float
        Full-size operands of the forward pass.
    back : (float, float)
        Those of the backward pass.
    operations : float
        Operations an element.
    """
    dims, by = MappingProxyType({"elements": elements}), MappingProxyType({"elements": divided})
    return Forward(BlockOp(name, Kind.ELEMENTWISE, job.dtype, dims, by, reads=reads, writes=writes, operations=operations), back=back)


def rowwise(name: str, kind: Kind, job: Job, rows: int, cols: int, rows_by: Divided, cols_by: Divided | None = None) -> Forward:
    """Return a norm or softmax.

    Parameters
    ----------
    name : str
        Its name.
    kind : Kind
        Which of the two.
    job : Job
        How the model runs.
    rows, cols : int
        Rows, and what each is taken over.
    rows_by, cols_by : Divided
        How they are divided.
    """
    by = {"rows": rows_by} | ({"cols": cols_by} if cols_by else {})
    return Forward(BlockOp(name, kind, job.dtype, MappingProxyType({"rows": rows, "cols": cols}), MappingProxyType(by)))


def enter(name: str, bytes_: float) -> BlockMessage:
    """Return the message before a region of tensor parallelism."""
    return BlockMessage(f"{name} enter", Role.TP_ENTER, bytes_, (Axis.CP,))


def leave(name: str, bytes_: float) -> BlockMessage:
    """Return the message after it."""
    return BlockMessage(f"{name} exit", Role.TP_EXIT, bytes_, (Axis.CP,))


def selective(steps: tuple[Forward, ...]) -> tuple[Forward, ...]:
    """Return steps that selective recomputation repeats."""
    return tuple(replace(step, op=replace(step.op, selective=True)) for step in steps)


@dataclass(frozen=True)
class Given:
    """A layer of a description: its kind and the values of its keys."""

    kind: str
    values: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    where: str = ""

    def whole(self, key: str) -> int:
        """Return a count; 0 where it is not given."""
        value = self.values.get(key)
        return int(value) if isinstance(value, int | float) else 0

    def flag(self, key: str) -> bool:
        """Return a yes or no."""
        return bool(self.values.get(key))

    def text(self, key: str) -> str:
        """Return a text, empty where not given."""
        return str(self.values.get(key) or "")

    def counts(self, key: str) -> tuple[int, ...]:
        """Return a list of counts."""
        value = self.values.get(key)
        return tuple(value) if isinstance(value, tuple | list) else ()
