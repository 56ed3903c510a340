"""The drawn MRAG-Bench is laid out like the real one, its queries hide what they ask and
its examples show it, and nothing but the pictures gives the answer away.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import directory_digest
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
from vrag_kit.synthetic.mrag_bench import (
    EDITIONS,
    SCENARIOS,
    generate_mrag_bench,
    open_class_labels,
    open_mrag_bench,
    write_passage,
)
from vrag_kit.synthetic.mrag_bench.edition import plan_edition
from vrag_kit.synthetic.mrag_bench.topics import (
    SpeciesTopic,
    Topic,
    TrayTopic,
    make_topic,
    nameable_species,
    named_species,
    outside_in_words,
)
from vrag_kit.synthetic.mrag_bench.trays import CODES
from vrag_kit.synthetic.visual_rag.pages import EDITIONS as GUIDES
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import COLORS
from vrag_kit.types import Benchmark, Query

SMALL = 64  # pixels: hides what 128 hide


@pytest.fixture(scope="module")
def benchmark(mrag_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return load_mrag_bench(mrag_folder, mrag_folder, cache_dir=tmp_path_factory.mktemp("store"))


def test_the_hubs_own_library_reads_the_shards_and_knows_their_pictures(
    mrag_folder: Path, tmp_path: Path
) -> None:
    import datasets

    shards = sorted(str(path) for path in (mrag_folder / "data").iterdir())
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


def test_each_question_has_a_passage_that_tells_its_answer_among_many_of_its_kind(
    mrag_folder: Path, benchmark: Benchmark
) -> None:
    texts = load_mrag_texts(benchmark, mrag_folder / "texts")
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


def test_pools_of_examples_are_of_the_class_that_the_ground_truth_is_of(
    mrag_folder: Path, benchmark: Benchmark
) -> None:
    pools = example_pools(benchmark, read_class_labels(mrag_folder / "labels.csv"))
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


def test_the_check_finds_no_fault_in_an_edition(mrag_folder: Path) -> None:
    found = find_problems(mrag_folder, mrag_folder)
    assert set(found["kind"]) == {"odd"}
    assert set(found["message"]) == {"1 images are not in the corpus", "one image occurs twice"}


def test_options_differ_and_are_of_one_spelling_so_that_none_stands_out() -> None:
    places = Counter()
    for edition in EDITIONS.values():
        for about in plan_edition(edition):
            for question in about.questions:
                assert len(set(question.options)) == 4
                forms = {
                    re.sub("[A-Z]", "A", re.sub("[a-z]+", "a", each)) for each in question.options
                }
                if question.asks == "region":  # run together and nested, as GeoDE's are
                    forms = {re.sub("(Aa)+", "Aa", each) for each in forms}
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


@pytest.mark.slow
def test_an_edition_that_was_cut_off_is_generated_again_the_same_by_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EDITIONS, "tiny", replace(EDITIONS["small"], questions=1, size=SMALL))
    folder = generate_mrag_bench("tiny", tmp_path / "x", workers=1)
    digest, note = directory_digest(folder), folder / "edition.json"
    before = note.stat().st_mtime_ns
    generate_mrag_bench("tiny", folder)
    assert note.stat().st_mtime_ns == before  # a finished one is left alone
    told = json.loads(note.read_text(encoding="utf-8"))
    note.write_text(json.dumps({**told, "complete": False}))
    next((folder / "image_corpus").iterdir()).unlink()
    assert directory_digest(generate_mrag_bench("tiny", folder, workers=2)) == digest


def test_a_folder_with_other_images_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "image_corpus").mkdir()
    (tmp_path / "image_corpus" / "mine.jpg").write_bytes(b"precious")
    for edition, words in (("small", "image_corpus|not drawn"), ("large", "'full', 'small'")):
        with pytest.raises(VragError, match=words):
            generate_mrag_bench(edition, tmp_path)
    assert (tmp_path / "image_corpus" / "mine.jpg").read_bytes() == b"precious"


def test_mismatched_examples_are_anothers_of_the_same_scenario_with_another_answer(
    benchmark: Benchmark,
) -> None:
    mismatched = mismatched_examples(benchmark)
    assert mismatched == mismatched_examples(benchmark)
    assert mismatched != mismatched_examples(benchmark, seed=1)
    owners: dict[str, list[Query]] = {}
    for query_id, query in benchmark.queries.items():
        for doc_id in benchmark.relevant(query_id):
            owners.setdefault(doc_id, []).append(query)
    for query_id, foreign in mismatched.items():
        query = benchmark.queries[query_id]
        assert foreign
        for doc_id in foreign:
            assert any(owner.answers != query.answers for owner in owners[doc_id])
            assert all(owner.group != query.group for owner in owners[doc_id])
            scenarios = {owner.metadata["scenario"] for owner in owners[doc_id]}
            assert scenarios == {query.metadata["scenario"]}
    paper = PROMPT_SETS["paper"]
    for own, other in zip(gt_rag(benchmark), mismatched_rag(benchmark), strict=True):
        assert (other.query_id, other.k) == (own.query_id, own.k)
        assert 0 < len(other.doc_ids) <= len(own.doc_ids)
        assert not set(other.doc_ids) & set(own.doc_ids)
        assert paper.template_for(other).name == paper.template_for(own).name


def test_file_names_of_the_real_corpus_tell_classes_where_they_can(mrag_folder: Path) -> None:
    rabbit = "imagenet_val_ILSVRC2012_val_00037202.JPEG"
    car = "stanfordcars_by_class_stanford_test_BMW M3 Coupe 2012_02309.jpg"
    classes = {
        "Temporal_Cats_17_gt_3.jpg": "Temporal_Cats_17",
        "Biological_44_gt_0.jpg": "Biological_44",
        car: "BMW M3 Coupe 2012",
        "geoDE_geode_images_Africa_Nigeria_stove_57933.jpg": "Africa",
        rabbit: "wood_rabbit",
        "flowers102_jpg_image_06712.jpg": "",
        "Temporal_Cats_17_input.jpg": "",
    }
    assert {file: class_of(file, {rabbit: "wood_rabbit"}) for file in classes} == classes
    assert open_class_labels("data/mrag-bench") == {}
    file = str(mrag_folder / "labels.csv")
    assert open_class_labels("data/mrag-bench", file) == read_class_labels(file) != {}


def test_an_edition_is_opened_by_its_name(drawn: Benchmark) -> None:
    assert (len(drawn.queries), drawn.name) == (63, "field-guide-mrag-bench-small")
    with pytest.raises(VragError, match="a corpus of its own"):
        open_mrag_bench("field-guide-mrag-bench-small", "somewhere")


# passages


def topics(scenario: str) -> list[Topic]:
    """Invented ones, and all known species whose names are asked."""
    new = [make_topic(scenario, f"read/{scenario}/{number}") for number in range(30)]
    known = nameable_species(scenario)
    return [*new, *(make_topic(scenario, f"told/{each}", known=each) for each in known)]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_passage_holds_the_answer_is_short_and_names_no_unknown_species(scenario: str) -> None:
    for about in topics(scenario):
        text = write_passage(about, "some page")
        assert text == write_passage(about, "some page")
        assert 20 <= len(text.split()) <= 55, text
        assert not re.search(r"[{}]", text)
        words = re.findall(r"[\w]+", text)
        for question in about.questions():
            assert set(question.answer.split()) <= set(words), text
        if isinstance(about, (SpeciesTopic, TrayTopic)):
            known = isinstance(about, SpeciesTopic) and about.asks == ("name",)
            assert (about.species.epithet in text) == known
            assert about.species.common_name not in text


def test_a_passage_says_when_its_species_looks_so_and_what_withers_how_it_looked_before() -> None:
    words = {"temporal": "grown", "deformation": "damaged", "biological": "withered"}
    for scenario, word in words.items():
        for about in topics(scenario):
            assert about.questions()[0].asks == "name" or word in write_passage(about, "when?")
    for about in topics("biological"):
        assert isinstance(about, SpeciesTopic)
        fresh, withered = write_passage(about, "both").split(". ")[:2]
        assert about.species.outside.color in fresh
        assert KINDS[about.species.kind].outside in fresh
        assert about.look.color in withered


def test_a_tray_is_told_by_its_eight_chips_and_no_others() -> None:
    for about in topics("incomplete"):
        assert isinstance(about, TrayTopic)
        chips = re.findall(r"\b([A-Z]) ([a-z]+)\b", write_passage(about, "chips"))
        named = [(code, color) for code, color in chips if color in CODES]
        assert named == [(CODES[color], color) for color in about.chips]
