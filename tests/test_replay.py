"""What a phase learns from: successes in the perplexity band, drawn with a seed; one pass for each score."""

import dataclasses
import json
import math
import statistics
from collections import Counter
from contextlib import contextmanager

import pytest
import tiny_models
import torch

from webrl_lite.baselines import METHODS
from webrl_lite.batching import RuleError
from webrl_lite.config import ActorConfig, Config, ReplayConfig
from webrl_lite.experience import Experience, read_experience, write_experience
from webrl_lite.replay import Report, build, credit

WEBRL, CONFIG = METHODS["webrl"], Config()


class Scorer:
    """Stands in for the model: an action's last id is its log-probability in -1/1000 nats, a state's last id its V."""

    def __init__(self):
        self.passes: list[tuple[str, int]] = []

    @contextmanager
    def role(self, name):
        self.name = name
        yield
        self.name = None

    def action_logprobs(self, samples):
        assert self.name == "ref"
        self.passes.append(("ref", len(samples)))
        return torch.tensor([-sample.action[-1] / 1000 for sample in samples])

    def values(self, prompts):
        assert self.name == "critic"
        self.passes.append(("critic", len(prompts)))
        return torch.tensor([prompt[-1] / 100 for prompt in prompts])


def row(task, step=0, *, name=None, steps=1, logprob=0.3, tokens=1, value=50, reward=1.0, source="current", phase=1):
    """One step; its action has ``tokens`` tokens of log-probability ``-logprob`` in sum."""
    trajectory = name or f"{task}-p{phase}"
    prompt = (*trajectory.encode(), step, value)
    action = (*[9] * (tokens - 1), round(logprob * 1000))
    return Experience(task, trajectory, step, steps, prompt, action, reward, source, "shopping", phase)


def many(count, **settings):
    return [row(f"task{i:03}", **settings) for i in range(count)]


NOW = [row("now", i, steps=10, phase=5) for i in range(10)]  # ten current steps


def chosen(buffer, *, current=NOW, method=WEBRL, config=CONFIG, seed=0):
    built = build(current, buffer, Scorer(), config, method, seed)
    return [r for r in built.rows if r.source != "current"], built.report


# The band -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("logprob", "tokens", "perplexity"),
    [(2.0, 4, 1.6487213), (0.3, 1, 1.3498588), (4.0, 4, 2.7182818), (0.1, 4, 1.0253151)],
)
def test_perplexity_is_exp_of_minus_the_mean_token_log_probability(logprob, tokens, perplexity):
    """REP-03: 4 tokens, sum -2: exp(2 / 4) = 1.6487."""
    (scored,) = build([row("x", logprob=logprob, tokens=tokens)], [], Scorer(), CONFIG, WEBRL, 0).rows
    assert scored.perplexity == pytest.approx(perplexity, rel=1e-6)
    assert scored.ref_logprob == pytest.approx(-logprob, rel=1e-6)


@pytest.mark.parametrize(
    ("probability", "kept"), [(0.96, False), (0.9501, False), (0.95, True), (0.7, True), (0.5, True), (0.4999, False)]
)
def test_both_ends_of_the_band_are_inside(probability, kept):
    """REP-05; the release leaves out the upper end of perplexity, probability 0.5."""

    class Exact(Scorer):
        def action_logprobs(self, samples):
            return torch.tensor([math.log(probability)] * len(samples))

    built = build(NOW, [row("old")], Exact(), CONFIG, WEBRL, 0)
    assert built.report.replayed == kept


def test_the_band_is_the_configuration_s():
    wide = dataclasses.replace(CONFIG, replay=ReplayConfig(ppl_min=1.0, ppl_max=math.inf))
    assert chosen([row("a", logprob=0.0), row("b", logprob=90.0)], config=wide)[1].replayed == 2


def test_a_hopeless_action_has_a_large_perplexity_and_not_an_overflow():
    report = chosen([row("a", logprob=5000.0)])[1]
    assert report.above_band == 1
    json.dumps(dataclasses.asdict(report), allow_nan=False)


# Cap, seed, order ---------------------------------------------------------------------------------------------------


