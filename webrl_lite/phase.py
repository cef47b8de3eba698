"""WebRL, stage by stage: demonstrations, a judge, and phases in which the agent learns from tasks that it failed.

``learn`` is Algorithm 1; ``phase`` is one turn of its loop. Every stage reads files of the run's folder and writes the
next one, so each can be looked at, and a run that was killed goes on with the first one that is missing.

    sft/            the actor that the demonstrations made
    phase_00/       rollouts.jsonl (its first episodes, graded), evaluation.jsonl, experience.jsonl (demonstrations),
                    critic/ (if it filters the first phase's tasks)
    orm/            lessons.jsonl, the judge, report.json
    phase_01/ ...   tasks.jsonl -> rollouts.jsonl -> labelled.jsonl -> selected.jsonl -> critic/ -> experience.jsonl
                    -> actor/ -> evaluation.jsonl

Source: paper Section 2 and Algorithm 1; the order critic, then actor with the fresh critic is the released code's
(``offpolicy_train_loop.py:97-105``); phase 1 starts from SFT, each later one from the actor and the critic before
(authors, issue 7).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from webrl_lite import actor, critic, judges, orm, sft
from webrl_lite.baselines import METHODS, Method
from webrl_lite.config import Config
from webrl_lite.curriculum import CurriculumError, critic_values, evolve, failure_set, first_values, orm_values
from webrl_lite.curriculum_report import filter_errors, read_rejected, write_rejected
from webrl_lite.llm import Llm
from webrl_lite.model import ROLES, SharedBase
from webrl_lite.observation import count_tokens_default
from webrl_lite.processes import rank, world
from webrl_lite.prompt_tokens import Marks
from webrl_lite.prompted import PromptedPolicy
from webrl_lite.prompts import ORM_SYSTEM
from webrl_lite.released import orm_question
from webrl_lite.replay import Experience, build, collect, credit, read_experience, write_experience
from webrl_lite.rollout import ModelPolicy, Policy, rollout
from webrl_lite.run_folder import RunFolder, write_json
from webrl_lite.served_policy import CompletionServer, ServedPolicy, serve_actor
from webrl_lite.task_source import TaskSource, open_source
from webrl_lite.trajectory import JSON, StopReason, Task, Trajectory, Verdict, read_jsonl, whole_file, write_jsonl

HELD_OUT = 5
"""One in so many of the first rollouts is kept from the ORM, to measure it on."""


@dataclass(frozen=True)
class Run:
    """What every stage works with."""

    config: Config
    folder: RunFolder
    shared: SharedBase | None
    """None where a served model acts alone."""
    source: TaskSource | None
    """None in a process that only trains along (``processes``)."""
    server: CompletionServer | None = None
    """Who generates, if not ``shared``."""

    @property
    def method(self) -> Method:
        """The method's row of ``METHODS``."""
        return METHODS[self.config.method]

    def path(self, phase: int, name: str = "") -> Path:
        """Return a file of a phase."""
        return self.folder.path / f"phase_{phase:02d}" / name

    def actor(self, phase: int) -> Path:
        """Return the folder of a phase's actor; phase 0 is SFT's."""
        return self.path(phase, "actor") / "final" if phase else self.folder.path / "sft" / "final"

    def critic(self, phase: int) -> Path:
        """Return the folder of a phase's critic."""
        return self.path(phase, "critic") / "final"

    def seed(self, phase: int) -> int:
        """Return the seed of a phase's draws, another one for every phase and every run."""
        return self.config.seed * 1000 + phase

    def close(self) -> None:
        """End browser and sites."""
        if self.source is not None:
            self.source.close()


