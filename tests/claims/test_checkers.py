"""Extractor and checker of claims: what a model is asked, how strictly it is read, and rules;
sheets for a table of answers, on a world of two colours, and the means over them.
"""

import dataclasses
import sys
from functools import partial

import factories
import pandas as pd
import pytest
from claim_sheets import Colors, Painter, block, letters, plain, row
from PIL import Image
from strange_server import StrangeServer, images_in, text_in

from vrag_kit.analysis.estimates import estimate
from vrag_kit.benchmarks import ImageFile
from vrag_kit.claims import (
    AnswerText,
    ClaimChecker,
    ClaimVerdicts,
    EntailmentLabel,
    EntailmentRequest,
    RuleChecker,
    RuleExtractor,
    check_answers,
    claim_means,
    forbid_self_check,
    load_checker,
    load_extractor,
)
from vrag_kit.claims.prompts import parse_claims, parse_entailment_labels
from vrag_kit.claims.verdicts import EvidenceItem, Label
from vrag_kit.errors import VragError
from vrag_kit.judging import UnparsedError
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import Workspace

E, N = EntailmentLabel.ENTAILMENT, EntailmentLabel.NEUTRAL
C = EntailmentLabel.CONTRADICTION


MOTH = Document(doc_id="m", text="Talia osa\nflies in June.")


SIX = tuple(f"claim {n} is so." for n in range(1, 7))
PLANS = {
    "claim 6": ["say 1: contradiction"],
    "claim 1": ["say 1: ENTAILMENT\n2: NEUTRAL\n3: NEUTRAL\n4. NEUTRAL.\n5) CONTRADICTION"],
    "four": ["say 1: ENTAILMENT", "say Sure!\n1: ENTAILMENT\n2: NEUTRAL"],
    "five": ["say 1: ENTAILMENT", "say 1: NEUTRAL\n2: ENTAILMENT"],
    "What eats it?": ["say Owls eat Talia osa.\n\nBats eat Talia osa.\nOwls eat Talia osa."],
    "Who knows?": ["say NONE"],
}


@pytest.fixture
def server():
    with StrangeServer(PLANS) as running:
        yield running


def entry(server: StrangeServer) -> dict[str, object]:
    return {"model": f"eyes@{server.url}", "timeout": 5.0, "retries": 0}


def asked(server: StrangeServer) -> list[dict[str, object]]:
    """The requests but for those that only see whether somebody is there."""
    return [each for each in server.requests if "word: ready" not in text_in(each)]


def labels(checker: ClaimChecker, claims: tuple[str, ...], item: Document) -> list[Label]:
    (found,) = checker.check([EntailmentRequest(query_id="q", claims=claims, item=item)])
    return list(found)


def test_a_checker_is_asked_about_five_claims_once(server, at):
    for _ in range(2):
        checker = load_checker(entry(server), at)
        assert labels(checker, SIX, MOTH) == [E, N, N, N, C, C]
    assert len(asked(server)) == 2
    (words,) = [text for text in map(text_in, asked(server)) if "claim 1" in text]
    assert "from what it shows or says alone" in words
    assert "Evidence:\nTalia osa flies in June.\n" in words
    assert words.endswith("Claims:\n" + "\n".join(f"{n}: claim {n} is so." for n in range(1, 6)))
    assert asked(server)[0]["temperature"] == 0


def test_images_are_judged_with_their_captions(server, at, tmp_path):
    Image.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    item = Document(doc_id="a", image=ImageFile(tmp_path / "a.png"), text="A moth.")
    checker = load_checker(entry(server), at)
    assert labels(checker, SIX[5:], item) == [C]
    (request,) = asked(server)
    (picture,) = images_in(request)
    assert picture.getpixel((0, 0)) == (255, 0, 0)
    assert "A moth." in text_in(request)


def test_unparsed_labels_are_never_neutral(server, capsys, at):
    checker = load_checker(entry(server), at)
    assert labels(checker, ("four", "4"), MOTH) == [None, None]
    assert labels(checker, ("five", "5"), MOTH) == [N, E]
    assert "it has 1 labels, and there are 2 claims" in text_in(asked(server)[1])
    out = capsys.readouterr().out
    assert "1 could not be read and were asked for once more, 1 of them remain" in out


