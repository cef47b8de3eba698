"""Replies from a server: the tokens are those of the loaded model, and the adapter is the one that was trained."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import paper_source
import pytest
import tiny_models
import torch
from local_completions import Completions, completing

from webrl_lite import phase, served_policy
from webrl_lite.config import Config, ConfigError, CurriculumConfig, RolloutConfig, from_dict
from webrl_lite.model import SharedBase
from webrl_lite.rollout import ModelPolicy, Turn
from webrl_lite.run_folder import RunFolder
from webrl_lite.served_policy import CompletionServer, ServedPolicy, ServerError, serve_actor
from webrl_lite.trajectory import Task, Trajectory, read_jsonl

pytestmark = pytest.mark.timeout(300)
ONE_PHASE = CurriculumConfig(phases=1, tasks_per_phase=4, value_min=0.0, value_max=1.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_policy, "BACKOFF_S", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def shared() -> SharedBase:
    return tiny_models.load(roles=("actor",))


@pytest.fixture(scope="module")
def server_base() -> SharedBase:
    return tiny_models.load(roles=("actor",))


@pytest.fixture
def server(server_base) -> Iterator[Completions]:
    with completing(server_base) as server:
        yield server


@pytest.fixture
def actor(shared, tmp_path) -> Path:
    """A trained actor in a folder, which the loaded model has too."""
    tiny_models.stir(shared, "actor")
    shared.save_role("actor", tmp_path / "actor" / "final")
    return tmp_path / "actor" / "final"


def config(**rollout: object) -> Config:
    return from_dict({"model": {"max_length": 2500}, "rollout": {"max_new_tokens": 8, **rollout}})


def turns() -> list[Turn]:
    task = Task("7", ("map",), "Find 7.", "__MAP__/")
    return [Turn(task, (), "@ /\nTea [3] link", 11), Turn(task, ('do(action="Click", element="3")',), "@ /tea", 12)]


def served(server: Completions, shared: SharedBase, actor: Path, settings: Config, **options: object) -> ServedPolicy:
    client = CompletionServer(server.url)
    return ServedPolicy(client, serve_actor(client, shared, settings, actor), shared, settings, **options)


# Replies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_comes_back_is_what_the_loaded_model_would_have_said(server, shared, actor, temperature):
    """The same ids, the same log-probabilities to a hundred-thousandth, the same prompt's hash, the same text."""
    own = ModelPolicy(shared, config(), temperature=temperature)(turns())
    theirs = served(server, shared, actor, config(), temperature=temperature)(turns())
    assert [(one.token_ids, one.text, one.prompt_hash) for one in theirs] == [
        (one.token_ids, one.text, one.prompt_hash) for one in own
    ]
    for one, other in zip(theirs, own, strict=True):
        assert list(one.logprobs) == pytest.approx(list(other.logprobs), abs=1e-5)
    assert any(one.token_ids for one in own)


def test_prompts_are_sent_as_ids_with_the_stop_tokens_and_the_turns_seed(server, shared, actor):
    policy = served(server, shared, actor, config(temperature=0.7, top_p=0.9))
    server.requests.clear()
    policy(turns()[:1])
    [body] = server.asked("/completions")
    assert all(isinstance(token, int) for token in body["prompt"])
    assert (body["temperature"], body["top_p"], body["max_tokens"], body["seed"]) == (0.7, 0.9, 8, 11)
    assert body["stop_token_ids"] == [1] and body["return_tokens_as_token_ids"] is True and body["logprobs"] == 1
    assert body["model"] == f"actor-{shared.role_version('actor')}"


def test_no_turn_asks_nothing(server, shared, actor):
    policy = served(server, shared, actor, config())
    server.requests.clear()
    assert policy([]) == [] and not server.requests


# The adapter -------------------------------------------------------------------------------------------------------


def test_the_adapter_is_loaded_by_a_name_of_its_weights_and_the_one_before_taken_out(server, shared, actor, tmp_path):
    client = CompletionServer(server.url)
    first = serve_actor(client, shared, config(), actor)
    assert server.adapters == {first: str(actor)}
    tiny_models.stir(shared, "actor")
    with torch.no_grad():
        shared.trainable_parameters("actor")[0].add_(0.5)
    shared.save_role("actor", tmp_path / "next" / "final")
    second = serve_actor(client, shared, config(), tmp_path / "next" / "final")
    assert second != first and list(server.adapters) == [second]


def test_the_same_actor_is_not_loaded_twice(server, shared, actor):
    client = CompletionServer(server.url)
    assert serve_actor(client, shared, config(), actor) == serve_actor(client, shared, config(), actor)
    assert len(server.asked("/load_lora_adapter")) == 1


def test_a_server_that_serves_the_bare_base_under_the_name_is_found_out(server, shared, actor, tmp_path):
    tiny_models.stir(shared, "actor")
    version = shared.role_version("actor")
    with torch.no_grad():
        for parameter in shared.trainable_parameters("actor"):
            parameter.mul_(0.01)  # all but the bare base
    shared.save_role("actor", tmp_path / "other" / "final")
    shared.load_role("actor", actor)
    server.serves[f"actor-{version}"] = str(tmp_path / "other" / "final")
    with pytest.raises(ServerError, match=r"serves other weights under actor-.*nats a token away.*raise the tolerance"):
        serve_actor(CompletionServer(server.url), shared, config(), actor)
    name = serve_actor(CompletionServer(server.url), shared, config(tolerance=100), actor)
    assert name == f"actor-{version}"


