"""How models are asked about the suite: prompts by parameter, closed books, judges of short
answers, and an evaluation for models that read no print.

The shipped answerers know Visual-RAG's prompts and no other form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from vrag_kit.benchmarks import captions_only
from vrag_kit.config import Entry, Workspace
from vrag_kit.generation import ask_models, gcue_contexts
from vrag_kit.generation.contexts import zero_shot
from vrag_kit.generation.generators import PROBABILITY
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.generation.store import stored_field
from vrag_kit.judging import Judge, judge_answers, load_judge
from vrag_kit.judging.judge import CustomJudge
from vrag_kit.papers.mrag_suite import prompts as paper
from vrag_kit.papers.mrag_suite.datasets import DATASETS, dataset_metric
from vrag_kit.papers.mrag_suite.modes import ask_suite
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.retrieval.hybrid import bm25_run
from vrag_kit.synthetic.mrag_suite.opening import MRAG_BENCH, VISUAL_RAG
from vrag_kit.types import Benchmark, JsonView, ordered

FIELD_GUIDE = "field-guide"
"""Value of the parameter `prompt` for the shipped answerers."""
WITH_WORDS = tuple(name for name in DATASETS if name not in (VISUAL_RAG, MRAG_BENCH))
"""The data sets whose documents all have a text."""
_ALONE = {"zero_shot": "no_image", "image": "several_images", "text": "text_passages"}
"""Setting → Visual-RAG's template; the others show images and passages."""
_ARMS = ("gt_clue", "non_clue", "one_in_k", "top_k")
_PASSAGES = """{% call(document, number) each(documents|selectattr("modality", "eq", "text")) %}
Passage {{ number }}: {{ document.text }}
{% endcall %}"""
"""Passages below images."""


def load_prompts(
    prompt: str, *, domain: str, answer: str = "short", options: bool = False
) -> PromptSet:
    """Return the prompts that a parameter names: "field-guide" for Visual-RAG's with images and
    passages, or one of the paper's prompts, as `suite_prompts` has it.

    The shipped answerers give short answers only, and see no options; their long answers are joined
    from replies. Raises `VragError` as `suite_prompts` does.
    """
    if prompt != FIELD_GUIDE:
        return paper.suite_prompts(prompt, domain=domain, answer=answer, options=options)
    both = PROMPTS.template("several_images").source + _PASSAGES
    settings = {setting: _ALONE.get(setting, "both") for setting in paper.SETTINGS}
    return PROMPTS.with_templates({"both": both}).with_settings(settings)


def load_prompts_by_dataset(prompt: str, suite: Mapping[str, Benchmark]) -> dict[str, PromptSet]:
    """Return `load_prompts` for each data set, in its domain, with options if it has them."""
    found = {}
    for name, benchmark in suite.items():
        queries = list(benchmark.queries.values())
        domain = str(queries[0].metadata["domain"]) if queries else ""
        options = any(query.choices for query in queries)
        found[name] = load_prompts(prompt, domain=domain, options=options)
    return found


def load_prompt_sweep(
    layout: str, prompts: Sequence[str], suite: Mapping[str, Benchmark]
) -> dict[str, dict[str, PromptSet]]:
    """Return for each of `prompts`, names in `PROMPTS`, that of every data set, as `suite_prompts`
    has it. With the `layout` "field-guide" they are the words that the shipped answerers know, with
    the parts of the paper's prompt behind them: how it opens, the style of an answer, the
    reasoning.

    These answerers read no other form, and were trained on none of the parts. Raises `VragError` as
    `suite_prompts` does.
    """
    found = {prompt: load_prompts_by_dataset(prompt, suite) for prompt in prompts}
    if layout != FIELD_GUIDE:
        return found
    for prompt, (name, benchmark) in product(prompts, suite.items()):
        query = next(iter(benchmark.queries.values()))
        found[prompt][name] = _with_parts(prompt, str(query.metadata["domain"]))
    return found


def _with_parts(prompt: str, domain: str) -> PromptSet:
    """The guide's words with a prompt's parts at the end: before them they change no reply."""
    design = paper.prompt_design(prompt)
    known = load_prompts(FIELD_GUIDE, domain=domain)
    example, reasoning = paper.EXAMPLES[design.example], paper.REASONING[design.reasoning]
    behind = "\n".join(filter(None, (design.opening(domain), example, reasoning))) + "\n"
    templates = {}
    for name, template in known.templates.items():
        values = {**template.values, "behind": behind}
        templates[name] = replace(template, source=template.source + "{{ behind }}", values=values)
    return replace(known, templates=templates)


