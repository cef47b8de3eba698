import gc

import pytest
import torch
from tiny_models import load, stir
from torch import Tensor

from webrl_lite.model import RuleError, Sample, SharedBase

SAMPLES = [Sample((5, 6, 7, 8, 9), (11, 12, 1)), Sample((5, 9, 40), (41, 1))]
PROMPTS = [sample.prompt for sample in SAMPLES]


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "checkpointing"])
def shared(request: pytest.FixtureRequest) -> SharedBase:
    shared = load(checkpointing=request.param)
    stir(shared, "actor", "ref", "critic", "orm")
    return shared


@pytest.fixture(autouse=True)
def no_gradients_left(shared: SharedBase) -> None:
    for role in ("actor", "critic"):
        for parameter in shared.trainable_parameters(role):
            parameter.grad = None


def gradients(shared: SharedBase, role: str) -> list[Tensor | None]:
    return [parameter.grad for parameter in shared.trainable_parameters(role)]


def test_a_pass_outside_any_role_is_refused(shared: SharedBase) -> None:
    with pytest.raises(RuleError, match="needs a role"):
        shared.action_logprobs(SAMPLES)
    with pytest.raises(RuleError, match="needs a role"):
        shared.values(PROMPTS)
    with pytest.raises(RuleError, match="needs a role"):
        shared.answer_logprobs(PROMPTS, [3])
    with pytest.raises(RuleError, match="needs a role"):
        shared.generate(PROMPTS, temperature=0, top_p=1, max_new_tokens=1, stop_ids=[1])


def test_an_unknown_role_is_refused_with_the_known_ones(shared: SharedBase) -> None:
    with pytest.raises(RuleError, match="actor, ref, critic, orm, got 'default'"), shared.role("default"):
        pass


def test_a_training_block_gives_gradients_to_its_role_alone(shared: SharedBase) -> None:
    with shared.role("critic", train=True):
        on = {name for name, parameter in shared.model.named_parameters() if parameter.requires_grad}
        assert on and all(".critic." in name for name in on)
        assert shared.value_head.weight.requires_grad
    assert not any(parameter.requires_grad for parameter in shared.model.parameters())
    assert not shared.value_head.weight.requires_grad


def test_a_block_without_training_records_no_gradient(shared: SharedBase) -> None:
    with shared.role("actor"):
        assert not shared.action_logprobs(SAMPLES).requires_grad
        assert not torch.is_grad_enabled()


def test_forward_switch_backward_is_refused_on_entering(shared: SharedBase) -> None:
    """ADAPTERS hazard 2 and 3: PEFT alone would leave the actor without gradients, or with wrong ones."""
    with shared.role("actor", train=True):
        loss = shared.action_logprobs(SAMPLES).sum()
    with pytest.raises(RuleError, match="`critic` cannot be entered while a result of `actor` waits"):
        with shared.role("critic", train=True):
            pass
    with pytest.raises(RuleError, match="`ref` cannot be entered"), shared.role("ref"):
        pass
    with shared.role("actor", train=True):
        loss.backward()
    with shared.role("critic", train=True):
        pass


def test_training_inside_another_roles_block_is_refused(shared: SharedBase) -> None:
    for outer_trains in (True, False):
        with shared.role("actor", train=outer_trains), pytest.raises(RuleError, match="cannot be trained inside"):
            with shared.role("critic", train=True):
                pass


def test_training_inside_a_block_without_gradients_is_refused_even_for_the_same_role(shared: SharedBase) -> None:
    with shared.role("actor"), pytest.raises(RuleError, match="cannot be trained inside"):
        with shared.role("actor", train=True):
            pass


def test_backward_inside_another_roles_block_is_refused(shared: SharedBase) -> None:
    """ADAPTERS hazard 5: no gradients without checkpointing, an unclear error with it."""
    with shared.role("actor", train=True):
        loss = shared.action_logprobs(SAMPLES).sum()
        with (
            shared.role("ref"),
            pytest.raises(RuleError, match="inside its own block, it ran inside .* `ref`"),
        ):
            loss.backward()
        assert gradients(shared, "actor") == [None] * len(gradients(shared, "actor"))


def test_backward_outside_any_block_is_refused(shared: SharedBase) -> None:
    with shared.role("actor", train=True):
        loss = shared.action_logprobs(SAMPLES).sum()
    with pytest.raises(RuleError, match="outside any block"):
        loss.backward()


def test_a_second_backward_in_another_role_is_refused(shared: SharedBase) -> None:
    with shared.role("actor", train=True):
        loss = shared.action_logprobs(SAMPLES).sum()
        loss.backward(retain_graph=True)
    with shared.role("critic", train=True), pytest.raises(RuleError, match="must run inside its own block"):
        loss.backward()