def test_at_most_twice_the_current_steps_are_replayed():
    """REP-05: 10 current steps, 50 eligible: 20."""
    replayed, report = chosen(many(50))
    assert len(replayed) == 20
    assert (report.current, report.replayed, report.over_cap) == (10, 20, 30)
    assert report.share == pytest.approx(20 / 30)
    some = dataclasses.replace(CONFIG, replay=ReplayConfig(max_ratio=0.27))
    assert len(chosen(many(50), config=some)[0]) == 2  # 2.7, rounded down


def test_a_large_buffer_is_scored_only_until_the_cap_is_full():
    """Of 500 steps every second is known; 20 are wanted, 64 is a portion, and 500 / 2 would be enough for more."""
    scorer = Scorer()
    report = build(NOW, [row(f"t{i:03}", logprob=0.01 if i % 2 else 0.3) for i in range(500)], scorer, CONFIG, WEBRL, 0)
    assert scorer.passes == [("ref", 10), ("ref", 64)]
    assert (report.report.replayed, report.report.unscored) == (20, 436)
    assert report.report.below_band + report.report.over_cap + 20 == 64


def test_a_buffer_of_known_steps_is_scored_to_its_end():
    known = [*many(150, logprob=0.01), row("odd", logprob=0.3)]
    replayed, report = chosen(known)
    assert [r.task_id for r in replayed] == ["odd"]
    assert (report.below_band, report.unscored) == (150, 0)


def test_every_eligible_step_is_drawn_equally_often():
    """300 steps, 20 drawn, 600 seeds: each about 40 times (standard deviation 6.1), known ones never."""
    buffer = [*many(300), *[row(f"z{i:03}", logprob=0.01) for i in range(300)]]
    drawn = Counter(r.task_id for seed in range(600) for r in chosen(buffer, seed=seed)[0])
    assert sum(drawn.values()) == 12000 and len(drawn) == 300
    assert 15 < min(drawn.values()) and max(drawn.values()) < 70
    assert 4.9 < statistics.pstdev(drawn.values()) < 7.3


def test_failed_current_steps_count_for_the_cap_too():
    failures = [dataclasses.replace(r, reward=0.0) for r in NOW]
    assert len(chosen(many(50), current=failures)[0]) == 20


def test_one_seed_gives_one_draw_and_another_seed_another():
    first, again, other = chosen(many(50))[0], chosen(many(50))[0], chosen(many(50), seed=1)[0]
    assert first == again
    assert {r.task_id for r in first} != {r.task_id for r in other}


def test_the_order_of_the_input_changes_nothing():
    buffer = many(30) + many(30, phase=2) + [row("task001", source="sft", phase=0)]
    one = build(NOW, buffer, Scorer(), CONFIG, WEBRL, 3)
    other = build(NOW[::-1], buffer[::-1], Scorer(), CONFIG, WEBRL, 3)
    assert one == other
    keys = [r.key for r in one.rows]
    assert keys == [r.key for r in NOW] + sorted(keys[10:])


def test_each_eligible_step_can_be_drawn():
    drawn = {r.task_id for seed in range(30) for r in chosen(many(50), seed=seed)[0]}
    assert len(drawn) == 50


# What is left out ---------------------------------------------------------------------------------------------------


def test_failures_are_never_replayed():
    replayed, report = chosen([row("a", reward=0.0), row("b")])
    assert [r.task_id for r in replayed] == ["b"]
    assert report.failed == 1


def test_a_task_solved_twice_is_replayed_from_its_newest_trajectory():
    """REP-05: one a task; also when only an older one would lie in the band."""
    old, new = row("a", phase=1), row("a", phase=3)
    replayed, report = chosen([old, new, row("a", source="sft", phase=0)])
    assert [r.trajectory_id for r in replayed] == [new.trajectory_id]
    assert report.same_task == 2
    assert chosen([old, row("a", phase=3, logprob=0.0)])[1].replayed == 0


def test_within_a_phase_one_of_a_task_s_trajectories_stays_with_all_its_steps():
    buffer = [row("a", i, name=name, steps=2) for name in ("one", "two") for i in range(2)]
    replayed, report = chosen(buffer)
    assert {r.trajectory_id for r in replayed} == {"two"}
    assert (len(replayed), report.same_task) == (2, 2)


def test_a_failed_newer_try_does_not_hide_an_older_success():
    replayed, _ = chosen([row("a", phase=1), row("a", phase=2, reward=0.0)])
    assert [r.phase for r in replayed] == [1]


