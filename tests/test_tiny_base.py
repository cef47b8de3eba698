"""The tiny base: its tokenizer, its script, and the model that ships."""

import dataclasses
import json
import random
import re

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests import tiny_models  # noqa: F401  (one thread)
from webrl_lite import tiny_base
from webrl_lite.actions import parse
from webrl_lite.base_model import TINY_FOLDER
from webrl_lite.batching import Sample
from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.grounding import Document, Query, judgement, walk_documents
from webrl_lite.model import SharedBase, answer_ids
from webrl_lite.prompts import action_ids, actor_prompt, orm_prompt, stop_ids
from webrl_lite.tiny_base import Recipe, encode, encode_judgement, exactness, pretrain, rows

SMALL = Recipe(width=64, layers=2, feed_forward=64, heads=2, kv_heads=1, tokens=9000, batch_tokens=1500, warmup=2)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(TINY_FOLDER)


@pytest.fixture(scope="module")
def shared() -> SharedBase:
    return SharedBase.load(ModelConfig(), LoraConfig(), device="cpu")


def pieces(tokenizer: PreTrainedTokenizerFast, text: str) -> list[str]:
    return [tokenizer.decode([i]) for i in tokenizer.encode(text, add_special_tokens=False)]


# Tokenizer ----------------------------------------------------------------------------------------------------------


def test_an_id_of_the_page_is_the_same_token_in_a_reply(tokenizer):
    for number in range(1, 100):
        (page,) = set(tokenizer.encode(f" [{number}]")) - set(tokenizer.encode(" []"))
        assert page in tokenizer.encode(f'", element="{number}")')


@pytest.mark.parametrize(
    "text", ["{}\nx", "x | {} [4]", "the {} now", '", argument="{}")', "'{}'", "({})", "# Element: {} link"]
)
def test_a_name_has_the_same_tokens_wherever_it_stands(tokenizer, text):
    name = tokenizer.encode("Quorvel Teapot", add_special_tokens=False)
    whole = tokenizer.encode(text.format("Quorvel Teapot"), add_special_tokens=False)
    assert any(whole[i : i + len(name)] == name for i in range(len(whole)))


def test_the_fixed_parts_of_a_reply_are_one_token_each(tokenizer):
    assert pieces(tokenizer, '# Element: Go [12] button\ndo(action="Type", argument="7", element="12")') == [
        "# Element: ", "Go", " [", "12", "]", " button",
        '\ndo(action="', "Type", '", argument="', "7", '", element="', "12", '")',
    ]  # fmt: skip


def test_the_judges_answers_are_one_token_each(tokenizer):
    assert len(answer_ids(tokenizer, "<|user|>x<|assistant|>", ("YES", "NO"))) == 2


