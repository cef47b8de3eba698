"""The client of served models against a real server on this machine that plays every fault."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from local_llm import Handler, client, error, says, serving

from webrl_lite.llm import KINDS, Llm, LlmConfig, LlmError

HELLO = [{"role": "user", "content": "Say tea."}]


def tea(text: str) -> str | None:
    return "tea" if "tea" in text else None


def ask(llm: Llm, read: Callable[[str], str | None] = tea) -> str:
    return llm.ask(HELLO, read, purpose="test")


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_answer_comes_with_its_tokens_and_cost(tmp_path):
    """1 million tokens in cost $2, out $10: 10 x 2 + 4 x 10 = 60 millionths."""
    with serving(says("tea, please")) as server:
        llm = client(server, tmp_path / "llm.jsonl", dollars_per_million_in=2, dollars_per_million_out=10)
        assert ask(llm) == "tea"
    assert server.requests == [{"model": "m", "messages": HELLO, "max_tokens": 2048, "temperature": 1.0}]
    assert (llm.usage.calls, llm.usage.answers, llm.usage.tokens_in, llm.usage.tokens_out) == (1, 1, 10, 4)
    assert llm.usage.dollars == pytest.approx(60e-6)
    [line] = lines(tmp_path / "llm.jsonl")
    assert line["messages"] == HELLO and line["reply"] == "tea, please" and line["dollars"] == pytest.approx(60e-6)
    assert line["purpose"] == "test" and line["failure"] == ""


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (error(429), "rate_limit"),
        (error(500), "server_error"),
        (error(503), "server_error"),
        (error(408), "timeout"),
        (says(None), "empty"),
        (says("  \n"), "empty"),
        (says(None, "length"), "cut_off"),
        (says("[half a li", "length"), "cut_off"),
        (says("coffee"), "malformed"),
        (says(None, refusal="I will not."), "refusal"),
        (says("te", "content_filter"), "refusal"),
        ({**says(""), "choices": []}, "no_choices"),
        ({**says(""), "choices": None}, "no_choices"),
        ({"object": "chat.completion"}, "no_choices"),
        ({**says(""), "choices": [{}]}, "empty"),
        ({**says(""), "choices": [None]}, "empty"),
        (says(["tea"]), "empty"),
        ([1, 2], "malformed"),
        ((200, b"<html>tea</html>", {"Content-Type": "text/html"}), "malformed"),
        ((200, b"", {}), "malformed"),
        ((200, b'{"choices": [{"mess', {}), "malformed"),
        (lambda handler: handler.connection.close(), "connection"),
    ],
)
def test_each_fault_is_named_counted_and_asked_again(fault, kind, tmp_path):
    """GEN-03: truncated, empty, null, refused, without choices; and the faults of servers and networks."""
    with serving(fault, says("tea")) as server:
        llm = client(server, tmp_path / "llm.jsonl")
        assert ask(llm) == "tea"
        assert len(server.requests) == 2
    assert dict(llm.usage.failures) == {kind: 1}
    assert [line["failure"] for line in lines(tmp_path / "llm.jsonl")] == [kind, ""]
    assert kind in KINDS


@pytest.mark.parametrize("fault", [error(429), says(None), says("coffee"), error(502)])
def test_tries_are_bounded_and_the_error_names_fault_and_number(fault):
    """GEN-03."""
    with serving(fault) as server:
        with pytest.raises(LlmError, match="after 3 tries: (rate_limit|empty|malformed|server_error)") as raised:
            ask(client(server))
        assert len(server.requests) == 3
    assert not raised.value.final


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([says("coffee")], True),
        ([says("coffee"), says("cocoa"), says("coffee")], False),
        ([says(None)], False),
        ([error(502)], False),
    ],
)
def test_a_server_that_does_not_sample_is_told_from_one_that_answers_badly(answers, told):
    with serving(*answers) as server, pytest.raises(LlmError) as raised:
        ask(client(server))
    assert ("Every try gave the same text" in str(raised.value)) == told


@pytest.mark.parametrize(
    ("fault", "kind", "final"),
    [
        (error(401, "Incorrect key"), "key", True),
        (error(403), "key", True),
        (error(404, "no such model"), "not_found", True),
        (error(429, "You exceeded your quota", code="insufficient_quota"), "quota", True),
        (error(400, "too long"), "bad_request", False),
    ],
)
def test_what_would_be_the_same_again_is_not_asked_again(fault, kind, final):
    with serving(fault) as server:
        with pytest.raises(LlmError, match="after 1 try") as raised:
            ask(client(server))
        assert len(server.requests) == 1
    assert (raised.value.kind, raised.value.final) == (kind, final)


def test_an_answer_that_was_cut_off_is_of_use_if_something_in_it_is_whole():
    """GEN-03: the reader decides what is whole."""
    with serving(says("tea, and the", "length")) as server:
        llm = client(server)
        assert ask(llm) == "tea"
    assert not llm.usage.failures


def test_a_server_that_never_answers_is_left_in_time():
    """GEN-04: three tries of 0.3 s and pauses of 0.01 and 0.02 s are 0.93 s."""
    hold = threading.Event()
    with serving(lambda handler: hold.wait(10)) as server:
        llm = client(server, timeout_s=0.3)
        assert llm.config.longest_s == pytest.approx(0.93)
        start = time.monotonic()
        with pytest.raises(LlmError, match=r"after 3 tries: timeout .*`llm.timeout_s` \(0.3 s\)"):
            ask(llm)
        assert time.monotonic() - start < 3  # 0.93 s and three connections on a busy machine
        hold.set()


def test_a_byte_now_and_then_does_not_prolong_the_time_out():
    """GEN-04, sibling: the time-out is for the whole answer."""
    hold = threading.Event()

    def trickle(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        try:
            while not hold.wait(0.1):
                handler.wfile.write(b" ")
        except OSError:
            pass

    with serving(trickle) as server:
        start = time.monotonic()
        with pytest.raises(LlmError, match="timeout"):
            ask(client(server, timeout_s=0.5, retries=0))
        assert time.monotonic() - start < 2.5
        hold.set()


def test_the_pause_that_a_server_asks_for_is_kept_up_to_a_limit():
    with serving(
        error(429, headers={"Retry-After": "0.4"}), error(429, headers={"Retry-After": "900"}), says("tea")
    ) as server:
        start = time.monotonic()
        assert ask(client(server, longest_pause_s=0.5)) == "tea"
        assert 0.9 <= time.monotonic() - start < 4


def test_pauses_double_up_to_a_limit():
    config = LlmConfig(backoff_s=1, longest_pause_s=5)
    assert [config.pause_s(tries) for tries in (1, 2, 3, 4, 5, 4000)] == [1, 2, 4, 5, 5, 5]


def test_a_server_that_is_not_there_is_named_with_the_way_out():
    with serving(says("tea")) as server:
        gone = server.url
    llm = Llm(LlmConfig(model="m", base_url=gone, retries=1, backoff_s=0))
    with pytest.raises(LlmError, match=f"2 tries: connection .*Is a server running at {gone}") as raised:
        ask(llm)
    assert raised.value.final


def test_without_a_key_and_a_server_it_does_not_start(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LlmError, match="`OPENAI_API_KEY` must be set .*--llm.base_url"):
        Llm(LlmConfig())


def test_a_server_of_ones_own_needs_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(says("tea")) as server:
        assert ask(client(server)) == "tea"


def test_the_key_goes_to_the_server_and_nowhere_else(tmp_path, monkeypatch):
    """Some servers repeat it in their messages."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with serving(error(401, "Incorrect API key provided: sk-secret.")) as server:
        llm = client(server, tmp_path / "llm.jsonl")
        with pytest.raises(LlmError) as raised:
            ask(llm)
        assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert "Incorrect API key" in str(raised.value) and "sk-secret" not in str(raised.value)
    assert "sk-secret" not in (tmp_path / "llm.jsonl").read_text(encoding="utf-8")


