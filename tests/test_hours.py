"""The plan of a paper-sized run: tokens, FLOPs and hours that a person can redo, and the authors' run as the check."""

from dataclasses import replace

import pytest

from webrl_lite import local_model
from webrl_lite.config import ModelConfig, RolloutConfig, preset
from webrl_lite.hours import (
    GPUS,
    Gpu,
    Passes,
    Sampler,
    Work,
    authors_hours,
    authors_passes,
    find_gpu,
    forward_flops,
    paper_run,
    paper_sized,
    passes,
    stage_hours,
    training_flops,
)
from webrl_lite.hours_report import advice, hours_table, plan_text, text
from webrl_lite.local_model import cached, shape_of
from webrl_lite.model_shape import SHAPES, ModelShape, PlanError

TOY = ModelShape(
    "toy", vocab_size=10, hidden_size=4, intermediate_size=6, layers=1, heads=1, kv_heads=1, head_dim=4, max_length=99
)
"""4 x 4 x 4 weights in attention, 3 x 4 x 6 behind it: 136."""
SMALL_RUN = Work(
    prompt=10, action=2, demonstrations=4, sft_epochs=1, orm_rollouts=5, orm_epochs=2, phases=2, tasks=3, test_tasks=2,
    steps=2, replay=1, success=0.5,
)  # fmt: skip
"""6 steps a phase; buffers of 4 and 4 + 3 = 7 steps, of which 4 and 6 are replayed; so it learns from 12 + 10 = 22."""
SLOW = Gpu("slow", 80, 123.0, "made up")


# FLOPs --------------------------------------------------------------------------------------------------------------


def test_a_forward_pass_takes_two_flops_a_weight_and_token_and_half_of_the_attention_square():
    """2 x 136 x 10 = 2,720; attention 2 x 4 x 10^2 = 800; output 2 x 10 x 4 x 2 positions = 160."""
    assert forward_flops(TOY, 10, 2) == 3680


def test_an_adapter_adds_its_own_weights():
    """62 weights of rank 1: 2 x 62 x 10 = 1,240 more."""
    assert forward_flops(TOY, 10, 2, 62) == 4920


def test_lora_training_is_two_flops_forward_and_four_more():
    """Without adapter, attention and output: 6 x 136 x 10 = 8,160, three times the 2,720 of a forward pass."""
    assert training_flops(TOY, 10, 0, 0) - 4.5 * 800 == 8160


def test_lora_training_adds_four_passes_of_the_adapter():
    """2 (3 x 136 + 4 x 62) 10 = 13,120; attention 4.5 x 800 = 3,600; output twice, 320."""
    assert training_flops(TOY, 10, 2, 62) == 17040


def test_full_training_pays_for_the_gradients_of_the_weights_too():
    """8 x 136 x 10 = 10,880; attention 3,600; output three times, 480."""
    assert training_flops(TOY, 10, 2, None) == 14960


def test_a_short_convolution_has_no_attention_square():
    half = replace(TOY, layers=2, conv_layers=1, conv_kernel=3)
    assert forward_flops(half, 20, 0) - 2 * half.linear_weights * 20 == 2 * 4 * 400


@pytest.mark.parametrize(("length", "gflop"), [(4096, 46.7), (16384, 61.2)])
def test_a_token_of_the_8b_model_takes_known_gflops(length, gflop):
    """3 x 13.96 in the linear layers, and 4.5 x 1.07 of attention at 4,096 tokens, 4.5 x 4.29 at 16,384."""
    assert training_flops(SHAPES["Llama-3.1-8B"], length, 0, 0) / length / 1e9 == pytest.approx(gflop, abs=0.05)


# Tokens -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "forward", "backward", "decoded"),
    [
        ("sft", 48, 48, 0),  # 4 steps of 12 tokens
        ("orm rollouts", 120, 0, 20),  # 5 episodes of 2 steps: 10 prompts of 10, and 2 tokens each
        ("orm", 100, 100, 0),  # 5 rollouts twice
        ("rollout", 144, 0, 24),  # 2 phases of 6 steps: 120 + 24
        ("judging", 120, 0, 0),  # 6 episodes and 3 x 2 of evaluations
        ("scoring", 276, 0, 0),  # 12 steps, and buffers of 4 + 7, of 12 tokens
        ("critic", 220, 220, 0),  # 22 states
        ("values", 320, 0, 0),  # 22 states, and 10 behind replayed ones
        ("actor", 264, 264, 0),  # 22 steps of 12 tokens
        ("evaluation", 144, 0, 24),  # 3 evaluations of 2 tasks of 2 steps: 120 + 24
    ],
)
def test_tokens_of_a_small_run_by_stage(stage, forward, backward, decoded):
    found = {one.stage: one for one in passes(SMALL_RUN)}[stage]
    assert (found.forward_tokens, found.backward_tokens, found.decoded) == (forward, backward, decoded)


