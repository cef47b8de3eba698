"""What a run needs, looked at before it starts: packages, GPU, browser, sites, disk, ports, model, servers, memory.

Reads a configuration and this machine; changes nothing, downloads nothing and leaves nothing behind. What may hang or
crash is asked in a process of its own (``probes``). Used by the command ``doctor``. On loading it imports only the
standard library, since it must work where packages are missing. No equation of the paper.

A check is ``ok``, failed, or not needed (None) by this configuration. Every failure says in one line what to do.
"""

from __future__ import annotations

import difflib
import math
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from webrl_lite.config import Config, ModelConfig
from webrl_lite.hours import paper_sized
from webrl_lite.llm import KEY_VARIABLE
from webrl_lite.local_model import TINY_FOLDER, cached, hub_cache, hub_token, lacks, shape_of
from webrl_lite.memory import GIB, Card, plan_run
from webrl_lite.memory_terms import FLOAT32, Setup, adapter_parameters
from webrl_lite.model_shape import ModelShape, PlanError
from webrl_lite.probes import Answer, Question, ask

REQUIREMENTS = Path(__file__).parent.parent / "requirements.txt"
LEAST_PYTHON = (3, 11)
SECONDS = {"torch": 120.0, "nf4": 120.0, "imports": 180.0, "browser": 180.0, "sites": 180.0, "served": 15.0}
"""How long each probe may take; they run at once."""
GPU_WEIGHTS = 1_000_000_000
"""A model with more weights is not for a CPU. (ours: a 135M model takes about half an hour a phase on two cores)"""
LEAST_CORES = 2
"""What the presets without a GPU are measured on."""
PROGRAMS = 2 * GIB
"""Memory beside the model on a machine without a GPU: Python with its libraries, Chromium, the sites. (ours: about)"""
NF4_ERROR = 0.2
"""Packed weights that come back further off are broken; 0.09 is usual."""
OPENAI = "https://api.openai.com/v1"
"""Where the client asks that is given no address."""
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""Variables that keep the hub's client from downloading."""
GATED = ("meta-llama/", "google/gemma")
"""Beginnings of hub names that need an account's consent, and so a token."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool | None
    """None: this configuration does not need it."""
    found: str
    """What is there, in one line."""
    todo: str = ""
    """What to do about it, in one line; empty unless it failed."""


def checks(config: Config) -> list[Check]:
    """Look at everything; takes seconds, at most ``SECONDS`` of the slowest probe, and never raises."""
    try:
        live = ask(questions(config))
    except OSError as error:
        live = dict.fromkeys(SECONDS, Answer(fault=f"no temporary folder: {error}"))
    missing = Answer(fault="was not asked")
    torch = live.get("torch", missing)
    looks: list[tuple[str, Callable[[], Iterable[Check]]]] = [
        ("Python", lambda: [python_check(sys.version_info[:3])]),
        ("packages", lambda: package_checks(config, REQUIREMENTS)),
        ("imports", lambda: [imports_check(live["imports"])]),
        ("torch", lambda: [torch_check(config, torch)]),
        ("NF4", lambda: [nf4_check(config, live.get("nf4", missing))]),
        ("memory", lambda: [memory_check(config, torch, memory_bytes())]),
        ("cores", lambda: [cores_check(cores())]),
        ("Chromium", lambda: [browser_check(live["browser"])]),
        ("sites", lambda: environment_checks(config, live.get("sites", missing))),
        ("port", lambda: [port_check()]),
        ("folder", lambda: [folder_check(Path(config.out))]),
        ("disk", lambda: [disk_check(config)]),
        ("model", lambda: [model_check(config)]),
        ("servers", lambda: server_checks(config, live)),
    ]
    return [check for name, look in looks for check in _safely(name, look)]


def _safely(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    try:
        return list(look())
    except Exception as error:  # a check that fails is a finding; the others must still be made
        return [
            Check(name, False, f"could not be checked: {type(error).__name__}: {_line(error)}", "Look at it by hand.")
        ]


def _line(text: object) -> str:
    return " ".join(str(text).split())


def questions(config: Config) -> dict[str, Question]:
    """Return what the probes are asked for a configuration."""
    names = ("torch", "imports", "browser", *(["sites"] if config.env.name == "embedded" else []))
    asked = {name: Question(name, SECONDS[name]) for name in names}
    if config.model.quantization == "nf4":
        asked["nf4"] = Question("nf4", SECONDS["nf4"])
    for name, url, _, key in _servers(config):
        if url is not None and (key or url != OPENAI):
            asked[name] = Question("served", SECONDS["served"], {"url": url, "key": key})
    return asked


def report(found: Sequence[Check]) -> str:
    """Return one line a check, what to do under each failure, and how many there are."""
    width = max((len(check.name) for check in found), default=0)
    marks = {True: "ok", False: "FAIL", None: "-"}
    lines = []
    for check in found:
        lines.append(f"{marks[check.ok]:4}  {check.name:{width}}  {_line(check.found)}")
        if check.todo:
            lines.append(f"{'':4}  {'':{width}}  -> {_line(check.todo)}")
    failed = sum(check.ok is False for check in found)
    unneeded = sum(check.ok is None for check in found)
    rest = f"{failed} failed: do what stands behind ->." if failed else "Nothing to do."
    lines.append(f"{len(found)} checks, {unneeded} not needed for this configuration. {rest}")
    return "\n".join(lines)


# Python and packages ------------------------------------------------------------------------------------------------


def python_check(version: Sequence[int]) -> Check:
    """Compare Python with what the kit is written for."""
    shown, least = ".".join(map(str, version)), ".".join(map(str, LEAST_PYTHON))
    ok = tuple(version[:2]) >= LEAST_PYTHON
    todo = "" if ok else f"Make a virtual environment with Python {least} or later: python{least} -m venv .venv"
    return Check("Python", ok, f"{shown} on {platform.system()} {platform.machine()}", todo)


@dataclass(frozen=True)
class Requirement:
    """A line of requirements.txt."""

    name: str
    pin: str
    """Such as ``>=5.24``; empty for any version."""
    tests: bool
    """Whether only the tests need it."""


def requirements(path: Path) -> list[Requirement]:
    """Return the packages of a requirements file; those below a comment that speaks of tests are only for them."""
    found, tests = [], False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            tests = tests or "for the tests" in line.casefold()
        elif match := re.match(r"([\w.-]+?)(?:\[.*?\])?\s*((?:[<>=!~]=?[^#;]*)?)(?:[#;]|$)", line.strip()):
            found.append(Requirement(match[1], match[2].replace(" ", ""), tests))
    return found


def package_checks(config: Config, path: Path) -> list[Check]:
    """Compare every package that is asked for with what is installed."""
    if not path.is_file():
        return [Check("packages", None, f"there is no {path.name} beside the package")]
    return [package_check(config, one, _installed(one.name)) for one in requirements(path)]


def package_check(config: Config, wanted: Requirement, version: str | None) -> Check:
    """Compare one package's installed version, None if it is missing, with its pin."""
    name = f"package {wanted.name}"
    good = version is not None and satisfies(version, wanted.pin)
    pin = f" (asked for: {wanted.pin})" if wanted.pin else ""
    shown = f"{version or 'missing'}{pin}"
    if good:
        return Check(name, True, shown)
    if wanted.tests:
        return Check(name, None, f"{shown}; only the tests need it")
    if wanted.name == "bitsandbytes" and config.model.quantization != "nf4":
        return Check(name, None, f"{shown}; model.quantization is none")
    if wanted.name == "openai" and all(url is None for _, url, _, _ in _servers(config)):
        return Check(name, None, f"{shown}; no served model is asked")
    return Check(
        name, False, shown, f'pip install "{wanted.name}{wanted.pin}", or all: pip install -r {REQUIREMENTS.name}'
    )


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def satisfies(version: str, pin: str) -> bool:
    """Tell whether a version is within a pin such as ``>=2.1,<3``; a build's own part (``+cu128``) does not count."""
    for part in filter(None, pin.split(",")):
        sign, wanted = re.fullmatch(r"([<>=!~]+)(.*)", part).groups()
        have, want = _release(version), _release(wanted)
        holds = {"==": have == want, "!=": have != want, ">=": have >= want, "<=": have <= want}
        holds |= {">": have > want, "<": have < want, "~=": have >= want and have[0][:1] == want[0][:1]}
        if not holds.get(sign, False):
            return False
    return True


