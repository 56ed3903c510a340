"""What a run tells of models that failed, in which no secret is; and that nothing lives on
when it ends, whatever ends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path

import psutil
import pytest
from strange_server import StrangeServer
from test_runner import P, as_in_a_terminal, here, notebook, project, said

from vrag_kit.runner.plan import read_plan
from vrag_kit.runner.run import plan_tasks

__all__ = ["here", "project"]
ASKING = """from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.types import Message
with AnswerStore("runs/answers.sqlite") as store:
    for entry in models:
        prompts = [(Message(role="user", parts=(f"{entry['name']} {n}?",)),) for n in range(3)]
        ask_prompts(load_generator(entry), prompts, store)"""
JUDGING = """import pandas as pd
from vrag_kit.judging import judge_answers, load_judge
from vrag_kit.papers.visual_rag.judge import RUBRIC
from vrag_kit.types import Benchmark, Query
query = Query(query_id="q", text="Which colour?", answers=("red",))
one = Benchmark(name="b", fingerprint="f", queries={"q": query}, corpus={}, qrels={})
said = {"query_id": "q", "answer": ["zinnober", "karmin"], "status": "ok", "detail": ""}
judged = judge_answers(load_judge(judge, ".", rubric=RUBRIC), one, pd.DataFrame(said))"""
UNJUDGED = (
    "1 of 2 times, as by error: HTTP 503: busy. Calls that failed are asked again with"
    " `retry_failures: true` in `hardware`"
)
SECRET = "tk-Lorem1psum2dolor"


@pytest.mark.slow
def test_a_model_that_answered_nothing_and_lost_verdicts_are_told_and_a_header_is_in_no_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = here / "notebooks" / "guide" / "01_one.ipynb"
    notebook(book, "models = []\njudge = 'rule'\nk = 1", ASKING, JUDGING)
    plans = {"zinnober": ["say Score: 1"], "karmin": ["status 503 busy"]}
    monkeypatch.delenv("GATEWAY", raising=False)
    with StrangeServer({**plans, "bad": [f"status 500 {SECRET}"]}) as server:
        server.wants = {"X-Token": f"Bearer {SECRET}"}
        how = "decoding: {temperature: 0}, retries: 0, headers: {X-Token: Bearer $GATEWAY}"
        good, bad, strict = (
            f"{{model: '{name}@{server.url}', name: {name}, {how}}}"
            for name in ("good", "bad", "strict")
        )
        (here / P).write_text(f"models: [{good}, {bad}]\njudge: {strict}\n", encoding="utf-8")
        status, checked = said("check", P, "--only", "01")
        assert status == 1
        for name in ("models: model 'good'", "models: model 'bad'", "judge: model 'strict'"):
            assert f"missing: {name}: the key for {server.url} is not in" in checked
        assert checked.count("`export GATEWAY=…`") == 3
        assert server.requests == []
        monkeypatch.setenv("GATEWAY", SECRET)
        runs = [said("run", P, "--only", "01") for _ in range(2)]
    for (status, told), state in zip(runs, ("done", "unchanged"), strict=True):
        line = told.splitlines()[-1]
        assert (status, f"guide/01_one  {state}" in line) == (0, True), told
        assert "EVERY ANSWER OF 'bad' FAILED, 3 times, as by error: HTTP 500: …" in line
        assert f"VERDICTS OF 'strict' FAILED, {UNJUDGED}" in line
        assert "'good'" not in line
    _, reported = said("report", P)
    page = (here / "runs/guide/p/report.html").read_text(encoding="utf-8")
    note = "EVERY ANSWER OF 'bad' FAILED, 3 times, as by error: HTTP 500: …"
    assert f"guide/01_one: {note}" in reported
    assert f"VERDICTS OF 'strict' FAILED, {UNJUDGED}" in reported
    assert f'<p class="note">{note}' in unescape(page)
    files = [file for file in here.rglob("*") if file.is_file()]
    assert {"answers.sqlite", "01_one.ipynb", "01_one.parameters.yaml", "01_one.log"} <= {
        file.name for file in files
    }
    secret = SECRET[3:]
    assert [file for file in files if secret.encode() in file.read_bytes()] == []
    assert secret not in f"{checked}{runs}{reported}"


LONG = """import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
pathlib.Path("child-of-{}").write_text(str(child.pid))
time.sleep(300)"""


def start(
    project: Path, stems: Sequence[str], *options: str
) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A runner that is at these notebooks, and all that it has started: for each papermill,
    a kernel and its child.
    """
    for stem in stems:
        notebook(project / "notebooks" / "guide" / f"{stem}.ipynb", "k = 1", LONG.format(stem))
    runner = subprocess.Popen(
        [sys.executable, "-m", "vrag_kit.runner", "run", P, *options],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=as_in_a_terminal,
        start_new_session=True,
    )
    for stem in stems:
        assert soon((project / f"child-of-{stem}").exists), "it did not begin"
    below = psutil.Process(runner.pid).children(recursive=True)
    assert len(below) >= 3 * len(stems)
    return runner, below


