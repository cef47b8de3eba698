"""Every setting of a run, with its source; the presets; and the checks that refuse what cannot work.

Standard library only. A configuration is nested frozen dataclasses; a path such as ``actor.beta`` names a setting
in files, on the command line and in messages. Constants of the paper (arXiv 2411.02337) stand here and nowhere
else. Where the paper and the released code disagree, the text under the field says so.

Sources are given in brackets: *paper Table n* (numbering of version 1), *released file:line* (THUDM/WebRL
``fa8439e``), *ours* with the reason.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Group = typing.TypeVar("Group")
JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


class ConfigError(ValueError):
    """A setting that does not exist, is of the wrong type or is out of range: names it, the rule and the way out."""


def _require(holds: bool, name: str, rule: str, value: object, hint: str) -> None:
    if not holds:
        raise ConfigError(f"`{name}` must be {rule}, got {value!r}. {hint}")


def _count(name: str, value: int | None) -> None:
    _require(value is None or value >= 1, name, "at least 1, or None", value, "None means as many as there are.")


def _positive(name: str, value: float, hint: str = "See webrl_lite/config.py.") -> None:
    _require(math.isfinite(value) and value > 0, name, "above 0", value, hint)


def _address(name: str, url: str | None) -> None:
    fits = url is None or url.startswith(("http://", "https://"))
    _require(fits, name, "an address http://... or https://...", url, "Use e.g. http://127.0.0.1:8000/v1.")


@dataclass(frozen=True)
class ModelConfig:
    """The base that all roles share."""

    name: str = "tiny"
    """Name on the model hub, a local folder, or ``tiny`` for the model in this package."""
    revision: str | None = None
    """Branch, tag or commit of a model on the hub; None: its default branch."""
    gguf_file: str | None = None
    """File name inside ``name`` if the weights are GGUF."""
    quantization: Literal["nf4", "none"] = "none"
    """``nf4``: 4 bits with double quantization through bitsandbytes (QLoRA). (ours: the authors trained full models)"""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of what is not quantized; ``auto``: bfloat16 on a GPU, float32 on a CPU."""
    template: Literal["webrl-llama3", "webrl-glm4", "chat"] = "chat"
    """How a prompt is written: the authors' strings for Llama-3 or GLM-4, or the tokenizer's own chat template."""
    max_length: int = 2048
    """Tokens of prompt and action together. (paper Table 4: 16384)"""

    def __post_init__(self) -> None:
        _require(bool(self.name), "model.name", "a name or a path", self.name, "Use e.g. tiny.")
        _require(self.max_length >= 64, "model.max_length", "at least 64", self.max_length, "The paper has 16384.")


@dataclass(frozen=True)
class LoraConfig:
    """The adapters, one of this shape for each role; ours, since the paper trains all weights."""

    rank: int = 16
    """Rank r."""
    alpha: int = 32
    """Scale; the adapter's output is multiplied by alpha / rank."""
    targets: str | tuple[str, ...] = "all-linear"
    """Layers with an adapter: ``all-linear``, or the names of linear layers."""
    top_layers: int | None = None
    """Adapters on this many layers from the top only, so that all below is computed once and shared; None: all."""

    def __post_init__(self) -> None:
        _require(self.rank >= 1, "lora.rank", "at least 1", self.rank, "Use e.g. 16.")
        _require(self.alpha >= 1, "lora.alpha", "at least 1", self.alpha, "Use e.g. twice the rank.")
        top = self.top_layers
        _require(top is None or top >= 1, "lora.top_layers", "at least 1, or None", top, "None trains all layers.")


