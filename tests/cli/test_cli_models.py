"""`workbench models`: the catalogue, and one model with its blocks."""

from __future__ import annotations

import json

import pytest

from workbench.cli import main


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(["models", *arguments])
    assert left.value.code in (0, None)
    return capsys.readouterr().out


def test_the_catalogue(run) -> None:
    out = run("models").stdout
    for part in ("llama-2-70b", "68.98 B", "mixtral-8x7b", "12.88 B", "resnet-50"):
        assert part in out


def test_one_model(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ask(capsys, "bert-large", "--json", "--batch", "2"))
    (model,) = document["models"]
    assert model["parameters"] == 336_226_108  # google-bert/bert-large-uncased, BertForPreTraining
    assert [block["count"] for block in model["blocks"]] == [1, 24, 1]
    assert model["sources"]
    assert "336,226,108 parameters" in ask(capsys, "bert-large")


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["models", "bert-huge"])
    assert left.value.code == 1
    assert "nearest: bert-large" in capsys.readouterr().err
