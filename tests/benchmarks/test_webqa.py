"""WebQA's published files are read as their authors lay them out: questions that images
answer, captions, and pictures one line at a time. Bad rows are in bad_inputs.csv.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import factories
import numpy as np
import pytest
from page_rows import png

from vrag_kit.benchmarks import captions_only, load_webqa
from vrag_kit.benchmarks.datasets.webqa import TsvImage, tsv_image_from_uri
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark

COLORS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (120, 120, 120)]
Write = Callable[..., tuple[Path, Path]]


def fact(line: int, **changes: Any) -> dict[str, Any]:
    caption = f"Theatre {line} in the year 190{line}."
    return {"image_id": 30000000 + line, "caption": caption, "title": f"Theatre {line}", **changes}


def question(**changes: Any) -> dict[str, Any]:
    return {
        "Q": '"What pattern do the lines of the theatre form?"',
        "A": ['"They form a zigzag."'],
        "topic": "theatres",
        "split": "val",
        "Qcate": "Others",
        "img_posFacts": [fact(2)],
        "img_negFacts": [fact(0), fact(3)],
        "txt_posFacts": [],
        "txt_negFacts": [],
        **changes,
    }


def snippet(number: int, **changes: Any) -> dict[str, Any]:
    return {"fact": f"Fact {number}.", "snippet_id": f"s{number}", "title": "T", **changes}


def text_question(**changes: Any) -> dict[str, Any]:
    facts = {"txt_posFacts": [snippet(1), snippet(2)], "txt_negFacts": [snippet(3)]}
    images = {"img_posFacts": [], "img_negFacts": [fact(1)]}
    return question(**{**images, **facts, **changes})


@pytest.fixture
def write(tmp_path):
    """Write the three files with four pictures, one in each colour, and the given
    questions by Guid; returns the paths of the annotations and of imgs.tsv.
    """

    def build(questions: object = None) -> tuple[Path, Path]:
        offsets, whole = [], b""
        for number, color in enumerate(COLORS):
            offsets.append(f"{len(whole)}\n")
            whole += f"3000000{number}\t".encode() + base64.b64encode(png(color)) + b"\n"
        (tmp_path / "imgs.tsv").write_bytes(whole)
        (tmp_path / "imgs.lineidx").write_text("".join(offsets), encoding="ascii")
        annotations = tmp_path / "WebQA_train_val.json"
        annotations.write_text(json.dumps(questions or {"a1": question()}), encoding="utf-8")
        return annotations, tmp_path / "imgs.tsv"

    return build


def picture(benchmark: Benchmark, doc_id: str) -> TsvImage:
    return benchmark.corpus[doc_id].image


def texts(benchmark: Benchmark) -> dict[str, str | None]:
    return {doc_id: document.text for doc_id, document in benchmark.corpus.items()}


def test_text_questions_are_asked_of_snippets_or_of_images_too(write):
    annotations, images = write({"a1": question(), "b2": text_question()})
    alone = load_webqa(annotations, None, questions="text")
    assert alone.qrels == {"b2": {"s1": 1, "s2": 1, "s3": 0}}
    assert (alone.corpus["s3"].text, alone.corpus["s3"].image) == ("Fact 3.", None)
    assert alone.corpus["s3"].metadata["title"] == "T"
    with_images = load_webqa(annotations, images, questions="text")
    assert with_images.qrels == {"b2": {"30000001": 0, "s1": 1, "s2": 1, "s3": 0}}
    both = load_webqa(annotations, images, questions="all")
    assert both.qrels == {**load_webqa(annotations, images).qrels, **with_images.qrels}
    for guid, modality, hops in (("a1", "image", 1), ("b2", "text", 2)):
        told = both.queries[guid].metadata
        assert (told["required_modality"], told["hops"]) == (modality, hops)
    assert both.queries["b2"].metadata["reference"] == "They form a zigzag."


def test_a_snippet_without_an_id_or_with_anothers_gets_one_of_its_question(write):
    row = text_question(
        txt_posFacts=[snippet(1, snippet_id=None), snippet(2, snippet_id="a b")],
        txt_negFacts=[snippet(3, snippet_id="a b")],
    )
    benchmark = load_webqa(write({"b2": row})[0], None, questions="text")
    assert benchmark.qrels["b2"] == {"b2_txt_pos_0": 1, "a%20b": 1, "b2_txt_neg_0": 0}
    assert benchmark.corpus["b2_txt_neg_0"].text == "Fact 3."


def test_a_question_becomes_a_query_over_the_whole_corpus(write):
    bare = question()
    del bare["topic"]
    benchmark = load_webqa(*write({"a1": question(), "b2": question(topic=" "), "c3": bare}))
    assert benchmark.queries["a1"].answers == ("They form a zigzag.",)
    assert benchmark.qrels["a1"] == {"30000002": 1, "30000000": 0, "30000003": 0}
    assert benchmark.candidates("a1") is None
    assert list(texts(benchmark)) == ["30000002", "30000000", "30000003"]
    assert benchmark.groups == {"a1": "theatres", "b2": "b2", "c3": "c3"}  # the topic, if any


def test_questions_of_other_splits_are_left_out_with_their_images(write):
    train = question(split="train", img_posFacts=[fact(1)], img_negFacts=[])
    files = write({"a1": question(), "b2": text_question(), "c3": train})
    assert list(load_webqa(*files).queries) == ["a1"]
    assert "30000001" not in load_webqa(*files).corpus
    assert list(load_webqa(*files, split="train").queries) == ["c3"]
    row = text_question(img_posFacts=[fact(2)])
    for questions in ("image", "text", "all"):
        benchmark = load_webqa(*write({"b2": row}), questions=questions)
        assert benchmark.queries["b2"].metadata["required_modality"] == "both"


def test_of_two_labels_the_positive_counts_and_of_two_captions_the_first(write):
    positive = [fact(2, image_id="30000002")]  # an id may be a text
    negative = [fact(2, caption="Another caption."), fact(0, caption=" ")]
    row = question(img_posFacts=positive, img_negFacts=negative)
    benchmark = load_webqa(*write({"a1": row}))
    assert benchmark.qrels["a1"] == {"30000002": 1, "30000000": 0}
    expected = {"30000002": "Theatre 2 in the year 1902.", "30000000": "Theatre 0"}
    assert texts(benchmark) == expected


def test_every_image_is_that_of_its_own_line(write):
    row = question(img_posFacts=[fact(3), fact(1)], img_negFacts=[fact(0), fact(2)])
    annotations, images = write({"a1": row})
    benchmark = load_webqa(annotations, images)
    lines = images.read_text(encoding="ascii").splitlines()
    whole = dict(line.split("\t") for line in lines)  # the slow way: all lines at once
    for i, color in enumerate(COLORS):
        image = picture(benchmark, f"3000000{i}")
        assert image.data() == base64.b64decode(whole[f"3000000{i}"])
        np.testing.assert_allclose(np.asarray(image.open()).mean(axis=(0, 1)), color)
        assert tsv_image_from_uri(image.where) == image
    assert tsv_image_from_uri(str(image.path)) is None


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([], "split 'val'.*img_posFacts"),
        ([fact(0, caption="", title=None)], "30000000.*'title'"),
        ([fact(4)], "30000004.*4 lines"),
    ],
)
def test_bad_rows_are_named_by_question_and_key(write, facts, words):
    with pytest.raises(VragError, match=f"WebQA_train_val.json.*{words}"):
        load_webqa(*write({"a1": question(img_posFacts=facts)}))


def test_a_missing_or_broken_file_is_named(write):
    annotations, images = write()
    load = partial(load_webqa, annotations, images)
    with pytest.raises(VragError, match="'all'"):
        load_webqa(annotations, None, questions="all")
    index, whole = images.with_suffix(".lineidx"), images.read_bytes()
    image = picture(load(), "30000002")
    images.write_bytes(whole[:100])
    with pytest.raises(VragError, match=r"30000002 .*100"):
        load()
    images.write_bytes(whole)
    index.write_text("0\n12x\n", encoding="ascii")
    with pytest.raises(VragError, match=r"imgs\.lineidx: .*'12x'"):
        load()
    for gone, name in ((index, r"imgs\.lineidx"), (images, r"imgs\.tsv"), (annotations, "json")):
        gone.unlink()
        with pytest.raises(VragError, match=name):
            load()
    for look in (lambda: image.stamp, image.data):
        with pytest.raises(VragError, match=r"imgs\.tsv"):
            look()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"30000003\t/9j/", "30000003"),
        (b"30000002\t/9j/a", "not base64"),
        (b"30000002\t", "no known format"),
    ],
)
def test_a_broken_line_is_named_by_file_and_image(write, line, words):
    annotations, images = write()
    image = picture(load_webqa(annotations, images), "30000002")
    content = images.read_bytes()
    images.write_bytes(content[: image.offset] + line + b"\n" + content[image.offset :])
    place = rf"imgs\.tsv#image=30000002&byte={image.offset}"
    with pytest.raises(VragError, match=f"{place}: .*{words}"):
        image.open()


def test_the_fingerprint_changes_with_a_label_or_a_caption(write):
    label = question(img_posFacts=[fact(0)], img_negFacts=[fact(2), fact(3)])
    caption = question(img_posFacts=[fact(2, caption="Something else.")])
    rows = [question(), question(), label, caption]
    prints = [load_webqa(*write({"a1": row})).fingerprint for row in rows]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    annotations, images = write()
    old = picture(load_webqa(annotations, images), "30000002").stamp
    images.write_bytes(images.read_bytes() + b"\n")
    assert picture(load_webqa(annotations, images), "30000002").stamp != old


def test_captions_only_asks_the_same_questions_of_texts_alone(write):
    benchmark = load_webqa(*write())
    captions = captions_only(benchmark)
    assert (captions.queries, captions.qrels) == (benchmark.queries, benchmark.qrels)
    assert texts(captions) == texts(benchmark)
    assert {document.image for document in captions.corpus.values()} == {None}
    assert captions.fingerprint != benchmark.fingerprint
    with pytest.raises(VragError, match="'d'"):
        captions_only(factories.benchmark(documents=["d"]))
