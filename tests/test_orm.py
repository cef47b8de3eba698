import math
from pathlib import Path

import pytest
import torch
from tiny_models import load, tokenizer

from webrl_lite import orm
from webrl_lite.config import OrmConfig
from webrl_lite.model import RuleError
from webrl_lite.orm import Judgement, OrmArguments, OrmTrainer, evaluate, judge, judgement, yes_no

HEADER = (4,)  # <|assistant|>
ROWS = [((5 + i, 20, 21 + i, *HEADER), i % 2 == 0) for i in range(8)]
FAST = OrmConfig(learning_rate=0.01, batch_size=4, epochs=15, warmup=0.0)


def answers() -> tuple[int, int]:
    yes, no = tokenizer().convert_tokens_to_ids(["YES", "NO"])
    return yes, no


# Judging ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("yes", "no"), [(100.0, 99.0), (-200.0, -201.0), (-1.5, -2.5), (1e5, 1e5 - 1)])
def test_the_score_depends_on_the_difference_and_never_overflows(yes: float, no: float) -> None:
    """ORM-04: 1 / (1 + e^-1) = 0.731059."""
    assert judgement(yes, no).score == pytest.approx(0.731059, abs=1e-6)
    assert judgement(no, yes).score == pytest.approx(0.268941, abs=1e-6)


def test_half_precision_inputs_are_scored_in_full() -> None:
    """ORM-04: float16 ends at 65504, where e^12 is 162755."""
    yes, no = torch.tensor([-200.0, -201.0], dtype=torch.float16).tolist()
    assert judgement(yes, no).score == pytest.approx(0.731059, abs=1e-6)
    assert judgement(0.0, -5000.0) == Judgement(1.0, 1.0)


def test_a_tie_is_a_failure() -> None:
    """ORM-05."""
    tie = judgement(-3.25, -3.25)
    assert tie.score == 0.5
    assert not tie.success()
    assert not Judgement(0.7, 1.0).success(threshold=0.7)
    assert Judgement(0.7, 1.0).success(threshold=0.69)


