"""The authors' files become ours and come back as they were; a broken one names the file and the line."""

import dataclasses
import gzip
import json
import subprocess
import sys
import tracemalloc

import pytest

from webrl_lite import exchange_files
from webrl_lite.exchange import convert, failed_tasks, main, read_tasks, write_info, write_task_records
from webrl_lite.exchange_files import read_records, write_list
from webrl_lite.exchange_steps import (
    KnownTasks,
    read_conversation_trajectories,
    read_conversations,
    read_step_prompt,
    step_prompt,
    write_conversations,
)
from webrl_lite.exchange_traces import read_traces, write_traces
from webrl_lite.trajectory import Step, StopReason, Task, TraceError, Trajectory, Verdict, write_jsonl

USER = "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
ASSISTANT = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
CLICK = '# Element: the cart\ndo(action="Click", element="3")'
EXIT = 'exit(message="42 €")'


def first(page, intent="Buy tea."):
    return f"Task Instruction: {intent}\n\nRound 0\n\n{USER}{page}\n\n{ASSISTANT}"


def second(page, intent="Buy tea.", reply=CLICK):
    past = f"Task Instruction: {intent}\n\nRound 0\n\n{USER}{intent}\n\n{ASSISTANT}{reply}\n\n"
    return f"{past}Round 1\n\n{USER}{page}\n\n{ASSISTANT}"


def said(prompt, reply, **more):
    return {"conversations": [{"from": "human", "value": prompt}, {"from": "gpt", "value": reply}], **more}


def trace(index, response, *, trace_id=7, intent="Buy tea.", **more):
    prompt = "** Simplified html **" if index else intent
    line = {"trace_id": trace_id, "index": index, "prompt": prompt, "html": f"<p> {index} </p>"}
    return {**line, "response": response, "target": intent, **more}


def put(path, lines, ends="\n", encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(json.dumps(line, ensure_ascii=False) + ends for line in lines).encode(encoding))
    return path


def records(path):
    return [record for _, record in read_records(path)]


def played(replies=(CLICK, EXIT), *, verdict=None, stop=StopReason.EXIT, task_id="7", sites=("shopping",)):
    task = Task(task_id, sites, "Buy tea.", "__SHOPPING__/")
    steps = tuple(Step(i, f"<p> {i} </p>", "http://x/", reply) for i, reply in enumerate(replies))
    return Trajectory(task, steps, stop, verdict=verdict, trajectory_id=f"t{task_id}")


# Files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1}\n{"a": 2}\n',
        '{"a": 1}\r\n\r\n{"a": 2}',
        '\ufeff{"a": 1}\n{"a": 2}\n',
        '[{"a": 1}, {"a": 2}]',
        '\ufeff[\r\n  {"a":\r\n 1},\r\n  {"a": 2}\r\n]\r\n',
        '{\n  "a": 1\n}\n{\n  "a": 2\n}',
    ],
)
def test_lists_lines_and_indented_objects_are_read_alike(tmp_path, content):
    (tmp_path / "f.json").write_bytes(content.encode())
    assert records(tmp_path / "f.json") == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_piece_may_end_anywhere(tmp_path, monkeypatch, size):
    monkeypatch.setattr(exchange_files, "CHUNK", size)
    lines = [{"a": 'é€😀 \\ " \n', "b": [1.5, -2e3, None, True, False]}, {"c": {"d": "x" * 50}}]
    (tmp_path / "f.json").write_text("\ufeff" + json.dumps(lines, ensure_ascii=False), encoding="utf-8")
    assert records(tmp_path / "f.json") == lines
    put(tmp_path / "f.jsonl", lines, ends="\r\n")
    assert list(read_records(tmp_path / "f.jsonl")) == [(1, lines[0]), (2, lines[1])]


