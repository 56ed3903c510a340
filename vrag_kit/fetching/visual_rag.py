"""Extract the images that Visual-RAG annotations name from iNaturalist 2021's archive."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.benchmarks.json_lines import read_lines
from vrag_kit.benchmarks.visual_rag import image_name_problem
from vrag_kit.benchmarks.visual_rag_rows import empty_file_error, parse_row
from vrag_kit.errors import VragError
from vrag_kit.fetching.fetching import FetchReport, fetch_images
from vrag_kit.fetching.filling import is_image_name


def fetch_visual_rag(annotations: Path | str, archive: Path | str, to: Path | str) -> FetchReport:
    """Extract the images that Visual-RAG annotations name from a gzip tar.

    The archive is a file or an http(s) URL. Images go to `to`/<species folder>/<file>, as in
    `fetch_images`. Raises `VragError` for unusable annotations, an unreadable archive, and an
    unwritable folder.
    """
    return fetch_images(_named_images(Path(annotations), Path(to)), archive, to)


def _named_images(annotations: Path, root: Path) -> set[str]:
    names: set[str] = set()
    for where, line in read_lines(annotations):
        for name in parse_row(line, where)["images"]:
            if problem := image_name_problem(name, root):
                raise VragError(f"{where}: {problem}")
            if not is_image_name(name):
                raise VragError(f"{where}: image {name!r}; expected '<species folder>/<file>'.")
            names.add(name)
    if not names:
        raise empty_file_error(annotations)
    return names
