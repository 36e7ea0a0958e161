"""Record the CPU sample traces: ``python data/traces/record.py [FOLDER]`` (needs ``pip install -e .[record]``).

Training steps (forward, backward, optimizer) of a small ResNet and a small transformer, each at two batch sizes, on one
thread, with shapes. Beside the traces, ``recorded.yaml`` holds the step time measured *without* the profiler: a profiled
step is longer, and a prediction has to be compared with the former. Stacks, paths and host names are not kept.
"""

from __future__ import annotations

import gzip
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import yaml
from torch import Tensor, nn
from torch.nn import functional

PROFILED, WARM, TIMED = 5, 3, 60
KEPT_KEYS = ("schemaVersion", "deviceProperties", "record_shapes", "displayTimeUnit", "baseTimeNanoseconds")
DROPPED_ARGUMENTS = ("Call stack", "Module Hierarchy", "Trace name", "Python id", "Python parent id", "Python module id")


class Block(nn.Module):
    """A basic residual block: two 3x3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output [batch, outputs, height / stride, width / stride]."""
        inner = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


def resnet() -> nn.Module:
    """Return an 8-layer residual network for images [batch, 3, 32, 32] in 10 classes."""
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    blocks = [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Transformer(nn.Module):
    """Two pre-norm encoder layers with causal attention over tokens [batch, 64], and a language-model head."""

    def __init__(self, vocabulary: int = 1024, width: int = 256, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "norm2": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits [batch * length, vocabulary]."""
        x = self.embedding(tokens)
        batch, length, width = x.shape
        for layer in self.layers:
            parts = layer["qkv"](layer["norm1"](x)).view(batch, length, 3, self.heads, width // self.heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + layer["out"](mixed.transpose(1, 2).reshape(batch, length, width))
            x = x + layer["down"](functional.gelu(layer["up"](layer["norm2"](x))))
        return self.head(x).view(batch * length, -1)


def training_step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Callable[[], None]:
    """Return a function that runs one step: forward, backward, optimizer."""

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def workloads() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield name and step function of each recording."""
    for batch in (8, 16):
        model = resnet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        inputs, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
        yield f"cpu_resnet_b{batch}", training_step(model, optimizer, inputs, labels)
    for batch in (4, 8):
        transformer = Transformer()
        adam = torch.optim.AdamW(transformer.parameters(), lr=1e-3)
        tokens, targets = torch.randint(1024, (batch, 64)), torch.randint(1024, (batch * 64,))
        yield f"cpu_transformer_b{batch}", training_step(transformer, adam, tokens, targets)


def unprofiled(step: Callable[[], None]) -> list[float]:
    """Return the seconds of `TIMED` steps without the profiler, after warm-up."""
    seconds = []
    for index in range(WARM + TIMED):
        begin = time.perf_counter()
        step()
        if index >= WARM:
            seconds.append(time.perf_counter() - begin)
    return seconds


def profiled(step: Callable[[], None]) -> dict[str, object]:
    """Return the profiler's document over `PROFILED` steps."""
    schedule = torch.profiler.schedule(wait=0, warmup=WARM, active=PROFILED, repeat=1)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        with torch.profiler.profile(
            activities=activities, schedule=schedule, record_shapes=True, on_trace_ready=lambda p: p.export_chrome_trace(str(path))
        ) as profiler:
            for _ in range(WARM + PROFILED):
                step()
                profiler.step()
        return json.loads(path.read_text())


def stripped(document: dict[str, object]) -> dict[str, object]:
    """Return the document without stacks, frames, and names of programs, paths and hosts."""
    events = [event for event in document["traceEvents"] if event.get("cat") != "python_function"]
    for event in events:
        arguments = event.get("args", {})
        for key in DROPPED_ARGUMENTS:
            arguments.pop(key, None)
        if event.get("ph") == "M" and event["name"] in ("process_name", "thread_name"):
            arguments["name"] = "python" if event["name"] == "process_name" else f"thread {event['tid']}"
    return {**{key: document[key] for key in KEPT_KEYS if key in document}, "traceEvents": events}


def cpu_model() -> str:
    """Return the processor's model name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def record(folder: Path) -> None:
    """Write the traces and ``recorded.yaml`` into a folder."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    entries = {}
    for name, step in workloads():
        seconds = unprofiled(step)
        text = json.dumps(stripped(profiled(step)), separators=(",", ":"))
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        quantiles = statistics.quantiles(seconds, n=10)
        entries[f"{name}.json.gz"] = {
            "source": f"recorded by this project with data/traces/record.py, PyTorch {torch.__version__.split('+')[0]} on a CPU",
            "unprofiled_step_s": round(statistics.median(seconds), 7),
            "unprofiled_step_p10_s": round(quantiles[0], 7),
            "unprofiled_step_p90_s": round(quantiles[-1], 7),
            "unprofiled_steps": TIMED,
            "profiled_steps": PROFILED,
            "torch": torch.__version__.split("+")[0],
            "threads": torch.get_num_threads(),
            "cpu": cpu_model(),
        }
    header = "# Written by record.py: step times measured without the profiler, just before each recording.\n"
    (folder / "recorded.yaml").write_text(header + yaml.safe_dump(entries, sort_keys=False, width=140))


if __name__ == "__main__":
    record(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