@pytest.mark.parametrize(
    ("content", "line", "rule"),
    [
        (b'{"a": 1}\n{"a": \n', 3, "not JSON: Expecting value"),
        (b'{"a": 1}\n\n{"a": "x\n{"a": 2}\n{"a": 3}\n', 3, "not JSON: Invalid control character"),
        (b'{"a": 1}\n[1]\n', 2, "a JSON object must stand here"),
        (b'[{"a": 1},\n{"a": 2}\n', 3, 'comes "," or "]": cut off'),
        (b'[{"a": 1}\n{"a": 2}]', 2, 'comes "," or "]", got'),
        (b'[{"a": 1},\n]', 2, "a JSON object must stand here"),
        (b'[{"a": 1}]\nmore', 2, "something follows"),
        (b'{"a": 1}\n{"a": NaN}\n', 2, "NaN is no number"),
        (b'{"a": 1}\n{"a": "\xe9"}\n', 2, "the byte 0xe9 is no UTF-8"),
        (b'{"a": 1}\n' + b'{"a":' * 100_000, 2, "nested too deeply"),
        (b'{"a": "x', 1, "not JSON: Unterminated string"),
    ],
)
def test_a_malformed_file_names_its_line(tmp_path, content, line, rule):
    path = tmp_path / "f.json"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        records(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert rule in str(caught.value)


def test_other_encodings_and_broken_archives_are_named(tmp_path):
    (tmp_path / "f.json").write_bytes('[{"a": 1}]'.encode("utf-16"))
    with pytest.raises(TraceError, match="UTF-16. Save it as UTF-8"):
        records(tmp_path / "f.json")
    (tmp_path / "f.json.gz").write_bytes(gzip.compress(b'[{"a": 1}]' * 9)[:-9])
    with pytest.raises(TraceError, match="cut off or damaged"):
        records(tmp_path / "f.json.gz")


def test_half_a_surrogate_pair_is_read_and_written_back(tmp_path):
    (tmp_path / "f.json").write_bytes(b'[{"a": "x\\ud83d"}, {"a": "\\ud83d\\ude00"}, {"a": "raw \xed\xa0\xbd"}]')
    lines = [{"a": "x\ud83d"}, {"a": "😀"}, {"a": "raw \ud83d"}]
    assert records(tmp_path / "f.json") == lines
    assert write_list(tmp_path / "g.json.gz", lines) == 3
    assert records(tmp_path / "g.json.gz") == lines


def test_a_large_list_is_not_held_in_memory(tmp_path):
    path = tmp_path / "large.json"
    item = json.dumps(said(first("p" * 9000), EXIT))
    path.write_text("[" + ",".join([item] * 2000) + "]")  # 18 MB on one line
    tracemalloc.start()
    assert sum(1 for _ in read_conversations(path)) == 2000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000


def test_a_failed_conversion_leaves_the_old_file(tmp_path):
    (tmp_path / "out.json").write_text("old")
    with pytest.raises(RuntimeError):
        write_list(tmp_path / "out.json", _one_and_a_fault())
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]
    assert (tmp_path / "out.json").read_text() == "old"


def _one_and_a_fault():
    yield {"a": 1}
    raise RuntimeError


# Tasks --------------------------------------------------------------------------------------------------------------


def test_web_and_task_become_a_task_on_the_site_s_front_page_and_come_back(tmp_path):
    lines = [{"web": "shopping_admin", "task": "Ship order 7."}, {"web": "map", "task": "Find the café.", "round": 3}]
    tasks = list(read_tasks(put(tmp_path / "failed.jsonl", lines)))
    assert tasks == [
        Task("failed.0", ("shopping_admin",), "Ship order 7.", "__SHOPPING_ADMIN__"),
        Task("failed.1", ("map",), "Find the café.", "__MAP__", extra={"round": 3}),
    ]
    assert write_task_records(tmp_path / "out.jsonl", tasks) == 2
    assert records(tmp_path / "out.jsonl") == lines


def test_a_task_of_two_sites_comes_back_with_both(tmp_path):
    task = Task("1", ("gitlab", "reddit"), "Post it.", "__GITLAB__ |AND| __REDDIT__")
    write_task_records(tmp_path / "t.jsonl", [task])
    assert records(tmp_path / "t.jsonl") == [{"web": "gitlab", "task": "Post it.", "sites": ["gitlab", "reddit"]}]
    (back,) = read_tasks(tmp_path / "t.jsonl")
    assert (back.sites, back.start_url) == (task.sites, task.start_url)


