"""CRAG-MM is read in both published layouts, its labels by name whatever their numbers,
and nothing wrong with it passes in silence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crag_rows import MULTI, SINGLE, Row, picture, session, turn, write_rows
from datasets import Dataset, Features, Value
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.benchmarks import load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm import (
    NAMES,
    CragSession,
    CragTurn,
    cached_image_name,
)
from vrag_kit.benchmarks.datasets.crag_mm_index import (
    read_annotations,
    read_diagnostic,
    write_annotations,
)
from vrag_kit.benchmarks.rows import Problems, validate
from vrag_kit.errors import VragError

TALKS = [
    session(
        "s1",
        turn("i1", "Which moth is this?", query_category="multi-hop", image_quality="low light"),
        turn("i2", "Where does it live?", dynamism="slow-changing", image_quality="low light"),
    ),
    session("s2", turn("i3", domain="food"), turn("i4"), color="blue"),
]


def with_picture(images: Path, url: str, data: bytes) -> None:
    """As if it had been fetched."""
    (images / cached_image_name(url)).parent.mkdir(parents=True, exist_ok=True)
    (images / cached_image_name(url)).write_bytes(data)


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same conversations in both revisions."""
    folder = tmp_path_factory.mktemp("talks")
    return {
        revision: write_rows(
            folder / revision / "multi-turn", TALKS, names=MULTI, revision=revision, shards=2
        )
        for revision in ("v0.1.1", "v0.1.2")
    }


def test_both_revisions_give_the_same_conversations_turn_by_turn(talks: dict[str, Path]) -> None:
    old, new = (load_crag_mm(talks[revision]) for revision in ("v0.1.1", "v0.1.2"))
    assert old.fingerprint == new.fingerprint
    assert new.name == "crag-mm-multi-turn-validation"
    assert list(new.queries) == ["i1", "i2", "i3", "i4"]
    second = new.queries["i2"]
    assert (second.conversation_id, second.group, second.turn) == ("s1", "s1", 1)
    assert (second.text, second.answers) == ("Where does it live?", ("It is a moth.",))
    assert second.image is new.queries["i1"].image
    told = {key: second.metadata[key] for key in NAMES}
    assert told == {
        "domain": "animal",
        "query_category": "simple-knowledge",
        "dynamism": "slow-changing",
        "image_quality": "low light",
    }
    assert second.metadata["where"] == "validation-00000-of-00002.parquet row 0 (session s1) turn 1"


def test_single_and_multi_turn_numbers_mean_the_names_that_each_file_carries(
    tmp_path: Path,
) -> None:
    rows = [session("a", turn("a", query_category="multi-hop", dynamism="real-time"))]
    labels = {}
    for kind, names in (("single", SINGLE), ("multi", MULTI)):
        folder = write_rows(tmp_path / kind / "rows", rows, names=names)
        (shard,) = (folder / "data").iterdir()
        stored = pq.read_table(shard).to_pylist()[0]["turns"]["query_category"]
        assert stored == [names["query_category"].index("multi-hop")]
        labels[kind] = load_crag_mm(folder).queries["a"].metadata
        labels[kind] = {key: labels[kind][key] for key in NAMES}
    assert labels["single"] == labels["multi"]
    benchmark = load_crag_mm(tmp_path / "single" / "rows")
    assert benchmark.queries["a"].conversation_id is None
    assert benchmark.name == "crag-mm-single-turn-validation"