def test_a_step_that_the_phase_has_itself_is_not_replayed():
    """With fixed tasks the first page and a good first action come again and again."""
    again = dataclasses.replace(NOW[3], trajectory_id="earlier", phase=1, step=0, steps=1, task_id="other")
    replayed, report = chosen([again, row("b")])
    assert [r.task_id for r in replayed] == ["b"]
    assert report.duplicate == 1


def test_the_same_state_with_another_action_is_no_duplicate():
    other = dataclasses.replace(NOW[3], trajectory_id="earlier", phase=1, step=0, steps=1, action=(8, 300))
    assert chosen([other])[1].replayed == 1


def test_a_step_that_is_in_the_buffer_twice_is_replayed_once():
    """A phase's file holds what it replayed itself, so all files together hold some steps more than once."""
    replay = dataclasses.replace(row("a"), source="replay", ref_logprob=-0.9, perplexity=9.0, value=0.1, advantage=4.0)
    replayed, report = chosen([row("a"), replay])
    assert (len(replayed), report.duplicate) == (1, 1)


def test_every_step_of_the_buffer_is_counted_once():
    buffer = [
        *many(30),
        *[row(f"f{i}", reward=0.0) for i in range(2)],
        *[row("task000", phase=2), row("task001", phase=3)],
        *[row(f"known{i}", logprob=0.01) for i in range(4)],
        *[row(f"odd{i}", logprob=1.5) for i in range(5)],
        row("known0", logprob=0.01),
    ]
    report = chosen(buffer)[1]
    assert report == Report(
        current=10,
        current_successes=10,
        buffer=44,
        failed=2,
        same_task=2,
        duplicate=1,
        below_band=4,
        above_band=5,
        over_cap=10,
        replayed=20,
        perplexities=report.perplexities,
    )
    assert len(report.perplexities) == 4 + 5 + 30
    assert list(report.perplexities) == sorted(report.perplexities)
    assert report.line() == (
        "10 current steps, 20 of 44 replayed (2 failed, 2 same task, 1 duplicate, 4 below band, 5 above band, "
        "10 over cap)"
    )


def test_the_phase_s_own_file_in_the_buffer_changes_nothing():
    """A run that goes on reads all files: its own success must not stand in for the older one of its task."""
    own = [dataclasses.replace(r, task_id="a") for r in NOW]
    built = build(own, [row("a"), row("b"), *own], Scorer(), CONFIG, WEBRL, 0)
    assert built == build(own, [row("a"), row("b")], Scorer(), CONFIG, WEBRL, 0)
    assert [r.task_id for r in built.rows[10:]] == ["a", "b"]


@pytest.mark.parametrize("current", [NOW, [row("x", i, name="same", steps=2, phase=0) for i in range(2)]])
def test_two_steps_of_one_name_are_refused(current):
    """As a rollout and a demonstration of one task could have: V of the next state would be the other's."""
    one = [row("x", i, name="same", steps=2, phase=0) for i in range(2)]
    other = [row("x", i, name="same", steps=2, phase=0, value=90, source="sft") for i in range(2)]
    with pytest.raises(RuleError, match="step 0 of trajectory same of phase 0 is two"):
        chosen([*(one if current is NOW else []), *other], current=current)


# Empty and one-sided cases ------------------------------------------------------------------------------------------


def test_the_first_phase_has_nothing_to_replay_and_says_so():
    """REP-01."""
    replayed, report = chosen([])
    assert replayed == []
    assert (report.current, report.buffer, report.share) == (10, 0, 0.0)
    assert report.line() == "10 current steps, nothing to replay"


@pytest.mark.parametrize("buffer", [many(9, reward=0.0), many(9, logprob=0.01), many(9, logprob=3.0)])
def test_when_everything_is_filtered_out_the_current_steps_remain(buffer):
    """REP-02."""
    built = build(NOW, buffer, Scorer(), CONFIG, WEBRL, 0)
    assert len(built.rows) == 10
    assert built.report.failed + built.report.below_band + built.report.above_band == 9


def test_without_current_steps_nothing_is_replayed():
    """REP-05: 0 gives 0."""
    built = build([], many(9), Scorer(), CONFIG, WEBRL, 0)
    assert built.rows == ()
    assert (built.report.unscored, built.report.share) == (9, 0.0)
    assert credit(built.rows, Scorer(), CONFIG, WEBRL) == ()


