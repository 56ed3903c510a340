"""Extractor and checker of claims: what a model is asked, how strictly it is read, and rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from own_project import Write
from PIL import Image
from strange_server import StrangeServer, images_in, text_in

from vrag_kit.benchmarks import ImageFile
from vrag_kit.claims import (
    AnswerText,
    ClaimChecker,
    EntailmentLabel,
    EntailmentRequest,
    forbid_self_check,
    load_checker,
    load_extractor,
)
from vrag_kit.claims.prompts import parse_claims, parse_entailment_labels
from vrag_kit.claims.verdicts import Label
from vrag_kit.errors import VragError
from vrag_kit.judging import UnparsedError
from vrag_kit.types import Document
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
def server() -> Iterator[StrangeServer]:
    with StrangeServer(PLANS) as running:
        yield running


def at(server: StrangeServer) -> dict[str, object]:
    return {"model": f"eyes@{server.url}", "timeout": 5.0, "retries": 0}


def asked(server: StrangeServer) -> list[dict[str, object]]:
    """The requests but for those that only see whether somebody is there."""
    return [each for each in server.requests if "word: ready" not in text_in(each)]


def labels(checker: ClaimChecker, claims: tuple[str, ...], item: Document) -> list[Label]:
    (found,) = checker.check([EntailmentRequest(query_id="q", claims=claims, item=item)])
    return list(found)


def test_a_checker_is_asked_about_five_claims_once(server: StrangeServer, tmp_path: Path) -> None:
    for _ in range(2):
        checker = load_checker(at(server), Workspace(answers_dir=tmp_path))
        assert labels(checker, SIX, MOTH) == [E, N, N, N, C, C]
    assert len(asked(server)) == 2
    (words,) = [text for text in map(text_in, asked(server)) if "claim 1" in text]
    assert "from what it shows or says alone" in words
    assert "Evidence:\nTalia osa flies in June.\n" in words
    assert words.endswith("Claims:\n" + "\n".join(f"{n}: claim {n} is so." for n in range(1, 6)))
    assert asked(server)[0]["temperature"] == 0


def test_images_are_judged_with_their_captions(server: StrangeServer, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    item = Document(doc_id="a", image=ImageFile(tmp_path / "a.png"), text="A moth.")
    checker = load_checker(at(server), Workspace(answers_dir=tmp_path))
    assert labels(checker, SIX[5:], item) == [C]
    (request,) = asked(server)
    (picture,) = images_in(request)
    assert picture.getpixel((0, 0)) == (255, 0, 0)
    assert "A moth." in text_in(request)


def test_unparsed_labels_are_never_neutral(
    server: StrangeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checker = load_checker(at(server), Workspace(answers_dir=tmp_path))
    assert labels(checker, ("four", "4"), MOTH) == [None, None]
    assert labels(checker, ("five", "5"), MOTH) == [N, E]
    assert "it has 1 labels, and there are 2 claims" in text_in(asked(server)[1])
    out = capsys.readouterr().out
    assert "1 could not be read and were asked for once more, 1 of them remain" in out


def test_an_extractor_gives_each_fact_once(server: StrangeServer, tmp_path: Path) -> None:
    owls = AnswerText(query_id="q", question="What eats it?", words="Owls,\nand bats.")
    nobody = AnswerText(query_id="r", question="Who knows?", words="I cannot tell.")
    for _ in range(2):
        found = load_extractor(at(server), Workspace(answers_dir=tmp_path)).extract([owls, nobody])
        assert found == [("Owls eat Talia osa.", "Bats eat Talia osa."), ()]
    assert len(asked(server)) == 2
    words = "".join(map(text_in, asked(server)))
    assert "Question: What eats it?\nAnswer: Owls, and bats." in words


@pytest.mark.parametrize("answerer", ["eyes", "eyes@openai", {"model": "eyes", "name": "other"}])
def test_no_model_checks_itself(server: StrangeServer, tmp_path: Path, answerer: object) -> None:
    with pytest.raises(VragError, match=r"checker 'eyes@http.* it is an answerer too"):
        load_checker(at(server), Workspace(answers_dir=tmp_path), answerers=["another", answerer])
    forbid_self_check("eyes-72b", ["eyes"])


def test_a_custom_extractor_of_no_claims_is_stopped(mine: Write, tmp_path: Path) -> None:
    mine("""
asked = []
class Chatty:
    batched = True
    def generate(self, prompts):
        asked.extend(prompts)
        return ["NONE\\nbut one"] * len(prompts)
""")
    said = [AnswerText(query_id="q", question="Which?", words=f"{each} owls") for each in range(60)]
    for _ in range(2):
        with pytest.raises(VragError, match=r"claims of 'Chatty': 24 of 24 .*NONE stands beside"):
            load_extractor("mine:Chatty", Workspace(answers_dir=tmp_path, batch_size=8)).extract(
                said
            )
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
def test_other_forms_are_unparsed(parse: Callable[[str], object], raw: str, reason: str) -> None:
    with pytest.raises(UnparsedError, match=reason):
        parse(raw)
