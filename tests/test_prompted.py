"""Prompted agents: what a served model reads and says, what is its own fault and what its server is to blame for."""

import dataclasses
import json
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest
import tiny_models
import torch
from local_llm import Handler, Server, error, respond, says, serving
from local_llm import patient_client as client
from transformers import AutoModelForCausalLM

from webrl_lite.actions import ActionError, describe, parse
from webrl_lite.config import Config, ModelConfig, RolloutConfig
from webrl_lite.envs.web_env import StopRules
from webrl_lite.llm import KEY_VARIABLE, Llm, LlmConfig, LlmError
from webrl_lite.prompted import PromptedPolicy, bare_policy, chat
from webrl_lite.prompts import ACTOR_SYSTEM, PAST_PAGE, actor_prompt
from webrl_lite.rollout import Turn, rollout
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory

CLICK = 'do(action="Click", element="3")'


def task(name: str = "7") -> Task:
    return Task(name, ("map",), f"Find {name}.", "__MAP__/")


def turn(name: str = "7", *replies: str, page: str = "@ /\nTea [3] link") -> Turn:
    return Turn(task(name), replies, page, seed=1)


class Sites:
    """Environments that take every reply for an action if it can be read, with the real stop rules."""

    def __init__(self, count: int) -> None:
        self.envs = [SimpleNamespace(trajectory=None, task=None, steps=[]) for _ in range(count)]

    def reset(self, tasks: Sequence[Task | None]) -> list[tuple[dict, dict] | None]:
        for env, given in zip(self.envs, tasks, strict=True):
            if given is not None:
                env.task, env.steps, env.trajectory = given, [], None
        return [None if given is None else ({"text": f"page of {given.task_id}"}, {}) for given in tasks]

    def step(self, replies: Sequence[str | None]) -> list[tuple | None]:
        results = []
        for env, reply in zip(self.envs, replies, strict=True):
            if reply is not None:
                try:
                    action, refusal = dataclasses.asdict(parse(reply).action), ""
                except ActionError as error:
                    action, refusal = None, str(error)
                env.steps.append(Step(len(env.steps), f"page of {env.task.task_id}", "u", reply, action, refusal))
                done = action is not None and action["name"] == "Exit"
                stop = StopReason.EXIT if done else StopRules().stop(env.steps)
                if stop is not None:
                    env.trajectory = Trajectory(env.task, tuple(env.steps), stop)
            results.append(None if reply is None else ({"text": f"page of {env.task.task_id}"}, 0.0, False, False, {}))
        return results


@pytest.fixture
def dead() -> Server:
    """A server that has gone."""
    with serving() as server:
        pass
    return server


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Keeps a slow server's answer back until the test is over."""
    event = threading.Event()
    yield event
    event.set()


# The chat -----------------------------------------------------------------------------------------------------------


def test_the_first_turn_is_the_action_list_then_page_and_task():
    """Differs from release, whose chat form has no task in the first round."""
    assert chat(turn()) == [
        {"role": "system", "content": ACTOR_SYSTEM},
        {"role": "user", "content": "@ /\nTea [3] link\n\nTask: Find 7."},
    ]
    assert describe() in ACTOR_SYSTEM


def test_earlier_replies_are_the_assistant_s_and_only_the_newest_page_is_shown():
    messages = chat(turn("7", CLICK, "# Note: 3 EUR\ngo_backward()", page="@ /two"))
    assert [(one["role"], one["content"]) for one in messages[1:]] == [
        ("user", PAST_PAGE),
        ("assistant", CLICK),
        ("user", PAST_PAGE),
        ("assistant", "# Note: 3 EUR\ngo_backward()"),
        ("user", "@ /two\n\nTask: Find 7."),
    ]


def test_an_earlier_empty_reply_has_words_since_servers_refuse_messages_without():
    assert [one["content"] for one in chat(turn("7", "", " \n")) if one["role"] == "assistant"] == ["(no answer)"] * 2