def test_a_model_that_says_neither_word_is_not_trusted() -> None:
    """ORM-07: YES 0.006, NO 0.004 and something else 0.98: the ratio is 0.6, the mass 0.01."""
    found = judgement(math.log(0.006), math.log(0.004))
    assert found.score == pytest.approx(0.6)
    assert found.mass == pytest.approx(0.01)
    assert not found.trusted
    assert judgement(math.log(0.5), math.log(0.3)).trusted


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_log_probability_that_is_no_number_is_an_error_and_no_failure(broken: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        judgement(broken, -1.0)
    with pytest.raises(ValueError, match="must be finite"):
        judgement(-1.0, broken)


def test_judge_reads_the_two_words_at_the_last_token_of_every_prompt() -> None:
    shared = load()
    prompts = [prompt for prompt, _ in ROWS[:3]]
    found = judge(shared, prompts)
    yes, no = answers()
    for prompt, one in zip(prompts, found, strict=True):
        with shared.role("orm"):
            probabilities = shared.model(torch.tensor([prompt])).logits[0, -1].softmax(dim=-1)
        both = (probabilities[yes] + probabilities[no]).item()
        assert one.mass == pytest.approx(both, rel=1e-4)
        assert one.score == pytest.approx(probabilities[yes].item() / both, rel=1e-4)
    assert judge(shared, []) == []


def test_the_words_are_looked_up_behind_the_prompt() -> None:
    """ORM-02."""
    shared = load()
    assert yes_no(shared, ROWS[0][0]) == answers()
    assert yes_no(shared, tuple(range(5, 300)) + HEADER) == answers()


def test_a_tokenizer_without_the_words_is_refused_before_training(tmp_path: Path) -> None:
    """ORM-02: never an id of None, of the unknown token, or of half a word."""
    shared = load()
    shared.tokenizer = tokenizer(whole_words=("MAYBE",))
    with pytest.raises(RuleError, match="must each be one token behind the prompt"):
        judge(shared, [ROWS[0][0]])
    with pytest.raises(RuleError, match="must each be one token behind the prompt"):
        orm.train(shared, ROWS, FAST, tmp_path)


# Training -----------------------------------------------------------------------------------------------------------


def test_the_loss_is_the_cross_entropy_of_the_word_over_the_whole_vocabulary(tmp_path: Path) -> None:
    """Among 320 equally likely tokens it is ln 320 = 5.768321, and not the ln 2 of a choice between two."""
    shared = load()
    with torch.no_grad():
        shared.model.get_base_model().lm_head.weight.zero_()
    trainer = OrmTrainer(shared, OrmArguments(output_dir=str(tmp_path), use_cpu=True), ROWS)
    assert trainer.training_step(trainer.model, list(enumerate(ROWS))).item() == pytest.approx(5.768321, abs=1e-5)


def test_it_learns_the_labels_and_to_answer_with_the_words(tmp_path: Path) -> None:
    shared = load()
    before = {role: shared.role_version(role) for role in ("actor", "ref", "critic", "orm")}
    assert all(one.mass < 0.05 for one in judge(shared, [prompt for prompt, _ in ROWS]))
    trained = orm.train(shared, ROWS, FAST, tmp_path)
    judgements = judge(shared, [prompt for prompt, _ in ROWS])
    assert [one.success() for one in judgements] == [label for _, label in ROWS]
    assert all(one.mass > 0.2 for one in judgements)  # more than this the random output layer cannot say
    assert trained.metrics["accuracy"] == 1.0
    assert trained.metrics["mass"] > 0.2
    assert {role for role in before if shared.role_version(role) != before[role]} == {"orm"}


def test_every_logged_number_has_a_sentence_in_the_docstring(tmp_path: Path) -> None:
    trained = orm.train(load(), ROWS, OrmConfig(batch_size=8, epochs=1), tmp_path)
    assert {"accuracy", "mass"} <= trained.metrics.keys()
    assert all(f"``{name}``" in OrmTrainer.__doc__ for name in ("accuracy", "mass"))


@pytest.mark.parametrize("label", [0.5, -0.1, None, "YES"])
def test_a_label_that_is_no_yes_or_no_is_refused(tmp_path: Path, label: object) -> None:
    with pytest.raises(ValueError, match="row 1: its label must be true or false"):
        OrmTrainer(load(), OrmArguments(output_dir=str(tmp_path), use_cpu=True), [ROWS[0], (ROWS[0][0], label)])


# Evaluation ---------------------------------------------------------------------------------------------------------


def test_worked_report() -> None:
    """Said YES: the first three, two of them rightly; one success was missed.

    Bins: 0.95 and 0.91 together (1.86 against 1 success: 0.86), 0.6 (against 1: 0.4), 0.2 (against 1: 0.8), 0.1
    (against 0: 0.1): (0.86 + 0.4 + 0.8 + 0.1) / 5 = 0.432. Brier: (0.0025 + 0.8281 + 0.16 + 0.64 + 0.01) / 5 = 0.32812.
    """
    judgements = [Judgement(score, 0.9) for score in (0.95, 0.91, 0.6, 0.2)] + [Judgement(0.1, 0.2)]
    report = evaluate(judgements, [True, False, True, True, False])
    assert (report.rollouts, report.accuracy, report.untrusted) == (5, 0.6, 0.2)
    assert (report.precision, report.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert report.ece == pytest.approx(0.432)
    assert report.brier == pytest.approx(0.32812)


def test_the_threshold_is_an_option() -> None:
    judgements = [Judgement(0.95, 1.0), Judgement(0.6, 1.0), Judgement(0.3, 1.0)]
    labels = [True, False, False]
    assert evaluate(judgements, labels).precision == 0.5
    assert evaluate(judgements, labels, threshold=0.6).precision == 1.0
    assert evaluate(judgements, labels, threshold=0.2).accuracy == pytest.approx(1 / 3)


def test_a_share_of_nothing_is_none() -> None:
    assert evaluate([Judgement(0.2, 1.0)], [True]).precision is None
    assert evaluate([Judgement(0.8, 1.0)], [False]).recall is None
    assert evaluate([Judgement(0.5, 1.0)], [True]).recall == 0.0


def test_scores_of_zero_and_one_have_a_bin() -> None:
    report = evaluate([Judgement(1.0, 1.0), Judgement(0.0, 1.0)], [True, False])
    assert (report.ece, report.brier, report.accuracy) == (0.0, 0.0, 1.0)


def test_a_report_needs_a_label_for_every_judgement() -> None:
    with pytest.raises(ValueError, match="got 0 for 0"):
        evaluate([], [])
    with pytest.raises(ValueError, match="got 2 for 1"):
        evaluate([Judgement(0.5, 1.0)], [True, False])