def test_replay_takes_no_more_than_there_is():
    assert [SMALL_RUN.replayed(phase) for phase in (1, 2)] == [4, 6]


def test_without_replay_nothing_earlier_is_scored():
    found = {one.stage: one for one in passes(replace(SMALL_RUN, replay=0))}
    assert found["scoring"].read == 12
    assert found["actor"].trained == 12


def test_the_paper_sized_run_has_the_papers_numbers():
    """8 x 500 x 8 = 32,000 steps; at most twice as many replayed; so 96,000 learned from, 750 updates of 128."""
    work = paper_sized(preset("paper"))
    found = {one.stage: one for one in passes(work)}
    assert (work.phases, work.tasks, work.orm_rollouts, work.test_tasks) == (8, 500, 12200, 165)
    assert found["rollout"].steps == 32000
    assert found["actor"].trained == 96000
    assert found["orm"].trained == 48800


def test_a_prompt_is_no_longer_than_the_configuration_allows():
    config = preset("paper")
    assert paper_sized(config).prompt == 4000  # 3,500 of a page in the authors' format, and 500
    assert paper_sized(preset("gpu24")).prompt == 2250  # without boxes
    assert paper_sized(replace(config, model=replace(config.model, max_length=2048))).prompt == 1536  # less 512
    assert paper_sized(replace(config, env=replace(config.env, observation_tokens=900))).prompt == 1400


def test_the_released_code_runs_the_critic_twice_and_the_reference_in_every_batch():
    found = {one.stage: one for one in authors_passes(SMALL_RUN)}
    assert (found["critic"].trained, found["values"].read, found["reference"].read) == (44, 44, 22)
    assert "rollout" not in found


@pytest.mark.parametrize(
    ("name", "value"), [("prompt", 0), ("steps", -1), ("phases", 0), ("replay", -0.5), ("orm_rollouts", -1)]
)
def test_work_that_cannot_be_is_refused(name, value):
    """CLI-07: names the number and its range."""
    with pytest.raises(PlanError, match=f"`{name}` must be at least [01], got {value}"):
        replace(SMALL_RUN, **{name: value})


# Hours --------------------------------------------------------------------------------------------------------------


def test_hours_are_flops_over_a_share_of_the_peak():
    """4,920 FLOPs at 0.4 of 123 a second: 100 s. 17,040 at 0.35 of 123: 395.8 s."""
    rows = [Passes("a", 10, 2, read=1), Passes("b", 10, 2, trained=1)]
    read, trained = stage_hours(rows, TOY, 62, SLOW, 1, Sampler(1, 1.0))
    assert read.hours * 3600 == pytest.approx(100)
    assert trained.hours * 3600 == pytest.approx(395.819, rel=1e-5)


def test_episodes_at_once_share_the_time_of_a_token_and_of_the_browser():
    """20 tokens of 0.05 s by 2 streams: 0.5 s. 10 steps of 2 s by 2: 10 s."""
    (row,) = stage_hours([Passes("a", 10, 1, decoded=20, steps=10)], TOY, 0, SLOW, 1, Sampler(2, 0.05))
    assert row.decode_hours * 3600 == pytest.approx(0.5)
    assert row.browser_hours * 3600 == pytest.approx(10)


def test_two_cards_take_half_the_time():
    one, two = (stage_hours(passes(SMALL_RUN), TOY, 62, SLOW, n, Sampler(2, 0.05)) for n in (1, 2))
    assert [row.hours / 2 for row in one] == pytest.approx([row.hours for row in two])


def test_no_card_is_refused():
    with pytest.raises(PlanError, match="`gpus` must be at least 1, got 0"):
        paper_run(preset("gpu24"), find_gpu("RTX 4090"), 0)


def test_the_authors_run_comes_within_a_factor_of_two_of_their_six_hours():
    """64 A100s, SFT and 8 phases: about 6 hours by the authors. The factor is ours to state; see ``hours.WITHIN``."""
    assert 3 < authors_hours() < 12


def test_the_kit_needs_fewer_card_hours_than_the_authors_for_the_same_stages():
    """Adapters, one scoring pass and cached values, against 64 x 6 = 384 card-hours."""
    rows = paper_run(preset("paper"), GPUS["A100-80GB"]).rows
    same = [row.hours for row in rows if row.passes.stage in ("sft", "scoring", "critic", "values", "actor")]
    assert 100 < sum(same) < 384


