"""Secrets of the recording's environment go no further than the file."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.trace.open import open_trace
from workbench.trace.secrets import WITHHELD, without_secrets


def test_names_that_tell_a_secret() -> None:
    given = {
        "env": {"HF_TOKEN": "hf_abc", "PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "xyz", "max_tokens": 5, "tokenizer": "bpe"},
        "environ": ["WANDB_API_KEY=123 MODE=fast", "plain"],
        "lscpu": "Model name: Xeon",
    }
    assert without_secrets(given) == {
        "env": {
            "HF_TOKEN": WITHHELD,
            "PATH": "/bin",
            "AWS_SECRET_ACCESS_KEY": WITHHELD,
            "max_tokens": 5,
            "tokenizer": "bpe",
        },
        "environ": [f"WANDB_API_KEY={WITHHELD} MODE=fast", "plain"],
        "lscpu": "Model name: Xeon",
    }


def test_an_opened_trace_does_not_hold_them(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    path.write_text(json.dumps({"schemaVersion": 1, "env": {"HF_TOKEN": "hf_abc"}, "traceEvents": [event]}))
    trace = open_trace(path)
    assert "hf_abc" not in repr(trace.ranks)
    assert WITHHELD in repr(trace.ranks)
