"""Modules import from lower levels only, and the web side runs without torch."""

import ast
import sys
from pathlib import Path

import webrl_lite

ROOT = Path(webrl_lite.__file__).parent

LEVELS = {
    0: {
        "trajectory",
        "config",
        "actions",
        "answer_types",
        "released_rules",
        "change_rules",
        "task_check",
        "model_shape",
        "processes",
    },
    1: {
        "inputs",
        "observation",
        "evaluators",
        "memory_terms",
        "memory",
        "prompts",
        "task_prompts",
        "grounding",
        "run_folder",
        "local_model",
        "hours",
        "judges",
        "released",
        "llm",
        "served_tasks",
    },
    2: {"gate", "chromium", "tabs", "executor", "session", "browser", "policy_loss", "model", "exchange"},
    3: {"envs", "baselines", "tiny_base"},
    4: {
        "rollout",
        "replay",
        "curriculum",
        "role_trainer",
        "sft",
        "orm",
        "critic",
        "actor",
        "task_source",
        "prompted",
        "served_policy",
    },
    5: {"phase", "report", "ablation", "options", "doctor", "judge_table"},
    6: {"run"},
}
"""Import levels; neighbours on one level are ordered among themselves (``test_there_is_no_cycle``)."""
PARTS = {
    "model": {"base_model", "batching", "generation", "gradient_check", "role_files", "role_guard", "trunk", "passes"},
    "prompts": {"prompt_tokens"},
    "grounding": {"grounding_pages", "grounding_panels", "grounding_episodes"},
    "replay": {"experience"},
    "curriculum": {"curriculum_report"},
    "role_trainer": {"checkpoints", "role_arguments", "update_batches"},
    "doctor": {"probes"},
    "task_source": {"source_parts", "webarena_source", "miniwob_source"},
    "exchange": {"exchange_files", "exchange_steps", "exchange_traces", "exchange_pt"},
    "hours": {"hours_report"},
    "report": {"report_run", "report_numbers", "report_plots", "report_viewer", "report_page"},
}
"""Modules that are parts of another one."""
TORCH = {
    *("policy_loss", "model", "baselines", "tiny_base"),
    *LEVELS[4],
    *("phase", "ablation", "options", "run", "probes", "exchange_pt", "judge_table"),
    *(name for whole in ("model", "replay", "role_trainer") for name in PARTS[whole]),
}
"""Modules that may import torch."""


def level(module: str) -> int:
    whole = next((name for name, parts in PARTS.items() if module in parts), module)
    return next(number for number, names in LEVELS.items() if whole in names)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "webrl_lite")
    return found


def ours(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if name.startswith("webrl_lite.")}


def test_every_module_has_a_level():
    for path in ROOT.glob("*.py"):
        if path.stem != "__init__":
            assert level(path.stem) >= 0


def test_modules_import_from_lower_levels_or_their_own_neighbours():
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if name == "__init__":
            continue
        for other in ours(path) - {name}:
            if other.startswith("__"):
                continue
            assert level(other) <= level(name), f"{name} imports {other}, which is above it"


def test_there_is_no_cycle():
    uses = {
        path.stem: ours(path) - {"__init__", "__version__"} for path in ROOT.glob("*.py") if path.stem != "__init__"
    }
    while uses:
        free = [name for name, others in uses.items() if not others & set(uses)]
        assert free, f"these modules import each other: {sorted(uses)}"
        for name in free:
            del uses[name]


def test_policy_loss_imports_torch_and_nothing_of_ours():
    assert not ours(ROOT / "policy_loss.py")


def test_only_the_learning_side_imports_torch():
    for path in ROOT.rglob("*.py"):
        if path.stem not in TORCH:
            assert not {name for name in imports(path) if name.split(".")[0] in ("torch", "transformers", "peft")}, path


def test_levels_0_and_1_import_the_standard_library_only():
    for number in (0, 1):
        for name in LEVELS[number]:
            path = ROOT / f"{name}.py"
            if path.is_file():
                others = {n.split(".")[0] for n in imports(path)} - {"webrl_lite", "__future__"}
                # observation names Playwright's types for type checkers only; llm imports openai when it is asked
                assert others - {"playwright", "openai"} <= set(sys.stdlib_module_names), (name, others)
