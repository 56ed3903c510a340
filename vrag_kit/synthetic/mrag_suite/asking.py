"""The short questions of the Field Guide: what a claim answers, one a trait for what a
question asks about, and what is true of all of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from vrag_kit.synthetic.mrag_suite.facts import COLOR, COLORS_OF_TWO, LOOKS, PATTERN, Fact
from vrag_kit.synthetic.mrag_suite.language import FieldGuideGrammar, QuestionTarget
from vrag_kit.synthetic.mrag_suite.species_facts import appearance_facts
from vrag_kit.synthetic.questions import hidden_parts, make_question
from vrag_kit.synthetic.traits import Species

_ASKS = {COLOR: "color", COLORS_OF_TWO: "colors", PATTERN: "pattern"}


def claim_question(fact: Fact, species: Mapping[str, Species]) -> str:
    """The question that a claim about a hidden part answers, worded as the guide words
    it; "" for any other claim.
    """
    about = species.get(fact.subject)
    if fact.kind not in LOOKS or about is None:
        return ""
    parts = [part for part in hidden_parts(about) if part.name == fact.part]
    if not parts:
        return ""
    question = make_question(about, parts[0], _ASKS[fact.kind]).text
    if fact.kind == COLOR:  # the guide words it so where there is but one color
        for bare in ("What color are", "What color is"):
            question = question.replace(bare, "What is the main color of")
    return question


def trait_questions(
    question: str, language: FieldGuideGrammar, species: Mapping[str, Species]
) -> tuple[str, ...]:
    """One short question for each trait of the part that a question is about: main
    colour and pattern, and its two colours where they are asked for. Any other question is
    its own.
    """
    topic = language.question_target(question)
    asked = []
    for kind in _kinds(topic):
        fact = Fact(subject=topic.subject, part=topic.part, kind=kind, value="")
        asked.append(claim_question(fact, species))
    return tuple(filter(None, asked)) or (question,)


def reference_answer(
    question: str, language: FieldGuideGrammar, species: Mapping[str, Species]
) -> str:
    """What is true of every trait that `trait_questions` asks for, a sentence each; ""
    for a question about anything but a hidden part.
    """
    topic = language.question_target(question)
    about = species.get(topic.subject)
    kinds = _kinds(topic)
    if about is None or topic.part not in about.hidden or not kinds:
        return ""
    look = about.hidden[topic.part]
    facts = [
        fact for fact in appearance_facts(topic.subject, topic.part, look) if fact.kind in kinds
    ]
    other = [f for f in facts if f.kind != COLORS_OF_TWO or f.value != look.color]
    return " ".join(fact.sentence for fact in other)


def _kinds(topic: QuestionTarget) -> list[str]:
    """The traits that a long answer about a part tells; none of anything else."""
    if not topic.part or not topic.subject:
        return []
    both = COLORS_OF_TWO in topic.kinds
    return [COLOR, PATTERN, COLORS_OF_TWO] if both else [COLOR, PATTERN]
