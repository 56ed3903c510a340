"""Chart-MRAG's data set of the synthetic suite: documents about a hidden part of a species, each a
chart and sentences, and questions with keypoints, as saved by `save_to_disk`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_suite.facts import (
    COLORS_OF_TWO,
    FAMILY,
    HOME,
    LOOK,
    MAIN,
    SEASON,
    SECOND,
    Fact,
    PartFacts,
    Shown,
    SpeciesFacts,
)
from vrag_kit.synthetic.mrag_suite.pages import (
    Page,
    colors_chart,
    mixed_questions,
    write_page_texts,
)
from vrag_kit.synthetic.rows import IMAGES, TEXT, TEXTS, arrow_table, write_json_lines
from vrag_kit.types import Json

ROWS = "rows"
SENTENCES = "text_corpus.jsonl"
CHART_TEXTS = "chart_texts.jsonl"
"""The words of the charts, as an OCR program read them (`add_ocr_errors`)."""
CHART_WORDS = "chart_words.jsonl"
"""The words on the charts."""
_COLUMNS = {
    **dict.fromkeys(("id", "query", "gt_answer"), TEXT),
    "gt_text": TEXTS,
    "gt_chart": IMAGES,
    "gt_keypoints": TEXT,
}
_DATA = "data-00000-of-00001.arrow"
_CHART, _TEXT = "chart", "text"
Evidence = tuple[str, str, int]
"""What is described of the part; in a chart or a text; of the first or second document."""
_ONE_COLOR: tuple[tuple[str, list[Evidence]], ...] = (
    ("Single-Point_Text-only", [(LOOK, _TEXT, 0)]),
    ("Single-Point_Chart-only", [(LOOK, _CHART, 0)]),
)
_BOTH_COLORS: tuple[tuple[str, list[Evidence]], ...] = (
    ("Intra-Document_Text-only", [(MAIN, _TEXT, 0), (SECOND, _TEXT, 0)]),
    ("Intra-Document_Text-Chart", [(MAIN, _CHART, 0), (SECOND, _TEXT, 0)]),
    ("Inter_Document_Chart-only", [(MAIN, _CHART, 0), (SECOND, _CHART, 1)]),
    ("Inter_Document_Text-only", [(MAIN, _TEXT, 0), (SECOND, _TEXT, 1)]),
    ("Inter_Document_Text-Chart", [(MAIN, _TEXT, 0), (SECOND, _CHART, 1)]),
)


class _Documents:
    """The charts and sentences of all documents, by id."""

    def __init__(self) -> None:
        self.count = 0
        self.shown: dict[str, tuple[Fact, ...]] = {}
        self.sentences: dict[str, str] = {}
        self.charts: dict[str, Page] = {}
        """Those that a question needs."""

    def add(self, about: PartFacts, evidence: Sequence[tuple[str, str]]) -> list[str]:
        """Add a document with (what is described of the part, in a chart or a text); returns the
        ids of the evidence. The rest says where the species lives, its family and its season.
        """
        life = about.life
        key = f"{self.count:05d}"
        chart_id = f"chart_{key}_01"
        self.count += 1
        self.shown[chart_id] = life.facts(HOME)
        sentences = [(life.facts(kind)[0].sentence, life.facts(kind)) for kind in (FAMILY, SEASON)]
        needed = []
        for what, where in evidence:
            if where == _CHART:
                chart = colors_chart(chart_id, about, f"{about.name}/{key}", what)
                self.charts[chart_id] = chart
                self.shown[chart_id] = chart.facts
                needed.append(chart_id)
            else:
                sentences.insert(1, about.describe(what, of=life.subject))
                needed.append(sentences[1][0])
        ids = {}
        for at, (text, facts) in enumerate(sentences):
            ids[text] = f"paragraph_{key}_{at // 2 + 1:02d}_{at % 2 + 1:02d}"
            self.sentences[ids[text]] = text
            self.shown[ids[text]] = facts
        return [ids.get(each, each) for each in needed]


def write_charts(lives: Sequence[SpeciesFacts], count: int, seed: str, folder: Path) -> Shown:
    """Draw and write `count` questions, each about another hidden part, and their documents;
    returns what charts and sentences show.

    In turn a question needs the main color from a sentence, from a chart, and both colors, for
    which there are five layouts in turn.
    """
    _, asked = mixed_questions(lives, count, seed, period=3)
    documents = _Documents()
    rows = []
    for number, (part, kind) in enumerate(asked):
        turn, rest = divmod(number, 3)
        both = kind == COLORS_OF_TWO
        name, evidence = _BOTH_COLORS[turn % len(_BOTH_COLORS)] if both else _ONE_COLOR[rest]
        ids: list[str] = []
        for document in range(evidence[-1][2] + 1):
            inside = [(what, where) for what, where, at in evidence if at == document]
            ids += documents.add(part, inside)
        row = {
            "id": f"{name}_{number:05d}",
            **_question(part, kind, ids),
            "gt_text": [documents.sentences[i] for i in ids if i in documents.sentences],
            "gt_chart": [documents.charts[i].image() for i in ids if i in documents.charts] or None,
        }
        rows.append(row)
    _save(rows, folder / ROWS)
    sentences = [{"id": key, "text": text} for key, text in documents.sentences.items()]
    write_json_lines(folder / SENTENCES, sentences)
    words = {chart_id: chart.text for chart_id, chart in documents.charts.items()}
    write_page_texts(words, folder / CHART_WORDS, folder / CHART_TEXTS)
    return documents.shown


def _question(about: PartFacts, kind: str, evidence_ids: Sequence[str]) -> Json:
    """The columns with the question and its answer: a keypoint for each color, at the evidence
    that shows it.

    A keypoint has no number, and nothing but the color that is not in the question: what
    `keypoint_coverage` looks for.
    """
    name = f"{about.part.name} of {about.life.subject}"
    have, are = ("have", "are") if about.part.plural else ("has", "is")
    start = f"The {name} {are}"
    if kind == COLORS_OF_TWO:
        start = f"On the {name}, which {have} two colors, there is"
    colors = zip(evidence_ids, (about.look.color, about.look.second), strict=False)
    keypoints = {key: f"{start} {color}." for key, color in colors}
    return {
        "query": about.question(kind).text,
        "gt_answer": " ".join(keypoints.values()),
        "gt_keypoints": json.dumps(keypoints),
    }


def _save(rows: Sequence[Json], folder: Path) -> None:
    """Write the files of `save_to_disk`, with the same bytes every time."""
    import pyarrow as pa  # heavy

    table, file = arrow_table(_COLUMNS, rows), io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    write_file(folder / _DATA, file.getvalue())
    info = {"citation": "", "description": "", "features": _COLUMNS, "homepage": "", "license": ""}
    write_file(folder / "dataset_info.json", json.dumps(info, indent=2))
    state = {
        "_data_files": [{"filename": _DATA}],
        "_fingerprint": "drawn",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": "train",
    }
    write_file(folder / "state.json", json.dumps(state, indent=2))