def test_a_list_of_training_intents_is_read_and_comes_back(tmp_path):
    info = [
        {"intent": "See all public projects", "sites": ["gitlab"], "start_url": "__GITLAB__"},
        {"intent": "Find it", "sites": ["map"], "start_url": "__MAP__", "old_task_id": 4},
    ]
    (tmp_path / "WebArena-Lite_info.json").write_text(json.dumps(info, indent=4))
    tasks = list(read_tasks(tmp_path / "WebArena-Lite_info.json"))
    assert [task.task_id for task in tasks] == ["WebArena-Lite_info.0", "WebArena-Lite_info.1"]
    assert tasks[1].extra == {"old_task_id": 4}
    assert write_info(tmp_path / "out.json", tasks) == 2
    assert records(tmp_path / "out.json") == info


def test_a_task_in_webarena_s_schema_keeps_its_id_and_grader(tmp_path):
    record = {"task_id": 3, "sites": ["map"], "intent": "Find it", "start_url": "__MAP__", "eval": {"eval_types": []}}
    (task,) = read_tasks(put(tmp_path / "x.json", [{**record, "require_login": True}]))
    assert (task.task_id, task.eval, task.extra) == ("3", {"eval_types": []}, {"require_login": True})


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        ({"web": "map"}, "`task` must be a non-empty text, got None"),
        ({"web": "map", "task": ""}, "`task` must be a non-empty text, got ''"),
        ({"web": ["map"], "task": "x"}, "`web` must be"),
        ({"web": "map", "task": "x", "sites": "map"}, "`sites` must be a non-empty list"),
        ({"web": "map", "task": "x", "intent": "y"}, "must not have `intent` too"),
        ({"intent": "x", "sites": ["map"]}, "`start_url` must be"),
        ({}, "`sites` must be"),
    ],
)
def test_a_record_that_is_no_task_is_refused_with_its_line(tmp_path, record, rule):
    path = put(tmp_path / "t.jsonl", [{"web": "map", "task": "x"}, record])
    with pytest.raises(TraceError) as caught:
        list(read_tasks(path))
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert rule in str(caught.value)


def test_failed_tasks_are_those_graded_as_failed_each_once():
    episodes = [
        played(verdict=Verdict(0.0), task_id="1"),
        played(verdict=Verdict(0.0), task_id="1"),
        played(verdict=Verdict(1.0), task_id="2", sites=("map",)),
        played(verdict=Verdict(None), task_id="3", sites=("reddit",)),
        played(verdict=None, task_id="4", sites=("gitlab",)),
    ]
    assert [task.task_id for task in failed_tasks(episodes)] == ["1"]


# Traces -------------------------------------------------------------------------------------------------------------


def test_a_trace_becomes_a_trajectory(tmp_path):
    (episode,) = read_traces(put(tmp_path / "7.jsonl", [trace(0, CLICK), trace(1, EXIT)]))
    assert episode.task == Task("7", ("unknown",), "Buy tea.", "about:blank")
    assert [step.observation for step in episode.steps] == ["<p> 0 </p>", "<p> 1 </p>"]
    assert [step.reply for step in episode.steps] == [CLICK, EXIT]
    assert episode.steps[0].action == {"name": "Click", "element": "3", "argument": None}
    assert (episode.stop, episode.answer, episode.verdict) == (StopReason.EXIT, "42 €", None)
    assert episode.evidence == {}
    assert Trajectory.from_json(json.loads(json.dumps(episode.to_json()))) == episode


