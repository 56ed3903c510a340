"""The drawn CRAG-MM is laid out like the real data, its facts agree wherever they stand,
and its pictures and proportions are those that were planned.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from conftest import ROOT
from PIL import Image

from vrag_kit.benchmarks import load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm_index import read_image_index, read_web_index
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.runner import cli
from vrag_kit.synthetic.crag_mm import EDITIONS, generate_crag_mm, open_multi_turn, open_single_turn
from vrag_kit.synthetic.crag_mm.conversations import TYPE_SHARES, VISIBLE
from vrag_kit.synthetic.crag_mm.drawing import draw_session_image
from vrag_kit.synthetic.crag_mm.edition import (
    QUALITY_SHARES,
    CragMMEdition,
    Session,
    Split,
    SplitSize,
    allocate_by_share,
    plan_edition,
)
from vrag_kit.synthetic.world.photographs import view_showing
from vrag_kit.types import Benchmark, Query

TINY = CragMMEdition(
    splits={"validation": SplitSize(3, 1), "public_test": SplitSize(5, 2)},
    worn=(48, 64),
    photograph=48,
    photographs={"head": 2, "torso": 1, "tail": 1},
    seed="tiny",
)
KINDS = ("single-turn", "multi-turn")
SENTENCES = {  # how pages tell facts, read again by other means
    "look": r"^(\w+ \w+) is an? ([^.]+)\.",
    "region": r"It lives in (\w+)",
    "describer": r"It was described by (\w+)",
    "family": r"It belongs to (\w+)",
    "year": r"It was described in (\d+)",
    "months": r"It is seen in ([^.]+)\.",
    "length": r"Its length is (\d+ mm)",
    "width": r"Its width is (\d+ mm)",
    "found": r"It is found on ([^.]+)\.",
    "eaten": r"It is eaten by (\w+)",
    "smell": r"It smells of (\w+)",
}
QUESTIONS = {  # how searches ask for facts
    "family": r"To which family does (.+) belong",
    "describer": r"Who described (.+)\?",
    "year": r"In which year was (\w+ \w+) described",
    "region": r"In which region does (.+) live",
    "length": r"How long is (.+)\?",
    "width": r"How wide is (.+)\?",
    "eaten": r"By which animals is (.+) eaten",
    "smell": r"Of what does (.+) smell",
    "months": r"In which months is (.+) seen",
    "found": r"On which grounds is (.+) found",
    "capital": r"What is the capital of the region in which (.+) lives",
    "born": r"In which year was the person born who described (.+)\?",
}


@pytest.fixture(scope="module")
def drawn() -> Path:
    return generate_crag_mm("small", ROOT / "data" / "field-guide-crag-mm-small")


@pytest.fixture(scope="module")
def benchmarks(drawn: Path) -> dict[tuple[str, str], Benchmark]:
    found = {}
    for kind in KINDS:
        for split in ("validation", "public_test"):
            image_index, web_index = index_folders(drawn, split)
            found[kind, split] = load_crag_mm(
                drawn / kind, split, image_index=image_index, web_index=web_index
            )
    return found


@pytest.fixture(scope="module")
def planned() -> dict[str, Split]:
    return {split.name: split for split in plan_edition(EDITIONS["full"])}


def digest(folder: Path) -> str:
    together = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name != ".lock":
            together.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return together.hexdigest()


def queries(benchmarks: dict[tuple[str, str], Benchmark]) -> list[Query]:
    every: list[Query] = []
    for benchmark in benchmarks.values():
        every += benchmark.queries.values()
    return every


def sessions(split: Split) -> list[Session]:
    return [*split.single, *split.multi]


@pytest.mark.slow
def test_the_same_edition_gives_the_same_bytes_and_goes_on_where_it_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EDITIONS, "tiny", TINY)
    folder = generate_crag_mm("tiny", tmp_path / "one", workers=1)
    before = digest(folder)
    note = json.loads((folder / "edition.json").read_text(encoding="utf-8"))
    (folder / "edition.json").write_text(json.dumps({**note, "complete": False}))
    pictures = sorted((folder / "image-index-public-test" / "images").iterdir())
    pictures[0].unlink()
    kept = pictures[1].stat().st_mtime_ns
    assert digest(generate_crag_mm("tiny", folder, workers=2)) == before
    assert pictures[1].stat().st_mtime_ns == kept
    other = {**note, "drawn_by": "other code"}
    (folder / "edition.json").write_text(json.dumps(other))
    assert digest(generate_crag_mm("tiny", folder, workers=1)) == before
    assert pictures[1].stat().st_mtime_ns > kept


def test_vrag_draws_it_by_name_and_leaves_a_finished_one_alone(
    drawn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (drawn / "edition.json").stat().st_mtime_ns
    cli.draw("field-guide-crag-mm-small", drawn)
    assert capsys.readouterr().out == f"field-guide-crag-mm-small is in {drawn}\n"
    assert (drawn / "edition.json").stat().st_mtime_ns == before


def test_a_folder_with_other_data_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "single-turn").mkdir()
    (tmp_path / "single-turn" / "mine.parquet").write_bytes(b"precious")
    with pytest.raises(VragError, match="was not drawn by this kit"):
        generate_crag_mm("small", tmp_path)
    assert (tmp_path / "single-turn" / "mine.parquet").read_bytes() == b"precious"
    with pytest.raises(VragError, match="'full', 'small'"):
        generate_crag_mm("large", tmp_path)


@pytest.mark.parametrize(
    ("kind", "first"), [("single-turn", "comparison"), ("multi-turn", "simple-knowledge")]
)
def test_the_hubs_own_library_reads_the_rows_with_the_labels_of_their_kind(
    drawn: Path, tmp_path: Path, kind: str, first: str
) -> None:
    import datasets

    shards = [str(path) for path in sorted((drawn / kind / "data").glob("public_test-*"))]
    rows = datasets.load_dataset("parquet", data_files=shards, split="train", cache_dir=tmp_path)
    assert rows.column_names == ["session_id", "image", "image_url", "turns", "answers"]
    names = rows.features["turns"]["query_category"].feature.names
    assert names[1] == first  # single- and multi-turn data number differently
    assert sorted(names) == sorted(TYPE_SHARES)
    for row in rows:
        assert bool(row["image"]) != bool(row["image_url"])
        assert row["turns"]["interaction_id"] == row["answers"]["interaction_id"]
        if kind == "single-turn":
            assert row["turns"]["interaction_id"] == [row["session_id"]]
        if row["image"]:
            assert row["image"].size == EDITIONS["small"].worn


def test_the_real_loader_finds_every_question_its_picture_and_its_marks(
    benchmarks: dict[tuple[str, str], Benchmark],
) -> None:
    for (kind, split), benchmark in benchmarks.items():
        size = EDITIONS["small"].splits[split]
        count = size.questions if kind == "single-turn" else size.conversations
        assert len({query.group for query in benchmark.queries.values()}) == count
        for query in benchmark.queries.values():
            picture = query.image.open() if query.image else Image.new("RGB", (1, 1))
            assert picture.size == tuple(query.metadata["image_size"])
            left, top, right, bottom = query.metadata["region"]
            assert 0 <= left < right <= picture.width
            assert 0 <= top < bottom <= picture.height
            assert query.entity
            assert query.metadata["egocentric"] == (picture.height > picture.width)


def test_facts_agree_between_graph_pages_and_answers(
    drawn: Path, benchmarks: dict[tuple[str, str], Benchmark]
) -> None:
    checked = 0
    for split in ("validation", "public_test"):
        facts = told_facts(drawn, split)
        for kind in KINDS:
            for query in benchmarks[kind, split].queries.values():
                for key, pattern in QUESTIONS.items():
                    asked = re.match(pattern, query.metadata["reference_query"])
                    told = facts.get((asked[1], key)) if asked else None
                    if told and not re.match("Yes|No", query.answers[0]):
                        assert told in query.answers[0], query
                        checked += 1
    assert checked > 30


def told_facts(drawn: Path, split: str) -> dict[tuple[str, str], str]:
    """All that graph and full pages tell, each fact once and the same wherever it stands."""
    image_index, web_index = index_folders(drawn, split)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in read_image_index(image_index).values():
        for entity in entry.metadata["entities"]:
            for key, value in (entity["entity_attributes"] or {}).items():
                found[entity["entity_name"], key].add(value)
    for page in read_web_index(web_index).values():
        name, text = page.metadata["page_name"], page.metadata["page_result"]
        for key, pattern in SENTENCES.items():
            if " " in name and (told := re.search(pattern, text)):
                found[name, key].add(told[told.lastindex or 1])
        for region, capital in re.findall(r"(\w+), whose capital is (\w+)", text):
            found[region, "capital"].add(capital)
        for describer, born in re.findall(r"(\w+), who was born in (\d+)", text):
            found[describer, "born"].add(born)
    assert all(len(values) == 1 for values in found.values())
    facts = {key: values.pop() for key, values in found.items()}
    for (name, key), value in list(facts.items()):
        on_the_way = {"region": "capital", "describer": "born"}.get(key)
        if on_the_way and (value, on_the_way) in facts:
            facts[name, on_the_way] = facts[value, on_the_way]
    return facts


def test_yes_and_no_follow_from_the_numbers_in_the_answer(
    benchmarks: dict[tuple[str, str], Benchmark],
) -> None:
    checked = 0
    for query in queries(benchmarks):
        answer = query.answers[0]
        number = re.search(r"it (?:is|was described in) (\d+)", answer)
        limit = re.search(r"(more than|before) (\d+)", query.text)
        if number and limit:
            right = int(number[1]) > int(limit[2])
            if limit[1] == "before":
                right = int(number[1]) < int(limit[2])
            assert answer.startswith("Yes" if right else "No")
            checked += 1
    assert checked >= 5


def test_no_asked_picture_is_in_the_graph_and_none_comes_twice(
    drawn: Path, benchmarks: dict[tuple[str, str], Benchmark]
) -> None:
    asked = {query.group: query.image.data() for query in queries(benchmarks) if query.image}
    graph = [path.read_bytes() for path in drawn.glob("image-index-*/images/*.jpg")]
    assert len(set(asked.values())) == len(asked)
    assert len(set(graph)) == len(graph)
    assert set(asked.values()).isdisjoint(graph)


@pytest.mark.slow
def test_the_region_is_as_large_as_the_organism_and_leaves_out_grass_before_it(
    planned: dict[str, Split],
) -> None:
    edition = EDITIONS["full"]
    found = [each for each in planned["public_test"].single if not each.egocentric][:16]
    blades = 0
    for session in found:
        species = session.entry.entity.species
        view = view_showing(species, "", session.picture)
        blades += view.blades
        left, top, right, bottom = draw_session_image(edition, session).region
        most = 1.3 * view.scale * edition.worn[0]  # an organism spans about 1
        assert max(right - left, bottom - top) <= most
    assert blades


def test_names_belong_to_one_split_and_looks_to_one_entity(planned: dict[str, Split]) -> None:
    names: list[str] = []
    for split in planned.values():
        names += [entry.entity.name for entry in split.entries]
        looks = [entry.entity.look for entry in split.entries]
        assert len(set(looks)) == len(looks)
    assert len(set(names)) == len(names)


def test_the_full_edition_has_the_planned_proportions(planned: dict[str, Split]) -> None:
    split = planned["public_test"]
    asked = {session.entry.entity.name: session.entry for session in sessions(split)}
    types = Counter(session.turns[0].category for session in split.single)
    qualities = Counter(session.quality for session in sessions(split))
    count = len(sessions(split))
    assert (len(split.single), len(split.multi)) == (240, 100)
    for category, share in TYPE_SHARES.items():
        assert abs(types[category] - 240 * share) < 1
    for quality, share in QUALITY_SHARES.items():
        assert abs(qualities[quality] - count * share) < 1.5
    assert sum(session.egocentric for session in sessions(split)) == round(0.8 * count)
    assert sum(not entry.photographs for entry in asked.values()) == round(0.07 * len(asked))
    turns = [len(session.turns) for session in split.multi]
    assert sum(turns) / len(turns) == pytest.approx(4.9, abs=0.05)  # as in CRAG-MM
    popularity = Counter(entry.popularity for entry in asked.values())
    assert min(popularity[each] for each in ("head", "torso", "tail")) > len(asked) / 5


def test_twice_as_many_pages_lie_beside_the_point_and_snippets_tell_less(
    planned: dict[str, Split],
) -> None:
    split = planned["public_test"]
    asked = {session.entry.entity.name for session in sessions(split)}
    about = [page for e in split.entries if e.entity.name in asked for page in e.pages]
    beside = [page for e in split.entries if e.entity.name not in asked for page in e.pages]
    assert 1.6 < (len(beside) + len(split.general)) / len(about) < 2.4
    in_snippets, in_full = Counter[bool](), Counter[bool]()
    for session in split.single:
        turn = session.turns[0]
        if turn.ask.form == "fact" and turn.ask.key not in VISIBLE:
            in_snippets[any(turn.reply.value in page.snippet for page in session.entry.pages)] += 1
            in_full[any(turn.reply.value in page.result for page in session.entry.pages)] += 1
    assert in_full[True] - in_snippets[True] > 0.1 * in_full.total()


def test_nothing_is_asked_twice_of_one_entity_in_single_questions(
    planned: dict[str, Split],
) -> None:
    asked = [(s.entry.entity.name, s.turns[0].question) for s in planned["public_test"].single]
    assert len(set(asked)) == len(asked)


def test_shares_are_dealt_exactly() -> None:
    import numpy as np

    dealt = allocate_by_share({"a": 0.5, "b": 0.25, "c": 0.25}, 7, np.random.default_rng(0))
    assert Counter(dealt) == {"a": 3, "b": 2, "c": 2} or Counter(dealt)["a"] == 4
    assert len(dealt) == 7


def test_notebooks_open_it_by_name_and_real_rows_by_folder(
    drawn: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", lambda name: drawn)
    by_name = open_multi_turn("field-guide-crag-mm-small", "public_test")
    assert by_name.name == "field-guide-crag-mm-small-multi-turn-public-test"
    with pytest.raises(VragError, match="pictures and indexes of its own"):
        open_single_turn("field-guide-crag-mm-small", indexes="elsewhere")
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", Path)
    rows = open_single_turn(str(drawn / "single-turn"), "validation", indexes=str(drawn))
    assert rows.corpus
    assert not open_single_turn(str(drawn / "single-turn"), "validation").corpus
    with pytest.raises(VragError, match="holds neither 'image-index-validation'"):
        open_single_turn(str(drawn / "single-turn"), "validation", indexes=str(tmp_path))
