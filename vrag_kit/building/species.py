"""Folders of species with their images, and the choice of species whose articles have little
summary and description (Visual-RAG, appendix C).
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.articles import Article
from vrag_kit.benchmarks.images import SUFFIXES, ImageFile, list_images
from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.errors import VragError
from vrag_kit.files import safe_join

# NNNNN_Kingdom_Phylum_Class_Order_Family_Genus_species
_INATURALIST = re.compile(r"\d+_(?:[A-Z][^_]*_){6}[^_].*")


@dataclass(frozen=True, slots=True)
class SpeciesFolder:
    """A species, or any other entity with its own folder, and its images."""

    root: Path  # the image root, in which the folder lies
    name: str  # of the folder
    scientific: str  # "Branta leucopsis"; of another folder its name, with blanks for underscores
    common: str  # "" where none is known
    # kingdom, phylum, class, order, family; () for folders that are not named as in iNaturalist
    lineage: tuple[str, ...]
    images: tuple[str, ...]  # "<folder>/<file>", in order of the names; never empty

    @property
    def called(self) -> str:
        """The common name followed by the scientific name, as in questions.
        The scientific name alone where there is no other.
        """
        if self.common in ("", self.scientific):
            return self.scientific
        return f"{self.common} (scientific name: {self.scientific})"

    def image(self, doc_id: str) -> ImageFile:
        """Return one of the images. Raises `VragError` for a path that leaves the root."""
        return ImageFile(safe_join(self.root, doc_id, f"folder {self.name}"))


def read_species_folders(
    image_root: Path | str, common_names: Mapping[str, str] | None = None
) -> list[SpeciesFolder]:
    """Return the folders in `image_root` that hold images, sorted by name.

    `common_names` maps scientific to common names, as `read_species` does. Files without an image
    suffix are left out.

    Raises `VragError` when `image_root` holds no such folder or is missing, when two folders are of
    one species, and for a name with white space, which TREC files cannot hold.
    """
    root = Path(image_root)
    places = [each for each in sorted(root.glob("[!.]*")) if each.is_dir()]
    folders = [_read(place, common_names or {}) for place in places]
    folders = [folder for folder in folders if folder.images]
    if not folders:
        suffixes = ", ".join(SUFFIXES)
        raise VragError(f"{root}: found no image ({suffixes}); expected <species>/<image>.")
    _check_names(root, folders)
    return folders


def folder_of(question: Mapping[Hashable, Any], folders: Sequence[SpeciesFolder]) -> SpeciesFolder:
    """Return the folder of a question, a row with question_id and folder.
    Raises `VragError` if it is not among `folders`.
    """
    for folder in folders:
        if folder.name == question["folder"]:
            return folder
    raise VragError(
        f"question {question['question_id']!r}: found the folder {question['folder']!r}; expected"
        f" one of {len(folders)} species folders, such as {folders[0].name}."
    )


def _check_names(root: Path, folders: Sequence[SpeciesFolder]) -> None:
    names: dict[str, str] = {}
    for folder in folders:
        first = names.setdefault(folder.scientific, folder.name)
        if first != folder.name:
            raise VragError(
                f"{root}: {first!r} and {folder.name!r} are both {folder.scientific!r}; expected"
                " one folder for each species."
            )
        for name in (folder.name, *folder.images):
            if re.search(r"\s", name):
                raise VragError(
                    f"{root}: {name!r} contains white space, which TREC files cannot hold; expected"
                    f" a name such as {'_'.join(name.split())!r}."
                )


def _read(folder: Path, common_names: Mapping[str, str]) -> SpeciesFolder:
    ranks = folder.name.split("_")[1:] if _INATURALIST.fullmatch(folder.name) else []
    scientific = " ".join(ranks[5:] or folder.name.split("_"))
    return SpeciesFolder(
        root=folder.parent,
        name=folder.name,
        scientific=scientific,
        common=common_names.get(scientific, ""),
        lineage=tuple(ranks[:5]),
        images=tuple(f"{folder.name}/{path.name}" for path in list_images(folder)),
    )


_LOOKS = "description|appearance|identification|morphology|characteristics|characters|features"
_DESCRIBES = re.compile(
    rf"((general|physical|morphological) )?({_LOOKS})s?( and ({_LOOKS}))?", re.IGNORECASE
)
"""Headings of description sections.

Their subsections are not included: articles are parsed without the level of a heading.
"""
_COLUMNS = "folder species common n_images title description_share chosen reason"


def select_species(
    folders: Sequence[SpeciesFolder], pages: Mapping[str, Page], limit: float = 0.5
) -> pd.DataFrame:
    """Return one row per species, with whether it is chosen, and why.

    Columns folder, species (scientific name), common, n_images, title of its article (""
    without one), description_share (`description_share`, in [0, 1], NaN without an
    article), chosen and reason. A species is chosen when that share is at most `limit`, as in
    appendix C: an article with much other content describes the looks in few words. One without an
    article is not chosen, as nothing shows how well it is described; but when `pages` is empty, all
    are. No folders give no rows.
    """
    rows = []
    for folder in folders:
        article = pages[folder.scientific].article if folder.scientific in pages else None
        share = description_share(article) if article else math.nan
        chosen = not pages or share <= limit
        why = _why(article, share, limit) if pages else "no articles given"
        who = (folder.name, folder.scientific, folder.common, len(folder.images))
        rows.append((*who, article.title if article else "", share, chosen, why))
    return pd.DataFrame(rows, columns=_COLUMNS.split())


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
    """The opening, which has no heading, and the sections that describe."""
    return [
        (heading, text)
        for heading, text in article.sections
        if not heading or _DESCRIBES.fullmatch(heading.strip())
    ]


def _why(article: Article | None, share: float, limit: float) -> str:
    if article is None:
        return "no article found: nothing tells how well it is described"
    if math.isnan(share):
        return "the article is empty"
    beside = "at most" if share <= limit else "more than"
    return f"summary and description are {share:.1%} of the article, {beside} {limit:.0%}"
