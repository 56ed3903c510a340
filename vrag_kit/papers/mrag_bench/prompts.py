"""Prompts of the paper (appendix B.1) and of its code, which differ; those for text are ours,
marked in the files.
"""

from __future__ import annotations

from pathlib import Path

from vrag_kit.generation.prompts import PromptSet, open_prompt_set, read_prompts

_FOLDER = Path(__file__).parent

PROMPT_SETS = {name: read_prompts(_FOLDER / f"prompts_{name}.yaml") for name in ("paper", "code")}
"""Maps a parameter's value to its prompts. Both show the query's image first, then examples in
order, and have the templates alone, examples, passages, and examples and passages; also for the
kit's own settings.
"""


def load_prompts(prompt_set: str) -> PromptSet:
    """Returns the prompts that the parameter `prompt_set` names: one of `PROMPT_SETS`, or a custom
    YAML file, which defaults to the paper's prompts.

    Raises `VragError` as `open_prompt_set` does.
    """
    return open_prompt_set(prompt_set, PROMPT_SETS, "prompt_set")
