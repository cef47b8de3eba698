"""The tiny base: a language model of three million parameters that can read a page, made by this script.

It plays the pre-trained model of the kit's default: supervised fine-tuning, adapters and reinforcement learning mean
here what they mean at 8B, on a laptop. It is pre-trained on *grounding* (``grounding``): random pages with
instructions of one step and short goals. It never saw the embedded sites, their tasks, wordings or entities.

    python -m webrl_lite.tiny_base                   continue or start the pre-training in runs/tiny_base
    python -m webrl_lite.tiny_base --tokens 50e6     another length
    python -m webrl_lite.tiny_base --start FOLDER    begin with a folder's weights and tokenizer in place of random ones
    python -m webrl_lite.tiny_base --measure         exactness of the package's weights on unseen pages, by kind
    python -m webrl_lite.tiny_base --ship            write the last checkpoint's weights into the package

Architecture: LFM2 (short convolutions and attention by turns), because "what stood just before" is what copying needs
and a convolution has it from the start. Its own tokenizer keeps the pieces of a name the same wherever the name
stands, writes an element's id as one token, and has the fixed parts of a reply as one token each.

Optimizer: Muon for the matrices, AdamW for the rest (torch's); constant step size with a linear decay at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from transformers import Lfm2Config, Lfm2ForCausalLM, PreTrainedTokenizerFast

from webrl_lite.base_model import TINY_FOLDER
from webrl_lite.batching import micro_batches, pad
from webrl_lite.envs.embedded.other_worlds import read_worlds, record_world
from webrl_lite.grounding import Document, Judgement, judgement, page_document, walk_documents
from webrl_lite.grounding_episodes import Episodes, episode_documents, episode_judgement
from webrl_lite.grounding_pages import words
from webrl_lite.prompts import ORM_QUESTION, chat_task

VOCABULARY = 4096
MICRO_BATCH = 2048
"""Tokens of one pass, padding included; small enough for a processor's cache."""
BEGIN, END, USER, ASSISTANT, PAD = SPECIAL = ("<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|pad|>")
CALLS = (
    "# Element: ",
    "# Note: ",
    '; do(action="',
    '\ndo(action="',
    'do(action="',
    '", argument="',
    '", element="',
    '")',
    'exit(message="',
    "Click",
    "Hover",
    "Select Dropdown Option",
    "Scroll Down",
    "Scroll Up",
    "\n\nTask: ",
    "\nActions so far:\n",
    " | tab ",
    f"\n{ORM_QUESTION}",
    "YES",
    "NO",
)
"""Fixed parts of replies and prompts, one token each."""
PIECES = r" \| | \[|\]|\n= |\n| ?[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*|\d{1,2}| \"|\"| ?[^\sA-Za-z0-9\[\]\"|]{1,3}|\s|."
"""What a token can reach over. A capital never takes the space before it along, so a name has the same tokens at the
start of a line, inside a sentence and in quotes; numbers go by two digits, so an id up to 99 is one token."""
WORLDS = 5
"""Worlds of other data in which episodes are recorded; the last one's are only measured on."""
SAME_DIRECTION = 0.99
"""Two tokens whose embeddings have a larger cosine cannot be told apart."""
HELD_OUT = 150
"""Draws that exactness is measured on."""
CHAT_TEMPLATE = (
    "{{ '<|begin|>' }}{% for m in messages %}{% if m.role != 'system' %}{{ '<|' + m.role + '|>' + m.content }}"
    "{% if m.role == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
"""System messages are left out: this model knows one list of actions, and the list would be longer than a page."""


@dataclass(frozen=True)
class Recipe:
    """How the base is made."""

    width: int = 192
    layers: int = 6
    feed_forward: int = 512
    heads: int = 6
    kv_heads: int = 2
    tokens: float = 24e6
    """Tokens of the whole pre-training."""
    batch_tokens: int = 8192
    """Tokens an update, padding included."""
    muon_rate: float = 0.01
    adam_rate: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 100
    """Updates in which the step size rises."""
    decay: float = 0.35
    """Share of the updates, at the end, in which the step size falls to 0."""
    episode_share: float = 0.4
    """Share of the draws that are steps of recorded episodes."""
    instruction_weight: float = 0.2
    """Weight of an instruction's token in the loss; a reply's has 1, a page's 0."""
    judge_weight: float = 8.0
    """Weight of a judgement's YES or NO: one token, where a page with its replies has a hundred."""
    seed: int = 2411


def build_tokenizer(seed: int = 2411, pages: int = 6000) -> PreTrainedTokenizerFast:
    """Train the tokenizer on random pages."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tok.decoder = decoders.ByteLevel()
    rng = random.Random(seed)

    def texts() -> Iterator[str]:
        for number in range(100):
            yield f"{number} {number:02} [{number}]\n" * 50
        for word in words():
            yield f"{word} {word} {word.capitalize()} {word.capitalize()}\n" * 20
        for _ in range(pages):
            document = page_document(rng)
            yield document.page
            for query in document.queries:
                yield query.task

    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(CALLS),
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tok.train_from_iterator(texts(), trainer)
    tok.add_tokens([AddedToken(text, normalized=False) for text in CALLS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tok,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def build_model(recipe: Recipe) -> Lfm2ForCausalLM:
    """Return the model with its first weights."""
    torch.manual_seed(recipe.seed)
    return Lfm2ForCausalLM(
        Lfm2Config(
            vocab_size=VOCABULARY,
            hidden_size=recipe.width,
            intermediate_size=recipe.feed_forward,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.kv_heads,
            layer_types=["conv", "full_attention"] * (recipe.layers // 2),
            block_auto_adjust_ff_dim=False,
            max_position_embeddings=4096,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=4,
            tie_word_embeddings=True,
        )
    )


# Documents become rows ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A document as token ids, and what each token counts in the loss."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    replies: tuple[tuple[str, int, int], ...]
    """Kind, first and last (exclusive) token of every reply."""


def encode(tokenizer: PreTrainedTokenizerFast, document: Document, weight: float) -> Row:
    """Return a page with its instructions as turns of one chat."""
    parts: list[tuple[str, str, float]] = [("", BEGIN + USER + document.page, 0.0)]
    for number, query in enumerate(document.queries):
        parts.append(("", (USER if number else "") + chat_task(query.task, query.replies), weight))
        parts.append(("", ASSISTANT, 0.0))
        parts.append((query.kind, query.reply + END, 1.0))
    return _row(tokenizer, parts)


def encode_judgement(tokenizer: PreTrainedTokenizerFast, case: Judgement, weight: float) -> Row:
    """Return a judgement as one chat; its answer has the weight."""
    prompt = f"{case.page}{chat_task(case.task, case.replies)}\n{ORM_QUESTION}"
    answer = "YES" if case.right else "NO"
    row = _row(tokenizer, [("", BEGIN + USER + prompt + ASSISTANT, 0.0), ("judge", answer + END, 1.0)])
    return replace(row, weights=(*row.weights[:-2], weight, 1.0))  # YES or NO, then the end


def _row(tokenizer: PreTrainedTokenizerFast, parts: Sequence[tuple[str, str, float]]) -> Row:
    ids: list[int] = []
    weights: list[float] = []
    replies: list[tuple[str, int, int]] = []
    for kind, text, weight in parts:
        new = tokenizer.encode(text, add_special_tokens=False)
        if kind:
            replies.append((kind, len(ids), len(ids) + len(new)))
        ids += new
        weights += [weight] * len(new)
    return Row(tuple(ids), tuple(weights), tuple(replies))


@cache
def _pieces(tokenizer: PreTrainedTokenizerFast) -> tuple[str, ...]:
    """Return the texts of the tokens that are made of letters, of which names are drawn."""
    texts = {tokenizer.decode([i]).strip() for i in range(len(tokenizer))}
    return tuple(sorted(text for text in texts if re.fullmatch("[A-Za-z]{2,}", text)))


def rows(
    tokenizer: PreTrainedTokenizerFast, recipe: Recipe, number: int, seed: int, episodes: Episodes | None = None
) -> list[Row]:
    """Return the rows of one draw; the same for the same number and seed, so a stream can go on anywhere.

    Args:
        tokenizer: the base's.
        recipe: its shares and weights.
        number: which draw.
        seed: of the stream.
        episodes: recorded ones; without them the draw is of random pages only.
    """
    rng = random.Random(f"{seed}:{number}")
    pieces = _pieces(tokenizer)
    recorded = episodes is not None and rng.random() < recipe.episode_share
    kind = rng.random()
    if kind < 0.1:
        case = episode_judgement(rng, episodes, pieces) if recorded else judgement(rng, pieces)
        return [encode_judgement(tokenizer, case, recipe.judge_weight)]
    if recorded:
        documents = episode_documents(rng, episodes, pieces=pieces)
    elif kind < 0.4:
        documents = [page_document(rng, pieces=pieces)]
    else:
        found = walk_documents(rng, pieces=pieces)
        documents = rng.sample(found, min(2, len(found)))
    return [encode(tokenizer, document, recipe.instruction_weight) for document in documents]


def other_worlds(folder: Path) -> list[Path]:
    """Return the files of the recorded worlds, and record those that are missing (some minutes each, in Chromium)."""
    files = [folder / f"world_{seed}.jsonl.gz" for seed in range(1, WORLDS + 1)]
    if missing := [path for path in files if not path.exists()]:
        if int(os.environ.get("WORLD_SIZE", 1)) > 1:
            raise FileNotFoundError(
                f"{missing[0]} must be recorded before several processes start. Run this command once without torchrun."
            )
        for path in missing:
            record_world(path, seed=files.index(path) + 1, workers=os.cpu_count() or 1)
    return files


# Training -----------------------------------------------------------------------------------------------------------


def _sum_over_ranks(model: nn.Module, value: float) -> float:
    """Add up gradients and loss of all processes, each of which saw its part of the batch."""
    parts = [*(p.grad for p in model.parameters()), torch.tensor([value])]
    flat = torch.cat([part.flatten() for part in parts])
    dist.all_reduce(flat)
    for part, new in zip(parts, flat.split([part.numel() for part in parts]), strict=True):
        part.copy_(new.view_as(part))
    return float(parts[-1])


@cache
def _has_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16; if it does not, float32 is several times faster."""
    able = torch.cpu.get_capabilities()
    return able.get("amx_bf16", False) or able.get("avx512_bf16", False)


def _loss(model: Lfm2ForCausalLM, group: Sequence[Row]) -> Tensor:
    """Return the summed loss of some rows."""
    batch = pad([row.ids for row in group], torch.device("cpu"))
    weights = torch.zeros(batch.input_ids.shape)
    for i, row in enumerate(group):
        weights[i, : len(row.weights)] = torch.tensor(row.weights)
    # Padding stands to the right, where no causal layer sees it: no mask.
    with torch.autocast("cpu", torch.bfloat16, enabled=_has_bfloat16()):
        states = model.model(input_ids=batch.input_ids, use_cache=False).last_hidden_state
        counted = weights[:, 1:] > 0
        logits = model.lm_head(states[:, :-1][counted])
    each = nn.functional.cross_entropy(logits.float(), batch.input_ids[:, 1:][counted], reduction="none")
    return (each * weights[:, 1:][counted]).sum()


@torch.inference_mode()
def exactness(model: Lfm2ForCausalLM, examples: Sequence[Row], tokens: int = 16384) -> dict[str, tuple[int, int]]:
    """Return, by kind, how many replies greedy decoding would give exactly, and of how many.

    A greedy reply is exact if and only if each of its tokens is the likeliest one after the right tokens before it, so
    one pass over the right replies tells.
    """
    tally: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for indices in micro_batches([len(row.ids) for row in examples], tokens):
        group = [examples[i] for i in indices]
        batch = pad([row.ids for row in group], torch.device("cpu"))
        states = model.model(input_ids=batch.input_ids, use_cache=False).last_hidden_state
        for i, row in enumerate(group):
            for kind, first, last in row.replies:
                best = model.lm_head(states[i, first - 1 : last - 1]).argmax(-1)
                tally[kind][0] += int(torch.equal(best, batch.input_ids[i, first:last]))
                tally[kind][1] += 1
    return {kind: (right, count) for kind, (right, count) in sorted(tally.items())}


def share(tally: dict[str, tuple[int, int]]) -> float:
    """Return the exact share over all kinds but the judge's, where guessing gives half."""
    kept = [pair for kind, pair in tally.items() if kind != "judge"]
    return sum(right for right, _ in kept) / max(1, sum(count for _, count in kept))


def _optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    ids = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in ids]
    return [
        torch.optim.Muon(
            matrices, lr=recipe.muon_rate, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, lr=recipe.adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def _factor(step: int, steps: int, recipe: Recipe) -> float:
    """Return the step size's factor: up, constant, down to 0."""
    falling = max(1, int(recipe.decay * steps))
    return min(1.0, (step + 1) / recipe.warmup, (steps - step) / falling)


def pretrain(
    folder: Path,
    recipe: Recipe,
    episodes: Episodes | None = None,
    unseen: Episodes | None = None,
    *,
    start: Path | None = None,
    every: int = 200,
) -> None:
    """Pre-train, or go on where the last checkpoint in the folder stands.

    Args:
        folder: gets ``tokenizer/``, ``checkpoint.pt``, ``metrics.jsonl``.
        recipe: how; when going on, only its ``tokens`` may differ from before.
        episodes: recorded episodes; without them the base reads random pages only.
        unseen: episodes that are only measured on.
        start: a model and its tokenizer to begin with, of the same sizes; None for random weights and a new tokenizer.
        every: updates between two reports and checkpoints.

    Raises:
        ValueError: the folder was begun with another recipe.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        dist.init_process_group("gloo")
    if rank == 0 and not (folder / "tokenizer").exists():
        made = PreTrainedTokenizerFast.from_pretrained(start) if start else build_tokenizer(recipe.seed)
        made.save_pretrained(folder / "tokenizer")
    if ranks > 1:
        dist.barrier()  # the others read what the first one wrote
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer")
    model = build_model(recipe)
    optimizers = _optimizers(model, recipe)
    rates = [
        group["lr"] for optimizer in optimizers for group in optimizer.param_groups
    ]  # a checkpoint's are later ones
    step, seen, drawn = 0, 0, 0
    if (folder / "checkpoint.pt").exists():
        saved = torch.load(folder / "checkpoint.pt", weights_only=True)
        if changed := {name for name, value in asdict(recipe).items() if saved["recipe"][name] != value} - {"tokens"}:
            raise ValueError(
                f"`recipe` must be the one that {folder} was begun with, but {', '.join(sorted(changed))} differ. Use "
                "another folder, or the same settings; only the length (`tokens`) may change."
            )
        model.load_state_dict(saved["model"])
        for optimizer, state in zip(optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        step, seen, drawn = saved["step"], saved["tokens"], saved["drawn"]
    elif start:
        model.load_state_dict(Lfm2ForCausalLM.from_pretrained(start, dtype=torch.float32).state_dict())
    held_out = [row for number in range(HELD_OUT) for row in rows(tokenizer, recipe, number, recipe.seed + 1)]
    if unseen is not None:
        alone = replace(recipe, episode_share=1.0)
        held_out += [
            row for number in range(HELD_OUT) for row in rows(tokenizer, alone, number, recipe.seed + 1, unseen)
        ]
    started, counted, losses = time.time(), 0, []
    while seen < recipe.tokens:
        batch: list[Row] = []
        while sum(len(row.ids) for row in batch) < recipe.batch_tokens:
            batch += rows(tokenizer, recipe, drawn, recipe.seed, episodes)
            drawn += 1
        total = sum(sum(row.weights[1:]) for row in batch)
        mine = batch[rank::ranks]
        value = 0.0
        for indices in micro_batches([len(row.ids) for row in mine], MICRO_BATCH):
            loss = _loss(model, [mine[i] for i in indices])
            (loss / total).backward()
            value += float(loss.detach()) / total
        value = _sum_over_ranks(model, value) if ranks > 1 else value
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        tokens = sum(len(row.ids) for row in batch)
        steps = step + max(1, round((recipe.tokens - seen) / tokens))
        for optimizer, rate in zip(optimizers, rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * _factor(step, steps, recipe)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step, seen, counted = step + 1, seen + tokens, counted + tokens
        losses.append(value)
        if rank == 0 and (step % every == 0 or seen >= recipe.tokens):
            tally = exactness(model, held_out)
            line = {
                "step": step,
                "tokens": seen,
                "loss": sum(losses) / len(losses),
                "exact": share(tally),
                "tokens_per_second": counted / (time.time() - started),
                "by_kind": {kind: f"{right}/{count}" for kind, (right, count) in tally.items()},
            }
            with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)  # noqa: T201  (a command's output)
            state = {
                "model": model.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                "step": step,
                "tokens": seen,
                "drawn": drawn,
                "recipe": asdict(recipe),
            }
            torch.save(state, folder / "checkpoint.partial")
            os.replace(folder / "checkpoint.partial", folder / "checkpoint.pt")
            started, counted, losses = time.time(), 0, []


@torch.no_grad()
def tell_apart(embeddings: Tensor, seed: int) -> int:
    """Give tokens that have one embedding between them embeddings of their own, and return how many there were.

    Tokens that no page and no reply of the pre-training held are only ever pushed away from what was right, all by the
    same gradients: 167 of 4,096, ``[`` among them, ended at one point. Input and output share the embeddings, and
    adapters do not change them; so however surely the model learned to write ``[``, each of the 167 was as likely, and
    a sampled reply that names an element without a name (``# Element: [3] input``) was noise 166 times of 167. Each
    keeps the common part, which makes it unlikely everywhere, and gets a part of its own at right angles to it, as long
    as the median embedding.

    Args:
        embeddings: (V, D); changed in place.
        seed: of the parts.
    """
    exact = embeddings.float()
    directions = nn.functional.normalize(exact, dim=-1)
    alike = (directions @ directions.T).fill_diagonal_(0.0) > SAME_DIRECTION  # (V, V)
    rows = alike.any(dim=-1).nonzero().flatten()
    if not len(rows):
        return 0
    common = exact[rows].mean(dim=0)
    own = torch.randn(len(rows), exact.shape[1], generator=torch.Generator().manual_seed(seed))
    own -= (own @ common)[:, None] * common / (common @ common)
    own = nn.functional.normalize(own, dim=-1) * exact.norm(dim=-1).median()
    embeddings[rows] = (common + own).to(embeddings.dtype)
    return len(rows)


def ship(folder: Path, target: Path = TINY_FOLDER) -> None:
    """Write the weights of a pre-training's last checkpoint, with the tokenizer, as a model that transformers loads.

    In float16, which is half as large and changes no figure; a CPU reads it as float32. Tokens that it never met are
    told apart (``tell_apart``).
    """
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    recipe = Recipe(**saved["recipe"])
    model = build_model(recipe)
    model.load_state_dict(saved["model"])
    model.half()
    tell_apart(model.get_input_embeddings().weight, recipe.seed)
    model.save_pretrained(target)
    for path in target.iterdir():
        path.chmod(0o644)
    PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer").save_pretrained(target)


def measure(folder: Path = TINY_FOLDER, draws: int = 2 * HELD_OUT) -> dict[str, tuple[int, int]]:
    """Return ``exactness`` of a shipped model on pages that no pre-training with the default seed reads."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = Lfm2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return exactness(model, [r for n in range(draws) for r in rows(tokenizer, Recipe(), n, Recipe.seed + 2)])


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m webrl_lite.tiny_base", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/tiny_base"))
    parser.add_argument("--tokens", type=float, default=Recipe.tokens, help="length of the whole pre-training")
    parser.add_argument(
        "--start", type=Path, help="folder of weights and tokenizer to begin with; random ones if left out"
    )
    parser.add_argument("--seed", type=int, default=Recipe.seed)
    parser.add_argument("--measure", action="store_true", help="exactness of the package's weights on unseen pages")
    parser.add_argument("--ship", action="store_true", help="write the last checkpoint's weights into the package")
    options = parser.parse_args(arguments)
    if options.measure:
        tally = measure()
        for kind, (right, count) in tally.items():
            print(f"{kind:10} {right:5} of {count:5}  {right / count:6.1%}")  # noqa: T201  (a command's output)
        print(f"all but judge: {share(tally):.1%}")  # noqa: T201
    elif options.ship:
        ship(options.folder)
    else:
        *read, last = other_worlds(options.folder)
        recipe = Recipe(tokens=options.tokens, seed=options.seed)
        pretrain(options.folder, recipe, read_worlds(read), read_worlds([last]), start=options.start)
    return 0


if __name__ == "__main__":
    sys.exit(main())
