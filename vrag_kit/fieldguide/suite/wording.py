"""How the shipped answerers are asked about pictures and passages at once: Visual-RAG's
words, which they learned, with both kinds of evidence below them.
"""

from __future__ import annotations

from dataclasses import replace

from vrag_kit.generation.wording import Template, Wording
from vrag_kit.papers.mrag_suite.wording import SETTINGS, suite_wording
from vrag_kit.papers.visual_rag.wording import WORDING

FIELD_GUIDE = "field-guide"
"""What the parameter `prompt` says for the shipped answerers: they know no other form."""
_ALONE = {"zero_shot": "no_image", "image": "several_images", "text": "text_passages"}
"""Setting → Visual-RAG's template; the others show both kinds."""


def open_wording(prompt: str, *, domain: str, answer: str = "short") -> Wording:
    """The wording that a parameter names: "field-guide", or one of the paper's prompts, as
    `suite_wording` has it.

    The shipped answerers give short answers only; their long ones are joined from
    replies (`Decomposed`). Raises `VragError` as `suite_wording` does.
    """
    if prompt != FIELD_GUIDE:
        return suite_wording(prompt, domain=domain, answer=answer)
    images = WORDING.template("several_images").slots
    passages = WORDING.template("text_passages").slots[-1]
    both = (
        *images[:-1],
        replace(images[-1], modality="image"),
        replace(passages, modality="text"),
    )
    alone = {name: WORDING.template(name) for name in _ALONE.values()}
    return replace(
        WORDING,
        templates={**alone, "both": Template("both", both)},
        settings={setting: {None: _ALONE.get(setting, "both")} for setting in SETTINGS},
    )
