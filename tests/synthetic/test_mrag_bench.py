"""The drawn MRAG-Bench is laid out like the real one, its queries hide what they ask and
its examples show it, and nothing but the pictures gives the answer away.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vrag_kit.benchmarks import load_mrag_bench, load_mrag_texts
from vrag_kit.benchmarks.datasets.mrag_bench_corpora import class_of, read_class_labels
from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_problems
from vrag_kit.synthetic.mrag_bench import (
    EDITIONS,
    SCENARIOS,
    open_class_labels,
    open_mrag_bench,
    write_passage,
)
from vrag_kit.synthetic.mrag_bench.topics import (
    Topic,
    make_topic,
    nameable_species,
    plan_edition,
)
from vrag_kit.synthetic.world.traits import COLORS
from vrag_kit.types import Benchmark

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
                if question.about.asks == "region":  # run together and nested, as GeoDE's are
                    forms = {re.sub("(Aa)+", "Aa", each) for each in forms}
                assert len(forms) == 1, question.options
                places[question.letter] += 1
    # 603 draws of four: each letter within four standard deviations of a quarter
    assert all(abs(count - 603 / 4) < 4 * (603 * 3 / 16) ** 0.5 for count in places.values())


def differing(first: Image.Image, second: Image.Image) -> float:
    """Share of the pixels that differ clearly."""
    far = np.abs(np.asarray(first, np.int16) - np.asarray(second, np.int16)).max(axis=2) > 40
    return float(far.mean())


def painted_otherwise(about: Topic) -> Topic:
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
        for question in map(about.question, about.asks):
            assert set(question.answer.split()) <= set(words), text
        assert (about.species.epithet in text) == (about.asks == ("name",))
        assert about.species.common_name not in text


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