def _release(version: str) -> tuple[tuple[int, ...], bool]:
    """Return numbers without zeros at their end, and whether it is a release and not a version on the way to it."""
    match = re.match(r"v?(\d+(?:\.\d+)*)(.*)", version)
    numbers = [int(number) for number in match[1].split(".")] if match else [0]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), not re.match(r"[._-]?(a|b|c|rc|dev|alpha|beta|pre)", match[2] if match else "dev")


def imports_check(answer: Answer) -> Check:
    """Tell whether the kit can be imported, that is whether the installed packages go together."""
    if not answer.fault:
        return Check("imports", True, "both sides of the kit")
    return Check("imports", False, answer.fault, f"pip install -r {REQUIREMENTS.name}, in a new virtual environment.")


# Where the model runs -----------------------------------------------------------------------------------------------


def wants_gpu(config: Config) -> bool:
    """Tell whether a configuration's model is too much for a CPU; one of unknown size is if it is in 4 bits."""
    try:
        return shape_of(config.model).parameters > GPU_WEIGHTS
    except PlanError:
        return config.model.quantization == "nf4"


def torch_check(config: Config, answer: Answer) -> Check:
    """Say which torch there is and on which GPUs, against what the configuration wants."""
    if answer.fault:
        return Check(
            "torch", False, answer.fault, f"pip install -r {REQUIREMENTS.name}; with a GPU look at nvidia-smi."
        )
    version, cuda, cards = (answer.values[name] for name in ("version", "cuda", "cards"))
    build = f"{version}, CUDA {cuda}" if cuda else f"{version}, a build for the CPU"
    if not cards:
        driver = shutil.which("nvidia-smi") is not None
        found = f"{build}; no GPU answers" + (", though a driver is installed" if driver else "")
        if not wants_gpu(config):
            return Check("torch", True, f"{found} (not needed)")
        if driver and not cuda:
            return Check(
                "torch", False, found, f"Install the CUDA build of torch {version.partition('+')[0]} (see pytorch.org)."
            )
        if driver:
            return Check("torch", False, found, "Look at nvidia-smi: the driver may be too old for this CUDA.")
        return Check("torch", False, found, "Use a machine with an NVIDIA GPU, or --preset tiny.")
    names = ", ".join(f"{card['name']} {card['bytes'] / GIB:.0f} GiB" for card in cards)
    found = f"{build}; {names}; {'bfloat16' if answer.values['bfloat16'] else 'no bfloat16'}"
    if not all(card["works"] for card in cards):
        return Check("torch", False, found, "A GPU gives wrong results: leave it out with CUDA_VISIBLE_DEVICES.")
    if not answer.values["bfloat16"] and config.model.dtype != "float32":
        return Check("torch", False, found, "Use --model.dtype float32, or a card from Ampere on.")
    return Check("torch", True, found)


