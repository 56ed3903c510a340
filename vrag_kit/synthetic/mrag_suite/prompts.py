"""How models are asked about the suite: prompts by parameter, closed books, judges of short
answers, and an evaluation for models that read no print.

The shipped answerers know Visual-RAG's prompts and no other form.

Long answers and their claims: models that know only short answers are asked one short question a
part, and the replies are joined. Nothing is trained for it, and a long answer has the errors of its
short ones. Each reply is stored like any other answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from vrag_kit import claims
from vrag_kit.benchmarks import captions_only
from vrag_kit.benchmarks.articles import split_sentences
from vrag_kit.claims.checkers import RULE
from vrag_kit.claims.verdicts import Label
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, gcue_contexts, load_generator
from vrag_kit.generation.contexts import zero_shot
from vrag_kit.generation.generators import PROBABILITY
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.generation.store import stored_field
from vrag_kit.judging import Judge, judge_answers, load_judge
from vrag_kit.judging.judge import CustomJudge
from vrag_kit.papers.cross_benchmark import JudgedBenchmark
from vrag_kit.papers.mrag_suite import prompts as paper
from vrag_kit.papers.mrag_suite.datasets import DATASETS, dataset_metric
from vrag_kit.papers.mrag_suite.hybrid import SuiteEvidence
from vrag_kit.papers.mrag_suite.modes import ask_suite
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.retrieval.hybrid import bm25_run
from vrag_kit.synthetic.mrag_suite.ground_truth import (
    GroundTruth,
    OracleClaimChecker,
    VisualClaimChecker,
)
from vrag_kit.synthetic.mrag_suite.opening import MRAG_BENCH, VISUAL_RAG
from vrag_kit.types import Benchmark, Context, JsonView, Query, QueryId, Status, ordered
from vrag_kit.workspace import Workspace

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
        options = any(query.choices for query in benchmark.queries.values())
        found[name] = load_prompts(prompt, domain=_domain(benchmark), options=options)
    return found


def _domain(benchmark: Benchmark) -> str:
    """The domain of a data set's questions; "" without any."""
    return next((str(query.metadata["domain"]) for query in benchmark.queries.values()), "")


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
    if layout != FIELD_GUIDE:
        return {prompt: load_prompts_by_dataset(prompt, suite) for prompt in prompts}
    domains = {name: _domain(benchmark) for name, benchmark in suite.items()}
    found: dict[str, dict[str, PromptSet]] = {prompt: {} for prompt in prompts}
    for prompt, name in product(prompts, domains):
        found[prompt][name] = _with_parts(prompt, domains[name])
    return found