def test_a_server_writes_replies_in_the_plan_of_a_run_that_has_one():
    config = preset("gpu24")
    served = replace(config, rollout=replace(config.rollout, base_url="http://127.0.0.1:8000/v1"))
    own, other = (paper_run(one, GPUS["RTX 4090"]) for one in (config, served))
    assert (own.sampler.streams, other.sampler.streams) == (5, 32)
    assert other.hours < own.hours


def test_no_more_episodes_play_at_once_than_the_card_holds():
    """12 environments of 16,384 tokens; a card of 24 GB holds 2 of them."""
    assert paper_run(preset("paper"), GPUS["RTX 3090"]).sampler.streams == 2


def test_a_model_that_does_not_fit_is_planned_with_the_reason():
    config = preset("gpu24")
    large = replace(config, model=replace(config.model, name="meta-llama/Llama-3.1-70B-Instruct"))
    run = paper_run(large, GPUS["RTX 4090"])
    assert run.memory == ()
    assert "RTX 4090 has 22.56" in run.refusal
    assert "Does not fit" in plan_text(run)


# Cards and models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("a100", "A100-80GB"),
        ("24GB", "RTX 4090"),
        ("80 gb", "A100-80GB"),
        ("h100", "H100"),
    ],
)
def test_a_card_is_found_however_it_is_written(written, name):
    assert find_gpu(written).name == name


def test_an_unknown_card_names_the_nearest():
    with pytest.raises(PlanError, match=r"`card` must be one of .*, got 'RTX 4091'. Did you mean RTX 4090\?"):
        find_gpu("RTX 4091")


def test_presets_have_models_of_known_size(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    sizes = {name: shape_of(preset(name).model).parameters for name in ("tiny", "small", "gpu24", "gpu80", "paper")}
    assert sizes == {
        "tiny": 3_297_600,
        "small": 134_515_008,
        "gpu24": 8_030_261_248,
        "gpu80": 8_030_261_248,
        "paper": 8_030_261_248,
    }


def test_an_unknown_model_is_not_guessed(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(PlanError, match="`model.name` must be tiny, a folder with a config.json"):
        shape_of(ModelConfig(name="someone/something"))


def test_a_folder_gives_its_models_size(tmp_path):
    (tmp_path / "config.json").write_text((local_model.TINY_FOLDER / "config.json").read_text())
    assert shape_of(ModelConfig(name=str(tmp_path))).parameters == 3_297_600


def test_the_hubs_cache_is_read_by_revision(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    root = tmp_path / "models--someone--something"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text("abc123\n")
    folder = root / "snapshots" / "abc123"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text((local_model.TINY_FOLDER / "config.json").read_text())
    model = ModelConfig(name="someone/something")
    assert cached(model) == folder
    assert cached(replace(model, revision="abc123")) == folder
    assert cached(replace(model, revision="v2")) is None
    assert shape_of(model).parameters == 3_297_600


# Text ---------------------------------------------------------------------------------------------------------------


def test_the_text_states_the_check_and_the_assumptions():
    shown = plan_text(paper_run(preset("paper"), GPUS["A100-80GB"], 2))
    assert "# Llama-3.1-8B in 4 bits, LoRA of rank 16, on 2 x A100-80GB (80 GB)" in shown
    assert "| actor | 6 | 16384 | 73.6 |" in shown
    assert f"{authors_hours():.1f} hours without rollouts; they report about 6" in shown
    assert "312 TFLOP/s in bfloat16 (NVIDIA A100 datasheet" in shown
    assert "training reaches 35%" in shown
    assert "A step in a browser takes 2 s" in shown


def test_the_command_takes_a_card_by_name():
    assert text(preset("gpu24"), card="24GB", gpus=2) == plan_text(paper_run(preset("gpu24"), GPUS["RTX 4090"], 2))


def test_the_table_adds_up():
    rows = stage_hours(passes(SMALL_RUN), TOY, 62, SLOW, 1, Sampler(2, 0.05))
    lines = hours_table(rows).splitlines()
    assert len(lines) == 2 + 10 + 1
    assert {line.count("|") for line in lines} == {11}
    assert lines[-1].endswith("| 100% |")


def test_the_text_says_where_another_card_pays():
    large = " ".join(advice(paper_run(preset("paper"), GPUS["A100-80GB"])))
    assert "So it pays more as a worker in all stages." in large  # three fifths are training
    tiny = " ".join(advice(paper_run(preset("tiny"), GPUS["RTX 4090"])))
    assert "So it pays more as a server." in tiny  # nearly all is playing


def test_a_run_with_a_server_is_not_told_to_get_one():
    config = replace(preset("gpu24"), rollout=RolloutConfig(base_url="http://127.0.0.1:8000/v1"))
    assert "already" in advice(paper_run(config, GPUS["A6000"]))[-1]