def open_run(config: Config, folder: RunFolder, roles: Sequence[str] = ROLES) -> Run:
    """Load the base and start the sites; ``close`` ends them, as ``contextlib.closing`` does.

    Args:
        config: the settings.
        folder: where everything is written.
        roles: which roles of the base are needed; none: no base is loaded.

    Raises:
        ServerError: the server of ``rollout.base_url`` does not answer.
        TaskSourceError, BrowserError: as ``task_source.open_source``.
    """
    if not roles:
        return Run(config, folder, None, open_source(config, count_tokens_default, ()))
    server = None if config.rollout.base_url is None else CompletionServer(config.rollout.base_url)
    if server is not None:
        server.models()  # one that is not there is missed now and not after SFT
    shared = SharedBase.load(
        config.model,
        config.lora,
        roles=roles,
        seed=config.seed,
        tokens_per_micro_batch=config.actor.tokens_per_micro_batch,
    )
    tokenizer = shared.tokenizer

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False))

    # Not every added token: the tiny base has words of its own among them, such as "Click" and "NO".
    source = open_source(config, count, tuple(Marks.of(tokenizer).ids)) if rank() == 0 else None
    return Run(config, folder, shared, source, server)


def learn(run: Run) -> None:
    """Go through the whole method, leaving out what the folder has."""
    before_phases(run)
    if run.method.loss is None:  # the method is SFT
        return
    for number in range(1, run.config.curriculum.phases + 1):
        phase(run, number)


def before_phases(run: Run) -> None:
    """Make the first actor and the judge; what would be missed hours later is looked for first."""
    if run.source is not None:
        run.source.first_tasks(run.config.seed)
        if run.method.loss is not None and run.method.curriculum:
            run.source.generator(run.folder.path / "llm.jsonl")
    fine_tune(run)
    evaluate(run, 0)
    play_first(run)
    train_judge(run)
    train_first_critic(run)


def phase(run: Run, k: int) -> None:
    """Go through one phase."""
    choose_tasks(run, k)  # failures so far        -> tasks.jsonl
    play(run, k)  # tasks, actor of phase k - 1    -> rollouts.jsonl
    label(run, k)  # rollouts, ORM                 -> labelled.jsonl
    select(run, k)  # labelled, earlier experience -> selected.jsonl, with log pi_ref
    train_critic(run, k)  # selected               -> critic/
    weigh(run, k)  # selected, critic              -> experience.jsonl, with V and A
    train_actor(run, k)  # experience              -> actor/
    evaluate(run, k)  # test tasks                 -> evaluation.jsonl


# Before the first phase ---------------------------------------------------------------------------------------------


def fine_tune(run: Run) -> None:
    """Learn from demonstrations; they and the graded successes of ``play_first`` are what phase 0 leaves to replay."""

    def tokenize() -> dict[str, JSON]:
        solved = run.source.demonstrations(run.config.seed)
        rows = collect(solved, run.shared.tokenizer, run.config, phase=0, source="sft").rows
        return {"episodes": len(solved), "steps": write_experience(run.path(0, "experience.jsonl"), rows)}

    def train() -> dict[str, JSON]:
        rows = [row.sample for row in read_experience(run.path(0, "experience.jsonl"))]
        folder = run.folder.path / "sft"
        if not rows:  # no demonstrations: the base as it is
            return _untrained(run, "actor", folder)
        done = sft.train(run.shared, rows, run.config.sft, folder, seed=run.config.seed, report_to=run.config.report_to)
        return {"updates": done.steps, **_last(done.metrics, "loss")}

    run.folder.once("demonstrations", run.path(0, "experience.jsonl"), tokenize)
    _train(run, "sft", run.actor(0), train)


def play_first(run: Run) -> None:
    """Let the first actor play train tasks, which are graded: failures to start from, and lessons for the judge."""
    _play(
        run, "phase_00/rollout", run.path(0, "rollouts.jsonl"), lambda: run.source.first_tasks(run.config.seed),
        actor_of=0, seed=run.seed(0),
    )  # fmt: skip