def test_an_extractor_gives_each_fact_once(server, at):
    owls = AnswerText(query_id="q", question="What eats it?", words="Owls,\nand bats.")
    nobody = AnswerText(query_id="r", question="Who knows?", words="I cannot tell.")
    for _ in range(2):
        found = load_extractor(entry(server), at).extract([owls, nobody])
        assert found == [("Owls eat Talia osa.", "Bats eat Talia osa."), ()]
    assert len(asked(server)) == 2
    words = "".join(map(text_in, asked(server)))
    assert "Question: What eats it?\nAnswer: Owls, and bats." in words


@pytest.mark.parametrize("answerer", ["eyes", "eyes@openai", {"model": "eyes", "name": "other"}])
def test_no_model_checks_itself(server, answerer, at):
    with pytest.raises(VragError, match=r"checker 'eyes@http.* it is an answerer too"):
        load_checker(entry(server), at, answerers=["another", answerer])
    forbid_self_check("eyes-72b", ["eyes"])


def test_a_custom_extractor_of_no_claims_is_stopped(mine, tmp_path):
    mine("""
asked = []
class Chatty:
    batched = True
    def generate(self, prompts):
        asked.extend(prompts)
        return ["NONE\\nbut one"] * len(prompts)
""")
    said = [AnswerText(query_id="q", question="Which?", words=f"{each} owls") for each in range(60)]
    at = Workspace(answers_dir=tmp_path, batch_size=8)
    for _ in range(2):
        with pytest.raises(VragError, match=r"claims of 'Chatty': 24 of 24 .*NONE stands beside"):
            load_extractor("mine:Chatty", at).extract(said)
        assert len(sys.modules["mine"].asked) == 24


labels_of_two = partial(parse_entailment_labels, n=2)


@pytest.mark.parametrize(
    ("parse", "raw", "reason"),
    [
        (labels_of_two, "", "it has 0 labels"),
        (labels_of_two, "1: ENTAILMENT\n2: NEUTRAL\n3: NEUTRAL", "it has 3 labels, .* 2 claims"),
        (labels_of_two, "1: ENTAILMENT\n3: NEUTRAL", "label 2 has the number 3"),
        (labels_of_two, "1: ENTAILMENT\n2: YES", "'2: YES' is no number and label"),
        (labels_of_two, "1: ENTAILMENT, 2: NEUTRAL", "is no number and label"),
        (parse_claims, "  \n", "no words"),
        (parse_claims, "- \nA moth flies.", "the line '-' has"),
        (parse_claims, "NONE\nA moth.", "beside"),
    ],
)
def test_other_forms_are_unparsed(parse, raw, reason):
    with pytest.raises(UnparsedError, match=reason):
        parse(raw)


GROUPS = {"a": "one", "b": "two", "c": "two"}


@pytest.fixture
def world(tmp_path):
    picture = ImageFile(tmp_path / "never_opened.png")
    documents = [
        Document(doc_id="p_red", image=picture, text="a blue caption"),
        Document(doc_id="p_blue", image=picture),
        Document(doc_id="t_blue", text="It is blue"),
        Document(doc_id="t_none", text="It flies."),
        Document(doc_id="nothing"),
    ]
    query = partial(Query, text="Of what color is it?", answers=("red",))
    told = {"a": {"gold_claims": ("It is red.", "It is green.")}, "b": {"reference": "red, green"}}
    queries = [query(query_id=q, group=GROUPS[q], metadata=told.get(q, {})) for q in GROUPS]
    return factories.benchmark(queries, documents, name="colors")


def answers(*rows: tuple[str, str, tuple[str, ...]], status: str = "ok") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["query_id", "answer", "doc_ids"])
    groups = table["query_id"].map(GROUPS)
    return factories.answers(**table, group=groups, setting="top_k", k=2, status=status)


def checked(world: Benchmark, table: pd.DataFrame, painter: Painter) -> pd.DataFrame:
    extractor, checker = RuleExtractor(Colors()), RuleChecker(Colors(), painter)
    return check_answers(world, table, extractor, checker)