def _with_parts(prompt: str, domain: str) -> PromptSet:
    """The guide's words with a prompt's parts at the end: before them they change no reply."""
    known = load_prompts(FIELD_GUIDE, domain=domain)
    behind = "\n".join(filter(None, paper.prompt_parts(prompt, domain).values())) + "\n"
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

    Models state their confidence in the form of `CLOSED_BOOK`. With the `prompt`
    "field-guide" the shipped answerers are asked in Visual-RAG's words: they cannot state it, and
    it is the probability of the whole reply (`PROBABILITY`).
    """
    by_guide = prompt == FIELD_GUIDE
    prompts = dict.fromkeys(suite, PROMPTS if by_guide else paper.CLOSED_BOOK)
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


def ask_as_text(
    datasets: Mapping[str, Benchmark],
    models: Sequence[Entry],
    at: Workspace,
    *,
    k: int,
    questions: int | None,
    seed: int = 0,
    decoding: JsonView,
) -> dict[str, tuple[Benchmark, pd.DataFrame]]:
    """Ask models that read no print: pages, charts and captions are shown as passages, images only
    where they show no print. Returns (sampled questions, their judged answers) by row.

    At most `questions` that have a gold document are sampled of each data set (None: all); a larger
    sample begins with a smaller one. The settings are top_k (k passages found by words) and those
    that gCUE needs (one gold passage and k − 1 others). Answers are judged by the data set's own
    metric (`dataset_metric`), else by rule. A data set with images has two rows, its own with them,
    and "…, captions and snippets"; one without is called "…, text only". No question is shown what
    the data set leaves out for it (`Benchmark.left_out`).

    Raises `VragError` for a document without text.
    """
    found = {}
    for name, benchmark in datasets.items():
        labelled = [query_id for query_id in benchmark.queries if benchmark.relevant(query_id)]
        few = benchmark.subset(ordered(labelled, seed, "in words")[:questions])
        judge = load_judge(dataset_metric(name, few) or "rule")
        rows = {f"{name}, text only": few}
        if any(document.image for document in few.corpus.values()):
            rows = {name: few, f"{name}, captions and snippets": captions_only(few)}
        for row, shown in rows.items():
            run = bm25_run(captions_only(shown), k)
            contexts = gcue_contexts(shown, run, k=k, seed=seed)
            prompts = prompts_for(shown)
            answers = ask_models(models, shown, contexts, at, prompts=prompts, decoding=decoding)
            found[row] = (shown, judge_answers(judge, shown, answers))
    return found


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LongQuestions:
    """The questions of a data set that ask for long answers, in the modes of evidence."""

    benchmark: Benchmark
    """With the reference of each long answer, where it is known."""
    questions: Benchmark
    """What is asked: the same questions, or their parts."""
    contexts: Sequence[Context]
    prompts: PromptSet
    world: GroundTruth | None = None
    """Reads the replies to parts; None for models that write a long answer at once."""


def ask_long(
    asked: LongQuestions, models: Sequence[Entry], at: Workspace, *, decoding: JsonView
) -> pd.DataFrame:
    """Return the long answers; those that are joined have the column parts, the answer ids of the
    replies (tuple). Raises as `ask_models` does.

    An answer joins the sentences of its replies; if none has one, the distinct replies. It fails as
    its first failed part does; it is truncated if a part was, and empty if nothing was said.
    """
    what = (models, asked.questions, asked.contexts, at)
    answers = ask_models(*what, prompts=asked.prompts, decoding=decoding)
    if asked.world is None:
        return answers
    keys = [answers[name] for name in ("model", "setting", "k", "m", "draw", "sample")]
    keys.append(answers["query_id"].map(_whole))
    rows = []
    for _, part in answers.groupby(keys, sort=False, dropna=False):
        rows.append(_joined(asked.world, asked.questions, part.to_dict("records")))
    return pd.DataFrame(rows, columns=[*answers.columns, "parts"]).astype({"m": "Int64"})


def _joined(
    world: GroundTruth, questions: Benchmark, rows: Sequence[Mapping[Hashable, Any]]
) -> Mapping[Hashable, object]:
    """The row of the long answer to which replies are joined."""
    ids = tuple(str(row["answer_id"]) for row in rows)
    whole = {**rows[0], "query_id": _whole(rows[0]["query_id"]), "parts": ids}
    whole["answer_id"] = hashlib.sha256("\n".join(ids).encode()).hexdigest()
    for row in rows:
        if not Status(row["status"]).is_answer:
            return {**whole, "status": row["status"], "detail": row["detail"], "answer": None}
    sentences: list[str] = []
    for row in rows:
        question = questions.queries[row["query_id"]].text
        sentences += world.language.claims(question, str(row["answer"]))
    replies = dict.fromkeys(str(row["answer"]) for row in rows)
    words = " ".join(sentences) or " ".join(replies).strip()
    truncated = [row["detail"] for row in rows if row["status"] == Status.TRUNCATED]
    status, detail = (Status.TRUNCATED, truncated[0]) if truncated else (Status.OK, "")
    if not truncated and not words:
        status, detail = Status.EMPTY, "nothing was said about any part"
    return {**whole, "status": status.value, "detail": detail, "answer": words}


def _whole(part_id: QueryId) -> QueryId:
    """The query of a part."""
    return part_id.rpartition("~")[0]


def questions_in_parts(
    world: GroundTruth, benchmark: Benchmark, contexts: Sequence[Context], prompts: PromptSet
) -> LongQuestions:
    """Return the questions of a benchmark split by `GroundTruth.sub_questions`: one query per part,
    about the query's image and over its documents, without options, accepted answers and
    conversation; and each context once per part.
    """
    queries: dict[QueryId, Query] = {}
    parts: dict[QueryId, list[QueryId]] = {}
    for query in benchmark.queries.values():
        bare = replace(query, answers=(), choices=(), conversation_id=None, turn=0)
        for number, text in enumerate(world.sub_questions(query), start=1):
            part_id = f"{query.query_id}~{number}"
            queries[part_id] = replace(bare, query_id=part_id, text=text)
            parts.setdefault(query.query_id, []).append(part_id)

    def of_parts(by_query: Mapping[QueryId, _T]) -> dict[QueryId, _T]:
        return {part: by_query[_whole(part)] for part in queries if _whole(part) in by_query}

    asked = "\n".join(f"{part_id} {query.text}" for part_id, query in queries.items())
    split: list[Context] = []
    for context in contexts:
        split += [replace(context, query_id=part_id) for part_id in parts[context.query_id]]
    questions = benchmark.derive(
        asked,
        queries=queries,
        qrels=of_parts(benchmark.qrels),
        pools=None if benchmark.pools is None else of_parts(benchmark.pools),
        left_out=of_parts(benchmark.left_out),
    )
    return LongQuestions(benchmark, questions, split, prompts, world)


def long_questions(
    suite: Mapping[str, Benchmark], modes: SuiteEvidence, prompt: str, world: GroundTruth | None
) -> dict[str, LongQuestions]:
    """Return by data set what is asked for long answers, in the modes of evidence.

    `prompt` is "field-guide" for the shipped answerers, which are asked one short question a trait;
    or one of the paper's prompts, whose line "Long answer" is read. In a synthetic edition the
    reference is the true value of all that a long answer may say; real data, where `world` is None,
    have only their accepted answers. Raises `VragError` for "field-guide" with real data.
    """
    if prompt == FIELD_GUIDE and world is None:
        raise VragError(
            f"prompt is {FIELD_GUIDE!r}, whose parts are known of synthetic editions only; expected"
            " one of the paper's prompts."
        )
    found = {}
    for name, whole in suite.items():
        few, contexts = modes.sample(whole), modes.modes(whole)
        prompts = load_prompts(prompt, domain=_domain(few), answer="long")
        if prompt == FIELD_GUIDE and world is not None:
            few = world.with_reference_answers(few)
            found[name] = questions_in_parts(world, few, contexts, prompts)
        else:
            found[name] = LongQuestions(few, few, contexts, prompts)
    return found


class SentenceGrammar:
    """Splits texts into sentences, and knows no other rule; implements `Grammar`."""

    def claims(self, question: str, words: str) -> Sequence[str]:
        """Return every distinct sentence as a claim; the question is ignored."""
        return tuple(dict.fromkeys(split_sentences(words)))

    def relation(self, claim: str, text: str) -> Label:
        """Return None: the relation of a text to a sentence is unknown."""
        return None


class ClaimPipeline(NamedTuple):
    """Extract claims from answers, check them, and have their true labels."""

    extractor: claims.ClaimExtractor
    checker: claims.ClaimChecker
    truth: claims.ClaimChecker | None
    """None for real data, where people's labels are the truth."""