def test_a_reference_pass_between_forward_and_backward_changes_no_bit(shared: SharedBase) -> None:
    """ADAPTERS hazard 4 is exact, and stays possible."""
    with shared.role("actor", train=True):
        shared.action_logprobs(SAMPLES).sum().backward()
    expected = [gradient.clone() for gradient in gradients(shared, "actor")]
    for parameter in shared.trainable_parameters("actor"):
        parameter.grad = None
    with shared.role("actor", train=True):
        loss = shared.action_logprobs(SAMPLES).sum()
        with shared.role("ref"):
            shared.action_logprobs(SAMPLES)
        with shared.role("critic"):
            shared.values(PROMPTS)
        loss.backward()
    assert all(torch.equal(a, b) for a, b in zip(gradients(shared, "actor"), expected, strict=True))


def test_actor_then_critic_gives_each_its_own_gradient(shared: SharedBase) -> None:
    """ADAPTERS hazard 1 is exact; TRN-15."""
    with shared.role("actor", train=True):
        shared.action_logprobs(SAMPLES).sum().backward()
    assert all(gradient is not None and gradient.any() for gradient in gradients(shared, "actor"))
    assert gradients(shared, "critic") == [None] * len(gradients(shared, "critic"))
    with shared.role("critic", train=True):
        shared.value_logits(PROMPTS).square().sum().backward()
    assert all(gradient is not None and gradient.any() for gradient in gradients(shared, "critic"))


def test_a_frozen_adapter_stays_frozen_after_others_were_used(shared: SharedBase) -> None:
    """ADAPTERS 1.1: leaving ``disable_adapter`` turns gradients on again; leaving a role does not."""
    with shared.role("actor"):
        with shared.role("ref"):
            pass
        assert not any(parameter.requires_grad for parameter in shared.model.parameters())


def test_an_error_inside_a_block_restores_what_was_before(shared: SharedBase) -> None:
    with shared.role("actor", train=True):
        with pytest.raises(ZeroDivisionError), shared.role("ref"):
            _ = 1 / 0
        assert shared.model.active_adapter == "actor"
        assert torch.is_grad_enabled()
        shared.action_logprobs(SAMPLES).sum().backward()
    assert gradients(shared, "actor")[0] is not None


def test_after_an_error_the_next_role_can_be_entered(shared: SharedBase) -> None:
    """PRF-06: out of memory in a forward pass must not block the run; the half-made graph is never used."""
    loss = None
    with pytest.raises(MemoryError), shared.role("actor", train=True):
        loss = shared.action_logprobs(SAMPLES).sum()
        raise MemoryError
    with shared.role("critic", train=True):
        shared.value_logits(PROMPTS).sum().backward()
    with shared.role("actor", train=True), pytest.raises(RuleError, match="ended in an error"):
        loss.backward()


@pytest.mark.parametrize("keep", ["detached", "dropped", "cycle"])
def test_a_result_that_no_backward_can_follow_blocks_nothing(shared: SharedBase, keep: str) -> None:
    with shared.role("actor", train=True):
        result = shared.action_logprobs(SAMPLES)
    kept = result.detach() if keep == "detached" else None
    if keep == "cycle":
        gc.disable()
        ring: list[object] = [result]
        ring.append(ring)
        del ring
    del result
    try:
        with shared.role("critic", train=True):
            pass
    finally:
        gc.enable()
    assert kept is None or kept.shape == (2,)


def test_the_same_role_can_be_entered_again_inside(shared: SharedBase) -> None:
    with shared.role("actor", train=True):
        with shared.role("actor", train=True):
            loss = shared.action_logprobs(SAMPLES).sum()
        with shared.role("actor"):
            assert not shared.action_logprobs(SAMPLES).requires_grad
        loss.backward()
    assert gradients(shared, "actor")[0] is not None


def test_values_need_the_critic(shared: SharedBase) -> None:
    with shared.role("actor"), pytest.raises(RuleError, match="role critic, got actor"):
        shared.values(PROMPTS)


def test_no_role_is_named_default(shared: SharedBase) -> None:
    assert list(shared.model.peft_config) == ["actor", "ref", "critic", "orm"]


@pytest.mark.parametrize("roles", [("actor", "judge"), (), ("actor", "actor")])
def test_roles_must_be_known_and_different(roles: tuple[str, ...]) -> None:
    with pytest.raises(RuleError, match="each once"):
        load(roles=roles)
