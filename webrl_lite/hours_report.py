"""The text of the command ``plan``: memory, hours by stage, where another card pays, the check, the assumptions.

Reads a ``PaperRun`` of ``hours``; writes Markdown. No equation of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

from webrl_lite.config import Config
from webrl_lite.hours import (
    AUTHORS_GPUS,
    AUTHORS_HOURS,
    BROWSER_SECONDS,
    FORWARD_SHARE,
    SERVER,
    TRAINING_SHARE,
    WITHIN,
    PaperRun,
    StageHours,
    Work,
    authors_hours,
    find_gpu,
    paper_run,
)
from webrl_lite.memory import GIB


def text(config: Config, *, card: str, gpus: int = 1) -> str:
    """Return the plan of a configuration on some cards of one kind.

    Raises:
        PlanError: an unknown card or model, or no card.
    """
    return plan_text(paper_run(config, find_gpu(card), gpus))


def plan_text(run: PaperRun) -> str:
    """Return the plan in Markdown: memory, hours, where another card pays, the check, and what was assumed."""
    config, cards = run.config, f"{run.gpus} x {run.gpu.name} ({run.gpu.gib} GB)"
    bits = "4 bits" if config.model.quantization == "nf4" else "16 bits"
    title = f"# {run.shape.name} in {bits}, LoRA of rank {config.lora.rank}, on {cards}"
    parts = [title, "## Memory on each card", *_memory(run)]
    parts += ["## Hours of a paper-sized run", _sizes(run.work), hours_table(run.rows)]
    parts += ["## Where another card pays", *advice(run), "## The check", _check(), "## Assumed", _assumed(run)]
    return "\n\n".join(parts) + "\n"


def _memory(run: PaperRun) -> list[str]:
    if run.refusal:
        return [f"**Does not fit.** {run.refusal}", "The hours below are for the case that it did."]
    lines = ["| stage | rows at once | tokens a row | peak GiB |", "|--|--|--|--|"]
    for plan in run.memory:
        peak = f"{plan.estimate.total / GIB:.1f}"
        lines.append(f"| {plan.stage} | {plan.load.sequences} | {plan.load.length} | {peak} |")
    return ["\n".join(lines)]


def _sizes(work: Work) -> str:
    return (
        f"{work.phases} phases of {work.tasks} tasks, {work.steps} steps an episode; SFT on {work.demonstrations:,} "
        f"steps; ORM on {work.orm_rollouts:,} rollouts; {work.test_tasks} test tasks after SFT and every phase; at "
        f"most {work.replay:g} replayed steps for each new one; {work.prompt:,} tokens a prompt, {work.action} a reply."
    )


def hours_table(rows: Sequence[StageHours]) -> str:
    """Return stages as a table in Markdown; millions of tokens, all phases together."""
    total = sum(row.hours for row in rows)
    head = "| stage | forward M | backward M | decoded M | EFLOP | model h | decode h | browser h | hours | share |"
    lines = [head, "|--" * 10 + "|"]
    for row in rows:
        counts = (row.passes.forward_tokens, row.passes.backward_tokens, row.passes.decoded)
        tokens = " | ".join(f"{count / 1e6:.1f}" for count in counts)
        hours = (row.model_hours, row.decode_hours, row.browser_hours, row.hours)
        shown = " | ".join(f"{hour:.1f}" for hour in hours)
        share = row.hours / total if total else 0
        lines.append(f"| {row.passes.stage} | {tokens} | {row.flops / 1e18:.2f} | {shown} | {share:.0%} |")
    counted = ("forward_tokens", "backward_tokens", "decoded")
    forward, backward, decoded = (sum(getattr(row.passes, name) for row in rows) / 1e6 for name in counted)
    parts = [sum(getattr(row, name) for row in rows) for name in ("model_hours", "decode_hours", "browser_hours")]
    shown = " | ".join(f"{hour:.1f}" for hour in (*parts, total))
    flops = sum(row.flops for row in rows) / 1e18
    lines.append(f"| **all** | {forward:.1f} | {backward:.1f} | {decoded:.1f} | {flops:.2f} | {shown} | 100% |")
    return "\n".join(lines)


def advice(run: PaperRun) -> list[str]:
    """Return where the time goes, and what one card more saves as a second worker and as a server for replies."""
    played = sum(row.hours for row in run.rows if row.passes.steps)
    trained = sum(row.hours for row in run.rows if row.passes.trained)
    more, served = (sum(row.hours for row in rows) for rows in (run.more, run.served))
    longest, total = run.longest, run.hours
    judge = sum(row.hours for row in run.rows if row.passes.stage in ("orm", "orm rollouts"))
    lines = [
        f"{total:.0f} hours, {total * run.gpus:.0f} card-hours: {trained / total:.0%} in training, "
        f"{played / total:.0%} in playing. Most of it, {longest.hours / total:.0%}, is `{longest.passes.stage}`.",
        f"Without an ORM of one's own (the authors released theirs): {judge:.0f} hours less.",
        f"One card more, with `accelerate launch` over {run.gpus + 1}: {more:.0f} hours, {total - more:.0f} less.",
    ]
    if run.config.rollout.base_url:
        return [*lines, "Replies come from the server at `rollout.base_url` already."]
    better = "pays more as a server" if served < more else "pays more as a worker in all stages"
    server = f"One card more as a server that writes the replies (vLLM; `rollout.base_url`): {served:.0f} hours"
    change = f"{total - served:.0f} less" if served <= total else f"{served - total:.0f} more, for it plays alone"
    return [*lines, f"{server}, {change}. So it {better}."]


def _check() -> str:
    ours = authors_hours()
    return (
        f"The authors' run (full training, {AUTHORS_GPUS} x A100-80GB, SFT and 8 phases) counted the same way: "
        f"{ours:.1f} hours without rollouts; they report about {AUTHORS_HOURS:g}, and do not say whether rollouts are "
        f"in it. Factor {max(ours / AUTHORS_HOURS, AUTHORS_HOURS / ours):.1f}; take all hours here as good within "
        f"{WITHIN:g}."
    )


def _assumed(run: PaperRun) -> str:
    return (
        f"{run.gpu.name}: {run.gpu.peak / 1e12:g} TFLOP/s in bfloat16 ({run.gpu.source}), of which training reaches "
        f"{TRAINING_SHARE:.0%} and passes without gradients {FORWARD_SHARE:.0%}. {run.sampler.streams} episodes at "
        f"once on each card have one more token every {run.sampler.token_seconds:g} s; {SERVER.streams} on a server "
        f"every {SERVER.token_seconds:g} s. A step in a browser takes {BROWSER_SECONDS:g} s. Cards share all work "
        "without loss. EFLOP leaves out what is decoded. None of these rates was measured on this machine."
    )
