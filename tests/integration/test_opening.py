"""Data are opened by the name of a drawn edition or by a mapping of files, and a mistake
is answered with what to write.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.open import (
    open_articles,
    open_benchmark,
    open_images,
    open_inat_corpus,
    queries_answered_by_articles,
)
from vrag_kit.synthetic.mrag_bench import open_mrag_bench


def test_a_mapping_opens_the_files_that_it_names(guide_folder: Path, tmp_path: Path) -> None:
    """The drawn guide, as if it were real data."""
    images, tells = str(guide_folder / "images"), guide_folder / "articles_tell.json"
    files = {"annotations": str(guide_folder / "annotations.jsonl"), "image_root": images}
    benchmark = open_benchmark({**files, "name": "Mine"})
    assert (benchmark.name, len(benchmark.queries)) == ("Mine", 20)
    other = open_inat_corpus({"images": str(guide_folder / "images24"), "name": "p"}, benchmark)
    assert set(other.queries) < set(benchmark.queries)
    assert other.qrels == {query_id: {} for query_id in other.queries}
    pictures = open_images({"images": images, "name": "Mine"})
    assert (pictures.names, pictures.articles, pictures.species_list) == ({}, None, None)
    texts = {"pages": str(guide_folder / "articles")}
    texts["species_list"] = str(guide_folder / "categories.json")
    species, pages = open_articles(texts, tmp_path)
    assert set(pages) <= set(species)
    assert {query.entity for query in benchmark.queries.values()} <= set(species)
    assert queries_answered_by_articles(texts, benchmark) == frozenset()  # nobody says which
    answered = queries_answered_by_articles({**texts, "tells": str(tells)}, benchmark)
    told = [benchmark.queries[name] for name in answered]
    asked = json.loads(tells.read_text(encoding="utf-8"))
    assert sorted(query.text for query in told) == sorted(asked)
    for query in told:
        words = pages[query.entity].article.text.lower()
        assert any(all(w in words for w in a.split(" and ")) for a in query.answers)


def test_a_dry_run_draws_no_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = r"data/field-guide-mrag-bench .*`vrag data generate field-guide-mrag-bench data/"
    with dry_run(tmp_path / "scratch"), pytest.raises(VragError, match=words):
        open_mrag_bench("field-guide-mrag-bench")
    assert not (tmp_path / "data").exists()
