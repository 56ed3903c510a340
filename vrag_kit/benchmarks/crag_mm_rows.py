"""The rows of CRAG-MM: one a conversation, out of the parquet shards of a split, in both
published revisions.

v0.1.2 holds turns and answers as an object of lists, v0.1.1 as a list of objects, and
the image's quality beside the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_index import SPLITS, without_white_space
from vrag_kit.benchmarks.crag_mm_labels import NAMES, label_names, read_label
from vrag_kit.benchmarks.shards import by_number, local_folder, read_shard, shards_problem
from vrag_kit.errors import VragError, short
from vrag_kit.plain import Json

COLUMNS = ("session_id", "image", "image_url", "turns", "answers")
"""The columns of a row; v0.1.1 has image_quality too."""
SINGLE = "crag-mm-2025/crag-mm-single-turn-public@v0.1.2"
MULTI = "crag-mm-2025/crag-mm-multi-turn-public@v0.1.2"
Names = Mapping[str, Sequence[str]]
"""Column → the names of its labels, as a file carries them."""
_FETCH = "Fetch it again; `vrag check` lists all that is wrong."


@dataclass(frozen=True, slots=True, kw_only=True)
class CragTurn:
    """One question of a conversation, and its answer."""

    interaction_id: str
    question: str
    answer: str
    labels: dict[str, str]  # domain, query_category, dynamism, image_quality


@dataclass(frozen=True, slots=True, kw_only=True)
class CragSession:
    """One conversation about one picture; in single-turn data one question."""

    where: str  # shard and row, as messages name it
    session_id: str
    image_url: str  # "" for an egocentric picture, which lies in the row
    turns: tuple[CragTurn, ...]


def find_split(rows: Path | str, split: str) -> list[Path]:
    """The shards of a split in a folder, or in its folder "data", by number; `rows` may
    also name a data set of the hub, as `SINGLE` does, whose shards are fetched once.

    Raises `VragError` for another split, when there are none, and when their names tell
    that some are missing.
    """
    found = list_split(rows, split)
    if problem := shards_problem(found):
        raise VragError(f"{found[0].parent}: {problem}")
    return found


def list_split(rows: Path | str, split: str) -> list[Path]:
    """As `find_split`, be they all there or not."""
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
    """The folder of single- or multi-turn data; that of the hub's cache for a name."""
    patterns = (f"{split}-*.parquet", f"data/{split}-*.parquet")
    return local_folder(rows, "CRAG-MM's single- or multi-turn shards", patterns)


def read_rows(shard: Path) -> Iterator[tuple[str, Json]]:
    """(where, row as it stands) of every row; memory holds a few at a time.

    Raises `VragError` for a file that is cut short or damaged, and for missing columns.
    """
    return read_shard(shard, COLUMNS, "CRAG-MM")


def names_in(shard: Path) -> Names:
    """The names of the labels that a shard carries; raises `VragError` when it cannot be
    read.
    """
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
    """A row of which everything but the picture is there; answers are joined to turns by
    their ids, whatever their order.

    Raises `VragError`, naming the row, for a text that is missing, an unknown label,
    ids that stand twice, a turn without an answer, and an answer without its turn.
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
            turn = {**turn, "image_quality": _beside(row.get("image_quality"), number)}
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
        raise VragError(f"{named}: image_url is {short(url)}, expected a text or null. {_FETCH}")
    return CragSession(
        where=named,
        session_id=session_id,
        image_url=(url or "").strip(),
        turns=tuple(parsed.values()),
    )


def session_oddities(row: Json, session: CragSession) -> list[str]:
    """What is worth knowing of a row and does not keep it from being asked."""
    asked = [turn.interaction_id for turn in session.turns]
    answered = list(_answers(row, session.where))
    odd = []
    if answered != asked:
        odd.append("the answers stand in another order than the turns")
    if len(asked) == 1 and asked[0] != session.session_id:
        odd.append("the only turn's id is not the session's")
    if session.image_url and picture_in(row):
        odd.append("a picture in the row and an address of one")
    return odd


def picture_in(row: Json) -> bytes:
    """The encoded picture of a row; b"" where there is none."""
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
            f"{where}: {column} is {short(value)}, expected an object of lists, or a list of"
            f" objects. {_FETCH}"
        )
    return value


def _beside(value: object, number: int) -> object:
    """A turn's part of what stands beside the turns: one value for all, or a list."""
    if isinstance(value, list):
        return value[number] if number < len(value) else None
    return value


def _id(value: object, column: str, where: str) -> str:
    return without_white_space(_text(value, column, where))


def _text(value: object, column: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise VragError(f"{where}: {column} is {short(value)}, expected a text. {_FETCH}")
    return value.strip()
