"""The command line: ``python -m webrl_lite.run`` goes from demonstrations to a better agent.

    python -m webrl_lite.run                           the whole loop on the embedded sites, with the tiny base
    python -m webrl_lite.run --preset small            the same with SmolLM2-135M
    python -m webrl_lite.run --actor.beta 0.5 --seed 1
    python -m webrl_lite.run --resume runs/webrl       go on after a kill
    python -m webrl_lite.run ablate --methods webrl filtered_bc --seeds 0 1 2
    python -m webrl_lite.run --env webarena_lite --preset gpu24    on sites that you host
    python -m webrl_lite.run eval --env webarena_lite --model.name THUDM/webrl-llama-3.1-8b
    python -m webrl_lite.run eval --policy prompted --llm.model gpt-4o
    python -m webrl_lite.run judges --run runs/webrl --judges orm text
    python -m webrl_lite.run --help                    all settings

On a CPU a run starts further processes that train along (``processes``); for several GPUs start it by
``accelerate launch --multi_gpu --num_processes 2 -m webrl_lite.run ...``.

Exit status: 0; 1 for what failed on the way, with one line that says what to do; 2 for settings that cannot be; 130
after Ctrl-C. Everything that was finished lies in the run's folder.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from webrl_lite import released
from webrl_lite.config import ConfigError
from webrl_lite.options import PROGRAM, Request, parse
from webrl_lite.run_folder import RunError, RunFolder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit status."""
    try:
        arguments = sys.argv[1:] if arguments is None else arguments
        return COMMANDS[(request := parse(arguments)).command](request)
    except (ConfigError, RunError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Exception) as error:
        if _interrupted(error):
            print("\nstopped.", file=sys.stderr)
            return 130
        if not isinstance(error, _known_errors()):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1


def _known_errors() -> tuple[type[Exception], ...]:
    """Return the errors whose message says all that a user needs; others are faults and keep their trace."""
    from webrl_lite.batching import RuleError
    from webrl_lite.browser import BrowserError
    from webrl_lite.curriculum import CurriculumError
    from webrl_lite.envs.miniwob import MiniwobError
    from webrl_lite.llm import LlmError
    from webrl_lite.model_shape import PlanError
    from webrl_lite.processes import HelperError
    from webrl_lite.prompt_tokens import PromptError
    from webrl_lite.served_policy import ServerError
    from webrl_lite.task_source import TaskSourceError
    from webrl_lite.trajectory import TraceError

    own = (RuleError, BrowserError, CurriculumError, HelperError, LlmError, MiniwobError, PlanError, PromptError)
    return (*own, ServerError, TaskSourceError, TraceError, FloatingPointError, OSError)


def _interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C ended the work; closing a browser or a helper in its middle may fail on top of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def train(request: Request) -> int:
    """Go through the loop, or as far as the command says."""
    import torch

    from webrl_lite import phase, processes
    from webrl_lite.model import ROLES
    from webrl_lite.update_batches import leave_group

    parts: dict[str, Callable[[phase.Run], None]] = {
        "train": phase.learn,
        "sft": lambda run: (phase.fine_tune(run), phase.evaluate(run, 0)),
        "orm": phase.before_phases,
        "eval": lambda run: phase.evaluate_adapter(run, request.own.adapter),
    }
    roles: tuple[str, ...] = ("actor",) if request.command == "eval" else ROLES
    if request.command == "eval" and request.own.policy == "prompted":
        roles = ()
        parts["eval"] = lambda run: phase.evaluate(run, 0, prompted=True)
    folder = RunFolder(request.resume or request.config.out, tell=_tell)
    config = dataclasses.replace(request.config, out=str(folder.path))  # a run may have been moved
    checkpoint = released.checkpoint(config.model.name)
    if roles and checkpoint is not None and checkpoint.note and processes.rank() == 0:
        _tell(f"{checkpoint.name}: {checkpoint.note}")
    command = [sys.executable, "-m", "webrl_lite.run", request.command, "--resume", str(folder.path)]
    number = 1 if torch.cuda.is_available() or request.command == "eval" else config.processes or processes.on_a_cpu()
    if processes.rank() > 0:
        processes.be_a_helper()
    with folder.lock():
        folder.begin(config, resume=request.resume is not None)
        try:
            with processes.helpers(command, number), closing(phase.open_run(config, folder, roles)) as run:
                parts[request.command](run)
        except (KeyboardInterrupt, Exception) as error:
            if _interrupted(error):
                _tell(f"stopped. Go on with: {PROGRAM} {request.command} --resume {folder.path}")
                return 130
            _tell(f"what was finished is in {folder.path}. Go on with: --resume {folder.path}")
            raise
        finally:
            leave_group()
    return _show(folder.path) if processes.rank() == 0 else 0


def ablate(request: Request) -> int:
    """Compare methods."""
    from webrl_lite import ablation

    own = request.own
    return ablation.compare(request.config, methods=own.methods, seeds=own.seeds, jobs=own.jobs, tell=_tell)


def judges(request: Request) -> int:
    """Compare judges on a run's episodes."""
    from webrl_lite import judge_table

    own = request.own
    checkpoint = released.checkpoint(own.orm_model or "")
    if checkpoint is not None and own.orm_instruction is None:
        _tell(f"{checkpoint.name}: {checkpoint.note}")
    more = {"limit": own.limit, "model": own.orm_model, "instruction": own.orm_instruction}
    _tell(judge_table.write(own.run, own.judges, request.config, **more))
    return 0


def report(request: Request) -> int:
    """Write a run's report again."""
    if not request.own.folder.is_dir():
        raise RunError(f"`folder` must be the folder of a run, there is no {request.own.folder}.")
    return _show(request.own.folder)


def plan(request: Request) -> int:
    """Print what a run takes on a card."""
    from webrl_lite import hours_report

    _tell(hours_report.text(request.config, card=request.own.card, gpus=request.own.gpus))
    return 0


def doctor(request: Request) -> int:
    """Check this machine."""
    from webrl_lite import doctor as checks

    found = checks.checks(request.config)
    _tell(checks.report(found))
    return 1 if any(check.ok is False for check in found) else 0


COMMANDS: dict[str, Callable[[Request], int]] = {
    **{"train": train, "sft": train, "orm": train, "eval": train, "ablate": ablate},
    **{"judges": judges, "report": report, "plan": plan, "doctor": doctor},
}


def _show(folder: Path) -> int:
    """Print the table of a run and where its report is."""
    from webrl_lite import report as pages

    _tell(f"\n{pages.table(folder).strip()}\n")
    scores = sorted(folder.glob("phase_*/evaluation.txt"))
    if scores:
        _tell(scores[-1].read_text(encoding="utf-8"))
    _tell(f"report: {pages.write(folder)}")
    return 0


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