def test_failures_of_the_phase_itself_stay():
    current = [row("now", i, steps=2, reward=0.0, phase=5) for i in range(2)]
    built = build(current, [], Scorer(), CONFIG, WEBRL, 0)
    assert [r.reward for r in built.rows] == [0.0, 0.0]
    assert built.report.current_successes == 0


def test_max_ratio_0_replays_nothing():
    none = dataclasses.replace(CONFIG, replay=ReplayConfig(max_ratio=0.0))
    assert chosen(many(9), config=none)[1].replayed == 0


def test_a_current_step_that_is_there_twice_is_refused():
    with pytest.raises(RuleError, match="step 4 of trajectory now-p5 is there twice"):
        build([*NOW, NOW[4]], [], Scorer(), CONFIG, WEBRL, 0)


def test_a_score_that_is_no_number_is_refused():
    class Broken(Scorer):
        def action_logprobs(self, samples):
            return torch.full((len(samples),), math.nan)

        def values(self, prompts):
            return torch.full((len(prompts),), math.nan)

    with pytest.raises(RuleError, match="log pi_ref of step 0 of trajectory now-p5 is nan"):
        build(NOW, [], Broken(), CONFIG, WEBRL, 0)
    with pytest.raises(RuleError, match="the critic's weights are broken"):
        credit(NOW, Broken(), CONFIG, WEBRL)


# Sources and methods ------------------------------------------------------------------------------------------------


def test_demonstrations_are_phase_0_of_the_buffer_and_pass_the_same_band():
    replayed, report = chosen([row("a", source="sft", phase=0), row("b", source="sft", phase=0, logprob=0.01)])
    assert [(r.task_id, r.source) for r in replayed] == [("a", "sft")]
    assert report.below_band == 1


def test_earlier_rollouts_are_called_replay_and_lose_their_old_scores():
    stale = dataclasses.replace(row("a"), ref_logprob=-9.0, perplexity=9.0, value=0.9, advantage=9.0)
    (replayed,) = chosen([stale])[0]
    assert (replayed.source, replayed.value, replayed.advantage) == ("replay", None, None)
    assert (replayed.ref_logprob, replayed.perplexity) == pytest.approx((-0.3, 1.3498588))


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.replay])
def test_methods_without_replay_do_not_even_score_the_buffer(name):
    scorer = Scorer()
    built = build(NOW, many(9), scorer, CONFIG, METHODS[name], 0)
    assert scorer.passes == [("ref", 10)]
    assert (built.report.buffer, built.report.replayed) == (0, 0)


@pytest.mark.parametrize("name", ["webrl-all-ppl", "digirl"])
def test_methods_without_a_band_replay_any_success(name):
    replayed, report = chosen([*many(3, logprob=0.0), row("odd", logprob=9.0)], method=METHODS[name])
    assert (len(replayed), report.below_band, report.above_band) == (4, 0, 0)


def test_filtered_bc_keeps_trajectories_above_the_percentile():
    """Of ten outcomes with two successes the 70th percentile is 0, so the two stay, with all their steps."""
    current = [row(f"t{i}", s, steps=2, reward=float(i < 2), phase=5) for i in range(10) for s in range(2)]
    built = build(current, many(5), Scorer(), CONFIG, METHODS["filtered_bc"], 0)
    assert {r.task_id for r in built.rows} == {"t0", "t1"}
    assert (built.report.current, built.report.below_percentile) == (4, 16)
    nothing = build([r for r in current if not r.reward], [], Scorer(), CONFIG, METHODS["filtered_bc"], 0)
    assert nothing.rows == ()


# Credit -------------------------------------------------------------------------------------------------------------


def steps_with(values, reward, **settings):
    count = len(values)
    return [row("x", i, steps=count, value=v, reward=reward, phase=5, **settings) for i, v in enumerate(values)]


def test_a_trajectory_is_credited_as_the_worked_example():
    """V = 0.2, 0.5, 0.8 and lambda 0.5: a success has 0.55, 0.40, 0.20, a failure 0.05, -0.10, -0.80."""
    for reward, expected in ((1.0, (0.55, 0.40, 0.20)), (0.0, (0.05, -0.10, -0.80))):
        rows = credit(steps_with([20, 50, 80], reward), Scorer(), CONFIG, WEBRL)
        assert [r.advantage for r in rows] == pytest.approx(expected)
        assert [r.value for r in rows] == pytest.approx((0.2, 0.5, 0.8))


