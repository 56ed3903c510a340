"""One's own class stands wherever a parameter names a model or a retriever: as writer,
filter, rewriter, assessor, extractor, checker and in both searches.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from own_project import Write

from vrag_kit.benchmarks import ImageFile
from vrag_kit.building import read_species_folders, write_questions
from vrag_kit.claims import (
    AnswerText,
    EntailmentRequest,
    forbid_self_check,
    load_checker,
    load_extractor,
)
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.parameters import (
    Setup,
)
from vrag_kit.synthetic.crag_mm import PROMPTS, SEARCH
from vrag_kit.types import Benchmark, Document, Message, Query

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
    written = write_questions(says(asks), folders, {}, tmp_path)
    assert list(written["writer"]) == ["says"]
    assert written["question"].item() == "What color are the feet?"
    taken = load_extractor(says("Owls eat moths."), tmp_path)
    assert taken.extract([AnswerText(query_id="q", question="What?", words="Owls.")])[0] == (
        "Owls eat moths.",
    )
    moth = Document(doc_id="m", text="Owls eat moths.")
    (judged,) = load_checker(says("1: ENTAILMENT"), tmp_path).check(
        [EntailmentRequest(query_id="q", claims=("Owls eat moths.",), item=moth)]
    )
    assert judged == ("ENTAILMENT",)


def test_who_checks_claims_is_another_where_options_of_a_class_differ(mine: Write) -> None:
    mine(SAYS)
    forbid_self_check(says("this"), [says("that")])
    with pytest.raises(VragError, match="it is an answerer too"):
        forbid_self_check({**says("this"), "name": "other"}, [says("this")])


SEARCHES = """
import numpy as np

class Brightness:
    def encode_queries(self, queries):
        return [self.seen(query.image) for query in queries]
    def encode_documents(self, documents):
        return [self.seen(document.image) for document in documents]
    def seen(self, image):
        bright = np.asarray(image.open()).mean() / 255
        return [bright, 1 - bright]

class Letters:
    def encode_queries(self, queries):
        return [[query.text.count(each) for each in "abc"] for query in queries]
    def encode_documents(self, documents):
        return [[document.text.count(each) for each in "abc"] for document in documents]
"""


def test_both_searches_and_a_rewriter(mine: Write, tree: Path, tmp_path: Path) -> None:
    mine(SAYS + SEARCHES)
    pictures = [ImageFile(file) for file in sorted(tree.glob("*/*.jpg"))]
    corpus = {}
    for number, picture in enumerate(pictures):
        told = {"source": "image_search"}
        corpus[f"p{number}"] = Document(doc_id=f"p{number}", image=picture, metadata=told)
    for letter in "abc":
        told = {"source": "web_search", "page_name": letter, "page_url": letter}
        corpus[letter] = Document(doc_id=letter, text=f"{letter * 3} x", metadata=told)
    query = Query(query_id="q", text="bb", group="q", image=pictures[3])
    benchmark = Benchmark(
        name="some", fingerprint="", queries={"q": query}, corpus=corpus, qrels={}
    )
    search = {"image_service": "mine:Brightness", "web_service": "mine:Letters", "rewriter": ""}
    search |= {**SEARCH, "rewrite": "none"}
    kept = PROMPTS, {}, {}, {"device": "cpu"}, tmp_path, tmp_path
    found = Setup(search, *kept).open(benchmark)
    assert (found.image_k, found.web_k, found.threshold) == (10, 5, 0.85)
    assert found.images is not None
    assert found.web is not None
    seen = {each: np.asarray(corpus[each].image.open()).mean() for each in corpus if each[0] == "p"}
    brightest = max(seen, key=seen.get)
    assert found.images.search([query], 1)["doc_id"].item() == brightest == "p3"
    assert found.web.search([query], 1)["doc_id"].item() == "b"
    new = '{"entity_name": "heron", "updated_question": "What do herons eat?"}'
    search |= {"rewrite": "retrieved", "rewriter": says(new)}
    rewriter = Setup(search, *kept).open(benchmark).rewriter
    assert rewriter is not None
    prompt = (Message(role="user", parts=("What does it eat?",)),)
    assert rewriter.rewrite([prompt], ["What does it eat?"])[0].text == "What do herons eat?"
