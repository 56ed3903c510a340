"""Several servers of one model: they share the work, the others go on where one dies or
answers wrongly, and the answers are those of one server.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from strange_server import StrangeServer
from worded import worded

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.generation.remote import client as endpoint_client
from vrag_kit.generation.remote.generator import EndpointGenerator
from vrag_kit.judging import judge_answers, load_judge
from vrag_kit.papers.visual_rag.judge import RUBRIC
from vrag_kit.types import Answer, Prompt

TRIAL = "Reply with the word"
PROMPTS = [worded("no_image", f"number {n}?") for n in range(40)]


def connect(*urls: str, **options: Any) -> EndpointGenerator:
    how = {"timeout": 1.5, "retries": 1, "concurrency": 4}
    entry = {"model": f"strange @ [{', '.join(urls)}]", **how, **options}
    generator = load_generator(entry, decoding={"temperature": 0, "max_new_tokens": 16})
    assert isinstance(generator, EndpointGenerator)
    return generator


def ask(model: EndpointGenerator, path: Path, prompts: list[Prompt] = PROMPTS) -> list[Answer]:
    with AnswerStore(path / "a.sqlite") as store:
        return ask_prompts(model, prompts, store)


def all_good(answers: list[Answer]) -> bool:
    return all(answer.failure is None for answer in answers)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    import openai._base_client as client

    monkeypatch.setattr(client, "INITIAL_RETRY_DELAY", 0.02)
    monkeypatch.setattr(client, "MAX_RETRY_DELAY", 0.02)
    monkeypatch.setattr(endpoint_client, "_COOLDOWN", 0.4)
    monkeypatch.setattr(endpoint_client, "_PAUSE", 0.02)


@contextmanager
def server_process(seconds: float, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that can be killed, and its address."""
    code = (
        "import time; from strange_server import StrangeServer\n"
        f"with StrangeServer(seconds={seconds}, port={port}) as s:\n"
        "    print(s.url, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    )
    assert process.stdout is not None
    with closing(process.stdout):
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_servers_share_the_work_and_answer_as_one(tmp_path: Path) -> None:
    with StrangeServer(seconds=0.03) as a, StrangeServer(seconds=0.03) as b:
        (tmp_path / "one").mkdir()
        alone = ask(connect(a.url), tmp_path / "one")
        together = connect(a.url, b.url)
        before = len(a.requests)
        answers = ask(together, tmp_path)
        shares = [len(a.requests) - before - 1, len(b.requests) - 1]  # without the first call
        # known by the same keys, so that a store asks nothing again
        again = ask(together, tmp_path / "one")
    assert sum(shares) == len(PROMPTS)
    assert min(shares) > 10
    assert [each.raw for each in answers] == [each.raw for each in alone]
    assert [each.answer_id for each in answers] == [each.answer_id for each in alone]
    assert again == alone
    assert {each.fields["endpoint"] for each in answers} == {a.url, b.url}


def test_each_gets_the_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY", "tk-Lorem1psum2dolor")
    with StrangeServer(seconds=0.02) as a, StrangeServer(seconds=0.02) as b:
        a.wants = b.wants = {"X-Token": "tk-Lorem1psum2dolor"}
        answers = ask(connect(a.url, b.url, headers={"X-Token": "$GATEWAY"}), tmp_path)
        assert all_good(answers)
    assert {each.fields["endpoint"] for each in answers} == {a.url, b.url}


@pytest.mark.slow
def test_a_slow_server_gets_less(tmp_path: Path) -> None:
    with StrangeServer(seconds=0.3) as slow, StrangeServer(seconds=0.01) as fast:
        assert all_good(ask(connect(slow.url, fast.url), tmp_path))
        assert len(slow.requests) < len(fast.requests) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    ["hang 3", "status 500 oh no", "status 429", "reset", "garbage", "page"],
)
def test_where_one_fails_the_others_go_on_and_it_is_said_once(
    plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StrangeServer({"number": [plan]}) as bad, StrangeServer(seconds=0.02) as good:
        answers = ask(connect(bad.url, good.url), tmp_path)
        assert all_good(answers)
        assert {each.fields["endpoint"] for each in answers} == {good.url}
    printed = capsys.readouterr().out
    assert printed.count(f"{bad.url} fails") == 1
    assert printed.count("it is tried again") == 1
    assert " failed" not in printed


@pytest.mark.slow
def test_one_that_is_killed_in_the_middle_loses_nothing_and_joins_when_it_is_back(
    tmp_path: Path,
) -> None:
    many = [worded("no_image", f"number {n}?") for n in range(250)]
    with StrangeServer(seconds=0.05) as stays, server_process(0.05) as (dies, url):
        model = connect(stays.url, url)
        port = int(re.findall(r":(\d+)/", url)[0])
        served = stays.begin

        def begin(body: dict[str, Any]) -> str:
            if len(stays.requests) == 10:
                dies.kill()
                dies.wait()
            return served(body)

        stays.begin = begin  # type: ignore[method-assign]  # the moment at which the other dies
        assert all_good(ask(model, tmp_path, many[:75]))
        with server_process(0.05, port):
            deadline = time.monotonic() + 30
            answers: list[Answer] = []
            came: set[str] = set()
            while url not in came and time.monotonic() < deadline:
                answers += ask(model, tmp_path, many[75 + len(answers) :][:4])
                came = {each.fields["endpoint"] for each in answers}
                time.sleep(0.1)
            back = ask(model, tmp_path, many[75 + len(answers) :])
    assert all_good([*answers, *back])
    assert len([*answers, *back]) == 175
    assert {each.fields["endpoint"] for each in back} == {url, stays.url}


@pytest.mark.slow
def test_where_one_has_died_an_error_of_the_other_is_tried_again_there(tmp_path: Path) -> None:
    hiccups = {f"number {n}?": ["status 500 oh no"] * 2 + ["good"] for n in range(20, 40)}
    with StrangeServer(hiccups, seconds=0.05) as stays, server_process(0.05) as (dies, url):
        model = connect(url, stays.url, retries=2)
        assert all_good(ask(model, tmp_path, PROMPTS[:20]))
        dies.kill()
        dies.wait()
        assert all_good(ask(model, tmp_path, PROMPTS[20:]))


@pytest.mark.slow
def test_one_that_is_not_there_at_the_beginning_is_done_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StrangeServer() as gone:
        pass
    with StrangeServer() as good, StrangeServer({TRIAL: ["hang 3"]}) as hangs:
        assert all_good(ask(connect(gone.url, good.url, hangs.url), tmp_path))
    printed = capsys.readouterr().out
    for url in (gone.url, hangs.url):
        assert len(re.findall(f"{url}.* left out", printed)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    ["page", "status 404 no such model", "status 401 no", "status 400 what", "choiceless"],
)
def test_one_that_answers_wrongly_from_the_first_call_on_is_left_out(
    plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        StrangeServer({TRIAL: [plan], "number": [plan]}) as bad,
        StrangeServer(seconds=0.02) as good,
    ):
        answers = ask(connect(bad.url, good.url), tmp_path)
        assert all_good(answers)
        assert {each.fields["endpoint"] for each in answers} == {good.url}
    printed = capsys.readouterr().out
    assert len(re.findall(f"{bad.url}.* left out", printed)) == 1


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("page", "does not answer as an OpenAI-compatible endpoint does"),
        ("status 404 no such model", "there is no model 'strange', or the URL is wrong"),
    ],
)
def test_where_all_answer_wrongly_the_reason_is_the_error(
    plan: str, words: str, tmp_path: Path
) -> None:
    with (
        StrangeServer({TRIAL: [plan], "number": [plan]}) as a,
        StrangeServer({TRIAL: [plan], "number": [plan]}) as b,
        pytest.raises(VragError, match=words),
    ):
        ask(connect(a.url, b.url), tmp_path)


