"""The annotation log: any actions fold as a slow obvious model says, a crash loses only
the line in flight, panels never overwrite each other, bad lines are named.
"""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vrag_kit.building.annotations import FORMAT, AnnotationWriter, Vote, read_annotation_log
from vrag_kit.errors import VragError

WORDS = {
    "species": "Branta leucopsis",
    "folder": "goose",
    "question": "Which feet?",
    "feature": "feet",
}
HEADER = json.dumps({"annotator": "Ada", "format": FORMAT}) + "\n"
OPENED = json.dumps({"event": "opened", "question_id": "q", **WORDS}) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> AnnotationWriter:
    """A log in which one question is open, with three images on the screen."""
    file = AnnotationWriter(tmp_path / "new" / "ada.jsonl", "Ada")
    file.append("q", "opened", WORDS)
    file.append("q", "seen", {"images": ["a", "b", "c"], "unreadable": ["d"]})
    return file


def test_a_vote_says_clue_or_not_of_the_images_shown_once_the_question_is_done(
    log: AnnotationWriter,
) -> None:
    log.append("q", "ticked", {"image": "b"})
    log.append("q", "answered", {"text": "black"})
    assert log.log.votes["q"] == Vote(
        "q", *WORDS.values(), ("a", "b", "c"), frozenset("b"), "black", "", "open", frozenset("d")
    )
    assert log.log.votes["q"].labels == {}
    log.append("q", "done", {"shown": 3, "clues": 1})
    assert read_annotation_log(log.path).votes["q"].labels == {"a": 0, "b": 1, "c": 0}
    log.append("q", "reopened")
    assert read_annotation_log(log.path).votes["q"].status == "open"


def test_an_image_that_could_be_shown_later_counts_as_shown(log: AnnotationWriter) -> None:
    log.append("q", "seen", {"images": ["d"], "unreadable": ["a"]})
    vote = log.log.votes["q"]
    assert (vote.shown, vote.unreadable) == (("a", "b", "c", "d"), frozenset())


def test_every_action_is_a_line_with_its_time_and_the_first_one_names_the_annotator(
    log: AnnotationWriter,
) -> None:
    first, *lines = map(json.loads, log.path.read_text(encoding="utf-8").splitlines())
    assert first == {"annotator": "Ada", "format": FORMAT}
    assert [line["event"] for line in lines] == ["opened", "seen"]
    assert all(line["time"].endswith("+00:00") for line in lines)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("seen"),
            st.fixed_dictionaries(
                {
                    "images": st.lists(st.sampled_from("abc")),
                    "unreadable": st.lists(st.sampled_from("abc")),
                }
            ),
        ),
        st.tuples(
            st.sampled_from(["ticked", "unticked"]),
            st.fixed_dictionaries({"image": st.sampled_from("abc")}),
        ),
        st.tuples(
            st.sampled_from(["answered", "suggested"]),
            st.fixed_dictionaries(
                {"text": st.text(st.characters(exclude_categories=["Cs"]), max_size=5)}
            ),
        ),
        st.tuples(st.sampled_from(["done", "skipped"]), st.just({"shown": 1, "clues": 1})),
        st.tuples(st.just("reopened"), st.just({})),
    ),
    max_size=12,
)


def obvious(actions: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What a question's vote holds after these actions, said in another way: by looking
    back for the last word on each thing.
    """

    def last(*events: str) -> tuple[str, dict[str, Any]]:
        return next(
            ((event, fields) for event, fields in reversed(actions) if event in events), ("", {})
        )

    shown = list(
        dict.fromkeys(
            image for event, fields in actions if event == "seen" for image in fields["images"]
        )
    )
    missed = {
        image for event, fields in actions if event == "seen" for image in fields["unreadable"]
    } - set(shown)
    ticks = {
        image: [event for event, fields in actions if fields.get("image") == image]
        for image in "abc"
    }
    return {
        "shown": tuple(shown),
        "unreadable": missed,
        "clues": {image for image in "abc" if ticks[image][-1:] == ["ticked"]},
        "answer": last("answered")[1].get("text", ""),
        "suggestion": last("suggested")[1].get("text", ""),
        "status": (
            {"done": "done", "skipped": "skipped"}.get(
                last("done", "skipped", "reopened")[0], "open"
            )
        ),
    }


def possible(actions: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Those actions that tick nothing unseen."""
    kept, shown = [], set()
    for event, fields in actions:
        shown |= set(fields.get("images", ()))
        kept += [(event, fields)] if event != "ticked" or fields["image"] in shown else []
    return kept


@given(ACTIONS)
@example(
    [
        ("seen", {"images": ["a"], "unreadable": []}),
        ("ticked", {"image": "a"}),
        ("unticked", {"image": "a"}),
    ]
)
@settings(max_examples=60, deadline=None)
def test_any_actions_fold_as_the_slow_obvious_model_says(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, dict[str, Any]]]
) -> None:
    file = AnnotationWriter(tmp_path_factory.mktemp("log") / "ada.jsonl", "Ada")
    file.append("q", "opened", WORDS)
    for event, fields in possible(actions):
        file.append("q", event, fields)
    for vote in (file.log.votes["q"], read_annotation_log(file.path).votes["q"]):
        assert {name: getattr(vote, name) for name in obvious([])} == obvious(possible(actions))


