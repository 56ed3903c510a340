"""What is known of a synthetic edition because it was generated, and checkers of claims: one looks
a claim up there, one asks a small model about images.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.claims.verdicts import EntailmentLabel, EntailmentRequest, Label
from vrag_kit.errors import VragError
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.generation.rendering import render
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.synthetic.mrag_suite.facts import (
    COLOR,
    COLORS_OF_TWO,
    LOOKS,
    PATTERN,
    Fact,
    FieldGuideGrammar,
    QuestionTarget,
    Shown,
    relation,
)
from vrag_kit.synthetic.mrag_suite.species import appearance_facts
from vrag_kit.synthetic.mrag_suite.sub_questions import SubQuestion
from vrag_kit.synthetic.visual_rag.questions import hidden_parts, make_question
from vrag_kit.synthetic.world.traits import Species
from vrag_kit.types import Answer, Benchmark, DocId, Document, JsonView, Prompt, Query
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from vrag_kit.generation.generators import Generator

_DISTRACTORS = {
    "claim_recall": 0.0,
    "evidence_utilization": 0.0,
    "entailed_share": 0.0,
    "neutral_share": 1.0,
}
_WHOLE_LOOK = {"claim_recall": 1.0, "neutral_share": 0.0}
_GOLD = {"WebQA": _WHOLE_LOOK, "Chart-MRAG": {"claim_recall": 1.0}, "Visual-RAG": _WHOLE_LOOK}


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What is known of a synthetic edition."""

    language: FieldGuideGrammar
    """Reads facts about its species in texts."""
    species: Mapping[str, Species]
    """By scientific name."""
    shown: Shown
    """The facts that documents show, of all data sets but MRAG-Bench, whose organisms have no
    names.
    """

    def claim_question(self, fact: Fact) -> str:
        """Return the question that a claim about a hidden part answers, as the guide words it; ""
        for any other claim.
        """
        species = self.species.get(fact.subject)
        if fact.kind not in LOOKS or species is None:
            return ""
        parts = [part for part in hidden_parts(species) if part.name == fact.part]
        question = make_question(species, parts[0], fact.kind).text if parts else ""
        if fact.kind == COLOR:  # the guide words it so where there is only one color
            question = re.sub("What color (?:are|is)", "What is the main color of", question)
        return question

    def sub_questions(self, query: Query) -> list[SubQuestion]:
        """Return what is asked in place of a question, for `DecomposedBenchmark`: one short
        question for each trait of the part that it is about, main color and pattern, and both
        colors where they are asked for. A reply becomes one sentence for each fact in it; any
        other question is its own.
        """
        target = self.language.question_target(query.text)
        facts = [
            Fact(subject=target.subject, part=target.part, kind=kind, value="")
            for kind in _long_answer_kinds(target)
        ]
        questions = [*filter(None, map(self.claim_question, facts))] or [query.text]
        return [SubQuestion(each, partial(self._sentences, each)) for each in questions]

    def _sentences(self, question: str, reply: str) -> str:
        return " ".join(self.language.claims(question, reply))

    def with_reference_answers(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark with the reference of a long answer: the true value of every trait
        in `sub_questions`, one sentence each. Other questions stay unchanged.
        """
        queries = {}
        for query_id, query in benchmark.queries.items():
            target = self.language.question_target(query.text)
            species, kinds = self.species.get(target.subject), _long_answer_kinds(target)
            facts: Sequence[Fact] = ()
            if species is not None and target.part in species.hidden:
                facts = appearance_facts(species, target.part)
            main = [fact.value for fact in facts if fact.kind == COLOR]
            sentences = [
                fact.sentence
                for fact in facts
                if fact.kind in kinds and not (fact.kind == COLORS_OF_TWO and fact.value in main)
            ]
            reference = {"reference": " ".join(sentences)} if sentences else {}
            queries[query_id] = replace(query, metadata={**query.metadata, **reference})
        return replace(benchmark, queries=queries)

    def without_leaking_distractors(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark in which no question is shown a document that tells a claim of its
        answer and is not labelled as gold.
        """
        by_subject = defaultdict(list)
        for doc_id in benchmark.corpus:
            for subject in {fact.subject for fact in self.shown.get(doc_id, ())}:
                by_subject[subject].append(doc_id)
        left_out = {}
        for query_id, query in benchmark.queries.items():
            claims = self.language.facts(" ".join(query.answers[:1]), query.text)
            leaking: set[DocId] = set()
            for claim in claims:
                leaking.update(
                    doc_id
                    for doc_id in by_subject[claim.subject]
                    if relation(claim, self.shown[doc_id]) is EntailmentLabel.ENTAILMENT
                )
            leaking -= set(benchmark.relevant(query_id))
            if leaking:
                left_out[query_id] = benchmark.left_out.get(query_id, frozenset()) | leaking
        if not left_out:
            return benchmark
        named = json.dumps({key: sorted(each) for key, each in left_out.items()})
        mark = hashlib.sha256(f"{benchmark.fingerprint} {named}".encode()).hexdigest()
        left_out = {**benchmark.left_out, **left_out}
        return replace(benchmark, left_out=left_out, fingerprint=mark)


def _long_answer_kinds(target: QuestionTarget) -> list[str]:
    """The traits in a long answer to a question about a part; none for any other question."""
    if not target.part or not target.subject:
        return []
    return [COLOR, PATTERN, COLORS_OF_TWO] if target.kind == COLORS_OF_TWO else [COLOR, PATTERN]


def fixed_means(world: GroundTruth | None) -> pd.DataFrame:
    """Return the means by true labels that no answer changes: dataset, setting, metric, modality,
    value (in [0, 1]), family; no row without a synthetic edition.

    A distractor says nothing about the part in question; gold documents together entail every gold
    claim. In WebQA and Visual-RAG each gold document shows the whole look of the part, so that
    none is neutral about a claim. A long answer makes no claim about anything else.
    """
    rows: list[tuple[object, ...]] = []
    for dataset, gold in _GOLD.items() if world else ():
        for modality in ("all", "image", "text"):
            fixed = _DISTRACTORS.items()
            rows += [(dataset, MODES[0], metric, modality, value) for metric, value in fixed]
        for mode in MODES[1:]:
            rows += [(dataset, mode, metric, "all", value) for metric, value in gold.items()]
    columns = ["dataset", "setting", "metric", "modality", "value"]
    return pd.DataFrame(rows, columns=columns).assign(family="mm_ragchecker")


class OracleClaimChecker:
    """Looks claims up in what was generated; implements `ClaimChecker`.

    A document that is shown without its image, by its caption or sidecar, shows what is in these
    words. Words that are no document, such as an accepted answer, are read by the grammar.
    """

    name = "truth of the drawing"
    fingerprint = ""

    def __init__(self, world: GroundTruth) -> None:
        self._world = world

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return the true labels; a claim that the grammar cannot parse has none.

        Raises `VragError` for an image that is not of the edition.
        """
        labels = []
        for each in requests:
            facts = self._facts(each.item)
            claims = map(self._world.language.claim, each.claims)
            labels.append(tuple(None if fact is None else relation(fact, facts) for fact in claims))
        return labels

    def _facts(self, item: Document) -> Sequence[Fact]:
        """The facts that the item shows as it is."""
        shown = self._world.shown.get(item.doc_id)
        if item.image is None and item.text is not None:
            if shown is None:
                return self._world.language.facts(item.text)
            words = item.text
            return [fact for fact in shown if re.search(rf"\b{re.escape(fact.value)}\b", words)]
        if shown is None:
            raise VragError(
                f"document {item.doc_id!r} is none of the drawn suite, of which alone the truth is"
                " known. Check its claims by another checker."
            )
        return shown


class VisualClaimChecker:
    """Asks a small model the question of a claim about one image, and compares its reply with the
    claim; implements `ClaimChecker`.

    An equal value entails the claim, another one contradicts it; "I don't know" is neutral. Replies
    are stored like answers, so that nothing is asked twice.

    The text of an image, a caption or the sidecar of a page, is read first: where it settles a
    claim, the model is not asked. The model reads neither print nor bars.
    """

    def __init__(
        self,
        world: GroundTruth,
        generator: Generator,
        answers_dir: Path | str,
        *,
        hardware: JsonView | None = None,
    ) -> None:
        """Replies are stored in `answers.sqlite` in `answers_dir`; `hardware` names fields of
        `Hardware`.
        """
        self.name = f"rules on {generator.name}"
        self.fingerprint = generator.fingerprint
        self._world = world
        self._generator = generator
        self._path = project_path(answers_dir) / "answers.sqlite"
        self._hardware = hardware

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return one label per claim of each request. There is none for a claim that the grammar
        cannot parse, for one that neither the text nor a question to the model can settle, and
        where the reply does not say what was asked.
        """
        owners: dict[tuple[str, str], str] = {}
        prompts: dict[tuple[str, str], Prompt] = {}
        for each in requests:
            for claim in each.claims:
                question, _ = self._before_asking(claim, each.item)
                if question:
                    key = question, each.item.doc_id
                    owners[key], prompts[key] = each.query_id, _prompt(question, each.item)
        replies = dict(zip(prompts, self._ask(prompts, owners), strict=True))
        return [
            tuple(self._label(claim, each.item, replies) for claim in each.claims)
            for each in requests
        ]

    def _before_asking(self, claim: str, item: Document) -> tuple[str, Label]:
        """(question to ask about the image; "" for none, label by the text beside it)."""
        fact = self._world.language.claim(claim)
        if fact is None:
            return "", None
        by_text = self._world.language.relation(claim, item.text) if item.text else None
        settled = by_text not in (None, EntailmentLabel.NEUTRAL)
        if settled or item.image is None:
            return "", by_text
        return self._world.claim_question(fact), by_text

    def _ask(
        self, prompts: Mapping[tuple[str, str], Prompt], owners: Mapping[tuple[str, str], str]
    ) -> list[Answer]:
        from vrag_kit.config import hardware_of
        from vrag_kit.generation.ask import Task, ask_prompts
        from vrag_kit.generation.store import AnswerStore

        if not prompts:
            return []
        with AnswerStore(self._path) as store:
            return ask_prompts(
                self._generator,
                [*prompts.values()],
                store,
                owners=[*owners.values()],
                hardware=hardware_of(self._hardware),
                task=Task(what="looks at pictures"),
            )

    def _label(
        self, claim: str, item: Document, replies: Mapping[tuple[str, str], Answer]
    ) -> Label:
        question, by_text = self._before_asking(claim, item)
        fact = self._world.language.claim(claim)
        if fact is None or not question:
            return by_text
        reply = replies[question, item.doc_id]
        if reply.is_placeholder:
            return EntailmentLabel.NEUTRAL
        if reply.failure is not None:
            return None
        words = str(reply.fields["answer"])
        seen = self._world.language.facts(words, question)
        if any(each.about == fact.about for each in seen):
            return relation(fact, seen)
        return EntailmentLabel.NEUTRAL if is_abstention(words) else None


def _prompt(question: str, item: Document) -> Prompt:
    """In Visual-RAG's words, which the guide's answerers know, from the template that does not say
    that the image shows the answer.
    """
    query = Query(query_id="claim", text=question)
    shown = Document(doc_id=item.doc_id, image=item.image)
    return render(PROMPTS.template("one_image"), query, [shown])
