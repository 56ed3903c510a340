"""Read CRAG-MM's rows, one per conversation, from a split's parquet shards.

Both published revisions are read: v0.1.2 stores turns and answers as an object of lists,
v0.1.1 as a list of objects, with the image quality outside the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_index import SPLITS, percent_encode_spaces
from vrag_kit.benchmarks.crag_mm_labels import NAMES, label_names, read_label
from vrag_kit.benchmarks.shards import by_number, local_folder, read_shard, shards_problem
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Json

_COLUMNS = ("session_id", "image", "image_url", "turns", "answers")
"""The columns of a row; v0.1.1 also has image_quality."""
SINGLE = "crag-mm-2025/crag-mm-single-turn-public@v0.1.2"
MULTI = "crag-mm-2025/crag-mm-multi-turn-public@v0.1.2"
Names = Mapping[str, Sequence[str]]
"""Column → its label names, as stored in a file."""
_FETCH = "Fetch it again; `vrag check` lists all that is wrong."


@dataclass(frozen=True, slots=True, kw_only=True)
class CragTurn:
    """One question of a conversation, with its answer and labels."""

    interaction_id: str
    question: str
    answer: str
    labels: dict[str, str]  # domain, query_category, dynamism, image_quality


@dataclass(frozen=True, slots=True, kw_only=True)
class CragSession:
    """A conversation about one image; in single-turn data it has one question."""

    where: str  # shard and row, as messages name it
    session_id: str
    image_url: str  # "" for an egocentric picture, which lies in the row
    turns: tuple[CragTurn, ...]


def find_split(rows: Path | str, split: str) -> list[Path]:
    """List a split's shards by number, in a folder or its folder "data".

    `rows` may also be a hub name such as `SINGLE`, whose shards are fetched once. Raises
    `VragError` for an unknown split, for no shards, and if shards are missing by number.
    """
    found = list_split(rows, split)
    if problem := shards_problem(found):
        raise VragError(f"{found[0].parent}: {problem}")
    return found


def list_split(rows: Path | str, split: str) -> list[Path]:
    """List a split's shards as `find_split` does, complete or not."""
    if split not in SPLITS:
        raise VragError(f"split is {split!r}; expected {' or '.join(SPLITS)}.")
    folder = rows_folder(rows, split)
    pattern = f"{split}-*.parquet"
    found = list(folder.glob(pattern)) or list(folder.glob(f"data/{pattern}"))
    if not found:
        raise VragError(
            f"{folder}: no shards of {split}; expected CRAG-MM's ({split}-00000-of-00004.parquet,"
            " …) in it or in its folder 'data'. Get them by `vrag fetch crag-mm`."
        )
    return by_number(found)


def rows_folder(rows: Path | str, split: str) -> Path:
    """Return the folder of single- or multi-turn data; for a name, that of the hub cache."""
    patterns = (f"{split}-*.parquet", f"data/{split}-*.parquet")
    return local_folder(rows, "CRAG-MM's single- or multi-turn shards", patterns)


def read_rows(shard: Path) -> Iterator[tuple[str, Json]]:
    """Yield (where, unparsed row) for every row, with only a few in memory at a time.

    Raises `VragError` for a truncated or damaged file, and for missing columns.
    """
    return read_shard(shard, _COLUMNS, "CRAG-MM")