def test_a_key_that_is_given_comes_before_the_variable(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-variable")
    with serving(says("tea")) as server:
        ask(client(server, api_key="sk-own"))
        assert server.headers[0]["authorization"] == "Bearer sk-own"


def test_the_budget_counts_tries_and_ends_the_asking():
    with serving(says("coffee")) as server:
        llm = client(server, max_calls=4)
        with pytest.raises(LlmError, match="malformed"):
            ask(llm)
        with pytest.raises(LlmError, match="`llm.max_calls` is spent: 4 requests") as raised:
            ask(llm)
        assert len(server.requests) == 4
    assert raised.value.final


def test_a_resumed_run_goes_on_counting_behind_a_broken_line(tmp_path):
    log = tmp_path / "llm.jsonl"
    with serving(says(None), says("tea")) as server:
        ask(client(server, log, dollars_per_million_in=1))
        with open(log, "ab") as file:
            file.write(b'{"call": 3, "rep')
        again = client(server, log, max_calls=3)
        assert (again.usage.calls, again.usage.answers, dict(again.usage.failures)) == (2, 1, {"empty": 1})
        assert again.usage.dollars == pytest.approx(20e-6)
        assert ask(again) == "tea"
        with pytest.raises(LlmError, match="budget|max_calls"):
            ask(again)
    whole = [line for line in log.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    assert [json.loads(line)["call"] for line in whole] == [1, 2, 3]


def test_half_a_surrogate_pair_in_an_answer_is_written(tmp_path):
    body = json.dumps(says("tea \ud83d")).encode()
    with serving((200, body, {})) as server:
        assert ask(client(server, tmp_path / "llm.jsonl")) == "tea"
    assert lines(tmp_path / "llm.jsonl")[0]["reply"] == "tea \ud83d"


def test_missing_or_odd_counts_of_tokens_are_zero():
    with serving({**says("tea"), "usage": {"prompt_tokens": None, "completion_tokens": "4"}}) as server:
        llm = client(server)
        ask(llm)
    assert (llm.usage.tokens_in, llm.usage.tokens_out) == (0, 0)


def test_a_temperature_that_is_left_out_is_never_sent():
    """Some models refuse any."""
    with serving(says("tea")) as server:
        client(server, temperature=None).ask(HELLO, tea, purpose="test", temperature=0.0)
        client(server).ask(HELLO, tea, purpose="test", temperature=0.0)
    assert "temperature" not in server.requests[0] and server.requests[1]["temperature"] == 0.0


def test_it_can_be_asked_inside_an_event_loop():
    """As in a notebook."""

    async def cell(llm: Llm) -> str:
        return ask(llm)

    with serving(says("tea")) as server:
        assert asyncio.run(cell(client(server))) == "tea"


def test_several_threads_may_ask(tmp_path):
    with serving(says("tea")) as server:
        llm = client(server, tmp_path / "llm.jsonl")
        threads = [threading.Thread(target=ask, args=(llm,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(line["call"] for line in lines(tmp_path / "llm.jsonl")) == [1, 2, 3, 4, 5, 6]
    assert llm.usage.answers == 6


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"timeout_s": 0}, "`llm.timeout_s` must be above 0, got 0"),
        ({"timeout_s": float("nan")}, "`llm.timeout_s` must be above 0, got nan"),
        ({"retries": -1}, "`llm.retries` must be at least 0, got -1"),
        ({"max_calls": 0}, "`llm.max_calls` must be at least 1, got 0"),
        ({"model": ""}, "`llm.model` must be a name"),
        ({"base_url": "localhost:8000"}, "must be an address http://... or https://..., got 'localhost:8000'"),
    ],
)
def test_settings_that_cannot_work_are_refused(setting, named):
    with pytest.raises(ValueError, match=named):
        LlmConfig(**setting)
