"""The settings: the paper's constants, and what a mistake in a file or on the command line is told."""

import dataclasses
import json

import pytest

from webrl_lite.config import PRESETS, ActorConfig, Config, ConfigError, ReplayConfig, from_dict, paper, preset, to_dict


def test_the_paper_preset_has_the_papers_constants():
    c = paper()
    assert (c.sft.learning_rate, c.orm.learning_rate, c.critic.learning_rate, c.actor.learning_rate) == (
        1e-5,
        5e-6,
        1e-6,
        1e-6,
    )
    assert (c.sft.schedule, c.orm.schedule, c.critic.schedule, c.actor.schedule) == (
        "cosine",
        "cosine",
        "constant",
        "constant",
    )
    assert (c.sft.warmup, c.orm.warmup, c.actor.warmup) == (0.1, 0.1, 0.0)
    assert (c.sft.epochs, c.orm.epochs, c.critic.epochs, c.actor.epochs) == (1, 4, 1, 1)
    assert {c.sft.batch_size, c.orm.batch_size, c.critic.batch_size, c.actor.batch_size} == {128}
    assert c.model.max_length == 16384
    assert c.actor.lam == 0.5
    assert (c.replay.ppl_min, c.replay.ppl_max, c.replay.max_ratio) == (1 / 0.95, 2.0, 2.0)
    assert (c.curriculum.value_min, c.curriculum.value_max) == (0.05, 0.75)
    assert (c.curriculum.tasks_per_phase, c.curriculum.phases) == (500, 8)
    assert (c.rollout.max_steps, c.rollout.temperature, c.rollout.eval_temperature) == (30, 1.0, 0.0)


@pytest.mark.parametrize("name", PRESETS)
def test_a_configuration_is_read_back_equal(name):
    assert preset(name).preset == name
    read = from_dict(json.loads(json.dumps(to_dict(preset(name)))))
    assert read == preset(name)
    assert repr(read) == repr(preset(name))  # 3 where 3.0 is due would be another setting for a trainer that goes on


def test_values_lie_over_their_preset():
    c = from_dict({"preset": "gpu24", "actor": {"beta": 0.5}})
    assert c == dataclasses.replace(preset("gpu24"), actor=dataclasses.replace(preset("gpu24").actor, beta=0.5))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"actor": {"learning_rat": 1e-5}}, "`actor.learning_rat` is no setting. Did you mean learning_rate"),
        ({"bata": 1}, "`bata` is no setting"),
        ({"beta": 1}, "`beta` is no setting"),
        ({"preset": "tiney"}, "Did you mean tiny"),
        ({"preset": 3}, "`preset` must be one of"),
        ({"actor": 3}, "`actor` must be a group"),
        (
            {"model": {"quantization": "nf5"}},
            "`model.quantization` must be one of nf4, none, got 'nf5'. Did you mean nf4",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(values, message):
    """CLI-01."""
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        from_dict(values)


@pytest.mark.parametrize(
    ("group", "name", "written", "read"),
    [
        ("actor", "learning_rate", "1e-5", 1e-5),
        ("actor", "learning_rate", 1, 1.0),
        ("actor", "batch_size", 8.0, 8),
        ("actor", "batch_size", "8", 8),
        ("lora", "top_layers", None, None),
        ("lora", "top_layers", 8, 8),
        ("lora", "targets", ["q_proj", "v_proj"], ("q_proj", "v_proj")),
        ("lora", "targets", "all-linear", "all-linear"),
        ("replay", "ppl_max", "inf", float("inf")),
    ],
)
def test_a_value_is_read_in_the_type_of_its_setting(group, name, written, read):
    """CLI-03: YAML gives ``1e-5`` as a text."""
    value = getattr(getattr(from_dict({group: {name: written}}), group), name)
    assert (value, type(value)) == (read, type(read))


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("actor", "learning_rate", "fast"),
        ("actor", "learning_rate", True),
        ("actor", "learning_rate", [1e-5]),
        ("actor", "learning_rate", "nan"),
        ("actor", "batch_size", 8.5),
        ("actor", "batch_size", "010"),
        ("actor", "batch_size", "8.5"),
        ("actor", "batch_size", True),
        ("actor", "batch_size", None),
        ("model", "name", 3),
        ("model", "revision", False),
        ("lora", "targets", []),
        ("lora", "targets", [1]),
    ],
)
def test_a_value_of_another_type_is_refused(group, name, value):
    """CLI-03."""
    with pytest.raises(ConfigError, match=f"`{group}.{name}` must be"):
        from_dict({group: {name: value}})


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("actor", "beta", 0),
        ("actor", "beta", -0.1),
        ("actor", "beta", float("inf")),
        ("actor", "lam", 1.5),
        ("actor", "gamma", 1.5),
        ("actor", "gamma", 0),
        ("actor", "epochs", 0),
        ("actor", "batch_size", 0),
        ("actor", "learning_rate", 0),
        ("critic", "warmup", 1),
        ("orm", "threshold", 1),
        ("sft", "weight_decay", -1),
        ("replay", "ppl_min", 0.5),
        ("replay", "ppl_max", 1.0),
        ("replay", "max_ratio", -1),
        ("curriculum", "value_min", -0.1),
        ("curriculum", "value_max", 0.04),
        ("curriculum", "value_max", 1.1),
        ("curriculum", "phases", 0),
        ("rollout", "max_steps", 0),
        ("rollout", "temperature", -1),
        ("rollout", "top_p", 0),
        ("model", "max_length", 0),
        ("model", "name", ""),
        ("lora", "rank", 0),
        ("lora", "top_layers", 0),
        ("env", "observation_tokens", 0),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(group, name, value):
    """CLI-07: the message names the setting, the rule and the value."""
    with pytest.raises(ConfigError, match=rf"`{group}\.{name}` must be .*, got "):
        from_dict({group: {name: value}})


def test_the_checks_hold_for_code_too():
    with pytest.raises(ConfigError):
        ActorConfig(beta=0)
    with pytest.raises(ConfigError):
        ReplayConfig(ppl_min=3.0)
    with pytest.raises(ConfigError):
        Config(seed=-1)
