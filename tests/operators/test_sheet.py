"""Tables as vendors deliver them: encodings, marks, titles, units in a row of their own, totals, merged cells, several sheets."""

from __future__ import annotations

import zipfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.errors import InvalidSpec, UnreadableInput, WorkbenchError
from workbench.operators.sheet import read_sheet, read_sheets
from workbench.operators.sheet_files import read_pages

ROWS = "op,dtype,M,N,K,time (\u00b5s)\n\u77e9\u9635\u4e58,bf16,1,2,3,5.5\n"


def write(tmp_path, content: str | bytes, name: str = "t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_encodings(tmp_path, encoding):
    found = read_sheet(write(tmp_path, ROWS.encode(encoding)))
    assert found.header[-1] == "time (\u00b5s)"
    assert found.rows == (("\u77e9\u9635\u4e58", "bf16", "1", "2", "3", "5.5"),)
    assert bool(found.notes) == (encoding not in ("utf-8", "utf-8-sig"))  # a guess is said


def test_a_lonely_high_byte_is_western(tmp_path):
    """B5 is the micro sign in Windows-1252; GB 18030 would join it with the next letter."""
    assert read_sheet(write(tmp_path, b"op,dtype,M,N,K,time (\xb5s)\ngemm,bf16,1,2,3,5.5\n")).header[-1] == "time (\u00b5s)"


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_marks_between_cells(tmp_path, mark):
    lines = [["op", "dtype", "shape", "time_us"], ["gemm", "bf16", '"1,2;2,3"', '"5,5"'], ["gemm", "bf16", '"4,2;2,3"', '"6,5"']]
    found = read_sheet(write(tmp_path, "\n".join(mark.join(line) for line in lines)))
    assert found.rows[1] == ("gemm", "bf16", "4,2;2,3", "6,5")


def test_excel_states_its_mark(tmp_path):
    assert read_sheet(write(tmp_path, "sep=|\nop|dtype,x|time_us\ngemm|a,b|1\n")).header == ("op", "dtype,x", "time_us")


TITLED = """Report of operator times
Device,NPU 9000,Date,2026-01-01
Clock: 1.8 GHz

op,dtype,M,N,K,time
,,,,,[us]
gemm,bf16,1,2,3,5
,,,
conv section
gemm,bf16,2,2,3,6
op,dtype,M,N,K,time
gemm,bf16,3,2,3,7
Total,,,,,18
sum,fp32,64,1,1,2
"""


def test_titles_units_sections_repeated_headers_and_totals(tmp_path):
    """Rows of operators stay with their line in the file; an operator called sum is none of the totals."""
    found = read_sheet(write(tmp_path, TITLED))
    assert found.header == ("op", "dtype", "M", "N", "K", "time [us]")
    assert found.header_line == 5
    assert found.line == (7, 10, 12, 14)
    assert "Clock: 1.8 GHz" in found.comments
    [note] = found.notes
    assert (note.code, note.count) == ("table-remarks", 3)  # section, header, total


def test_a_profilers_log_above_its_table(tmp_path):
    text = '==PROF== Connected\n==WARNING== x, y\n"ID","Kernel Name"\n"0","k"\n'
    assert read_sheet(write(tmp_path, text)).rows == (("0", "k"),)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("op,dtype,M\ngemm,bf16\n", "t.csv:2", "2 cells"),
        ("op,dtype,M\ngemm,bf16,1,2\n", "t.csv:2", "4 cells"),
        ("\n\n", "t.csv:1", "empty"),
    ],
)
def test_faults_are_named(tmp_path, text, where, what):
    with pytest.raises(InvalidSpec, match=what) as error:
        read_sheet(write(tmp_path, text))
    assert where in error.value.where


