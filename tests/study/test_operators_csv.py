"""Files of operators: every column name of public tables, exact work, strict faults with file, line and column."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from workbench.errors import InvalidSpec, Refused, UnreadableInput
from workbench.operators.table import DIMS, Dtype, Kind
from workbench.study.operators_csv import read_operators


def write(tmp_path, text: str, name: str = "ops.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def one(tmp_path, text: str):
    table = read_operators(write(tmp_path, text)).table
    assert len(table) == 1
    kind = Kind(table.kind[0])
    return kind, Dtype(table.dtype[0]), dict(zip(DIMS[kind], table.dims[0].tolist(), strict=False)), table


def test_a_product(tmp_path):
    kind, dtype, dims, table = one(tmp_path, "device,op,dtype,B,M,N,K,latency_us\nX,bmm,bf16,3,5,7,11,2.5\n")
    assert (kind, dtype, dims) == (Kind.BATCHED_GEMM, Dtype.BF16, {"batch": 3, "m": 5, "n": 7, "k": 11})
    assert table.flops[0] == 2 * 3 * 5 * 7 * 11
    assert table.bytes_read[0] == 3 * (5 * 11 + 11 * 7) * 2
    assert table.measured_s[0] == pytest.approx(2.5e-6)


def test_a_convolution(tmp_path):
    head = "dtype,N,C,H,W,K,R,S,pad_h,pad_w,stride_h,stride_w,op,time_ms\n"
    kind, _, dims, table = one(tmp_path, f"{head}fp32,2,3,8,8,4,3,3,1,1,2,2,conv_bwd_input,1\n")
    assert kind == Kind.CONV_BACKWARD_DATA
    assert dims["groups"] == dims["dilation_h"] == dims["depth"] == 1
    assert table.flops[0] == 2 * 2 * 4 * 4 * 4 * 3 * 9  # 4 x 4 outputs: floor((8 + 2 - 3) / 2) + 1


def test_a_depthwise_convolution_has_one_group_a_channel(tmp_path):
    _, _, dims, table = one(tmp_path, "op,dtype,N,C,H,W,K,R,S,pad_h,pad_w\ndepthwise,fp16,1,64,56,56,64,3,3,1,1\n")
    assert dims["groups"] == 64
    assert table.flops[0] == 2 * 56 * 56 * 64 * 9
    kind, _, dims, _ = one(tmp_path, "layer,kind,m,n,k,groups\nd,depthwise,3136,1,9,64\n")  # stated as products
    assert (kind, dims) == (Kind.BATCHED_GEMM, {"batch": 64, "m": 3136, "n": 1, "k": 9})


def test_attention_of_a_measured_table(tmp_path):
    text = (
        "op,dtype,B,S,L,H,Hkv,D,window,latency_us\nattention_prefill,bf16,2,128,128,8,2,64,0,5\nattention_decode,bf16,2,1,512,8,2,64,0,5\n"
    )
    table = read_operators(write(tmp_path, text)).table
    assert table.dim("causal").tolist() == [1, 1]  # the past only: a window of decode reaches back, not ahead
    assert table.dim("kv_heads").tolist() == [2, 2]
    assert table.flops.tolist() == [4 * 2 * 8 * (128 * 129 / 2) * 64, 4 * 2 * 8 * 512 * 64]


def test_caches_and_kernels_of_attention(tmp_path):
    """The cache's own width in bits, 0 without one; kernels written once for all cards by their name."""
    head = "op,dtype,kv_dtype,B,S,L,H,Hkv,D,window,page_size,num_splits,kernel\n"
    rows = "attention_decode,bf16,fp8,1,1,512,8,2,64,128,16,4,triton\nattention_decode,bf16,,1,1,512,8,2,64,128,,,fa3\n"
    table = read_operators(write(tmp_path, head + rows)).table
    found = [[int(x) for x in table.dim(name)] for name in ("kv_bits", "page", "splits", "portable", "window")]
    assert found == [[8, 0], [16, 0], [4, 0], [1, 0], [128, 128]]
    assert table.flops.tolist() == [4 * 8 * 128 * 64] * 2
    assert "kv_bits=8" in table.signature[0] and "kv_bits" not in table.signature[1]
    with pytest.raises(InvalidSpec, match="unknown dtype 'fp7'"):
        read_operators(write(tmp_path, head + "attention_decode,bf16,fp7,1,1,512,8,2,64,0,,,\n"))


