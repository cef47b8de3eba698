"""The command line as settings."""

import pytest

from webrl_lite.config import Config, ConfigError, preset
from webrl_lite.options import parse
from webrl_lite.run_folder import RunError, RunFolder


def test_no_argument_is_the_loop_with_the_tiny_preset():
    request = parse([])
    assert request.command == "train" and request.config == preset("tiny") and request.resume is None


def test_an_option_has_the_settings_own_name():
    config = parse(["--actor.beta", "1e-1", "--curriculum.tasks_per_phase", "7", "--seed", "2"]).config
    assert (config.actor.beta, config.curriculum.tasks_per_phase, config.seed) == (0.1, 7, 2)


def test_a_file_stands_over_the_preset_and_options_over_both(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("actor:\n  beta: 0.5\n  lam: 0.25\nseed: 4\n")
    config = parse(["--preset", "small", "--config", str(file), "--actor.lam", "0.75"]).config
    assert config.model.name == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert (config.actor.beta, config.actor.lam, config.seed) == (0.5, 0.75, 4)


@pytest.mark.parametrize("text", ["learning_rate: 1e-5", 'learning_rate: "1e-5"'])
def test_a_number_that_yaml_reads_as_text_is_a_number(tmp_path, text):
    """CLI-03."""
    (tmp_path / "a.yaml").write_text(f"actor:\n  {text}\n")
    assert parse(["--config", str(tmp_path / "a.yaml")]).config.actor.learning_rate == 1e-5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("actor:\n  learning_rat: 1e-5", "`actor.learning_rat` is no setting. Did you mean learning_rate?"),
        ("beta: 1", "`beta` is no setting"),
        ("actor:\n  learning_rate: fast", "`actor.learning_rate` must be a number, got 'fast'"),
        ("actor:\n  batch_size: 8.5", "`actor.batch_size` must be a whole number"),
        ("actor:\n  batch_size: '010'", "`actor.batch_size` must be a whole number"),
        ("actor:\n  batch_size: true", "`actor.batch_size` must be a whole number"),
        ("actor:\n  beta: [1]", "`actor.beta` must be a number"),
        ("actor:\n  gamma: 1.5", "`actor.gamma` must be in (0, 1], got 1.5"),
        ("actor: 3", "`actor` must be a group of settings"),
        ("- 1", "must hold settings by name"),
        ("a: [", "must be a YAML file"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_key_and_value(tmp_path, text, said):
    """CLI-01, CLI-03 and CLI-07."""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        parse(["--config", str(tmp_path / "a.yaml")])
    assert said in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """CLI-06."""
    with pytest.raises(ConfigError, match=r"`--config` must be a YAML file, .*none.yaml cannot be read"):
        parse(["--config", str(tmp_path / "none.yaml")])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--actor.bta", "0.5"], "--actor.beta"),
        (["--actor.beta", "fast"], "fast"),
        (["--actor.batch_size", "8.5"], "8.5"),
        (["--actor.reduction", "summ"], "summ"),
        (["--beta", "0.5"], "beta"),
        (["--preset", "tny"], "tny"),
    ],
)
def test_an_option_that_cannot_be_ends_with_2_and_names_it(arguments, said, capsys):
    """CLI-01 and CLI-03: an unknown one with the nearest one that there is."""
    with pytest.raises(SystemExit) as raised:
        parse(arguments)
    assert raised.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--actor.beta 0", "--actor.gamma 1.5", "--rollout.max_steps 0", "--eval.tasks 0"])
def test_a_value_out_of_range_is_refused(option, capsys):
    """CLI-07."""
    name, value = option.split()
    with pytest.raises(SystemExit) as raised:
        parse([name, value])
    assert raised.value.code == 2
    assert f"`{name[2:]}` must be" in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_word_that_is_no_command_is_refused():
    with pytest.raises(ConfigError, match=r"`command` must be one of train, sft, .*, got 'trian'"):
        parse(["trian"])


def test_going_on_takes_the_runs_settings(tmp_path):
    RunFolder(tmp_path / "run").begin(Config(seed=5, out=str(tmp_path / "run")), resume=False)
    request = parse(["--resume", str(tmp_path / "run")])
    assert request.config.seed == 5 and request.resume == tmp_path / "run"


