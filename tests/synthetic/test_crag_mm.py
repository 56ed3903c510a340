"""The drawn CRAG-MM is laid out like the real data, its facts agree wherever they stand,
and its pictures and proportions are those that were planned.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from factories import directory_digest

from vrag_kit.benchmarks import load_crag_mm
from vrag_kit.errors import VragError
from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers.crag_mm.parameters import index_folders, open_services
from vrag_kit.papers.crag_mm.search import page_relevance
from vrag_kit.runner import cli
from vrag_kit.synthetic.crag_mm import EDITIONS, generate_crag_mm, open_multi_turn, open_single_turn
from vrag_kit.synthetic.crag_mm.conversations import TYPE_SHARES
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
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import path as project_path

TINY = CragMMEdition(
    splits={"validation": SplitSize(3, 1), "public_test": SplitSize(5, 2)},
    worn=(48, 64),
    photograph=48,
    photographs={"head": 2, "torso": 1, "tail": 1},
    seed="tiny",
)
KINDS = ("single-turn", "multi-turn")


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


def queries(benchmarks: dict[tuple[str, str], Benchmark]) -> list[Query]:
    every: list[Query] = []
    for benchmark in benchmarks.values():
        every += benchmark.queries.values()
    return every


def sessions(split: Split) -> list[Session]:
    return [*split.single, *split.multi]


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


def test_no_asked_picture_is_in_the_graph_and_none_comes_twice(
    drawn: Path, benchmarks: dict[tuple[str, str], Benchmark]
) -> None:
    asked = {query.group: query.image.data() for query in queries(benchmarks) if query.image}
    graph = [path.read_bytes() for path in drawn.glob("image-index-*/images/*.jpg")]
    assert len(set(asked.values())) == len(asked)
    assert len(set(graph)) == len(graph)
    assert set(asked.values()).isdisjoint(graph)


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


@pytest.mark.slow
def test_an_edition_goes_on_where_it_was_cut_off_and_other_code_starts_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EDITIONS, "tiny", TINY)
    folder = generate_crag_mm("tiny", tmp_path / "one", workers=1)
    before, note = directory_digest(folder), folder / "edition.json"
    whole = json.loads(note.read_text(encoding="utf-8"))
    first, second, *_ = sorted((folder / "image-index-public-test" / "images").iterdir())
    kept = second.stat().st_mtime_ns
    for change, is_kept in (({"complete": False}, True), ({"drawn_by": "other code"}, False)):
        note.write_text(json.dumps({**whole, **change}))
        first.unlink()
        assert directory_digest(generate_crag_mm("tiny", folder, workers=2)) == before
        assert (second.stat().st_mtime_ns == kept) == is_kept


def test_a_folder_with_other_data_is_not_touched(
    drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "single-turn").mkdir()
    (tmp_path / "single-turn" / "mine.parquet").write_bytes(b"precious")
    for edition, words in (("small", "single-turn|not drawn"), ("large", "'full', 'small'")):
        with pytest.raises(VragError, match=words):
            generate_crag_mm(edition, tmp_path)
    assert (tmp_path / "single-turn" / "mine.parquet").read_bytes() == b"precious"
    before = (drawn / "edition.json").stat().st_mtime_ns
    cli.draw("field-guide-crag-mm-small", drawn)
    assert str(drawn) in capsys.readouterr().out
    assert (drawn / "edition.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_the_region_is_as_large_as_the_organism_and_names_and_looks_are_unique(
    planned: dict[str, Split],
) -> None:
    edition = EDITIONS["full"]
    found = [each for each in planned["public_test"].single if not each.egocentric][:10]
    for session in found:
        view = view_showing(session.entry.entity.species, "", session.picture)
        left, top, right, bottom = draw_session_image(edition, session).region
        most = 1.3 * view.scale * edition.worn[0]  # an organism spans about 1
        assert max(right - left, bottom - top) <= most
    names: list[str] = []
    for split in planned.values():
        names += [entry.entity.name for entry in split.entries]
        looks = [entry.entity.look for entry in split.entries]
        assert len(set(looks)) == len(looks)
    assert len(set(names)) == len(names)
    asked = [(s.entry.entity.name, s.turns[0].question) for s in planned["public_test"].single]
    assert len(set(asked)) == len(asked)
    shares = {"a": 0.5, "b": 0.25, "c": 0.25}
    dealt = Counter(allocate_by_share(shares, 8, np.random.default_rng(0)))
    assert dealt == {"a": 4, "b": 2, "c": 2}


def test_notebooks_open_it_by_name_and_real_rows_by_folder(
    drawn: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", lambda name: drawn)
    by_name = open_multi_turn("field-guide-crag-mm-small", "public_test")
    assert by_name.name == "field-guide-crag-mm-small-multi-turn-public-test"
    with pytest.raises(VragError, match="of its own"):
        open_single_turn("field-guide-crag-mm-small", indexes="elsewhere")
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", Path)
    rows = str(drawn / "single-turn")
    assert open_single_turn(rows, "validation", indexes=str(drawn)).corpus
    assert not open_single_turn(rows, "validation").corpus
    with pytest.raises(VragError, match="'image-index-validation'"):
        open_single_turn(rows, "validation", indexes=str(tmp_path))


# the larger web: one of an entity's pages tells what is asked


SMALL = "field-guide-crag-mm-small"
STANDARD_WEB = {  # sha256 of pages.jsonl, by the code before there was a larger web
    "validation": "ec75a734c4144fe8b69c38550b22a2203ff84b3e9853169d888260f902ac7df9",
    "public_test": "b50e2d8b68acd4af8d4306ab361746d226aaa8b80f85c46f8b7483dc9b593cbb",
}


@pytest.fixture(scope="module")
def larger() -> Benchmark:
    return open_single_turn(SMALL, "public_test", web_index="large")


def pages_by_name(benchmark: Benchmark) -> dict[str, list[Document]]:
    found = defaultdict(list)
    for page in benchmark.corpus.values():
        if page.metadata["source"] == "web_search":
            found[str(page.metadata["page_name"])].append(page)
    return found


@pytest.mark.slow
def test_of_an_entitys_pages_exactly_one_tells_each_fact(larger: Benchmark) -> None:
    pages = pages_by_name(larger)
    split = next(each for each in plan_edition(EDITIONS["small"]) if each.name == "public_test")
    written = [each for each in split.entries if each.pages]
    assert {len(pages[each.entity.name]) for each in written} == {6, 10, 16}
    assert not any(each.entity.name in pages for each in split.entries if not each.pages)
    for each in written:
        texts = [str(page.metadata["page_result"]) for page in pages[each.entity.name]]
        assert all(each.entity.name in text for text in texts)
        facts = {**each.entity.facts, "color": each.entity.species.outside.color}
        for value in facts.values():
            telling = [text for text in texts if re.search(rf"\b{re.escape(value)}\b", text)]
            assert len(telling) == 1


@pytest.mark.slow
def test_recall_of_the_question_as_meant_grows_with_k(larger: Benchmark) -> None:
    recalls = {}
    for name, benchmark in {
        "usual": open_single_turn(SMALL, "public_test"),
        "larger": larger,
    }.items():
        with tempfile.TemporaryDirectory() as cache:
            web = open_services(benchmark, "field-guide-clip-64", "bm25", cache).web
            assert web is not None
            tells = {"full pages": page_relevance(TruthfulnessRuleJudge(), benchmark, "full pages")}
            asked = {"reference query": paper.recall.web_queries(benchmark)["reference query"]}
            found = paper.recall.web_recall(web, asked, tells)
        recalls[name] = found.groupby("k")["value"].mean()
    assert recalls["usual"][50] == recalls["usual"][5]  # all of an entity's pages come first
    assert recalls["larger"][50] - recalls["larger"][5] > 0.2
    assert recalls["larger"][50] == recalls["usual"][50]  # the same entities are written about


def test_the_web_on_disk_stays_as_it_was(tmp_path: Path) -> None:
    for split, digest in STANDARD_WEB.items():
        open_single_turn(SMALL, split, web_index="large")
        pages = index_folders(project_path(f"data/{SMALL}"), split)[1] / "pages.jsonl"
        assert hashlib.sha256(pages.read_bytes()).hexdigest() == digest
    for data, web, words in ((SMALL, "larger", "'large'"), (str(tmp_path), "large", "synthetic")):
        with pytest.raises(VragError, match=words):
            open_single_turn(data, web_index=web)


def test_labels_are_the_entitys_entries_and_pages(larger: Benchmark) -> None:
    usual = open_single_turn(SMALL, "public_test")
    assert larger.fingerprint != usual.fingerprint
    assert list(larger.queries) == list(usual.queries)
    pages = pages_by_name(larger)
    for name, query in larger.queries.items():
        entries = {doc for doc in usual.qrels[name] if doc.startswith("kg-")}
        of_entity = {page.doc_id for page in pages.get(query.entity, [])}
        assert set(larger.qrels[name]) == entries | of_entity
