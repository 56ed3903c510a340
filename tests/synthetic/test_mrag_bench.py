"""The drawn MRAG-Bench is laid out like the real one, its queries hide what they ask and
its examples show it, and nothing but the pictures gives the answer away.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import chain, product

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
from vrag_kit.synthetic.mrag_bench.topics import Topic, make_topic, plan_edition
from vrag_kit.synthetic.world.traits import COLORS

SMALL = 64  # pixels: hides what 128 hide


@pytest.fixture(scope="module")
def benchmark(mrag_folder, tmp_path_factory):
    return load_mrag_bench(mrag_folder, mrag_folder, cache_dir=tmp_path_factory.mktemp("store"))


def test_each_question_has_a_passage_that_tells_its_answer_among_many_of_its_kind(
    mrag_folder, benchmark
):
    texts = load_mrag_texts(benchmark, mrag_folder / "texts")
    words = {name: set(re.findall(r"\w+", each.text)) for name, each in texts.corpus.items()}
    assert len(words) == 2 * len(plan_edition(EDITIONS["small"]))  # of each topic, and a stray
    for query_id, query in texts.queries.items():
        answer = set(query.answers[0].split())
        assert all(answer <= words[name] for name in texts.relevant(query_id))
        telling = [name for name in words if answer <= words[name]]
        if query.metadata["scenario"] == "others":  # every passage on the region answers
            assert set(telling) == set(texts.relevant(query_id))
        else:
            named = query.metadata["source"] != "new"
            assert len(texts.relevant(query_id)) == 1 or named


def test_a_passage_is_short_and_names_no_unknown_species():
    for scenario, number in product(SCENARIOS, range(8)):
        about = make_topic(scenario, f"read/{number}")
        text = write_passage(about, "some page")
        assert 20 <= len(text.split()) <= 55, text
        assert about.species.epithet not in text
        assert about.species.common_name not in text


def test_the_check_finds_no_fault_in_an_edition(mrag_folder):
    found = find_problems(mrag_folder, mrag_folder)
    assert set(found["kind"]) == {"odd"}
    assert set(found["message"]) == {"1 images are not in the corpus", "one image occurs twice"}


def test_options_differ_and_are_of_one_spelling_so_that_none_stands_out():
    places = Counter()
    for edition in EDITIONS.values():
        for question in chain.from_iterable(about.questions for about in plan_edition(edition)):
            assert len(set(question.options)) == 4
            words = [re.sub("[a-z]+", "a", each) for each in question.options]
            # regions' names are run together and nested, as GeoDE's are
            assert len({re.sub("([A-Z]a)+|[A-Z]", "A", each) for each in words}) == 1, words
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
def test_a_query_is_the_same_whatever_the_answer_and_its_examples_are_not(scenario):
    hidden, shown = [], []
    for number in range(14):
        about = make_topic(scenario, f"test/{scenario}/{number}")
        if about.part not in about.species.hidden:
            continue
        other = painted_otherwise(about)
        hidden.append(differing(about.query_image("q", SMALL), other.query_image("q", SMALL)))
        pairs = [(about.example_image(n, SMALL), other.example_image(n, SMALL)) for n in "abc"]
        shown.append(max(differing(*pair) for pair in pairs))
    assert len(hidden) >= 5
    assert max(hidden) <= 0.01
    assert min(shown) > 0.008
    assert np.mean(shown) > 5 * np.mean(hidden)


def test_an_edition_is_opened_by_its_name(drawn):
    assert (len(drawn.queries), drawn.name) == (63, "field-guide-mrag-bench-small")
    with pytest.raises(VragError, match="a corpus of its own"):
        open_mrag_bench("field-guide-mrag-bench-small", "somewhere")


def test_file_names_of_the_real_corpus_tell_classes_where_they_can(mrag_folder):
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