def prompts_for(benchmark: Benchmark) -> PromptSet:
    """Return Visual-RAG's prompts for the modalities of a corpus: passages, images, or both."""
    kinds = {document.modality for document in benchmark.corpus.values()}
    if kinds == {"text"}:
        return PROMPTS.use_template("text_passages")
    if kinds == {"image"}:
        return PROMPTS
    return load_prompts(FIELD_GUIDE, domain="").with_settings(dict.fromkeys(_ARMS, "both"))


def ask_closed_book(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    at: Workspace,
    *,
    prompt: str,
    **how: JsonView | None,  # decoding
) -> pd.DataFrame:
    """Ask models without evidence; returns the answers to all data sets (`ask_suite`), with the
    column confidence, in [0, 1], NaN for none.

    Models state their confidence in the form of `closed_book_prompts`. With the `prompt`
    "field-guide" the shipped answerers are asked in Visual-RAG's words: they cannot state it, and
    it is the probability of the whole reply (`PROBABILITY`).
    """
    by_guide = prompt == FIELD_GUIDE
    prompts = dict.fromkeys(suite, PROMPTS if by_guide else paper.closed_book_prompts())
    contexts = {name: zero_shot(benchmark) for name, benchmark in suite.items()}
    answers = ask_suite(models, suite, contexts, prompts, at, **how)
    if not by_guide:
        return paper.with_confidence(answers)
    confidence = stored_field(answers, at, PROBABILITY)
    return answers.assign(confidence=confidence.astype(float))


def open_judges(
    judge: Entry | CustomJudge,
    datasets: Mapping[str, Benchmark],
    at: Workspace,
) -> dict[str, Judge]:
    """Return the judge of short answers by data set: its own metric (`dataset_metric`), or, where
    it has none, `judge`, by Visual-RAG's rubric for Visual-RAG and by `SHORT_ANSWERS` for any
    other. Raises `VragError` as `load_judge` does.
    """
    judges: dict[str, Judge] = {}
    for name, benchmark in datasets.items():
        if metric := dataset_metric(name, benchmark):
            judges[name] = load_judge(metric)
        else:
            rubric = RUBRIC if name == VISUAL_RAG else paper.SHORT_ANSWERS
            judges[name] = load_judge(judge, at, rubric=rubric)
    return judges


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOnlyEvaluation:
    """Evaluates models that read no print: pages, charts and captions are shown as passages, images
    only where they show no print.
    """

    k: int = 3
    """Number of passages: found by words (`bm25_run`), or one gold passage and k − 1 others."""
    questions: int | None = None
    """Maximum number of questions of each data set; None: all that have a gold document."""
    seed: int = 0
    """Seed of the sample of questions and of what is drawn."""

    def ask(
        self,
        datasets: Mapping[str, Benchmark],
        models: Sequence[Entry],
        at: Workspace,
        *,
        decoding: JsonView | None = None,
    ) -> dict[str, tuple[Benchmark, pd.DataFrame]]:
        """Return (sampled questions, their judged answers) by row: in the settings top_k (found by
        the documents' words) and those that gCUE needs, judged by the data set's own metric
        (`dataset_metric`), else by rule. A data set with images has two rows, its own with them,
        and "…, captions and snippets"; one without is called "…, text only". No question is shown
        what the data set leaves out for it (`Benchmark.left_out`).

        Raises `VragError` for a document without text.
        """
        found = {}
        for name, benchmark in datasets.items():
            few = benchmark.subset(self.sample(benchmark))
            judge = load_judge(dataset_metric(name, few) or "rule")
            rows = {f"{name}, text only": few}
            if any(document.image for document in few.corpus.values()):
                rows = {name: few, f"{name}, captions and snippets": captions_only(few)}
            for row, shown in rows.items():
                run = bm25_run(captions_only(shown), self.k)
                contexts = gcue_contexts(shown, run, k=self.k, seed=self.seed)
                prompts = prompts_for(shown)
                answers = ask_models(
                    models, shown, contexts, at, prompts=prompts, decoding=decoding
                )
                found[row] = (shown, judge_answers(judge, shown, answers))
        return found

    def sample(self, benchmark: Benchmark) -> list[str]:
        """Return the ids of the sampled questions; a larger sample begins with a smaller one."""
        there = [name for name in benchmark.queries if benchmark.relevant(name)]
        return ordered(there, self.seed, "in words")[: self.questions]