def test_going_on_with_no_run_or_with_a_preset_is_refused(tmp_path):
    """CLI-06."""
    with pytest.raises(RunError, match="holds no run"):
        parse(["--resume", str(tmp_path)])
    with pytest.raises(ConfigError, match="without --preset"):
        parse(["--resume", str(tmp_path), "--preset", "small"])


def test_the_help_shows_defaults_and_sources(capsys):
    with pytest.raises(SystemExit) as raised:
        parse(["--help"])
    assert raised.value.code == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--actor.lam FLOAT" in shown and "(paper §2.1: 0.5)" in shown and "(default: 0.5)" in shown
    assert "ablate methods x seeds from one start" in shown


# What a word stands for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--env", "webarena_lite"], ["--env=webarena_lite"]])
def test_the_set_of_tasks_has_a_short_option(arguments):
    assert parse([*arguments, "--env.tasks", "3", "27"]).config.env.name == "webarena_lite"
    assert parse([*arguments, "--env.tasks", "3", "27"]).config.env.tasks == ("3", "27")


def test_a_set_that_there_is_not_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        parse(["--env", "webarna"])
    assert "webarena_verified" in capsys.readouterr().err


def test_a_released_checkpoint_brings_its_settings_over_the_preset_and_under_what_is_set(tmp_path):
    """Quantization is the preset's, 2048 new tokens the checkpoint's, 17 steps the file's, the mode the option's."""
    file = tmp_path / "a.yaml"
    file.write_text("rollout:\n  max_steps: 17\n")
    words = ["eval", "--preset", "gpu24", "--config", str(file), "--env.evaluator", "strict"]
    config = parse([*words, "--model.name", "THUDM/webrl-llama-3.1-8b"]).config
    assert (config.model.name, config.model.quantization) == ("THUDM/webrl-llama-3.1-8b", "nf4")
    assert (config.model.template, config.model.max_length, config.env.observation) == ("webrl-llama3", 16384, "webrl")
    assert (config.rollout.max_new_tokens, config.rollout.max_steps, config.env.evaluator) == (2048, 17, "strict")


def test_a_released_checkpoint_may_stand_in_the_file(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("model:\n  name: THUDM/webrl-glm-4-9b\n  max_length: 4096\n")
    config = parse(["eval", "--config", str(file)]).config
    assert (config.model.template, config.model.max_length, config.env.evaluator) == ("webrl-glm4", 4096, "vab")


def test_another_model_brings_nothing():
    assert parse(["--model.name", "tiny"]).config == preset("tiny")


def test_chat_is_the_models_own_form_whatever_the_preset_says():
    assert parse(["eval", "--preset", "gpu24"]).config.model.template == "webrl-llama3"
    assert parse(["eval", "--preset", "gpu24", "--policy", "chat"]).config.model.template == "chat"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["eval", "--policy", "prompted", "--adapter", "x"],
            "`--adapter` must stand with `--policy actor`, got prompted",
        ),
        (["eval", "--model.name", "THUDM/webrl-orm-llama-3.1-8b"], "`model.name` must be an agent's"),
    ],
)
def test_what_cannot_act_is_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        parse(arguments)


def test_the_help_of_eval_says_who_can_act(capsys):
    with pytest.raises(SystemExit):
        parse(["eval", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "prompted: the served model of --llm.base_url and --llm.model, as a chat" in shown
    assert "chat: the same in the model's own chat form" in shown


def test_judges_are_compared_with_the_runs_settings_and_another_model(tmp_path):
    RunFolder(tmp_path / "run").begin(Config(seed=5, out=str(tmp_path / "run")), resume=False)
    request = parse(["judges", "--run", str(tmp_path / "run"), "--judges", "orm", "caption", "--llm.model", "m"])
    assert (request.config.seed, request.config.llm.model) == (5, "m")
    assert (request.own.judges, request.own.limit) == (["orm", "caption"], None)


def test_the_help_of_judges_needs_no_run_and_a_preset_beside_a_run_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as raised:
        parse(["judges", "--help"])
    assert raised.value.code == 0 and "--llm.base_url" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="`--run` must stand without --preset and --config"):
        parse(["judges", "--preset", "small"])
