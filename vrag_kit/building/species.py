"""Select species whose articles have little summary and description
(Visual-RAG, appendix C).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.benchmarks.articles import Article
from vrag_kit.benchmarks.knowledge_base import Page
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
"""Headings of description sections, in lower case.

Their subsections are not included: articles are parsed without the level of a heading.
"""
_COLUMNS = (
    "folder",
    "species",
    "common",
    "n_images",
    "title",
    "n_words",
    "description_share",
    "chosen",
    "reason",
)


def select_species(
    folders: Sequence[SpeciesFolder], pages: Mapping[str, Page], limit: float = 0.5
) -> pd.DataFrame:
    """Return one row per species, with whether it is chosen, and why.

    Columns folder, species (scientific name), common, n_images, title and n_words of its article
    ("" and 0 without one), description_share (`description_share`, in [0, 1], NaN without an
    article), chosen and reason. A species is chosen when that share is at most `limit`, as in
    appendix C: an article with much other content describes the looks in few words. One without an
    article is not chosen, as nothing shows how well it is described; but when `pages` is empty, all
    are. No folders give no rows. Raises `VragError` for a limit outside [0, 1].
    """
    if not 0 <= limit <= 1:
        raise VragError(
            f"the limit on summary and description is {limit}; expected a share of the article from"
            " 0 to 1, such as the paper's 0.5."
        )
    rows = []
    for folder in folders:
        article = pages[folder.scientific].article if folder.scientific in pages else None
        share = description_share(article) if article else math.nan
        chosen = not pages or share <= limit
        title, words = (article.title, len(article.text.split())) if article else ("", 0)
        why = _why(article, share, limit) if pages else "no articles given"
        who = (folder.name, folder.scientific, folder.common, len(folder.images))
        rows.append((*who, title, words, share, chosen, why))
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def description_share(article: Article) -> float:
    """Return the share of summary and description in an article, in [0, 1]; NaN for an empty page.
    It divides their characters by those of the whole page.

    The whole page is "the entire Wikipedia article" of appendix C: headings, references and all
    other sections count.
    """
    if not article.text:
        return math.nan
    return sum(len(text) for _, text in _described(article)) / len(article.text)


def description_text(article: Article) -> str:
    """Return the summary and the description of an article, one paragraph per section.
    "" when it has neither.
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
