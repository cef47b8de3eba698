"""Does an 8B model train on this GPU as planned? One actor and one critic step at 4k and 16k tokens, in minutes.

    python -m tests.gpu.check_8b [--config tiny|llama-3.1-8b] [--device auto] [--lengths 4096 16384] [--out FILE]

Nothing is downloaded: the base is a Llama-3.1-8B with random weights, quantized to NF4 on loading by the code that
loads a real one, with the four roles. Steps are taken by the trainers that a run uses: ``ActorTrainer`` and
``CriticTrainer``, one row an update, recomputing layers. Of three updates the first warms up; peak and seconds are
those of the other two. Checked, and told by the exit status (0 or 1):

* the measured peak is within 15 % of the planner's (``memory_terms.estimate``; the driver's own memory is in neither);
* gradients with and without recomputing agree on this card (``SharedBase.check_gradients``);
* loss and gradients are finite, the first update's log ratio is near 0 (``ActorTrainer`` refuses otherwise);
* each training changes the role it trains and no other.

Operations are counted as two for each weight and token of the linear layers (forward), as many again backward, for
frozen weights have no gradient of their own, and once more for recomputing. An adapter's weights count twice backward.
Attention counts half of all pairs (it is causal), twice as much backward; what a fused kernel computes again inside
counts nothing, nor does unpacking 4-bit weights. The output layer counts for the action's tokens only. ``executed``
has the recomputing in it, ``useful`` has not; each is a fraction of what one large bfloat16 matrix product reaches on
the same card just before.

The last line is one JSON object.
"""

import argparse
import contextlib
import dataclasses
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback

from webrl_lite.actor import ActorArguments, ActorTrainer
from webrl_lite.base_model import pick_device
from webrl_lite.config import Config, ModelConfig
from webrl_lite.critic import CriticArguments, CriticTrainer
from webrl_lite.experience import Experience
from webrl_lite.memory_terms import Load, Setup, adapter_parameters, estimate
from webrl_lite.model import ROLES, SharedBase
from webrl_lite.model_shape import SHAPES, ModelShape
from webrl_lite.role_trainer import RoleTrainer

GIB = 2**30
TOLERANCE = 0.15
"""Most relative difference between planned and measured peak."""
UPDATES = 3
"""Rows, each an update of its own; the first is not measured."""
NOISE = 0.02
"""Spread of the random weights, the one that Llama's configuration states."""

CONFIGS = {
    # config.json of meta-llama/Llama-3.1-8B-Instruct
    "llama-3.1-8b": LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        bos_token_id=128000,
        eos_token_id=128009,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
    "tiny": LlamaConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
    ),
}
LENGTHS = {"llama-3.1-8b": (4096, 16384), "tiny": (64, 128)}
ACTION = {"llama-3.1-8b": 256, "tiny": 8}
"""Tokens of an action."""


@dataclass(frozen=True)
class Measured:
    """One role's training at one length."""

    stage: str
    length: int
    planned: int
    """Bytes at the peak, by the planner."""
    peak: int | None
    """Bytes at the peak, by the card; None on a CPU."""
    seconds: float | None
    """Of an update, the median; None if none was taken."""
    executed: float
    """Operations of an update, recomputing included."""
    useful: float
    """Operations of an update, recomputing left out."""
    ceiling: float
    """Operations a second of a large matrix product."""
    faults: tuple[str, ...] = ()

    @property
    def off(self) -> float | None:
        """Planned over measured peak, minus 1; None if it was not measured."""
        return None if self.peak is None else self.planned / self.peak - 1

    def failures(self) -> list[str]:
        """Return what is wrong, each in one line."""
        found = [f"{self.stage} at {self.length}: {fault}" for fault in self.faults]
        if self.off is not None and not abs(self.off) <= TOLERANCE:
            found.append(
                f"{self.stage} at {self.length}: the planner is off by {self.off:+.1%}, more than {TOLERANCE:.0%}"
            )
        return found

    def to_json(self) -> dict[str, float | int | str | None]:
        """Return the figures."""
        per_second = None if self.seconds is None else 1 / self.seconds
        return {
            "stage": self.stage,
            "length": self.length,
            "planned_gib": self.planned / GIB,
            "peak_gib": None if self.peak is None else self.peak / GIB,
            "planner_off": self.off,
            "seconds": self.seconds,
            "tokens_per_s": per_second and self.length * per_second,
            "ceiling_tokens_per_s": self.length * self.ceiling / self.executed,
            "executed_tflops": per_second and self.executed * per_second / 1e12,
            "executed_fraction": per_second and self.executed * per_second / self.ceiling,
            "useful_fraction": per_second and self.useful * per_second / self.ceiling,
        }


# The base -----------------------------------------------------------------------------------------------------------