@dataclass(frozen=True)
class TrainConfig:
    """What every trainer takes."""

    learning_rate: float = 1e-4
    """Peak step size of AdamW. (ours: LoRA needs more than the full-model values of the paper)"""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the step size goes on after the warm-up."""
    warmup: float = 0.0
    """Share of the updates in which the step size rises."""
    epochs: float = 1.0
    """Passes over the data. (paper Table 4: 1)"""
    batch_size: int = 32
    """Actions an update. (paper Table 4: 128)"""
    tokens_per_micro_batch: int = 8192
    """Tokens, padding included, in one forward pass; changes memory and speed, not the result."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm. (released default.yaml:6; the paper does not say)"""
    weight_decay: float = 0.0
    """AdamW's. (released: 0.01 by default; ours: none on adapters, whose zero is the reference)"""

    SECTION: typing.ClassVar[str] = "train"

    def __post_init__(self) -> None:
        name = self.SECTION
        _positive(f"{name}.learning_rate", self.learning_rate, "Use e.g. 1e-4 with LoRA.")
        _require(0 <= self.warmup < 1, f"{name}.warmup", "in [0, 1)", self.warmup, "0 means none.")
        _positive(f"{name}.epochs", self.epochs, "The paper has 1.")
        _require(self.batch_size >= 1, f"{name}.batch_size", "at least 1", self.batch_size, "The paper has 128.")
        tokens = self.tokens_per_micro_batch
        _require(tokens >= 1, f"{name}.tokens_per_micro_batch", "at least 1", tokens, "Use e.g. 8192.")
        _positive(f"{name}.max_grad_norm", self.max_grad_norm, "The released code has 1.")
        _require(self.weight_decay >= 0, f"{name}.weight_decay", "at least 0", self.weight_decay, "0 means none.")


@dataclass(frozen=True)
class SftConfig(TrainConfig):
    """Supervised fine-tuning on demonstrations."""

    schedule: Literal["constant", "cosine"] = "cosine"
    """(paper Table 4)"""
    warmup: float = 0.1
    """(paper Table 4)"""
    episodes: int | None = None
    """Demonstrations learned from, drawn with the seed; None: all. (paper §3: all 1,186)"""
    file: str | None = None
    """Demonstrations: trajectories of ours, or the authors' traces, conversations or ``.pt``. None: those that ship
    with the embedded sites; on WebArena, where none ship, the first actor is the base as it is."""

    SECTION: typing.ClassVar[str] = "sft"

    def __post_init__(self) -> None:
        super().__post_init__()
        _count("sft.episodes", self.episodes)


@dataclass(frozen=True)
class OrmConfig(TrainConfig):
    """The outcome reward model."""

    schedule: Literal["constant", "cosine"] = "cosine"
    """(paper Table 5)"""
    warmup: float = 0.1
    """(paper Table 5)"""
    epochs: float = 4.0
    """(paper Table 5)"""
    threshold: float = 0.5
    """A rollout is a success if P(YES) / (P(YES) + P(NO)) is above this; a tie is a failure. (paper §2.2 compares the
    two, which is 0.5; released process_data.py:311 calls a tie a success)"""
    judge: Literal["orm", "text", "screenshot", "caption", "grader"] = "orm"
    """Who labels rollouts: this model, or the served model of ``llm`` from the last page's text, from a picture of it,
    or from its own description of the picture. (paper §2.2: the ORM, compared with GPT-4, GPT-4V and captions)
    ``grader``: the tasks' own graders, for an upper bound that shows what the judge costs; generated tasks have one on
    the embedded sites and on MiniWoB++, and what has none is not learned from. (ours)"""
    rollouts: int | None = None
    """Train tasks that the first actor plays, graded, for the ORM to learn from and for the first failures; those that
    no demonstration showed come first. None: each once. (paper Appendix B: about 12,000 rollouts)"""

    SECTION: typing.ClassVar[str] = "orm"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 < self.threshold < 1, "orm.threshold", "in (0, 1)", self.threshold, "0.5 compares YES with NO.")
        _count("orm.rollouts", self.rollouts)


@dataclass(frozen=True)
class CriticConfig(TrainConfig):
    """The value network: cross-entropy of every state against the trajectory's outcome (paper Eq. 8)."""

    SECTION: typing.ClassVar[str] = "critic"