def test_where_none_answers_it_is_said_as_of_one(tmp_path: Path) -> None:
    with StrangeServer() as a, StrangeServer() as b:
        pass
    with pytest.raises(VragError, match=rf"Connection error.*{a.url}.*{b.url}"):
        ask(connect(a.url, b.url), tmp_path)


def test_where_all_die_in_the_middle_the_run_stops(tmp_path: Path) -> None:
    plans = {"number": ["status 500 gone"]}
    with (
        StrangeServer(plans) as a,
        StrangeServer(plans) as b,
        pytest.raises(VragError, match=f"11 calls in a row have failed.*When {a.url}, {b.url} ans"),
    ):
        ask(connect(a.url, b.url, retries=0), tmp_path)


def test_what_a_question_is_refused_for_is_no_fault_of_a_server(tmp_path: Path) -> None:
    plans = {"number 7?": ["status 400 against our content policy"]}
    with StrangeServer(plans) as a, StrangeServer(plans) as b:
        answers = ask(connect(a.url, b.url), tmp_path)
        assert a.calls("number 7?") + b.calls("number 7?") == 1
        assert [each.status for each in answers if each.failure] == ["refused"]


def test_servers_of_different_models_are_refused_at_the_beginning(tmp_path: Path) -> None:
    with StrangeServer() as a, StrangeServer() as b:
        b.serves = "another"
        with pytest.raises(VragError, match=r"another and strange-2026.*`name`"):
            ask(connect(a.url, b.url), tmp_path)


def test_one_that_no_longer_accepts_the_key_stops_the_run(tmp_path: Path) -> None:
    with (
        StrangeServer({"number": ["status 401 revoked"]}) as bad,
        StrangeServer(seconds=0.02) as good,
        pytest.raises(VragError, match=rf"not accepted: {bad.url} says 'revoked'"),
    ):
        ask(connect(bad.url, good.url), tmp_path)


def test_a_parameter_file_names_them_as_a_list(tmp_path: Path) -> None:
    written = "models:\n  - model: org/m @ [http://a:1/v1, http://b:2/v1/]\n    server: vllm\n"
    (entry,) = yaml.safe_load(written)["models"]
    several_ = load_generator(entry, decoding={"temperature": 0})
    alone = load_generator({**entry, "model": "org/m@http://c:3/v1"}, decoding={"temperature": 0})
    assert several_.fingerprint == alone.fingerprint
    assert several_.sent["endpoint"] == "http://a:1/v1, http://b:2/v1"


def test_a_judge_may_have_several(
    write_annotations: Callable[..., Path], tree: Path, tmp_path: Path
) -> None:
    benchmark = load_visual_rag(write_annotations({"answer": ["black"]}), tree)
    (query_id,) = benchmark.queries
    rows = [{"query_id": query_id, "answer": f"color {n}", "answer_id": str(n)} for n in range(12)]
    answers = pd.DataFrame(rows).assign(status="ok", detail="")
    verdict = {"Student Answer": ["say Score: 0.5"]}
    with StrangeServer(verdict, seconds=0.05) as a, StrangeServer(verdict, seconds=0.05) as b:
        entry = {"model": f"judge@[{a.url}, {b.url}]", "decoding": {"temperature": 0}}
        judged = judge_answers(load_judge(entry, tmp_path, rubric=RUBRIC), benchmark, answers)
        assert list(judged["score"]) == [0.5] * 12
        assert min(a.calls("color"), b.calls("color")) > 2
