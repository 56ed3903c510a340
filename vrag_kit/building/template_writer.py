"""Write questions from templates, without a language model.
There is one question per part that photographs of such an organism rarely show.
"""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.structured import ParsedQuestion
from vrag_kit.plain import Json

NAME = "template"
"""Name of the writer in parameters and tables."""
_DATA = json.loads((Path(__file__).parent / "template_parts.json").read_text(encoding="utf-8"))
PARTS: dict[str, list[Json]] = {}
for row in _DATA["table"]:
    PARTS.update(dict.fromkeys(row["ranks"], row["parts"]))
"""Rank of a lineage → its rarely seen parts: part, plural, asks ("color", "pattern" or
"shape"), hint (why it is rarely seen).
"""


def write_template_questions(folder: SpeciesFolder) -> list[ParsedQuestion]:
    """Return questions about a species, each with its feature.

    They cover the parts of the most specific rank of its lineage that the table knows. [] when it
    knows none, as for folders without a lineage.
    """
    rank = next((rank for rank in reversed(folder.lineage) if rank in PARTS), "")
    return [_question(part, folder.called) for part in PARTS.get(rank, ())]


def _question(part: Json, called: str) -> ParsedQuestion:
    words = {
        "part": part["part"],
        "do": "do" if part["plural"] else "does",
        "hint": part["hint"],
        "called": called,
    }
    asked, feature = _DATA["questions"][part["asks"]], _DATA["features"][part["asks"]]
    return ParsedQuestion(asked.format(**words), feature=feature.format(**words))
