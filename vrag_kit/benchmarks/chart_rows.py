"""Rows of Chart-MRAG, as `save_to_disk` leaves them, and the sentences beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.ids import read_id
from vrag_kit.benchmarks.json_lines import parse_object, read_lines
from vrag_kit.benchmarks.literals import read_literal
from vrag_kit.benchmarks.row_pictures import encoded_picture
from vrag_kit.benchmarks.shards import local_folder
from vrag_kit.errors import VragError, short
from vrag_kit.files import inside
from vrag_kit.plain import Json
from vrag_kit.types import DocId

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
    """One question; its pictures are apart."""

    where: str
    row_id: str
    query: str
    answer: str
    keypoints: tuple[tuple[DocId, str], ...]
    """(evidence, statement); evidence stands there once for each of its statements."""

    @property
    def evidence(self) -> tuple[DocId, ...]:
        """The evidence of the keypoints, each once."""
        return tuple(dict.fromkeys(doc_id for doc_id, _ in self.keypoints))

    @property
    def charts(self) -> tuple[DocId, ...]:
        """Those of the evidence that are charts."""
        return tuple(each for each in self.evidence if kind_of(each) == CHART)

    @property
    def scope(self) -> str:
        """ "single-point", "intra-document" or "inter-document", as the row's id tells;
        "" for another id.
        """
        return _told_by_id(self.row_id)[0]

    @property
    def told_needs(self) -> str:
        """ "image", "text" or "both", as the row's id tells; "" for another id."""
        return _NEEDS.get(_told_by_id(self.row_id)[1], "")

    @property
    def needs(self) -> str:
        """The same, as the kinds of its evidence tell; by the id where it has none."""
        kinds = {kind_of(each) for each in self.evidence}
        if len(kinds) == 2:
            return "both"
        return {CHART: "image", PARAGRAPH: "text"}[kinds.pop()] if kinds else self.told_needs


def kind_of(evidence: DocId) -> str:
    """ "chart" or "paragraph"."""
    return evidence.partition("_")[0]


def document_of(evidence: DocId) -> str:
    """The document that evidence is of: "00058" for "chart_00058_09"; for an id of
    another form the id.
    """
    return evidence.split("_")[1] if "_" in evidence else evidence


def charts_folder(rows: Path | str) -> Path:
    """The folder of the rows; that of the hub's cache for the name of a data set."""
    return local_folder(rows, "Chart-MRAG's data-00000-of-00001.arrow", ["*.arrow", "*.json"])


def find_arrows(folder: Path) -> list[Path]:
    """The files that `state.json` names, in order, or all there are without it.

    Raises `VragError` when there are none, or one is missing.
    """
    state = folder / "state.json"
    if state.is_file():
        try:
            told = json.loads(state.read_text(encoding="utf-8"))["_data_files"]
            found = [inside(folder, str(each["filename"]), str(state)) for each in told]
        except (ValueError, KeyError, TypeError) as error:
            raise VragError(f"{state}: cannot be read ({error!r}). {_FETCH}") from error
    else:
        found = sorted(folder.glob("*.arrow"))
    missing = [path for path in found if not path.is_file()]
    if missing or not found:
        lacking = missing[0].name if missing else "data-00000-of-00001.arrow"
        raise VragError(f"{folder}: no {lacking}; expected Chart-MRAG's rows. {_FETCH}")
    return found


def read_rows(arrow: Path) -> Iterator[tuple[str, Json]]:
    """(where, row as it stands) of every row of a file.

    Raises `VragError` for a file that is cut short or damaged, and for missing columns.
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
    """A row of which everything but the pictures is there; `gt_keypoints` may be an
    object, or one written as text.

    Raises `VragError`, naming the row, for a text that is missing, a statement that is
    empty, and evidence that is neither a chart nor a paragraph.
    """
    row_id = read_id(row.get("id"), "id", where)
    named = f"{where} (query {row_id})"
    texts = {}
    for column in ("query", "gt_answer"):
        value = row.get(column)
        if not isinstance(value, str) or not value.strip():
            raise VragError(f"{named}: {column} is {short(value)}, expected a text. {_FETCH}")
        texts[column] = value.strip()
    told = row.get("gt_keypoints")
    points = read_literal(told) if isinstance(told, str) and told.strip() else told or {}
    if not isinstance(points, dict):
        raise VragError(
            f"{named}: gt_keypoints is {short(told)}, expected an object of evidence and"
            f" statements. {_FETCH}"
        )
    keypoints: list[tuple[DocId, str]] = []
    for evidence, statement in points.items():
        if statement is not None:  # as Arrow fills up objects of different keys
            keypoints += _keypoints(evidence, statement, named)
    return ChartRow(named, row_id, texts["query"], texts["gt_answer"], tuple(keypoints))


def pictures_in(row: Json) -> list[object]:
    """The fields of a row that hold a picture: none, one or a list."""
    value = row.get("gt_chart")
    values = value if isinstance(value, list) else [value]
    return [each for each in values if encoded_picture(each)]


def row_oddities(row: ChartRow, pictures: int) -> list[str]:
    """What is worth knowing of a row and does not keep it from being asked."""
    odd = []
    if not row.keypoints:
        odd.append("no gold evidence: gt_keypoints is empty")
    if not row.scope:
        odd.append("the id tells neither hops nor modality")
    elif row.keypoints and row.told_needs != row.needs:
        odd.append(f"the id says {row.told_needs}, the evidence {row.needs}")
    if len(row.charts) != pictures:
        odd.append(f"{pictures} pictures for {len(row.charts)} charts")
    return odd


def read_sentences(path: Path | str) -> dict[DocId, str]:
    """Paragraph's sentence → its text, in the order of the file (`text_corpus.jsonl`).

    Raises `VragError` for a line that cannot be used, and an id with two texts.
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
    """(id, text) of a line; raises `VragError`, which begins with `where`."""
    row = parse_object(line, where, ("id", "text"))
    doc_id = read_id(row.get("id"), "id", where)
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise VragError(f"{where} ({doc_id}): text is {short(text)}, expected a sentence.")
    return doc_id, text.strip()


def _keypoints(evidence: object, statement: object, where: str) -> list[tuple[DocId, str]]:
    """The statements of one piece of evidence."""
    doc_id = read_id(evidence, "a key of gt_keypoints", where)
    if not _EVIDENCE.fullmatch(doc_id):
        raise VragError(
            f"{where}: evidence {doc_id!r} in gt_keypoints; expected an id such as chart_00058_09"
            " or paragraph_00058_08_02."
        )
    found = []
    for each in statement if isinstance(statement, list) else [statement]:
        if not isinstance(each, str) or not each.strip():
            raise VragError(f"{where}: the claim of {doc_id} is {short(each)}, expected a text.")
        found.append((doc_id, each.strip()))
    return found


def _told_by_id(row_id: str) -> tuple[str, str]:
    match = _ROW_ID.fullmatch(row_id.lower().replace("_", "-"))
    return (match[1], match[2]) if match else ("", "")