def train_judge(run: Run) -> None:
    """Train the ORM on the first rollouts, with demonstrations or failures once more to make both kinds equally many.

    Where two of three lessons were successes, the judge of a small model said yes to every rollout.
    Nothing is trained where a served judge labels and no ORM is asked.
    """
    if run.config.orm.judge != "orm" and run.config.curriculum.first_phase != "orm":
        return
    folder = run.folder.path / "orm"
    lessons_file, report = folder / "lessons.jsonl", folder / "report.json"

    def played() -> tuple[list[Trajectory], set[str]]:
        graded = [one for one in _read(run.path(0, "rollouts.jsonl")) if _grade(one) is not None]
        return graded, set(sorted({one.task.task_id for one in graded})[::HELD_OUT])

    def choose() -> dict[str, JSON]:
        graded, unseen = played()
        learned = [one for one in graded if one.task.task_id not in unseen]
        shown = [one for one in run.source.demonstrations(run.config.seed) if one.task.task_id not in unseen]
        lessons = judge_lessons(learned, shown)
        with whole_file(lessons_file) as file:
            for one in lessons:
                line = {"task_id": one.task.task_id, "prompt": _judge_prompt(run, one), "success": bool(_grade(one))}
                file.write((json.dumps(line) + "\n").encode())
        return {"episodes": len(lessons)}

    def train() -> dict[str, JSON]:
        lessons = map(json.loads, lessons_file.read_text(encoding="utf-8").splitlines())
        rows = [(tuple(one["prompt"]), one["success"]) for one in lessons]
        done = orm.train(run.shared, rows, run.config.orm, folder, seed=run.config.seed, report_to=run.config.report_to)
        return {"updates": done.steps, **_last(done.metrics, "loss")}

    def measure() -> dict[str, JSON]:
        run.shared.load_role("orm", folder / "final")
        graded, unseen = played()
        held_out = [one for one in graded if one.task.task_id in unseen]
        measured = _measure(run, held_out, _judge(run, held_out))
        trained_on = len(lessons_file.read_text(encoding="utf-8").splitlines())
        write_json(report, {"trained_on": trained_on, "held_out": measured})
        return _last(measured or {}, "accuracy")

    run.folder.once("orm/lessons", lessons_file, choose)
    _train(run, "orm", folder / "final", train)
    run.folder.once("orm/report", report, measure)


def train_first_critic(run: Run) -> None:
    """Learn V from the first actor's graded episodes, if it is to filter the first phase's tasks."""
    if run.config.curriculum.first_phase != "critic" or run.method.loss is None:
        return

    def work() -> dict[str, JSON]:
        return _learn_values(run, 0, _first_episodes(run))

    _train(run, "phase_00/critic", run.critic(0), work)


def judge_lessons(played: Sequence[Trajectory], shown: Sequence[Trajectory]) -> list[Trajectory]:
    """Return graded episodes and, so that successes and failures are equally many, more of the rarer kind.

    Demonstrations make up for successes that are missing; failures, which nobody demonstrates, are taken once more.

    Args:
        played: graded episodes.
        shown: demonstrations, each a success.
    """
    failed = [one for one in played if not _grade(one)]
    missing = 2 * len(failed) - len(played)
    if missing > 0:
        return [*played, *shown[:missing]]
    return [*played, *itertools.islice(itertools.cycle(failed), -missing if failed else 0)]


# A phase ------------------------------------------------------------------------------------------------------------


def choose_tasks(run: Run, k: int) -> None:
    """Make new tasks from those that failed so far, or take train tasks if the method has no curriculum."""
    result = run.path(k, "tasks.jsonl")

    def work() -> dict[str, JSON]:
        wanted = run.config.curriculum.tasks_per_phase
        if not run.method.curriculum:
            train = sorted(run.source.train, key=lambda task: task.task_id)
            seed = run.seed(k if run.method.online else 1)
            return {"tasks": write_jsonl(result, _sample(train, wanted, seed))}
        failed: tuple[Task, ...] = ()
        earlier: list[Task] = []
        for before in range(k):
            failed = failure_set(failed, _read(run.path(before, "labelled.jsonl" if before else "rollouts.jsonl")))
            earlier += read_jsonl(run.path(before, "tasks.jsonl"), Task) if before else ()
        if _has_critic(run, k - 1):
            run.shared.load_role("critic", run.critic(k - 1))
        if run.config.curriculum.first_phase == "orm":
            run.shared.load_role("orm", run.folder.path / "orm" / "final")
        value_of = first_values(
            run.config.curriculum,
            k,
            critic_values(run.source.first_pages, run.shared, run.config) if _has_critic(run, k - 1) else None,
            orm_values(run.source.first_pages, run.shared, run.config),
        )
        generator, feasible = run.source.generator(run.path(k, "llm.jsonl"))
        try:
            tasks, report = evolve(
                failed, earlier, generator, value_of, feasible, run.config.curriculum,
                seed=run.config.seed, phase=k, known=(*run.source.train, *run.source.test),
            )  # fmt: skip
        except CurriculumError as error:
            if error.report is not None:
                write_rejected(run.path(k, "rejected.jsonl"), error.report)
            raise
        write_rejected(run.path(k, "rejected.jsonl"), report)
        errors = filter_errors(tasks, read_rejected(run.path(k, "rejected.jsonl")), run.source.can_be_done)
        judged = errors.rate is not None
        write_json(
            run.path(k, "curriculum.json"),
            {**report.to_json(), "filter": {**asdict(errors), "rate": errors.rate} if judged else None},
        )
        return {"tasks": write_jsonl(result, tasks), "proposals": report.proposals, "failed_so_far": len(failed)}

    run.folder.once(f"phase_{k:02d}/tasks", result, work)


