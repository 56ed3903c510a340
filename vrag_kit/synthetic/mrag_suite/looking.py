"""A checker of claims that looks: a small model is asked the claim's question about one
picture alone, and its reply is held against the claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.claims.verdicts import EntailmentLabel, EntailmentRequest, Label
from vrag_kit.generation.rendering import render
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.synthetic.mrag_suite.asking import claim_question
from vrag_kit.synthetic.mrag_suite.facts import Fact, relation
from vrag_kit.synthetic.mrag_suite.language import FieldGuideGrammar
from vrag_kit.synthetic.traits import Species
from vrag_kit.types import Answer, Document, Prompt, Query

if TYPE_CHECKING:
    from vrag_kit.config import Hardware
    from vrag_kit.generation.generators import Generator

_TEMPLATE = "one_image"
"""Of Visual-RAG's wording, which the guide's answerers know: it does not say that the
picture shows what is asked.
"""
_SETTLED = (EntailmentLabel.ENTAILMENT, EntailmentLabel.CONTRADICTION)


class VisualClaimChecker:
    """Looks at pictures by a small model, one at a time; implements `ClaimChecker`.

    Its reply is an equal value, which entails the claim, or another, which contradicts
    it; "I don't know" is neutral. The model's words are kept like answers, so that
    nothing is asked twice, whichever claims ask the same. It is a rule about a small
    model's words, and errs as that model errs.

    The words beside a picture, a caption or the sidecar of a page, are read first: where
    they settle a claim, the picture is not looked at. The model reads neither print nor
    bars.
    """

    def __init__(
        self,
        language: FieldGuideGrammar,
        species: Mapping[str, Species],
        generator: Generator,
        answers_dir: Path | str,
        *,
        hardware: Hardware | None = None,
    ) -> None:
        """`species` are those that claims may be about, by scientific name; words are
        kept in `answers.sqlite` in `answers_dir`.
        """
        self.name = f"rules on {generator.name}"
        self.fingerprint = generator.fingerprint
        self._language = language
        self._species = species
        self._generator = generator
        self._path = Path(answers_dir) / "answers.sqlite"
        self._hardware = hardware

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return for each request one label per claim. There is none for a claim that is not
        of the guide's language, or that neither words nor a question to the model can
        settle, and where the reply says nothing of what was asked.
        """
        asked: dict[tuple[str, str], tuple[Prompt, str]] = {}
        for each in requests:
            for claim in each.claims:
                if question := self._to_ask(claim, each.item):
                    prompt = _prompt(question, each.item)
                    asked[question, each.item.doc_id] = (prompt, each.query_id)
        replies = dict(zip(asked, self._ask(list(asked.values())), strict=True))
        return [
            tuple(self._label(claim, each.item, replies) for claim in each.claims)
            for each in requests
        ]

    def _to_ask(self, claim: str, item: Document) -> str:
        """The question to be asked about the picture; "" where there is none, and where
        the words beside it settle the claim.
        """
        fact = self._language.claim(claim)
        if fact is None or item.image is None or self._words_say(claim, item) in _SETTLED:
            return ""
        return claim_question(fact, self._species)

    def _words_say(self, claim: str, item: Document) -> Label:
        return self._language.relation(claim, item.text) if item.text else None

    def _ask(self, asked: Sequence[tuple[Prompt, str]]) -> list[Answer]:
        from vrag_kit.generation.ask import Task, ask_prompts
        from vrag_kit.generation.store import AnswerStore

        if not asked:
            return []
        task = Task(what="looks at pictures")
        prompts = [prompt for prompt, _ in asked]
        owners = [owner for _, owner in asked]
        with AnswerStore(self._path) as store:
            return ask_prompts(
                self._generator, prompts, store, owners=owners, hardware=self._hardware, task=task
            )

    def _label(
        self, claim: str, item: Document, replies: Mapping[tuple[str, str], Answer]
    ) -> Label:
        fact = self._language.claim(claim)
        if fact is None:
            return None
        question = self._to_ask(claim, item)
        if not question:
            return self._words_say(claim, item)
        reply = replies[question, item.doc_id]
        if reply.is_placeholder:
            return EntailmentLabel.NEUTRAL
        if reply.failure is not None:
            return None
        return self._read(fact, question, str(reply.fields["answer"]))

    def _read(self, fact: Fact, question: str, words: str) -> Label:
        """None where the reply says nothing of what was asked."""
        seen = self._language.facts(words, question)
        if any(each.about == fact.about for each in seen):
            return relation(fact, seen)
        return EntailmentLabel.NEUTRAL if is_abstention(words) else None


def _prompt(question: str, item: Document) -> Prompt:
    query = Query(query_id="claim", text=question)
    shown = Document(doc_id=item.doc_id, image=item.image)
    return render(PROMPTS.template(_TEMPLATE), query, [shown])