@dataclass(frozen=True)
class ActorConfig(TrainConfig):
    """The policy update (``policy_loss``)."""

    beta: float = 1.0
    """Strength of the KL constraint. (ours: the paper sweeps it in Figure 7 and does not state the main runs' value)"""
    lam: float = 0.5
    """Lambda, blend of next-step and final-step advantage. (paper §2.1: 0.5)"""
    gamma: float = 1.0
    """Discount. (ours: Eq. 9 has none and the critic learns without one; paper Table 4 lists 0.9, which has no effect
    in the released code)"""
    reduction: Literal["sum", "mean"] = "sum"
    """Log-probability of an action: sum over its tokens (paper Eq. 6) or mean (released trainer.py:182). A beta means
    something else under each."""

    SECTION: typing.ClassVar[str] = "actor"

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive("actor.beta", self.beta, "Without a KL constraint use --method webrl-no-kl.")
        _require(0 <= self.lam <= 1, "actor.lam", "in [0, 1]", self.lam, "The paper has 0.5.")
        _require(0 < self.gamma <= 1, "actor.gamma", "in (0, 1]", self.gamma, "1 means no discount.")


@dataclass(frozen=True)
class ReplayConfig:
    """Which successes of earlier phases are trained on again."""

    ppl_min: float = 1 / 0.95
    """Lower end of the band of the action's perplexity under the previous actor, inclusive. (paper §2.3)"""
    ppl_max: float = 1 / 0.5
    """Upper end, inclusive. (paper §2.3; released process_data.py:419 leaves it out)"""
    max_ratio: float = 2.0
    """Most replayed steps for each step of the current phase. (paper §2.3)"""

    def __post_init__(self) -> None:
        _require(self.ppl_min >= 1, "replay.ppl_min", "at least 1", self.ppl_min, "1 has no lower end.")
        hint = "The paper has 1.053 and 2; use inf for no upper end."
        _require(
            self.ppl_max > self.ppl_min,
            "replay.ppl_max",
            f"above replay.ppl_min ({self.ppl_min:g})",
            self.ppl_max,
            hint,
        )
        _require(self.max_ratio >= 0, "replay.max_ratio", "at least 0", self.max_ratio, "0 replays nothing.")


@dataclass(frozen=True)
class CurriculumConfig:
    """New tasks from failed ones."""

    phases: int = 8
    """Phases of reinforcement learning. (paper §3)"""
    tasks_per_phase: int = 500
    """Tasks of a phase after all filters. (paper §3)"""
    value_min: float = 0.05
    """Lower end of the critic's value of a new task, inclusive. (paper §2.1)"""
    value_max: float = 0.75
    """Upper end, inclusive. (paper §2.1)"""
    seeds_per_request: int = 10
    """Failed tasks shown to the generator at once. (released gen_task.py:132)"""
    first_phase: Literal["none", "orm", "critic"] = "none"
    """What filters the first phase's tasks, before which no phase has trained a critic: nothing, or the ORM's P(YES)
    (authors, issue 31), or a critic that learns from the first actor's graded episodes (ours)."""
    generator: Literal["auto", "offline", "llm"] = "auto"
    """Who makes the tasks: the served model of ``llm`` or the sites' own generator; ``auto``: the model if
    ``llm.base_url`` is set. (paper §2.1: GPT-4o)"""

    def __post_init__(self) -> None:
        for name in ("phases", "tasks_per_phase", "seeds_per_request"):
            value = getattr(self, name)
            _require(value >= 1, f"curriculum.{name}", "at least 1", value, "See the paper's §3.")
        low, high = self.value_min, self.value_max
        _require(0 <= low < 1, "curriculum.value_min", "in [0, 1)", low, "The paper has 0.05.")
        _require(
            low < high <= 1,
            "curriculum.value_max",
            f"above value_min ({low:g}), at most 1",
            high,
            "The paper has 0.75.",
        )


