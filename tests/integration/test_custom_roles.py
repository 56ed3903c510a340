"""One's own class stands wherever a parameter names a model or a retriever: as writer,
filter, rewriter, assessor, extractor, checker and in both searches.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from own_project import Write

from vrag_kit.building import read_species_folders, write_questions
from vrag_kit.claims import (
    AnswerText,
    EntailmentRequest,
    forbid_self_check,
    load_checker,
    load_extractor,
)
from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.types import Document

SAYS = """
class Says:
    def __init__(self, words: str) -> None:
        self.words = words
    def generate(self, prompts):
        return [self.words for _ in prompts]
"""


def says(words: str) -> dict[str, object]:
    return {"model": "mine:Says", "words": words, "name": "says"}


def test_a_writer_an_extractor_and_a_checker(mine: Write, tree: Path, tmp_path: Path) -> None:
    mine(SAYS)
    folders = read_species_folders(tree, {"Branta leucopsis": "Barnacle Goose"})
    asks = '{"questions": [{"question": "What color are the feet?", "feature": "feet"}]}'
    written = write_questions(says(asks), folders, {}, Workspace(answers_dir=tmp_path))
    assert list(written["writer"]) == ["says"]
    assert written["question"].item() == "What color are the feet?"
    taken = load_extractor(says("Owls eat moths."), Workspace(answers_dir=tmp_path))
    assert taken.extract([AnswerText(query_id="q", question="What?", words="Owls.")])[0] == (
        "Owls eat moths.",
    )
    moth = Document(doc_id="m", text="Owls eat moths.")
    (judged,) = load_checker(says("1: ENTAILMENT"), Workspace(answers_dir=tmp_path)).check(
        [EntailmentRequest(query_id="q", claims=("Owls eat moths.",), item=moth)]
    )
    assert judged == ("ENTAILMENT",)


def test_who_checks_claims_is_another_where_options_of_a_class_differ(mine: Write) -> None:
    mine(SAYS)
    forbid_self_check(says("this"), [says("that")])
    with pytest.raises(VragError, match="it is an answerer too"):
        forbid_self_check({**says("this"), "name": "other"}, [says("this")])