def nf4_check(config: Config, answer: Answer) -> Check:
    """Tell whether bitsandbytes packs and unpacks weights."""
    if config.model.quantization != "nf4":
        return Check("NF4", None, "model.quantization is none")
    todo = "pip install --force-reinstall bitsandbytes, or use --model.quantization none."
    if answer.fault:
        return Check("NF4", False, answer.fault, todo)
    error, device = answer.values["error"], answer.values["device"]
    ok = error < NF4_ERROR  # false for NaN
    return Check("NF4", ok, f"works on {device}, relative error {error:.2f}", "" if ok else todo)


def memory_check(config: Config, torch: Answer, ram: int) -> Check:
    """Tell whether every stage fits, by the memory planner: on the first GPU, or in the machine's memory."""
    cards = torch.values.get("cards") or []
    if not cards and wants_gpu(config):
        return Check("memory", None, "there is no GPU to plan for")
    here = Card("this machine", ram, 0.9, PROGRAMS)
    card = Card(cards[0]["name"], cards[0]["bytes"]) if cards else here
    try:
        shape = shape_of(config.model)
    except PlanError as error:
        return Check("memory", None, f"not known before the model is here ({_line(error)})")
    size = f"{card.total / GIB:.1f} GiB on {card.name}"
    try:
        plans = plan_run(shape, config, card, gpu=bool(cards))
    except PlanError as error:
        return Check("memory", False, f"{size}: {_line(error)}", "Lower --model.max_length as said, or see `plan`.")
    peak = max(plan.estimate.total for plan in plans)
    for plan in plans:
        if plan.stage == "rollout":
            setting, wanted, fits = "rollout.environments", config.rollout.environments, plan.load.sequences
        elif plan.stage == "scoring":
            continue  # takes the actor's micro-batches, which need less without gradients
        else:
            setting = f"{plan.stage}.tokens_per_micro_batch"
            group = getattr(config, plan.stage)
            wanted = min(group.tokens_per_micro_batch, group.batch_size * plan.load.length)
            fits = plan.load.tokens
        if wanted > fits:
            found = f"{size}: {setting} of {wanted} is too much, {fits} fits"
            return Check("memory", False, found, f"Use --{setting} {fits}.")
    return Check("memory", True, f"{size}; every stage of {shape.name} fits, at most {peak / GIB:.1f} GiB")


