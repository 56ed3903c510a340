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


@pytest.fixture
def files(guide_folder: Path) -> dict[str, str]:
    """The drawn guide as a mapping, as if it were real data."""
    return {
        "annotations": str(guide_folder / "annotations.jsonl"),
        "image_root": str(guide_folder / "images"),
        "name": "Mine",
    }


def test_a_mapping_opens_the_files_that_it_names(
    files: dict[str, str], guide_folder: Path, tmp_path: Path
) -> None:
    benchmark = open_benchmark(files)
    assert (benchmark.name, len(benchmark.queries)) == ("Mine", 20)
    plates = {"images": str(guide_folder / "images24"), "name": "plates"}
    other = open_inat_corpus(plates, benchmark)
    assert set(other.queries) < set(benchmark.queries)
    pictures = open_images({"images": files["image_root"], "name": "Mine"})
    assert (pictures.names, pictures.articles, pictures.species_list) == ({}, None, None)
    assert other.qrels == {query_id: {} for query_id in other.queries}
    texts = {
        "pages": str(guide_folder / "articles"),
        "species_list": str(guide_folder / "categories.json"),
    }
    species, pages = open_articles(texts, tmp_path)
    assert set(pages) <= set(species)
    assert {query.entity for query in benchmark.queries.values()} <= set(species)
    assert queries_answered_by_articles(texts, benchmark) == frozenset()  # nobody says which
    listed = {**texts, "tells": str(guide_folder / "articles_tell.json")}
    told = [benchmark.queries[name] for name in queries_answered_by_articles(listed, benchmark)]
    asked = [query.text for query in told]
    assert sorted(asked) == sorted(json.loads(Path(listed["tells"]).read_text(encoding="utf-8")))
    for query in told:
        words = pages[query.entity].article.text.lower()
        assert any(all(w in words for w in a.split(" and ")) for a in query.answers)


def test_a_dry_run_draws_no_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = r"data/field-guide-mrag-bench .*`vrag data generate field-guide-mrag-bench data/"
    with dry_run(tmp_path / "scratch"), pytest.raises(VragError, match=words):
        open_mrag_bench("field-guide-mrag-bench")
    assert not (tmp_path / "data").exists()