def test_an_action_that_makes_no_sense_is_refused_and_not_written(log: AnnotationWriter) -> None:
    before = log.path.read_bytes()
    for question_id, event, fields, message in [
        ("q", "ticked", {"image": "z"}, "a tick of 'z', which was not on the screen before"),
        ("r", "done", {"shown": 1, "clues": 0}, "the question 'r', which was not opened before"),
        ("q", "answered", {}, "text = None in the event 'answered', which is no str"),
    ]:
        with pytest.raises(VragError, match=message):
            log.append(question_id, event, fields)
    assert log.path.read_bytes() == before


@pytest.mark.slow
def test_a_log_cut_at_any_byte_reads_as_what_was_whole_before_and_goes_on(
    log: AnnotationWriter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.append("q", "ticked", {"image": "b"})
    log.append("q", "answered", {"text": "schwärzlich"})
    data, cut = log.path.read_bytes(), tmp_path / "cut.jsonl"
    for length in range(len(data) + 1):
        cut.write_bytes(data[:length])
        rest = data[:length].split(b"\n")[-1]
        whole = (
            data[:length] if data[length : length + 1] == b"\n" else data[: length - len(rest)]
        )  # a line that lacks but its end is whole
        (tmp_path / "whole.jsonl").write_bytes(whole)
        capsys.readouterr()
        found = read_annotation_log(cut)
        assert (found.annotator, found.votes) == (
            read_annotation_log(tmp_path / "whole.jsonl").annotator,
            read_annotation_log(tmp_path / "whole.jsonl").votes,
        )
        assert ("cut off by a crash" in capsys.readouterr().out) == (len(whole) < length)
        if length % 5 and b"\n" not in data[length - 2 : length + 2]:
            continue
        again = AnnotationWriter(cut, "Ada")  # the next one to write begins on a fresh line
        assert again.log.votes == found.votes
        again.append("p", "opened", WORDS)
        assert read_annotation_log(cut).votes == {**found.votes, "p": Vote("p", *WORDS.values())}
        assert cut.read_bytes().startswith(data[:length])  # nothing is ever rewritten


def test_a_line_cut_off_in_one_panel_does_not_stop_another(
    log: AnnotationWriter, capsys: pytest.CaptureFixture[str]
) -> None:
    with log.path.open("ab") as file:
        file.write(b'{"time": "2026')
    log.append("q", "ticked", {"image": "a"})
    assert read_annotation_log(log.path).votes["q"].clues == {"a"}
    assert read_annotation_log(log.path).torn == (4,)
    assert "line 4: cut off by a crash" in capsys.readouterr().out


def _append_many(path: Path, name: str, count: int) -> None:
    file = AnnotationWriter(path, "Ada")
    file.append(name, "opened", WORDS)
    for number in range(count):
        file.append(name, "seen", {"images": [f"{number}" + "x" * 500], "unreadable": []})


def test_two_processes_write_to_one_log_and_every_line_is_kept(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_append_many, args=(tmp_path / "ada.jsonl", name, 100))
        for name in "pq"
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    log = read_annotation_log(tmp_path / "ada.jsonl")
    assert {name: len(vote.shown) for name, vote in log.votes.items()} == {"p": 100, "q": 100}
    assert log.torn == ()


def test_what_another_panel_wrote_is_seen_after_the_next_action(log: AnnotationWriter) -> None:
    other = AnnotationWriter(log.path, "Ada")
    other.append("q", "ticked", {"image": "a"})
    log.append("q", "ticked", {"image": "c"})
    assert log.log.votes["q"].clues == {"a", "c"}
    other.refresh()
    assert other.log == log.log


@pytest.mark.parametrize("content", ["Dear diary", HEADER + OPENED + "nonsense\n"])
def test_a_bad_file_is_not_written_to(tmp_path: Path, content: str) -> None:
    (tmp_path / "ada.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(VragError, match=r"ada\.jsonl"):
        AnnotationWriter(tmp_path / "ada.jsonl", "Ada")
    assert (tmp_path / "ada.jsonl").read_text(encoding="utf-8") == content


def test_a_file_of_somebody_else_is_refused(log: AnnotationWriter, tmp_path: Path) -> None:
    with pytest.raises(
        VragError, match=r"ada\.jsonl: found annotations of 'Ada', expected those of 'Ben'"
    ):
        AnnotationWriter(log.path, "Ben")
    with pytest.raises(VragError, match="found the annotator ' '; expected a name"):
        AnnotationWriter(tmp_path / "x.jsonl", " ")


def test_a_file_that_cannot_be_read_or_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"none\.jsonl: .* \(No such file or directory\)"):
        read_annotation_log(tmp_path / "none.jsonl")
    (tmp_path / "folder").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(VragError, match=r"ada\.jsonl: .* written \(Not a directory|File exists"):
        AnnotationWriter(tmp_path / "folder" / "ada.jsonl", "Ada")


def test_a_file_that_became_shorter_is_told_and_not_written_to(log: AnnotationWriter) -> None:
    log.path.write_text(HEADER, encoding="utf-8")
    with pytest.raises(VragError, match="shorter than it was"):
        log.append("q", "ticked", {"image": "a"})
    assert log.path.read_text(encoding="utf-8") == HEADER
