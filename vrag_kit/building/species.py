"""Which species to ask about: those of whose articles summary and description are a
small part (Visual-RAG, appendix C).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.benchmarks.articles import Article
from vrag_kit.benchmarks.knowledge import Page
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.errors import VragError

DESCRIPTIONS = frozenset(
    {
        "description",
        "descriptions",
        "general description",
        "physical description",
        "appearance",
        "physical appearance",
        "general appearance",
        "appearance and description",
        "description and appearance",
        "description and identification",
        "identification and description",
        "identification",
        "morphology",
        "description and morphology",
        "morphology and description",
        "characteristics",
        "physical characteristics",
        "morphological characteristics",
        "characters",
        "features",
        "physical features",
    }
)
"""Headings of a description, in lower case.

Their subsections are not among them: articles are read without the level of a heading.
"""
COLUMNS = ("folder", "species", "common", "images", "title", "words", "share", "chosen", "why")


def choose_species(
    folders: Sequence[SpeciesFolder], pages: Mapping[str, Page], limit: float = 0.5
) -> pd.DataFrame:
    """One row a species: which to ask about, and why.

    Columns folder, species (scientific name), common, images (how many), title and
    words of its article ("" and 0 without one), share (`described_share`, in [0, 1],
    NaN without an article), chosen and why. A species is chosen when its share is at
    most `limit`, as in appendix C: of species with much else to tell, what they look
    like is said in few words. One without an article is not chosen, as nothing tells
    how well it is described; but when `pages` is empty, all are. No folders give no
    rows. Raises `VragError` for a limit outside [0, 1].
    """
    if not 0 <= limit <= 1:
        raise VragError(
            f"the limit on summary and description is {limit}; expected a share of the article from"
            " 0 to 1, such as the paper's 0.5."
        )
    rows = []
    for folder in folders:
        article = pages[folder.scientific].article if folder.scientific in pages else None
        share = described_share(article) if article else math.nan
        chosen = not pages or share <= limit
        title, words = (article.title, len(article.text.split())) if article else ("", 0)
        why = _why(article, share, limit) if pages else "no articles given"
        who = (folder.name, folder.scientific, folder.common, len(folder.images))
        rows.append((*who, title, words, share, chosen, why))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def described_share(article: Article) -> float:
    """How much of an article is summary and description: their characters over those of
    the whole page, in [0, 1]; NaN for an empty page.

    The whole page is "the entire Wikipedia article" of appendix C: headings, references
    and all other sections count.
    """
    if not article.text:
        return math.nan
    return sum(len(text) for _, text in _described(article)) / len(article.text)


def described(article: Article) -> str:
    """The summary and the description of an article, a paragraph each; "" when it has
    neither.
    """
    return "\n".join(text for _, text in _described(article))


def _described(article: Article) -> list[tuple[str, str]]:
    """The opening, which has no heading, and the sections of `DESCRIPTIONS`."""
    return [
        (heading, text)
        for heading, text in article.sections
        if not heading or heading.strip().lower() in DESCRIPTIONS
    ]


def _why(article: Article | None, share: float, limit: float) -> str:
    if article is None:
        return "no article found: nothing tells how well it is described"
    if math.isnan(share):
        return "the article is empty"
    beside = "at most" if share <= limit else "more than"
    return f"summary and description are {share:.1%} of the article, {beside} {limit:.0%}"
