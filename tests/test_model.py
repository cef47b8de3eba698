from functools import partial

import pytest
import torch
from tiny_models import VOCABULARY, folder, llama, load, save, stir, tokenizer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedTokenizerFast

from webrl_lite.batching import pad
from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.model import RuleError, Sample, SharedBase, answer_ids

SAMPLES = [
    Sample((5, 6, 7, 8, 9, 10), (11, 12, 1)),
    Sample((5, 9, 40), (41, 1)),
    Sample(tuple(range(20, 60)), (77, 3, 4, 9, 9, 1)),
]
PROMPTS = [sample.prompt for sample in SAMPLES]


@pytest.fixture(scope="module", params=["llama", "lfm2", "gpt2"])
def shared(request: pytest.FixtureRequest) -> SharedBase:
    """Rotary positions, short convolutions, absolute positions."""
    shared = load(request.param)
    stir(shared, "actor", "critic", "orm")
    return shared


@pytest.fixture(scope="module")
def llama_base() -> SharedBase:
    return load("llama")


# Log-probabilities --------------------------------------------------------------------------------------------------


def test_a_model_without_preference_gives_every_token_the_same_probability() -> None:
    """320 equally likely tokens: -ln 320 = -5.768321 a token, -17.304963 for three, -11.536642 for two."""
    shared = load()
    with torch.no_grad():
        shared.model.get_base_model().lm_head.weight.zero_()
    with shared.role("actor"):
        found = shared.action_logprobs(SAMPLES[:2])
        tokens = shared.action_logprobs(SAMPLES[:2], reduction="tokens")
    assert torch.allclose(found, torch.tensor([-17.304963, -11.536642]), atol=1e-4)
    assert torch.allclose(tokens, torch.tensor([[-5.768321] * 3, [-5.768321] * 2 + [0.0]]), atol=1e-5)


def test_log_probabilities_are_those_of_the_models_own_full_logits(shared: SharedBase) -> None:
    """PRF-01: equal to the naive way. The token in column c is predicted in column c - 1."""
    with shared.role("actor"):
        found = shared.action_logprobs(SAMPLES)
        for sample, one in zip(SAMPLES, found, strict=True):
            logits = shared.model(input_ids=torch.tensor([sample.row])).logits[0].float()
            naive = logits.log_softmax(dim=-1)[len(sample.prompt) - 1 : -1]
            expected = sum(naive[place, token] for place, token in enumerate(sample.action))
            assert abs(one - expected) < 1e-4


def test_the_end_of_turn_token_counts_though_it_is_also_the_padding_token() -> None:
    """TRN-01, TRN-05: the mask is exactly the action, its end included."""
    shared = load()
    assert shared.tokenizer.pad_token_id == shared.tokenizer.eos_token_id == 1
    with shared.role("actor"):
        with_end = shared.action_logprobs([Sample((5, 6), (11, 1)), SAMPLES[2]], reduction="tokens")
        without = shared.action_logprobs([Sample((5, 6), (11,)), SAMPLES[2]], reduction="tokens")
    assert with_end[0].count_nonzero() == 2
    assert without[0].count_nonzero() == 1