def test_the_harness_s_folder_comes_back_as_it_was(tmp_path):
    lines = {
        "2": [trace(0, CLICK, trace_id=2, viewport=[1280, 720]), trace(1, EXIT, trace_id=2)],
        "10": [trace(0, 'do(action="Teleport")', trace_id=10, intent="Go \ud83d on.")],
    }
    for name, one in lines.items():
        (tmp_path / "in" / "traces").mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / "traces" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, one)))  # as the authors do
    done = {"2": {"task_id": 2, "score": 1.0, "actions": ["clicked"]}, "10": {"task_id": 10, "score": -0.1}}
    for name, one in done.items():
        put(tmp_path / "in" / "actions" / f"{name}.json", [one])
    episodes = list(read_traces(tmp_path / "in"))
    assert [episode.trajectory_id for episode in episodes] == ["2", "10"]
    assert [episode.verdict.score for episode in episodes] == [1.0, None]  # -0.1 is no grade
    assert episodes[1].steps[0].action is None
    assert "Teleport" in episodes[1].steps[0].error
    assert write_traces(tmp_path / "out", episodes) == (2, 0)
    for name, one in lines.items():
        assert records(tmp_path / "out" / "traces" / f"{name}.jsonl") == one
    assert records(tmp_path / "out" / "actions" / "2.json") == [done["2"]]
    assert records(tmp_path / "out" / "actions" / "10.json") == [{**done["10"], "actions": ['do(action="Teleport")']}]


def test_fixed_traces_come_back_with_their_scores(tmp_path):
    lines = [trace(i, r, fixed_response=r, score=0) for i, r in enumerate((CLICK, EXIT))]
    put(tmp_path / "in" / "fixed_traces" / "7.jsonl", lines)
    put(tmp_path / "in" / "traces" / "7.jsonl", [trace(0, EXIT)])  # the fixed ones are newer
    (episode,) = read_traces(tmp_path / "in")
    assert episode.verdict == Verdict(0.0, "imported")
    write_traces(tmp_path / "out", [episode], fixed=True)
    assert records(tmp_path / "out" / "fixed_traces" / "7.jsonl") == lines


def test_a_new_label_is_what_is_written(tmp_path):
    lines = [trace(0, EXIT, fixed_response=EXIT, score=0)]
    (episode,) = read_traces(put(tmp_path / "7.jsonl", lines))
    write_traces(tmp_path, [dataclasses.replace(episode, verdict=Verdict(1.0, "orm"))], fixed=True)
    assert records(tmp_path / "fixed_traces" / "7.jsonl")[0]["score"] == 1.0


def test_one_file_may_hold_many_episodes(tmp_path):
    lines = [trace(0, EXIT), trace(0, CLICK), trace(1, EXIT), trace(0, EXIT, trace_id="a/b")]
    episodes = list(read_traces(put(tmp_path / "all.jsonl", lines)))
    assert [(e.trajectory_id, len(e.steps)) for e in episodes] == [("7", 1), ("7#2", 2), ("a/b", 1)]
    assert write_traces(tmp_path / "out", episodes) == (3, 0)
    written = sorted(file.name for file in (tmp_path / "out" / "traces").iterdir())
    assert written == ["7.jsonl", "7_1.jsonl", "a_b.jsonl"]
    back = [record for name in written for record in records(tmp_path / "out" / "traces" / name)]
    assert back == lines


@pytest.mark.parametrize(
    ("replies", "stop"),
    [
        ([CLICK] * 5, StopReason.REPEATED_REPLY),
        ([CLICK] * 5 + [""], StopReason.REPEATED_REPLY),  # the release's early stop ends with an empty reply
        (["a", "b", "c", "d", "e"], StopReason.PARSE_FAILURES),
        ([CLICK] * 4, StopReason.MAX_STEPS),
    ],
)
def test_how_an_episode_ended_is_told_from_its_replies(tmp_path, replies, stop):
    (episode,) = read_traces(put(tmp_path / "7.jsonl", [trace(i, r) for i, r in enumerate(replies)]))
    assert episode.stop == stop


