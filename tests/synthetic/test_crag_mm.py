"""The drawn CRAG-MM is laid out like the real data, its facts agree wherever they stand, and its
answers follow from them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

import pytest
from conftest import ROOT

from vrag_kit.errors import VragError
from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.synthetic.crag_mm import EDITIONS, generate_crag_mm, open_multi_turn, open_single_turn
from vrag_kit.synthetic.crag_mm.conversations import TYPE_SHARES
from vrag_kit.synthetic.crag_mm.edition import plan_edition
from vrag_kit.synthetic.crag_mm.entities import SENTENCES, with_article
from vrag_kit.types import Query

SMALL = "field-guide-crag-mm-small"
SPLITS = plan_edition(EDITIONS["full"])
SESSIONS = list(chain.from_iterable([*split.single, *split.multi] for split in SPLITS))
TURNS = list(chain.from_iterable(session.turns for session in SESSIONS))
ENTRIES = list(chain.from_iterable(split.entries for split in SPLITS))
ENTITIES = [entry.entity for entry in ENTRIES]


@pytest.fixture(scope="module")
def drawn():
    return generate_crag_mm("small", ROOT / "data" / SMALL)


def test_the_hubs_own_library_reads_the_rows_with_their_labels(drawn, tmp_path):
    import datasets

    shards = [str(path) for path in sorted(drawn.glob("single-turn/data/public_test-*"))]
    rows = datasets.load_dataset("parquet", data_files=shards, split="train", cache_dir=tmp_path)
    assert rows.column_names == ["session_id", "image", "image_url", "turns", "answers"]
    names = rows.features["turns"]["query_category"].feature.names
    assert names[1] == "comparison"  # single- and multi-turn data number differently
    assert sorted(names) == sorted(TYPE_SHARES)
    for row in rows:
        assert bool(row["image"]) != bool(row["image_url"])
        assert row["turns"]["interaction_id"] == row["answers"]["interaction_id"]
        assert not row["image"] or row["image"].size == EDITIONS["small"].worn


def test_no_asked_image_is_in_the_graph_and_none_comes_twice(drawn):
    asked = {}
    for split in ("validation", "public_test"):
        for benchmark in (open_single_turn(SMALL, split), open_multi_turn(SMALL, split)):
            queries = benchmark.queries.values()
            asked |= {query.group: query.image.data() for query in queries if query.image}
    graph = [path.read_bytes() for path in drawn.glob("image-index-*/images/*.jpg")]
    assert len(set(asked.values())) == len(asked)
    assert len(set(graph)) == len(graph)
    assert set(asked.values()).isdisjoint(graph)


def test_notebooks_open_it_by_name_and_real_rows_by_folder(drawn, monkeypatch, tmp_path):
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", lambda name: drawn)
    by_name = open_multi_turn(SMALL, "public_test")
    assert by_name.name == "field-guide-crag-mm-small-multi-turn-public-test"
    with pytest.raises(VragError, match="of its own"):
        open_single_turn(SMALL, indexes="elsewhere")
    monkeypatch.setattr("vrag_kit.synthetic.editions.project_path", Path)
    rows = str(drawn / "single-turn")
    assert open_single_turn(rows, "validation", indexes=str(drawn)).corpus
    assert not open_single_turn(rows, "validation").corpus
    with pytest.raises(VragError, match="'image-index-validation'"):
        open_single_turn(rows, "validation", indexes=str(tmp_path))
    for data, web, words in ((SMALL, "larger", "'large'"), (rows, "large", "synthetic")):
        with pytest.raises(VragError, match=words):
            open_single_turn(data, web_index=web)


def test_in_the_larger_web_exactly_one_page_about_an_entity_tells_each_fact():
    pages = defaultdict(list)
    for page in open_single_turn(SMALL, "public_test", web_index="large").corpus.values():
        pages[page.metadata.get("page_name")].append(str(page.metadata.get("page_result")))
    split = plan_edition(EDITIONS["small"])[1]
    assert not any(each.entity.name in pages for each in split.entries if not each.pages)
    for each in (each for each in split.entries if each.pages):
        texts = pages[each.entity.name]
        assert len(texts) in {6, 10, 16}
        assert all(each.entity.name in text for text in texts)
        for value in {**each.entity.facts, "color": each.entity.species.outside.color}.values():
            assert sum(bool(re.search(rf"\b{re.escape(value)}\b", text)) for text in texts) == 1


# the language


def test_names_and_looks_are_distinct_and_years_make_sense():
    assert len({each.name for each in ENTITIES}) == len(ENTITIES)
    for split in SPLITS:
        looks = {entry.entity.facts["look"] for entry in split.entries}
        assert len(looks) == len(split.entries)
    for each in ENTITIES:
        assert 30 <= each.numeric_fact("year") - each.numeric_fact("born") <= 50
        assert each.numeric_fact("width") <= each.numeric_fact("length")


def test_the_rule_judge_tells_answers_from_abstentions_and_from_what_is_true_of_another():
    judge = TruthfulnessRuleJudge()
    verdicts: Counter[tuple[str, float | None]] = Counter()
    for turn in TURNS:
        metadata = {"reference_query": turn.search_query}
        reply = turn.reply
        query = Query(
            query_id="q", text=turn.question, answers=(reply.sentence,), metadata=metadata
        )
        said = {"right": reply.value, "none": "I don't know"}
        values = [turn.ask.expected_answer(other).value for other in ENTITIES[:8]]
        wrong = next((value for value in values if value != reply.value), None)
        if wrong and turn.ask.category != "simple-recognition":
            said["another's"] = wrong
        for kind, answer in said.items():
            verdict = judge.verdict(query, f"{turn.subject.name}: {answer}.")
            verdicts[kind, verdict.score] += 1
    assert set(verdicts) == {("right", 1.0), ("none", 0.0), ("another's", -1.0)}


def test_every_type_occurs_and_the_short_answer_stands_in_the_sentence():
    assert {turn.ask.category for turn in TURNS} == set(TYPE_SHARES)
    for session in SESSIONS:
        asked = {(turn.search_query, turn.ask.form) for turn in session.turns}
        assert len(asked) == len(session.turns)
    for turn in TURNS:
        assert turn.reply.value in ("yes", "no") or turn.reply.value in turn.reply.sentence
        alone = turn.subject is turn.pictured or turn.subject.name in turn.question
        assert turn.needs_history or alone


def test_pages_tell_once_what_is_true_and_snippets_are_their_beginnings():
    for entry in ENTRIES:
        facts = entry.entity.facts
        facts = {**facts, "name": entry.entity.name, "look": with_article(facts["look"])}
        true = {form.format(**facts) for form in SENTENCES.values()}
        for page in entry.pages:
            assert page.result.startswith(page.snippet)
            told = re.findall(r"[A-Z][^.]*\.", page.result)
            assert len(set(told)) == len(told)
            assert set(told) <= true