def test_the_request_is_this_chat_at_the_policy_s_temperature():
    with serving(says(CLICK)) as server:
        PromptedPolicy(client(server), temperature=0.0)([turn()])
        PromptedPolicy(client(server))([turn()])
    assert server.requests[0]["messages"] == chat(turn())
    assert [request["temperature"] for request in server.requests] == [0.0, 1.0]


# Replies ------------------------------------------------------------------------------------------------------------


def test_what_the_model_says_is_the_reply_unchanged():
    text = "I will open it.\n# Element: Tea link\n" + CLICK + "\n"
    with serving(says(text)) as server:
        [said] = PromptedPolicy(client(server))([turn()])
    assert said.text == text
    assert (said.token_ids, said.logprobs, said.prompt_hash) == ((), (), "")


def test_thoughts_in_front_are_no_part_of_the_reply():
    """ACT-06, sibling: a line of a thought could be taken for the action."""
    with serving(says('<think>\nMaybe\nexit(message="no")\n</think>\n\n' + CLICK)) as server:
        [said] = PromptedPolicy(client(server))([turn()])
    assert said.text == CLICK


def test_all_turns_are_asked_at_once_and_answers_keep_their_order():
    together = threading.Barrier(3)

    def reply(handler: Handler) -> None:
        together.wait(60)  # opens only when three requests are there
        respond(handler, says("done"))

    with serving(reply) as server:
        assert [one.text for one in PromptedPolicy(client(server))([turn("a"), turn("b"), turn("c")])] == ["done"] * 3
    with serving(says("one"), says("two"), says("three")) as server:
        answers = PromptedPolicy(client(server), concurrent=1)([turn("a"), turn("b"), turn("c")])
    assert [one.text for one in answers] == ["one", "two", "three"]
    assert PromptedPolicy(client(server))([]) == []


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (says(None), "empty"),
        (says("  "), "empty"),
        (says(None, refusal="I will not."), "refusal"),
        (says(None, "content_filter"), "refusal"),
        (says(None, "length"), "cut_off"),
    ],
)
def test_a_model_that_says_nothing_has_replied_with_nothing(answer, failure):
    """GEN-03, sibling: null, empty, refused, cut off."""
    with serving(answer) as server:
        llm = client(server)
        [said] = PromptedPolicy(llm)([turn()])
    assert said.text == ""
    assert llm.usage.failures[failure] == 3


def test_a_reply_that_was_cut_off_is_taken_as_it_is():
    with serving(says('do(action="Cli', "length")) as server:
        assert PromptedPolicy(client(server))([turn()])[0].text == 'do(action="Cli'


@pytest.mark.parametrize("answer", [says(None), says("I would click on the tea.")])
def test_unreadable_and_empty_replies_end_an_episode_as_parse_failures(answer):
    """ACT-05: five in a row."""
    with serving(answer) as server:
        policy = PromptedPolicy(client(server, retries=0))
        [played] = rollout([task()], Sites(1), policy, seed=0, name=policy.name)
    assert (played.stop, len(played.steps), played.policy) == (StopReason.PARSE_FAILURES, 5, "prompted m")
    assert all(step.action is None and step.error for step in played.steps)


def test_a_served_model_plays_several_environments_to_the_end():
    """Each episode's second reply is the exit."""
    with serving(says(CLICK), says(CLICK), says('exit(message="tea")')) as server:
        played = list(rollout([task("a"), task("b")], Sites(2), PromptedPolicy(client(server)), seed=0))
    assert [(one.task.task_id, one.stop, len(one.steps)) for one in played] == [
        ("a", StopReason.EXIT, 2),
        ("b", StopReason.EXIT, 2),
    ]
    assert sorted(len(request["messages"]) for request in server.requests) == [2, 2, 4, 4]