def read_label_names(shard: Path) -> Names:
    """Read the label names stored in a shard; raises `VragError` if it is unreadable."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    try:
        return label_names(pq.read_schema(shard).metadata)
    except (pa.ArrowException, OSError) as error:
        raise VragError(
            f"{shard}: cannot be read: {str(error).splitlines()[0]} The file has"
            f" {shard.stat().st_size:,} bytes and is cut short or damaged. {_FETCH}"
        ) from error


def parse_session(row: Json, where: str, names: Names) -> CragSession:
    """Parse and check a row apart from its image; answers are matched to turns by id.

    Raises `VragError`, naming the row, for a missing text, an unknown label, duplicate ids, a
    turn without an answer, and an answer without a turn.
    """
    session_id = _id(row.get("session_id"), "session_id", where)
    named = f"{where} (session {session_id})"
    turns = _objects(row.get("turns"), "turns", named)
    if not turns:
        raise VragError(f"{named}: no turns; expected at least one question. {_FETCH}")
    answers = _answers(row, named)
    parsed: dict[str, CragTurn] = {}
    for number, turn in enumerate(turns):
        place = f"{named} turn {number}"
        if "image_quality" not in turn:  # v0.1.1
            turn = {**turn, "image_quality": _turn_value(row.get("image_quality"), number)}
        name = _id(turn.get("interaction_id"), "interaction_id", place)
        if name in parsed:
            raise VragError(f"{place}: interaction {name} came before, expected it once. {_FETCH}")
        if name not in answers:
            raise VragError(f"{place}: no answer has its id, {name}. {_FETCH}")
        parsed[name] = _turn(turn, name, answers[name], place, names)
    if lost := [name for name in answers if name not in parsed]:
        raise VragError(f"{named}: the answer of {lost[0]} has no question. {_FETCH}")
    url = row.get("image_url")
    if url is not None and not isinstance(url, str):
        raise VragError(
            f"{named}: image_url is {short_repr(url)}, expected a text or null. {_FETCH}"
        )
    return CragSession(
        where=named,
        session_id=session_id,
        image_url=(url or "").strip(),
        turns=tuple(parsed.values()),
    )


def session_warnings(row: Json, session: CragSession) -> list[str]:
    """Return warnings about a row that is unusual but usable."""
    asked = [turn.interaction_id for turn in session.turns]
    answered = list(_answers(row, session.where))
    odd = []
    if answered != asked:
        odd.append("the answers stand in another order than the turns")
    if len(asked) == 1 and asked[0] != session.session_id:
        odd.append("the only turn's id is not the session's")
    if session.image_url and image_bytes(row):
        odd.append("a picture in the row and an address of one")
    return odd


def image_bytes(row: Json) -> bytes:
    """Return the encoded image of a row; b"" if there is none."""
    picture = row.get("image")
    data = picture.get("bytes") if isinstance(picture, dict) else None
    return data if isinstance(data, bytes) else b""


def _turn(turn: Json, name: str, answer: str, where: str, names: Names) -> CragTurn:
    labels = {}
    for column in NAMES:
        labels[column] = read_label(column, turn.get(column), names.get(column), where)
    question = _text(turn.get("query"), "query", where)
    return CragTurn(interaction_id=name, question=question, answer=answer, labels=labels)


def _answers(row: Json, where: str) -> dict[str, str]:
    """Interaction → answer, in their order."""
    found: dict[str, str] = {}
    for number, answer in enumerate(_objects(row.get("answers"), "answers", where)):
        place = f"{where} answer {number}"
        name = _id(answer.get("interaction_id"), "interaction_id", place)
        if name in found:
            raise VragError(f"{place}: an answer of {name} came before. {_FETCH}")
        found[name] = _text(answer.get("ans_full"), "ans_full", place)
    return found


def _objects(value: object, column: str, where: str) -> list[Json]:
    """A list of objects, be it published so or as an object of lists."""
    if isinstance(value, dict):
        lists = {key: each for key, each in value.items() if isinstance(each, list)}
        lengths = {len(each) for each in lists.values()}
        if len(lists) == len(value) and len(lengths) == 1:
            columns = zip(*lists.values(), strict=True)
            return [dict(zip(lists, each, strict=True)) for each in columns]
        told = ", ".join(f"{key} {len(each)}" for key, each in lists.items())
        raise VragError(
            f"{where}: the lists of {column} are not of one length ({told or 'none'}). {_FETCH}"
        )
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise VragError(
            f"{where}: {column} is {short_repr(value)}, expected an object of lists, or a list of"
            f" objects. {_FETCH}"
        )
    return value


def _turn_value(value: object, number: int) -> object:
    """A turn's part of what stands beside the turns: one value for all, or a list."""
    if isinstance(value, list):
        return value[number] if number < len(value) else None
    return value


def _id(value: object, column: str, where: str) -> str:
    return percent_encode_spaces(_text(value, column, where))


def _text(value: object, column: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise VragError(f"{where}: {column} is {short_repr(value)}, expected a text. {_FETCH}")
    return value.strip()
