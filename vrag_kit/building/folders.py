"""Species folders with pictures: named as in iNaturalist, or any tree
`entity/image.jpg`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.images import SUFFIXES, list_images
from vrag_kit.errors import VragError

# NNNNN_Kingdom_Phylum_Class_Order_Family_Genus_species
_INATURALIST = re.compile(r"\d+_(?:[A-Z][^_]*_){6}[^_].*")


@dataclass(frozen=True, slots=True)
class SpeciesFolder:
    """One species, or any other thing with a folder of its own, and its pictures."""

    root: Path  # the image root, in which the folder lies
    name: str  # of the folder
    scientific: str  # "Branta leucopsis"; of another folder its name, with blanks for underscores
    common: str  # "" where none is known
    # kingdom, phylum, class, order, family; () for folders that are not named as in iNaturalist
    lineage: tuple[str, ...]
    images: tuple[str, ...]  # "<folder>/<file>", in order of the names; never empty

    @property
    def called(self) -> str:
        """The common name with the scientific one behind it, as questions say it; the
        scientific one alone where there is no other.
        """
        if self.common in ("", self.scientific):
            return self.scientific
        return f"{self.common} (scientific name: {self.scientific})"


def read_folders(
    image_root: Path | str, common_names: Mapping[str, str] | None = None
) -> list[SpeciesFolder]:
    """The folders in `image_root` that hold pictures, by name.

    `common_names` maps scientific to common names, as `read_species` does.

    Raises `VragError` when the folder is missing or holds no such folder, when two of
    them are of one species, and for a name with white space, which TREC files cannot
    hold.
    """
    root = Path(image_root)
    if not root.is_dir():
        raise VragError(
            f"{root}: no such folder; expected the one that holds a folder of pictures for each"
            " species."
        )
    found = [
        _read(folder, common_names or {})
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    ]
    kept = [folder for folder in found if folder.images]
    if not kept:
        raise VragError(
            f"{root}: found {len(found)} folders, none with pictures ({', '.join(SUFFIXES)});"
            " expected <species>/<picture>. Is this one folder too high or too low?"
        )
    names: dict[str, str] = {}
    for folder in kept:
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
    return kept


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