@pytest.mark.parametrize("content", [b"\xd0\xcf\x11\xe0rest", b"\xff\xfe\x00", b"a\0b,c\n\0\0", b"PK\x03\x04", b"PAR1broken"])
def test_unreadable(tmp_path, content):
    with pytest.raises(UnreadableInput):
        read_sheet(write(tmp_path, content))


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LINKS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def workbook(path, sheets: dict[str, list[list[str]]], merged: dict[str, list[str]] | None = None, hidden: tuple[str, ...] = ()):
    """Write a workbook by hand (ECMA-376): inline texts, sheets by name, merged ranges."""
    names, links = "", ""
    with zipfile.ZipFile(path, "w") as book:
        for at, (title, rows) in enumerate(sheets.items(), 1):
            state = ' state="hidden"' if title in hidden else ""
            names += f'<sheet name="{title}" sheetId="{at}"{state} r:id="r{at}"/>'
            links += f'<Relationship Id="r{at}" Target="worksheets/sheet{at}.xml"/>'
            cells = "".join(
                f'<row r="{line}">' + "".join(
                    f'<c r="{chr(65 + column)}{line}" t="inlineStr"><is><t>{text}</t></is></c>' for column, text in enumerate(row) if text
                ) + "</row>"
                for line, row in enumerate(rows, 1)
            )  # fmt: skip
            ranges = "".join(f'<mergeCell ref="{ref}"/>' for ref in (merged or {}).get(title, []))
            book.writestr(
                f"xl/worksheets/sheet{at}.xml",
                f"<worksheet {MAIN}><sheetData>{cells}</sheetData><mergeCells>{ranges}</mergeCells></worksheet>",
            )
        book.writestr("xl/workbook.xml", f"<workbook {MAIN} {LINKS}><sheets>{names}</sheets></workbook>")
        book.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{links}</Relationships>")
    return path


def test_a_workbook_with_titles_merged_names_and_several_sheets(tmp_path):
    head = ["op", "dtype", "M", "N", "K", "time_us"]
    path = workbook(
        tmp_path / "v.xlsx",
        {
            "About": [["Vendor", "Acme"]],
            "GEMM": [["Products"], head, ["gemm", "bf16", "1", "2", "3", "5"], ["", "fp16", "1", "2", "3", "6"], ["", "", "", "", "", ""]],
            "Old": [head, ["gemm", "bf16", "1", "2", "3", "99"]],
        },
        merged={"GEMM": ["A1:F1", "A3:A4"]},
        hidden=("Old",),
    )
    found = {sheet.path.partition("[")[2]: sheet for sheet in read_sheets(path)}
    assert list(found) == ["About]", "GEMM]"]
    assert [row[0] for row in found["GEMM]"].rows] == ["gemm", "gemm"]  # merged downwards
    assert found["GEMM]"].line == (3, 4)
    first = read_sheet(path)  # the one that looks like a table
    assert first.path.endswith("[GEMM]")
    assert [note.code for note in first.notes] == ["sheets-not-read"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode), st.binary(max_size=60).map(lambda b: b"PK\x03\x04" + b)))
def test_no_file_breaks_the_reader(tmp_path, content):
    with suppress(WorkbenchError):
        read_sheet(write(tmp_path, content, "f.csv"))


cell = st.sampled_from(["op", "dtype", "M", "time_us", "gemm", "bf16", "1", "5,5", "[us]", "", "Total", "#", "N/A", '"', "x" * 40, "1,2;3"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(cell, max_size=7), max_size=9), st.sampled_from([",", ";", "\t"]))
def test_no_table_breaks_the_reader(tmp_path, rows, mark):
    with suppress(WorkbenchError):
        found = read_sheet(write(tmp_path, "\n".join(mark.join(row) for row in rows), "g.csv"))
        assert all(len(row) == len(found.header) for row in found.rows)
        assert len(found.line) == len(found.rows)


def test_damage_inside_a_workbook_is_unreadable_input(tmp_path):
    good = workbook(tmp_path / "v.xlsx", {"A": [["op", "dtype", "time_us"], ["gemm", "bf16", "1"]]}).read_bytes()
    for at in range(0, len(good), 17):
        raw = good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]
        with suppress(WorkbenchError):
            read_pages(raw, "v.xlsx")
