"""Check CRAG-MM's files: a table of unusable rows, truncated shards, missing or damaged images,
and oddities; and the number of questions per label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.crag_mm_images import (
    DuplicateIds,
    cached_image_name,
    image_url,
    images_folder,
)
from vrag_kit.benchmarks.crag_mm_index import SPLITS
from vrag_kit.benchmarks.crag_mm_marks import MARKS
from vrag_kit.benchmarks.crag_mm_rows import (
    CragSession,
    Names,
    image_bytes,
    parse_session,
    read_label_names,
    read_rows,
    session_warnings,
)
from vrag_kit.benchmarks.images import decode
from vrag_kit.benchmarks.shards import by_number, shards_problem
from vrag_kit.errors import VragError
from vrag_kit.fetching.crag_mm_index_health import check_annotations, check_indexes
from vrag_kit.fetching.health import FINDING_COLUMNS, KINDS, Finding
from vrag_kit.log import track
from vrag_kit.types import Json

KIND_FOLDERS = ("single-turn", "multi-turn")
"""The folders to which `vrag fetch crag-mm` writes the two data sets."""
TURNS = range(2, 7)
"""Numbers of turns of the published conversations."""
QUESTIONS = 1938
"""Number of questions in the published single-turn validation data."""
PUBLISHED = {
    "query_category": {
        "reasoning": 220,
        "comparison": 313,
        "aggregation": 223,
        "simple-recognition": 132,
        "simple-knowledge": 729,
        "multi-hop": 321,
    },
    "dynamism": {"static": 1559, "slow-changing": 309, "fast-changing": 67, "real-time": 3},
    "image_quality": {
        "normal": 1631,
        "low light": 80,
        "blurred": 60,
        "occluded": 31,
        "rotated": 36,
        "truncated": 100,
    },
    "picture": {"egocentric": 1423, "with an address": 515},
}
"""Questions of that data by label, counted in an export of the hub's rows of v0.1.2."""


@dataclass(frozen=True, slots=True)
class CragCheck:
    """The result of `check_crag_mm`."""

    findings: pd.DataFrame
    """The findings, with the columns and kinds of `check_visual_rag`."""
    counts: pd.DataFrame
    """Number of questions by data (folder), split, column and label; `published` is None if
    unknown.
    """


def check_crag_mm(folder: Path | str, images: Path | str | None = None) -> CragCheck:
    """Check a folder of CRAG-MM, or of one of its data sets, for faults and oddities.

    Rows of both data sets and splits, annotations, images and indexes are checked if present.
    Faults are `row`: a row that `load_crag_mm` would refuse (unknown label, turn without an
    answer, answer without its turn, duplicate turn or session), a truncated shard, a line of
    an index or of annotations; `missing`: shards, and images that were not fetched or that a
    row lacks; `damaged`: images that cannot be decoded. Odd, and no faults: answers in another
    order than turns, conversations of other lengths than 2 to 6, pages without text, an index
    of a split without rows, annotations of unknown questions; in a data set of 1,938 single
    questions also label counts that differ from the published ones.

    Raises `VragError` if there are no rows.
    """
    folder = Path(folder).expanduser()
    sets = find_datasets(folder)
    if not sets:
        raise VragError(
            f"{folder}: no rows of CRAG-MM; expected single-turn or multi-turn, or shards"
            " (validation-00000-of-00004.parquet, …), in it or in its folder 'data'."
        )
    found: list[Finding] = []
    counts: list[Json] = []
    for name, rows in sets.items():
        place = Path(images).expanduser() if images else images_folder(rows)
        asked: set[str] = set()
        for split in SPLITS:
            shards = split_shards(rows, split)
            if not shards:
                continue
            if problem := shards_problem(shards):
                found.append(("missing", f"{name} {split}", "", problem))
            walk = _Walk(name, place, found)
            sessions = list(walk.sessions(shards))
            asked.update(walk.asked)
            counts += _counts(name, split, sessions, found)
        found += check_annotations(rows / MARKS, asked)
    found += check_indexes(folder, [split for split in SPLITS if _has_split(sets, split)])
    ordered = sorted(found, key=lambda finding: KINDS.index(finding[0]))
    return CragCheck(pd.DataFrame(ordered, columns=FINDING_COLUMNS), pd.DataFrame(counts))


