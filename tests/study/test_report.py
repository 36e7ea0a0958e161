"""Documents of --json: real outputs against their published schema, strict JSON, numbers that agree with the prediction."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from workbench.errors import Note, Refused
from workbench.study.documents import SCHEMAS
from workbench.study.predict import predict
from workbench.study.report import (
    inspect_document,
    predict_document,
    prediction_document,
    schema,
    sweep_document,
    to_json,
)
from workbench.study.sweep import sweep


def strict(text: str):
    """Parse JSON that may hold no NaN or Infinity."""

    def refuse(word: str):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def valid(name: str, text: str):
    document = strict(text)
    jsonschema.Draft202012Validator(schema(name)).validate(document)
    return document


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas_and_refuse_other_documents(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert list(jsonschema.Draft202012Validator(schema(name)).iter_errors({"unknown": 1}))


def test_an_unknown_schema_is_refused_with_the_known_ones():
    with pytest.raises(Refused, match="inspect, predict, sweep, check"):
        schema("guess")


def test_a_prediction_document(prediction):
    found = valid("predict", to_json(predict_document({"a.json": prediction})))["traces"]["a.json"]
    assert found["step_time_s"] == prediction.step_time_s
    assert found["measured_step_s"] == prediction.measured_step_s
    assert len(found["operators"]) == len(prediction.table)
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(1.0)
    assert len(found["lags"]) <= 10
    assert [step["number"] for step in found["steps"]] == prediction.graph.step_numbers.tolist()
    for side in ("measured", "predicted"):
        account = found["account"][side]
        parts = sum(account[f"{name}_s"] for name in ("compute", "exposed_communication", "exposed_copy", "host", "waiting", "idle"))
        assert parts == pytest.approx(account["step_s"], rel=1e-9)


def test_numbers_json_has_no_word_for_become_null(prediction):
    """An operator without a measurement or a step of length 0 must not write NaN."""
    table = replace(prediction.table, measured_s=prediction.table.measured_s * float("nan"))
    found = valid("predict", to_json(predict_document({"a": replace(prediction, table=table)})))
    assert all(row["measured_s"] is None for row in found["traces"]["a"]["operators"])


def test_an_identity_document(scenario):
    document = prediction_document(predict(replace(scenario, npu=None)))
    assert document.npu is None
    assert document.coverage is None
    assert document.evidence_share == {"measured": pytest.approx(1.0)}
    assert document.speed_up == pytest.approx(1.0, rel=1e-3)


def test_a_sweep_document(scenario):
    found = valid("sweep", to_json(sweep_document(sweep(scenario, {"npu.cores": [8, 8.5, 16]}, progress=False), "out.nc")))
    assert found["axes"]["npu.cores"]["values"] == [8, 8.5, 16]
    assert found["valid"] == [True, False, True]
    assert found["step_time_s"][1] is None
    assert sum(found["invalid"].values()) == 1


def test_facts_of_a_trace(workload):
    trace = replace(workload.trace, notes=(Note("code", "here", 2, "text"),))
    found = valid("inspect", to_json(inspect_document(trace)))
    assert next(iter(found["traces"].values()))["kernels"] > 0
    assert {"code": "code", "where": "here", "count": 2, "text": "text", "fix": ""} in found["notes"]