def cores_check(number: int) -> Check:
    """Compare the cores with what the presets are measured on."""
    ok = number >= LEAST_CORES
    todo = "" if ok else f"Give it {LEAST_CORES} cores, or expect a multiple of the stated time."
    return Check("cores", ok, f"{number}", todo)


def cores() -> int:
    """Return the cores that this process may use, a container's share included."""
    number = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    quota, _, period = _limit("cpu.max").partition(" ")
    return min(number, max(1, math.ceil(int(quota) / int(period)))) if quota.isdigit() and period.isdigit() else number


def memory_bytes() -> int:
    """Return the bytes of memory that this process may use, a container's limit included."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _limit("memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def _limit(name: str) -> str:
    try:
        return Path("/sys/fs/cgroup", name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


# The web ------------------------------------------------------------------------------------------------------------


def browser_check(answer: Answer) -> Check:
    """Tell which Chromium there is and whether it loads a page."""
    todo = "python -m webrl_lite.browser install, or set WEBRL_LITE_CHROMIUM to the path of a Chromium or Chrome."
    if answer.fault:
        return Check("Chromium", False, answer.fault, todo)
    path = answer.values["path"]
    how = "Playwright's own" if "ms-playwright" in path else "found on this machine"
    how = "by WEBRL_LITE_CHROMIUM" if os.environ.get("WEBRL_LITE_CHROMIUM") == path else how
    if not answer.values["read"]:
        return Check("Chromium", False, f"{path} ({how}) does not show a page of 127.0.0.1", "Try another one: " + todo)
    return Check("Chromium", True, f"{path} ({how}), a page in {answer.values['seconds']:.1f} s")


def environment_checks(config: Config, embedded: Answer) -> list[Check]:
    """Tell whether the pages of ``env.name`` are there: the embedded sites, MiniWoB++'s, or hosted ones."""
    if config.env.name == "embedded":
        return [sites_check(embedded)]
    return [pages_check()] if config.env.name == "miniwob" else hosted_checks()


def pages_check() -> Check:
    """Tell whether the pages of MiniWoB++ are installed."""
    from webrl_lite.envs.miniwob import MiniwobError, pages

    try:
        return Check("pages", True, f"MiniWoB++ in {pages()}")
    except MiniwobError as error:
        return Check("pages", False, _line(error), "pip install --no-deps miniwob")


def hosted_checks() -> list[Check]:
    """Tell of each of WebArena's sites whether it answers; nobody is signed in."""
    from webrl_lite.envs.webarena_sites import SITES, HostedSites, addresses_of

    try:
        sites = HostedSites(addresses_of())
    except ValueError as error:
        return [Check("sites", False, _line(error), "Set the site's address as the README shows.")]
    if not sites.addresses:
        names = ", ".join(site.upper() for site in SITES if site != "homepage")
        return [Check("sites", False, "no address of a site is set", f"Host WebArena and set {names}, some or all.")]
    found = []
    for one in sites.health():
        if not one.address:
            found.append(Check(f"site {one.site}", None, "not hosted: tasks that need it are left out"))
        elif one.problem:
            todo = f"Start the site, or set {one.site.upper()} to where it is."
            found.append(Check(f"site {one.site}", False, _line(f"{one.address} {one.problem}"), todo))
        else:
            found.append(Check(f"site {one.site}", True, f"{one.address} answered in {one.seconds:.1f} s"))
    return found