@dataclass(frozen=True)
class RolloutConfig:
    """How the agent acts."""

    environments: int = 8
    """Episodes at once."""
    max_steps: int = 30
    """Replies an episode. (released VAB run.py:136; the paper does not say)"""
    parse_failures: int = 5
    """Unreadable replies in a row that end an episode. (released wa_parallel_run_webrl.sh)"""
    equal_replies: int = 5
    """Equal replies in a row that end an episode. (released VAB run.py:232)"""
    temperature: float = 1.0
    """In training rollouts. (paper Table 4)"""
    eval_temperature: float = 0.0
    """In evaluation; 0 is greedy. (released wa_parallel_run_webrl.sh:9)"""
    top_p: float = 1.0
    """Nucleus of sampling in training rollouts. (ours: the loss speaks of the whole distribution; released: 0.9)"""
    max_new_tokens: int = 128
    """Tokens of a reply. (released: 512 in training, 2048 in evaluation)"""
    base_url: str | None = None
    """Address of a server of completions that generates, such as vLLM's ``http://127.0.0.1:8000/v1``, into which the
    actor of each phase is loaded; None: the loaded model does."""
    tolerance: float = 0.05
    """Most distance, in nats a token, of the server's log-probabilities from the loaded model's; more is another
    adapter. (ours: a base in another precision than the server's needs more)"""

    def __post_init__(self) -> None:
        for name in ("environments", "max_steps", "parse_failures", "equal_replies", "max_new_tokens"):
            value = getattr(self, name)
            _require(value >= 1, f"rollout.{name}", "at least 1", value, "See webrl_lite/config.py.")
        for name in ("temperature", "eval_temperature"):
            value = getattr(self, name)
            _require(0 <= value <= 10, f"rollout.{name}", "in [0, 10]", value, "0 is greedy.")
        _require(0 < self.top_p <= 1, "rollout.top_p", "in (0, 1]", self.top_p, "1 samples from all tokens.")
        _positive("rollout.tolerance", self.tolerance, "Use e.g. 0.05.")
        _address("rollout.base_url", self.base_url)


@dataclass(frozen=True)
class EnvConfig:
    """The tasks and how a page becomes text."""

    name: Literal["embedded", "miniwob", "webarena", "webarena_lite", "webarena_verified"] = "embedded"
    """Set of tasks; ``--env NAME`` is short for it. WebArena's sites are yours: their addresses are in SHOPPING,
    SHOPPING_ADMIN, REDDIT, GITLAB, MAP and WIKIPEDIA."""
    tasks_file: str | None = None
    """WebArena: file of tasks in place of the set's own, which is in an installed wheel."""
    train_file: str | None = None
    """WebArena: graded tasks that the first actor plays, a file or the name of a set; None: the set's own train tasks,
    else those of ``sft.file``, else WebArena's that are not in WebArena-Lite."""
    tasks: tuple[str, ...] | None = None
    """Only these: names of MiniWoB++ tasks, ids of WebArena's test tasks. None: all."""
    max_required_steps: int | None = None
    """Embedded sites: only tasks that their scripted solution needs so many replies for, or fewer, the closing ``exit``
    included; 2 to 12. Train, test and the shipped demonstrations alike. None: all."""
    train_seeds: int = 10
    """MiniWoB++: seeds of each task to learn from."""
    test_seeds: int = 5
    """MiniWoB++: further seeds of each task to be tested on."""
    observation: Literal["lite", "webrl"] = "lite"
    """Format of a page's text: ours, or the authors' (released checkpoints need it)."""
    observation_tokens: int = 900
    """Most tokens of a page."""
    evaluator: Literal["auto", "strict", "webarena", "vab"] = "auto"
    """Mode of the graders; ``auto``: the one in which scores on the set are published, ``strict`` on our own."""
    judge: Literal["model", "offline", "none"] = "model"
    """Who decides WebArena's fuzzy rules: the served model of ``llm``, a typed comparison, or nobody. What nobody
    decides, also for want of a key, is ungraded."""
    pictures: bool = False
    """Keep a picture of every episode's last page, for judges that look at one; ``orm.judge`` keeps what it needs."""
    reset: str = ""
    """WebArena: what puts the sites into their first state: ``env-ctrl``, a command, or nothing."""
    reset_each: Literal["run", "episode"] = "run"
    """WebArena: reset once, or before every episode, which needs a copy of the sites for each environment."""

    def __post_init__(self) -> None:
        tokens = self.observation_tokens
        _require(tokens >= 64, "env.observation_tokens", "at least 64", tokens, "A page needs some hundreds.")
        for name in ("train_seeds", "test_seeds"):
            value = getattr(self, name)
            _require(value >= 1, f"env.{name}", "at least 1", value, "Use e.g. 5.")
        steps = self.max_required_steps
        rule = "at least 2: an embedded task needs a step and an exit"
        _require(steps is None or steps >= 2, "env.max_required_steps", rule, steps, "Use e.g. 5, or null for all.")