def test_padding_side_does_not_change_a_score(shared: SharedBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRN-10: 37 columns of padding for the shortest row, on either side."""
    with shared.role("critic"):
        right, right_values = shared.action_logprobs(SAMPLES, reduction="tokens"), shared.values(PROMPTS)
    monkeypatch.setattr("webrl_lite.passes.pad", partial(pad, side="left"))
    with shared.role("critic"):
        left, left_values = shared.action_logprobs(SAMPLES, reduction="tokens"), shared.values(PROMPTS)
    assert torch.allclose(right, left, atol=1e-5)
    assert torch.allclose(right_values, left_values, atol=1e-5)


def test_a_batch_scores_like_its_rows_alone_and_in_their_order(shared: SharedBase) -> None:
    with shared.role("actor"):
        together = shared.action_logprobs(SAMPLES)
        alone = torch.cat([shared.action_logprobs([sample]) for sample in SAMPLES])
        turned = shared.action_logprobs(SAMPLES[::-1]).flip(0)
    assert torch.allclose(together, alone, atol=1e-4)
    assert torch.allclose(together, turned, atol=1e-4)


@pytest.mark.parametrize("tokens", [1, 20, 100])
def test_micro_batches_change_neither_scores_nor_gradients(tokens: int) -> None:
    results = []
    for budget in (8192, tokens):
        shared = load(tokens_per_micro_batch=budget)
        stir(shared, "actor")
        with shared.role("actor", train=True):
            scores = shared.action_logprobs(SAMPLES)
            scores.sum().backward()
        results.append((scores.detach(), [p.grad for p in shared.trainable_parameters("actor")]))
    (one, one_grad), (other, other_grad) = results
    assert torch.allclose(one, other, atol=1e-4)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(one_grad, other_grad, strict=True))


def test_the_output_layer_in_parts_changes_neither_scores_nor_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for rows in (512, 4):
        monkeypatch.setattr("webrl_lite.passes.HEAD_ROWS", rows)
        shared = load()
        stir(shared, "actor")
        with shared.role("actor", train=True):
            scores = shared.action_logprobs(SAMPLES)
            scores.sum().backward()
        results.append((scores.detach(), shared.trainable_parameters("actor")[0].grad))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-5)
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-5)


def test_the_log_ratio_to_a_copied_reference_is_zero_and_not_nearly(shared: SharedBase) -> None:
    """TRN-08, TRN-13: in training mode against scoring mode too; GPT-2's configuration has a dropout of 0.1."""
    shared.copy_role("actor", "ref")
    with shared.role("actor", train=True):
        logprob = shared.action_logprobs(SAMPLES).detach()
    with shared.role("ref"):
        ref_logprob = shared.action_logprobs(SAMPLES)
    assert torch.equal(logprob - ref_logprob, torch.zeros(3))


def test_the_log_ratio_is_zero_on_a_bfloat16_base_too() -> None:
    """TRN-13: and log-probabilities are float32 there."""
    shared = load(dtype="bfloat16")
    stir(shared, "actor")
    shared.copy_role("actor", "ref")
    with shared.role("actor", train=True):
        logprob = shared.action_logprobs(SAMPLES).detach()
    with shared.role("ref"):
        ref_logprob = shared.action_logprobs(SAMPLES)
    assert logprob.dtype == torch.float32
    assert torch.equal(logprob, ref_logprob)


def test_adapters_are_float32_on_a_bfloat16_base() -> None:
    shared = load(dtype="bfloat16")
    assert shared.model.get_base_model().lm_head.weight.dtype == torch.bfloat16
    assert {parameter.dtype for parameter in shared.trainable_parameters("critic")} == {torch.float32}


def test_ids_are_scored_as_they_were_sampled(llama_base: SharedBase) -> None:
    """TRN-08: `he` + `llo` decodes to what `hello` encodes to; the stored ids count."""
    he, llo = (llama_base.tokenizer.encode(text, add_special_tokens=False) for text in ("he", "llo"))
    whole = llama_base.tokenizer.encode("hello", add_special_tokens=False)
    assert llama_base.tokenizer.decode(he + llo) == "hello"
    stored = Sample((5, 6, 7), (*he, *llo, 1))
    with llama_base.role("actor"):
        tokens = llama_base.action_logprobs([stored], reduction="tokens")
    assert tokens.shape == (1, len(he) + len(llo) + 1)
    assert len(whole) < len(he) + len(llo)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (Sample((5,), ()), r"`samples\[0\].action` must have at least one token"),
        (Sample((), (5,)), r"`samples\[0\].prompt` must have at least one token"),
        (Sample((5,), (VOCABULARY,)), "token ids from 0 to 319, got 5 to 320"),
        (Sample((-1,), (5,)), "got -1 to 5"),
        (Sample(tuple([5] * 2499), (5, 5)), "at most `model.max_length` = 2500 tokens, got 2501"),
    ],
)
def test_a_sample_that_cannot_be_scored_is_refused(llama_base: SharedBase, sample: Sample, message: str) -> None:
    """TRN-05: an action without tokens is an error, not a zero."""
    with llama_base.role("actor"), pytest.raises(RuleError, match=message):
        llama_base.action_logprobs([sample])


