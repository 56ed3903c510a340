"""Annotations are read as they are written, and every mistake in them is named by file
and line.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.papers.visual_rag.statistics import describe, organism_category, question_kind
from vrag_kit.types import Benchmark

Write = Callable[..., Path]
GOOSE = "00001_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"


def test_a_v1_row_becomes_one_query_with_its_images_as_candidates(
    write_annotations: Write, tree: Path
) -> None:
    benchmark = load_visual_rag(write_annotations({}), tree)
    (query,) = benchmark.queries.values()
    assert (query.text, query.answers, query.group) == (
        "What color are the feet of the goose?",
        ("black",),
        "Branta leucopsis",
    )
    assert query.metadata["version"] == "v1"
    assert benchmark.candidates(query.query_id) == tuple(f"{GOOSE}/{name}.jpg" for name in "abcd")
    assert benchmark.relevant(query.query_id) == (f"{GOOSE}/a.jpg",)


def test_a_v2_row_keeps_its_extra_keys(write_annotations: Write, tree: Path) -> None:
    benchmark = load_visual_rag(
        write_annotations({"y_rate": 0.25, "y_count": 1, "is_changed_v2": "no"}), tree
    )
    (query,) = benchmark.queries.values()
    assert (
        query.metadata["version"],
        query.metadata["y_rate"],
        query.metadata["y_count"],
        query.metadata["is_changed_v2"],
    ) == ("v2", 0.25, 1, "no")


def test_query_ids_do_not_move_when_rows_are_added_or_reordered(
    write_annotations: Write, tree: Path
) -> None:
    first = {"question": "What color are the feet?"}
    second = {"question": "What color is the bill?"}
    alone = load_visual_rag(write_annotations(first), tree)
    both = load_visual_rag(write_annotations(second, first), tree)
    assert set(alone.queries) < set(both.queries)


def test_the_fingerprint_changes_with_a_label_and_not_with_the_folder(
    write_annotations: Write, tree: Path, tmp_path: Path
) -> None:
    before = load_visual_rag(write_annotations({}), tree).fingerprint
    other = tmp_path / "elsewhere"
    tree.rename(other)
    assert load_visual_rag(write_annotations({}), other).fingerprint == before
    changed = {
        "images": {
            f"{GOOSE}/a.jpg": 1,
            f"{GOOSE}/b.jpg": 1,
            f"{GOOSE}/c.jpg": 0,
            f"{GOOSE}/d.jpg": 0,
        }
    }
    assert load_visual_rag(write_annotations(changed), other).fingerprint != before


def test_a_subset_asks_some_of_the_same_questions_in_the_same_order(guide: Benchmark) -> None:
    first, second, third = list(guide.queries)[:3]
    part = guide.subset([third, first])
    assert list(part.queries) == list(part.qrels) == list(part.pools) == [first, third]
    assert part.candidates(first) == guide.candidates(first)
    assert part.corpus is guide.corpus
    assert len({guide.fingerprint, part.fingerprint, guide.subset([second]).fingerprint}) == 3
    with pytest.raises(VragError, match="no query 'nonsense'"):
        guide.subset([first, "nonsense"])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("{not json", ["line 2", "not JSON", "one JSON object a line"]),
        ({"answer": []}, ["line 2", "'answer': found []"]),
        ({"images": {f"{GOOSE}/a.jpg": 2}}, ["line 2", "a.jpg", "label 2", "1 (clue) or 0"]),
        ({"images": {f"{GOOSE}/zzz.jpg": 1}}, ["line 2", "zzz.jpg", "4 files there", "vrag check"]),
        ({"images": {"../secret/a.jpg": 1}}, ["line 2", "points outside"]),
    ],
)
def test_a_bad_row_is_refused_by_line_as_by_the_check(
    write_annotations: Write, tree: Path, bad: object, words: list[str]
) -> None:
    """All the others are in `bad_inputs.csv`, kinds annotation and annotation line."""
    path = write_annotations({}, bad)
    with pytest.raises(VragError) as caught:
        load_visual_rag(path, tree)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_an_image_named_twice_with_one_label_and_a_byte_order_mark_change_nothing(
    write_annotations: Write, tree: Path
) -> None:
    path = write_annotations({})
    before = load_visual_rag(path, tree)
    path.write_bytes(
        b"\xef\xbb\xbf"
        + path.read_bytes().replace(
            f'"{GOOSE}/a.jpg": 1'.encode(), f'"{GOOSE}/a.jpg": 1, "{GOOSE}/a.jpg": 1'.encode()
        )
    )
    assert path.read_bytes().count(b"a.jpg") == 2
    after = load_visual_rag(path, tree)
    assert (after.qrels, after.fingerprint) == (before.qrels, before.fingerprint)


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "no queries found"), (b"\n\n", "no queries found"), (b"\xff\xfe\x00", "not UTF-8")],
)
def test_a_file_that_holds_no_queries_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(VragError, match=word):
        load_visual_rag(path, tmp_path)


def test_a_missing_annotation_file_and_a_folder_in_its_place_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="no such annotation file"):
        load_visual_rag(tmp_path / "none.jsonl", tmp_path)
    with pytest.raises(VragError, match="Is a directory"):
        load_visual_rag(tmp_path, tmp_path)


def test_pictures_are_upright_and_rgb(write_annotations: Write, tree: Path) -> None:
    turned = Image.new("L", (30, 20), 200)
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees to see it upright
    turned.save(tree / GOOSE / "a.jpg", exif=exif)
    picture = load_visual_rag(write_annotations({}), tree).corpus[f"{GOOSE}/a.jpg"].image.open()
    assert (picture.size, picture.mode) == ((20, 30), "RGB")


def test_a_picture_of_16_bits_keeps_its_shades(tmp_path: Path) -> None:
    Image.fromarray((np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)).save(
        tmp_path / "deep.png"
    )
    picture = np.asarray(ImageFile(tmp_path / "deep.png").open())
    np.testing.assert_array_equal(picture[..., 0], np.arange(256).reshape(16, 16))


def test_a_picture_is_its_path_also_in_another_process(tmp_path: Path) -> None:
    picture = ImageFile(tmp_path / "a" / "b.png")
    assert picture == ImageFile(f"{tmp_path}/a//b.png") == pickle.loads(pickle.dumps(picture))
    assert picture != ImageFile(tmp_path / "b.png")
    assert (picture.path, picture.where) == (tmp_path / "a" / "b.png", str(picture.path))
    assert ImageFile("b.png").where == "b.png"


def test_a_photograph_takes_a_tenth_of_a_kilobyte_of_memory(
    write_annotations: Write, tmp_path: Path
) -> None:
    rows = []
    for species in range(20):
        folder = GOOSE.replace("00001", f"{species:05d}")
        names = [f"{folder}/{number:032x}.jpg" for number in range(250)]
        (tmp_path / "many" / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / "many" / name).touch()
        rows.append({"images": dict.fromkeys(names, 1), "question": f"{species}?"})
    path = write_annotations(*rows)
    del rows, names
    load_visual_rag(path, tmp_path / "many")  # what is loaded once is loaded
    tracemalloc.start()
    benchmark = load_visual_rag(path, tmp_path / "many")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(benchmark.corpus) == 20 * 250
    assert taken < 100 * len(benchmark.corpus)


def test_the_corpus_holds_each_image_of_the_rows_once_in_their_order(
    write_annotations: Write, tree: Path
) -> None:
    def images(names: str) -> dict[str, int]:
        return {f"{GOOSE}/{name}.jpg": int(name == "a") for name in names}

    shown = [images("ca"), images("abd"), images("ad")]
    path = write_annotations(
        *({"images": each, "question": f"{n}?"} for n, each in enumerate(shown))
    )
    benchmark = load_visual_rag(path, tree)
    doc_ids = [f"{GOOSE}/{name}.jpg" for name in "cabd"]
    assert list(benchmark.corpus) == doc_ids
    for doc_id, document in benchmark.corpus.items():
        assert document == benchmark.corpus[doc_id]
        assert document.image == ImageFile(tree / doc_id)
        assert (document.doc_id, document.metadata) == (doc_id, {"folder": GOOSE})
    assert list(benchmark.qrels.values()) == shown
    assert list(benchmark.pools.values()) == [tuple(each) for each in shown]
    assert f"{GOOSE}/e.jpg" not in benchmark.corpus
    told = [
        [query.text, query.answers, query.entity, sorted(each.items())]
        for query, each in zip(benchmark.queries.values(), shown, strict=True)
    ]
    assert benchmark.fingerprint == hashlib.sha256(json.dumps(told).encode()).hexdigest()


def test_statistics_agree_with_a_count_of_the_raw_rows(
    guide: Benchmark, guide_folder: Path
) -> None:
    rows = [
        json.loads(line)
        for line in (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    table = describe(guide).set_index("statistic")["value"]
    pairs, clues = sum(len(r["images"]) for r in rows), sum(sum(r["images"].values()) for r in rows)
    assert table["queries"] == len(rows)
    assert table["query-image pairs"] == pairs
    assert table["unique images"] == len({name for r in rows for name in r["images"]})
    assert table["clues a query, mean"] == round(clues / len(rows), 2)
    assert table["clue share of pairs"] == round(100 * clues / pairs, 2)
    assert table["rows whose y_count is not the number of clues"] == 0


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        (
            (
                "What color are the hindwings of Sensitive Fern Borer Moth (scientific name:"
                " Papaipema inquaesita) which are usually covered by the forewings?"
            ),
            "color",
        ),
        (
            (
                "When wings of Barnacle Goose (Branta leucopsis) are folded, they display mottled"
                " pattern; do same pattern appear on underside of spreading wings?"
            ),
            "yes/no",
        ),
        ("What pattern is on the belly?", "pattern"),
        ("How many toes are there?", "count"),
        ("What is the shape of the seed?", "shape"),
        ("Where is it?", "other"),
    ],
)
def test_question_kinds_follow_the_documented_rule(question: str, kind: str) -> None:
    assert question_kind(question) == kind


@pytest.mark.parametrize(
    ("folder", "category"),
    [
        (GOOSE, "birds"),
        ("00002_Plantae_Tracheophyta_Magnoliopsida_A_B_C_d", "plants"),
        ("00003_Animalia_Annelida_Clitellata_A_B_C_d", "other animals"),
        ("photos", "other"),
    ],
)
def test_organism_categories_come_from_the_folder_name(folder: str, category: str) -> None:
    assert organism_category(folder) == category