def test_lambda_and_gamma_are_the_configuration_s():
    """Lambda 0, gamma 0.5: 0.25 - 0.2, 0.5 - 0.5, 1 - 0.8."""
    config = dataclasses.replace(CONFIG, actor=ActorConfig(lam=0.0, gamma=0.5))
    rows = credit(steps_with([20, 50, 80], 1.0), Scorer(), config, WEBRL)
    assert [r.advantage for r in rows] == pytest.approx((0.05, 0.0, 0.2), abs=1e-7)


def test_a_replayed_step_has_the_advantage_of_its_whole_trajectory():
    """V = 0.2, 0.5, 0.8, where only the first and the last action are in the band: 0.55 and 0.20 as before."""
    buffer = steps_with([20, 50, 80], 1.0)
    buffer[1] = dataclasses.replace(buffer[1], action=(1,))  # perplexity 1.001: known already
    replayed, _ = chosen(buffer, current=[row("now", phase=6)])
    assert [r.step for r in replayed] == [0, 2]
    assert [r.next_prompt for r in replayed] == [buffer[1].prompt, ()]
    scorer = Scorer()
    rows = credit(replayed, scorer, CONFIG, WEBRL)
    assert [r.advantage for r in rows] == pytest.approx((0.55, 0.20))
    assert scorer.passes == [("critic", 3)]


def test_a_next_state_that_is_a_row_itself_is_not_stored_twice():
    replayed, _ = chosen(steps_with([20, 50, 80], 1.0))
    assert [r.next_prompt for r in replayed] == [(), (), ()]


def test_trajectories_and_phases_do_not_mix():
    """Two trajectories of one name in two phases, each credited by its own states."""
    first = [dataclasses.replace(r, trajectory_id="same") for r in steps_with([20, 50], 1.0)]
    other = [dataclasses.replace(r, trajectory_id="same", phase=6) for r in steps_with([10, 90], 0.0)]
    rows = credit([other[1], first[0], other[0], first[1]], Scorer(), CONFIG, WEBRL)
    # success .2 .5: (.5 - .2 + 1 - .2) / 2 = .55, 1 - .5 = .5; failure .1 .9: (.9 - .1 - .1) / 2 = .35, -.9
    assert [r.advantage for r in rows] == pytest.approx((-0.9, 0.55, 0.35, 0.5))


def test_each_state_goes_through_the_critic_once():
    scorer = Scorer()
    rows = steps_with([20, 50, 80], 1.0)
    same_state = dataclasses.replace(rows[0], trajectory_id="y", steps=1)
    credit([*rows, same_state], scorer, CONFIG, WEBRL)
    assert scorer.passes == [("critic", 3)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("awr", (-0.4, -0.3, -0.6)),
        ("digirl", (0.0, 1.0, 0.0)),
        ("webrl-released", (-0.6, 1.0, -0.6)),
        ("filtered_bc", (0.0, 0.0, 0.0)),
    ],
)
def test_each_method_credits_in_its_own_way(name, expected):
    """A failure with V = 0.4, 0.3, 0.6: AWR's return minus V, and whether V rises by 0.05."""
    rows = credit(steps_with([40, 30, 60], 0.0), Scorer(), CONFIG, METHODS[name])
    assert [r.advantage for r in rows] == pytest.approx(expected)


def test_awr_discounts_by_its_own_gamma():
    """Table 4 lists 0.9 for AWR, whose return has a discount; with V = 0 a success of three has 0.81, 0.9, 1."""
    rows = credit(steps_with([0, 0, 0], 1.0), Scorer(), CONFIG, METHODS["awr"])
    assert [r.advantage for r in rows] == pytest.approx((0.81, 0.9, 1.0))


def test_methods_that_credit_the_outcome_ask_no_critic():
    scorer = Scorer()
    rows = credit(steps_with([40, 30], 1.0), scorer, CONFIG, METHODS["webrl-no-kl"])
    assert scorer.passes == []
    assert [(r.advantage, r.value) for r in rows] == [(1.0, None), (1.0, None)]


