"""Programs for the naive executor: a data-parallel training step, launch-bound inference, a full launch queue.

Each is a function, so that a test can change one number, drop a launch or delay a thread and execute it again.
Durations are near an A100's, so that pricing them on its specification makes sense, but nothing depends on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.naive.actions import Action, Await, Begin, End, Launch, Program, Record, Signal, Synchronize, Wait, Work

COMPUTE, COMMUNICATION, COPY = 7, 20, 24  # streams, numbered as PyTorch's usually come out
BF16 = "c10::BFloat16"
Shape = tuple[int, ...]

GEMM = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_{}"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{0}, std::array<char*, {1}ul> >(int, at::native::{0})"
LAYER_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)"
LAYER_NORM_BACKWARD = "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>(int)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*, int)"
GELU = ELEMENTWISE.format("GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}", 2)
GELU_BACKWARD = ELEMENTWISE.format("GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}", 3)
ADD = ELEMENTWISE.format("CUDAFunctor_add<c10::BFloat16>", 3)
MULTIPLY = ELEMENTWISE.format("BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::MulFunctor<float> >", 3)
ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<float, 4> >(float)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4> >(float)"


def gemm_ns(m: int, n: int, k: int) -> int:
    """Return how long a bf16 product lasts here [ns]: 4 us and 200 TFLOP/s."""
    return 4_000 + round(2 * m * n * k / 200e3)


def stream_ns(shape: Shape, passes: int, element_bytes: int = 2) -> int:
    """Return how long ``passes`` reads or writes of a tensor last here [ns]: 2 us and 1.4 TB/s."""
    size = element_bytes * passes
    for extent in shape:
        size *= extent
    return 2_000 + round(size / 1400)


@dataclass
class Thread:
    """Collects the actions of one host thread."""

    actions: list[Action] = field(default_factory=list)

    def do(self, *actions: Action) -> None:
        """Append actions."""
        self.actions.extend(actions)

    @contextmanager
    def op(self, name: str, *dims: Shape, before: int = 3_000, after: int = 1_000, **more: object) -> Iterator[None]:
        """Open an operator; ``before`` and ``after`` are its own work around what it encloses [ns]."""
        begin = Begin(name, dims or None, (BF16,) * len(dims))
        self.do(replace(begin, **more), Work(before))  # type: ignore[arg-type]
        yield
        self.do(Work(after), End())

    def kernel(self, op: str, kernel: str, ns: int, *dims: Shape, stream: int = COMPUTE, **more: object) -> None:
        """Append an operator that launches one kernel."""
        with self.op(op, *dims, **more):  # type: ignore[arg-type]
            self.do(Launch(kernel, stream, ns))

    def linear(self, rows: int, inputs: int, outputs: int, sequence: int = -1) -> None:
        """Append ``aten::linear`` on [rows, inputs] x [outputs, inputs]^T."""
        with self.op("aten::linear", (rows, inputs), (outputs, inputs), (outputs,)):
            with self.op("aten::t", (outputs, inputs), before=1_000, after=500):
                pass
            operands = (outputs,), (rows, inputs), (inputs, outputs)
            self.kernel("aten::addmm", GEMM.format("tn"), gemm_ns(rows, outputs, inputs), *operands, sequence=sequence)

    def read_back(self) -> None:
        """Append ``tensor.item()``: a blocking copy to the host and a stream synchronisation."""
        with self.op("aten::item", ()), self.op("aten::_local_scalar_dense", ()):
            args = {"bytes": 4, "memory bandwidth (GB/s)": 0.002}
            self.do(Launch("Memcpy DtoH (Device -> Pageable)", COMPUTE, 1_500, "gpu_memcpy", "cudaMemcpyAsync", True, args))
            self.do(Synchronize(stream=COMPUTE))


def data_parallel(steps: int = 3, layers: int = 6, width: int = 4096, tokens: int = 4096, all_reduce_ns: int = 950_000) -> Program:
    """Return a training step of ``layers`` MLP blocks on 8 data-parallel ranks, seen from rank 0.

    The backward pass runs on a thread of its own and hands every second layer's gradients to an all-reduce on the communication
    stream, behind an event; the optimizer waits for the last of them. While a step runs, the batch of the next one is copied
    from pinned memory on a third stream. Each step ends by reading the loss; later steps wait a little longer for their data.
    """
    main, autograd = Thread(), Thread()
    _prefetch(main, (tokens, width), "batch-0")
    for step in range(steps):
        main.do(Begin(f"ProfilerStep#{step + 3}", category="user_annotation"), Work(20_000 + 7_000 * step))
        main.do(Wait(f"batch-{step}", COMPUTE))
        _forward(main, layers, width, tokens, first_sequence=step * 100)
        if step + 1 < steps:
            _prefetch(main, (tokens, width), f"batch-{step + 1}")
        main.do(Work(8_000), Signal(f"backward-{step}"), Await(f"gradients-{step}"))
        autograd.do(Await(f"backward-{step}"))
        _backward(autograd, layers, width, tokens, first_sequence=step * 100, all_reduce_ns=all_reduce_ns)
        autograd.do(Signal(f"gradients-{step}"))
        _optimizer(main, layers, width)
        main.read_back()
        main.do(Work(20_000), End(), Work(12_000))
    return Program({"main": tuple(main.actions), "autograd": tuple(autograd.actions)})


def one_card(steps: int = 2, layers: int = 20, width: int = 4096, tokens: int = 57_344) -> Program:
    """Return a training step of ``layers`` MLP blocks on one card, whose fp32 gradients are accumulated one by one.

    As given: 20 x 2 x 4096 x 2048 parameters, 1.34 GB of gradients (as many as BERT-large has), and about two thirds of a second.
    """
    main, autograd = Thread(), Thread()
    for step in range(steps):
        main.do(Begin(f"ProfilerStep#{step + 1}", category="user_annotation"), Work(20_000))
        _forward(main, layers, width, tokens, first_sequence=step * 100)
        main.do(Work(8_000), Signal(f"backward-{step}"), Await(f"gradients-{step}"))
        autograd.do(Await(f"backward-{step}"))
        _backward(autograd, layers, width, tokens, first_sequence=step * 100, all_reduce_ns=0)
        autograd.do(Signal(f"gradients-{step}"))
        _optimizer(main, layers, width)
        main.read_back()
        main.do(Work(20_000), End(), Work(12_000))
    return Program({"main": tuple(main.actions), "autograd": tuple(autograd.actions)})


def _prefetch(thread: Thread, batch: Shape, event: str) -> None:
    """Append the copy of a batch on its own stream, and the record of the event that tells its end."""
    size = 2 * batch[0] * batch[1]
    with thread.op("aten::to", batch), thread.op("aten::_to_copy", batch), thread.op("aten::copy_", batch, batch):
        args = {"bytes": size, "memory bandwidth (GB/s)": 24.0}
        thread.do(Launch("Memcpy HtoD (Pinned -> Device)", COPY, size // 24, "gpu_memcpy", "cudaMemcpyAsync", args=args))
    thread.do(Record(event, COPY))


def _forward(thread: Thread, layers: int, width: int, tokens: int, first_sequence: int) -> None:
    """Append layer norm, a linear layer to half the width, GELU, a linear layer back and a residual sum, per layer."""
    hidden, inner = (tokens, width), width // 2
    for layer in range(layers):
        sequence = first_sequence + 5 * layer
        thread.kernel("aten::native_layer_norm", LAYER_NORM, stream_ns(hidden, 2), hidden, (width,), (width,), sequence=sequence)
        thread.linear(tokens, width, inner, sequence + 1)
        thread.kernel("aten::gelu", GELU, stream_ns((tokens, inner), 2), (tokens, inner), sequence=sequence + 2)
        thread.linear(tokens, inner, width, sequence + 3)
        thread.kernel("aten::add", ADD, stream_ns(hidden, 3), hidden, hidden, sequence=sequence + 4)


def _backward(thread: Thread, layers: int, width: int, tokens: int, first_sequence: int, all_reduce_ns: int) -> None:
    """Append the gradients of `_forward` from the last layer to the first, and the all-reduce of every second layer's."""
    inner, hidden = width // 2, (tokens, width)
    for layer in reversed(range(layers)):
        sequence = first_sequence + 5 * layer
        _linear_backward(thread, tokens, inner, width, sequence + 3, accumulate=not all_reduce_ns)
        with _evaluated(thread, "GeluBackward0", sequence + 2):
            shape = (tokens, inner)
            thread.kernel("aten::gelu_backward", GELU_BACKWARD, stream_ns(shape, 3), shape, shape)
        _linear_backward(thread, tokens, width, inner, sequence + 1, accumulate=not all_reduce_ns)
        with _evaluated(thread, "NativeLayerNormBackward0", sequence):
            thread.kernel("aten::native_layer_norm_backward", LAYER_NORM_BACKWARD, stream_ns(hidden, 4), hidden, hidden)
        if layer % 2 == 0 and all_reduce_ns:
            _all_reduce(thread, 2 * 2 * width * inner, all_reduce_ns, f"bucket-{first_sequence}-{layer}")
    for layer in reversed(range(0, layers, 2)) if all_reduce_ns else ():
        thread.do(Wait(f"bucket-{first_sequence}-{layer}-done", COMPUTE))