@pytest.fixture
def connections(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Of which notebooks connection files of kernels lie there, be it where programs put
    what is temporary.
    """
    (project / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project / "tmp"))

    def found() -> list[str]:
        files = project.rglob("tmp*.json")
        return sorted(file.parent.relative_to(project).as_posix() for file in files)

    return found


def of(*stems: str) -> list[str]:
    return [f"runs/guide/p/guide/{stem}.kernel" for stem in stems]


def soon(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 90
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return true()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals"),
]


@pytest.mark.slow
def test_a_runner_that_is_killed_leaves_nothing_that_it_started(
    project: Path, connections: Callable[[], list[str]]
) -> None:
    """`timing/kills.py` kills runners, papermills and kernels by each of three signals."""
    runner, below = start(project, ["01_one"], "--only", "01")
    assert connections() == of("01_one")
    runner.kill()
    told, _ = runner.communicate(timeout=90)
    assert soon(lambda: not any(map(psutil.Process.is_running, below))), below
    assert "died" not in told
    assert soon(lambda: not connections())


@pytest.mark.slow
def test_each_process_below_the_runner_may_be_killed_alone_and_then_the_runner_be_ended(
    project: Path, connections: Callable[[], list[str]]
) -> None:
    stems = ["01_one", "02_two", "03_three"]
    left = project / "runs" / "guide" / "p" / "guide" / "02_two.kernel"
    left.mkdir(parents=True)
    (left / "tmpold.json").write_text("{}", encoding="utf-8")  # of a run that was killed whole
    runner, below = start(project, stems, "--jobs", "3")
    assert connections() == of(*stems)
    papermills = {}
    for each in psutil.Process(runner.pid).children():
        (stem,) = [stem for stem in stems if stem in " ".join(each.cmdline())]
        papermills[stem] = each
    papermills["01_one"].terminate()
    papermills["02_two"].children()[0].send_signal(signal.SIGHUP)  # its kernel
    told = ""
    while told.count("] FAILED: ") < 2 and (line := runner.stdout.readline()):
        told += line
    assert connections() == of("03_three")
    runner.terminate()
    told += runner.communicate(timeout=90)[0]
    assert runner.returncode == 128 + signal.SIGTERM
    assert soon(lambda: not any(map(psutil.Process.is_running, below))), below
    assert soon(lambda: not connections())
    cell = "cell 2 `import pathlib, subprocess, sys, time`: "
    assert f"[guide/01_one] FAILED: {cell}papermill was killed by signal 15" in told
    assert f"[guide/02_two] FAILED: {cell}the kernel died" in told
    assert "[guide/03_three] FAILED" not in told


@pytest.mark.slow
def test_what_was_finished_before_ctrl_c_is_not_run_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, below = start(project, ["02_two"], "--jobs", "1")
    os.killpg(runner.pid, signal.SIGINT)  # as Ctrl-C does
    told, _ = runner.communicate(timeout=90)
    assert soon(lambda: not any(map(psutil.Process.is_running, below))), below
    assert (runner.returncode, "interrupted: run the same command" in told) == (130, True)
    assert "died" not in told
    monkeypatch.chdir(project)
    one, two = plan_tasks(read_plan(Path(P)))
    assert (one.is_finished(), two.is_finished()) == (True, False)
