"""Species are chosen whose articles' summary and description are at most half (appendix C)."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_kit.benchmarks.articles import Article, parse_article
from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.building.species import (
    SpeciesFolder,
    description_share,
    description_text,
    select_species,
)


def folder(scientific: str) -> SpeciesFolder:
    name = scientific.replace(" ", "_")
    return SpeciesFolder(Path(), name, scientific, "Rescuegrass", (), ("a/a.jpg", "a/b.jpg"))


def page(*sections: tuple[str, str]) -> Page:
    return Page("Genus species", "scientific name", Article("Genus species", sections))


def test_the_share_is_that_of_the_opening_and_the_description_in_the_whole_page() -> None:
    lines = ["A grass.", "== Appearance ==\nIt has loose panicles.", "=== Spikelets ===\nAll flat."]
    lines += ["== Uses ==\nIt is sown.", "== References ==\nA flora."]
    grass = parse_article("Bromus", "\n\n".join(lines))
    # opening 8 characters, Appearance 22; the page: these, three more texts (9 + 11 + 8),
    # four headings (10 + 9 + 4 + 10), and 8 breaks between
    whole = 8 + 22 + 9 + 11 + 8 + 10 + 9 + 4 + 10 + 8
    assert description_share(grass) == pytest.approx((8 + 22) / whole)
    assert description_text(grass) == "A grass.\nIt has loose panicles."


@pytest.mark.parametrize(
    ("share", "chosen"), [(0.49, True), (0.5, True), (0.51, False), (1.0, False)]
)
def test_a_species_is_chosen_up_to_the_limit_with_its_reason(share: float, chosen: bool) -> None:
    shown = round(1000 * share)
    # the heading and two breaks are three characters
    more = (("R", "x" * (1000 - shown - 3)),) if share < 1 else ()
    pages = {"Genus species": page(("", "x" * shown), *more)}
    (row,) = select_species([folder("Genus species")], pages).itertuples()
    assert (row.description_share, row.chosen) == (pytest.approx(share), chosen)
    compared = "at most" if chosen else "more than"
    assert row.reason == f"summary and description are {share:.1%} of the article, {compared} 50%"


def test_a_species_without_an_article_is_not_chosen_unless_there_are_no_articles() -> None:
    both = [folder("Genus species"), folder("Genus other")]
    table = select_species(both, {"Genus species": page(("", "short"), ("Uses", "long " * 20))})
    assert table["chosen"].tolist() == [True, False]
    assert "no article found" in table["reason"][1]
    assert select_species(both, {})["chosen"].all()
    assert not select_species(both[:1], {"Genus species": page()})["chosen"].any()
