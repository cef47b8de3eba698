"""The command line as settings: a preset, a YAML file over it, options over both.

``python -m webrl_lite.run [command] [--preset P] [--config FILE.yaml] [--resume DIR] [--group.setting value ...]``

The options are the settings of ``config`` by their own names, and ``--env NAME`` for ``--env.name``; tyro reads them,
shows the texts under the fields as help and names the nearest one where an option is unknown. A YAML file goes through
``config.from_dict``, which is as strict. Where file or options name one of the authors' released checkpoints, the
settings that its name stands for (``released``) lie between the preset and them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
import yaml

from webrl_lite import released
from webrl_lite.baselines import METHODS
from webrl_lite.config import JSON, PRESETS, Config, ConfigError
from webrl_lite.judges import EPISODE_JUDGES
from webrl_lite.run_folder import RunFolder

PROGRAM = "python -m webrl_lite.run"


@dataclass(frozen=True)
class Command:
    """A word of the command line."""

    help: str
    own: Mapping[str, dict[str, object]]
    """Arguments that only it has, as ``argparse`` takes them."""
    settings: bool = True
    """Whether it takes the settings of a run."""


POLICIES = {
    "actor": "the loaded --model.name with --adapter or as it is, in the prompt form of model.template (default)",
    "chat": "the same in the model's own chat form, as any instruction-tuned model of Hugging Face is prompted",
    "prompted": "the served model of --llm.base_url and --llm.model, as a chat; no model is loaded here",
}
"""Who acts in ``eval``."""

FOLDER = {"folder": {"nargs": "?", "default": "runs/webrl", "type": Path, "help": "folder of the run"}}
COMMANDS: dict[str, Command] = {
    "train": Command("the whole loop; what runs without a command", {}),
    "sft": Command("demonstrations and the first evaluation only", {}),
    "orm": Command("up to the judge, before the first phase", {}),
    "eval": Command(
        "play the test tasks with an actor, a released checkpoint, or a model as it is",
        {
            "--adapter": {"type": Path, "help": "folder of a trained actor (default: the base as it is)"},
            "--policy": {
                "choices": list(POLICIES),
                "default": "actor",
                "help": "; ".join(f"{name}: {what}" for name, what in POLICIES.items()),
            },
        },
    ),
    "judges": Command(
        "compare the ORM and served judges with the graders, on a run's episodes",
        {
            "--run": {"type": Path, "default": Path("runs/webrl"), "help": "folder of the run (default: runs/webrl)"},
            "--judges": {
                "nargs": "+",
                "choices": ["orm", *EPISODE_JUDGES],
                "default": ["orm", "text"],
                "help": "rows of the table (default: orm text); screenshot and caption need --env.pictures in the run",
            },
            "--limit": {"type": int, "help": "most episodes, the first ones (default: all)"},
            "--orm-model": {
                "metavar": "NAME",
                "help": "a further row: this model as an ORM, as it is, such as THUDM/webrl-orm-llama-3.1-8b, which "
                "was trained on pages in the format --env.observation webrl",
            },
            "--orm-instruction": {
                "type": Path,
                "metavar": "FILE",
                "help": "what it was trained with: process_data.py of the authors (default: this package's)",
            },
        },
    ),
    "ablate": Command(
        "methods x seeds from one start",
        {
            "--methods": {"nargs": "+", "help": "rows of the table of methods (default: all)"},
            "--seeds": {"nargs": "+", "type": int, "default": [0, 1, 2], "help": "seeds (default: 0 1 2)"},
            "--jobs": {"type": int, "default": 1, "help": "runs at once (default: 1)"},
        },
    ),
    "report": Command("write the report of a run again", FOLDER, settings=False),
    "plan": Command(
        "memory and hours of a run on a card, before anything is downloaded",
        {
            "--card": {"default": "24GB", "help": "one card: 24GB (default), 48GB, 80GB, or a name such as A100-80GB"},
            "--gpus": {"type": int, "default": 1, "help": "cards (default: 1)"},
        },
    ),
    "doctor": Command("check packages, browser, GPU, disk and models", {}),
}


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    command: str
    config: Config
    resume: Path | None
    own: argparse.Namespace
    """The command's own arguments."""


