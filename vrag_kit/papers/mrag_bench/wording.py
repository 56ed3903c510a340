"""The paper's prompts (appendix B.1) and those of its code, which differ; for text both
are ours, marked in the files.
"""

from __future__ import annotations

from pathlib import Path

from vrag_kit.generation.wording import Wording, open_wording, read_wording

_FOLDER = Path(__file__).parent

WORDINGS = {name: read_wording(_FOLDER / f"wording_{name}.json") for name in ("paper", "code")}
"""By the name that a parameter gives them. Both show the query's picture first, then
examples in order, and have the templates alone, examples, passages, and examples and
passages; also for the kit's own settings.
"""


def wording_of(wording: str) -> Wording:
    """The prompts that the parameter `wording` names: of `WORDINGS`, or a JSON file of
    one's own, which leaves out what it has as the paper.

    Raises `VragError` as `open_wording` does.
    """
    return open_wording(wording, WORDINGS, "wording")