@contextmanager
def _evaluated(thread: Thread, node: str, sequence: int) -> Iterator[None]:
    """Open the pair of operators that the autograd engine records around a backward function."""
    with thread.op(f"autograd::engine::evaluate_function: {node}"), thread.op(node, sequence=sequence):
        yield


def _linear_backward(thread: Thread, rows: int, inputs: int, outputs: int, sequence: int, accumulate: bool) -> None:
    """Append both products of a linear layer's gradient."""
    with _evaluated(thread, "AddmmBackward0", sequence):
        gradient, weight = (rows, outputs), (outputs, inputs)
        thread.kernel("aten::mm", GEMM.format("nn"), gemm_ns(rows, inputs, outputs), gradient, weight)
        thread.kernel("aten::mm", GEMM.format("nt"), gemm_ns(outputs, inputs, rows), (outputs, rows), (rows, inputs))
    if accumulate:
        name = "torch::autograd::AccumulateGrad"
        with thread.op(f"autograd::engine::evaluate_function: {name}"), thread.op(name, weight, types=("float",)):
            pass


def _all_reduce(thread: Thread, elements: int, ns: int, event: str) -> None:
    """Append an all-reduce on the communication stream behind everything queued for compute so far."""
    size = {"In msg nelems": elements, "Out msg nelems": elements, "dtype": "BFloat16"}
    group = {"Group size": 8, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}
    collective = {"Collective name": "allreduce", **size, **group}
    with thread.op("c10d::allreduce_", (elements,), before=6_000):
        thread.do(Record(event, COMPUTE), Wait(event, COMMUNICATION))
        with thread.op("record_param_comms", (elements,), args=collective), thread.op("nccl:all_reduce", category="user_annotation"):
            thread.do(Launch(ALL_REDUCE, COMMUNICATION, ns, call="cudaLaunchKernelExC", args=collective))
        thread.do(Record(f"{event}-done", COMMUNICATION))


