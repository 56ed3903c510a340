"""The drawn MRAG-Suite: eight data sets in their own layouts, whose documents show what
the drawing says they show.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import ROOT

from vrag_kit.claims.checking import answer_document, reference_answers
from vrag_kit.claims.verdicts import EntailmentLabel, EntailmentRequest
from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.papers.mrag_suite.prompts import domain_of
from vrag_kit.runner import cli
from vrag_kit.synthetic.mrag_suite import fixed_means, open_ground_truth, open_suite
from vrag_kit.synthetic.mrag_suite.ambiguity import PART, SUBJECT, detect_by_rule, make_ambiguous
from vrag_kit.synthetic.mrag_suite.facts import COLOR, COLORS_OF_TWO, PATTERN, Fact, relation
from vrag_kit.synthetic.mrag_suite.ground_truth import OracleClaimChecker
from vrag_kit.synthetic.mrag_suite.pages import PAGE_SETS
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS

SMALL = "field-guide-mrag-suite-small"
PRINTED = ["Chart-MRAG", *PAGE_SETS]


@pytest.fixture(scope="module")
def suite():
    return open_suite(SMALL)


@pytest.fixture(scope="module")
def words():
    """Pages and charts as the words that stand on them."""
    return open_suite(SMALL, PRINTED, in_words=PRINTED)


@pytest.fixture(scope="module")
def world():
    return open_ground_truth(SMALL)


def test_a_distractor_tells_nothing_that_is_asked(suite, world):
    """Of what may be shown only gold entails a claim of the answer."""
    barred = 0
    for name in ("WebQA", *PRINTED):
        benchmark = suite[name]
        for query_id, query in benchmark.queries.items():
            claims = _claims(world, query)
            gold = benchmark.relevant(query_id)
            out = benchmark.left_out.get(query_id, frozenset())
            assert not out & set(gold)
            barred += len(out)
            for doc_id in set(benchmark.candidates(query_id) or benchmark.corpus) - out - set(gold):
                found = {relation(each, world.shown[doc_id]) for each in claims}
                assert EntailmentLabel.ENTAILMENT not in found
    assert barred


@pytest.mark.slow
def test_what_is_called_fixed_no_claim_of_an_answer_can_change(suite, words, world):
    """Whatever value a claim about the part in question has: each distractor is neutral, gold
    documents together entail all gold claims, and each of those that tell the whole look is
    neutral about none.
    """
    fixed = fixed_means(world).query("modality == 'all'")
    whole = set(fixed.query("setting == 'gt_only' and metric == 'neutral_share'")["dataset"])
    assert whole == {"WebQA", "Visual-RAG"}
    neutral, entailed = EntailmentLabel.NEUTRAL, EntailmentLabel.ENTAILMENT
    for name in fixed["dataset"].unique():
        benchmark = world.with_reference_answers({**suite, **words}[name])
        for query_id, query in benchmark.queries.items():
            claims, gold = _any_claims(world, query), set(benchmark.relevant(query_id))
            barred = benchmark.left_out.get(query_id, frozenset())
            for doc_id in set(benchmark.candidates(query_id) or benchmark.corpus) - barred - gold:
                assert {relation(each, world.shown[doc_id]) for each in claims} == {neutral}
            for doc_id in gold if name in whole else ():
                assert neutral not in {relation(each, world.shown[doc_id]) for each in claims}
            together = [fact for doc_id in gold for fact in world.shown[doc_id]]
            (reference,) = reference_answers(query)
            right = world.language.facts(reference, query.text)
            assert {relation(each, together) for each in right} == {entailed}
    assert fixed_means(None).empty


def _any_claims(world, query):
    """Every claim there can be about the look of the part that a question is about."""
    subject, part, _ = world.language.question_target(query.text)
    assert subject
    assert part
    values = {COLOR: COLORS, COLORS_OF_TWO: COLORS, PATTERN: PATTERNS}
    pairs = [(kind, value) for kind, known in values.items() for value in known]
    return [Fact(subject=subject, part=part, kind=kind, value=value) for kind, value in pairs]


def _claims(world, query):
    return world.language.facts(query.answers[0], query.text)


def test_rules_read_the_texts_as_the_drawing_means_them(suite, words, world):
    """Every text of the suite says of every claim about its species what the truth says."""
    for name in ("WebQA", *PRINTED):
        benchmark = (suite | words)[name]
        for query in benchmark.queries.values():
            claims = [each.sentence for each in _claims(world, query)]
            for doc_id in benchmark.qrels[query.query_id]:
                item = benchmark.corpus[doc_id]
                if name == "WebQA" and item.image is not None:
                    continue  # its words are a caption, and the picture shows more
                told = tuple(world.language.relation(claim, item.text) for claim in claims)
                request = EntailmentRequest(query_id="q", claims=tuple(claims), item=item)
                assert OracleClaimChecker(world).check([request]) == [told]


def test_truth_counts_what_the_answerer_saw(suite, world):
    """The picture shows what its caption does not tell; an accepted answer is words."""
    webqa = suite["WebQA"]
    query = next(
        each for each in webqa.queries.values() if each.metadata["required_modality"] == "image"
    )
    item = webqa.corpus[webqa.relevant(query.query_id)[0]]
    (claim,) = world.language.claims(query.text, query.answers[0])
    shown = [item, replace(item, image=None), answer_document("a", query.text, query.answers[0])]
    requests = [EntailmentRequest(query_id="q", claims=(claim,), item=each) for each in shown]
    found = [label.name for (label,) in OracleClaimChecker(world).check(requests)]
    assert found == ["ENTAILMENT", "NEUTRAL", "ENTAILMENT"]


def test_half_of_the_questions_can_be_made_ambiguous_and_the_rule_finds_which(suite):
    for benchmark in suite.values():
        changed, lacks = make_ambiguous(benchmark, 0.5)
        open_ones = [each for each in benchmark.queries.values() if each.image is None]
        assert sum(map(bool, lacks.values())) == round(0.5 * len(open_ones))
        assert set(lacks.values()) <= {"", SUBJECT, PART}
        for query_id, query in changed.queries.items():
            assert (query.text == benchmark.queries[query_id].text) == (not lacks[query_id])
            assert bool(detect_by_rule(query)) == bool(lacks[query_id])
        assert make_ambiguous(benchmark, 0.5)[1] == lacks


@pytest.mark.slow
def test_the_suite_has_the_papers_eight_data_sets_in_one_schema(suite):
    assert list(suite) == list(DATASETS)
    for name, benchmark in suite.items():
        for query in benchmark.queries.values():
            assert query.metadata["domain"] == domain_of(name)
            assert query.metadata["required_modality"] in ("image", "text", "both")
            assert benchmark.relevant(query.query_id)
            assert not query.choices or query.answers[0] in query.choices
    needs = {
        name: {(q.metadata["hops"], q.metadata["required_modality"]) for q in each.queries.values()}
        for name, each in suite.items()
    }
    assert {modality for _, modality in needs["WebQA"]} == {"image", "text"}
    charts = {(1, "image"), (1, "text"), (2, "text"), (2, "both"), (2, "image")}
    assert needs["Chart-MRAG"] == charts
    assert {hops for hops, _ in needs["VisRAG-Slide"]} == {1, 2}
    assert all("%20" in doc_id for doc_id in suite["VisRAG-Slide"].corpus)
    for query in suite["Chart-MRAG"].queries.values():
        assert " ".join(query.metadata["gold_claims"]) == query.answers[0]


def test_what_is_unknown_is_named(suite, world):
    for call, words in (
        (lambda: cli.generate("field-guide-mrag-siute", ROOT), "'field-guide-mrag-suite'"),
        (lambda: open_suite("field-guide-mrag-siute"), "'field-guide-mrag-suite'"),
        (lambda: open_suite(SMALL, ["VisRAG-Docs"]), "'VisRAG-Doc'"),
    ):
        with pytest.raises(VragError, match=words):
            call()
    other = next(iter(suite["MRAG-Bench"].corpus.values()))
    request = EntailmentRequest(query_id="q", claims=("x",), item=other)
    with pytest.raises(VragError, match="is none of"):
        OracleClaimChecker(world).check([request])
