"""What a model is made of before it is spread over cards: blocks of operators, and the axes of a plan that may divide their extents.

A `Model` is one replica's work on one microbatch: blocks in the order data flow through them. Every block lists its forward operators,
its backward operators, its messages, its weights and what it keeps for the backward pass, all *whole*: as if one card did everything.
`workbench.scale.shard` divides them for a plan. No hardware and no time enters here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from workbench.operators.table import Dtype, Kind


class Axis(StrEnum):
    """Axes of a plan. ``SP`` is sequence parallelism: the cards of tensor parallelism, where the plan asks for it, else one card."""

    TP = "tp"
    SP = "sp"
    CP = "cp"
    EP = "ep"
    DP = "dp"
    PP = "pp"


class Phase(StrEnum):
    """When an operator runs: forward; backward for the gradient of its input; backward for that of its weights."""

    FORWARD = "forward"
    INPUT = "input gradient"
    WEIGHT = "weight gradient"


class Role(StrEnum):
    """What a message of a block is for; `workbench.scale.insert` says which collective that is under a plan."""

    TP_ENTER = "tp enter"  # before operators divided by tp: nothing or all-gather forward, all-reduce or reduce-scatter backward
    TP_EXIT = "tp exit"  # after them: all-reduce or reduce-scatter forward, nothing or all-gather backward
    EP_DISPATCH = "ep dispatch"  # tokens to their experts, their gradients back
    EP_COMBINE = "ep combine"  # results back to their tokens
    CP_KEYS = "cp keys"  # keys and values round the ring of context parallelism
    TABLES = "tables"  # embeddings of tables that lie on other cards (recommendation models), all-to-all both ways


@dataclass(frozen=True)
class Divided:
    """How an extent may be divided: over the product of the degrees of ``axes``, in whole units.

    ``units`` are (count, width) parts that add up to the extent: an extent of query, key and value heads is
    ``((heads, head_dim), (kv_heads, 2 head_dim))``, and a card holds ``sum of ceil(count / degree) width``. Empty: units of one.
    """

    axes: tuple[Axis, ...]
    units: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class BlockOp:
    """One operator of a block on the whole microbatch.

    ``dims`` names extents as `workbench.operators.table.DIMS` does. ``passes`` counts how often it runs (e.g. once a weight tensor).
    ``reads`` and ``writes`` are full-size operands of an element-wise operator, ``operations`` those an element.
    ``selective``: executed again in the backward pass under selective recomputation (the core of attention).
    """

    name: str
    kind: Kind
    dtype: Dtype
    dims: Mapping[str, int]
    divided: Mapping[str, Divided] = field(default_factory=lambda: MappingProxyType({}))
    phase: Phase = Phase.FORWARD
    passes: int = 1
    reads: float = 1.0
    writes: float = 1.0
    operations: float = 1.0
    selective: bool = False


@dataclass(frozen=True)
class BlockMessage:
    """A message of a block on the whole microbatch: ``bytes`` of the activation it moves, whole, forward [B].

    ``divided`` are the axes that divide it before it is sent (context parallelism divides every activation).
    """

    name: str
    role: Role
    bytes: float
    divided: tuple[Axis, ...] = ()
    phase: Phase = Phase.FORWARD  # INPUT where it stands in the backward pass
    fan_out: float = 1.0  # of a dispatch: copies of a token, its experts
    experts: int = 0  # of a dispatch: all of them
    imbalance: float = 1.0  # of a dispatch: rows of the busiest expert over the mean
    units: tuple[tuple[int, int], ...] = ()  # as in `Divided`: of keys and values, their heads


@dataclass(frozen=True)
class Saved:
    """A tensor a block keeps for its backward pass: whole bytes [B], the axes that divide it, whether selective recomputation drops it.

    ``units`` as in `Divided`: where tensor parallelism divides it in whole heads only.
    """

    name: str
    bytes: float
    divided: tuple[Axis, ...] = ()
    selective: bool = False
    units: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Weight:
    """Parameters of a block: how many, and the axes that divide them; what no axis divides every card holds whole.

    Experts are divided by ep (their gradients are then reduced over the dp x cp / ep cards that hold the same ones).
    ``tied``: shared with another block of that name (embedding and output head): on two pipeline stages both hold it.
    ``units`` as in `Divided`: keys and values of few heads are held in copies where tensor parallelism is wider.
    ``active``: share of it that one token uses (experts: chosen ones over all).
    """

    name: str
    elements: float
    divided: tuple[Axis, ...] = ()
    tied: str = ""
    units: tuple[tuple[int, int], ...] = ()
    active: float = 1.0


@dataclass(frozen=True)
class Block:
    """A part of a model that repeats ``count`` times in a row: an embedding, a layer, an expert layer, a head.

    ``steps`` are forward operators and messages in order; ``backward`` those of the backward pass in its order, its messages
    in their mirrored places: what was left last in the forward pass is entered first. ``handed`` bytes go to the next block, whole [B].
    ``cache`` is what it keeps from token to token (keys and values of inference).
    """

    name: str
    steps: tuple[BlockOp | BlockMessage, ...]
    backward: tuple[BlockOp | BlockMessage, ...]
    weights: tuple[Weight, ...]
    saved: tuple[Saved, ...]
    handed: float
    handed_divided: tuple[Axis, ...] = (Axis.CP, Axis.SP)
    count: int = 1
    layer: bool = True  # counts among the layers that a pipeline divides; embedding and head do not
    cache: tuple[Saved, ...] = ()

    @property
    def parameters(self) -> float:
        """Parameters of one such block."""
        return sum(weight.elements for weight in self.weights)


@dataclass(frozen=True)
class Limit:
    """An extent that an axis must divide: ``("heads", 64, tp)``; 0: there is none, one card only.

    Where it ``replicates``, more cards than that keep copies instead.
    """

    name: str
    extent: int
    axis: Axis
    replicates: bool = False


@dataclass(frozen=True)
class Model:
    """One replica's work on one microbatch.

    ``sequences`` samples of ``tokens`` tokens each (images: 1 token each). ``model_flops`` is what MFU counts: of the forward pass,
    and of the backward pass twice that in training, without recomputation [FLOP]. ``limits`` are extents that a plan must respect.
    """

    name: str
    blocks: tuple[Block, ...]
    sequences: int
    tokens: int
    model_flops: float
    limits: tuple[Limit, ...]
    dtype: Dtype
    training: bool = True
    notes: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """Layers that a pipeline divides."""
        return sum(block.count for block in self.blocks if block.layer)

    @property
    def parameters(self) -> float:
        """All parameters; a tied weight counts once."""
        return sum(elements for elements, _ in self._weights())

    @property
    def active_parameters(self) -> float:
        """Parameters that one token uses: of experts only the chosen ones."""
        return sum(elements * active for elements, active in self._weights())

    def _weights(self) -> list[tuple[float, float]]:
        seen: set[str] = set()
        out: list[tuple[float, float]] = []
        for block in self.blocks:
            for weight in block.weights:
                if not (weight.tied and weight.tied in seen):
                    out.append((block.count * weight.elements, weight.active))
                if weight.tied:
                    seen.add(weight.tied)
        return out
