"""The captions of a drawn guide, written where they are not there.

<guide>/webqa/…                the questions and images (`captions`)
<guide>/webqa/captions.json    which guide and which code they were written from
"""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import lock_folder, write_file
from vrag_kit.synthetic.captions import write_webqa
from vrag_kit.synthetic.generator_version import generator_version
from vrag_kit.synthetic.pages import EDITIONS
from vrag_kit.types import Json


def write_caption_data(edition: str, folder: Path | str) -> Path:
    """Write the WebQA of the guide drawn in `folder`, unless it is there already;
    returns the folder "webqa" in it.

    Raises `VragError` for an unknown edition, a guide that is not drawn or is another
    edition, and a folder that cannot be written.
    """
    folder = Path(folder)
    target = folder / "webqa"
    if edition not in EDITIONS:
        raise VragError(
            f"unknown edition {edition!r} of the Field Guide; expected one of"
            f" {', '.join(map(repr, EDITIONS))}."
        )
    guide = _read(folder / "guide.json")
    complete = bool(guide.get("complete"))
    if guide.get("edition") != edition or not complete:
        found = f"the {guide['edition']} Field Guide" if complete else "no complete Field Guide"
        raise VragError(
            f"{folder}: holds {found}, expected the {edition} one. Draw it first, by"
            f" generate_field_guide({edition!r}, …)."
        )
    wanted = {"guide": guide, "written_by": generator_version("captions")}
    if _read(target / "captions.json") == wanted:
        return target
    try:
        with lock_folder(target, "writing the captions"):
            if _read(target / "captions.json") != wanted:
                (target / "captions.json").unlink(missing_ok=True)
                write_webqa(EDITIONS[edition], folder / "images", target)
                write_file(target / "captions.json", json.dumps(wanted, indent=2))
    except OSError as error:
        raise VragError(
            f"{error.filename or target}: the captions cannot be written"
            f" ({error.strerror or error}). Choose a folder with write access and 20 MB free, with"
            " all images of the guide."
        ) from error
    return target


def _read(path: Path) -> Json:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