def test_sites_come_from_known_tasks_by_id_or_by_intent(tmp_path):
    tasks = [
        Task("7", ("shopping",), "Buy tea.", "__SHOPPING__"),
        Task("8", ("map",), "Buy tea.", "__MAP__"),
        Task("9", ("reddit",), "Post.", "__REDDIT__"),
    ]
    lines = [trace(0, EXIT), trace(0, EXIT, trace_id=1), trace(0, EXIT, trace_id=7, intent="Post.")]
    episodes = list(read_traces(put(tmp_path / "a.jsonl", lines), KnownTasks(tasks)))
    assert [episode.task.sites for episode in episodes] == [("shopping",), ("unknown",), ("reddit",)]
    write_traces(tmp_path / "out", episodes[2:])
    assert records(tmp_path / "out" / "traces" / "9.jsonl") == [lines[2]]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ({"index": 0}, "`trace_id` is missing; is this a trace"),
        (trace(2, EXIT), "`index` must be 1, got 2. Lines are missing"),
        (trace(1, None), "`response` must be a text, got None"),
        ({**trace(1, EXIT), "index": True}, "`index` must be a whole number"),
        ({**trace(1, EXIT), "trace_id": 1.5}, "`trace_id` must be a number or"),
        (trace(1, EXIT, score="1"), "`score` must be a number of at most 1"),
        (trace(1, EXIT, score=2), "`score` must be a number of at most 1"),
    ],
)
def test_a_line_that_is_no_trace_s_is_refused(tmp_path, line, rule):
    path = put(tmp_path / "7.jsonl", [trace(0, CLICK), line])
    with pytest.raises(TraceError) as caught:
        list(read_traces(path))
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert rule in str(caught.value)


def test_a_folder_without_traces_is_refused(tmp_path):
    with pytest.raises(TraceError, match="there is no trace file"):
        list(read_traces(tmp_path))


def test_environment_faults_are_left_out_of_traces_and_ungraded_ones_get_the_release_s_sign(tmp_path):
    episodes = [
        played(stop=StopReason.ENV_ERROR, task_id="1"),
        played(task_id="2"),
        played(verdict=Verdict(None), task_id="3"),
    ]
    assert write_traces(tmp_path, episodes) == (2, 1)
    assert [records(tmp_path / "actions" / f"{n}.json")[0]["score"] for n in (2, 3)] == [-0.1, -0.1]


# Prompts and conversations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["P", "", "a\n\nb", "** Simplified html **", "Round 1\n\n", "Buy tea."])
def test_a_prompt_is_read_back_into_its_parts(page):
    for replies in ((), (CLICK,), (CLICK, "", "x\n\ny")):
        assert read_step_prompt(step_prompt("Buy tea.", replies, page)) == ("Buy tea.", replies, page)
    assert read_step_prompt(first("P")) == ("Buy tea.", (), "P")
    assert read_step_prompt(second("P")) == ("Buy tea.", (CLICK,), "P")


ITEMS = [
    said(first("P0"), CLICK, system=""),
    said(second("P1"), EXIT),
    said(first("P0"), EXIT),
    said(first("Q", "Rate it 😀."), "no call"),
]


def test_conversations_become_trajectories_and_come_back(tmp_path):
    path = tmp_path / "web_policy_sft.json"
    path.write_text(json.dumps(ITEMS, indent=2), encoding="utf-8")
    episodes = list(read_conversation_trajectories(path))
    assert [len(episode.steps) for episode in episodes] == [2, 1, 1]
    assert [episode.task.intent for episode in episodes] == ["Buy tea.", "Buy tea.", "Rate it 😀."]
    assert [episode.trajectory_id for episode in episodes] == [f"web_policy_sft.{n}" for n in range(3)]
    assert episodes[0].verdict is None
    assert [step.observation for step in episodes[0].steps] == ["P0", "P1"]
    assert write_conversations(tmp_path / "out.json", episodes) == (4, 0)
    assert records(tmp_path / "out.json") == ITEMS


def test_a_prompt_whose_page_was_cut_wrongly_comes_back_too(tmp_path):
    """The release cuts from the wrong end where the history alone is over 15,872 characters."""
    replies = ["y" * 16_000]
    prompt = step_prompt("Buy tea.", replies, "").replace(f"Round 1\n\n{USER}\n\n", f"Round 1\n\n{USER}left over\n\n")
    items = [said(first("P"), replies[0]), said(prompt, EXIT)]
    episodes = list(read_conversation_trajectories(put(tmp_path / "c.json", items)))
    assert episodes[0].steps[1].observation == "left over"
    write_conversations(tmp_path / "out.json", episodes)
    assert records(tmp_path / "out.json") == items