@pytest.mark.parametrize("text", ["", "é ↑ – 漢 \t\n  x", "a  b\n\n= c | d [12]", '"), exit(message="', "NOTE YESNO"])
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_pages_of_the_embedded_sites_are_short(tokenizer):
    """Half of all pages below 350 tokens and none above 900, so that a phase on two cores is a matter of minutes."""
    lengths = sorted(
        len(tokenizer.encode(step.observation, add_special_tokens=False))
        for trajectory in demonstrations()
        for step in trajectory.steps
    )
    assert lengths[len(lengths) // 2] < 350 and lengths[-1] < 900


# Documents ----------------------------------------------------------------------------------------------------------


def test_pre_training_reads_the_tokens_that_the_actor_reads(tokenizer):
    for seed in range(20):
        for document in walk_documents(random.Random(seed)):
            query = document.queries[0]
            row = encode(tokenizer, Document(document.page, (query,)), 0.2)
            prompt = actor_prompt(
                tokenizer, "chat", intent=query.task, replies=query.replies, page=document.page, max_length=4096,
                max_new_tokens=64,
            )  # fmt: skip
            assert row.ids == prompt.ids + action_ids(tokenizer, "chat", query.reply)
            assert row.replies == ((query.kind, len(prompt.ids), len(row.ids)),)


def test_pre_training_reads_the_tokens_that_the_judge_reads(tokenizer):
    for seed in range(20):
        case = judgement(random.Random(seed))
        prompt = orm_prompt(tokenizer, "chat", intent=case.task, replies=case.replies, page=case.page, max_length=4096)
        row = encode_judgement(tokenizer, judgement(random.Random(seed)), 8.0)
        assert row.ids[: len(prompt.ids)] == prompt.ids and len(row.ids) == len(prompt.ids) + 2
        assert tokenizer.decode(row.ids[-2]) in ("YES", "NO") and row.weights[-3:] == (0.0, 8.0, 1.0)


def test_replies_show_most_tokens_that_only_stand_inside_of_words(tokenizer):
    """A token that no reply ever held can't be copied: "friend" became "farb", as "riend" had never been shown."""
    inside = {i for text, i in tokenizer.get_vocab().items() if re.fullmatch("[a-z]{3,}", text)}
    shown: set[int] = set()
    for number in range(600):  # 2,948 replies
        for row in rows(tokenizer, Recipe(), number, 7):
            shown.update(i for _, first, last in row.replies for i in row.ids[first:last])
    assert len(inside & shown) / len(inside) > 0.62  # 0.53 from English words and syllables alone


def test_only_instructions_and_replies_count(tokenizer):
    document = Document("@ a | tab 0/1 | 0-720 of 720\nGo [1] button", (Query("press", "Press Go.", "x"),) * 2)
    row = encode(tokenizer, document, 0.25)
    counted = [tokenizer.decode([i]) for i, w in zip(row.ids, row.weights, strict=True) if w == 1]
    assert counted == ["x", "<|end|>", "x", "<|end|>"]
    some = "".join(tokenizer.decode([i]) for i, w in zip(row.ids, row.weights, strict=True) if w == 0.25)
    assert some == "\n\nTask: Press Go.<|user|>\n\nTask: Press Go."


# Pre-training -------------------------------------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path, tokenizer, monkeypatch):
    def run(folder, recipe):
        tokenizer.save_pretrained(folder / "tokenizer")
        pretrain(folder, recipe, every=2)
        return torch.load(folder / "checkpoint.pt", weights_only=True)

    monkeypatch.setattr(tiny_base, "HELD_OUT", 2)
    whole = run(tmp_path / "a", SMALL)
    real, calls = tiny_base.exactness, []

    def stop_at_the_second_report(*given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(tiny_base, "exactness", stop_at_the_second_report)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "b", SMALL)
    again = run(tmp_path / "b", SMALL)
    assert again["step"] == whole["step"] > 4
    assert all(torch.equal(again["model"][name], tensor) for name, tensor in whole["model"].items())
    lines = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines][:2] == [2, 4] and lines[-1]["loss"] < lines[0]["loss"]


