from pathlib import Path

import pytest
import torch
from tiny_models import load
from trainer_runs import STATES

from webrl_lite import critic
from webrl_lite.config import CriticConfig
from webrl_lite.critic import CriticArguments, CriticTrainer, critic_loss

PROMPTS = [prompt for prompt, _ in STATES]
FAST = CriticConfig(learning_rate=0.02, batch_size=4, epochs=12)


def test_the_loss_takes_logits_and_not_probabilities() -> None:
    """TRN-19: -ln(1 / (1 + e^-4)) = 0.0181; a softmax before the cross-entropy would give 0.3230."""
    loss, metrics = critic_loss(torch.tensor([[0.0, 4.0]]), torch.tensor([1.0]))
    assert loss.item() == pytest.approx(0.018150, abs=1e-6)
    assert metrics["value"].item() == pytest.approx(0.982014, abs=1e-6)
    loss, _ = critic_loss(torch.tensor([[0.0, 4.0]]), torch.tensor([0.0]))
    assert loss.item() == pytest.approx(4.018150, abs=1e-5)


def test_the_loss_is_a_mean_over_states() -> None:
    """Ln 2 = 0.6931 where V is 0.5 whatever the outcome, so (0.0181 + 0.6931 + 0.6931) / 3 = 0.4681."""
    logits = torch.tensor([[0.0, 4.0], [3.0, 3.0], [-1.0, -1.0]])
    loss, metrics = critic_loss(logits, torch.tensor([1.0, 0.0, 1.0]))
    assert loss.item() == pytest.approx(0.468148, abs=1e-5)
    assert metrics["value"].item() == pytest.approx((0.982014 + 0.5 + 0.5) / 3, abs=1e-5)
    assert metrics["accuracy"].item() == pytest.approx(2 / 3)  # a V of 0.5 says failure


def test_large_logits_stay_finite() -> None:
    loss, _ = critic_loss(torch.tensor([[300.0, -300.0], [0.0, 1e4]]), torch.tensor([0.0, 1.0]))
    assert loss.item() == 0.0


def test_values_start_near_a_half_and_become_the_outcomes(tmp_path: Path) -> None:
    shared = load()
    with shared.role("critic"):
        assert all(0.4 < value < 0.6 for value in shared.values(PROMPTS).tolist())
    trained = critic.train(shared, STATES, FAST, tmp_path)
    with shared.role("critic"):
        values = shared.values(PROMPTS).tolist()
    assert [value > 0.5 for value in values] == [bool(reward) for _, reward in STATES]
    assert trained.metrics["accuracy"] == 1.0


def test_states_of_one_prompt_learn_the_share_of_successes(tmp_path: Path) -> None:
    """Eq. 8 has its optimum at the success rate: three of four trajectories through this state succeeded."""
    shared = load()
    rows = [(PROMPTS[0], reward) for reward in (1, 1, 0, 1)]
    critic.train(shared, rows, CriticConfig(learning_rate=0.02, batch_size=4, epochs=30), tmp_path)
    with shared.role("critic"):
        assert shared.values([PROMPTS[0]]).item() == pytest.approx(0.75, abs=0.01)


def test_adapter_and_head_are_saved_and_loaded_as_one(tmp_path: Path) -> None:
    """Warm start across phases: another process that loads the role has the same values, bit for bit."""
    first, second = load(), load(seed=5)
    trained = critic.train(first, STATES, FAST, tmp_path)
    second.load_role("critic", trained.folder)
    with first.role("critic"):
        expected = first.values(PROMPTS)
    with second.role("critic"):
        assert torch.equal(second.values(PROMPTS), expected)


def test_the_next_phase_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    shared = load()
    first = critic.train(shared, STATES, FAST, tmp_path / "1")
    second = critic.train(shared, STATES, CriticConfig(learning_rate=1e-5, batch_size=11), tmp_path / "2")
    assert second.steps == 1
    assert second.metrics["loss"] == pytest.approx(first.metrics["loss"], abs=0.05)


def test_only_the_critic_and_its_head_are_trained(tmp_path: Path) -> None:
    shared = load()
    before = {role: shared.role_version(role) for role in ("actor", "ref", "critic", "orm")}
    head = shared.value_head.weight.detach().clone()
    critic.train(shared, STATES, CriticConfig(batch_size=4), tmp_path)
    assert {role for role in before if shared.role_version(role) != before[role]} == {"critic"}
    assert not torch.equal(shared.value_head.weight, head)


@pytest.mark.parametrize("reward", [-0.1, 0.5, 2, float("nan")])
def test_a_reward_that_is_neither_success_nor_failure_is_refused(tmp_path: Path, reward: float) -> None:
    """FACTS 13.8: the released traces carry -0.1 for what was never graded."""
    with pytest.raises(ValueError, match=r"row 1: its reward must be 0 or 1, got"):
        CriticTrainer(load(), CriticArguments(output_dir=str(tmp_path), use_cpu=True), [((5,), 1), ((6,), reward)])
    with pytest.raises(ValueError, match="row 0: it has no tokens"):
        CriticTrainer(load(), CriticArguments(output_dir=str(tmp_path), use_cpu=True), [((), 1)])