def test_an_answer_becomes_a_sheet_of_verdicts(world):
    shown = ("p_red", "p_blue", "t_blue", "t_none")
    found = checked(world, answers(("a", "red and blue", shown)), Painter())
    kinds = ("image", "image", "text", "text")
    expected = ClaimVerdicts(
        query_id="a",
        claims=("It is red.", "It is blue."),
        gold_claims=("It is red.", "It is green."),  # the data's own
        items=tuple(map(EvidenceItem, shown, kinds)),
        verdicts=block("ECEC", ["ECCN", "CEEN", "ECCN", "CCCN"]),
    )
    assert plain(found["sheet"][0]) == plain(expected)
    assert list(found[["n_claims", "n_unparsed", "no_sheet"]].iloc[0]) == [2, 0, ""]


def test_an_empty_answer_has_no_claims(world, capsys):
    shown = ("t_blue",)
    silent = [answers(("a", "", shown), status=status) for status in ("empty", "truncated")]
    table = pd.concat([*silent, answers(("a", "", shown), status="timeout")], ignore_index=True)
    found = checked(world, table.assign(detail="too slow"), Painter())
    for sheet in found["sheet"][:2]:
        assert (sheet.claims, letters(sheet.recalled)) == ((), "NN")
        assert sheet.on_gold.tolist() == [row("C"), row("C")]
    assert found["sheet"][2] is None
    assert found["no_sheet"][2] == "timeout: too slow"
    out = capsys.readouterr().out
    assert "2 sheets of 3 answers, 8 verdicts, 0 of them missing" in out
    assert '1 answers have no sheet, such as "timeout: too slow"' in out


def test_what_cannot_be_checked_is_named(world):
    for answer, words in (
        (("a", "red", ("p_gone",)), "'a'.*'p_gone'"),
        (("a", "red", ("nothing",)), "'a'.*'nothing'"),
        (("z", "red", ()), "'z'"),
    ):
        with pytest.raises(VragError, match=words):
            checked(world, answers(answer), Painter())
    with pytest.raises(VragError, match="has no column 'sheet'"):
        claim_means(answers(("a", "red", ())))


def test_the_model_that_answered_does_not_look_at_the_pictures_again(world):
    table = answers(("c", "red", ("p_red",))).assign(model="painter")
    with pytest.raises(VragError, match="'painter' answered too"):
        check_answers(world, table, RuleExtractor(Colors()), Painter())
    texts = table.assign(doc_ids=[("t_blue",)])
    check_answers(world, texts, RuleExtractor(Colors()), Painter())


def test_means_are_over_queries_and_everything_left_out_is_counted(world):
    said = (("a", "red"), ("a", "blue"), ("b", "red"), ("c", "nothing"))
    table = answers(*((*each, ("t_blue",)) for each in said)).assign(draw=[0, 1, 0, 0])
    failed = answers(("c", "", ("t_blue",)), status="error").assign(draw=1)
    found = checked(world, pd.concat([table, failed], ignore_index=True), Painter())
    means = claim_means(found).set_index(["metric", "modality"])
    entailed = means.loc["entailed_share", "all"]
    assert entailed["value"] == pytest.approx((1 / 2 + 0) / 2)  # the draws of a first
    expected = estimate([0.5, 0.0], ["one", "two"])
    assert entailed["ci_low"] == pytest.approx(expected.ci_low)
    assert entailed["ci_high"] == pytest.approx(expected.ci_high)
    counts = ["n", "n_failed", "n_undefined", "n_unparsed", "n_claims"]
    assert list(entailed[counts]) == [2, 1, 1, 0, 3 / 4]
    used = means.loc["evidence_utilization", "text"]
    assert list(used[counts]) == [3, 1, 0, 0, 3 / 4]
    zero = claim_means(found, empty="zero").set_index(["family", "metric"])
    faithfulness = zero.loc[("ragchecker", "faithfulness"), ["value", "n"]]
    assert faithfulness.to_numpy().ravel() == pytest.approx([1 / 6, 3])


def test_an_unparsed_accepted_answer_leaves_a_claim_unknown(world):
    class Strict(Colors):
        def relation(self, claim: str, text: str) -> EntailmentLabel | None:
            return None if "odd" in text else super().relation(claim, text)

    one = dataclasses.replace(world.queries["c"], answers=("red", "odd"))
    other = dataclasses.replace(world, queries={"c": one})
    rules = RuleExtractor(Colors()), RuleChecker(Strict())
    (found,) = check_answers(other, answers(("c", "red", ("t_blue",))), *rules)["sheet"]
    assert letters(found.accepted) == "?"  # although "red" entails it