def find_datasets(folder: Path) -> dict[str, Path]:
    """Find the data sets of CRAG-MM in a folder, or the folder itself: name → folder."""
    below = {name: folder / name for name in KIND_FOLDERS}
    places = {**below, folder.absolute().name: folder}
    return {name: place for name, place in places.items() if _has_split({name: place}, *SPLITS)}


def split_shards(rows: Path, split: str) -> list[Path]:
    """List the shards of a split by number; empty if there are none."""
    pattern = f"{split}-*.parquet"
    return by_number(list(rows.glob(pattern)) or list(rows.glob(f"data/{pattern}")))


def _has_split(sets: dict[str, Path], *splits: str) -> bool:
    return any(any(split_shards(rows, split) for split in splits) for rows in sets.values())


class _Walk:
    """A walk over a split's shards that notes what is wrong and passes on what is not."""

    def __init__(self, name: str, images: Path, found: list[Finding]) -> None:
        self.asked: set[str] = set()
        self._name = name
        self._images = images
        self._found = found
        self._once = DuplicateIds()
        self._checked: dict[str, str] = {}  # fetched file → what is wrong with it

    def sessions(self, shards: Sequence[Path]) -> Iterator[CragSession]:
        """Yield the usable rows, with or without their images."""
        for shard in track(shards, self._name, len(shards), "shards"):
            try:
                names = read_label_names(shard)
                for where, row in read_rows(shard):
                    if session := self._session(row, where, names):
                        yield session
            except VragError as error:
                self._note("row", shard.name, "", str(error))

    def _session(self, row: Json, where: str, names: Names) -> CragSession | None:
        try:
            session = parse_session(row, where, names)
            self._once.check(session)
        except VragError as error:
            words = str(error)
            place = words.partition(": ")[0] if words.startswith(where) else where
            self._note("row", place, "", words.removeprefix(f"{place}: "))
            return None
        self.asked.update(turn.interaction_id for turn in session.turns)
        for oddity in session_warnings(row, session):
            self._note("odd", session.where, "", oddity)
        self._look_at(row, session)
        return session

    def _look_at(self, row: Json, session: CragSession) -> None:
        """Whether a row's picture can be opened."""
        data = image_bytes(row)
        url = image_url(session)
        if data:
            self._note_damage(session.where, "image", self._damage(data, session.where))
        elif not url:
            self._note("missing", session.where, "image", "neither a picture nor an address")
        else:
            name = cached_image_name(url)
            path = self._images / name
            if not path.is_file():
                words = f"the picture at {url} was not fetched; expected {path}"
                self._note("missing", session.where, name, words)
                return
            if name not in self._checked:
                self._checked[name] = self._damage(path.read_bytes(), str(path))
            self._note_damage(session.where, name, self._checked[name])

    @staticmethod
    def _damage(data: bytes, where: str) -> str:
        try:
            decode(data, where)
        except VragError as error:
            return str(error)
        return ""

    def _note_damage(self, where: str, image: str, damage: str) -> None:
        if damage:
            self._note("damaged", where, image, damage)

    def _note(self, kind: str, where: str, image: str, words: str) -> None:
        self._found.append((kind, f"{self._name}/{where}", image, words))


def _counts(
    name: str, split: str, sessions: Sequence[CragSession], found: list[Finding]
) -> list[Json]:
    """Questions by label, and what is odd about them."""
    by_label: Counter[tuple[str, str]] = Counter()
    for session in sessions:
        picture = "with an address" if session.image_url else "egocentric"
        by_label["picture", picture] += len(session.turns)
        for turn in session.turns:
            by_label.update(turn.labels.items())
    lengths = Counter(len(session.turns) for session in sessions)
    is_multi = any(length > 1 for length in lengths)
    if is_multi and (odd := sorted(set(lengths) - set(TURNS))):
        words = f"{lengths[odd[0]]:,} conversations of {odd[0]} turns; published ones have 2 to 6"
        found.append(("odd", f"{name} {split}", "", words))
    is_published = not is_multi and split == "validation" and lengths.total() == QUESTIONS
    rows = []
    for column, label in sorted(by_label):
        published = PUBLISHED.get(column, {}).get(label) if is_published else None
        count = by_label[column, label]
        if published not in (None, count):
            words = f"{count:,} questions, published are {published:,}"
            found.append(("odd", f"{name} {split}", f"{column} {label}", words))
        told = {"data": name, "split": split, "column": column, "label": label}
        rows.append({**told, "questions": count, "published": published})
    return rows