def play(run: Run, k: int) -> None:
    """Play the phase's tasks with the actor of the phase before; an offline method has the first phase's episodes."""
    result = run.path(k, "rollouts.jsonl")
    if not run.method.online and k > 1:
        run.folder.once(f"phase_{k:02d}/rollout", result, lambda: _copy(run.path(1, "rollouts.jsonl"), result))
        return

    def tasks() -> Sequence[Task]:
        return run.source.graded(tuple(read_jsonl(run.path(k, "tasks.jsonl"), Task)))

    _play(run, f"phase_{k:02d}/rollout", result, tasks, actor_of=k - 1, seed=run.seed(k))


def label(run: Run, k: int) -> None:
    """Let ``orm.judge`` say which episodes succeeded; a grader's word is kept beside it, for measuring.

    An episode that is left ungraded is counted and not learned from.
    """
    result = run.path(k, "labelled.jsonl")

    def work() -> dict[str, JSON]:
        played = _read(run.path(k, "rollouts.jsonl"))
        judged = [one for one in played if one.stop != StopReason.ENV_ERROR and one.steps]
        said = {"orm": _orm_labels, "grader": _grader_labels}.get(run.config.orm.judge, _judge_labels)(run, k, judged)
        labelled = []
        for one in played:
            verdict, record = said.get(one.trajectory_id, (Verdict(None), None))
            evidence = {**one.evidence, "grader": _grade(one), "orm": record}
            labelled.append(dataclasses.replace(one, verdict=verdict, evidence=evidence))
        measured = _measured(run, labelled)
        write_json(run.path(k, "orm.json"), {"rollouts": measured})
        write_jsonl(result, labelled)
        verdicts = [verdict for verdict, _ in said.values()]
        return {
            "successes": sum(verdict.success for verdict in verdicts),
            "of": len(judged),
            "ungraded": sum(not verdict.graded for verdict in verdicts),
            **_last(measured or {}, "accuracy"),
        }

    run.folder.once(f"phase_{k:02d}/label", result, work)


def select(run: Run, k: int) -> None:
    """Choose what to learn from: this phase's steps and replay, scored by the actor before (Section 2.3)."""
    result = run.path(k, "selected.jsonl")

    def work() -> dict[str, JSON]:
        run.shared.load_role("ref", run.actor(k - 1))
        collected = collect(_read(run.path(k, "labelled.jsonl")), run.shared.tokenizer, run.config, phase=k)
        buffer = [row for before in range(k) for row in read_experience(run.path(before, "experience.jsonl"))]
        if run.method.replay:
            buffer += _first_episodes(run)
        built = build(collected.rows, buffer, run.shared, run.config, run.method, run.seed(k))
        write_json(run.path(k, "replay.json"), asdict(built.report))
        write_experience(result, built.rows)
        return {"steps": built.report.current, "replayed": built.report.replayed, "of": built.report.buffer}

    run.folder.once(f"phase_{k:02d}/select", result, work)


