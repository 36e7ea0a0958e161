"""`workbench plan` through its real door: a step, a search, serving, and refusals with a remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from workbench.cli import main

BASE = ("plan", "--model", "llama-2-70b", "--cluster", "dgx-h100")


Asked = Callable[..., dict[str, Any]]


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    def ask(*arguments: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as left:
            main([*BASE, *arguments, "--json"])
        out = capsys.readouterr()
        assert left.value.code in (0, None), out.err
        return dict(json.loads(out.out))

    return ask


def test_a_step_adds_up_and_says_what_it_consists_of(asked: Asked) -> None:
    step = asked("--cards", "1024", "--global-batch", "1024", "--plan", "tp=8,pp=8,v=5", "--price", "3.6")["step"]
    assert step["plan"] == "tp=8,pp=8,dp=16,mb=1,m=64,schedule=interleaved,v=5"
    parts = step["compute_s"] + step["bubble_s"] + step["optimizer_s"] + sum(step["exposed_s"].values())
    assert parts == pytest.approx(step["step_s"], rel=1e-6)
    assert step["cost"] == pytest.approx(3.6 * 1024 * step["step_s"] / 3600)
    assert step["tokens_per_s_card"] == pytest.approx(1024 * 4096 / step["step_s"] / 1024)
    assert step["memory_peak"] == max(stage["total"] for stage in step["stages"])
    assert step["tier"]["tp"] == "node"
    assert step["limiting_tier"] == "node"


def test_a_straggler_delays_by_where_it_sits(asked: Asked) -> None:
    """Every microbatch passes the slow stage: the step grows by its compute, wherever it is; the stages before and after it wait."""
    given = ("--cards", "64", "--global-batch", "64", "--plan", "tp=8,pp=8")
    plain, first, last = (asked(*given, *slow)["step"] for slow in ((), ("--slow", "0=1.1"), ("--slow", "7=1.1")))
    busy = plain["stages"][0]["busy_s"]
    assert plain["step_s"] < first["step_s"] < plain["step_s"] + 0.11 * busy
    assert last["step_s"] > plain["step_s"]
    assert first["stages"][3]["waiting_s"] > plain["stages"][3]["waiting_s"]


def test_a_search_ranks_plans_that_fit_and_says_why_the_next_does_not(asked: Asked) -> None:
    found = asked("--cards", "1024", "--global-batch", "1024", "--search", "--memory", "64 GiB")["search"]
    times = [step["step_s"] for step in found["best"]]
    assert times == sorted(times)
    assert len(times) == 5
    assert all(step["memory_peak"] <= 64 * 2**30 and step["fits"] for step in found["best"])
    assert not found["unfit"]["fits"]
    assert found["unfit"]["why_not"].startswith("stage ")
    assert found["tried"] > found["fitting"] > 5
    front = found["front"]
    for one in front:
        assert not any(o["step_s"] < one["step_s"] and o["memory"] <= one["memory"] and o["cards"] <= one["cards"] for o in front)


def test_a_search_keeps_to_what_is_stated(asked: Asked) -> None:
    found = asked("--cards", "64", "--global-batch", "64", "--search", "--plan", "tp=8,recompute=full,zero=0,sp=no")["search"]
    assert all(step["plan"].startswith("tp=8,") and "recompute=full" in step["plan"] and "sp" not in step["plan"] for step in found["best"])


def test_serving(asked: Asked) -> None:
    """Decoding reads every weight once a token: not faster than 16-bit weights and keys over 8 cards' bandwidth (3.35 TB/s each)."""
    served = asked("--cards", "8", "--plan", "tp=8,mb=4", "--prompt", "1024")["inference"]
    assert served["token_s"] > (69e9 * 2 - 32000 * 8192 * 2) / 8 / 3.35e12
    assert served["tokens_per_s"] == pytest.approx(4 / served["token_s"])
    assert served["first_token_s"] > served["token_s"]
    assert served["fits"]


def test_for_a_person(run: Callable[..., Any]) -> None:
    done = run(*BASE, "--cards", "64", "--global-batch", "64", "--plan", "tp=8,pp=8")
    assert done.returncode == 0
    for part in ("llama-2-70b", "MFU", "useful work", "stage", "analytical model"):
        assert part in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cards", "64", "--global-batch", "64", "--plan", "tp=24"), "not the 64 cards"),
        (("--cards", "72", "--global-batch", "72", "--plan", "tp=24"), "64 heads are not divisible by tp 24"),
        (("--cards", "64", "--global-batch", "63", "--plan", "tp=8"), "not the global batch of 63"),
        (("--cards", "64", "--plan", "tp=8"), "--global-batch"),
        (("--plan", "tp=8"), "--cards"),
        (("--cards", "many", "--global-batch", "8"), "no counts of cards"),
        (("--cards", "8", "--global-batch", "8", "--plan", "tq=8"), "did you mean 'tp'"),
        (("--cards", "8", "--global-batch", "8", "--npu", "h200sxm"), "no card of this name"),
        (("--cards", "8", "--global-batch", "8", "--dtype", "bf15"), "did you mean 'bf16'"),
        (("--cards", "8", "--global-batch", "8", "--slow", "9=2"), "no stage"),
        (("--cards", "8", "--global-batch", "8", "--system", "matrixx=2"), "did you mean 'matrix'"),
        (("--cards", "8", "--global-batch", "8", "--system", "matrix=nan"), "cannot be"),
        (("--cards", "8", "--global-batch", "8", "--search", "--schedules", "1f1c"), "did you mean '1f1b'"),
        (("--cards", "7", "--global-batch", "5", "--search"), "no plan divides"),
        (("--cards", "8", "--global-batch", "8", "--plan", "tp=8", "--memory", "64"), "--memory"),
    ],
)
def test_refusals_name_the_place_and_a_remedy(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([*BASE, *arguments])
    out = capsys.readouterr()
    assert left.value.code not in (0, None)
    assert said in out.err
    assert "Traceback" not in out.err
