"""The doctor: what it finds of a machine and says to do, that it ends, and that it leaves nothing."""

import http.server
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from webrl_lite import doctor, probes
from webrl_lite.config import Config, EnvConfig, LlmConfig, ModelConfig, preset
from webrl_lite.doctor import Check, Requirement
from webrl_lite.envs import miniwob, webarena_sites
from webrl_lite.memory import GIB
from webrl_lite.probes import Answer, Question, ask

TINY, LARGE = preset("tiny"), preset("gpu24")
CPU = Answer({"version": "2.13.0+cpu", "cuda": None, "cards": [], "bfloat16": None})
CARD = {"name": "NVIDIA RTX 4090", "bytes": 24 * GIB, "works": True}
GPU = Answer({"version": "2.13.0+cu128", "cuda": "12.8", "cards": [CARD], "bfloat16": True})


@pytest.fixture(autouse=True)
def no_hub(monkeypatch, tmp_path):
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache" / "hub"))


def model(name: str, **more: str) -> Config:
    return replace(TINY, model=ModelConfig(name=name, **more))


# The whole ----------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(240)
def test_everything_is_looked_at_and_nothing_is_left(tmp_path, monkeypatch):
    """MPR-01, MPR-06: no process, no file; the run's folder is not made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    out = tmp_path / "runs" / "new"
    found = {check.name: check for check in doctor.checks(replace(TINY, out=str(out)))}
    assert {name: found[name].ok for name in ("Python", "package torch", "imports", "torch", "Chromium", "sites")} == {
        "Python": True,
        "package torch": True,
        "imports": True,
        "torch": True,
        "Chromium": True,
        "sites": True,
    }, doctor.report(list(found.values()))
    assert found["NF4"].ok is None
    assert found["model"].found == "tiny, in the package"
    assert all(bool(check.todo) == (check.ok is False) for check in found.values())
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_breaks_is_a_finding_and_the_others_are_made(monkeypatch):
    def broken(questions: object) -> object:
        raise OSError("no space left on device")

    monkeypatch.setattr(doctor, "ask", broken)
    monkeypatch.setattr(doctor, "port_check", lambda: [][0])
    found = {check.name: check for check in doctor.checks(TINY)}
    assert found["Chromium"].found == "no temporary folder: no space left on device"
    assert found["port"].ok is False
    assert found["port"].found == "could not be checked: IndexError: list index out of range"
    assert found["Python"].ok


def test_the_report_says_what_to_do_under_each_failure():
    text = doctor.report(
        [Check("a", True, "fine"), Check("bcd", False, "gone\nor so", "Get it."), Check("e", None, "-")]
    )
    assert text.splitlines() == [
        "ok    a    fine",
        "FAIL  bcd  gone or so",
        "           -> Get it.",
        "-     e    -",
        "3 checks, 1 not needed for this configuration. 1 failed: do what stands behind ->.",
    ]


def test_the_doctor_imports_where_no_package_is_installed():
    code = "import webrl_lite.doctor, sys; print(sorted({'torch', 'psutil', 'playwright', 'flask'} & set(sys.modules)))"
    path = {**os.environ, "PYTHONPATH": str(Path(doctor.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Probes -------------------------------------------------------------------------------------------------------------


@contextmanager
def server(answer: bytes, pause: float = 0.0) -> Iterator[str]:
    """Serve the same bytes to everyone, one at a time with a pause behind each."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(4096)
                        for byte in answer if pause else [answer]:
                            connection.sendall(bytes([byte]) if pause else byte)
                            time.sleep(pause)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def http_answer(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def question(url: str, seconds: float = 60, key: str = "") -> dict[str, Question]:
    return {"q": Question("served", seconds, {"url": url, "key": key})}


def test_a_server_that_sends_a_byte_now_and_then_is_given_up():
    """It would take 60 x 1 s; a limit on each read alone would never be reached."""
    with server(http_answer("200 OK", '{"data": []}'), pause=1.0) as url:
        begin = time.monotonic()
        answer = ask(question(url, seconds=3))["q"]
    assert answer == Answer(fault="no answer in time")
    assert time.monotonic() - begin < 20


def test_a_process_that_crashes_is_a_fault(monkeypatch):
    found = ask({"q": Question("unheard", 60)})["q"]
    assert found == Answer(fault="KeyError: 'unheard'")


def test_a_process_that_is_killed_names_the_signal(monkeypatch):
    start = probes._start

    def killed(*arguments: object) -> subprocess.Popen:
        process = start(*arguments)
        os.kill(process.pid, signal.SIGKILL)
        return process

    monkeypatch.setattr(probes, "_start", killed)
    assert ask(question("http://127.0.0.1:9/v1"))["q"] == Answer(fault="the process was ended by SIGKILL")


def test_ctrl_c_ends_the_processes_and_removes_the_files(tmp_path, monkeypatch):
    """MPR-01 (b)."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(probes, "_answer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ask(question("http://127.0.0.1:9/v1"))
    assert list(tmp_path.iterdir()) == []
    assert not [c for c in psutil.Process().children() if "webrl_lite.probes" in c.cmdline()]


def test_a_key_is_sent_to_the_server_and_stands_in_no_command_line():
    seen: list[str] = []

    class Models(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            children = psutil.Process().children(recursive=True)
            seen.append(str([child.cmdline() for child in children]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"data": [{"id": "m"}]}')

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        answer = ask(question(f"http://127.0.0.1:{httpd.server_port}/v1/", key="secret-1"))["q"]
        httpd.shutdown()
    assert answer == Answer({"status": 200, "models": ["m"]})
    assert seen[0] == "Bearer secret-1"
    assert "webrl_lite.probes" in seen[1] and "secret-1" not in seen[1]


# Served models ------------------------------------------------------------------------------------------------------


def test_a_configuration_without_servers_asks_none():
    assert [check.ok for check in doctor.server_checks(TINY, {})] == [None, None]
    assert set(doctor.questions(TINY)) == {"torch", "imports", "browser", "sites"}
    assert set(doctor.questions(preset("miniwob"))) == {"torch", "imports", "browser"}


def test_each_configured_server_is_asked_with_its_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "env-key")
    config = replace(
        TINY,
        llm=LlmConfig(model="m", base_url="http://127.0.0.1:1/v1"),
        rollout=replace(TINY.rollout, base_url="http://127.0.0.1:2/v1"),
    )
    asked = doctor.questions(config)
    assert asked["llm.base_url"].arguments == {"url": "http://127.0.0.1:1/v1", "key": "env-key"}
    assert asked["rollout.base_url"].arguments == {"url": "http://127.0.0.1:2/v1", "key": "env-key"}


def test_the_generator_decides_whether_a_server_is_asked():
    """``offline`` asks none, whatever the address; ``llm`` without one means OpenAI's own, which needs a key."""
    config = replace(TINY, llm=LlmConfig(base_url="http://127.0.0.1:1/v1"))
    offline = replace(config, curriculum=replace(TINY.curriculum, generator="offline"))
    own = replace(TINY, curriculum=replace(TINY.curriculum, generator="llm"))
    assert "llm.base_url" in doctor.questions(config)
    assert "llm.base_url" not in doctor.questions(offline)
    assert "llm.base_url" not in doctor.questions(own)
    check = doctor.server_checks(own, {})[0]
    assert check.ok is False and check.todo.startswith("Set OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("answer", "ok", "says"),
    [
        (Answer({"status": 200, "models": ["m", "n"]}), True, "has m"),
        (Answer({"status": 200, "models": ["my-model"]}), False, "Use --llm.model my-model, or load m"),
        (Answer({"status": 200, "models": []}), False, "Load m into the server."),
        (Answer({"status": 404, "models": None}), True, "lists no models, so m is not checked"),
        (Answer({"status": 401, "models": None}), False, "Set OPENAI_API_KEY"),
        (Answer({"status": 503, "models": None}), False, "Look at the server's log."),
        (Answer(fault="URLError: refused"), False, "Start a server there, or correct --llm.base_url."),
    ],
)
def test_what_a_server_says_of_its_models(answer, ok, says):
    check = doctor.server_check("llm.base_url", "http://127.0.0.1:1/v1", "m", answer)
    assert check.ok is ok
    assert says in f"{check.found} {check.todo}"


def test_nobody_listening_is_said_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        answer = ask(question(url))["q"]
    assert "Connection refused" in answer.fault


# Packages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "pin", "holds"),
    [
        ("2.13.0+cpu", "==2.13.0", True),
        ("2.13.1", "==2.13.0", False),
        ("5.24", ">=5.24.0", True),
        ("5.9", ">=5.24", False),
        ("10.0", ">=9.5", True),
        ("3.1.0rc1", ">=3.1", False),
        ("3.1.0.post1", ">=3.1", True),
        ("3.2", ">=3.1,<3.2", False),
        ("1.0", "", True),
        ("1.0", "===1.0", False),  # not read here, so not called fine
    ],
)
def test_versions_are_compared_by_their_numbers(version, pin, holds):
    assert doctor.satisfies(version, pin) is holds


