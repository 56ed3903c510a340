"""The worn Field Guide's language: entities with facts that agree everywhere, questions
whose answers follow from the facts that are shown, conversations that depend on what was
said before.
"""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from worn_scenes import UNKNOWN, chain, fresh_scene, steps

from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.synthetic.crag_mm.conversations import TYPE_SHARES, Turn
from vrag_kit.synthetic.crag_mm.entities import (
    ATTRIBUTES,
    SENTENCES,
    WEB_FACTS,
    Entity,
    EntityWorld,
    NameGenerator,
    with_article,
)
from vrag_kit.types import Query

SCENES = [fresh_scene(f"test/{number}") for number in range(60)]
TURNS = [turn for scene in SCENES for turn in scene.turns]


@settings(max_examples=20, deadline=None)
@given(st.integers())
def test_in_a_world_names_and_looks_are_distinct_and_years_make_sense(number: int) -> None:
    world = EntityWorld(f"world/{number}", NameGenerator(f"world/{number}"))
    entities = [world.new_entity() for _ in range(30)]
    entities += [each for of in entities[:10] if (each := world.new_confusable(of))]
    assert len({each.name for each in entities}) == len(entities)
    assert len({each.look for each in entities}) == len(entities)
    for each in entities:
        assert set(each.facts) == {*ATTRIBUTES, *WEB_FACTS}
        assert 30 <= each.numeric_fact("year") - each.numeric_fact("born") <= 50
        assert each.numeric_fact("width") <= each.numeric_fact("length")
        assert each.facts["capital"] == world.capitals[each.facts["region"]]


def test_the_rule_judge_takes_a_chain_as_its_facts_deserve() -> None:
    judge = TruthfulnessRuleJudge()
    verdicts: Counter[tuple[str, float | None]] = Counter()
    for scene in SCENES:
        for place, turn in enumerate(scene.turns):
            query = Query(
                query_id="q",
                text=turn.question,
                answers=(turn.reply.sentence,),
                metadata={"reference_query": turn.search_query},
            )
            for said in (chain(turn), chain(turn, known=place % 3)):
                sort = "unknown" if UNKNOWN in said else "told"
                verdicts[sort, judge.verdict(query, said).score] += 1
            other = next((each for each in scene.others if differs(turn, each)), None)
            if other and turn.category != "simple-recognition":
                reply = turn.ask.expected_answer(other)
                wrong = f"{', '.join((turn.subject.name, *steps(turn.ask, other)))}: {reply.value}."
                verdicts["another's", judge.verdict(query, wrong).score] += 1
    assert set(verdicts) == {("told", 1.0), ("unknown", 0.0), ("another's", -1.0)}


def differs(turn: Turn, other: Entity) -> bool:
    return turn.ask.expected_answer(other).value != turn.reply.value


def test_every_type_occurs_and_the_short_answer_stands_in_the_sentence() -> None:
    assert fresh_scene("test/0").turns == SCENES[0].turns != SCENES[1].turns
    assert {turn.category for turn in TURNS} == set(TYPE_SHARES)
    assert 0.2 < sum(turn.needs_history for turn in TURNS) / len(TURNS) < 0.5
    for scene in SCENES:
        asked = [(turn.search_query, turn.ask.form) for turn in scene.turns]
        assert len(set(asked)) == len(asked)
    for turn in TURNS:
        assert turn.reply.value in ("yes", "no") or turn.reply.value in turn.reply.sentence
        alone = turn.subject is turn.pictured or turn.subject.name in turn.question
        assert turn.needs_history or alone
    for category in TYPE_SHARES:
        (turn,) = fresh_scene(f"single/{category}", length=1, category=category).turns
        assert (turn.category, turn.needs_history) == (category, False)


def test_pages_tell_once_what_is_true_and_snippets_are_their_beginnings() -> None:
    later = []
    for scene in SCENES:
        entities = {each.name: each for each in scene.entities}
        for page in scene.pages:
            assert page.result.startswith(page.snippet)
            later.append(page.result != page.snippet)
            told = page.result.split(". ")
            assert len(set(told)) == len(told)
            if entity := entities.get(page.name):
                facts = {**entity.facts, "name": entity.name, "look": with_article(entity.look)}
                sentences = {form.format(**facts) for form in SENTENCES.values()}
                assert set(re.findall(r"[A-Z][^.]*\.", page.result)) <= sentences
    assert 0.3 < sum(later) / len(later) < 0.9  # some facts stand outside the snippets