@dataclass(frozen=True)
class LlmConfig:
    """Which served model is asked for tasks and judgements, and within which limits; ours where no source is named."""

    model: str = "gpt-4o-2024-05-13"
    """Name of the model on the server. (released gen_task.py:148)"""
    base_url: str | None = None
    """Address of an OpenAI-compatible server, for example ``http://127.0.0.1:8000/v1``; None: OpenAI's own."""
    temperature: float | None = 1.0
    """Of new tasks; None leaves it to the server, as some models demand. (released gen_task.py:148)"""
    max_tokens: int = 2048
    """Most tokens of an answer."""
    timeout_s: float = 60.0
    """Seconds for one whole answer."""
    retries: int = 4
    """Further tries after the first."""
    backoff_s: float = 1.0
    """Pause before the second try; it doubles each time."""
    longest_pause_s: float = 30.0
    """No pause is longer, even if the server asks for it."""
    max_calls: int = 5000
    """Most requests of a run, tries included."""
    dollars_per_million_in: float = 0.0
    """Price of what is read, for the cost; 0 for a server of one's own."""
    dollars_per_million_out: float = 0.0
    """Price of what is written."""

    def __post_init__(self) -> None:
        rules = {
            "retries": (0, "Use e.g. 4."),
            "max_tokens": (1, "Use e.g. 2048."),
            "max_calls": (1, "Use e.g. 5000."),
            "backoff_s": (0, "Use e.g. 1."),
            "longest_pause_s": (0, "Use e.g. 30."),
            "dollars_per_million_in": (0, "0 if it costs nothing."),
            "dollars_per_million_out": (0, "0 if it costs nothing."),
        }
        for name, (least, hint) in rules.items():
            value = getattr(self, name)
            _require(math.isfinite(value) and value >= least, f"llm.{name}", f"at least {least}", value, hint)
        _positive("llm.timeout_s", self.timeout_s, "Use e.g. 60.")
        _require(bool(self.model), "llm.model", "a name", self.model, "Use e.g. gpt-4o-2024-05-13.")
        _address("llm.base_url", self.base_url)

    def pause_s(self, tries: int) -> float:
        """Return the pause after so many failed tries, without jitter: 1, 2, 4, ... times ``backoff_s``, capped."""
        return min(self.backoff_s * 2 ** min(tries - 1, 30), self.longest_pause_s)

    @property
    def longest_s(self) -> float:
        """Return the seconds after which ``ask`` has ended in any case, if the server asks for no pause of its own."""
        pauses = sum(self.pause_s(tries) for tries in range(1, self.retries + 1))
        return (self.retries + 1) * self.timeout_s + pauses