def open_claim_pipeline(
    extractor: Entry,
    checker: Entry,
    world: GroundTruth | None,
    at: Workspace,
    *,
    answerers: Sequence[Entry] = (),
) -> ClaimPipeline:
    """Open the extractor and the checker that parameters name; replies are stored.

    With the extractor "rule" the grammar of the synthetic edition extracts claims and reads texts,
    and the model `checker` is asked each claim's question about images (with the checker "rule"
    claims about images have no label). Else both are models, as `load_extractor` and `load_checker`
    have them. An extractor "" is "rule", as in a dry run where the model is missing; without a
    synthetic edition its claims are whole sentences. Raises
    `VragError` for a checker that is one of the `answerers`.
    """
    grammar = SentenceGrammar() if world is None else world.language
    by_rule = extractor in ("", RULE)
    claim_extractor: claims.ClaimExtractor = claims.RuleExtractor(grammar)
    if not by_rule:
        claim_extractor = claims.load_extractor(extractor, at)
    claim_checker: claims.ClaimChecker = claims.RuleChecker(grammar)
    if by_rule and checker != RULE and world is not None:
        claims.forbid_self_check(checker, answerers)
        generator = load_generator(checker, decoding={"max_new_tokens": 16}, at=at)
        claim_checker = claims.RuleChecker(grammar, VisualClaimChecker(world, generator, at))
    elif checker != RULE:
        claim_checker = claims.load_checker(checker, at, answerers=answerers)
    truth = None if world is None else OracleClaimChecker(world)
    return ClaimPipeline(claim_extractor, claim_checker, truth)


def check_claims(
    suite: Mapping[str, Benchmark], answers: pd.DataFrame, pipeline: ClaimPipeline
) -> pd.DataFrame:
    """Return the answers of all data sets (column dataset) with the columns of `check_answers` and
    true_sheet, the same sheet with the true labels; None where these are unknown.
    """
    extractor, parts = pipeline.extractor, []
    for name, table in answers.groupby("dataset", sort=False):
        benchmark, true = suite[str(name)], None
        part = claims.check_answers(benchmark, table, extractor, pipeline.checker)
        if pipeline.truth is not None:
            true = claims.check_answers(benchmark, table, extractor, pipeline.truth)["sheet"]
        part["true_sheet"] = pd.Series(true, index=part.index, dtype=object)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def check_by_truth(
    row: JudgedBenchmark, world: GroundTruth, model: Entry, at: Workspace, decoding: JsonView
) -> JudgedBenchmark:
    """Return the row with the claims of its answers, extracted by the grammar and checked by ground
    truth.

    Where questions have several parts (`GroundTruth.sub_questions`), these are asked one by one
    over the documents that the answer was shown, and joined; the reference is then the true value
    of all parts. They are asked of `model`, that gave the short answers. A short answer makes one
    claim. Other questions' answers are taken as they are. Raises `VragError` where an answer makes
    a claim and was shown an image that is not of the edition.
    """
    benchmark, answers = row.benchmark, row.arm
    is_long = any(len(world.sub_questions(query)) > 1 for query in benchmark.queries.values())
    if is_long:
        columns = answers[["query_id", "setting", "k", "doc_ids"]].itertuples(index=False)
        contexts = [
            Context(query_id=query_id, setting=setting, k=k, doc_ids=tuple(doc_ids))
            for query_id, setting, k, doc_ids in columns
        ]
        asked = questions_in_parts(world, benchmark, contexts, prompts_for(benchmark))
        answers = ask_long(asked, [model], at, decoding=decoding)
        benchmark = world.with_reference_answers(benchmark)
    extractor = claims.RuleExtractor(world.language)
    checked = claims.check_answers(benchmark, answers, extractor, OracleClaimChecker(world))
    return replace(row, checked=checked, claims_of="long answers" if is_long else "questions")
