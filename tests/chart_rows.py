"""Chart-MRAG in its published layout, written by the `datasets` library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, List, Value
from datasets import Image as Picture
from page_rows import png

Row = dict[str, Any]

RED, BLUE = png((200, 0, 0)), png((0, 0, 200))
SENTENCES = {
    "paragraph_00001_01_01": "Moths were counted.",
    "paragraph_00001_01_02": "Most of them in May.",
    "paragraph_00002_01_01": "Birds came later.",
}


def chart_row(row_id: str, keypoints: Mapping[str, Any], *pictures: bytes, **more: Any) -> Row:
    return {
        "id": row_id,
        "query": f"What about {row_id}?",
        "gt_answer": "It is so.",
        "gt_text": "",
        "gt_chart": [{"bytes": each, "path": None} for each in pictures],
        "gt_keypoints": json.dumps(keypoints),
        **more,
    }


KEYPOINTS = {
    "chart_00001_02": "May had 12.",
    "chart_00002_01": "June had 3.",
    "paragraph_00002_01_01": "Birds came later.",
}
ROWS = [
    chart_row("Inter_Document_Text-Chart_00003", KEYPOINTS, RED, BLUE),
    chart_row("Single-Point_Chart-only_00002", {"chart_00001_02": "May had 12."}, RED),
    chart_row("Single-Point_Text-only_00001", {"paragraph_00001_01_01": "They were counted."}),
]


def write_charts(
    folder: Path,
    rows: Sequence[Row] = ROWS,
    sentences: Mapping[str, str] = SENTENCES,
    *,
    one_picture: bool = False,
) -> tuple[Path, Path]:
    """Save the rows as `save_to_disk` does, `gt_chart` as a list, or as one picture as in
    the published files; returns their folder and the file of sentences.
    """
    names = ("id", "query", "gt_answer", "gt_text", "gt_keypoints")
    columns = dict.fromkeys(names, Value("string"))
    picture = Picture() if one_picture else List(Picture())
    if one_picture:
        rows = [{**row, "gt_chart": (row["gt_chart"] or [None])[0]} for row in rows]
    features = Features({**columns, "gt_chart": picture})
    Dataset.from_list(list(rows), features=features).save_to_disk(folder / "rows")
    texts = folder / "text_corpus.jsonl"
    lines = [json.dumps({"id": name, "text": text}) for name, text in sentences.items()]
    texts.write_text("\n".join(lines), encoding="utf-8")
    return folder / "rows", texts
