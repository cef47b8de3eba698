"""The released checkpoints get the authors' prompts, byte for byte, through the path that evaluation uses."""

import dataclasses
import functools
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_prompts
import tiny_models
from transformers import PreTrainedTokenizerBase

from webrl_lite import released
from webrl_lite.config import Config, ConfigError, ModelConfig, RolloutConfig, paper, preset
from webrl_lite.model import Generated, SharedBase
from webrl_lite.orm import judge, yes_no
from webrl_lite.prompted import bare_policy
from webrl_lite.prompts import ORM_SYSTEM, PromptError, prompt_hash, stop_ids
from webrl_lite.rollout import ModelPolicy, Turn
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory, read_jsonl, write_jsonl

ACTORS = ("THUDM/webrl-llama-3.1-8b", "THUDM/webrl-llama-3.1-70b", "THUDM/webrl-glm-4-9b")
TOKENIZERS = {"webrl-llama3": test_prompts.llama3, "webrl-glm4": test_prompts.glm4}

TASK = Task("27", ("shopping",), "Buy the cheapest tea.", "__SHOPPING__/")
PAGES = (
    '<html> <a id="0" data-bbox="10,20,80,16"> Tea </a> </html>',
    '<html> <div> Green tea, 3 € </div> <button id="4" data-text="Add to Cart"> Add to Cart </button> </html>',
)
REPLIES = (
    '# Element: the link "Tea"\ndo(action="Click", element="0")',
    '# Note: green tea costs 3\n# Element: the button "Add to Cart"\ndo(action="Click", element="4")',
)

LLAMA3 = (
    "<|begin_of_text|>Task Instruction: Buy the cheapest tea.\n"
    "\n"
    "Round 0\n"
    "\n"
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
    '<html> <a id="0" data-bbox="10,20,80,16"> Tea </a> </html>\n'
    "\n"
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n",
    "<|begin_of_text|>Task Instruction: Buy the cheapest tea.\n"
    "\n"
    "Round 0\n"
    "\n"
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
    "Buy the cheapest tea.\n"
    "\n"
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
    '# Element: the link "Tea"\n'
    'do(action="Click", element="0")\n'
    "\n"
    "Round 1\n"
    "\n"
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
    '<html> <div> Green tea, 3 € </div> <button id="4" data-text="Add to Cart"> Add to Cart </button> </html>\n'
    "\n"
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n",
)
"""Both prompts of the episode, written by hand from the description of the authors' template."""

GLM4 = (
    "[gMASK]<sop>Task Instruction: Buy the cheapest tea.\n"
    "\n"
    "Round 0\n"
    "\n"
    "<|user|>\n"
    '<html> <a id="0" data-bbox="10,20,80,16"> Tea </a> </html>\n'
    "\n"
    "<|assistant|>\n",
    "[gMASK]<sop>Task Instruction: Buy the cheapest tea.\n"
    "\n"
    "Round 0\n"
    "\n"
    "<|user|>\n"
    "Buy the cheapest tea.\n"
    "\n"
    "<|assistant|>\n"
    '# Element: the link "Tea"\n'
    'do(action="Click", element="0")\n'
    "\n"
    "Round 1\n"
    "\n"
    "<|user|>\n"
    '<html> <div> Green tea, 3 € </div> <button id="4" data-text="Add to Cart"> Add to Cart </button> </html>\n'
    "\n"
    "<|assistant|>\n",
)

ORM = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
    "\n"
    "Judge it.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
    "\n"
    "The User Intent:\n"
    "Buy the cheapest tea.\n"
    "\n"
    "Action History:\n"
    '# Element: the link "Tea"; do(action="Click", element="0")\n'
    '# Note: green tea costs 3; # Element: the button "Add to Cart"; do(action="Click", element="4")\n'
    "\n"
    "The Current Screenshot:\n"
    '<html> <div> Green tea, 3 € </div> <button id="4" data-text="Add to Cart"> Add to Cart </button> </html>'
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
    "\n"
)
"""What the judge reads about the episode; the released instruction stands for ``Judge it.``"""


