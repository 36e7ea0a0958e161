"""Names of operators as frameworks, libraries and compilers write them: real ones, each with the kind it computes."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from workbench.operators.cells import missing
from workbench.operators.kinds import ran_of
from workbench.operators.sheet import read_sheet
from workbench.operators.table import Dtype, Kind
from workbench.operators.words import bare, element_type, unknown, word

REAL = yaml.safe_load((Path(__file__).parent / "real_names.yaml").read_text(encoding="utf-8"))
LISTED = [(name, Kind[kind]) for kind, names in REAL.items() for name in names.split()]
UNKNOWN = [
    "whatever",
    "EVENT_WAIT",
    "while",
    "tuple",
    "get-tuple-element",
    "copy-done",
    "all-reduce-done",
    "spin_kernel",
    "PlaceHolder",
    "",
]


def test_real_names_mean_what_they_compute():
    wrong = {
        name: (word(name).kind.name if word(name) else None, kind.name)
        for name, kind in LISTED
        if not word(name) or word(name).kind != kind
    }
    assert len(LISTED) > 300
    assert not wrong


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_computes_nothing_known_stays_unknown(name):
    """Waiting, control flow and the second half of an asynchronous pair are no operators."""
    assert word(name) is None


@pytest.mark.parametrize(
    ("names", "plain"),
    [("aten::gelu_ Gelu GeluV2 aclnnGelu torch.gelu", "gelu"),
     ("LayerNormV3 layer_norm aten::layer_norm", "layernorm"), ("cnnlMatMul aclnnMatMul", "matmul")],
)  # fmt: skip
def test_plain_names(names, plain):
    assert {bare(name) for name in names.split()} == {plain}


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("DT_BF16", Dtype.BF16), ("FLOAT16", Dtype.FP16), ("FLOAT", Dtype.FP32), ("float8_e4m3fn", Dtype.FP8), ("fp8_e5m2", Dtype.FP8),
     ("float8_e4m3fnuz", Dtype.FP8), ("F8E4M3FN", Dtype.FP8), ("torch.bfloat16", Dtype.BF16), ("c10::Half", Dtype.FP16),
     ("CUDA_R_16F", Dtype.FP16),
     ("ACL_FLOAT16", Dtype.FP16), ("s8", Dtype.INT8), ("pred", Dtype.BOOL), ("DT_INT64;DT_INT64", Dtype.INT64),
     ("bf16xbf16->fp32", Dtype.BF16),
     ("fp8/fp8/bf16", Dtype.FP8), ("HF32", Dtype.TF32), ("UINT8", Dtype.UINT8), ("hifloat8", Dtype.FP8), ("double", Dtype.FP64)],
)  # fmt: skip
def test_spellings_of_element_types(text, dtype):
    found = element_type(text)
    assert found is not None
    assert found[0] == dtype


@pytest.mark.parametrize("text", ["fp7", "bf61", "unknown", "", "float80", "x"])
def test_what_is_no_element_type(text):
    assert element_type(text) is None


@given(st.text(max_size=40))
def test_no_name_breaks_the_rules(name):
    word(name), bare(name), element_type(name)


def kernels(path) -> Counter[str]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = json.loads(text, strict=False)["traceEvents"]
    out: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and str(event.get("cat", "")).lower() == "kernel":
            out[event["name"]] += float(event.get("dur") or 0)
    return out


@pytest.mark.parametrize(
    ("name", "least"),
    [("a100_alexnet", 0.99), ("v100_nanoseconds", 0.99), ("mi300x_compiled_triton", 0.99), ("mi300x_llm_graph_decode", 0.99),
     ("pairs/bert_small_h100", 0.99), ("pairs/qwen_0.5b_mi300x", 0.99)],
)  # fmt: skip
def test_kernels_of_recordings_have_a_kind(shared, name, least):
    """Share of the device time whose kernels' names say what they compute."""
    found = kernels(shared / "traces" / f"{name}.json.gz")
    named = sum(seconds for kernel, seconds in found.items() if ran_of(kernel).kind != Kind.UNKNOWN)
    assert named >= least * found.total()


def test_every_operator_of_a_recorded_kernel_table_has_a_kind(shared):
    sheet = read_sheet(shared / "traces" / "ascend" / "kernel_details.csv")
    at = [name.lower() for name in sheet.header].index("type")
    types = {row[at] for row in sheet.rows if not missing(row[at])}
    assert {name for name in types if word(name) is None} == set()


def test_a_letter_too_many_is_no_kernel():
    """``gemmm`` once was taken for the name of a device kernel; names of kernels and frameworks stay what they are."""
    assert word("gemmm") is None
    assert "did you mean 'gemm'?" in unknown("gemmm")
    assert "did you mean 'softmax'?" in unknown("sofmax")
    assert "did you mean" not in unknown("frobnicate")
    assert word("sgemm") is not None
    assert word("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn") is not None
