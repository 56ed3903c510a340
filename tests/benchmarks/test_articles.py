"""Articles are split as the paper says: sections kept apart, sentences whole, reference
lists dropped; and every species gets its page.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.benchmarks import knowledge_base, load_species_pages, match_counts, read_species
from vrag_kit.benchmarks.articles import (
    Article,
    chunk_article,
    count_tokens,
    parse_article,
    read_articles,
    split_sentences,
)
from vrag_kit.benchmarks.knowledge_base import match_pages
from vrag_kit.errors import VragError

MOTH = (
    "Papaipema is a moth. It flies at night.\n\n== Description ==\nThe forewings are orange.\n\n=="
    " References ==\nSmith 1990. A list.\n"
)


def test_short_neighbours_are_merged_with_their_titles_kept():
    sections = (("", "It is a moth."), ("Range", "It lives here."), ("Life", "It is short."))
    article, rest = Article("M", sections), "Range: It lives here. Life: It is short."
    assert chunk_article(article, tokens=150) == [f"M. It is a moth. {rest}"]
    # 5 + 4 tokens are not below 9, 4 + 4 are
    assert chunk_article(article, tokens=9) == ["M. It is a moth.", f"M. {rest}"]


def test_a_period_behind_an_abbreviation_or_an_initial_ends_no_sentence():
    named, like = "It was named by J. Smith in 1900.", "It resembles P. inquaesita, e.g. Boston's."
    sentences = [named, like, "Cf. Brown.", "Done."]
    assert split_sentences(" ".join(sentences)) == sentences


MOTHS = st.integers(1, 12).map(lambda count: f"It{' moth' * count}.")
HEADINGS = st.sampled_from(["", "Range", "Life", "Description", "References"])
TEXTS = st.lists(MOTHS, min_size=1, max_size=9)
SECTIONS = st.lists(st.tuples(HEADINGS, TEXTS), min_size=1, max_size=6)


@given(SECTIONS, st.integers(5, 80))
@settings(max_examples=60)
def test_every_sentence_is_in_one_chunk(sections, tokens):
    article = Article("M", tuple((heading, " ".join(text)) for heading, text in sections))
    kept = [text for heading, text in sections if heading != "References"]
    found: list[str] = []
    for chunk in chunk_article(article, tokens):
        said = split_sentences(chunk.removeprefix("M. "))
        # a heading stands before a section's first sentence
        bodies = [part.split(": ", 1)[-1] for part in said]
        found += bodies
        assert sum(map(count_tokens, bodies)) <= tokens or len(bodies) == 1
    assert found == [*chain(*kept)]


SPECIES = {
    "Branta leucopsis": "Barnacle Goose",
    "Papaipema inquaesita": "Sensitive Fern Borer",
    "Aus bus": "",
    "Xus yus": "Nothing",
    "Salix × alba": "",
}
PAGES = {
    "barnacle goose": "A goose. Branta leucopsis is grey.",
    "Branta leucopsis": "By its scientific name.",
    "sensitive fern borer": "A moth.",
    "Ferns": "Papaipema inquaesita eats ferns.",
    "Late": "A long way in, there is Aus bus.",
    "Early": "Aus bus is here.",
    "Willows": "One is Salix × alba.",
}


def test_pages_are_matched_by_scientific_name_then_common_name_then_earliest_mention():
    pages = [Article(title, (("", text),)) for title, text in PAGES.items()]
    found = match_pages(SPECIES, pages)
    assert {name: (page.article.title, page.matched_by) for name, page in found.items()} == {
        "Branta leucopsis": ("Branta leucopsis", "scientific name"),
        "Papaipema inquaesita": ("sensitive fern borer", "common name"),
        "Aus bus": ("Early", "mention"),
        "Salix × alba": ("Willows", "mention"),
    }
    assert match_pages(SPECIES, reversed(pages)) == found  # whatever the order
    assert list(match_counts(SPECIES, found)["species"]) == [1, 1, 2, 1]


def test_an_encyclopedia_is_read_once_and_again_when_it_changes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("vrag_kit.log.PAUSE", 0)
    load = partial(load_species_pages, tmp_path / "a", SPECIES, tmp_path / "cache")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.md").write_text("# Aus bus\n\nIt is small.\n", encoding="utf-8")
    first = load()
    assert "reading articles" in capsys.readouterr().out
    assert load() == first
    assert "reading articles" not in capsys.readouterr().out
    (tmp_path / "a" / "2.md").write_text("# Branta leucopsis\n\nA goose.\n", encoding="utf-8")
    assert set(load()) == {"Aus bus", "Branta leucopsis"}


@pytest.mark.parametrize(
    ("heading", "last"),
    [
        ("== Description ==", "== References =="),
        ("## Description", "### References"),
        ("Description", "References "),
    ],
)
def test_a_page_is_split_at_headings_of_any_kind(heading, last):
    text = MOTH.replace("== Description ==", heading).replace("== References ==", last)
    article = parse_article("M", text)
    assert article.sections == (
        ("", "Papaipema is a moth. It flies at night."),
        ("Description", "The forewings are orange."),
        ("References", "Smith 1990. A list."),
    )
    kept = "M. Papaipema is a moth. It flies at night. Description: The forewings are orange."
    assert chunk_article(article) == [kept]
    whole = parse_article("M", "It is a moth.\n\nIt is orange.\nVery much so")
    assert whole.sections == (("", "It is a moth. It is orange. Very much so"),)


def test_a_folder_of_files_and_a_saved_data_set_give_the_same_articles(tmp_path):
    with pytest.raises(VragError, match=r"\.txt or \.md"):
        read_articles(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a_moth.txt").write_text(MOTH, encoding="utf-8")
    (tmp_path / "folder" / "b.md").write_text("# The Goose\n\nIt is a goose.\n", encoding="utf-8")
    rows = {"id": ["1", "2"], "title": ["a moth", "The Goose"], "text": [MOTH, "It is a goose."]}
    datasets.Dataset.from_dict(rows).save_to_disk(tmp_path / "saved")
    count, articles = read_articles(tmp_path / "folder")
    saved_count, saved = read_articles(tmp_path / "saved")
    assert list(articles) == list(saved)
    assert count == saved_count == 2
    datasets.Dataset.from_dict({"body": ["x"]}).save_to_disk(tmp_path / "other")
    with pytest.raises(VragError, match="'text'; found body"):
        read_articles(tmp_path / "other")


def test_the_chunks_of_the_species_page_are_relevant(guide):
    names = sorted({query.entity for query in guide.queries.values()})
    more = ("Range", "It lives here. " * 30)
    articles = [Article(name, (("", f"{name} is one. " * 30), more)) for name in names[:-1]]
    found = match_pages(dict.fromkeys(names, ""), articles)
    knowledge = knowledge_base(guide, found, tokens=50)
    of_title: dict[str, set[str]] = {name: set() for name in names}
    for doc_id, document in knowledge.corpus.items():
        of_title[document.metadata["title"]].add(doc_id)
    assert [name for name in names if not of_title[name]] == names[-1:]
    for query_id, query in guide.queries.items():
        assert set(knowledge.qrels[query_id]) == of_title[query.entity]
        assert knowledge.candidates(query_id) is None
    assert knowledge.fingerprint != knowledge_base(guide, found, tokens=60).fingerprint
    with pytest.raises(VragError, match="no article"):
        knowledge_base(guide, {})


def test_a_list_of_species_is_read_as_inaturalist_writes_it(tmp_path):
    rows = [{"name": "Branta leucopsis", "common_name": "Barnacle Goose"}, {"name": "Aus bus"}]
    for content in (rows, {"categories": rows, "images": []}):
        (tmp_path / "c.json").write_text(json.dumps(content), encoding="utf-8")
        names = {"Branta leucopsis": "Barnacle Goose", "Aus bus": ""}
        assert read_species(tmp_path / "c.json") == names
