"""Small files as the Ascend profilers write them, made from their public documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BASE = 1_700_000_000_000_000  # us

TENSORS = "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"
DETAILS = f"Step Id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim,{TENSORS},aic_mac_ratio"
SUMMARY = (
    "Device_id,Model Name,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),"
    f"Block Dim,{TENSORS}"
)
NONE = ",".join(["N/A"] * 6)


def timeline(rank_pid: int = 100) -> list[dict[str, Any]]:
    """Return a trace_view: an operator asks for a product (stream 2), a message of communicator 5 follows; the host waits for it."""
    names = [
        (rank_pid, "process_name", 0, "Python"), (200, "process_name", 0, "CANN"), (300, "process_name", 0, "Ascend Hardware"),
        (300, "thread_name", 2, "Stream 2"), (400, "process_name", 0, "Communication"), (400, "thread_name", 1, "Group 0 Communication"),
        (400, "thread_name", 2, "Plane 0"), (500, "process_name", 0, "Overlap Analysis"), (500, "thread_name", 0, "Computing"),
    ]  # fmt: skip
    metas = [{"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}} for pid, what, tid, name in names]

    def row(name: str, pid: int, tid: int, start: float, dur: float, **more: Any) -> dict[str, Any]:
        return {
            "ph": "X",
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": f"{BASE + int(start)}.{round(start % 1 * 1000):03d}",
            "dur": dur,
            **more,
        }

    def arrow(ph: str, cat: str, number: int, pid: int, tid: int, start: float) -> dict[str, Any]:
        return {**row("arrow", pid, tid, start, 0), "ph": ph, "cat": cat, "id": number}

    return [
        *metas,
        row("ProfilerStep#3", rank_pid, 1, 0, 100, cat="user_annotation"),
        row("aten::mm", rank_pid, 1, 1, 20, cat="cpu_op", args={"Sequence number": 7}),
        row("AscendCL@aclnnMm", 200, 9, 5, 10),
        row("aclnnMm_MatMulV2", 300, 2, 20.25, 30.5, args={"Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 11}),
        row("hcom_allReduce__5_0", 400, 1, 60, 25.0, args={}),
        row("Notify_Wait", 400, 2, 60, 15.0, args={}),
        row("Computing", 500, 0, 20.25, 30.5),
        arrow("s", "HostToDevice", 77, 200, 9, 6), arrow("f", "HostToDevice", 77, 300, 2, 20.25),
        arrow("s", "async_npu", 78, rank_pid, 1, 1), arrow("f", "async_npu", 78, 300, 2, 20.25),
    ]  # fmt: skip


def details() -> str:
    """Return kernel_details.csv of that timeline; cells carry the tab that keeps spreadsheets from rounding."""
    tensors = '"""64,32;32,16""",FLOAT16;FLOAT16,FRACTAL_NZ;FORMAT_ND,"""64,16""",FLOAT16,FORMAT_ND'
    product = f"3,11,2,aclnnMm_MatMulV2,MatMulV2,AI_CORE,{BASE + 20}.250\t,30.5,24,{tensors},0.875"
    message = f"3,N/A,N/A,hcom_allReduce__5_0,hcom_allReduce_,HCCL,{BASE + 60}.000\t,25,0,{NONE},N/A"
    return "\n".join((DETAILS, product, message)) + "\n"


def summary() -> str:
    """Return op_summary.csv of msprof: the same, and a task on AI CPU."""
    tensors = '"""64,32;32,16""",FLOAT16;FLOAT16,FORMAT_ND;FORMAT_ND,"""64,16""",FLOAT16,FORMAT_ND'
    gathered = '"""8,4;3""",FLOAT;INT64,FORMAT_ND;FORMAT_ND,"""3,4""",FLOAT,FORMAT_ND'
    product = f'0,N/A,11,2,aclnnMm_MatMulV2,MatMulV2,AI_CORE,"{BASE + 20}.250\t",30.5,0,24,{tensors}'
    index = f'0,N/A,12,2,aclnnIndex_IndexAiCpu,Index,AI_CPU,"{BASE + 55}.001\t",100.125,0,1,{gathered}'
    message = f"0,N/A,N/A,N/A,hcom_allReduce__5_0,hcom_allReduce_,COMMUNICATION,{BASE + 60},25.0,0,N/A,{NONE}"
    return "\n".join((SUMMARY, product, index, message)) + "\n"


def communication() -> dict[str, Any]:
    """Return communication.json: of 25 us the message waited 15 and moved data for 9."""
    times = {
        "Start Timestamp(us)": BASE + 60, "Elapse Time(ms)": 0.025, "Transit Time(ms)": 0.009, "Wait Time(ms)": 0.015,
        "Synchronization Time(ms)": 0.014, "Idle Time(ms)": 0.001, "Wait Time Ratio": 0.625, "Synchronization Time Ratio": 0.6,
    }  # fmt: skip
    links = {"HCCS": {"Transit Size(MB)": 1.5, "Transit Time(ms)": 0.009, "Bandwidth(GB/s)": 166.7}}
    one = {"Communication Time Info": times, "Communication Bandwidth Info": links}
    return {"step3": {"p2p": {}, "collective": {"hcom_allReduce__5_0@9000": one, "Total Op Info": one}}}


def steps(computing: float = 30.5) -> str:
    """Return step_trace_time.csv."""
    header = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
    return f"{header}\n0,3,{computing},25.0,0.0,25.0,9.25,55.5,0.0\n"


def write_rank(folder: Path, rank: int) -> Path:
    """Write the folder of one rank as torch_npu does; return its output folder."""
    home = folder / f"host_{rank}_20250101_ascend_pt"
    output = home / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (home / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank}))
    groups = {"9000": {"group_name": "default_group", "group_rank": rank, "global_ranks": [0, 1]}}
    (home / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": groups}))
    (output / "trace_view.json").write_text(json.dumps(timeline(100 + rank)))
    (output / "kernel_details.csv").write_text(details())
    (output / "communication.json").write_text(json.dumps(communication()))
    (output / "step_trace_time.csv").write_text(steps())
    raw = home / "PROF_000001_2025_ABC" / "mindstudio_profiler_output"
    raw.mkdir(parents=True)
    (raw / "msprof_1.json").write_text(json.dumps(timeline(100 + rank)))
    (raw / "op_summary_1.csv").write_text(summary())
    return output