def train_critic(run: Run, k: int) -> None:
    """Learn V from this phase's own episodes, on top of the critic before (Eq. 8).

    Replayed steps are of successes only; with them V would no longer be the probability of success.
    """

    def work() -> dict[str, JSON]:
        if _has_critic(run, k - 1):
            run.shared.load_role("critic", run.critic(k - 1))
        rows = read_experience(run.path(k, "selected.jsonl"))
        return _learn_values(run, k, [row for row in rows if row.source == "current"])

    _train(run, f"phase_{k:02d}/critic", run.critic(k), work)


def weigh(run: Run, k: int) -> None:
    """Ask the critic for V and turn it into the advantage of every step (Eq. 9)."""
    result = run.path(k, "experience.jsonl")

    def work() -> dict[str, JSON]:
        run.shared.load_role("critic", run.critic(k))
        rows = credit(read_experience(run.path(k, "selected.jsonl")), run.shared, run.config, run.method)
        write_experience(result, rows)
        return {"steps": len(rows), "advantage": sum(row.advantage for row in rows) / max(1, len(rows))}

    run.folder.once(f"phase_{k:02d}/advantage", result, work)


def train_actor(run: Run, k: int) -> None:
    """Update the policy (``policy_loss``); without anything to learn from it stays as it was."""

    def work() -> dict[str, JSON]:
        run.shared.load_role("actor", run.actor(k - 1))
        rows = read_experience(run.path(k, "experience.jsonl"))
        folder = run.path(k, "actor")
        if not rows:
            return _untrained(run, "actor", folder)
        done = actor.train(
            run.shared, rows, run.config.actor, folder,
            method=run.config.method, seed=run.seed(k), report_to=run.config.report_to,
        )  # fmt: skip
        return {"updates": done.steps, **_last(done.metrics, "loss", "log_ratio", "kl")}

    _train(run, f"phase_{k:02d}/actor", run.actor(k), work)


def evaluate(run: Run, k: int, *, prompted: bool = False) -> None:
    """Play the test tasks with a phase's actor, graded; the ORM's opinion is kept beside the grade.

    ``evaluation.txt`` is the score for people: evaluator, graded, ungraded and faulted episodes, interval, floor.

    Args:
        run: the run.
        k: the phase.
        prompted: whether the served model of ``llm`` plays instead.
    """
    file, result = run.folder.path / "tasks_test.jsonl", run.path(k, "evaluation.jsonl")

    def tasks() -> Sequence[Task]:
        if not file.exists():
            write_jsonl(file, run.source.test)
        return run.source.test

    _play(
        run, f"phase_{k:02d}/evaluation", result, tasks,
        actor_of=None if prompted else k, seed=run.config.eval.seed, temperature=run.config.rollout.eval_temperature,
    )  # fmt: skip
    score = run.path(k, "evaluation.txt")
    if rank() == 0 and not score.exists():
        played = _read(result)
        with whole_file(score) as file:
            file.write(f"{played[0].policy}\n{run.source.score(played)}\n".encode())


def evaluate_adapter(run: Run, adapter: Path | None) -> None:
    """Play the test tasks with the actor of a folder, or with the base as it is, as phase 0."""

    def take() -> dict[str, JSON]:
        if adapter is not None:
            run.shared.load_role("actor", adapter)
        run.shared.save_role("actor", run.actor(0))
        return {}

    run.folder.once("actor", run.actor(0), take)
    evaluate(run, 0)


# Parts of stages ----------------------------------------------------------------------------------------------------


