"""A table of judges: how often the ORM and served models say of a run's episodes what their graders say.

Reads the labelled rollouts and the evaluations of a run's phases, those whose outcome a grader knows; writes
``judges.md`` into the run's folder. The ORM's judgements are those that the run has stored; another model can be
asked as an ORM beside it, such as the authors' released one. Phase 0 is left out, for the ORM learned from its
rollouts.

Source: paper Section 2.2, which compares its ORM with GPT-4, GPT-4V and a captioner with GPT-4.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from webrl_lite import orm, released
from webrl_lite.config import Config
from webrl_lite.judges import RewardSource, compare, connect, filed_pictures, reward_source, stored_orm, truth
from webrl_lite.model import SharedBase
from webrl_lite.prompts import ORM_SYSTEM
from webrl_lite.run_folder import RunError
from webrl_lite.trajectory import Trajectory, Verdict, read_jsonl, whole_file

FILE = "judges.md"


def write(
    run: Path,
    names: Sequence[str],
    config: Config,
    *,
    limit: int | None = None,
    model: str | None = None,
    instruction: Path | None = None,
) -> str:
    """Ask the judges, write the table and return it.

    Args:
        run: folder of a run.
        names: ``orm``, or of ``judges.EPISODE_JUDGES``; the rows.
        config: gives ``llm`` and ``orm.threshold``.
        limit: most episodes; None: all.
        model: a further row: this model as an ORM, as it is, for example ``THUDM/webrl-orm-llama-3.1-8b``.
        instruction: file with what it was trained with (``released.orm_system``); None: ``prompts.ORM_SYSTEM``.

    Raises:
        RunError: the run has no episode that a grader has graded.
    """
    known = [one for one in episodes(run) if truth(one) is not None][:limit]
    if not known:
        raise RunError(f"`--run` must hold graded episodes of a phase, {run} has none. Go on with it: --resume {run}.")
    llm = connect(config.llm, run / "judges.jsonl")
    sources: dict[str, RewardSource] = {}
    for name in names:
        if name == "orm":
            sources["orm"] = stored_orm(config.orm.threshold)
        else:
            sources[f"{name} ({config.llm.model})"] = reward_source(name, llm, filed_pictures(run))
    if model is not None:
        sources[model] = _model_orm(known, released.over(config, model), instruction)
    table = compare(sources, known).table()
    with whole_file(run / FILE) as file:
        file.write(f"{table}\n".encode())
    return table


def _model_orm(episodes: Sequence[Trajectory], config: Config, instruction: Path | None) -> RewardSource:
    """Return what the model of a configuration says of these episodes, and of no others."""
    system = ORM_SYSTEM if instruction is None else released.orm_system(instruction)
    shared = SharedBase.load(config.model, config.lora, roles=("orm",))
    form = {"template": config.model.template, "max_length": config.model.max_length, "system": system}
    questions = [released.orm_question(shared.tokenizer, one, **form).ids for one in episodes]
    said = dict(zip(map(id, episodes), orm.judge(shared, questions), strict=True))
    threshold = config.orm.threshold

    def source(trajectory: Trajectory) -> Verdict:
        return Verdict(float(said[id(trajectory)].success(threshold)), "orm", f"threshold {threshold:g}")

    return source


def episodes(run: Path) -> list[Trajectory]:
    """Return the labelled rollouts and the evaluations of all phases but the first, in their order."""
    found: list[Trajectory] = []
    for phase in sorted(run.glob("phase_*")):
        if phase.name != "phase_00":
            for name in ("labelled.jsonl", "evaluation.jsonl"):
                found += read_jsonl(phase / name, Trajectory) if (phase / name).is_file() else ()
    return found