def test_requirements_are_read_with_their_pins_and_what_is_for_the_tests(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("# words\ntorch==2.13.0   # losses\nhttpx[http2] >= 1.0\nflask\n\n# For the tests\npytest>=8.3\n")
    assert doctor.requirements(path) == [
        Requirement("torch", "==2.13.0", False),
        Requirement("httpx", ">=1.0", False),
        Requirement("flask", "", False),
        Requirement("pytest", ">=8.3", True),
    ]


def test_every_line_of_the_kits_own_requirements_is_read():
    lines = [line for line in doctor.REQUIREMENTS.read_text().splitlines() if line.strip() and line[0] != "#"]
    assert len(doctor.requirements(doctor.REQUIREMENTS)) == len(lines)


@pytest.mark.parametrize(
    ("config", "wanted", "version", "ok"),
    [
        (TINY, Requirement("torch", "==2.13.0", False), "2.13.0+cpu", True),
        (TINY, Requirement("torch", "==2.13.0", False), None, False),
        (TINY, Requirement("torch", "==2.13.0", False), "2.12.0", False),
        (TINY, Requirement("bitsandbytes", ">=0.50", False), None, None),
        (LARGE, Requirement("bitsandbytes", ">=0.50", False), None, False),
        (TINY, Requirement("openai", ">=3", False), None, None),
        (
            replace(TINY, llm=LlmConfig(base_url="http://127.0.0.1:1/v1")),
            Requirement("openai", ">=3", False),
            None,
            False,
        ),
        (TINY, Requirement("pytest", ">=8", True), None, None),
    ],
)
def test_a_package_fails_only_where_it_is_needed(config, wanted, version, ok):
    check = doctor.package_check(config, wanted, version)
    assert check.ok is ok
    assert ok is not False or f'pip install "{wanted.name}{wanted.pin}"' in check.todo


def test_an_old_python_is_told_what_to_make():
    assert doctor.python_check((3, 11, 2)).ok
    assert "python3.11 -m venv" in doctor.python_check((3, 10, 14)).todo


# Where the model runs -----------------------------------------------------------------------------------------------


def test_a_cpu_is_enough_for_the_tiny_model_and_not_for_8b(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert doctor.torch_check(TINY, CPU).ok
    check = doctor.torch_check(LARGE, CPU)
    assert (check.ok, check.todo) == (False, "Use a machine with an NVIDIA GPU, or --preset tiny.")


def test_a_build_for_the_cpu_beside_a_driver_is_named(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    check = doctor.torch_check(LARGE, CPU)
    assert check.todo == "Install the CUDA build of torch 2.13.0 (see pytorch.org)."
    assert "though a driver is installed" in doctor.torch_check(TINY, CPU).found


def test_a_gpu_is_named_with_its_memory():
    check = doctor.torch_check(LARGE, GPU)
    assert check.ok
    assert check.found == "2.13.0+cu128, CUDA 12.8; NVIDIA RTX 4090 24 GiB; bfloat16"


def test_a_gpu_without_bfloat16_or_with_wrong_results_fails():
    old = Answer({**GPU.values, "bfloat16": False})
    assert "--model.dtype float32" in doctor.torch_check(LARGE, old).todo
    broken = Answer({**GPU.values, "cards": [{**CARD, "works": False}]})
    assert "CUDA_VISIBLE_DEVICES" in doctor.torch_check(LARGE, broken).todo


def test_four_bits_must_come_back():
    good, bad = (Answer({"device": "cpu", "error": error}) for error in (0.09, float("nan")))
    assert [doctor.nf4_check(LARGE, one).ok for one in (good, bad, Answer(fault="ImportError: x"))] == [
        True,
        False,
        False,
    ]
    assert doctor.nf4_check(TINY, Answer()).ok is None


def test_the_planner_says_whether_a_gpu_holds_the_run():
    """24 GiB hold five streams of 8,192 tokens of the 8B model, and no 9 of them."""
    assert doctor.memory_check(LARGE, GPU, 64 * GIB).ok
    wide = replace(LARGE, rollout=replace(LARGE.rollout, environments=12))
    check = doctor.memory_check(wide, GPU, 64 * GIB)
    assert check.ok is False
    assert check.todo.startswith("Use --rollout.environments ")


def test_a_micro_batch_that_is_too_large_is_named():
    """24 GiB hold two rows of 8,192 tokens in training: 16,384."""
    wide = replace(LARGE, actor=replace(LARGE.actor, tokens_per_micro_batch=65536))
    assert doctor.memory_check(wide, GPU, 64 * GIB).todo == "Use --actor.tokens_per_micro_batch 16384."


def test_a_laptop_holds_the_tiny_run_and_two_gigabytes_do_not():
    assert doctor.memory_check(TINY, CPU, 8 * GIB).ok
    assert doctor.memory_check(TINY, CPU, 2 * GIB).ok is False


def test_a_model_for_a_gpu_is_not_planned_without_one():
    assert doctor.memory_check(LARGE, CPU, 8 * GIB).ok is None


def test_cores_and_memory_of_this_machine_are_numbers():
    assert doctor.cores() >= 1
    assert doctor.memory_bytes() > GIB / 4
    assert [doctor.cores_check(number).ok for number in (1, 2)] == [False, True]


def test_a_containers_limits_count(monkeypatch):
    limits = {"cpu.max": "150000 100000", "memory.max": str(GIB)}
    monkeypatch.setattr(doctor, "_limit", limits.get)
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    assert (doctor.cores(), doctor.memory_bytes()) == (2, GIB)
    monkeypatch.setattr(doctor, "_limit", lambda name: "max 100000" if name == "cpu.max" else "max")
    assert doctor.cores() == 64


# The web and the disk -----------------------------------------------------------------------------------------------


def test_a_missing_browser_is_told_how_to_get():
    check = doctor.browser_check(Answer(fault="BrowserError: No Chromium or Chrome was found."))
    assert check.todo.startswith("python -m webrl_lite.browser install, or set WEBRL_LITE_CHROMIUM")


def test_how_the_browser_was_found_is_said(monkeypatch):
    monkeypatch.delenv("WEBRL_LITE_CHROMIUM", raising=False)
    answer = Answer({"path": "/usr/bin/chromium", "read": True, "seconds": 1.2})
    assert doctor.browser_check(answer).found == "/usr/bin/chromium (found on this machine), a page in 1.2 s"
    monkeypatch.setenv("WEBRL_LITE_CHROMIUM", "/usr/bin/chromium")
    assert "(by WEBRL_LITE_CHROMIUM)" in doctor.browser_check(answer).found
    assert doctor.browser_check(Answer({**answer.values, "read": False})).ok is False


@pytest.mark.parametrize(("status", "ok"), [(200, True), (302, True), (404, False), (500, False)])
def test_the_sites_must_answer(status, ok):
    assert doctor.sites_check(Answer({"status": status, "tasks": 9, "seconds": 1.0})).ok is ok


def test_the_pages_of_miniwob_are_looked_for_where_they_are_played(monkeypatch):
    monkeypatch.setattr(miniwob, "pages", lambda: Path("/somewhere/html"))
    found = doctor.environment_checks(preset("miniwob"), Answer(fault="not of interest"))
    assert found == [Check("pages", True, "MiniWoB++ in /somewhere/html")]

    def missing():
        raise miniwob.MiniwobError("`miniwob` is not installed.")

    monkeypatch.setattr(miniwob, "pages", missing)
    (check,) = doctor.environment_checks(preset("miniwob"), Answer(fault="not of interest"))
    assert (check.ok, check.todo) == (False, "pip install --no-deps miniwob")


def test_hosted_sites_are_asked_where_webarena_is_played(monkeypatch):
    """One site answers, one is down, the others are not hosted."""
    config = replace(TINY, env=EnvConfig(name="webarena_lite"))
    for site in webarena_sites.SITES:
        monkeypatch.delenv(site.upper(), raising=False)
        monkeypatch.delenv(f"WA_{site.upper()}", raising=False)
    (check,) = doctor.environment_checks(config, Answer())
    assert check.ok is False
    assert check.todo == "Host WebArena and set SHOPPING, SHOPPING_ADMIN, REDDIT, GITLAB, MAP, WIKIPEDIA, some or all."
    monkeypatch.setenv("SHOPPING", "here")
    (check,) = doctor.environment_checks(config, Answer())
    assert check.ok is False and "SHOPPING" in check.found

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        monkeypatch.setenv("SHOPPING", f"http://127.0.0.1:{httpd.server_port}")
        monkeypatch.setenv("REDDIT", "http://127.0.0.1:1")
        found = {check.name: check for check in doctor.environment_checks(config, Answer())}
        httpd.shutdown()
    assert {name: check.ok for name, check in found.items()} == {
        "site shopping": True,
        "site shopping_admin": None,
        "site reddit": False,
        "site gitlab": None,
        "site map": None,
        "site wikipedia": None,
        "site homepage": None,
    }
    assert found["site reddit"].todo == "Start the site, or set REDDIT to where it is."


def test_a_free_port_is_found():
    assert doctor.port_check().ok


def test_a_folder_is_tried_and_not_made(tmp_path):
    out = tmp_path / "a" / "b"
    assert doctor.folder_check(out) == Check("folder", True, f"{out} can be written to")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_files_is_said(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert doctor.folder_check(tmp_path).found.endswith("it holds files already")


def test_a_file_where_a_folder_is_due_fails(tmp_path):
    """CLI-06."""
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        check = doctor.folder_check(out)
        assert (check.ok, check.found) == (False, f"{tmp_path / 'file'} is a file")


def test_a_folder_without_permission_fails(tmp_path, monkeypatch):
    def refuse(**options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert doctor.folder_check(tmp_path).todo == f"Make {tmp_path} writable, or choose another --out."


def test_a_full_disk_is_told_how_much_to_free(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 0})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    check = doctor.disk_check(replace(LARGE, out=str(tmp_path)))
    assert check.ok is False
    assert check.todo.startswith("Free ")


def test_what_a_run_writes_is_counted_by_preset():
    """gpu24: 5.3 GB.

    Adapters of 41.9 M weights are 168 MB; 2 + 16 + 6 of them 4.03 GB. A phase of 128 tasks has 1,024 steps: rollouts of
    2 x (4 x 2,250 + 1,000) bytes each, 20 MB, and 3 rows of 2 x 7 x 2,250 bytes, 97 MB; nine times 1.06 GB. Sites and
    browser 0.21 GB.
    """
    assert doctor.run_bytes(LARGE, doctor.shape_of(LARGE.model)) == pytest.approx(5.30e9, rel=0.01)


# The model ----------------------------------------------------------------------------------------------------------


def test_the_tiny_model_is_in_the_package():
    assert doctor.model_check(TINY) == Check("model", True, "tiny, in the package")


def whole(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_text("{}")
    return folder


def test_a_folder_with_a_model_is_fine(tmp_path):
    assert doctor.model_check(model(str(whole(tmp_path / "model")))).ok


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("config.json", "config.json is missing"),
        ("model.safetensors", "no weights"),
        ("tokenizer.json", "no tokenizer"),
    ],
)
def test_what_a_models_folder_lacks_is_named(tmp_path, missing, says):
    """CLI-06: wrong folder."""
    (whole(tmp_path / "model") / missing).unlink()
    check = doctor.model_check(model(str(tmp_path / "model")))
    assert check.ok is False and says in check.found and check.todo.startswith("Correct --model.name")


def test_a_file_of_weights_that_the_index_names_is_missed(tmp_path):
    folder = whole(tmp_path / "model")
    weights = '{"weight_map": {"a": "model.safetensors", "b": "other.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(weights)
    assert "1 of 2 files of weights are missing, such as other" in doctor.model_check(model(str(folder))).found
    (folder / "model.safetensors.index.json").write_text("[]")
    assert "cannot be read" in doctor.model_check(model(str(folder))).found


@pytest.mark.parametrize("name", ["./nowhere", "/no/where/at all", "a/b/c", "tinny"])
def test_a_path_that_is_not_there_is_no_name_on_the_hub(name):
    check = doctor.model_check(model(name))
    assert check.ok is False and "is not there" in check.found


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model.bin").write_text("")
    assert "is a file, not a folder" in doctor.model_check(model(str(tmp_path / "model.bin"))).found


def test_a_tilde_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doctor.model_check(model("~/model")).todo == f"Use --model.name {tmp_path / 'model'}."


def test_a_gguf_file_must_be_in_its_folder(tmp_path):
    (tmp_path / "a.gguf").write_text("")
    assert doctor.model_check(model(str(tmp_path), gguf_file="a.gguf")).ok
    assert "b.gguf is missing" in doctor.model_check(model(str(tmp_path), gguf_file="b.gguf")).found


def test_a_model_in_the_hubs_cache_is_fine_without_a_token(tmp_path):
    root = tmp_path / "cache" / "hub" / "models--meta-llama--Llama-3.1-8B-Instruct"
    whole(root / "snapshots" / "abc")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("abc")
    assert doctor.model_check(LARGE).found == "meta-llama/Llama-3.1-8B-Instruct, in the local cache"
    (root / "snapshots" / "abc" / "model.safetensors").unlink()
    assert "in part in the local cache (no weights" in doctor.model_check(LARGE).found


def test_a_model_behind_a_licence_needs_a_token(monkeypatch):
    check = doctor.model_check(LARGE)
    assert check.ok is False and "no token is set" in check.found and "hf auth login" in check.todo
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 99 * GIB}))
    check = doctor.model_check(LARGE)
    assert check.ok and "downloads about 15.0 GiB, 99.0 are free" in check.found
    assert "hf_x" not in check.found


def test_a_download_that_does_not_fit_fails(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: type("Usage", (), {"free": GIB}))
    assert "set HF_HOME" in doctor.model_check(LARGE).todo


def test_an_open_model_may_be_downloaded_but_not_offline(monkeypatch):
    assert doctor.model_check(preset("small")).ok
    assert doctor.model_check(model("someone/something")).ok
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert doctor.model_check(model("someone/something")).todo.startswith("Unset HF_HUB_OFFLINE")