def _train(run: Run, name: str, result: Path, work: Callable[[], Mapping[str, JSON]]) -> None:
    """Do a stage in which all processes of the run work, each with its share of the cores."""

    def shared_out() -> Mapping[str, JSON]:
        threads = torch.get_num_threads()
        torch.set_num_threads(max(1, threads // world()))
        try:
            return work()
        finally:
            torch.set_num_threads(threads)

    run.folder.once(name, result, shared_out, together=True)


def _first_episodes(run: Run) -> tuple[Experience, ...]:
    """Return the steps of the first actor's graded episodes."""
    return collect(_read(run.path(0, "rollouts.jsonl")), run.shared.tokenizer, run.config, phase=0).rows


def _has_critic(run: Run, k: int) -> bool:
    """Return whether a phase leaves a critic; of phase 0 one only learns if the first tasks are filtered by it."""
    return k > 0 or run.config.curriculum.first_phase == "critic"


def _learn_values(run: Run, k: int, rows: Sequence[Experience]) -> dict[str, JSON]:
    """Train the critic on the states of a phase's own episodes (Eq. 8)."""
    folder = run.path(k, "critic")
    if not rows:
        return _untrained(run, "critic", folder)
    states = [(row.prompt, row.reward) for row in rows]
    done = critic.train(run.shared, states, run.config.critic, folder, seed=run.seed(k), report_to=run.config.report_to)
    return {"updates": done.steps, **_last(done.metrics, "loss")}


def _untrained(run: Run, role: str, folder: Path) -> dict[str, JSON]:
    """Leave a role as it was."""
    if rank() == 0:
        run.shared.save_role(role, folder / "final")
    return {"updates": 0}


def _play(
    run: Run,
    name: str,
    result: Path,
    choose: Callable[[], Sequence[Task]],
    *,
    actor_of: int | None,
    seed: int,
    temperature: float | None = None,
) -> None:
    def work() -> dict[str, JSON]:
        tasks = choose()
        policy, version = _acting(run, result.parent, actor_of, temperature)
        episodes = rollout(tasks, run.source.environments, policy, seed=seed, name=version)
        where = f"{result.parent.name}/pictures/{result.stem}"
        played = [
            judges.file_picture(one, run.folder.path, f"{where}-{number:04d}")
            for number, one in enumerate(_shown(episodes, len(tasks), name))
        ]
        if temperature is not None and (run.folder.path / "orm" / "final").exists():
            played = _with_opinion(run, played)
        write_jsonl(result, played)
        grades = [grade for one in played if (grade := _grade(one)) is not None]
        return {
            "success": sum(grades) / len(grades) if grades else None,
            "of": len(grades),
            "steps": sum(len(one.steps) for one in played),
            "env_errors": sum(one.stop == StopReason.ENV_ERROR for one in played),
            **({"dollars": policy.llm.usage.dollars} if isinstance(policy, PromptedPolicy) else {}),
        }

    run.folder.once(name, result, work)


def _acting(run: Run, folder: Path, actor_of: int | None, temperature: float | None) -> tuple[Policy, str]:
    """Return who plays, and its name: the actor of a phase, or the served model if that is None."""
    if actor_of is None:
        policy = PromptedPolicy(Llm(run.config.llm, folder / "agent.jsonl"), temperature=temperature)
        return policy, policy.name
    run.shared.load_role("actor", run.actor(actor_of))
    version = f"actor@phase_{actor_of:02d}:{run.shared.role_version('actor')}"
    if run.server is not None:
        name = serve_actor(run.server, run.shared, run.config, run.actor(actor_of))
        return ServedPolicy(run.server, name, run.shared, run.config, temperature=temperature), version
    return ModelPolicy(run.shared, run.config, temperature=temperature), version


def _shown(episodes: Iterable[Trajectory], number: int, name: str) -> Iterator[Trajectory]:
    """Yield episodes behind a progress bar with the success so far."""
    right = graded = 0
    with tqdm(total=number, desc=name, unit="task", dynamic_ncols=True, leave=False) as bar:
        for one in episodes:
            grade = _grade(one)
            graded += grade is not None
            right += bool(grade)
            bar.set_postfix_str(f"success {right}/{graded}")
            bar.update()
            yield one


def _grade(one: Trajectory) -> float | None:
    """Return 1.0 for a success, 0.0 for a failure, None if nobody can say."""
    if one.stop == StopReason.ENV_ERROR or one.verdict is None or not one.verdict.graded:
        return None
    return float(one.verdict.success)


def _judge_prompt(run: Run, one: Trajectory) -> tuple[int, ...]:
    model = run.config.model
    return orm_question(
        run.shared.tokenizer, one, template=model.template, max_length=model.max_length, system=ORM_SYSTEM
    ).ids


def _judge(run: Run, episodes: Sequence[Trajectory]) -> list[orm.Judgement]:
    return orm.judge(run.shared, [_judge_prompt(run, one) for one in episodes])


def _orm_labels(run: Run, k: int, episodes: Sequence[Trajectory]) -> dict[str, tuple[Verdict, JSON]]:
    """Return the ORM's verdict of each episode by its name, with its judgement."""
    run.shared.load_role("orm", run.folder.path / "orm" / "final")
    threshold = run.config.orm.threshold
    version = f"threshold {threshold:g}"
    return {
        one.trajectory_id: (Verdict(float(said.success(threshold)), "orm", version), asdict(said))
        for one, said in zip(episodes, _judge(run, episodes), strict=True)
    }


def _grader_labels(run: Run, k: int, episodes: Sequence[Trajectory]) -> dict[str, tuple[Verdict, JSON]]:
    """Return what the tasks' graders said of each episode by its name; a task without one is ungraded."""
    return {one.trajectory_id: (one.verdict or Verdict(None), None) for one in episodes}


def _judge_labels(run: Run, k: int, episodes: Sequence[Trajectory]) -> dict[str, tuple[Verdict, JSON]]:
    """Return a served judge's verdict of each episode by its name; one that it cannot give is ungraded."""
    llm = judges.connect(run.config.llm, run.path(k, "judge.jsonl"))
    source = judges.reward_source(run.config.orm.judge, llm, judges.filed_pictures(run.folder.path))
    verdicts = judges.judge_all(source, episodes)
    return {one.trajectory_id: (verdict, None) for one, verdict in zip(episodes, verdicts, strict=True)}


def _measured(run: Run, labelled: Sequence[Trajectory]) -> dict[str, JSON] | None:
    """Compare labels with graders; None if no grade is known."""
    known = [one for one in labelled if judges.truth(one) is not None]
    if run.config.orm.judge == "grader":  # there is nothing else to compare it with
        return None
    if run.config.orm.judge == "orm":
        known = [one for one in known if one.evidence["orm"] is not None]
        return _measure(run, known, [orm.Judgement(**one.evidence["orm"]) for one in known])
    [row] = judges.compare({run.config.orm.judge: lambda one: one.verdict}, known).rows
    return {**asdict(row), "accuracy": row.accuracy} if known else None


def _measure(run: Run, episodes: Sequence[Trajectory], judgements: Sequence[orm.Judgement]) -> dict[str, JSON] | None:
    """Compare judgements with graders; None if no grade is known."""
    if not episodes:
        return None
    truth = [judges.truth(one) for one in episodes]
    return asdict(orm.evaluate(judgements, truth, run.config.orm.threshold))


def _with_opinion(run: Run, played: Sequence[Trajectory]) -> list[Trajectory]:
    """Return episodes with what the ORM says of them."""
    run.shared.load_role("orm", run.folder.path / "orm" / "final")
    judged = [one for one in played if one.stop != StopReason.ENV_ERROR and one.steps]
    said = {one.trajectory_id: asdict(what) for one, what in zip(judged, _judge(run, judged), strict=True)}
    return [dataclasses.replace(one, evidence={**one.evidence, "orm": said.get(one.trajectory_id)}) for one in played]


def _read(path: Path) -> list[Trajectory]:
    return list(read_jsonl(path, Trajectory))


def _copy(source: Path, target: Path) -> dict[str, JSON]:
    return {"episodes": write_jsonl(target, read_jsonl(source, Trajectory))}


def _sample(tasks: Sequence[Task], number: int, seed: int) -> list[Task]:
    """Return tasks drawn without repetition, or each as often as it takes if there are too few."""
    drawn: list[Task] = []
    while len(drawn) < number:
        drawn += random.Random(f"{seed}:{len(drawn)}").sample(tasks, min(number - len(drawn), len(tasks)))
    return drawn


def _last(numbers: Mapping[str, JSON], *names: str) -> dict[str, JSON]:
    return {name: numbers[name] for name in names if name in numbers}