def test_a_history_that_fills_the_prompt_leaves_no_page():
    assert step_prompt("Buy tea.", ["y" * 16_000], "p" * 500).endswith(f"Round 1\n\n{USER}\n\n{ASSISTANT}")


@pytest.mark.parametrize(
    "stray", [second("P1", intent="Buy milk."), second("P1", reply=EXIT), second("P1").replace(CLICK, CLICK + " ")]
)
def test_a_step_with_another_history_does_not_join_the_one_before_it(tmp_path, stray):
    path = put(tmp_path / "c.jsonl", [ITEMS[0], said(stray, EXIT)])
    with pytest.raises(TraceError, match=r"c\.jsonl, line 2: the step has 1 earlier replies"):
        list(read_conversation_trajectories(path))


def test_failures_and_empty_replies_are_no_demonstrations(tmp_path):
    episodes = [
        played(verdict=Verdict(0.0)),
        played(stop=StopReason.ENV_ERROR),
        played(verdict=Verdict(None)),
        played((CLICK, "", EXIT), verdict=Verdict(1.0)),
    ]
    assert write_conversations(tmp_path / "c.json", episodes) == (2, 3)
    replies = [record["conversations"][1]["value"] for record in records(tmp_path / "c.json")]
    assert replies == [CLICK, EXIT]
    assert read_step_prompt(records(tmp_path / "c.json")[1]["conversations"][0]["value"])[1] == (CLICK, "")


def test_shuffled_steps_are_no_trajectories(tmp_path):
    path = put(tmp_path / "c.jsonl", [ITEMS[1], ITEMS[0]])
    with pytest.raises(TraceError, match=r"c\.jsonl, line 1: the step has 1 earlier replies.*one by one"):
        list(read_conversation_trajectories(path))


@pytest.mark.parametrize(
    ("item", "rule"),
    [
        ({}, "`conversations` must be a list of two messages, got None"),
        ({"conversations": []}, "`conversations` must be a list of two messages"),
        ({"conversations": [{"from": "human", "value": "x"}, "y"]}, "`conversations` must be a list of two"),
        ({"conversations": ITEMS[0]["conversations"][::-1]}, "must be a text from human"),
        (said(first("P"), None), "must be a text from gpt"),
        (said("What is on the page?", EXIT), "a prompt must have the authors' form"),
        (said(first("P").removesuffix(ASSISTANT), EXIT), "a prompt must have the authors' form"),
    ],
)
def test_an_item_that_is_no_step_is_refused(tmp_path, item, rule):
    path = put(tmp_path / "c.jsonl", [ITEMS[0], item])
    with pytest.raises(TraceError) as caught:
        list(read_conversations(path))
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert rule in str(caught.value)


def test_user_and_assistant_are_understood(tmp_path):
    item = {"conversations": [{"from": "user", "value": first("P")}, {"from": "assistant", "value": EXIT}]}
    (episode,) = read_conversation_trajectories(put(tmp_path / "c.json", [item]))
    write_conversations(tmp_path / "out.json", [episode])
    assert records(tmp_path / "out.json") == [item]


# Command line -------------------------------------------------------------------------------------------------------


def test_the_failed_tasks_of_rollouts_are_written_for_the_generator(tmp_path):
    write_jsonl(tmp_path / "r.jsonl", [played(verdict=Verdict(0.0)), played(verdict=Verdict(1.0))])
    assert convert("to-tasks", tmp_path / "r.jsonl", tmp_path / "f.jsonl") == "1 tasks"


def test_a_bad_file_is_one_line_and_status_1(tmp_path, capsys):
    put(tmp_path / "c.json", [{}])
    assert main(["from-conversations", str(tmp_path / "c.json"), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'c.json'}, line 1: ")
    assert main(["from-pt", str(tmp_path / "none.pt"), str(tmp_path / "out")]) == 1
    assert "There is no file" in capsys.readouterr().err
    (tmp_path / "x.pt").write_bytes(b"PK\x03\x04\xff")
    assert main(["to-tasks", str(tmp_path / "x.pt"), str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()


def test_the_command_line_starts_without_torch():
    code = "import sys, webrl_lite.exchange; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