# Faults and cost ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "requests"),
    [
        (error(500), "server_error", 3),
        (error(429), "rate_limit", 3),
        ((200, b"<html>", {"Content-Type": "text/html"}), "malformed", 3),
        ({"object": "chat.completion"}, "no_choices", 3),
        (error(401), "key", 1),
        (error(404), "not_found", 1),
        (error(400, "maximum context length"), "bad_request", 1),
    ],
)
def test_a_server_s_fault_is_an_error_that_names_server_and_task(fault, kind, requests):
    with serving(fault) as server:
        with pytest.raises(
            LlmError, match=f"the agent's server {server.url} failed at step 1 of task 7: .*{kind}"
        ) as e:
            PromptedPolicy(client(server))([turn("7", CLICK)])
        assert len(server.requests) == requests
    assert e.value.kind == kind


def test_a_dead_server_and_a_slow_one_are_errors_after_all_tries(dead, held):
    llm = client(dead)
    with pytest.raises(LlmError, match=f"{dead.url} failed .* after 3 tries: connection"):
        PromptedPolicy(llm)([turn()])
    assert llm.usage.calls == 3
    with serving(lambda handler: held.wait(60)) as server:
        with pytest.raises(LlmError, match="after 3 tries: timeout"):
            PromptedPolicy(client(server, timeout_s=0.2))([turn()])
        held.set()


def test_after_a_fault_the_rest_of_the_batch_is_not_asked():
    with serving(error(401)) as server:
        with pytest.raises(LlmError):
            PromptedPolicy(client(server), concurrent=1)([turn(str(i)) for i in range(50)])
        assert len(server.requests) < 50


def test_without_a_key_the_client_says_what_to_do(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(LlmError, match="`OPENAI_API_KEY` must be set to ask gpt-4o"):
        PromptedPolicy(Llm(LlmConfig()))


def test_requests_tokens_and_cost_are_counted(tmp_path):
    """Three answers of 10 tokens in and 4 out, at $2 and $10 a million: 180 millionths."""
    with serving(says(CLICK)) as server:
        llm = client(server, tmp_path / "llm.jsonl", dollars_per_million_in=2, dollars_per_million_out=10)
        PromptedPolicy(llm)([turn("a"), turn("b"), turn("c")])
    assert (llm.usage.calls, llm.usage.tokens_in, llm.usage.tokens_out) == (3, 30, 12)
    assert llm.usage.dollars == pytest.approx(180e-6)
    lines = (tmp_path / "llm.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["purpose"] for line in lines] == ["act"] * 3


def test_at_least_one_request_must_be_allowed():
    with serving() as server:
        with pytest.raises(ValueError, match="`concurrent` must be at least 1, got 0"):
            PromptedPolicy(client(server), concurrent=0)


# A local model ------------------------------------------------------------------------------------------------------


def test_a_bare_model_replies_as_the_model_without_any_adapter_does():
    """The same greedy tokens as transformers' own generation from the same prompt, and the same log-probabilities."""
    config = Config(
        model=ModelConfig(name=str(tiny_models.folder("llama")), dtype="float32", max_length=4000),
        rollout=RolloutConfig(max_new_tokens=6),
    )
    policy = bare_policy(config, device="cpu")
    [said] = policy([turn()])
    prompt = actor_prompt(
        policy.shared.tokenizer,
        "chat",
        intent="Find 7.",
        replies=(),
        page="@ /\nTea [3] link",
        max_length=4000,
        max_new_tokens=6,
    )
    plain = AutoModelForCausalLM.from_pretrained(config.model.name, dtype=torch.float32).eval()
    ids = torch.tensor([prompt.ids])
    with torch.inference_mode():
        out = plain.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=6)
        logits = plain(out).logits[0, len(prompt.ids) - 1 : -1]
    replied = out[0, len(prompt.ids) :]
    assert list(said.token_ids) == replied.tolist()
    expected = torch.log_softmax(logits, -1).gather(-1, replied[:, None])[:, 0]
    assert list(said.logprobs) == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_bare_model_is_greedy_unless_told():
    config = Config(model=ModelConfig(name=str(tiny_models.folder("llama")), max_length=4000))
    policy = bare_policy(config, device="cpu")
    assert policy.temperature == 0.0
    assert bare_policy(config, device="cpu", temperature=0.7).temperature == 0.7