def _optimizer(thread: Thread, layers: int, width: int) -> None:
    """Append one fused Adam step over the parameters, in fp32, split in two launches."""
    shape = (layers * width * width // 2,)
    with thread.op("Optimizer.step#AdamW.step", category="user_annotation"), thread.op("aten::_fused_adamw_", before=40_000):
        for _ in range(2):
            thread.do(Launch(ADAM, COMPUTE, stream_ns(shape, 7, 4)), Work(5_000))


def launch_bound(steps: int = 3, layers: int = 12, width: int = 1024) -> Program:
    """Return inference of one token at batch 1: hundreds of kernels shorter than their launch, and a read-back a token."""
    main = Thread()
    row = (1, width)
    for step in range(steps):
        main.do(Begin(f"ProfilerStep#{step + 1}", category="user_annotation"))
        for _ in range(layers):
            main.kernel("aten::native_layer_norm", LAYER_NORM, stream_ns(row, 2), row, (width,), (width,))
            main.linear(1, width, 3 * width)
            main.kernel("aten::_softmax", SOFTMAX, stream_ns((16, 1, 512), 2), (16, 1, 512))
            main.linear(1, width, width)
            main.kernel("aten::add", ADD, stream_ns(row, 3), row, row)
            main.linear(1, width, 4 * width)
            main.kernel("aten::gelu", GELU, stream_ns((1, 4 * width), 2), (1, 4 * width))
            main.linear(1, 4 * width, width)
        main.kernel("aten::argmax", ARGMAX, 6_000, (1, 32_000))
        main.read_back()
        main.do(Work(15_000), End(), Work(5_000))
    return Program({"main": tuple(main.actions)})


def queue_full(steps: int = 3, launches: int = 40, depth: int = 8) -> Program:
    """Return a host that runs ahead until the launch queue of ``depth`` is full and then blocks in its launch calls."""
    main = Thread()
    shape = (16_384, 8_192)
    for step in range(steps):
        main.do(Begin(f"ProfilerStep#{step + 1}", category="user_annotation"))
        for index in range(launches):
            kernel, name = (MULTIPLY, "aten::mul") if index % 2 else (ADD, "aten::add")
            main.kernel(name, kernel, stream_ns(shape, 3), shape, shape)
        main.do(Synchronize(), Work(10_000), End(), Work(5_000))
    return Program({"main": tuple(main.actions)}, queue_depth=depth)