def test_a_server_that_lists_another_folder_is_found_out(server, shared, actor, monkeypatch):
    client = CompletionServer(server.url)
    listed = iter([{}, {f"actor-{shared.role_version('actor')}": {"id": "x", "root": "/elsewhere"}}])
    monkeypatch.setattr(client, "models", lambda: next(listed))
    with pytest.raises(ServerError, match="and lists it from /elsewhere"):
        serve_actor(client, shared, config(), actor)


def test_a_server_without_runtime_adapters_is_told_how_to_start(server, shared, actor):
    server.faults = [(404, {"detail": "Not Found"})]
    with pytest.raises(ServerError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"):
        serve_actor(CompletionServer(server.url), shared, config(), actor)


# Faults ------------------------------------------------------------------------------------------------------------


def test_a_busy_server_is_asked_again(server, shared, actor):
    policy = served(server, shared, actor, config())
    server.faults = [(503, {}), (429, {}), (500, {})]
    assert policy(turns()[:1])[0].token_ids


def test_a_refusal_is_not_asked_again_and_says_why(server, shared, actor):
    policy = served(server, shared, actor, config())
    server.requests.clear()
    server.faults = [(400, {"message": "maximum context length is 4096"})]
    with pytest.raises(ServerError, match="refuses: HTTP 400: .*maximum context length is 4096"):
        policy(turns()[:1])
    assert len(server.requests) == 1


def test_a_server_that_is_gone_is_named_after_all_tries(shared, actor):
    with pytest.raises(ServerError, match=r"http://127.0.0.1:9/v1/models gives no answer after 5 tries"):
        serve_actor(CompletionServer("http://127.0.0.1:9/v1"), shared, config(), actor)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda choice: choice["logprobs"].update(tokens=["a", "b"]), "gives no token ids with log-probabilities"),
        (lambda choice: choice.update(logprobs=None), "gives no token ids with log-probabilities"),
        (lambda choice: choice["logprobs"].update(token_logprobs=[]), "tokens with log-probabilities"),
        (lambda choice: choice["logprobs"].update(tokens=[], token_logprobs=[]), "gives 0 tokens"),
        (lambda choice: choice["logprobs"].update(tokens=["token_id:5"], token_logprobs=[float("nan")]), "gives 1 tok"),
        (
            lambda choice: (
                choice["logprobs"].update(tokens=["token_id:5"], token_logprobs=[-1.0]),
                choice.update(finish_reason="stop"),
            ),
            "leaves out the token that ended a reply",
        ),
    ],
)
def test_an_answer_that_cannot_be_trained_on_is_refused(server, shared, actor, change, said):
    policy = served(server, shared, actor, config())

    def changed(answer: dict) -> dict:
        change(answer["choices"][0])
        return answer

    server.change = changed
    with pytest.raises(ServerError, match=said):
        policy(turns()[:1])


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="`rollout.base_url` must be an address http"):
        RolloutConfig(base_url="127.0.0.1:8000")


# The loop ----------------------------------------------------------------------------------------------------------


def begun(out: Path, base_url: str | None) -> phase.Run:
    settings = paper_source.config(out, curriculum=ONE_PHASE)
    settings = dataclasses.replace(settings, rollout=dataclasses.replace(settings.rollout, base_url=base_url))
    folder = RunFolder(out)
    folder.begin(settings, resume=(out / "config.json").exists())
    run = paper_source.open_paper(settings, folder)
    return dataclasses.replace(run, server=CompletionServer(base_url) if base_url else None)


@pytest.fixture(scope="module")
def tiny() -> SharedBase:
    settings = paper_source.config("unused")
    return SharedBase.load(settings.model, settings.lora, device="cpu", roles=("actor",))


def test_a_run_with_a_server_is_the_run_without_one_and_goes_on_when_the_server_comes_back(tmp_path, tiny):
    """The server dies in the first rollout; what was finished stays, and a new one at another port ends the run."""
    out = tmp_path / "served"
    with completing(tiny) as server:
        server.dies_after = 12
        with pytest.raises(ServerError, match="gives no answer after 5 tries .* go on with --resume"):
            phase.learn(begun(out, server.url))
    stages = [json.loads(line)["stage"] for line in (out / "stages.jsonl").read_text().splitlines()]
    assert stages[:3] == ["demonstrations", "sft", "phase_00/evaluation"] and "phase_01/rollout" not in stages
    with completing(tiny) as server:
        run = begun(out, server.url)
        phase.learn(run)
        loaded = [body["lora_path"] for body in server.asked("/load_lora_adapter")]
        assert loaded == [str(run.actor(0).resolve()), str(run.actor(1).resolve())]
        assert len(server.adapters) == 1
    local = begun(tmp_path / "local", None)
    phase.learn(local)
    for name in ("phase_00/rollouts", "phase_01/rollouts", "phase_01/evaluation"):
        theirs, own = (list(read_jsonl(one / f"{name}.jsonl", Trajectory)) for one in (out, tmp_path / "local"))
        assert [[step.token_ids for step in one.steps] for one in theirs] == [
            [step.token_ids for step in one.steps] for one in own
        ]
        for one, other in zip(theirs, own, strict=True):
            for step, same in zip(one.steps, other.steps, strict=True):
                assert list(step.sampler_logprobs) == pytest.approx(list(same.sampler_logprobs), abs=1e-4)
