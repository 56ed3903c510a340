"""The Field Guide's language as rules read it, and claims held against pictures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vrag_kit.claims.verdicts import AnswerText, EntailmentLabel, EntailmentRequest
from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator
from vrag_kit.synthetic.mrag_suite import open_claim_pipeline, open_ground_truth, open_suite
from vrag_kit.synthetic.mrag_suite.ground_truth import OracleClaimChecker, VisualClaimChecker
from vrag_kit.types import Document, Query
from vrag_kit.workspace import Workspace

SMALL = "field-guide-mrag-suite-small"
QUESTION = (
    "What do the hindwings of Freckled Ashen Orchardcinder Moth (scientific name: Lividus"
    " britaensis) look like, which are usually covered by the forewings?"
)
BOTH = QUESTION.replace("What do", "Which two colors appear on").replace(" look like", "")
MAIN = "The main color of the hindwings of Lividus britaensis is {}."
PATTERN = "The hindwings of Lividus britaensis are {}."
ONE_OF_TWO = "One of the two colors of the hindwings of Lividus britaensis is {}."


@pytest.fixture(scope="module")
def world():
    return open_ground_truth(SMALL)


def test_every_fact_of_the_world_is_read_back_from_its_sentence(world):
    for facts in world.shown.values():
        for fact in facts:
            assert world.language.facts(fact.sentence) == [fact]


def test_a_question_about_a_part_is_asked_one_trait_at_a_time(world):
    family = "To which family does Lividus britaensis belong?"
    both, other = (Query(query_id="q", text=text) for text in (BOTH, family))
    starts = ["What is the main color of", "What pattern do", "Which two colors appear on"]
    for part, start in zip(world.sub_questions(both), starts, strict=True):
        assert part.startswith(start)
    assert world.sub_questions(other) == [family]


def test_the_main_color_is_one_of_the_two(world):
    """What texts say of claims of a color, and of one of two."""
    both = "The hindwings of Lividus britaensis are blue and black."
    plain = "The hindwings of Lividus britaensis are blue, plain."
    main, second = MAIN.format("blue"), ONE_OF_TWO.format("blue")
    green, other = MAIN.format("green"), ONE_OF_TWO.format("green")
    for claim, text, label in (
        (second, main, "ENTAILMENT"),
        (second, both, "ENTAILMENT"),
        (main, both, "NEUTRAL"),  # it may be the other one
        (green, both, "CONTRADICTION"),
        (other, main, "NEUTRAL"),
        (other, f"{main} {both}", "CONTRADICTION"),
        # who tells one of two colors does not say which the other is; a plain part has no other
        (other, second, "NEUTRAL"),
        (other, plain, "CONTRADICTION"),
    ):
        assert world.language.relation(claim, text) is EntailmentLabel[label]


def test_a_long_answers_reference_is_true_and_says_all_that_is_asked(world):
    webqa = open_suite(SMALL, ["WebQA"])["WebQA"]
    told = world.with_reference_answers(webqa)
    checker = OracleClaimChecker(world)
    for query in told.queries.values():
        reference = query.metadata["reference"]
        claims = world.language.claims(query.text, reference)
        assert {"color", "pattern"} <= {world.language.claim(claim).kind for claim in claims}
        plain = any(claim.endswith("plain.") for claim in claims)  # then one color is all
        assert len(claims) == (2 if plain else len(world.sub_questions(query)))
        # what the data's own accepted answer tells is part of it
        for claim in world.language.claims(query.text, query.answers[0]):
            assert world.language.relation(claim, reference) is EntailmentLabel.ENTAILMENT
        for doc_id in webqa.relevant(query.query_id):
            item = webqa.corpus[doc_id]
            request = EntailmentRequest(query_id="q", claims=claims, item=item)
            assert EntailmentLabel.CONTRADICTION not in checker.check([request])[0]


def test_readers_are_named_by_parameters(world, tmp_path):
    few, at = "field-guide-vlm-few", Workspace(answers_dir=tmp_path)
    by_rule = open_claim_pipeline("rule", "rule", world, at)
    assert (by_rule.extractor.name, by_rule.checker.fingerprint) == ("rule", "")
    looks = open_claim_pipeline("rule", few, world, at)
    assert looks.checker.fingerprint
    assert looks.truth.name == "truth of the drawing"
    models = open_claim_pipeline(few, few, world, at)
    assert models.extractor.name == models.checker.name == few
    with pytest.raises(VragError, match=f"checker '{few}': it is an answerer too"):
        open_claim_pipeline("rule", few, world, at, answerers=[few])


def test_without_a_drawing_there_is_no_truth_and_rules_know_sentences_alone(tmp_path):
    assert open_ground_truth({"mine": {"layout": "pages", "rows": "x"}}) is None
    pipeline = open_claim_pipeline("", "rule", None, Workspace(answers_dir=tmp_path))
    assert pipeline.truth is None
    answer = AnswerText(query_id="q", question="?", words="So. It is.")
    assert pipeline.extractor.extract([answer]) == [("So.", "It is.")]
    item = Document(doc_id="d", text="So.")
    request = EntailmentRequest(query_id="q", claims=("So.",), item=item)
    assert pipeline.checker.check([request]) == [(None,)]


@pytest.mark.parametrize(
    ("words", "claims"),
    [
        ("blue", [MAIN.format("blue")]),
        ("They are striped.", [PATTERN.format("banded")]),
        ("violet with spots", [MAIN.format("purple"), PATTERN.format("spotted")]),
        ("red and gray", [ONE_OF_TWO.format("red"), ONE_OF_TWO.format("gray")]),
        (
            "The hindwings are blue, plain.",
            [MAIN.format("blue"), PATTERN.format("plain"), ONE_OF_TWO.format("blue")],
        ),
        ("I don't know", []),
        (
            "The hindwings are banded with blue.",  # its second color
            [PATTERN.format("banded"), ONE_OF_TWO.format("blue")],
        ),
        (
            "On the hindwings, which have two colors, there is blue.",
            [ONE_OF_TWO.format("blue")],
        ),
        (
            "It lives in old hedges and oak woods.",
            [f"Lividus britaensis lives in {home}." for home in ("old hedges", "oak woods")],
        ),
        ("", []),
    ],
)
def test_an_answer_is_taken_apart_into_one_value_a_claim(world, words, claims):
    assert list(world.language.claims(QUESTION, words)) == claims


@pytest.mark.parametrize(
    ("claim", "text", "label"),
    [
        ("parks", "Lividus britaensis lives in parks and reed beds.", "ENTAILMENT"),
        ("gardens", "Lividus britaensis lives in parks and reed beds.", "CONTRADICTION"),
        ("parks", "Lividus osa lives in parks.", "NEUTRAL"),
        ("parks", "", "NEUTRAL"),
    ],
)
def test_what_facts_say_of_a_claim_by_hand(world, claim, text, label):
    found = world.language.relation(f"Lividus britaensis lives in {claim}.", text)
    assert found is EntailmentLabel[label]


def test_the_small_model_sees_most_of_what_clues_show_and_looks_once(world, tmp_path, capsys):
    benchmark = open_suite(SMALL, ["Visual-RAG"])["Visual-RAG"]
    model = load_generator("field-guide-vlm-few", decoding={"max_new_tokens": 16})
    checker = VisualClaimChecker(world, model, Workspace(answers_dir=tmp_path))
    checkings = []
    for name, query in list(benchmark.queries.items())[:8]:
        claims = world.language.claims(query.text, query.answers[0])
        for doc_id in benchmark.relevant(name)[:2]:
            item = benchmark.corpus[doc_id]
            checkings.append(EntailmentRequest(query_id=name, claims=claims, item=item))
    labels = [label for row in checker.check(checkings) for label in row]
    truth = {label for row in OracleClaimChecker(world).check(checkings) for label in row}
    assert truth == {EntailmentLabel.ENTAILMENT}
    assert labels.count(EntailmentLabel.ENTAILMENT) > len(labels) / 2
    capsys.readouterr()
    checker.check(checkings)
    printed = capsys.readouterr().out
    assert "from the store" in printed
    assert " new" not in printed
    item, claims = checkings[0].item, ("Lividus britaensis lives in parks.", "Moths are nice.")
    bare = EntailmentRequest(query_id="q", claims=claims, item=item)
    said = EntailmentRequest(query_id="q", claims=claims[:1], item=replace(item, text=claims[0]))
    assert checker.check([bare]) == [(None, None)]  # no question fits them
    assert checker.check([said]) == [(EntailmentLabel.ENTAILMENT,)]