def test_a_folder_is_not_continued_with_another_recipe(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(tiny_base, "HELD_OUT", 1)
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    pretrain(tmp_path, dataclasses.replace(SMALL, tokens=100))
    with pytest.raises(ValueError, match="muon_rate, seed differ"):
        pretrain(tmp_path, dataclasses.replace(SMALL, seed=1, muon_rate=0.5))
    pretrain(tmp_path, dataclasses.replace(SMALL, tokens=4000))
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert len(steps) == 2 and steps[1] > steps[0]


def test_pre_training_begins_with_the_weights_and_the_tokenizer_that_it_is_given(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(tiny_base, "HELD_OUT", 1)
    tokenizer.save_pretrained(tmp_path / "first" / "tokenizer")
    pretrain(tmp_path / "first", dataclasses.replace(SMALL, tokens=3000))
    tiny_base.ship(tmp_path / "first", tmp_path / "shipped")
    still = dataclasses.replace(SMALL, tokens=100, muon_rate=0.0, adam_rate=0.0, seed=5)
    pretrain(tmp_path / "second", still, start=tmp_path / "shipped")
    first, second = (torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("first", "second"))
    for name, tensor in first["model"].items():
        if "embed" not in name and "lm_head" not in name:  # those of tokens that were never met are told apart
            assert torch.equal(second["model"][name], tensor.half().float()), name
    assert (tmp_path / "second" / "tokenizer" / "tokenizer.json").read_bytes() == (
        tmp_path / "first" / "tokenizer" / "tokenizer.json"
    ).read_bytes()


def test_the_step_size_rises_stays_and_falls_to_nothing():
    recipe = dataclasses.replace(SMALL, warmup=4, decay=0.5)
    factors = [tiny_base._factor(step, 20, recipe) for step in range(20)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4:11] == [1.0] * 7
    assert factors[-1] == 0.1


# The model that ships -----------------------------------------------------------------------------------------------


def test_weights_and_tokenizer_are_below_16_megabytes_and_4_million_parameters(shared):
    assert sum(path.stat().st_size for path in TINY_FOLDER.iterdir()) < 16_000_000
    base = [p for name, p in shared.model.named_parameters() if "lora" not in name]
    assert sum(p.numel() for p in base) < 4_000_000


def test_no_two_tokens_of_the_base_have_one_embedding(shared):
    """What shares its embedding with others is never likelier than they are, however long an adapter is trained."""
    directions = torch.nn.functional.normalize(shared.model.get_input_embeddings().weight.detach().float(), dim=-1)
    alike = (directions @ directions.T).fill_diagonal_(0.0)
    assert alike.max() < 0.95


def test_tokens_of_one_embedding_are_told_apart_and_stay_as_far_from_the_others():
    """Three of five tokens point one way, of lengths 2, 2 and 1; the median length is 2."""
    before = torch.tensor([[2.0, 0, 0, 0], [0, 5, 0, 0], [2, 0, 0, 0], [0, 0, 3, 0], [1, 0, 0, 0]])
    after = before.clone()
    assert tiny_base.tell_apart(after, seed=1) == 3
    assert torch.equal(after[[1, 3]], before[[1, 3]])
    assert after[[0, 2, 4], 0].tolist() == pytest.approx([5 / 3] * 3)  # the common part
    own = after[[0, 2, 4], 1:]
    assert own.norm(dim=-1).tolist() == pytest.approx([2.0] * 3)
    assert torch.nn.functional.cosine_similarity(own, own.roll(1, dims=0)).max() < 0.99
    assert tiny_base.tell_apart(after, seed=1) == 0


def test_a_token_that_pre_training_never_met_can_be_learned_for_certain(tokenizer):
    """An adapter that reads one reply with ``[`` fifty times gives it nearly all of the probability."""
    shared = SharedBase.load(ModelConfig(), LoraConfig(), device="cpu", roles=("actor",))
    sample = Sample(tuple(tokenizer.encode("<|begin|><|user|>\n[3] input<|assistant|>", add_special_tokens=False)),
                    tuple(tokenizer.encode("# Element: [3] input", add_special_tokens=False)))  # fmt: skip
    with shared.role("actor", train=True):
        weights = [p for p in shared.model.parameters() if p.requires_grad]
        optimizer = torch.optim.Adam(weights, lr=3e-3)
        for _ in range(50):
            loss = -shared.action_logprobs([sample]).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert loss.item() < 0.5  # with 167 tokens of one embedding it was 5.1 = ln 167


def test_exactness_is_what_greedy_replies_give(shared, tokenizer):
    stops = stop_ids(tokenizer, "chat")
    documents = [document for seed in range(6) for document in walk_documents(random.Random(f"greedy:{seed}"))]
    single = [Document(document.page, document.queries[:1]) for document in documents]
    with shared.role("actor"):
        said = shared.generate(
            [encode(tokenizer, d, 0.2).ids[: encode(tokenizer, d, 0.2).replies[0][1]] for d in single],
            temperature=0, top_p=1.0, max_new_tokens=64, stop_ids=stops,
        )  # fmt: skip
    greedy = sum(
        said_.token_ids == action_ids(tokenizer, "chat", d.queries[0].reply)
        for said_, d in zip(said, single, strict=True)
    )
    base = shared.model.get_base_model()
    with shared.model.disable_adapter():
        right, count = exactness(base, [encode(tokenizer, d, 0.2) for d in single])["walk"]
    assert (right, count) == (greedy, len(single))


def test_the_base_reads_pages_it_has_never_seen(shared, tokenizer):
    """Single steps on unseen pages; measured on 1,500 replies in the README, here on fewer."""
    examples = [row for number in range(40) for row in rows(tokenizer, Recipe(), number, 99)]
    with shared.model.disable_adapter():
        tally = exactness(shared.model.get_base_model(), examples)
    assert tiny_base.share(tally) > 0.8


def test_greedy_replies_of_the_base_are_understood(shared, tokenizer):
    document = walk_documents(random.Random(5))[0]
    prompt = actor_prompt(
        tokenizer,
        "chat",
        intent="Show me the kettles.",
        replies=(),
        page=document.page,
        max_length=2048,
        max_new_tokens=64,
    )
    with shared.role("actor"):
        (said,) = shared.generate(
            [prompt.ids], temperature=0, top_p=1.0, max_new_tokens=64, stop_ids=stop_ids(tokenizer, "chat")
        )
    assert said.stopped
    assert parse(tokenizer.decode(said.token_ids[:-1])).action.name in ("Click", "Hover", "Search", "Type", "Exit")


def test_the_base_loads_in_4_bits():
    shared = SharedBase.load(ModelConfig(quantization="nf4"), LoraConfig(), device="cpu", roles=("actor",))
    shared.check_gradients()