@dataclass(frozen=True)
class EvalConfig:
    """What is played after SFT and after every phase, at ``rollout.eval_temperature``."""

    split: Literal["test", "test_families"] = "test"
    """Unseen entities of known families, or families that no train task is of."""
    tasks: int | None = None
    """Tasks, drawn once with the seed of the draw below; None: all of the split."""
    seed: int = 0
    """Seed of the draw, one for all seeds of a run, so that runs are compared on the same tasks."""

    def __post_init__(self) -> None:
        _count("eval.tasks", self.tasks)
        _require(self.seed >= 0, "eval.seed", "at least 0", self.seed, "Use e.g. 0.")


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    preset: str = "tiny"
    """Where the other values come from unless they are set."""
    method: str = "webrl"
    """A row of ``baselines.METHODS``."""
    seed: int = 0
    """Seed of everything."""
    out: str = "runs/webrl"
    """Folder of the run."""
    report_to: Literal["none", "tensorboard", "trackio", "wandb"] = "none"
    """Where the trainers' numbers go beside ``metrics.jsonl``."""
    processes: int | None = None
    """Processes that train together on a CPU; None: one a core, at most 4. For GPUs see ``accelerate launch``."""
    model: ModelConfig = field(default_factory=ModelConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    sft: SftConfig = field(default_factory=SftConfig)
    orm: OrmConfig = field(default_factory=OrmConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    actor: ActorConfig = field(default_factory=ActorConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    llm: LlmConfig = field(default_factory=LlmConfig)

    @property
    def pictures(self) -> bool:
        """Return whether pictures of last pages are kept."""
        return self.env.pictures or self.orm.judge in ("screenshot", "caption")

    def __post_init__(self) -> None:
        _require(self.seed >= 0, "seed", "at least 0", self.seed, "Use e.g. 0.")
        _count("processes", self.processes)
        _require(bool(self.out), "out", "a folder", self.out, "Use e.g. runs/webrl.")


# Presets ------------------------------------------------------------------------------------------------------------


def tiny() -> Config:
    """The package's own model of a few million parameters; a laptop without a GPU."""
    return Config(
        # The upper half of the layers learns nearly as well, and the lower half is run once a row for all roles and
        # epochs. A model of this size needs some hundred updates: half of the demonstrations, read oftener, teach it
        # nearly as much as all, and leave as many train tasks for a judge that must see what the actor does wrong.
        lora=LoraConfig(rank=32, alpha=64, top_layers=3),
        sft=SftConfig(learning_rate=3e-3, batch_size=16, epochs=8.0, episodes=140, tokens_per_micro_batch=4096),
        orm=OrmConfig(learning_rate=3e-3, batch_size=8, epochs=12.0, rollouts=80, tokens_per_micro_batch=4096),
        critic=CriticConfig(learning_rate=1e-3, tokens_per_micro_batch=4096),
        actor=ActorConfig(learning_rate=5e-4, warmup=0.1, batch_size=16, tokens_per_micro_batch=4096),
        curriculum=CurriculumConfig(phases=2, tasks_per_phase=48),
        env=EnvConfig(max_required_steps=5),
        eval=EvalConfig(tasks=60),
        # At 1 a model of this size slips: 24 of 96 train tasks, where its first choices solved 52 of 150 test tasks.
        rollout=RolloutConfig(max_steps=14, parse_failures=3, equal_replies=3, temperature=0.5, max_new_tokens=96),
    )


SHORT_PAGES = tuple(
    (
        "buy-ticket choose-date-easy choose-list click-button click-button-sequence click-checkboxes "
        "click-checkboxes-transfer click-collapsible click-collapsible-nodelay click-dialog click-dialog-2 "
        "click-link click-menu click-option click-scroll-list click-tab click-tab-2 click-tab-2-easy "
        "click-tab-2-medium click-test click-test-2 click-test-transfer click-widget email-inbox-important "
        "email-inbox-noscroll enter-date enter-password enter-text enter-text-2 enter-text-dynamic enter-time "
        "find-greatest find-word focus-text focus-text-2 form-sequence-2 generate-number login-user navigate-tree "
        "phone-book read-table simple-algebra simple-arithmetic text-transform unicode-test use-colorwheel"
    ).split()
)
"""The pages of MiniWoB++ that an oracle does in at most 3 replies and 5 seconds, none of them held out; 46."""


def miniwob() -> Config:
    """The tiny base on short pages of MiniWoB++; twenty demonstrations show some, the rest it has to find out."""
    base = tiny()
    return dataclasses.replace(
        base,
        preset="miniwob",
        sft=dataclasses.replace(base.sft, episodes=20, epochs=30.0),
        # The pages grade themselves, so nothing has to judge unless ``orm.judge`` says so.
        orm=dataclasses.replace(base.orm, judge="grader", rollouts=138),
        # One pass leaves all first pages between 0.1 and 0.5; after three the band turns two of three proposals down,
        # among them one success in seven.
        critic=dataclasses.replace(base.critic, batch_size=16, epochs=3.0),
        actor=dataclasses.replace(base.actor, learning_rate=3e-3, schedule="cosine", epochs=4.0, beta=0.05),
        # Most of an action's twenty tokens are copied: it is below the paper's 1.053 even where its one choice is a
        # toss-up (0.5 to the power of -1/20 is 1.035), so the lower end would replay next to nothing.
        replay=ReplayConfig(ppl_min=1.0),
        curriculum=CurriculumConfig(phases=2, tasks_per_phase=184, first_phase="critic"),
        # At 1 twice as many solved steps have less than e^-8: a garbled note beside the right id, which is learned too.
        rollout=dataclasses.replace(base.rollout, temperature=0.7),
        env=EnvConfig(name="miniwob", tasks=SHORT_PAGES, test_seeds=4),
        eval=EvalConfig(tasks=184),
    )


def small() -> Config:
    """SmolLM2-135M-Instruct, a real language model that two CPU cores can still train."""
    return Config(
        preset="small",
        model=ModelConfig(name="HuggingFaceTB/SmolLM2-135M-Instruct", dtype="bfloat16"),
        lora=LoraConfig(rank=16, alpha=32),
        curriculum=CurriculumConfig(phases=3, tasks_per_phase=64),
        rollout=RolloutConfig(environments=4),
    )


def gpu24() -> Config:
    """Llama-3.1-8B-Instruct in 4 bits on one card of 24 GB."""
    train = {"batch_size": 32, "tokens_per_micro_batch": 8192}
    return Config(
        preset="gpu24",
        model=ModelConfig(
            name="meta-llama/Llama-3.1-8B-Instruct",
            quantization="nf4",
            dtype="bfloat16",
            template="webrl-llama3",
            max_length=8192,
        ),
        sft=SftConfig(**train),
        orm=OrmConfig(**train),
        critic=CriticConfig(**train),
        actor=ActorConfig(**train),
        curriculum=CurriculumConfig(tasks_per_phase=128),
        rollout=RolloutConfig(environments=5, max_new_tokens=512),
        env=EnvConfig(observation_tokens=6000),
    )


def gpu80() -> Config:
    """The same model on one card of 80 GB, with the paper's length and batch."""
    base = gpu24()
    train = {"batch_size": 128, "tokens_per_micro_batch": 32768}
    return dataclasses.replace(
        base,
        preset="gpu80",
        model=dataclasses.replace(base.model, max_length=16384),
        sft=SftConfig(**train),
        orm=OrmConfig(**train),
        critic=CriticConfig(**train),
        actor=ActorConfig(**train),
        curriculum=CurriculumConfig(tasks_per_phase=500),
        rollout=dataclasses.replace(base.rollout, environments=12),
        env=EnvConfig(observation_tokens=12000),
    )


def paper() -> Config:
    """The paper's constants, on adapters; what the paper leaves open is as in the released code."""
    base = gpu80()
    return dataclasses.replace(
        base,
        preset="paper",
        sft=SftConfig(learning_rate=1e-5, batch_size=128),
        orm=OrmConfig(learning_rate=5e-6, batch_size=128),
        critic=CriticConfig(learning_rate=1e-6, batch_size=128),
        actor=ActorConfig(learning_rate=1e-6, batch_size=128),
        env=EnvConfig(observation="webrl", observation_tokens=15872, evaluator="vab"),
    )


PRESETS = {"tiny": tiny, "miniwob": miniwob, "small": small, "gpu24": gpu24, "gpu80": gpu80, "paper": paper}
"""Presets by name."""


# Reading and writing ------------------------------------------------------------------------------------------------


def preset(name: str) -> Config:
    """Return a preset.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in PRESETS:
        raise ConfigError(f"`preset` must be one of {', '.join(PRESETS)}, got {name!r}.{_nearest(name, PRESETS)}")
    return PRESETS[name]()


def to_dict(config: Config) -> dict[str, JSON]:
    """Return the settings as plain values; ``from_dict`` reads them back equal."""
    return dataclasses.asdict(config)


def from_dict(values: Mapping[str, JSON]) -> Config:
    """Build a configuration from nested values over a preset.

    Args:
        values: settings by name; ``preset`` (default ``tiny``) gives those that are left out. Numbers must be
            numbers: a text such as ``"1e-5"`` is read as one, ``"fast"`` is refused.

    Raises:
        ConfigError: an unknown key (the nearest one is named), a wrong type, a value out of range.
    """
    name = values.get("preset", "tiny")
    if not isinstance(name, str):
        raise ConfigError(f"`preset` must be one of {', '.join(PRESETS)}, got {name!r}.")
    return _overlay(preset(name), values, "")


def _overlay(current: Group, values: Mapping[str, JSON], path: str) -> Group:
    types = typing.get_type_hints(type(current))
    fields = {f.name: types[f.name] for f in dataclasses.fields(current)}
    changed: dict[str, object] = {}
    for key, value in values.items():
        name = f"{path}{key}"
        if key not in fields:
            raise ConfigError(f"`{name}` is no setting.{_nearest(str(key), fields)}")
        inner = getattr(current, key)
        if dataclasses.is_dataclass(inner):
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"`{name}` must be a group of settings, got {value!r}. Write e.g. {_example(name, inner)}."
                )
            changed[key] = _overlay(inner, value, f"{name}.")
        else:
            changed[key] = _typed(value, fields[key], name)
    return dataclasses.replace(current, **changed)


def _typed(value: JSON, wanted: object, name: str) -> object:
    """Return a value in the type that a setting has."""
    choices = typing.get_args(wanted)
    if typing.get_origin(wanted) is Literal:
        if value not in choices or isinstance(value, bool):
            shown = ", ".join(map(str, choices))
            raise ConfigError(
                f"`{name}` must be one of {shown}, got {value!r}.{_nearest(str(value), map(str, choices))}"
            )
        return value
    kinds = tuple(kind for kind in choices if kind is not type(None)) or (wanted,)
    if value is None and type(None) in choices:
        return None
    if isinstance(value, list) and any(typing.get_origin(kind) is tuple for kind in kinds):
        if value and all(isinstance(item, str) and item for item in value):
            return tuple(value)
    for kind in kinds:
        if kind is bool and isinstance(value, bool) or kind is str and isinstance(value, str):
            return value
        if kind in (int, float) and not isinstance(value, bool) and (number := _number(value, kind)) is not None:
            return number
    words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    expected = " or ".join(words.get(kind, "a list of texts") for kind in kinds)
    raise ConfigError(f"`{name}` must be {expected}, got {value!r}.")


def _number(value: JSON, kind: type[int] | type[float]) -> int | float | None:
    """Return a number that a file may have written as text (``1e-5`` is a text in YAML 1.1), or None."""
    if isinstance(value, str):
        try:
            value = (
                float(value)
                if kind is float
                else int(value, 10)
                if not value.lstrip("+-").startswith("0") or value == "0"
                else None
            )
        except ValueError:
            return None
    if isinstance(value, float) and kind is int:
        return int(value) if value.is_integer() else None
    if isinstance(value, int | float):
        return kind(value) if not math.isnan(value) else None
    return None


def _nearest(name: str, known: typing.Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {found[0]}?" if found else ""


def _example(name: str, group: object) -> str:
    first = dataclasses.fields(group)[0].name
    return f"{name}.{first} {getattr(group, first)}"
