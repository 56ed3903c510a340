"""What comes in: data by the name of an edition or by a mapping of files, names that are joined to
folders, and tables with the columns that are needed.
"""

from __future__ import annotations

import json
import math

import pytest
from factories import judged

from vrag_kit.analysis import mean_scores
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import safe_join
from vrag_kit.judging.scale import require_columns
from vrag_kit.open import (
    open_articles,
    open_benchmark,
    open_images,
    open_inat_corpus,
    queries_answered_by_articles,
)
from vrag_kit.synthetic.mrag_bench import open_mrag_bench


def test_a_mapping_opens_the_files_that_it_names(guide_folder, tmp_path):
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


def test_a_dry_run_draws_no_edition(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = r"data/field-guide-mrag-bench .*`vrag data generate field-guide-mrag-bench data/"
    with dry_run(tmp_path / "scratch"), pytest.raises(VragError, match=words):
        open_mrag_bench("field-guide-mrag-bench")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "..", "a\\..\\x", "a\0.png"])
def test_a_name_that_leads_outside_is_refused_with_its_place(tmp_path, name):
    with pytest.raises(VragError, match=r"rows line 3: .* points outside .*; expected") as error:
        safe_join(tmp_path, name, "rows line 3")
    assert repr(name) in str(error.value)


def test_only_links_of_the_user_are_followed(tmp_path):
    """`data/inat` may be a link to another disk, and a species' folder in it, too; what a
    stranger packed may lead nowhere else.
    """
    disk, data = tmp_path / "disk", tmp_path / "data"
    disk.mkdir()
    (disk / "a.png").touch()
    data.mkdir()
    (data / "inat").symlink_to(disk)
    assert safe_join(data, "inat/a.png", "x").is_file()
    with pytest.raises(VragError, match=r"'inat/a\.png' is a link that points outside"):
        safe_join(data, "inat/a.png", "x", links=False)
    assert safe_join(data / "inat", "a.png", "x", links=False).is_file()
    (data / "b.png").touch()
    (data / "again.png").symlink_to("b.png")
    assert safe_join(data, "again.png", "x", links=False).is_file()
    assert safe_join(data, "..b.png", "x") == data / "..b.png"


ANSWERS = judged(score=[1.0, math.nan], rank=[1, 2])


def test_public_functions_check_what_comes_in():
    with pytest.raises(VragError, match="the table has no column"):
        mean_scores(ANSWERS.drop(columns="group"))


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        (ANSWERS.assign(group=["g", None]), "group", "'group', row 1"),
        (ANSWERS[["query_id"]], "rank", "'rank'; found query_id"),
    ],
)
def test_a_table_is_checked_by_column(table, column, words):
    for good in (ANSWERS, ANSWERS.iloc[:0]):
        require_columns(good, list(ANSWERS), "here")
    with pytest.raises(VragError, match=words):
        require_columns(table, [column], "here")