def parse(arguments: Sequence[str]) -> Request:
    """Read a command line.

    Args:
        arguments: without the program's name.

    Raises:
        SystemExit: after ``--help`` (0), or for what cannot be read (2), with a message.
        ConfigError: a setting that cannot be.
        RunError: ``--resume`` names no run.
    """
    arguments = list(arguments)
    name = arguments.pop(0) if arguments and arguments[0] in COMMANDS else "train"
    if arguments and not arguments[0].startswith("-") and not COMMANDS[name].own:
        raise ConfigError(f"`command` must be one of {', '.join(COMMANDS)}, got {arguments[0]!r}.")
    command = COMMANDS[name]
    first = argparse.ArgumentParser(
        prog=f"{PROGRAM} {name}", description=command.help, add_help=not command.settings, allow_abbrev=False
    )
    for flag, how in command.own.items():
        first.add_argument(flag, **how)
    if not command.settings:
        return Request(name, Config(), None, first.parse_args(arguments))
    group = first.add_argument_group("where the settings come from")
    group.add_argument("--preset", choices=list(PRESETS), help="settings to start from (default: tiny)")
    group.add_argument("--config", type=Path, metavar="FILE", help="YAML file over the preset")
    group.add_argument("--resume", type=Path, metavar="DIR", help="go on with the run in this folder")
    own, rest = first.parse_known_args(arguments)
    if {"-h", "--help"} & set(rest):
        print(_overview(name, first))  # noqa: T201  (the command line's own output)
    rest = [f"--env.name{word[5:]}" if word == "--env" or word.startswith("--env=") else word for word in rest]
    base = _base(own, rest)
    config = tyro.cli(Config, args=rest, default=base, prog=f"{PROGRAM} {name}", use_underscores=True)
    if config.method not in METHODS:
        raise ConfigError(f"`method` must be one of {', '.join(METHODS)}, got {config.method!r}.")
    return Request(name, _for_policy(config, own), own.resume, own)


def _for_policy(config: Config, own: argparse.Namespace) -> Config:
    """Return the settings as ``--policy`` needs them, and refuse what does not go together."""
    policy = getattr(own, "policy", None)
    if policy is None:  # another command than eval
        return config
    if policy != "actor" and own.adapter is not None:
        raise ConfigError(f"`--adapter` must stand with `--policy actor`, got {policy}. Leave one of them out.")
    found = released.checkpoint(config.model.name)
    if policy != "prompted" and found is not None and found.role == "orm":
        raise ConfigError(f"`model.name` must be an agent's, got {config.model.name!r}, which is a judge's.")
    if policy == "chat":
        return dataclasses.replace(config, model=dataclasses.replace(config.model, template="chat"))
    return config


def _base(own: argparse.Namespace, options: Sequence[str]) -> Config:
    """Return what the options lie over: a run's settings, or a preset with a checkpoint's and a file's over it."""
    flag, folder = ("--run", own.run) if "run" in own else ("--resume", own.resume)
    if folder is not None and not {"-h", "--help"} & set(options):
        if own.preset or own.config:
            raise ConfigError(
                f"`{flag}` must stand without --preset and --config: the run has its settings. Leave them out."
            )
        return RunFolder(folder).config()
    values = dict(_file(own.config)) if own.config is not None else {}
    if own.preset:
        values["preset"] = own.preset
    name = _option("--model.name", options)
    if name is not None and isinstance(values.setdefault("model", {}), Mapping):
        values["model"] = {**values["model"], "name": name}
    return released.configure(values)


def _option(flag: str, options: Sequence[str]) -> str | None:
    """Return an option's value, None without it."""
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    reader.add_argument(flag, dest="value")
    return reader.parse_known_args(list(options))[0].value


def _file(path: Path) -> Mapping[str, JSON]:
    """Return the settings of a YAML file.

    Raises:
        ConfigError: it cannot be read, or holds no settings.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"`--config` must be a YAML file, {path} cannot be read: {error}") from error
    if not isinstance(values, Mapping):
        raise ConfigError(f"`--config` must hold settings by name, {path} holds {type(values).__name__}.")
    return values


def _overview(name: str, parser: argparse.ArgumentParser) -> str:
    words = "\n".join(f"  {word:8} {command.help}" for word, command in COMMANDS.items())
    return f"{parser.format_help()}\ncommands:\n{words}\n\nsettings:"
