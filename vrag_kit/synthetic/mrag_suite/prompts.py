"""How the shipped answerers are asked about pictures and passages at once: Visual-RAG's
words, which they learned, with both kinds of evidence below them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vrag_kit.generation.prompts import PromptSet
from vrag_kit.papers.mrag_suite.prompts import (
    EXAMPLES,
    REASONING,
    SETTINGS,
    PromptDesign,
    prompt_design,
    suite_prompts,
)
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.types import Benchmark

FIELD_GUIDE = "field-guide"
"""What the parameter `prompt` says for the shipped answerers: they know no other form."""
_ALONE = {"zero_shot": "no_image", "image": "several_images", "text": "text_passages"}
"""Setting → Visual-RAG's template; the others show both kinds."""
_PASSAGES = """{% call(document, number) each(documents|selectattr("modality", "eq", "text")) %}
Passage {{ number }}: {{ document.text }}
{% endcall %}"""
"""Passages below images."""


def load_prompts(
    prompt: str, *, domain: str, answer: str = "short", options: bool = False
) -> PromptSet:
    """The prompts that a parameter names: "field-guide", or one of the paper's prompts, as
    `suite_prompts` has it.

    The shipped answerers give short answers only, and see no options; their long answers
    are joined from replies (`DecomposedBenchmark`). Raises `VragError` as `suite_prompts` does.
    """
    if prompt != FIELD_GUIDE:
        return suite_prompts(prompt, domain=domain, answer=answer, options=options)
    images = PROMPTS.template("several_images")
    names = [*_ALONE.values(), "both"]
    known = PROMPTS.with_templates({"both": images.source + _PASSAGES})
    return replace(
        known,
        templates={name: known.template(name) for name in names},
        settings={setting: {None: _ALONE.get(setting, "both")} for setting in SETTINGS},
    )


def load_prompts_by_dataset(prompt: str, suite: Mapping[str, Benchmark]) -> dict[str, PromptSet]:
    """`load_prompts` for each data set, in its domain, with options where it has them."""
    found = {}
    for name, benchmark in suite.items():
        domain, options = _domain_and_options(benchmark)
        found[name] = load_prompts(prompt, domain=domain, options=options)
    return found


def load_prompt_sweep(
    layout: str, prompts: Sequence[str], suite: Mapping[str, Benchmark]
) -> dict[str, dict[str, PromptSet]]:
    """Data set → name in `PROMPTS` → its prompts, as `suite_prompts` has it; with the
    `layout` "field-guide" the words that the shipped answerers know, with the paper's
    parts behind them: how it opens, the style of an answer, and the reasoning.

    These answerers read no other form, and learned none of the parts. Raises `VragError`
    as `suite_prompts` does.
    """
    found = {}
    for name, benchmark in suite.items():
        domain, options = _domain_and_options(benchmark)
        if layout == FIELD_GUIDE:
            found[name] = {each: _with_parts(prompt_design(each), domain) for each in prompts}
        else:
            found[name] = {
                each: suite_prompts(each, domain=domain, options=options) for each in prompts
            }
    return found


def _domain_and_options(benchmark: Benchmark) -> tuple[str, bool]:
    """The domain of a data set, and whether its questions have options."""
    queries = list(benchmark.queries.values())
    domain = str(queries[0].metadata["domain"]) if queries else ""
    return domain, any(query.choices for query in queries)


def _with_parts(design: PromptDesign, domain: str) -> PromptSet:
    """The guide's words with a prompt's parts behind them, last of all: before them they
    change no reply.
    """
    known = load_prompts(FIELD_GUIDE, domain=domain)
    parts = (design.opening(domain), EXAMPLES[design.example], REASONING[design.reasoning])
    behind = "\n".join(filter(None, parts)) + "\n"
    templates = {}
    for name, template in known.templates.items():
        values = {**template.values, "behind": behind}
        source = template.source + "{{ behind }}"
        templates[name] = replace(template, source=source, values=values)
    return replace(known, templates=templates)
