"""The command line as settings: a preset, a YAML file over it, options over both.

``python -m webrl_lite.run [command] [--preset P] [--config FILE.yaml] [--resume DIR] [--group.setting value ...]``

The options are the settings of ``config`` by their own names; tyro reads them, shows the texts under the fields as help
and names the nearest one where an option is unknown. A YAML file goes through ``config.from_dict``, which is as strict.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
import yaml

from webrl_lite.baselines import METHODS
from webrl_lite.config import PRESETS, Config, ConfigError, from_dict, preset
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


FOLDER = {"folder": {"nargs": "?", "default": "runs/webrl", "type": Path, "help": "folder of the run"}}
COMMANDS: dict[str, Command] = {
    "train": Command("the whole loop; what runs without a command", {}),
    "sft": Command("demonstrations and the first evaluation only", {}),
    "orm": Command("up to the judge, before the first phase", {}),
    "eval": Command(
        "play the test tasks with an actor",
        {"--adapter": {"type": Path, "help": "folder of a trained actor (default: the base as it is)"}},
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
    base = _base(own)
    config = tyro.cli(Config, args=rest, default=base, prog=f"{PROGRAM} {name}", use_underscores=True)
    if config.method not in METHODS:
        raise ConfigError(f"`method` must be one of {', '.join(METHODS)}, got {config.method!r}.")
    return Request(name, config, own.resume, own)


def _base(own: argparse.Namespace) -> Config:
    if own.resume is not None:
        if own.preset or own.config:
            raise ConfigError(
                "`--resume` must stand without --preset and --config: the run has its settings. Leave them out."
            )
        return RunFolder(own.resume).config()
    if own.config is None:
        return preset(own.preset or "tiny")
    try:
        values = yaml.safe_load(own.config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"`--config` must be a YAML file, {own.config} cannot be read: {error}") from error
    if not isinstance(values, Mapping):
        raise ConfigError(f"`--config` must hold settings by name, {own.config} holds {type(values).__name__}.")
    return from_dict({**values, "preset": own.preset} if own.preset else values)


def _overview(name: str, parser: argparse.ArgumentParser) -> str:
    words = "\n".join(f"  {word:8} {command.help}" for word, command in COMMANDS.items())
    return f"{parser.format_help()}\ncommands:\n{words}\n\nsettings:"
