import pytest
import torch
from tiny_models import load, stir

from webrl_lite.generation import _pick
from webrl_lite.model import Generated, RuleError, Sample, SharedBase

PROMPTS = [(5, 6, 7, 8, 9, 10), (5, 9), tuple(range(20, 60))]
GREEDY = {"temperature": 0, "top_p": 1, "max_new_tokens": 8, "stop_ids": [1]}
SAMPLED = {"temperature": 1, "top_p": 1, "max_new_tokens": 8, "stop_ids": range(0, 320, 5)}
"""One token in five stops, so rows end at different times."""


@pytest.fixture(scope="module", params=["llama", "lfm2", "gpt2"])
def shared(request: pytest.FixtureRequest) -> SharedBase:
    shared = load(request.param)
    stir(shared, "actor")
    return shared


def test_greedy_replies_in_a_batch_are_those_of_each_prompt_alone(shared: SharedBase) -> None:
    """TRN-12: three lengths; the tokenizer says right padding and still does afterwards."""
    assert shared.tokenizer.padding_side == "right"
    with shared.role("actor"):
        together = shared.generate(PROMPTS, **GREEDY)
        alone = [shared.generate([prompt], **GREEDY)[0] for prompt in PROMPTS]
    assert [reply.token_ids for reply in together] == [reply.token_ids for reply in alone]
    assert shared.tokenizer.padding_side == "right"


def test_greedy_takes_the_likeliest_token_of_a_plain_pass(shared: SharedBase) -> None:
    with shared.role("actor"):
        reply = shared.generate(PROMPTS[:1], **GREEDY)[0]
        row = [*PROMPTS[0]]
        for token in reply.token_ids:
            with torch.no_grad():
                assert shared.model(input_ids=torch.tensor([row])).logits[0, -1].argmax() == token
            row.append(token)


def test_a_sampled_reply_depends_on_its_prompt_and_seed_alone(shared: SharedBase) -> None:
    """Rows end at different times and leave the batch; the others go on undisturbed."""
    with shared.role("actor"):
        together = shared.generate(PROMPTS * 4, seeds=range(12), **SAMPLED)
        alone = [shared.generate([PROMPTS[i % 3]], seeds=[i], **SAMPLED)[0] for i in range(12)]
    assert [reply.token_ids for reply in together] == [reply.token_ids for reply in alone]
    assert len({len(reply.token_ids) for reply in together}) > 1


def test_the_samplers_log_probabilities_are_those_of_scoring(shared: SharedBase) -> None:
    """TRN-08: within 1e-3 nats a token in float32, at the stored ids."""
    with shared.role("actor"):
        replies = shared.generate(PROMPTS, seeds=[1, 2, 3], **SAMPLED)
        samples = [Sample(prompt, reply.token_ids) for prompt, reply in zip(PROMPTS, replies, strict=True)]
        scores = shared.action_logprobs(samples, reduction="tokens")
    for reply, score in zip(replies, scores, strict=True):
        assert torch.allclose(torch.tensor(reply.logprobs), score[: len(reply.logprobs)], atol=1e-3)


@pytest.mark.parametrize(("temperature", "top_p"), [(0, 1), (0.5, 1), (2, 0.7)])
def test_log_probabilities_are_the_policys_own_at_any_temperature(
    shared: SharedBase, temperature: float, top_p: float
) -> None:
    settings = {**SAMPLED, "temperature": temperature, "top_p": top_p, "seeds": [4]}
    with shared.role("actor"):
        reply = shared.generate(PROMPTS[:1], **settings)[0]
        score = shared.action_logprobs([Sample(PROMPTS[0], reply.token_ids)])
    assert abs(sum(reply.logprobs) - score.item()) < 1e-3


def test_a_reply_ends_with_its_stop_token_or_at_the_limit(shared: SharedBase) -> None:
    with shared.role("actor"):
        free = shared.generate(PROMPTS[:1], **{**GREEDY, "stop_ids": []})[0]
        stopped = shared.generate(PROMPTS[:1], **{**GREEDY, "stop_ids": [free.token_ids[2]]})[0]
    first = free.token_ids.index(free.token_ids[2]) + 1
    assert len(free.token_ids) == 8 and not free.stopped
    assert stopped.token_ids == free.token_ids[:first] and stopped.stopped
    assert len(stopped.logprobs) == first