def write_base(folder: Path, config: LlamaConfig) -> None:
    """Write a base with random weights that ``SharedBase.load`` reads, without a file of the model's size.

    All matrices are windows, at different places, of one block of random numbers as large as the largest of them; the
    file holds this block once (1 GB for the 8B model), and loading quantizes one matrix after the other.
    """
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in LlamaForCausalLM(config).state_dict().items()}
    generator = torch.Generator().manual_seed(0)
    largest = max(shape.numel() for shape in shapes.values())
    block = torch.empty(largest + 64 * len(shapes), dtype=torch.bfloat16)
    for part in block.split(2**24):  # in parts, or a float32 copy of all would be made
        part.copy_(NOISE * torch.randn(part.shape, generator=generator))
    weights = {}
    for number, (name, shape) in enumerate(shapes.items()):
        if len(shape) == 1:
            weights[name] = torch.ones(shape, dtype=torch.bfloat16)
        else:
            first = 64 * number + (number * 7_919_023) % (largest - shape.numel() + 1)
            weights[name] = block[first : first + shape.numel()].view(shape)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(weights, folder / "pytorch_model.bin")  # unlike safetensors, it stores what tensors share once
    described = LlamaConfig.from_dict(config.to_dict() | {"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"})
    described.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"<begin>": 0, "<end>": 1}, unk_token="<begin>"))
    PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<begin>", eos_token="<end>").save_pretrained(folder)


# Counting -----------------------------------------------------------------------------------------------------------


def operations(shape: ModelShape, setup: Setup, length: int, action: int) -> tuple[float, float]:
    """Return the operations of one update with one row, (executed, useful): with recomputing and without.

    Args:
        shape: the model.
        setup: gives the adapters.
        length: tokens of the row.
        action: positions that go through the output layer; 0 for the critic.
    """
    frozen = 2 * shape.linear_weights * length
    adapters = 2 * adapter_parameters(shape, setup) * length
    attention = 2 * shape.layers * shape.queries * length**2  # two products, each over half of all pairs
    output = 2 * shape.vocab_size * shape.hidden_size * action
    layers = frozen + adapters + attention
    backward = frozen + 2 * adapters + 2 * attention + output
    useful = layers + output + backward
    return useful + layers, useful


