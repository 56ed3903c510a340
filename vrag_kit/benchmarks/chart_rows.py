"""Rows of Chart-MRAG, as written by `save_to_disk`, and its file of sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.rows import encoded_image
from vrag_kit.benchmarks.sources import local_folder, parse_object, read_lines
from vrag_kit.benchmarks.transforms import parse_id, parse_literal
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import safe_join
from vrag_kit.types import DocId, Json

CHART, PARAGRAPH = "chart", "paragraph"
_COLUMNS = ("id", "query", "gt_answer", "gt_chart", "gt_keypoints")
_EVIDENCE = re.compile(rf"({CHART}|{PARAGRAPH})_(\w+?)(_.*)?", re.DOTALL)
_ROW_ID = re.compile(
    r"(single-point|intra-document|inter-document)-(text-only|chart-only|text-chart|chart-text)\b.*"
)
_NEEDS = {"text-only": "text", "chart-only": "image", "text-chart": "both", "chart-text": "both"}
_FETCH = "Fetch it again by `vrag fetch suite`."


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One question of Chart-MRAG, without its images."""

    where: str
    row_id: str
    query: str
    answer: str
    keypoints: tuple[tuple[DocId, str], ...]
    """(evidence id, statement) pairs; an id occurs once for each of its statements."""

    @property
    def evidence(self) -> tuple[DocId, ...]:
        """The distinct evidence ids of the keypoints, in order."""
        return tuple(dict.fromkeys(doc_id for doc_id, _ in self.keypoints))

    @property
    def charts(self) -> tuple[DocId, ...]:
        """The evidence ids that are charts."""
        return tuple(each for each in self.evidence if evidence_kind(each) == CHART)

    @property
    def scope(self) -> str:
        """The scope in the row's id: "single-point", "intra-document" or "inter-document"; "" for
        an id of another form.
        """
        return _source_from_id(self.row_id)[0]

    @property
    def labelled_modality(self) -> str:
        """The modality in the row's id: "image", "text" or "both"; "" for other ids."""
        return _NEEDS.get(_source_from_id(self.row_id)[1], "")

    @property
    def needs(self) -> str:
        """The modality of the evidence: "image", "text" or "both"; without any, the id's."""
        kinds = {evidence_kind(each) for each in self.evidence}
        if len(kinds) == 2:
            return "both"
        return {CHART: "image", PARAGRAPH: "text"}[kinds.pop()] if kinds else self.labelled_modality


def evidence_kind(evidence: DocId) -> str:
    """Return the kind in an evidence id: "chart" or "paragraph"."""
    return evidence.partition("_")[0]


def source_document(evidence: DocId) -> str:
    """Return the document in an evidence id: "00058" for "chart_00058_09". An id without an
    underscore is returned unchanged.
    """
    return evidence.split("_")[1] if "_" in evidence else evidence


def charts_folder(rows: Path | str) -> Path:
    """Return the folder of the rows; for the name of a data set, that of the hub cache."""
    return local_folder(rows, "Chart-MRAG's data-00000-of-00001.arrow", ["*.arrow", "*.json"])


def find_arrow_files(folder: Path) -> list[Path]:
    """List the Arrow files named in `state.json`, in order; without it, all in the folder.

    Raises `VragError` if there are none, or if one is missing.
    """
    state = folder / "state.json"
    if state.is_file():
        try:
            told = json.loads(state.read_text(encoding="utf-8"))["_data_files"]
            found = [safe_join(folder, str(each["filename"]), str(state)) for each in told]
        except (ValueError, KeyError, TypeError) as error:
            raise VragError(f"{state}: cannot be read ({error!r}). {_FETCH}") from error
    else:
        found = sorted(folder.glob("*.arrow"))
    missing = [path for path in found if not path.is_file()]
    if missing or not found:
        lacking = missing[0].name if missing else "data-00000-of-00001.arrow"
        raise VragError(f"{folder}: no {lacking}; expected Chart-MRAG's rows. {_FETCH}")
    return found