@pytest.fixture
def recorded(tmp_path: Path) -> Trajectory:
    """The episode as a trace on the disk, read back."""
    steps = tuple(Step(i, page, "u", reply) for i, (page, reply) in enumerate(zip(PAGES, REPLIES, strict=True)))
    write_jsonl(tmp_path / "rollouts.jsonl", [Trajectory(TASK, steps, StopReason.MAX_STEPS)])
    [trajectory] = read_jsonl(tmp_path / "rollouts.jsonl", Trajectory)
    return trajectory


@functools.cache
def folder(template: str) -> tempfile.TemporaryDirectory:
    """A random model with a small tokenizer of the class and the marks that the checkpoint's has."""
    place = tempfile.TemporaryDirectory(prefix="released-")
    tokenizer = TOKENIZERS[template]()
    model = tiny_models.llama(width=16, layers=1, vocabulary=len(tokenizer))
    model.config.max_position_embeddings = 32768
    model.save_pretrained(place.name)
    tokenizer.save_pretrained(place.name)
    return place


def settings(name: str, **rollout: object) -> Config:
    """What a checkpoint's name stands for, on the small model."""
    return at_hand(released.configure({"model": {"name": name}, "rollout": rollout}))


def at_hand(config: Config) -> Config:
    """The same settings for the small model in place of the checkpoint."""
    model = dataclasses.replace(config.model, name=folder(config.model.template).name, dtype="float32")
    return dataclasses.replace(config, model=model)


def turns(trajectory: Trajectory) -> list[Turn]:
    """The episode's turns, as the rollout gave them to its policy."""
    replies = tuple(step.reply for step in trajectory.steps)
    return [Turn(trajectory.task, replies[:i], step.observation, seed=i) for i, step in enumerate(trajectory.steps)]