def test_numbers_without_names_are_refused(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", [session("a")])
    (shard,) = (folder / "data").iterdir()
    pq.write_table(pq.read_table(shard).replace_schema_metadata(None), shard)
    with pytest.raises(VragError, match=r"domain is the number 0, and the file does not carry"):
        load_crag_mm(folder)


@st.composite
def numbered(draw: st.DrawFn) -> tuple[Row, Row, dict[str, list[str]]]:
    """A conversation as it is, as a file holds it, and the file's own order of names."""
    names = {column: draw(st.permutations(told)) for column, told in NAMES.items()}
    turns = []
    for number in range(draw(st.integers(1, 6))):
        labels = {column: draw(st.sampled_from(told)) for column, told in names.items()}
        turns.append(turn(f"i{number}", f"What of {number}?", **labels))
    answers = [{"interaction_id": each["interaction_id"], "ans_full": "?"} for each in turns]
    for number, answer in enumerate(answers):
        answer["ans_full"] = f"It is {number}."
    row = session("s", *turns, answers=draw(st.permutations(answers)))
    stored = []
    for each in turns:
        numbers = {column: names[column].index(each[column]) for column in NAMES}
        stored.append({**each, **numbers})
    published = {**row, "turns": stored}
    if draw(st.booleans()):
        for part in ("turns", "answers"):
            rows = published[part]
            published[part] = {key: [each[key] for each in rows] for key in rows[0]}
    return row, published, names


@pytest.mark.slow
@given(numbered())
def test_however_names_are_numbered_and_answers_ordered_each_turn_gets_its_own(
    told: tuple[Row, Row, dict[str, list[str]]],
) -> None:
    row, published, names = told[0], told[1], told[2]
    parsed = validate(CragSession, published, "x", Problems(), names)
    assert parsed is not None
    answers = {each.interaction_id: each.ans_full for each in parsed.answers}
    for number, (before, after) in enumerate(zip(row["turns"], parsed.turns, strict=True)):
        assert after.query == f"What of {number}?"
        assert answers[after.interaction_id] == f"It is {number}."
        assert after.labels == {column: before[column] for column in NAMES}


@given(st.sampled_from([(column, name) for column in NAMES for name in NAMES[column]]))
def test_a_label_is_known_in_any_usual_spelling(label: tuple[str, str]) -> None:
    column, name = label
    usual = (name.upper(), name.replace(" ", "_"), name.replace("-", " "), name.title())
    for spelled in (*usual, name.replace(" and ", " & ")):
        read = validate(CragTurn, {**turn("a"), column: spelled}, "x", Problems())
        assert read is not None
        assert read.labels[column] == name


def test_egocentric_pictures_lie_in_rows_and_others_are_looked_for_by_their_whole_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = "https://x.org/moth.png?size=1", "https://x.org/moth.png?size=2"
    rows = [session("a"), session("b", url=first), session("c", url=second)]
    folder = write_rows(tmp_path / "rows", rows)
    with_picture(tmp_path / "images", first, picture("green", orientation=6))
    benchmark = load_crag_mm(folder)
    assert "1 of 3 questions are left out: the pictures of 1 sessions" in capsys.readouterr().out
    shown = {name: query.metadata["egocentric"] for name, query in benchmark.queries.items()}
    assert shown == {"a": True, "b": False}
    image = benchmark.queries["b"].image
    assert image is not None
    assert image.open().size == (8, 6)  # stored as 6 by 8, turned by EXIF
    with_picture(tmp_path / "elsewhere", second, picture("blue"))
    assert list(load_crag_mm(folder, images=tmp_path / "elsewhere").queries) == ["a", "c"]


def test_only_egocentric_pictures_are_squeezed(tmp_path: Path) -> None:
    url = "https://x.org/moth.png"
    folder = write_rows(tmp_path / "rows", [session("a"), session("b", url=url)])
    with_picture(tmp_path / "images", url, picture("green"))
    plain = load_crag_mm(folder)
    squeezed = load_crag_mm(folder, egocentric_size=(30, 10))
    assert squeezed.fingerprint != plain.fingerprint
    images = {name: query.image for name, query in squeezed.queries.items()}
    assert images["a"] is not None
    assert images["a"].open().size == (30, 10)
    assert images["b"] == plain.queries["b"].image
    before = plain.queries["a"].image
    assert before is not None
    assert before.stamp != images["a"].stamp
    pixels = before.open().resize((30, 10)).tobytes()
    assert images["a"].open().tobytes() == pixels


def test_sessions_that_the_authors_drop_are_dropped_and_one_has_another_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = session("04d98259-27af-41b1-a7be-5798fd1b8e95")
    broken = session("695b4b5c-7c65-4f7b-8968-50fe10482a16", answers=gone["answers"])
    folder = write_rows(tmp_path / "rows", [session("a"), gone, broken])
    assert list(load_crag_mm(folder).queries) == ["a"]
    assert "the authors drop 1" in capsys.readouterr().out
    archived = "https://web.archive.org/web/20250521025904/https://upload.wikimedia.org/x.jpg"
    url = "https://upload.wikimedia.org/x.jpg"
    row = session("0df99a9a-6a5d-4ff4-b8e4-e3ee90209dfe", url=url)
    one = validate(CragSession, row, "x", Problems())
    assert one is not None
    assert one.url == archived


def test_what_was_read_is_kept_until_a_shard_changes_or_a_picture_is_gone(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", [session("a")])
    first = load_crag_mm(folder)
    (shard,) = (folder / "data").iterdir()
    stat = shard.stat()
    whole = shard.read_bytes()
    shard.write_bytes(bytes(stat.st_size))
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert load_crag_mm(folder).fingerprint == first.fingerprint  # nobody opened the shard
    next((tmp_path / "images" / "rows").iterdir()).unlink()
    with pytest.raises(VragError, match="cut short or damaged"):
        load_crag_mm(folder)
    shard.write_bytes(whole)
    assert load_crag_mm(folder).fingerprint == first.fingerprint


def unlike(row: Row, part: str, change: Callable[[list[Row]], list[Row]]) -> Row:
    """The row with its turns or answers changed."""
    return {**row, part: change([dict(each) for each in row[part]])}


TALK = session("t", turn("x"), turn("y"))
BAD: dict[str, tuple[list[Row], str]] = {
    "a turn without answer": ([unlike(TALK, "answers", lambda a: a[:1])], "no answer"),
    "an answer without question": ([unlike(TALK, "turns", lambda t: t[1:])], "answer of x"),
    "a turn twice": ([unlike(TALK, "turns", lambda t: [*t, t[0]])], "interaction x came"),
    "an answer twice": ([unlike(TALK, "answers", lambda a: [*a, a[0]])], "answer of x came"),
    "a session twice": ([TALK, session("t", turn("z"))], "session t came"),
    "a turn of two sessions": ([TALK, session("u", turn("x"))], "interaction x came"),
    "an empty question": ([session("t", turn("x", " "))], "'query': found ' '"),
    "an empty answer": (
        [unlike(TALK, "answers", lambda a: [a[0], {**a[1], "ans_full": ""}])],
        "'ans_full': found ''",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_row_that_cannot_be_used_is_refused_by_name(case: str, tmp_path: Path) -> None:
    rows, words = BAD[case]
    folder = write_rows(tmp_path / "rows", [session("first"), *rows], names=MULTI)
    with pytest.raises(VragError, match=r"validation-00000-of-00001\.parquet row") as error:
        load_crag_mm(folder)
    assert words in str(error.value)


def test_an_unknown_label_is_refused_by_number_and_by_name(tmp_path: Path) -> None:
    for number, names, words in (
        (13, ["animal", "book"], r"x: domain is 13, an unknown label; the file names 2"),
        (0, ["weather"], r"x: domain is 'weather', an unknown label; expected one"),
    ):
        with pytest.raises(VragError, match=words):
            validate(CragTurn, turn("a") | {"domain": number}, "x", Problems(), {"domain": names})
    named = {**SINGLE, "dynamism": ["static", "never"]}
    rows = [session("a"), session("b", turn("b", dynamism="never"))]
    with pytest.raises(VragError, match=r"row 1: turns 0 dynamism is 'never'"):
        load_crag_mm(write_rows(tmp_path / "rows", rows, names=named))


def test_lists_of_different_lengths_missing_columns_and_missing_shards_are_refused(
    tmp_path: Path,
) -> None:
    folder = write_rows(tmp_path / "rows", [session("a"), session("b")], shards=2)
    (first, second) = sorted((folder / "data").iterdir())
    rows = pq.read_table(first).to_pylist()
    rows[0]["turns"]["query"] = ["one", "two"]
    schema = pq.read_schema(first)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), first)
    with pytest.raises(VragError, match=r"lists of turns are not of one length .*query 2"):
        load_crag_mm(folder)
    second.unlink()
    with pytest.raises(VragError, match="1 shards of 2; number 1 is missing"):
        load_crag_mm(folder)
    with pytest.raises(VragError, match="CRAG-MM's shards of public_test"):
        load_crag_mm(folder, "public_test")
    with pytest.raises(VragError, match="expected validation or public_test"):
        load_crag_mm(folder, "test")
    lacking = pq.read_table(first).drop_columns(["answers"])
    pq.write_table(lacking, folder / "data" / "public_test-00000-of-00001.parquet")
    with pytest.raises(VragError, match=r"no column 'answers'; found .* Is this CRAG-MM\?"):
        load_crag_mm(folder, "public_test")


MARKS = {
    "i1": {"entity": "Talia ensis", "popularity": "tail", "region": [1, 2, 3, 4]},
    "i2": {"needs_history": True, "reference_query": "talia ensis region"},
}


def test_marks_give_the_entity_whose_documents_are_the_labels(
    tmp_path: Path, talks: dict[str, Path]
) -> None:
    folder = talks["v0.1.2"]
    write_annotations(folder / "marks.jsonl", MARKS)
    entries = [("Talia ensis", 0), ("Talia osa", 1), ("talia  ensis", 2)]
    lines = []
    for name, number in entries:
        lines.append(json.dumps({"index": number, "entities": [{"entity_name": name}]}))
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "entries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    page = {"page_url": "https://x.org/1", "page_name": "Talia ensis", "page_snippet": "A moth."}
    (tmp_path / "pages.jsonl").write_text(json.dumps(page), encoding="utf-8")
    benchmark = load_crag_mm(folder, image_index=tmp_path / "images", web_index=tmp_path)
    (folder / "marks.jsonl").unlink()
    assert list(benchmark.corpus) == ["kg-0", "kg-1", "kg-2", "https://x.org/1"]
    assert benchmark.relevant("i1") == ("kg-0", "kg-2", "https://x.org/1")
    assert benchmark.relevant("i2") == ()
    assert benchmark.queries["i1"].entity == "Talia ensis"
    assert benchmark.queries["i1"].metadata["region"] == [1, 2, 3, 4]
    assert benchmark.queries["i2"].metadata["needs_history"] is True


def test_the_index_of_another_split_is_refused(tmp_path: Path, talks: dict[str, Path]) -> None:
    with pytest.raises(VragError, match="the index of public_test, but the questions are those of"):
        load_crag_mm(talks["v0.1.2"], web_index=tmp_path / "web-index-public-test")


def test_the_diagnostic_set_gives_the_same_marks(tmp_path: Path) -> None:
    told = {
        "target_roi_bbox": [10, 20, 30, 40],
        "image_size": [960, 1280],
        "target_object_name": "Talia ensis",
        "textual_only_question": "Where does Talia ensis live?",
        "referring_expression_category": "this",
    }
    rows = [
        {"id": "a", "question": "Where does it live?", "answer": "Norland.", "metadata": told},
        {"id": "b", "question": "?", "answer": "!", "metadata": dict.fromkeys(told)},
    ]
    shard = tmp_path / "data" / "test-00000-of-00001.parquet"
    shard.parent.mkdir()
    Dataset.from_list(rows).to_parquet(shard)
    marks = read_diagnostic(tmp_path)
    assert marks["a"] == {
        "entity": "Talia ensis",
        "reference_query": "Where does Talia ensis live?",
        "region": [10, 20, 30, 40],
        "image_size": [960, 1280],
    }
    assert marks["b"] == {}
    write_annotations(tmp_path / "marks.jsonl", marks)
    assert read_annotations(tmp_path / "marks.jsonl") == marks
    text = Features({"id": Value("string"), "metadata": Value("string")})
    as_text = [{"id": "a", "metadata": json.dumps(told)}]
    Dataset.from_list(as_text, features=text).to_parquet(shard)
    assert read_diagnostic(tmp_path) == {"a": marks["a"]}
