"""The charts of the drawn suite, written as Chart-MRAG publishes its own: rows as saved
by `save_to_disk`, and the sentences of all documents beside them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_suite.chart_questions import ChartDocument, ChartQuestion
from vrag_kit.synthetic.mrag_suite.facts import Fact
from vrag_kit.synthetic.mrag_suite.page_renderer import encode_page
from vrag_kit.synthetic.mrag_suite.visrag_writer import write_page_texts
from vrag_kit.synthetic.parquet import IMAGES, TEXT, TEXTS, arrow_schema, image_cell
from vrag_kit.types import Json

ROWS = "rows"
SENTENCES = "text_corpus.jsonl"
CHART_TEXTS = "chart_texts.jsonl"
"""The words of the charts, as an OCR program read them (`misread`)."""
CHART_WORDS = "chart_words.jsonl"
"""The words that stand there."""
_COLUMNS = {
    "id": TEXT,
    "query": TEXT,
    "gt_answer": TEXT,
    "gt_text": TEXTS,
    "gt_chart": IMAGES,
    "gt_keypoints": TEXT,
}
_DATA = "data-00000-of-00001.arrow"


def write_charts(
    documents: Sequence[ChartDocument], questions: Sequence[ChartQuestion], folder: Path
) -> dict[str, tuple[Fact, ...]]:
    """Draw and write the data set; returns what its charts and sentences tell."""
    charts = {each.chart_id: each.chart for each in documents}
    wanted: set[str] = set()
    for question in questions:
        wanted.update(question.charts)
    drawn = {each: encode_page(charts[each].draw(), "PNG") for each in sorted(wanted)}
    _save(questions, drawn, folder / ROWS)
    shown: dict[str, tuple[Fact, ...]] = {}
    sentences: list[str] = []
    for document in documents:
        shown[document.chart_id] = document.chart.facts
        for each in document.sentences:
            shown[each.sentence_id] = each.facts
            sentences.append(json.dumps({"id": each.sentence_id, "text": each.text}))
    write_file(folder / SENTENCES, "\n".join(sentences) + "\n")
    words = {each: charts[each].text for each in drawn}
    write_page_texts(words, folder / CHART_WORDS, folder / CHART_TEXTS)
    return shown


def _save(questions: Sequence[ChartQuestion], drawn: Mapping[str, bytes], folder: Path) -> None:
    """What `save_to_disk` leaves, by hand: the same bytes every time."""
    import pyarrow as pa  # heavy

    rows = [_row(question, drawn) for question in questions]
    schema, features = arrow_schema(_COLUMNS)
    file = io.BytesIO()
    with pa.ipc.new_stream(file, schema) as stream:
        stream.write_table(pa.Table.from_pylist(rows, schema=schema))
    write_file(folder / _DATA, file.getvalue())
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    write_file(folder / "dataset_info.json", json.dumps(info, indent=2))
    state: Json = {
        "_data_files": [{"filename": _DATA}],
        "_fingerprint": "drawn",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": "train",
    }
    write_file(folder / "state.json", json.dumps(state, indent=2))


def _row(question: ChartQuestion, drawn: Mapping[str, bytes]) -> dict[str, object]:
    pictures = [image_cell(drawn[each]) for each in question.charts]
    return {
        "id": question.row_id,
        "query": question.text,
        "gt_answer": question.answer,
        "gt_text": list(question.texts),
        "gt_chart": pictures or None,
        "gt_keypoints": json.dumps(question.keypoints),
    }
