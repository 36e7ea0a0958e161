"""``workbench estimate --convolution``: at which channel count does Winograd stop paying on this card?"""

from __future__ import annotations

import json

import pytest

from workbench.cli import main

CHANNELS = (16, 64, 512)


def times(capsys, path, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(path), "--json", *arguments])
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    return [row["seconds"] for row in json.loads(out)["operators"]]


@pytest.fixture
def layers(tmp_path):
    path = tmp_path / "layers.csv"
    rows = [f"conv,fp16,16,{c},56,56,{c},3,3,1,1" for c in CHANNELS]
    path.write_text("\n".join(["op,dtype,N,C,H,W,K,R,S,pad_h,pad_w", *rows]) + "\n", encoding="utf-8")
    return path


def test_every_algorithm_by_name_and_the_cheapest_of_them(capsys, layers):
    names = ("direct", "implicit", "winograd", "winograd2", "winograd4", "fft")
    found = {name: times(capsys, layers, "--npu", "npu-x", "--convolution", name) for name in names}
    cheapest = times(capsys, layers, "--npu", "npu-x")
    assert cheapest == [min(column) for column in zip(*found.values(), strict=True)]
    assert found["winograd2"][0] > found["direct"][0]  # a cube waits for tiles that travel through memory
    assert found["winograd4"][2] < found["direct"][2]


def test_an_unknown_algorithm_is_wrong_usage(capsys, layers):
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(layers), "--npu", "npu-x", "--convolution", "winogard"])
    assert ended.value.code == 2
    assert "winograd2" in capsys.readouterr().err