@pytest.mark.parametrize(
    ("name", "reads", "writes"), [("add", 2, 1), ("addu", 1, 1), ("relu", 1, 1), ("div", 2, 1), ("divu", 1, 1), ("silu_mul", 3, 2)]
)
def test_elementwise_operands(tmp_path, name, reads, writes):
    kind, _, _, table = one(tmp_path, f"op,dtype,rows,cols\n{name},fp32,10,20\n")
    assert kind == Kind.ELEMENTWISE
    assert (table.bytes_read[0], table.bytes_written[0]) == (reads * 800, writes * 800)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::addmm", Kind.GEMM), ("aclnnMatmul", Kind.GEMM), ("MatMulV2", Kind.GEMM), ("BatchMatMul", Kind.BATCHED_GEMM),
        ("dot_general", Kind.GEMM), ("linear", Kind.GEMM), ("GEMM", Kind.GEMM), ("conv2d", Kind.CONV_FORWARD),
        ("miopen_convolution", Kind.CONV_FORWARD), ("conv_bwd_weight", Kind.CONV_BACKWARD_WEIGHT),
        ("FlashAttentionScore", Kind.ATTENTION_FORWARD),
        ("FlashAttentionScoreGrad", Kind.ATTENTION_BACKWARD), ("layernorm", Kind.NORM), ("rmsnorm", Kind.NORM), ("LayerNormV3", Kind.NORM),
        ("softmax", Kind.SOFTMAX), ("SoftmaxV2", Kind.SOFTMAX), ("TransData", Kind.COPY), ("Cast", Kind.COPY), ("lstm_bwd", Kind.RNN),
        ("ReduceSum", Kind.REDUCTION), ("GatherV2", Kind.EMBEDDING), ("topk", Kind.SORT), ("ApplyAdamW", Kind.OPTIMIZER),
        ("mysterious", None),
    ],
)  # fmt: skip
def test_names_of_frameworks(name, kind):
    from workbench.operators.words import word

    found = word(name)
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind != Kind.UNKNOWN])
def test_the_name_of_a_kind_is_its_plain_forward_form(kind):
    from workbench.operators.words import word

    for name in (kind.name, kind.name.lower()):
        found = word(name)
        assert found.kind == kind
        assert not found.backward
        assert not found.depthwise


def test_softmax_and_norm_read_and_write_once(tmp_path):
    table = read_operators(write(tmp_path, "op,dtype,rows,cols\nsoftmax,fp32,10,20\nlayernorm,fp32,10,20\n")).table
    assert table.bytes_read.tolist() == [800, 800 + 2 * 20 * 4]
    assert table.bytes_written.tolist() == [800, 800]


