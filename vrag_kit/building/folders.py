"""Species folders with images: named as in iNaturalist, or any tree
`entity/image.jpg`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.images import SUFFIXES, list_images
from vrag_kit.errors import VragError
from vrag_kit.log import logger

# NNNNN_Kingdom_Phylum_Class_Order_Family_Genus_species
_INATURALIST = re.compile(r"\d+_(?:[A-Z][^_]*_){6}[^_].*")
_NAMED = 3
"""Folders that are named where files in several are passed over."""


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


def read_species_folders(
    image_root: Path | str, common_names: Mapping[str, str] | None = None
) -> list[SpeciesFolder]:
    """Return the folders in `image_root` that hold images, sorted by name.

    `common_names` maps scientific to common names, as `read_species` does. Files without an image
    suffix are skipped, and a printed line says so.

    Raises `VragError` when `image_root` is missing or holds no such folder, when two folders are of
    one species, and for a name with white space, which TREC files cannot hold.
    """
    root = Path(image_root)
    if not root.is_dir():
        raise VragError(
            f"{root}: no such folder; expected the one that holds a folder of pictures for each"
            " species."
        )
    subfolders = [
        folder
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    ]
    found = [_read(folder, common_names or {}) for folder in subfolders]
    kept = [folder for folder in found if folder.images]
    passed = [words for folder in subfolders if (words := skipped_files(folder))]
    if not kept:
        others = f" {_in_all(passed)}." if passed else ""
        raise VragError(
            f"{root}: found {len(found)} folders, none with pictures ({', '.join(SUFFIXES)});"
            f" expected <species>/<picture>. Is this one folder too high or too low?{others}"
        )
    if passed:
        logger.warning(_in_all(passed))
    _check_names(root, kept)
    return kept


def _check_names(root: Path, folders: Sequence[SpeciesFolder]) -> None:
    """Raise `VragError` for two folders of one species, and for white space in a name."""
    names: dict[str, str] = {}
    for folder in folders:
        if folder.scientific in names:
            raise VragError(
                f"{root}: {names[folder.scientific]!r} and {folder.name!r} are both"
                f" {folder.scientific!r}; expected one folder a species. Merge them."
            )
        names[folder.scientific] = folder.name
        if re.search(r"\s", folder.name):
            raise VragError(
                f"{root}: the folder {folder.name!r} contains white space, which TREC files cannot"
                f" hold. Rename it to {'_'.join(folder.name.split())!r}; it is shown with blanks"
                " all the same."
            )
        if odd := next((name for name in folder.images if re.search(r"\s", name)), None):
            raise VragError(
                f"{root}: the picture {odd!r} contains white space, which TREC files cannot hold."
                " Rename it."
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


def skipped_files(folder: Path) -> str:
    """Describe the files of a folder without an image suffix; "" if there are none.
    For example "moth/ has 3 files, none of them .jpg, … (.heic)". Hidden files do not count.
    """
    files = [path for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    others = [path for path in files if path.suffix.lower() not in SUFFIXES]
    if not others:
        return ""
    endings = Counter(path.suffix.lower() or "no ending" for path in others)
    told = ", ".join(f"{count:,} {ending}" for ending, count in endings.most_common())
    if len(others) < len(files):
        return f"{folder.name}/ has {len(files):,} files, of which {told} are passed over"
    return f"{folder.name}/ has {len(files):,} files, none of them {', '.join(SUFFIXES)} ({told})"


def _in_all(passed: Sequence[str]) -> str:
    """The first few lines of `skipped_files`, how many more there are, and what to do."""
    more = len(passed) - _NAMED
    rest = f", and so in {more:,} more folders" if more > 0 else ""
    words = "; ".join(passed[:_NAMED])
    return f"{words}{rest}: convert what should count to .jpg or .png"
