"""Captions name and place what a photograph shows, never what is hidden; as documents
they go through the text tower, and their figure shows both searches.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_retrievers import QUESTIONS, embed, entry, queries

from vrag_kit.benchmarks import captions_only, load_webqa
from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, evaluate, load_encoder, search_all
from vrag_kit.retrieval.hybrid import tfidf_run
from vrag_kit.synthetic.visual_rag.captions import VIEWS, WebQAItem, photo_caption, plan_webqa
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, SpeciesPlan
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, accepted_spellings
from vrag_kit.types import Benchmark, Document, Query


@pytest.fixture(scope="module")
def planned() -> tuple[list[SpeciesPlan], list[WebQAItem]]:
    return plan_webqa(EDITIONS["small"])


@pytest.fixture(scope="module")
def webqa(guide_folder: Path) -> Benchmark:
    folder = guide_folder / "webqa"
    return load_webqa(folder / "WebQA_train_val.json", folder / "imgs.tsv", name="captions")


@pytest.mark.slow
def test_captions_that_were_broken_off_are_written_again(
    guide_folder: Path, tmp_path: Path
) -> None:
    copied = Path(shutil.copytree(guide_folder, tmp_path / "guide"))
    note = json.loads((copied / "edition.json").read_text(encoding="utf-8"))
    (copied / "edition.json").write_text(json.dumps({**note, "complete": False}), encoding="utf-8")
    (copied / "webqa" / "imgs.tsv").write_bytes(b"half a li")
    generate_field_guide("small", copied)
    for name in ("WebQA_train_val.json", "imgs.tsv", "imgs.lineidx"):
        assert (copied / "webqa" / name).read_bytes() == (
            guide_folder / "webqa" / name
        ).read_bytes()


@pytest.mark.slow
def test_every_question_of_the_guide_is_asked_of_its_clues_and_the_loader_reads_what_was_planned(
    webqa: Benchmark,
    guide: Benchmark,
    planned: tuple[list[SpeciesPlan], list[WebQAItem]],
    guide_folder: Path,
) -> None:
    pages, items = planned
    assert [query.text for query in webqa.queries.values()] == [
        query.text for query in guide.queries.values()
    ]
    assert [query.answers for query in webqa.queries.values()] == [
        query.answers for query in guide.queries.values()
    ]
    assert set(webqa.groups.values()) == {page.species.scientific_name for page in pages}
    labels = [
        [
            (page, number, label)
            for label, pictures in ((1, item.positives), (0, item.negatives))
            for page, number in pictures
        ]
        for item in items
    ]
    for found, expected in zip(webqa.qrels.values(), labels, strict=True):
        assert list(found.values()) == [label for _, _, label in expected]
        for doc_id, (page, number, _) in zip(found, expected, strict=True):
            image, file = (
                webqa.corpus[doc_id].image,
                guide_folder / "images" / pages[page].folder / pages[page].files[number],
            )
            assert image is not None
            assert image.data() == file.read_bytes()
            assert (
                webqa.corpus[doc_id].text == photo_caption(pages[page], number, "pocket-guide")[1]
            )


def test_positives_show_the_part_that_is_asked_about_and_nothing_else_in_the_corpus_does(
    planned: tuple[list[SpeciesPlan], list[WebQAItem]],
) -> None:
    pages, items = planned
    positives = {(item.question, picture) for item in items for picture in item.positives}
    corpus = {picture for item in items for picture in (*item.positives, *item.negatives)}
    shown = {
        (item.question, picture)
        for item in items
        for picture in corpus
        if pages[picture[0]] is item.page
        and item.question.part in item.page.photos[picture[1]].shown
    }
    assert shown == positives


def test_a_question_has_one_or_two_positives_and_some_ten_negatives_of_its_own_and_other_species(
    planned: tuple[list[SpeciesPlan], list[WebQAItem]],
) -> None:
    pages, items = planned
    assert {len(item.positives) for item in items} == {1, 2}
    assert all(9 <= len(item.negatives) <= 16 for item in items)
    own = [
        sum(pages[page] is item.page for page, _ in item.negatives) / len(item.negatives)
        for item in items
    ]
    assert 0.2 < np.mean(own) < 0.6
    used = Counter(picture for item in items for picture in item.negatives)
    assert set(used.values()) == {1}
    assert len(used) >= 150, "too few documents for recall at 50"


def test_a_caption_has_both_names_and_no_word_for_a_colour_or_pattern(
    planned: tuple[list[SpeciesPlan], list[WebQAItem]],
) -> None:
    forbidden = {word for value in (*COLORS, *PATTERNS) for word in accepted_spellings(value)}
    told = 0
    for page in planned[0]:
        for number in range(len(page.photos)):
            title, caption = photo_caption(page, number, "any")
            assert caption.startswith(title)
            assert page.species.common_name in caption
            assert page.species.scientific_name in caption
            assert not any(
                re.search(rf"\b{word}\b", caption, re.IGNORECASE) for word in forbidden
            ), caption
            told += any(f"showing the {part}" in caption for part in page.photos[number].shown)
            assert "showing the" not in caption or page.photos[number].shown
    assert told > 20


def test_captions_give_their_species_away_to_plain_word_matching(webqa: Benchmark) -> None:
    run = tfidf_run(captions_only(webqa), k=5)
    same = [
        webqa.queries[query_id].entity in (webqa.corpus[doc_id].text or "")
        for query_id, doc_id in zip(run["query_id"], run["doc_id"], strict=True)
    ]
    assert np.mean(same) > 0.8
    hits = evaluate(run, webqa.qrels, cutoffs=(1,)).query("metric == 'hit'")["value"]
    assert hits.mean() > 0.3  # a random order: 0.5 %


def test_every_pose_has_its_words() -> None:
    assert set(VIEWS) == {
        pose
        for kind in KINDS.values()
        for pose in (*kind.resting, *(part.pose for part in kind.hidden))
    }


def texts(*said: str) -> list[Document]:
    return [Document(doc_id=f"t{i}", text=text) for i, text in enumerate(said)]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2", "open_clip"])
def test_a_text_is_the_same_vector_as_document_and_as_question(
    family: str, retrievers_made: Path, checkpoint: Callable[..., Path]
) -> None:
    encoder = load_encoder(
        str(checkpoint()) if family == "open_clip" else entry(retrievers_made, family)
    )
    said = [*QUESTIONS, "a word and " * 200]  # the last is longer than any text tower reads
    np.testing.assert_allclose(
        embed(encoder, texts(*said)), encoder.encode_queries(queries(said)), atol=1e-6
    )


@pytest.mark.parametrize("family", ["clip", "siglip2", "open_clip"])
def test_pictures_are_embedded_as_before_and_may_stand_among_texts(
    family: str, retrievers_made: Path, checkpoint: Callable[..., Path], documents: list[Document]
) -> None:
    encoder = load_encoder(
        str(checkpoint()) if family == "open_clip" else entry(retrievers_made, family)
    )
    said = texts(*QUESTIONS)
    mixed = embed(encoder, [said[0], documents[0], documents[1], said[1], documents[2], said[2]])
    np.testing.assert_allclose(mixed[[1, 2, 4]], embed(encoder, documents[:3]), atol=1e-6)
    np.testing.assert_allclose(mixed[[0, 3, 5]], embed(encoder, said), atol=1e-6)


def test_a_question_prompt_is_not_said_around_documents(retrievers_made: Path) -> None:
    encoder, plain = (
        load_encoder(entry(retrievers_made, "clip", query_prompt="a photo of {text}")),
        load_encoder(entry(retrievers_made, "clip")),
    )
    np.testing.assert_array_equal(
        embed(encoder, texts(*QUESTIONS)), plain.encode_queries(queries())
    )


def test_an_encoder_of_pictures_alone_refuses_a_caption(
    retrievers_made: Path, checkpoint: Callable[..., Path]
) -> None:
    with pytest.raises(VragError, match="document 't0' has no image, which qwen2_vl encodes"):
        load_encoder(entry(retrievers_made, "qwen2_vl")).prepare(texts("a goose")[0])
    with pytest.raises(VragError, match="'mute' has no image and no text, which tiny encodes"):
        load_encoder(str(checkpoint())).prepare(Document(doc_id="mute", text=" "))


def test_a_picture_and_its_caption_are_kept_side_by_side_under_one_name(
    retrievers_made: Path, documents: list[Document], tmp_path: Path
) -> None:
    encoder = load_encoder(entry(retrievers_made, "clip"))
    captions = [Document(doc_id=document.doc_id, text=document.text) for document in documents]
    pictures, words = (
        embed_documents(encoder, some, tmp_path).vectors(["d0"]) for some in (documents, captions)
    )
    assert not np.allclose(pictures, words)
    for some, expected in ((documents, pictures), (captions, words)):
        np.testing.assert_array_equal(
            embed_documents(encoder, some, tmp_path).vectors(["d0"]), expected
        )


@pytest.mark.slow
def test_a_search_of_captions_finds_the_one_that_says_what_is_asked(
    webqa: Benchmark, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    captions = captions_only(webqa)
    first, second = list(captions.corpus)[:2]
    asked = {
        doc_id: Query(query_id=doc_id, text=captions.corpus[doc_id].text or "")
        for doc_id in (first, second)
    }
    same = Benchmark(
        name="same",
        fingerprint="",
        queries=asked,
        corpus=captions.corpus,
        qrels={doc_id: {doc_id: 1} for doc_id in asked},
    )
    (run,) = search_all(same, [str(checkpoint())], k=50, cache_dir=tmp_path).values()
    assert list(run[run["rank"] == 1]["doc_id"]) == [first, second]
    assert run[run["rank"] == 1]["score"].to_numpy() == pytest.approx(1.0, abs=1e-5)