def test_new_weights_are_used_at_once() -> None:
    """CKP-09: no cache keeps the old policy, and the version in the trace changes."""
    shared = load()
    with shared.role("actor"):
        old = shared.generate(PROMPTS, **GREEDY)
    version = shared.role_version("actor")
    stir(shared, "actor")
    with shared.role("actor"):
        new = shared.generate(PROMPTS, **GREEDY)
    fresh = load()
    stir(fresh, "actor")
    with fresh.role("actor"):
        expected = fresh.generate(PROMPTS, **GREEDY)
    assert new == expected != old
    assert shared.role_version("actor") == fresh.role_version("actor") != version
    assert len(version) == 12


def test_a_tiny_change_of_one_weight_changes_the_version() -> None:
    shared = load()
    before = shared.role_version("critic")
    with torch.no_grad():
        shared.value_head.bias[1] += 1e-6
    assert shared.role_version("critic") != before


def test_without_seeds_the_global_random_numbers_decide(shared: SharedBase) -> None:
    results: list[list[Generated]] = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        with shared.role("actor"):
            results.append(shared.generate(PROMPTS, **SAMPLED))
    assert results[0] == results[1] != results[2]


def test_generating_in_a_training_block_keeps_no_graph(shared: SharedBase) -> None:
    with shared.role("actor", train=True):
        reply = shared.generate(PROMPTS[:1], **GREEDY)[0]
        shared.action_logprobs([Sample(PROMPTS[0], reply.token_ids)]).sum().backward()
    assert shared.trainable_parameters("actor")[0].grad is not None
    with shared.role("actor"):
        assert shared.generate(PROMPTS[:1], **GREEDY)[0].token_ids == reply.token_ids


def test_no_prompts_are_no_replies(shared: SharedBase) -> None:
    with shared.role("actor"):
        assert shared.generate([], **GREEDY) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": -0.1}, "`temperature` must be at least 0"),
        ({"temperature": float("nan")}, "`temperature` must be at least 0"),
        ({"top_p": 0}, r"`top_p` in \(0, 1\]"),
        ({"top_p": 1.5}, r"`top_p` in \(0, 1\]"),
        ({"max_new_tokens": 0}, "`max_new_tokens` at least 1"),
        ({"seeds": [1]}, "one number a prompt, got 1 for 3 prompts"),
    ],
)
def test_settings_out_of_range_are_refused(shared: SharedBase, change: dict[str, float], message: str) -> None:
    with shared.role("actor"), pytest.raises(RuleError, match=message):
        shared.generate(PROMPTS, **{**GREEDY, **change})


def test_an_empty_prompt_is_refused(shared: SharedBase) -> None:
    with shared.role("actor"), pytest.raises(RuleError, match="row 1 must have at least one token"):
        shared.generate([(5,), ()], **GREEDY)


LOGITS = torch.tensor([[0.2, 0.5, 0.3]]).log()
"""Token 1 has 0.5, token 2 has 0.3, token 0 has 0.2: in this order the draws 0 to 1 are shared out."""


@pytest.mark.parametrize(
    ("draw", "top_p", "token"),
    [
        (0.0, 1, 1),
        (0.49, 1, 1),
        (0.51, 1, 2),
        (0.79, 1, 2),
        (0.81, 1, 0),
        (0.9999999, 1, 0),
        (0.62, 0.6, 1),  # token 0 cannot be drawn: 0.5 and 0.3 of 0.8, so token 1 reaches to 0.625
        (0.63, 0.6, 2),
        (0.9999999, 0.6, 2),
        (0.9999999, 0.4, 1),  # the likeliest is always kept
    ],
)
def test_a_draw_picks_the_token_whose_share_it_falls_into(draw: float, top_p: float, token: int) -> None:
    draws = torch.tensor([draw], dtype=torch.float64)
    assert _pick(LOGITS, 1, top_p, draws).item() == token


def test_temperature_sharpens_and_flattens() -> None:
    """At 0.5 the shares are 0.04, 0.25, 0.09 of 0.38: token 1 reaches to 0.658; at 2 to 0.415."""
    for temperature, inside, outside in ((0.5, 0.65, 0.66), (2, 0.41, 0.42)):
        for draw, token in ((inside, 1), (outside, 2)):
            assert _pick(LOGITS, temperature, 1, torch.tensor([draw], dtype=torch.float64)).item() == token
