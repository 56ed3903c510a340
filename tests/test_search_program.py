"""A program that searches is asked over a pipe; whatever it does wrong is told, and ends it."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from small_index import Small, program_service

from vrag_kit.errors import VragError
from vrag_kit.retrieval import Program, ProgramService, cached
from vrag_kit.types import Query


def running(service: ProgramService) -> bool:
    return service._running is not None


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("dies", "ended with the exit status 3. Its last words: out of memory"),
        ("is slow", "was silent for 5 seconds"),
        ("prints", "said b'Loading the index .*expected one JSON object a line"),
        ("cannot", "no answer to query 'q1': \"KeyError: 'Heron'\""),
        ("another split", "at 'https://elsewhere.org', .* the index of another split"),
        ("unknown", "found 'kg-99' .* the 4 documents here do not hold"),
        ("no score", "expected doc_id and score"),
        ("not a number", "with the score nan"),
        ("out of turn", "no answer to query 'q1'"),
    ],
)
def test_a_program_that_misbehaves_is_named_ended_and_started_anew(
    fault: str, message: str, small: Small
) -> None:
    wait = 5 if fault == "is slow" else 300
    service = program_service(small, "text", fault, reply_s=wait)
    queries = small.queries()
    with pytest.raises(VragError, match=f"(?s)search by program: the program .*{message}"):
        service.search(queries, 2)
    assert not running(service)
    assert len(service.search(queries[:1], 2)) == 2
    service.close()
    assert not running(service)


def test_a_program_that_cannot_start_or_is_never_ready_is_named(small: Small) -> None:
    missing = Program(command=("/no/such/program",))
    with pytest.raises(VragError, match=r"'/no/such/program' cannot be started \(No such file"):
        ProgramService("official", missing, small.pages, reads="text").search(small.queries(), 1)
    with pytest.raises(VragError, match=r"exit status 1\. Its last words: no model"):
        program_service(small, "text", "not ready").search(small.queries(), 1)
    asleep = Program(command=(sys.executable, "-c", "import time; time.sleep(60)"), ready_s=0.2)
    with pytest.raises(VragError, match=r"was silent for 0\.2 seconds"):
        ProgramService("official", asleep, small.pages, reads="text").search(small.queries(), 1)


def test_one_program_answers_search_after_search_and_ends_with_its_service(small: Small) -> None:
    service = program_service(small, "text")
    queries = small.queries()
    first = service.search(queries, 2)
    process = service._running._process  # type: ignore[union-attr]
    assert service.search(queries, 2).equals(first)
    assert service._running._process is process  # type: ignore[union-attr]
    assert process.poll() is None
    del service
    gc.collect()
    assert process.poll() is not None


def test_what_a_program_answered_before_it_died_is_not_asked_again(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrag_kit.retrieval.replies.PART", 1)
    queries = small.queries()
    with pytest.raises(VragError, match="exit status 3"):
        cached(program_service(small, "text", "dies"), tmp_path).search(queries, 2)
    again = program_service(small, "text", "dies")
    assert len(cached(again, tmp_path).search(queries[:1], 2)) == 2
    assert not running(again)


def test_a_query_is_sent_as_text_or_as_its_upright_pixels_alone(small: Small) -> None:
    """The program knows only the vectors of these pixels and these words."""
    service = program_service(small, "image")
    for query in small.queries():
        alone = Query(query_id="alone", text="", image=query.image)
        hits = service.search([alone], 1)
        assert hits["doc_id"][0] == f"kg-{query.query_id[1:]}"
    service = program_service(small, "text")
    unknown = replace(small.queries()[0], text="words it does not know")
    with pytest.raises(VragError, match=r"exit status 1\. .*KeyError: 'words it does not know'"):
        service.search([unknown], 1)