def test_sft_has_no_credit():
    with pytest.raises(RuleError, match="`method` must learn from rollouts"):
        credit(NOW, Scorer(), CONFIG, METHODS["sft"])


@pytest.mark.parametrize("name", ["webrl", "digirl", "webrl-released"])
def test_a_missing_next_state_is_an_error_and_not_a_silent_value(name):
    with pytest.raises(RuleError, match="the state after step 0 of trajectory x-p5 is missing"):
        credit(steps_with([20, 50], 1.0)[:1], Scorer(), CONFIG, METHODS[name])
    with pytest.raises(RuleError, match="Give whole trajectories"):
        chosen(steps_with([20, 50], 1.0)[:1])


# Files and the model itself -----------------------------------------------------------------------------------------


def test_a_resumed_phase_has_the_same_rows(tmp_path):
    """From the same files, and after the rows themselves went through a file."""
    built = build(NOW, many(50), Scorer(), CONFIG, WEBRL, 7)
    write_experience(tmp_path / "now.jsonl", NOW)
    write_experience(tmp_path / "old.jsonl", many(50))
    read = [read_experience(tmp_path / name) for name in ("now.jsonl", "old.jsonl")]
    assert build(*read, Scorer(), CONFIG, WEBRL, 7) == built
    write_experience(tmp_path / "experience.jsonl", built.rows)
    stored = read_experience(tmp_path / "experience.jsonl")
    assert credit(stored, Scorer(), CONFIG, WEBRL) == credit(built.rows, Scorer(), CONFIG, WEBRL)


def test_the_next_phase_takes_a_phase_s_file_as_it_is(tmp_path):
    """REP-01: no step is lost or doubled, whether the buffer has the files of one phase or of all."""
    first = build([row("a", i, steps=3) for i in range(3)], [], Scorer(), CONFIG, WEBRL, 0)
    second = build([row("b", i, steps=3, phase=2) for i in range(3)], first.rows, Scorer(), CONFIG, WEBRL, 0)
    write_experience(tmp_path / "e.jsonl", credit(second.rows, Scorer(), CONFIG, WEBRL))
    replayed, report = chosen([*read_experience(tmp_path / "e.jsonl"), *first.rows])
    assert sorted((r.task_id, r.step) for r in replayed) == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    assert report.duplicate == 3
    assert len(chosen(second.rows)[0]) == 6


@pytest.fixture(scope="module")
def shared():
    base = tiny_models.load()
    tiny_models.stir(base, "actor", "critic")
    base.copy_role("actor", "ref")
    return base


def real_rows(count=6):
    """Steps with lengths of their own."""
    return [
        Experience(
            f"t{i}", f"t{i}", 0, 1, tuple(range(5, 9 + 7 * i)), tuple(range(20, 22 + i)), 1.0, "current", "map", 1
        )
        for i in range(count)
    ]


def test_scores_are_the_actor_s_own_and_the_log_ratio_starts_at_0(shared):
    rows = build(real_rows(), [], shared, CONFIG, WEBRL, 0).rows
    with shared.role("actor", train=True):
        logprobs = shared.action_logprobs([r.sample for r in rows])
        assert logprobs.detach().tolist() == [r.ref_logprob for r in rows]
        del logprobs


def test_perplexity_does_not_depend_on_its_neighbours(shared):
    """REP-03: alone, and padded beside longer rows."""
    together = build(real_rows(), [], shared, CONFIG, WEBRL, 0).rows
    for scored in together:
        (alone,) = build([scored], [], shared, CONFIG, WEBRL, 0).rows
        assert alone.perplexity == pytest.approx(scored.perplexity, rel=1e-5)
    with shared.role("ref"):
        tokens = shared.action_logprobs([together[0].sample], reduction="tokens")
    assert together[0].perplexity == pytest.approx(math.exp(-tokens.mean().item()), rel=1e-5)


def test_values_are_the_critic_s(shared):
    rows = credit(build(real_rows(3), [], shared, CONFIG, WEBRL, 0).rows, shared, CONFIG, WEBRL)
    with shared.role("critic"):
        expected = shared.values([r.prompt for r in rows]).tolist()
    assert [r.value for r in rows] == expected
    assert [r.advantage for r in rows] == pytest.approx([1 - v for v in expected])