def matmul_ceiling(device: torch.device) -> float:
    """Return the operations a second of a square matrix product in bfloat16, the best of ten."""
    size = 8192 if device.type == "cuda" else 256
    one, other = (torch.randn(size, size, device=device).to(torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(12):
        _wait(device)
        start = time.perf_counter()
        one @ other
        _wait(device)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times[2:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# Measuring ----------------------------------------------------------------------------------------------------------


class Watch(TrainerCallback):
    """Takes the seconds of every update but the first, and the peak of memory since then."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: list[float] = []
        self._start = 0.0

    def on_step_begin(self, args: object, state: object, control: object, **kwargs: object) -> None:
        _wait(self.device)
        self._start = time.perf_counter()

    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        _wait(self.device)
        if state.global_step > 1:
            self.seconds.append(time.perf_counter() - self._start)
        elif self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> int | None:
        """Return bytes at the peak, None where the device does not count."""
        return torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else None


def experience(shared: SharedBase, length: int, action: int, vocabulary: int) -> list[Experience]:
    """Return rows of random tokens, scored by the actor as it is; by turns it should come to like them and not."""
    generator = torch.Generator().manual_seed(length)
    rows = []
    for number in range(UPDATES):
        ids = tuple(torch.randint(2, vocabulary, (length,), generator=generator).tolist())
        rows.append(
            Experience(
                task_id="random",
                trajectory_id=str(number),
                step=0,
                steps=1,
                prompt=ids[:-action],
                action=ids[-action:],
                reward=float(number % 2 == 0),
                source="current",
                site="none",
                phase=1,
                advantage=0.5 if number % 2 == 0 else -0.5,
            )
        )
    with shared.role("actor"):
        scores = shared.action_logprobs([row.sample for row in rows]).tolist()
    return [dataclasses.replace(row, ref_logprob=score) for row, score in zip(rows, scores, strict=True)]


def trainer(shared: SharedBase, stage: str, rows: Sequence[Experience], folder: Path) -> RoleTrainer:
    """Return the trainer of a role, set to one row an update and no files but its log."""
    on_cpu = shared.model.device.type == "cpu"
    chosen = {"batch_size": 1, "save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": on_cpu}
    if stage == "actor":
        return ActorTrainer(shared, ActorArguments(output_dir=str(folder), **chosen), rows)
    states = [(row.prompt + row.action, row.reward) for row in rows]
    return CriticTrainer(shared, CriticArguments(output_dir=str(folder), **chosen), states)


@contextlib.contextmanager
def only_changes(shared: SharedBase, role: str, faults: list[str]) -> Iterator[None]:
    """Note as faults if the block leaves a role's weights as they were, or changes those of another."""
    before = {name: shared.role_version(name) for name in ROLES}
    yield
    for name in ROLES:
        if (shared.role_version(name) != before[name]) != (name == role):
            faults.append(f"the role {name} {'was not trained' if name == role else 'was changed by training another'}")


def measure(
    shared: SharedBase, shape: ModelShape, setup: Setup, stage: str, length: int, action: int, ceiling: float
) -> Measured:
    """Train a role on random rows of a length and return what it took."""
    device = shared.model.device
    planned = estimate(shape, setup, stage, Load(1, length, action)).total
    executed, useful = operations(shape, setup, length, action if stage == "actor" else 0)
    faults: list[str] = []
    watch = Watch(device)
    gc.collect()  # an earlier trainer and its optimizer hold each other, and would count in this peak
    try:
        rows = experience(shared, length, action, shape.vocab_size)
        with tempfile.TemporaryDirectory() as folder, only_changes(shared, stage, faults):
            training = trainer(shared, stage, rows, Path(folder))
            training.add_callback(watch)
            training.train()
    except (RuntimeError, FloatingPointError, MemoryError) as error:  # RuleError and a full card are RuntimeErrors
        faults.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    peak = watch.peak() if watch.seconds else None
    for parameter in shared.trainable_parameters(stage):
        parameter.grad = None
    seconds = statistics.median(watch.seconds) if watch.seconds else None
    return Measured(stage, length, planned, peak, seconds, executed, useful, ceiling, tuple(faults))


def table_text(rows: Sequence[Measured]) -> str:
    """Return the figures as a table in Markdown."""
    lines = [
        "| stage | tokens | planned GiB | measured GiB | off | s an update | tokens/s | executed | useful |",
        "|--|--|--|--|--|--|--|--|--|",
    ]
    for row in rows:
        figures = row.to_json()
        peak, off = ("not measured", "–") if row.peak is None else (f"{row.peak / GIB:.2f}", f"{row.off:+.1%}")
        if row.seconds is None:
            lines.append(f"| {row.stage} | {row.length} | {row.planned / GIB:.2f} | {peak} | {off} | – | – | – | – |")
            continue
        lines.append(
            f"| {row.stage} | {row.length} | {row.planned / GIB:.2f} | {peak} | {off} | {row.seconds:.3f} | "
            f"{figures['tokens_per_s']:.0f} | {figures['executed_fraction']:.1%} | {figures['useful_fraction']:.1%} |"
        )
    return "\n".join(lines)


def check(config_name: str, device_name: str, lengths: Sequence[int], folder: Path) -> dict[str, object]:
    """Run everything, print the table, and return all figures; ``failures`` is empty if all is well."""
    start = time.perf_counter()
    config, action, device = CONFIGS[config_name], ACTION[config_name], pick_device(device_name)
    write_base(folder, config)
    model = ModelConfig(name=str(folder), quantization="nf4", dtype="bfloat16", max_length=max(64, *lengths))
    run = Config(model=model)
    setup = Setup.of(run, gpu=True)
    shape = ModelShape.read(folder)
    shared = SharedBase.load(
        model, run.lora, device=device_name, checkpointing=True, tokens_per_micro_batch=max(lengths)
    )
    loaded = time.perf_counter() - start
    load_peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    failures = []
    if config_name == "llama-3.1-8b" and shape.parameters != SHAPES["Llama-3.1-8B"].parameters:
        failures.append(
            f"the base has {shape.parameters} weights, Llama-3.1-8B has {SHAPES['Llama-3.1-8B'].parameters}"
        )
    try:
        shared.check_gradients()
    except RuntimeError as error:
        failures.append(f"check_gradients: {error}")
    ceiling = matmul_ceiling(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{config_name}, {shape.parameters / 1e9:.2f} B weights, loaded in {loaded:.0f} s; {name}: ", end="")
    print(f"{ceiling / 1e12:.3g} TFLOP/s in a matrix product", flush=True)
    rows = []
    for length in lengths:
        for stage in ("actor", "critic"):
            rows.append(measure(shared, shape, setup, stage, length, action, ceiling))
    print(table_text(rows))
    failures += [failure for row in rows for failure in row.failures()]
    for failure in failures:
        print(f"FAILED: {failure}")
    return {
        "config": config_name,
        "device": name,
        "matmul_tflops": ceiling / 1e12,
        "load_s": loaded,
        "load_peak_gib": None if load_peak is None else load_peak / GIB,
        "seconds": time.perf_counter() - start,
        "steps": [row.to_json() for row in rows],
        "failures": failures,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--config", choices=CONFIGS, default="llama-3.1-8b", help="sizes of the model")
    parser.add_argument("--device", default="auto", help="auto (the GPU if there is one), cpu, cuda (default auto)")
    parser.add_argument("--lengths", type=int, nargs="+", help="tokens of a row (default 4096 16384; tiny: 64 128)")
    parser.add_argument("--out", type=Path, help="file that gets the JSON object too")
    options = parser.parse_args(arguments)
    lengths = tuple(options.lengths or LENGTHS[options.config])
    if min(lengths) <= ACTION[options.config]:
        parser.error(f"--lengths must be above {ACTION[options.config]}, the action's tokens, got {min(lengths)}")
    with tempfile.TemporaryDirectory(prefix="check-8b-") as folder:
        figures = check(options.config, options.device, lengths, Path(folder))
    line = json.dumps(figures)
    print(line)
    if options.out:
        options.out.write_text(line + "\n", encoding="utf-8")
    return 1 if figures["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