def read_arrow_rows(arrow: Path) -> Iterator[tuple[str, Json]]:
    """Yield (where, unparsed row) for every row of an Arrow file.

    Raises `VragError` for a truncated or damaged file, and for missing columns.
    """
    import pyarrow as pa  # heavy

    number = 0
    try:
        with pa.memory_map(str(arrow)) as file, pa.ipc.open_stream(file) as batches:
            if lacking := [name for name in _COLUMNS if name not in batches.schema.names]:
                found = ", ".join(batches.schema.names)
                raise VragError(
                    f"{arrow}: no column {lacking[0]!r}; found {found}. Is this Chart-MRAG?"
                )
            for batch in batches:
                for place in range(batch.num_rows):
                    yield (
                        f"{arrow.name} row {number}",
                        batch.slice(place, 1).to_pylist()[0],
                    )
                    number += 1
    except (pa.ArrowException, OSError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise VragError(f"{arrow}: cannot be read behind row {number}: {told} {_FETCH}") from error


def parse_row(row: Json, where: str) -> ChartRow:
    """Parse and check a row apart from its images; `gt_keypoints` may be an object or text.

    Raises `VragError`, naming the row, for a missing text, an empty statement, and evidence
    that is neither a chart nor a paragraph.
    """
    row_id = parse_id(row.get("id"), "id", where)
    named = f"{where} (query {row_id})"
    texts = {}
    for column in ("query", "gt_answer"):
        value = row.get(column)
        if not isinstance(value, str) or not value.strip():
            raise VragError(f"{named}: {column} is {short_repr(value)}, expected a text. {_FETCH}")
        texts[column] = value.strip()
    told = row.get("gt_keypoints")
    points = parse_literal(told) if isinstance(told, str) and told.strip() else told or {}
    if not isinstance(points, dict):
        raise VragError(
            f"{named}: gt_keypoints is {short_repr(told)}, expected an object of evidence and"
            f" statements. {_FETCH}"
        )
    keypoints: list[tuple[DocId, str]] = []
    for evidence, statement in points.items():
        if statement is not None:  # as Arrow fills up objects of different keys
            keypoints += _keypoints(evidence, statement, named)
    return ChartRow(named, row_id, texts["query"], texts["gt_answer"], tuple(keypoints))


def images_in_row(row: Json) -> list[object]:
    """Return the `gt_chart` values of a row that hold an image: none, one or several."""
    value = row.get("gt_chart")
    values = value if isinstance(value, list) else [value]
    return [each for each in values if encoded_image(each)]


def row_warnings(row: ChartRow, pictures: int) -> list[str]:
    """Return warnings about a row that is unusual but usable."""
    odd = []
    if not row.keypoints:
        odd.append("no gold evidence: gt_keypoints is empty")
    if not row.scope:
        odd.append("the id tells neither hops nor modality")
    elif row.keypoints and row.labelled_modality != row.needs:
        odd.append(f"the id says {row.labelled_modality}, the evidence {row.needs}")
    if len(row.charts) != pictures:
        odd.append(f"{pictures} pictures for {len(row.charts)} charts")
    return odd


def read_sentences(path: Path | str) -> dict[DocId, str]:
    """Read `text_corpus.jsonl` as a mapping from sentence id to text, in file order.

    Raises `VragError` for an unusable line, an id with two texts, and an empty file.
    """
    found: dict[DocId, str] = {}
    for where, line in read_lines(Path(path).expanduser(), "file of sentences"):
        doc_id, text = parse_sentence(line, where)
        if found.setdefault(doc_id, text) != text:
            raise VragError(f"{where}: {doc_id!r} came before with another text; expected it once.")
    if not found:
        raise VragError(f"{path}: holds nothing; expected Chart-MRAG's text_corpus.jsonl.")
    return found


def parse_sentence(line: str, where: str) -> tuple[DocId, str]:
    """Parse a line into (id, text); raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, ("id", "text"))
    doc_id = parse_id(row.get("id"), "id", where)
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise VragError(f"{where} ({doc_id}): text is {short_repr(text)}, expected a sentence.")
    return doc_id, text.strip()


def _keypoints(evidence: object, statement: object, where: str) -> list[tuple[DocId, str]]:
    """The statements of one piece of evidence."""
    doc_id = parse_id(evidence, "a key of gt_keypoints", where)
    if not _EVIDENCE.fullmatch(doc_id):
        raise VragError(
            f"{where}: evidence {doc_id!r} in gt_keypoints; expected an id such as chart_00058_09"
            " or paragraph_00058_08_02."
        )
    found = []
    for each in statement if isinstance(statement, list) else [statement]:
        if not isinstance(each, str) or not each.strip():
            raise VragError(
                f"{where}: the claim of {doc_id} is {short_repr(each)}, expected a text."
            )
        found.append((doc_id, each.strip()))
    return found


def _source_from_id(row_id: str) -> tuple[str, str]:
    match = _ROW_ID.fullmatch(row_id.lower().replace("_", "-"))
    return (match[1], match[2]) if match else ("", "")