def test_nothing_to_score_gives_nothing(llama_base: SharedBase) -> None:
    with llama_base.role("critic"):
        assert llama_base.action_logprobs([]).shape == (0,)
        assert llama_base.values([]).shape == (0,)
        assert llama_base.answer_logprobs([], [3, 4]).shape == (0, 2)


class Shapes(TorchDispatchMode):
    """Notes the shape of every tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor):
                self.seen.add(tuple(tensor.shape))
        return result


def test_only_positions_of_the_action_reach_the_output_layer(tmp_path) -> None:  # noqa: ANN001
    """PRF-01: prompt 2,000, action 40, vocabulary 128,000; logits of 40 rows and no more, in actor and critic."""
    where = save(tmp_path, llama(layers=2, vocabulary=128_000))
    shared = SharedBase.load(ModelConfig(name=str(where), max_length=2100), LoraConfig(rank=2), device="cpu")
    sample = Sample(tuple(range(100, 2100)), tuple(range(7, 47)))
    shapes = Shapes()
    with shared.role("actor", train=True), shapes:
        shared.action_logprobs([sample]).sum().backward()
    large = [shape for shape in shapes.seen if 128_000 in shape and shape not in ((128_000, 32), (32, 128_000))]
    assert (40, 128_000) in large
    assert max(torch.Size(shape).numel() for shape in large) == 40 * 128_000
    shapes.seen.clear()
    with shared.role("critic", train=True), shapes:
        shared.value_logits([sample.prompt]).sum().backward()
    assert not [shape for shape in shapes.seen if 128_000 in shape and shape != (128_000, 32)]


def test_scores_without_gradients_can_enter_a_loss() -> None:
    """They are made in inference mode, but are ordinary numbers afterwards."""
    shared = load()
    with shared.role("ref"):
        ref_logprob = shared.action_logprobs(SAMPLES)
    with shared.role("critic"):
        values = shared.values(PROMPTS)
    with shared.role("actor", train=True):
        (shared.action_logprobs(SAMPLES) * ref_logprob * values).sum().backward()
    assert any(parameter.grad.any() for parameter in shared.trainable_parameters("actor"))


# Values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "lfm2", "gpt2", "llama-64"])
def test_a_fresh_critic_is_undecided(kind: str) -> None:
    """The released one starts at 0 or 1 (FACTS 12)."""
    shared = load(kind)
    with shared.role("critic"):
        values = shared.values(PROMPTS)
    assert ((values - 0.5).abs() < 0.02).all()
    assert values.dtype == torch.float32


def test_a_value_is_read_at_the_last_real_token(shared: SharedBase) -> None:
    """FACTS 10: with padding behind it, not at the last column."""
    with shared.role("critic"):
        beside_a_longer_row = shared.values([PROMPTS[1], PROMPTS[2]])[0]
        alone = shared.values([PROMPTS[1]])[0]
        other_end = shared.values([(*PROMPTS[1][:-1], 99)])[0]
    assert abs(beside_a_longer_row - alone) < 1e-5
    assert abs(other_end - alone) > 1e-4


def test_values_are_the_second_class_of_the_logits(llama_base: SharedBase) -> None:
    """Weights 0 and biases 0 and 1: V = e / (1 + e) = 0.7310586 for every state."""
    head = llama_base.value_head
    before = {name: tensor.clone() for name, tensor in head.state_dict().items()}
    with torch.no_grad():
        head.weight.zero_()
        head.bias.copy_(torch.tensor([0.0, 1.0]))
    with llama_base.role("critic"):
        values = llama_base.values(PROMPTS)
    head.load_state_dict(before)
    assert torch.allclose(values, torch.full((3,), 0.7310586), atol=1e-6)


# Answers ------------------------------------------------------------------------------------------------------------


def test_answers_are_normalised_over_the_whole_vocabulary(shared: SharedBase) -> None:
    with shared.role("orm"):
        found = shared.answer_logprobs(PROMPTS, range(VOCABULARY))
        two = shared.answer_logprobs(PROMPTS, [7, 3])
    assert torch.allclose(found.exp().sum(dim=-1), torch.ones(3), atol=1e-5)
    assert torch.equal(two, found[:, [7, 3]])


def test_an_answer_is_scored_like_an_action_of_one_token(shared: SharedBase) -> None:
    with shared.role("orm"):
        answers = shared.answer_logprobs(PROMPTS, [7])[:, 0]
        actions = shared.action_logprobs([Sample(prompt, (7,)) for prompt in PROMPTS])
    assert torch.allclose(answers, actions, atol=1e-5)


def test_an_answers_token_is_the_one_that_the_template_would_be_followed_by() -> None:
    """ORM-02: behind `<|assistant|>` there is no space, so ` YES` is the wrong token."""
    tok = tokenizer(whole_words=("YES", "NO", " YES", " NO"))
    prompt = tok.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True)
    spaced = tok.encode(" YES", add_special_tokens=False)
    assert len(spaced) == 1
    yes, no = answer_ids(tok, prompt, ("YES", "NO"))
    assert tok.convert_ids_to_tokens([yes, no]) == ["YES", "NO"]
    assert yes != spaced[0]
    assert answer_ids(tok, prompt + "Answer:", (" YES", " NO"))[0] == spaced[0]


def test_an_answer_of_several_tokens_is_refused() -> None:
    """ORM-02: here `YES` is `Y`, `E`, `S`."""
    with pytest.raises(RuleError, match="'YES' is"):
        answer_ids(tokenizer(whole_words=("NO",)), "<|assistant|>", ("YES", "NO"))


def test_an_answer_that_melts_into_the_prompt_is_refused() -> None:
    """ORM-02: `...Y` + `ES` would become the token `YES` and change what was read."""
    with pytest.raises(RuleError, match="'ES' is"):
        answer_ids(tokenizer(), "<|assistant|>Y", ("ES", "NO"))


def test_an_answer_that_the_vocabulary_lacks_is_refused() -> None:
    """ORM-02: neither word is known, both would be the unknown token."""
    words = Tokenizer(WordLevel({"[UNK]": 0, "Answer": 1, ":": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    tok = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    with pytest.raises(RuleError, match=r"'YES' is \['\[UNK\]'\]"):
        answer_ids(tok, "Answer:", ("YES", "NO"))


def test_an_empty_or_doubled_answer_is_refused() -> None:
    with pytest.raises(RuleError, match="must each be one token"):
        answer_ids(tokenizer(), "<|assistant|>", ("YES", ""))
    with pytest.raises(RuleError, match="different tokens"):
        answer_ids(tokenizer(), "<|assistant|>", ("YES", "YES"))


# Training -----------------------------------------------------------------------------------------------------------


def bits(shared: SharedBase) -> dict[str, Tensor]:
    state = {name: tensor.detach().clone() for name, tensor in shared.model.named_parameters()}
    return state | {f"value_head.{name}": tensor.clone() for name, tensor in shared.value_head.state_dict().items()}


@pytest.mark.parametrize("kind", ["llama", "lfm2"])
def test_a_step_changes_its_role_and_no_other_bit(kind: str) -> None:
    """TRN-15: critic, actor, critic."""
    shared = load(kind)
    losses = {
        "critic": lambda: shared.value_logits(PROMPTS).square().sum(),
        "actor": lambda: -shared.action_logprobs(SAMPLES).sum(),
    }
    optimizers = {role: torch.optim.AdamW(shared.trainable_parameters(role), lr=1e-2) for role in losses}
    for role in ("critic", "actor", "critic"):
        before = bits(shared)
        with shared.role(role, train=True):
            losses[role]().backward()
            optimizers[role].step()
            optimizers[role].zero_grad()
        after = bits(shared)
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        assert changed
        assert all(f".{role}." in name or (role == "critic" and "value_head" in name) for name in changed)


@pytest.mark.parametrize("kind", ["llama", "lfm2", "gpt2"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_changes_no_gradient(kind: str, reentrant: bool) -> None:
    """TRN-18: a frozen base, both kinds; no gradient is missing."""
    results = []
    for checkpointing in (False, True):
        shared = load(kind, checkpointing=checkpointing)
        stir(shared, "actor")
        if checkpointing:
            shared.model.get_base_model().activation_checkpointing_enable({"use_reentrant": reentrant})
        with shared.role("actor", train=True):
            shared.action_logprobs(SAMPLES).sum().backward()
        results.append([parameter.grad for parameter in shared.trainable_parameters("actor")])
    for one, other in zip(*results, strict=True):
        assert other is not None
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("top_layers", [None, 2])
def test_checkpointing_runs_every_trained_layer_twice(top_layers: int | None) -> None:
    """PRF-03: in training mode; and once without gradients."""
    shared = load(checkpointing=True, top_layers=top_layers)
    layers = shared.model.get_base_model().model.layers
    calls = [0] * len(layers)
    for number, layer in enumerate(layers):

        def count(*_: object, number: int = number) -> None:
            calls[number] += 1

        layer.self_attn.register_forward_pre_hook(count)
    trained = [2, 2, 2] if top_layers is None else [1, 2, 2]
    with shared.role("actor", train=True):
        shared.action_logprobs(SAMPLES).sum().backward()
    assert calls == trained
    calls[:] = [0] * 3
    with shared.role("critic", train=True):
        shared.value_logits(PROMPTS).sum().backward()
    assert calls == (trained if top_layers is None else [0, 2, 2])  # the trunk knows these prompts already
    calls[:] = [0] * 3
    with shared.role("orm"):
        shared.action_logprobs(SAMPLES[:1])
    assert calls == ([1, 1, 1] if top_layers is None else [0, 1, 1])


def test_the_reference_is_the_adapter_of_the_previous_phase_and_not_the_raw_base() -> None:
    """TRN-17."""
    shared = load()
    with shared.role("ref"):
        raw = shared.action_logprobs(SAMPLES)
    stir(shared, "actor")
    shared.copy_role("actor", "ref")
    with shared.role("actor"):
        trained = shared.action_logprobs(SAMPLES)
    stir(shared, "critic")
    with shared.role("ref"):
        reference = shared.action_logprobs(SAMPLES)
    assert torch.equal(reference, trained)
    assert not torch.allclose(reference, raw, atol=0.1)


def test_copying_a_role_leaves_the_value_head_alone() -> None:
    shared = load()
    stir(shared, "actor", "critic")
    head = shared.value_head.weight.clone()
    shared.copy_role("actor", "critic")
    with shared.role("actor"):
        expected = shared.action_logprobs(SAMPLES)
    with shared.role("critic"):
        assert torch.equal(shared.action_logprobs(SAMPLES), expected)
    assert torch.equal(shared.value_head.weight, head)


def test_the_first_weights_depend_on_seed_and_role_alone() -> None:
    one, other = load(seed=3, roles=("critic",)), load(seed=3, roles=("actor", "critic"))
    assert one.role_version("critic") == other.role_version("critic")
    assert load(seed=4, roles=("critic",)).role_version("critic") != one.role_version("critic")


def test_loading_leaves_the_global_random_numbers_alone() -> None:
    folder("llama")
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    load()
    assert torch.equal(torch.rand(1), expected)


def test_a_base_without_critic_has_no_value_head() -> None:
    assert load(roles=("actor",)).value_head is None


def test_more_top_layers_than_layers_are_refused() -> None:
    with pytest.raises(RuleError, match="at most 3, the model's layers, got 4"):
        load(top_layers=4)


def test_all_layers_on_top_is_the_plain_path() -> None:
    assert load(top_layers=3).trunk is None