def sites_check(answer: Answer) -> Check:
    """Tell whether the embedded sites start and answer."""
    todo = "Run `python -m webrl_lite.envs.embedded` and see what it says."
    if answer.fault:
        return Check("sites", False, answer.fault, todo)
    status, tasks = answer.values["status"], answer.values["tasks"]
    found = f"a start page answers {status}, {tasks} tasks, in {answer.values['seconds']:.1f} s"
    return Check("sites", status < 400, found, "" if status < 400 else todo)


def port_check() -> Check:
    """Tell whether a port of 127.0.0.1 can be had; every server of the kit takes a free one."""
    try:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            one.listen()
    except OSError as error:
        return Check("port", False, _line(error), "Let this user open ports on 127.0.0.1.")
    return Check("port", True, "127.0.0.1 gives a free one")


# The disk -----------------------------------------------------------------------------------------------------------


def _existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that is there."""
    path = path.absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def folder_check(out: Path) -> Check:
    """Tell whether a run's folder can be written to; what is tried is a hidden file that is gone at once."""
    place = _existing(out)
    if not place.is_dir():
        return Check("folder", False, f"{place} is a file", "Choose another folder with --out.")
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"doctor")
    except OSError as error:
        return Check("folder", False, f"{place}: {error.strerror}", f"Make {place} writable, or choose another --out.")
    used = place == out.absolute() and any(place.iterdir())
    return Check("folder", True, f"{out} can be written to" + ("; it holds files already" if used else ""))


def run_bytes(config: Config, shape: ModelShape) -> int:
    """Return about how many bytes a run writes.

    Weights: SFT, ORM, and critic and actor of each phase; of the stage in hand two checkpoints with AdamW's moments.
    Text: a step's page stands in two files of rollouts, at 4 bytes a token and 1,000 beside it; a row of experience has
    its prompt's ids and, at most, those of the next state, at 7 bytes each. Sites and browser: 0.2 GiB.
    """
    adapter = adapter_parameters(shape, Setup.of(config)) * FLOAT32
    phases, work = config.curriculum.phases, paper_sized(config)
    weights = adapter * (2 + 2 * phases + 2 * 3)
    steps = config.curriculum.tasks_per_phase * work.steps
    played = steps * 2 * (4 * work.prompt + 1000)
    rows = steps * (1 + config.replay.max_ratio) * 2 * 7 * work.prompt
    return round(weights + (phases + 1) * (played + rows) + 0.2 * GIB)


def disk_check(config: Config) -> Check:
    """Compare the space at a run's folder with what it writes."""
    place = _existing(Path(config.out))
    free = shutil.disk_usage(place).free
    try:
        needed = run_bytes(config, shape_of(config.model))
    except PlanError:
        return Check(
            "disk", None, f"{free / GIB:.1f} GiB free at {place}; what is needed is not known before the model"
        )
    found = f"{free / GIB:.1f} GiB free at {place}, a run writes about {needed / GIB:.1f}"
    todo = "" if free >= needed else f"Free {(needed - free) / GIB:.1f} GiB there, or choose another disk with --out."
    return Check("disk", free >= needed, found, todo)


# The model ----------------------------------------------------------------------------------------------------------


def model_check(config: Config) -> Check:
    """Tell whether the base can be loaded: from the package, a folder, or the hub's cache; never downloads."""
    model = config.model
    if model.name == "tiny":
        lack = lacks(TINY_FOLDER, model)
        todo = "Get the package again, or make its model: python -m webrl_lite.tiny_base, then --ship."
        return Check("model", not lack, f"tiny: {lack}" if lack else "tiny, in the package", todo if lack else "")
    path = Path(model.name).expanduser()
    if path.exists() or (_is_path(model.name) and cached(model) is None):
        return _folder_model_check(path, model)
    return _hub_model_check(config)


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") != 1 or "\\" in name


