"""The paper's prompts (appendix B.1) and those of its code, which differ; for text both
are ours, marked in the files.
"""

from __future__ import annotations

from pathlib import Path

from vrag_kit.generation.wording import read_wording

_FOLDER = Path(__file__).parent

WORDINGS = {name: read_wording(_FOLDER / f"wording_{name}.json") for name in ("paper", "code")}
"""By the name that a parameter gives them. Both show the query's picture first, then
examples in order, and have the templates alone, examples, passages, and examples and
passages; also for the kit's own settings.
"""
