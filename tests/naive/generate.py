"""Write the synthetic sample traces and their known answers: ``python -m tests.naive.generate [FOLDER]``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.naive.answers import answers
from tests.naive.executor import execute
from tests.naive.kineto import document, packed
from tests.naive.programs import data_parallel, launch_bound, one_card, queue_full

PROGRAMS = {
    "synthetic_ddp": data_parallel,
    "synthetic_launch_bound": launch_bound,
    "synthetic_one_card": one_card,
    "synthetic_queue_full": queue_full,
}
HEADER = "# Known answers [ns] of the synthetic traces. Written with them by: python -m tests.naive.generate\n"


def files() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file."""
    known = {}
    for name, program in PROGRAMS.items():
        rows = execute(program())
        yield f"{name}.json.gz", packed(document(rows))
        source = f"tests/naive/programs.py: {program.__name__}(), timed by the event simulator tests/naive/executor.py"
        known[f"{name}.json.gz"] = {"source": source, **answers(rows)}
    yield "synthetic.yaml", (HEADER + yaml.safe_dump(known, sort_keys=False, width=140)).encode()


def main(folder: Path) -> None:
    """Write every file into a folder."""
    for name, content in files():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "data" / "traces")
