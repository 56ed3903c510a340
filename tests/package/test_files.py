"""A file is whole or not there, whoever else writes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from vrag_kit.files import write_file

WRITERS = 8
TIMES = 40


def _content(writer: int) -> bytes:
    return bytes([writer]) * 20_000


def _write_often(path: Path, writer: int) -> None:
    for _ in range(TIMES):
        write_file(path, _content(writer))


def _one_of_them_is_there_whole(path: Path) -> None:
    assert path.read_bytes() in [_content(writer) for writer in range(WRITERS)]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_of_many_threads_that_write_one_file_all_succeed_and_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(partial(_write_often, path), range(WRITERS)))  # raises what they raised
    _one_of_them_is_there_whole(path)


def test_what_cannot_be_written_leaves_the_older_file_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "table.csv"
    write_file(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, "half of a pair: \ud800")
    assert path.read_text() == "before"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "folder", "text")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "table.csv"]


def test_a_written_file_may_be_read_by_whom_the_system_lets_read_new_files(tmp_path: Path) -> None:
    (tmp_path / "usual.txt").write_text("text")
    write_file(tmp_path / "ours.txt", "text")
    modes = {file.stat().st_mode for file in tmp_path.iterdir()}
    assert len(modes) == 1
