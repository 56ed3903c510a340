"""A drawn edition's passages of text, in the layout of
`benchmarks.datasets.mrag_bench_corpora`: one of each topic, and one of every other topic that a
picture of the corpus shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_kit.benchmarks.datasets.mrag_bench_corpora import (
    GROUND_TRUTH,
    GROUND_TRUTH_COLUMNS,
    PASSAGE_COLUMNS,
    PASSAGES,
)
from vrag_kit.synthetic.mrag_bench.edition import MragBenchEdition, PlannedTopic, plan_distractors
from vrag_kit.synthetic.mrag_bench.passages import write_passage
from vrag_kit.synthetic.mrag_bench.regions import RegionTopic
from vrag_kit.synthetic.mrag_bench.topics import SpeciesTopic, Topic
from vrag_kit.tables import write_csv_rows

TEXTS = "texts"


def write_passages(
    edition: MragBenchEdition,
    planned: Sequence[PlannedTopic],
    row_ids: Mapping[str, str],
    folder: Path,
) -> None:
    """Write the passages of a planned edition, and which answer which rows; `row_ids` is
    the name of a planned question → the id of its row.

    A question's own passage stands first, then others about the same region or species.
    """
    passages: list[tuple[str, str]] = []
    about: dict[str, list[str]] = defaultdict(list)  # subject → names of passages
    own: dict[str, str] = {}  # a topic's key → name of its passage
    for each in planned:
        for topic in (each.topic, *plan_distractors(edition, each)):
            own[topic.key] = f"text-{len(passages):04d}"
            about[_subject(topic)].append(own[topic.key])
            passages.append((own[topic.key], write_passage(topic, f"{topic.key}/text")))
    answers: list[tuple[str, str]] = []
    for each in planned:
        first = own[each.topic.key]
        names = dict.fromkeys([first, *about[_subject(each.topic)]])
        for question in each.questions:
            answers += [(row_ids[question.name], name) for name in names]
    answers.sort(key=lambda answer: int(answer[0]))
    write_csv_rows(folder / PASSAGES, PASSAGE_COLUMNS, passages)
    write_csv_rows(folder / GROUND_TRUTH, GROUND_TRUTH_COLUMNS, answers)


def _subject(topic: Topic) -> str:
    """What else tells the answer: the region, a known species, or nothing else."""
    if isinstance(topic, RegionTopic):
        return topic.region.name
    if isinstance(topic, SpeciesTopic) and topic.asks == ("name",):
        return topic.species.scientific_name
    return topic.key