def text(tokenizer: PreTrainedTokenizerBase, ids: tuple[int, ...]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def asked(policy: ModelPolicy, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The prompts that a policy sends to its model from now on; the model answers nothing."""
    seen: list[tuple[int, ...]] = []

    def generate(prompts: list[tuple[int, ...]], **given: object) -> list[Generated]:
        seen.extend(prompts)
        return [Generated((), (), False)] * len(prompts)

    monkeypatch.setattr(policy.shared, "generate", generate)
    return seen


# Prompts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), [("THUDM/webrl-llama-3.1-8b", LLAMA3), ("THUDM/webrl-glm-4-9b", GLM4)])
def test_a_recorded_episode_gives_the_authors_prompts_byte_for_byte(name, expected, recorded, monkeypatch):
    policy = bare_policy(settings(name), device="cpu")
    seen = asked(policy, monkeypatch)
    policy(turns(recorded))
    tokenizer = policy.shared.tokenizer
    assert [text(tokenizer, ids).encode() for ids in seen] == [prompt.encode() for prompt in expected]
    assert [list(ids) for ids in seen] == [tokenizer.encode(one, add_special_tokens=False) for one in expected]


def test_the_path_runs_on_a_model_and_stores_the_hash_of_these_prompts(recorded):
    policy = bare_policy(settings("THUDM/webrl-llama-3.1-8b", max_new_tokens=8), device="cpu")
    said = policy(turns(recorded))
    tokenizer = policy.shared.tokenizer
    hashes = [prompt_hash(tokenizer.encode(prompt, add_special_tokens=False)) for prompt in LLAMA3]
    assert [one.prompt_hash for one in said] == hashes
    assert all(1 <= len(one.token_ids) <= 8 for one in said)
    assert [one.text for one in policy(turns(recorded))] == [one.text for one in said]  # greedy


def test_a_long_page_is_cut_where_the_authors_cut_it(monkeypatch):
    """History and page together have 15,872 characters; the history of one reply of 100 characters has 228.

    "Round 0", two line breaks: 9. The user's header, 50, and a line break. "Buy tea.", two line breaks: 10. The
    assistant's header, 55, and a line break. The reply, two line breaks: 102. Together 9 + 51 + 10 + 56 + 102 = 228.
    """
    policy = bare_policy(settings("THUDM/webrl-llama-3.1-8b"), device="cpu")
    seen = asked(policy, monkeypatch)
    task = Task("1", ("map",), "Buy tea.", "__MAP__/")
    page = "Task Instruction: Buy tea. " * 700  # 18,900 characters
    policy([Turn(task, (), page, 0), Turn(task, ("r" * 100,), page, 0)])
    shown = [text(policy.shared.tokenizer, ids).rpartition("user<|end_header_id|>\n")[2] for ids in seen]
    kept = [one.partition("\n\n<|eot_id|>")[0] for one in shown]
    assert kept == [page[:15872], page[: 15872 - 228]]


def test_replies_end_where_the_authors_end_them():
    llama = stop_ids(TOKENIZERS["webrl-llama3"](), released.CHECKPOINTS["webrl-llama-3.1-8b"].template)
    assert llama == {test_prompts.LLAMA3_MARKS.index("<|eot_id|>"), test_prompts.LLAMA3_MARKS.index("<|end_of_text|>")}
    glm = stop_ids(TOKENIZERS["webrl-glm4"](), released.CHECKPOINTS["webrl-glm-4-9b"].template)
    assert glm == {test_prompts.GLM4_MARKS.index(mark) for mark in ("<|endoftext|>", "<|user|>", "<|observation|>")}


# The judge ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def orm() -> Iterator[SharedBase]:
    config = at_hand(released.configure({"model": {"name": "THUDM/webrl-orm-llama-3.1-8b"}}))
    yield SharedBase.load(config.model, config.lora, roles=("orm",), device="cpu")


def question(orm: SharedBase, trajectory: Trajectory, system: str) -> tuple[int, ...]:
    return released.orm_question(
        orm.tokenizer, trajectory, template="webrl-llama3", max_length=orm.max_length, system=system
    ).ids


def test_the_judge_reads_the_authors_prompt_byte_for_byte(orm, recorded):
    ids = question(orm, recorded, "Judge it.")
    assert text(orm.tokenizer, ids).encode() == ORM.encode()
    assert list(ids) == orm.tokenizer.encode(ORM, add_special_tokens=False)


def test_the_judge_answers_with_the_tokens_that_the_authors_read(orm, recorded):
    """process_data.py:297-298 looks the bare words up in the vocabulary."""
    ids = question(orm, recorded, ORM_SYSTEM)
    assert list(yes_no(orm, ids)) == orm.tokenizer.convert_tokens_to_ids(["YES", "NO"])
    [said] = judge(orm, [ids])
    assert 0 <= said.score <= 1 and 0 <= said.mass <= 1


def test_an_episode_without_a_step_cannot_be_judged(orm):
    with pytest.raises(PromptError, match="`trajectory` must have a step"):
        question(orm, Trajectory(TASK, (), StopReason.ENV_ERROR), ORM_SYSTEM)


def test_the_judge_s_instruction_is_taken_from_the_release_and_checked(tmp_path, monkeypatch):
    """Another text with a curly quote stands for the released one."""
    wanted = "Is the user’s task done? YES or NO."
    monkeypatch.setattr(released, "ORM_SYSTEM_SHA256", hashlib.sha256(wanted.encode()).hexdigest())
    plain, code, other = tmp_path / "orm.txt", tmp_path / "process_data.py", tmp_path / "other.py"
    plain.write_text(wanted + "\n", encoding="utf-8")
    code.write_text(f'import json\nx = "YES"\nsystem = """{wanted}"""\n', encoding="utf-8")
    other.write_text("system = 'Is it done?'\n", encoding="utf-8")
    assert released.orm_system(plain) == released.orm_system(code) == wanted
    with pytest.raises(ValueError, match="must hold the instruction of the released judge"):
        released.orm_system(other)


# Settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACTORS)
def test_a_name_stands_for_the_authors_settings(name):
    config = released.configure({"model": {"name": name}})
    rollout = config.rollout
    assert (config.model.name, config.model.max_length) == (name, 16384)
    assert config.model.template == ("webrl-glm4" if "glm" in name else "webrl-llama3")
    assert (rollout.eval_temperature, rollout.top_p, rollout.max_new_tokens) == (0.0, 0.9, 2048)
    assert (rollout.max_steps, rollout.parse_failures, rollout.equal_replies) == (30, 5, 5)
    assert (config.env.observation, config.env.observation_tokens, config.env.evaluator) == ("webrl", 15872, "vab")


def test_the_released_judge_compares_yes_with_no():
    config = released.configure({"model": {"name": "THUDM/webrl-orm-llama-3.1-8b"}})
    assert (config.model.template, config.orm.threshold) == ("webrl-llama3", 0.5)
    assert released.CHECKPOINTS["webrl-orm-llama-3.1-8b"].role == "orm"


@pytest.mark.parametrize(
    "name",
    ["THUDM/webrl-llama-3.1-8b", "zai-org/webrl-llama-3.1-8b", "/data/WebRL-Llama-3.1-8B/", "webrl-llama-3.1-8b"],
)
def test_a_checkpoint_is_known_by_hub_name_and_by_folder(name):
    assert released.checkpoint(name).name == "THUDM/webrl-llama-3.1-8b"


@pytest.mark.parametrize("name", ["tiny", "", "meta-llama/Llama-3.1-8B-Instruct", "me/webrl-llama-3.1-8b-awq"])
def test_other_models_are_left_alone(name):
    assert released.checkpoint(name) is None
    if name:
        tiny = preset("tiny")
        lora = tiny.lora if name == "tiny" else dataclasses.replace(tiny.lora, top_layers=None)
        assert released.configure({"model": {"name": name}}) == dataclasses.replace(
            tiny, model=ModelConfig(name=name), lora=lora
        )
        assert released.over(paper(), name).rollout == paper().rollout


def test_only_the_presets_own_model_has_its_choice_of_layers():
    """A model of one layer, or of an architecture that can't be run in two parts, has no upper three."""
    assert (
        released.configure({}).lora.top_layers == released.configure({"model": {"name": "tiny"}}).lora.top_layers == 3
    )
    assert released.configure({"model": {"name": "gpt2"}, "lora": {"rank": 4}}).lora.top_layers is None
    assert released.configure({"model": {"name": "gpt2"}, "lora": {"top_layers": 2}}).lora.top_layers == 2
    assert released.over(preset("tiny"), "gpt2").lora.top_layers is None
    assert released.over(preset("tiny"), "tiny").lora.top_layers == 3


def test_what_the_user_sets_wins():
    values = {
        "preset": "gpu24",
        "model": {"name": "THUDM/webrl-llama-3.1-8b", "max_length": 8192},
        "rollout": {"max_new_tokens": 256},
        "env": {"evaluator": "strict"},
    }
    config = released.configure(values)
    assert (config.model.max_length, config.model.quantization) == (8192, "nf4")  # the user's, the preset's
    assert (config.rollout.max_new_tokens, config.rollout.top_p) == (256, 0.9)
    assert (config.env.evaluator, config.env.observation) == ("strict", "webrl")


def test_a_preset_can_be_laid_under_a_checkpoint():
    config = released.over(preset("gpu24"), "THUDM/webrl-glm-4-9b")
    assert (config.model.name, config.model.template) == ("THUDM/webrl-glm-4-9b", "webrl-glm4")
    assert (config.model.quantization, config.rollout.max_new_tokens, config.env.evaluator) == ("nf4", 2048, "vab")
    assert config.rollout == RolloutConfig(environments=5, top_p=0.9, max_new_tokens=2048)


@pytest.mark.parametrize("values", [{"model": "THUDM/webrl-llama-3.1-8b"}, {"model": {"name": 3}}, {"modle": {}}])
def test_settings_that_cannot_be_are_still_refused(values):
    with pytest.raises(ConfigError):
        released.configure(values)


def test_every_checkpoint_of_the_paper_is_in_the_table():
    assert sorted(released.CHECKPOINTS) == [
        "webrl-glm-4-9b",
        "webrl-llama-3.1-70b",
        "webrl-llama-3.1-8b",
        "webrl-orm-llama-3.1-8b",
    ]


def test_what_is_not_known_of_a_checkpoint_is_said():
    notes = {name: one.note for name, one in released.CHECKPOINTS.items()}
    assert notes["webrl-llama-3.1-8b"] == notes["webrl-llama-3.1-70b"] == ""
    assert "form of its prompt is ours" in notes["webrl-glm-4-9b"]
    assert "`released.orm_system`" in notes["webrl-orm-llama-3.1-8b"]