def test_rows_that_say_too_little_are_listed_with_their_line_and_reason(tmp_path):
    text = "op,dtype,M,N,K\ngemm,bf16,64,N/A,64\ngemm,bf16,64,64,64\nmystery,bf16,1,1,1\ngemm,bf16,,,\n"
    found = read_operators(write(tmp_path, text))
    assert len(found.table) == 1
    assert [(found.sheet.line[row.row], row.why) for row in found.left_out] == [
        (2, "no value for n"), (4, "no rule knows the operator 'mystery'"), (5, "no value for m, n, k")
    ]  # fmt: skip
    assert sum(note.count for note in found.notes if note.code == "rows-left-out") == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("op,dtype,N,C,H,W,K,R,S\nconv,bf16,1,64,5,5,64,9,3\n", "a kernel of r = 9 is larger than the padded input of h = 5"),
        ("op,dtype,N,C,H,W,K,R,S,groups\nconv,bf16,1,64,8,8,64,3,3,7\n", "c = 64 is no multiple of 7 groups"),
        ("op,dtype,N,C,H,W,K,R,S,groups\nconv,bf16,1,64,8,8,66,3,3,4\n", "k = 66 is no multiple of 4 groups"),
        ("op,dtype,B,S,H,Hkv,D\nattention,bf16,1,64,32,5,64\n", "32 heads are no multiple of 5 kv_heads"),
    ],
)
def test_dimensions_that_contradict_each_other_are_no_operator(tmp_path, text, why):
    """They would be priced at 0 s or at a fraction of a channel; the fitting row beside them stays."""
    header, row = text.split("\n")[:2]
    fits = {"r = 9": ("5,5,64,9", "9,5,64,9"), "c = 64": ("3,7", "3,8"), "k = 66": ("66", "64"), "32 heads": ("32,5", "32,8")}
    old, new = next(change for key, change in fits.items() if key in why)
    found = read_operators(write(tmp_path, f"{header}\n{row}\n{row.replace(old, new)}\n"))
    assert [(row.row, row.why) for row in found.left_out] == [(0, why)]
    assert found.row.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("op,dtype,M,N,K\ngemm,bf16,64,64,6.5\n", "ops.csv:2: column 'k'", "not a count"),
        ("op,dtype,M,N,K\ngemm,bf16,64,-1,6\n", "ops.csv:2: column 'n'", "not a count"),
        ("op,dtype,M,N,K\ngemm,bf16,64,1e40,6\n", "ops.csv:2: column 'n'", "not a count"),
        ("# note\nop,dtype,M,N,K\ngemm,bf16,many,64,6\n", "ops.csv:3: column 'm'", "not a number"),
        ("op,dtype,M,N,K\ngemm,bf61,64,64,6\n", "ops.csv:2: column 'dtype'", "unknown dtype"),
        ("op,dtype,M,N,K,latency_us\ngemm,bf16,1,1,1,0\n", "ops.csv:2: column 'latency_us'", "not a positive time"),
        ("op,dtype,M,N,K,latency\ngemm,bf16,1,1,1,2\n", "ops.csv:1: column 'latency'", "no unit"),
        ("op,dtype,M,N,K,latency_us,time_ms\ngemm,bf16,1,1,1,2,3\n", "ops.csv:1", "two columns with a time"),
        ("op,dtype,M,N,K,k\ngemm,bf16,1,1,1,2\n", "ops.csv:1: column 'k'", "two columns of one name"),
        ("op,dtype,M,N,K,latencyus_\ngemm,bf16,1,1,1,2\n", "ops.csv:1: column 'latencyus_'", "unknown column"),
        ("op,dtype,M,N,K\ngemm,bf16,1,1\n", "ops.csv:2", "4 cells, but 5 columns"),
        ("op,dtype,B,S,L,H,D,mask\nattention,bf16,1,8,8,1,8,diagonal\n", "ops.csv:2: column 'mask'", "unknown mask"),
        ("op,dtype,N,C,H,W,K,R,S,stride_h\nconv,bf16,1,8,8,8,8,3,3,0\n", "ops.csv:2", "at least 1"),
        ("op,dtype,rows,cols\nadd,bf16,9000000000000000,2000000000\n", "ops.csv:2", "larger than any memory"),
        ("op,dtype,B,S,H,D\nattention,bf16,1,9000000000,8,64\n", "ops.csv:2: column 's'", "not a count"),  # pairs would overflow
        ("", "ops.csv:1", "empty"),
    ],
)
def test_faults_are_named(tmp_path, text, where, what):
    with pytest.raises(InvalidSpec) as error:
        read_operators(write(tmp_path, text))
    assert where in error.value.where
    assert what in error.value.what


def test_a_table_without_operators_is_refused(tmp_path):
    with pytest.raises(Refused, match="none of 1 row"):
        read_operators(write(tmp_path, "op,dtype\nfoo,bf16\n"))


def test_columns_are_renamed_and_rows_chosen(tmp_path):
    text = "machine;type of op;precision;rows of A;N;K;dauer\nA1;gemm;half;64;32;16;5\nB2;gemm;half;64;32;16;7\n"
    asked = {"type of op": "op", "precision": "dtype", "rows of A": "m", "dauer": "time_us"}
    found = read_operators(write(tmp_path, text), columns=asked, where={"machine": "B"})
    assert found.table.dims[0, :4].tolist() == [1, 64, 32, 16]
    assert found.table.measured_s.tolist() == pytest.approx([7e-6])
    with pytest.raises(InvalidSpec, match="no such column"):
        read_operators(write(tmp_path, text), columns={"price": "time_us"})
    with pytest.raises(InvalidSpec, match="no row begins with 'C'"):
        read_operators(write(tmp_path, text), where={"machine": "C"})


def test_case_17_counts_pairs_exactly(shared):
    """Figures of the case's own README."""
    found = read_operators(shared / "cases" / "field" / "17_attention_ops.csv").table
    assert found.flops.tolist() == [274877906944, 137472507904, 1099645845504, 2061617856512, 687362539520, 4294967296]


