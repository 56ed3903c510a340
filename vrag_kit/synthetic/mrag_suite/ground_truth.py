"""What is known of a synthetic edition because it was generated, and checkers of claims: one looks
a claim up there, one asks a small model about images.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vrag_kit.claims.verdicts import EntailmentLabel, EntailmentRequest, Label
from vrag_kit.errors import VragError
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.generation.generators import Generator
from vrag_kit.generation.rendering import render
from vrag_kit.generation.store import AnswerStore
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.synthetic.mrag_suite import facts as fact_kinds
from vrag_kit.synthetic.mrag_suite.facts import (
    Fact,
    FieldGuideGrammar,
    Shown,
    Topic,
    appearance_facts,
    relation,
)
from vrag_kit.synthetic.visual_rag.questions import make_question
from vrag_kit.synthetic.world.organisms import hidden_part
from vrag_kit.synthetic.world.traits import Species
from vrag_kit.types import Answer, Benchmark, Document, Prompt, Query
from vrag_kit.workspace import Workspace

_NOTHING = dict.fromkeys(("claim_recall", "evidence_utilization", "entailed_share"), 0.0)
_DISTRACTORS = {**_NOTHING, "neutral_share": 1.0}
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

    def claim_question(self, subject: str, part: str, kind: str) -> str:
        """Return the question about a hidden part that a claim of a kind answers, as the guide
        words it; "" for any other claim.
        """
        species = self.species.get(subject)
        hidden = hidden_part(species, part) if species else None
        if species is None or hidden is None:
            return ""
        question = make_question(species, hidden, kind).text
        if kind == fact_kinds.COLOR:  # the guide words it so where there is only one color
            question = re.sub("What color (?:are|is)", "What is the main color of", question)
        return question

    def sub_questions(self, query: Query) -> list[str]:
        """Return what is asked in place of a question: one short question for each trait of the
        part that it is about, main color and pattern, and both colors where they are asked for;
        any other question is its own.
        """
        topics = self._long_answer(query)
        questions = [self.claim_question(*topic) for topic in topics]
        return [*filter(None, questions)] or [query.text]

    def with_reference_answers(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark with the reference of a long answer: the true value of every trait
        in `sub_questions`, one sentence each. Other questions stay unchanged.
        """
        queries = dict(benchmark.queries)
        for query_id, query in queries.items():
            if topics := self._long_answer(query):
                sentences = [fact.sentence for fact in self._true_facts(topics)]
                metadata = {**query.metadata, "reference": " ".join(sentences)}
                queries[query_id] = replace(query, metadata=metadata)
        return replace(benchmark, queries=queries)

    def _long_answer(self, query: Query) -> list[Topic]:
        """The traits in a long answer to a question about a part; none for any other question."""
        asked = self.language.question_target(query.text)
        species = self.species.get(asked.subject)
        if species is None or asked.part not in species.hidden:
            return []
        kinds = [fact_kinds.COLOR, fact_kinds.PATTERN]
        if asked.kind == fact_kinds.COLORS_OF_TWO:
            kinds.append(asked.kind)
        return [asked._replace(kind=kind) for kind in kinds]

    def _true_facts(self, topics: Sequence[Topic]) -> list[Fact]:
        """The facts about the traits of a part, of both its colors only the second."""
        facts = appearance_facts(self.species[topics[0].subject], topics[0].part)
        main = replace(facts[0], kind=fact_kinds.COLORS_OF_TWO)
        return [fact for fact in facts if fact.about in topics and fact != main]

    def without_leaking_distractors(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark in which no question is shown a document that tells a claim of its
        answer and is not labelled as gold.
        """
        by_subject = defaultdict(set)
        for doc_id in benchmark.corpus:
            for fact in self.shown.get(doc_id, ()):
                by_subject[fact.subject].add(doc_id)
        left_out = {}
        for query_id, query in benchmark.queries.items():
            leaking: set[str] = set()
            for claim in self.language.facts(" ".join(query.answers[:1]), query.text):
                for doc_id in by_subject[claim.subject].difference(benchmark.relevant(query_id)):
                    if relation(claim, self.shown[doc_id]) is EntailmentLabel.ENTAILMENT:
                        leaking.add(doc_id)
            if leaking:
                left_out[query_id] = benchmark.left_out.get(query_id, frozenset()) | leaking
        if not left_out:
            return benchmark
        named = json.dumps({key: sorted(each) for key, each in left_out.items()})
        return benchmark.derive(named, left_out={**benchmark.left_out, **left_out})


def fixed_means(world: GroundTruth | None) -> pd.DataFrame:
    """Return the means by true labels that no answer changes: dataset, setting, metric, modality,
    value (in [0, 1]), family; no row without a synthetic edition.

    A distractor says nothing about the part in question; gold documents together entail every gold
    claim. In WebQA and Visual-RAG each gold document shows the whole look of the part, so that
    none is neutral about a claim. A long answer makes no claim about anything else.
    """
    columns = ["dataset", "setting", "metric", "modality", "value"]
    rows: list[tuple[object, ...]] = []
    for dataset, gold in _GOLD.items() if world else ():
        for modality in ("all", "image", "text"):
            fixed = _DISTRACTORS.items()
            rows += [(dataset, MODES[0], metric, modality, value) for metric, value in fixed]
        for mode in MODES[1:]:
            rows += [(dataset, mode, metric, "all", value) for metric, value in gold.items()]
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
        shown, words = self._world.shown.get(item.doc_id), item.text
        if shown is None and (item.image or words is None):
            raise VragError(
                f"document {item.doc_id!r} is none of the drawn suite, of which alone the truth is"
                " known. Check its claims by another checker."
            )
        if shown is None:
            return self._world.language.facts(words or "")
        if item.image or words is None:
            return shown
        return [fact for fact in shown if re.search(rf"\b{re.escape(fact.value)}\b", words)]


_Asked = tuple[str, str]
"""A question and the id of the document that it is asked about."""


class VisualClaimChecker:
    """Asks a small model the question of a claim about one image, and compares its reply with the
    claim; implements `ClaimChecker`.

    An equal value entails the claim, another one contradicts it; "I don't know" is neutral. Replies
    are stored like answers, so that nothing is asked twice.

    The text of an image, a caption or the sidecar of a page, is read first: where it settles a
    claim, the model is not asked. The model reads neither print nor bars.
    """

    def __init__(self, world: GroundTruth, generator: Generator, at: Workspace) -> None:
        self.name = f"rules on {generator.name}"
        self.fingerprint = generator.fingerprint
        self._world = world
        self._generator = generator
        self._at = at

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return one label per claim of each request. There is none for a claim that the grammar
        cannot parse, for one that neither the text nor a question to the model can settle, and
        where the reply does not say what was asked.
        """
        asked: dict[_Asked, EntailmentRequest] = {}
        for each in requests:
            for claim in each.claims:
                if question := self._question(claim, each.item):
                    asked[question, each.item.doc_id] = each
        replies = self._ask(asked)
        labels = []
        for each in requests:
            labels.append(tuple(self._label(claim, each.item, replies) for claim in each.claims))
        return labels

    def _by_text(self, claim: str, item: Document) -> Label:
        return self._world.language.relation(claim, item.text) if item.text else None

    def _question(self, claim: str, item: Document) -> str:
        """What to ask about the image; "" where its text settles the claim."""
        fact = self._world.language.claim(claim)
        settled = self._by_text(claim, item) not in (None, EntailmentLabel.NEUTRAL)
        if fact is None or settled or item.image is None:
            return ""
        return self._world.claim_question(*fact.about)

    def _ask(self, asked: Mapping[_Asked, EntailmentRequest]) -> dict[_Asked, Answer]:
        if not asked:
            return {}
        with AnswerStore(self._at.answers_file) as store:
            replies = ask_prompts(
                self._generator,
                [_prompt(question, each.item) for (question, _), each in asked.items()],
                store,
                owners=[each.query_id for each in asked.values()],
                at=self._at,
                task=Task(what="looks at pictures"),
            )
        return dict(zip(asked, replies, strict=True))

    def _label(self, claim: str, item: Document, replies: Mapping[_Asked, Answer]) -> Label:
        fact, question = self._world.language.claim(claim), self._question(claim, item)
        if fact is None or not question:
            return self._by_text(claim, item)
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
