"""The worn Field Guide's language: entities with facts that agree everywhere, questions
whose answers follow from the facts that are shown, conversations that depend on what was
said before.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter
from worn_scenes import UNKNOWN, chain, fresh_scene, steps

from vrag_kit.judging import TruthfulnessRuleJudge
from vrag_kit.synthetic.crag_mm.conversations import TYPE_SHARES, Dependence, Turn
from vrag_kit.synthetic.crag_mm.entities import (
    ATTRIBUTES,
    WEB_FACTS,
    Entity,
    EntityWorld,
    NameGenerator,
    with_article,
)
from vrag_kit.synthetic.crag_mm.images import QUALITIES, Box, egocentric_image
from vrag_kit.synthetic.crag_mm.web_pages import SENTENCES
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.types import Query

SCENES = [fresh_scene(f"test/{number}") for number in range(60)]
TURNS = [turn for scene in SCENES for turn in scene.turns]


def test_no_name_of_an_edition_can_occur_in_a_scene() -> None:
    others, editions = NameGenerator("a"), NameGenerator("a", editions=True)
    assert {others.new() for _ in range(3000)}.isdisjoint(editions.new() for _ in range(3000))


@settings(max_examples=20, deadline=None)
@given(st.integers())
def test_in_a_world_names_and_looks_are_distinct_and_years_make_sense(number: int) -> None:
    world = EntityWorld(f"world/{number}")
    entities = [world.new_entity() for _ in range(30)]
    entities += [each for of in entities[:10] if (each := world.new_confusable(of))]
    assert len({each.name for each in entities}) == len(entities)
    assert len({each.look for each in entities}) == len(entities)
    for each in entities:
        assert set(each.facts) == {*ATTRIBUTES, *WEB_FACTS}
        assert 30 <= each.numeric_fact("year") - each.numeric_fact("born") <= 50
        assert each.numeric_fact("width") <= each.numeric_fact("length")
        assert each.facts["capital"] == world.capitals[each.facts["region"]]


def test_a_look_alike_differs_in_the_second_colour_or_in_its_kind() -> None:
    for scene in SCENES:
        look = scene.pictured.species.outside
        for other in scene.look_alikes:
            seen = other.species.outside
            assert seen.color == look.color
            if other.kind == scene.pictured.kind:
                assert seen.second != look.second or look.pattern == "plain"
            else:
                assert seen == look


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


def test_a_question_of_another_one_than_the_pictured_depends_on_what_was_said() -> None:
    seen = 0
    for turn in TURNS:
        if not turn.needs_history:
            assert turn.subject is turn.pictured or turn.subject.name in turn.question
        elif turn.depends is Dependence.SUBJECT and turn.subject.name not in turn.question:
            seen += 1
            assert re.search(r"\bit\b", turn.question)
    assert seen > 10


def test_every_dependence_and_type_occurs_and_the_short_answer_stands_in_the_sentence() -> None:
    assert fresh_scene("test/0").turns == SCENES[0].turns != SCENES[1].turns
    assert {turn.depends for turn in TURNS} == set(Dependence)
    assert {turn.category for turn in TURNS} == set(TYPE_SHARES)
    assert 0.2 < sum(turn.needs_history for turn in TURNS) / len(TURNS) < 0.5
    for turn in TURNS:
        assert turn.reply.value in ("yes", "no") or turn.reply.value in turn.reply.sentence
    for category in TYPE_SHARES:
        (turn,) = fresh_scene(f"single/{category}", length=1, category=category).turns
        assert (turn.category, turn.needs_history) == (category, False)


# egocentric images: portraits with a small organism, in six qualities that can be measured


SIZE = (72, 96)
SPECIES = [numbered_species("worn", kind, 0) for kind in KINDS]


def portraits(quality: str) -> list[tuple[Image.Image, Box]]:
    """Two pictures of each kind of organism."""
    every = []
    for species in SPECIES:
        for turn in range(2):
            every.append(egocentric_image(species, quality, f"test/{species.kind}/{turn}", SIZE))
    return every


def light(image: Image.Image) -> float:
    return float(np.asarray(image).mean())


def grain(image: Image.Image) -> float:
    """What is lost when the picture is softened, inside the organism's box."""
    soft = image.filter(ImageFilter.GaussianBlur(1))
    return float(np.abs(np.asarray(image, float) - np.asarray(soft, float)).mean())


@pytest.mark.slow
def test_qualities_can_be_measured_and_the_organism_is_small_and_off_centre() -> None:
    found = {quality: portraits(quality) for quality in QUALITIES}
    for image, (left, top, right, bottom) in [each for some in found.values() for each in some]:
        assert image.size == SIZE
        assert 0 <= left < right <= 72
        assert 0 <= top < bottom <= 96
        assert (right - left) * (bottom - top) < 0.35 * 72 * 96
        assert abs((left + right) / 2 - 36) + abs((top + bottom) / 2 - 48) > 2
    lights = {quality: [light(image) for image, _ in some] for quality, some in found.items()}
    assert max(lights["low light"]) < min(lights["normal"])
    grains = {q: np.mean([grain(image.crop(box)) for image, box in found[q]]) for q in found}
    assert grains["blurred"] < 0.75 * grains["normal"]
    for quality, is_cut in (("truncated", True), ("normal", False)):
        for _, (left, top, right, bottom) in found[quality]:
            assert (left == 0 or top == 0 or right == 72 or bottom == 96) or not is_cut
            assert (left > 0 or top > 0 or right < 72 or bottom < 96) or is_cut
    once, again = (egocentric_image(SPECIES[0], "occluded", "test", SIZE) for _ in range(2))
    assert once == again
    assert egocentric_image(SPECIES[0], "occluded", "other", SIZE) != once


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


def test_conversations_ask_nothing_twice_and_yes_is_about_as_frequent_as_no() -> None:
    assert {len(scene.turns) for scene in SCENES} == {2, 3, 4, 5, 6}
    for scene in SCENES:
        asked = [(turn.search_query, turn.ask.form) for turn in scene.turns]
        assert len(set(asked)) == len(asked)
        assert f"this {scene.pictured.kind}" in scene.turns[0].question
    types = [("comparison", i) for i in range(40)] + [("reasoning", i) for i in range(40)]
    scenes = [fresh_scene(f"yes/{i}", length=1, category=category) for category, i in types]
    values = Counter(scene.turns[0].reply.value for scene in scenes)
    assert 0.35 < values["yes"] / (values["yes"] + values["no"]) < 0.65