def _folder_model_check(path: Path, model: ModelConfig) -> Check:
    todo = "Correct --model.name: tiny, the folder of a model (config.json, weights, tokenizer), or a name on the hub."
    if model.name.startswith("~"):
        return Check("model", False, f"{model.name}: `~` is not read as the home folder", f"Use --model.name {path}.")
    if not path.exists():
        return Check("model", False, f"{path} is not there", todo)
    if not path.is_dir():
        return Check("model", False, f"{path} is a file, not a folder", todo)
    lack = lacks(path, model)
    return Check("model", not lack, f"{path}: {lack}" if lack else f"{path}, a folder", todo if lack else "")


def _hub_model_check(config: Config) -> Check:
    model = config.model
    name = f"{model.name} at {model.revision}" if model.revision else model.name
    folder = cached(model)
    lack = lacks(folder, model) if folder else "nothing"
    if not lack:
        return Check("model", True, f"{name}, in the local cache")
    state = f"in part in the local cache ({lack})" if folder else f"not in the local cache ({hub_cache()})"
    token = "a token is set" if hub_token() else "no token is set"
    found = f"{name} is {state}; {token}"
    off = [one for one in OFFLINE if os.environ.get(one, "").upper() in ("1", "ON", "YES", "TRUE")]
    if off:
        return Check(
            "model", False, f"{found}; downloads are off", f"Unset {off[0]}, or give a folder as --model.name."
        )
    if not hub_token() and model.name.startswith(GATED):
        todo = f"Accept the licence of {model.name} on the hub, then `hf auth login` or HF_TOKEN."
        return Check("model", False, found, todo)
    try:
        size = 2 * shape_of(model).parameters
    except PlanError:
        return Check("model", True, f"{found}; the first start downloads it")
    free = shutil.disk_usage(_existing(hub_cache())).free
    found += f"; the first start downloads about {size / GIB:.1f} GiB, {free / GIB:.1f} are free"
    todo = "" if free >= size else "Free space there, or set HF_HOME to a folder on a larger disk."
    return Check("model", free >= size, found, todo)


# Served models ------------------------------------------------------------------------------------------------------


def _servers(config: Config) -> list[tuple[str, str | None, str, str]]:
    """Return of each served model that a configuration can have: setting, address or None, model's name, key."""
    key, llm = os.environ.get(KEY_VARIABLE, "").strip(), config.llm
    address = {"offline": None, "auto": llm.base_url, "llm": llm.base_url or OPENAI}[config.curriculum.generator]
    rollout = config.rollout.base_url
    return [("llm.base_url", address, llm.model, key), ("rollout.base_url", rollout, config.model.name, key)]


def server_checks(config: Config, live: dict[str, Answer]) -> list[Check]:
    """Tell whether each OpenAI-compatible server of a configuration answers and has its model."""
    found = []
    for setting, url, model, key in _servers(config):
        if url is None:
            found.append(Check(setting, None, "no server is asked"))
        elif url == OPENAI and not key:
            todo = f"Set {KEY_VARIABLE}, give a server with --{setting}, or use --curriculum.generator offline."
            found.append(
                Check(setting, False, f"{KEY_VARIABLE} is not set, and {model} is at OpenAI's own server", todo)
            )
        else:
            found.append(server_check(setting, url, model, live.get(setting, Answer(fault="was not asked"))))
    return found


def server_check(setting: str, url: str, model: str, answer: Answer) -> Check:
    """Read a server's answer to the question for its models."""
    if answer.fault:
        return Check(setting, False, f"{url}: {answer.fault}", f"Start a server there, or correct --{setting}.")
    status, models = answer.values["status"], answer.values["models"]
    if status in (401, 403):
        return Check(
            setting, False, f"{url} refuses the key (HTTP {status})", f"Set {KEY_VARIABLE} to the server's key."
        )
    if status >= 500:
        return Check(setting, False, f"{url} answers HTTP {status}", "Look at the server's log.")
    if models is None:
        return Check(setting, True, f"{url} answers (HTTP {status}) but lists no models, so {model} is not checked")
    if model in models:
        return Check(setting, True, f"{url} has {model}")
    near = difflib.get_close_matches(model, models, 1, 0.0)
    option = "--llm.model" if setting.startswith("llm") else "--model.name"
    todo = f"Use {option} {near[0]}, or load {model} into the server." if near else f"Load {model} into the server."
    return Check(setting, False, f"{url} has {len(models)} models, not {model}", todo)
