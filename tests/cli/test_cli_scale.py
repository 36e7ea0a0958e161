"""`workbench scale`: a recording on many cards, through the command line; the picture of it; plans over cards."""

from __future__ import annotations

import json

import numpy as np
import pytest

from workbench.cli import main
from workbench.data import data_path
from workbench.errors import InvalidSpec, Refused
from workbench.hardware.cluster_text import load_cluster
from workbench.hardware.npu import load_npu
from workbench.models.describe import load_model
from workbench.scale.plan import ParallelPlan
from workbench.study.plan_scaling import plan_scaling
from workbench.study.scale_out import scale_out
from workbench.trace.open import open_trace
from workbench.view.efficiency import bands, efficiency_curve

TRACE = str(data_path("traces", "synthetic_one_card.json.gz"))


def test_json_and_text(run) -> None:
    asked = ("scale", TRACE, "--cluster", "pyramid-1024", "--cards", "8,1024", "--jitter", "0.0345")
    document = json.loads(run(*asked, "--json").stdout)
    assert [row["cards"] for row in document["rows"]] == [8, 1024]
    assert document["efficiency"].endswith("N0 = 1, batch per card fixed")
    for row in document["rows"]:
        assert sum(row["exposed_tier_s"].values()) == pytest.approx(row["exposed_s"])
        assert row["efficiency"] == pytest.approx(document["base_step_s"] / row["step_s"])
    text = run(*asked).stdout
    for part in ("N0 = 1", "1,024", "node", "jitter 0.0345"):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cluster", "pyramid-1024", "--cards", "eight"), "--cards"),
        (("--cluster", "pyramid", "--cards", "8"), "nearest: pyramid-1024"),
        (("--cluster", "pyramid-1024", "--cards", "8", "--compress", "32"), "--codec"),
        (("--cluster", "pyramid-1024", "--cards", "8", "--algorithm", "rang"), "no way to do all_reduce"),
        (("--cluster", "pyramid-1024", "--cards", "0"), "no numbers of cards"),
    ],
)
def test_refusals(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["scale", TRACE, *arguments])
    assert left.value.code not in (0, None)
    assert said in capsys.readouterr().err


def test_the_picture_shows_what_was_found() -> None:
    found = scale_out(open_trace(TRACE), load_cluster("pyramid-1024"), [8, 128, 1024], jitter=0.0345)
    shares = bands(found, "tier")
    np.testing.assert_allclose(sum(shares.values()), (found.exposed_s / found.step_s).values)
    picture = efficiency_curve(found)
    assert "N0 = 1" in str(picture[0].opts.get("plot").kwargs["title"])
    assert list(picture[0].Scatter.I.dimension_values("cards")) == [8, 128, 1024]
    with pytest.raises(Refused):
        efficiency_curve(found, by="axis")


def test_plans_over_cards() -> None:
    """Weak scaling keeps the batch of a card, strong scaling that of all; both refer to the fewest cards, where they agree."""
    model, npu, cluster = load_model("gpt-22b"), load_npu("a100-sxm4-80gb"), load_cluster("dgx-a100")
    plan = ParallelPlan(dp=2, tp=8, microbatches=32, recompute="full")
    weak, strong = (plan_scaling(model, npu, cluster, plan, [16, 64, 256], fixed=how) for how in ("weak", "strong"))
    assert weak.efficiency[0] == strong.efficiency[0] == 1.0
    assert weak.step_s[0] == strong.step_s[0]
    assert (np.diff(weak.efficiency) <= 1e-12).all()
    assert (strong.efficiency[1:] < weak.efficiency[1:]).all()
    assert float(strong.tokens_per_s[2]) == pytest.approx(64 * 2048 / float(strong.step_s[2]))
    assert "N0 = 16" in weak.attrs["efficiency"]
    np.testing.assert_allclose(weak.exposed_tier_s.sum("tier"), weak.exposed_axis_s.sum("axis"))
    with pytest.raises(Refused):
        plan_scaling(model, npu, cluster, plan, [12])
    with pytest.raises(InvalidSpec):
        plan_scaling(model, npu, cluster, plan, [16], fixed="both")
