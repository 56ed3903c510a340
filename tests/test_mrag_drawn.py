"""The drawn MRAG-Bench is laid out like the real one, its queries hide what they ask and
its examples show it, and nothing but the pictures gives the answer away.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

from vrag_kit.benchmarks import example_pools, load_mrag_bench, load_mrag_texts
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import class_of, read_class_labels
from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_problems
from vrag_kit.papers.mrag_bench.settings import (
    PROMPT_SETS,
    gt_rag,
    mismatched_examples,
    mismatched_rag,
)
from vrag_kit.synthetic import data_card_note
from vrag_kit.synthetic.mrag_bench import (
    EDITIONS,
    SCENARIOS,
    generate_mrag_bench,
    open_class_labels,
    open_mrag_bench,
)
from vrag_kit.synthetic.mrag_bench.edition import plan_edition
from vrag_kit.synthetic.mrag_bench.topics import (
    SpeciesTopic,
    make_topic,
    named_species,
    outside_in_words,
)
from vrag_kit.synthetic.visual_rag.pages import EDITIONS as GUIDES
from vrag_kit.synthetic.world.traits import COLORS
from vrag_kit.types import Benchmark

SMALL = 64  # pixels: hides what 128 hide


@pytest.fixture(scope="module")
def drawn(mrag_folder: Path) -> Path:
    return mrag_folder


@pytest.fixture(scope="module")
def benchmark(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return load_mrag_bench(drawn, drawn, cache_dir=tmp_path_factory.mktemp("store"))


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    together = hashlib.sha256()
    for path in files:
        together.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return together.hexdigest()


@pytest.mark.slow
def test_an_edition_is_left_alone_and_when_cut_off_drawn_again_the_same_by_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EDITIONS, "tiny", replace(EDITIONS["small"], questions=1, size=SMALL))
    folder = generate_mrag_bench("tiny", tmp_path / "x", workers=1)
    bytes_of, note = digest(folder), folder / "edition.json"
    before = note.stat().st_mtime_ns
    generate_mrag_bench("tiny", folder)
    assert note.stat().st_mtime_ns == before
    told = json.loads(note.read_text(encoding="utf-8"))
    note.write_text(json.dumps({**told, "complete": False}))
    next((folder / "image_corpus").iterdir()).unlink()
    assert digest(generate_mrag_bench("tiny", folder, workers=2)) == bytes_of


def test_a_folder_with_other_pictures_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "image_corpus").mkdir()
    (tmp_path / "image_corpus" / "mine.jpg").write_bytes(b"precious")
    with pytest.raises(VragError, match="was not drawn by this kit"):
        generate_mrag_bench("small", tmp_path)
    assert (tmp_path / "image_corpus" / "mine.jpg").read_bytes() == b"precious"
    with pytest.raises(VragError, match="'full', 'small'"):
        generate_mrag_bench("large", tmp_path)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "draw.py"
    call = f"generate_mrag_bench('small', {str(tmp_path / 'x')!r}, workers=1)"
    script.write_text(f"from vrag_kit.synthetic.mrag_bench import generate_mrag_bench\n{call}\n")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert ran.returncode != 0
    assert 'below `if __name__ == "__main__":`' in ran.stderr


def test_the_hubs_own_library_reads_the_shards_and_knows_their_pictures(
    drawn: Path, tmp_path: Path
) -> None:
    import datasets

    shards = sorted(str(path) for path in (drawn / "data").iterdir())
    rows = datasets.load_dataset("parquet", data_files=shards, split="train", cache_dir=tmp_path)
    assert rows.column_names == [
        "id", "aspect", "scenario", "image", "gt_images", "question", "A", "B", "C", "D",
        "answer_choice", "answer", "image_type", "source", "retrieved_images",
    ]  # fmt: skip
    assert isinstance(rows[0]["image"], Image.Image)
    assert isinstance(rows[0]["retrieved_images"][4], Image.Image)
    assert rows[0]["image"].size == (96, 96)
    assert [Path(shard).name for shard in shards[:3]] == [
        "test-00000-of-000011.parquet",
        "test-00001-of-000011.parquet",
        "test-000010-of-000011.parquet",
    ]
    ids = [int(each) for each in rows["id"]]
    assert ids != sorted(ids) == list(range(63))


def test_every_scenario_has_its_label_its_examples_and_in_the_full_edition_sixty_questions(
    benchmark: Benchmark,
) -> None:
    sizes = Counter(
        about.scenario for about in plan_edition(EDITIONS["full"]) for _ in about.questions
    )
    assert sizes == dict.fromkeys(SCENARIOS, 60)
    labels = {query.metadata["label"] for query in benchmark.queries.values()}
    assert "Obstruction" in labels
    assert "Occlusion" not in labels
    counts: dict[str, set[int]] = {}
    for query_id, query in benchmark.queries.items():
        counts.setdefault(query.metadata["scenario"], set()).add(len(benchmark.qrels[query_id]))
    assert counts.pop("incomplete") == {1}
    assert counts.pop("angle") == {4, 5}  # one picture twice, as in 18 rows of the real data
    assert set(map(frozenset, counts.values())) == {frozenset({5})}


def test_the_corpus_holds_the_queries_but_partials_and_its_names_are_the_real_ones_trouble(
    benchmark: Benchmark,
) -> None:
    without = {
        query.metadata["scenario"]
        for query_id, query in benchmark.queries.items()
        if query_id not in benchmark.left_out
    }
    assert without == {"partial"}
    names = [unquote(doc_id) for doc_id in benchmark.corpus]
    assert {Path(name).suffix for name in names} == {".jpg", ".JPEG", ".png", ".webp"}
    for sign in (" ", "%2B", "+", "ø"):
        assert any(sign in name for name in names), sign
    answers = {query.answers[0] for query in benchmark.queries.values()}
    assert any(answer in name for answer in answers if len(answer) > 5 for name in names)
    assert not any(re.search(r"\s", doc_id) for doc_id in benchmark.corpus)


def test_each_question_has_a_passage_that_tells_its_answer_among_many_of_its_kind(
    drawn: Path, benchmark: Benchmark
) -> None:
    texts = load_mrag_texts(benchmark, drawn / "texts")
    told = {name: document.text or "" for name, document in texts.corpus.items()}
    topics = plan_edition(EDITIONS["small"])
    assert len(told) == 2 * len(topics)  # of each topic, and of another beside it
    for query_id, query in texts.queries.items():
        relevant = texts.relevant(query_id)
        assert relevant
        for name in relevant:
            for word in query.answers[0].split():
                assert re.search(rf"\b{word}\b", told[name]), told[name]
        scenario = query.metadata["scenario"]
        assert len(relevant) == 1 or scenario == "others" or query.metadata["source"] != "new"
    regions = [query_id for query_id in texts.queries if "region" in texts.queries[query_id].text]
    for query_id in regions:  # every passage on the region answers
        region = texts.queries[query_id].answers[0]
        naming = {name for name, text in told.items() if re.search(rf"\b{region}\b", text)}
        assert naming == set(texts.relevant(query_id))


def test_swapped_examples_are_anothers_of_the_same_scenario_with_another_answer(
    benchmark: Benchmark,
) -> None:
    swapped = mismatched_examples(benchmark)
    assert swapped == mismatched_examples(benchmark)
    assert swapped != mismatched_examples(benchmark, seed=1)
    whose: dict[str, set[str]] = {}
    for query_id in benchmark.queries:
        for doc_id in benchmark.relevant(query_id):
            whose.setdefault(doc_id, set()).add(query_id)
    for query_id, foreign in swapped.items():
        query = benchmark.queries[query_id]
        assert foreign
        assert not set(foreign) & set(benchmark.relevant(query_id))
        for doc_id in foreign:
            owners = [benchmark.queries[owner] for owner in whose[doc_id]]
            assert any(owner.answers != query.answers for owner in owners)
            assert all(owner.group != query.group for owner in owners)
            scenarios = {owner.metadata["scenario"] for owner in owners}
            assert scenarios == {query.metadata["scenario"]}


def test_the_swapped_arm_differs_from_ground_truth_in_what_is_shown_alone(
    benchmark: Benchmark,
) -> None:
    truth, swapped = gt_rag(benchmark), mismatched_rag(benchmark)
    for own, foreign in zip(truth, swapped, strict=True):
        assert (foreign.query_id, foreign.k) == (own.query_id, own.k)
        assert 0 < len(foreign.doc_ids) <= len(own.doc_ids)
        assert not set(foreign.doc_ids) & set(own.doc_ids)
        own_words = PROMPT_SETS["paper"].template_for(own).name
        assert PROMPT_SETS["paper"].template_for(foreign).name == own_words


def test_labels_of_real_data_are_those_of_the_file_that_is_named(drawn: Path) -> None:
    assert open_class_labels("data/mrag-bench") == {}
    file = str(drawn / "labels.csv")
    assert open_class_labels("data/mrag-bench", file) == read_class_labels(file) != {}


def test_pools_of_examples_are_of_the_class_that_the_ground_truth_is_of(
    drawn: Path, benchmark: Benchmark
) -> None:
    pools = example_pools(benchmark, read_class_labels(drawn / "labels.csv"))
    inputs = frozenset[str]().union(*benchmark.left_out.values())
    answers: dict[str, set[str]] = {}
    for query_id, pool in pools.items():
        query = benchmark.queries[query_id]
        relevant = benchmark.relevant(query_id)
        assert pool[: len(relevant)] == relevant
        assert not inputs & set(pool)
        expected = {"Perspective": 7, "Transformative": 5, "Others": 7}
        if query.metadata["scenario"] == "incomplete":
            assert len(pool) == 1
        else:
            assert len(pool) >= expected[query.metadata["aspect"]]
        if query.metadata["scenario"] == "others":
            for doc_id in pool:
                answers.setdefault(doc_id, set()).add(query.answers[0])
    assert all(len(regions) == 1 for regions in answers.values())


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("Temporal_Cats_17_gt_3.jpg", "Temporal_Cats_17"),
        ("Biological_44_gt_0.jpg", "Biological_44"),
        (
            "stanfordcars_by_class_stanford_test_BMW M3 Coupe 2012_02309.jpg",
            "BMW M3 Coupe 2012",
        ),
        ("geoDE_geode_images_Africa_Nigeria_stove_57933.jpg", "Africa"),
        ("imagenet_val_ILSVRC2012_val_00037202.JPEG", "wood_rabbit"),
        ("flowers102_jpg_image_06712.jpg", ""),
        ("Temporal_Cats_17_input.jpg", ""),
    ],
)
def test_file_names_of_the_real_corpus_tell_classes_where_they_can(file: str, label: str) -> None:
    assert class_of(file, {"imagenet_val_ILSVRC2012_val_00037202.JPEG": "wood_rabbit"}) == label


def test_the_check_finds_no_fault_in_an_edition(drawn: Path) -> None:
    found = find_problems(drawn, drawn)
    assert set(found["kind"]) == {"odd"}
    assert set(found["message"]) == {"1 images are not in the corpus", "one image occurs twice"}


def test_options_differ_and_are_of_one_spelling_so_that_none_stands_out() -> None:
    places = Counter()
    for edition in EDITIONS.values():
        for about in plan_edition(edition):
            for question in about.questions:
                assert len(set(question.options)) == 4
                forms = {re.sub(r"[a-z]+", "a", option) for option in question.options}
                if question.asks == "region":  # run together and nested, as GeoDE's are
                    forms = {re.sub(r"(Aa)+", "Aa", re.sub("[A-Z]", "A", each)) for each in forms}
                if question.asks == "chip":
                    forms = {re.sub("[A-Z]", "A", each) for each in forms}
                forms = {re.sub("[A-Z]", "A", each) for each in forms}
                assert len(forms) == 1, question.options
                places[question.letter] += 1
    # 603 draws of four: each letter within four standard deviations of a quarter
    assert all(abs(count - 603 / 4) < 4 * (603 * 3 / 16) ** 0.5 for count in places.values())


def differing(first: Image.Image, second: Image.Image) -> float:
    """Share of the pixels that differ clearly."""
    far = np.abs(np.asarray(first, np.int16) - np.asarray(second, np.int16)).max(axis=2) > 40
    return float(far.mean())


def painted_otherwise(about: SpeciesTopic) -> SpeciesTopic:
    """The same topic with the part that is asked about in the opposite colour."""
    look = about.species.hidden[about.part]
    luma = np.array((0.3, 0.6, 0.1))
    bright = np.dot(COLORS[look.color], luma) > 128
    new = replace(look, color="black" if bright else "white", second="blue" if bright else "yellow")
    species = replace(about.species, hidden={**about.species.hidden, about.part: new})
    return replace(about, species=species, look=new)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", ["angle", "partial", "scope", "occlusion", "temporal", "deformation"]
)
def test_a_query_is_the_same_whatever_the_answer_and_its_examples_are_not(scenario: str) -> None:
    hidden, shown = [], []
    for number in range(14):
        about = make_topic(scenario, f"test/{scenario}/{number}")
        assert isinstance(about, SpeciesTopic)
        if about.part not in about.species.hidden:
            continue
        other = painted_otherwise(about)
        hidden.append(differing(about.query_image("q", SMALL), other.query_image("q", SMALL)))
        shown.append(
            max(
                differing(about.example_image(n, SMALL), other.example_image(n, SMALL))
                for n in "abc"
            )
        )
    assert len(hidden) >= 5
    assert max(hidden) <= 0.01
    assert min(shown) > 0.008
    assert np.mean(shown) > 5 * np.mean(hidden)


def test_a_tray_lacks_one_chip_and_no_wrong_option_is_on_it() -> None:
    for number in range(20):
        about = make_topic("incomplete", f"test/{number}")
        (question,) = about.questions()
        assert set(question.others).isdisjoint({question.answer})
        assert len(question.others) == 3  # so that what is on the tray tells nothing
        changed = differing(about.query_image("q", 96), about.example_image("q", 96))
        assert 0 < changed < 0.1


def test_names_are_asked_of_known_species_only_and_told_by_looks_that_tell_options_apart() -> None:
    told = {each.scientific_name: outside_in_words(each) for each in named_species()}
    for about in plan_edition(EDITIONS["full"]):
        for question in about.questions:
            if question.asks == "name":
                looks = [told[option] for option in question.options]
                right = looks["ABCD".index(question.letter)]
                assert looks.count(right) == 1
    assert GUIDES["full"].seed not in {edition.seed for edition in EDITIONS.values()}


def test_a_drawn_edition_is_opened_by_its_name(
    mrag_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mrag_folder.parents[1])
    opened = open_mrag_bench("field-guide-mrag-bench-small")
    assert (len(opened.queries), opened.name) == (63, "field-guide-mrag-bench-small")
    assert data_card_note("field-guide-mrag-bench-small", "True of it by construction.") is not None
    with pytest.raises(VragError, match="a corpus of its own"):
        open_mrag_bench("field-guide-mrag-bench-small", "somewhere")