@pytest.mark.parametrize("name", ["gemm", "attention", "vector", "conv", "rnn", "mamf"])
def test_every_row_of_the_measured_tables_is_understood(shared, name):
    found = read_operators(shared / "measured" / "compute" / f"{name}.csv")
    assert not found.left_out
    assert np.isfinite(found.table.measured_s).all()
    assert not {note.code for note in found.notes} - {"dtype-translated"}


PROFILE = """Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,Output Shapes
1,mm1,MatMulV2,AI_CORE,1.0,1478.18,\"\"\"4096,12288;4608,12288\"\"\",FLOAT16;FLOAT16,\"\"\"4096,4608\"\"\"
1,bmm,BatchMatMul,AI_CORE,2.0,45.5,\"\"\"12,1024,512;12,512,1024\"\"\",DT_BF16;DT_BF16,\"\"\"12,1024,1024\"\"\"
1,ln,LayerNormV3,AI_VECTOR_CORE,3.0,359.5,\"\"\"1024,4,12288;12288;12288\"\"\",FLOAT16;FLOAT16;FLOAT16,\"\"\"1024,4,12288;1024,4,1\"\"\"
1,hcom,hcom_allReduce_,HCCL,4.0,1470.8,N/A,N/A,N/A
1,set,MemSet,AI_VECTOR_CORE,5.0,2.1,\"\"\"\"\"\",UNDEFINED,\"\"\"\"\"\"
"""


def test_the_kernel_table_of_a_profiler(tmp_path):
    """The second input of mm1 is transposed: n comes from the output, k from the first input."""
    found = read_operators(write(tmp_path, PROFILE))
    assert found.table.kind.tolist() == [Kind.GEMM, Kind.BATCHED_GEMM, Kind.NORM]
    assert found.table.dtype.tolist() == [Dtype.FP16, Dtype.BF16, Dtype.FP16]
    assert found.table.dims[0, :4].tolist() == [1, 4096, 4608, 12288]
    assert found.table.dims[1, :4].tolist() == [12, 1024, 1024, 512]
    assert found.table.dims[2, :2].tolist() == [4096, 12288]
    assert found.table.measured_s.tolist() == pytest.approx([1478.18e-6, 45.5e-6, 359.5e-6])
    assert [found.sheet.line[row.row] for row in found.left_out] == [5, 6]


def test_a_recorded_kernel_table(shared):
    found = read_operators(shared / "traces" / "ascend" / "kernel_details.csv")
    assert len(found.table) + len(found.left_out) == 591
    assert (found.table.kind == Kind.GEMM).sum() == 9
    assert (found.table.kind == Kind.BATCHED_GEMM).sum() == 4
    left = {row.name.lower()[:4] for row in found.left_out if "no rule" in row.why}
    assert left <= {"hcom", "stat", "nonz", "lpno"}  # collectives, random masks, data-dependent sizes, updates of a norm


SHEET = """<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>M</t></is></c><c r="D1" t="inlineStr"><is><t>N</t></is></c><c r="E1" t="inlineStr"><is><t>K</t></is></c></row>
<row r="3"><c r="A3" t="s"><v>2</v></c><c r="B3" t="inlineStr"><is><t>bf16</t></is></c><c r="C3"><v>64</v></c><c r="E3"><v>16</v></c><c r="D3"><v>32</v></c></row>
<row r="4"><c r="A4" t="s"><v>2</v></c><c r="B4" t="inlineStr"><is><t>bf16</t></is></c><c r="C4"><v>64</v></c></row>
</sheetData></worksheet>"""  # noqa: E501
TEXTS = """<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>op</t></si><si><r><t>dty</t></r><r><t>pe</t></r></si>
<si><t>gemm</t></si></sst>"""


def test_an_excel_workbook_is_read_like_the_csv(tmp_path):
    path = tmp_path / "ops.xlsx"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", SHEET)
        book.writestr("xl/sharedStrings.xml", TEXTS)
    found = read_operators(path)
    assert found.table.dims[0, :4].tolist() == [1, 64, 32, 16]
    assert [(found.sheet.line[row.row], row.why) for row in found.left_out] == [(4, "no value for n, k")]


@pytest.mark.parametrize(
    ("name", "content"), [("x.xlsx", b"PK\x03\x04broken"), ("x.xlsx", b""), ("x.parquet", b"PAR1"), ("x.csv", b"\xff\xfe\x00")]
)
def test_files_that_cannot_be_read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((UnreadableInput, InvalidSpec)):
        read_operators(path)
    with pytest.raises(UnreadableInput, match="cannot be read"):
        read_operators(tmp_path / "none.csv")
