"""The top of the package: files are whole or not there, entries that do not fit are refused, and
notebooks show tables whole.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from vrag_kit.config import Decoding, read_settings
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.generation import load_generator


def test_of_many_threads_that_write_one_file_all_succeed_and_one_wins(tmp_path):
    path, contents = tmp_path / "table.csv", [bytes([writer]) * 20_000 for writer in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(partial(write_file, path), contents * 40))  # raises what they raised
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_the_older_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "table.csv"
    write_file(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, "half of a pair: \ud800")
    assert path.read_text() == "before"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "folder", "text")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "table.csv"]


def test_a_written_file_may_be_read_by_whom_the_system_lets_read_new_files(tmp_path):
    (tmp_path / "usual.txt").write_text("text")
    write_file(tmp_path / "ours.txt", "text")
    modes = {file.stat().st_mode for file in tmp_path.iterdir()}
    assert len(modes) == 1


URL = "m@http://localhost:1/v1"
GREEDY = {"temperature": 0}


@pytest.mark.parametrize("field", ["key", "body"])
def test_what_may_be_secret_is_never_shown(field):
    for value in ("sk-abc-123456", ["sk-abc-123456"], {"X-A": 5, "user": "sk-abc-123456"}):
        with pytest.raises(VragError, match=field) as refused:
            load_generator({"model": URL, field: value}, decoding=GREEDY)
        assert "sk-abc" not in str(refused.value)


def test_null_stands_for_the_default():
    nothing = {"temperature": None, "max_new_tokens": None}
    assert read_settings(Decoding, nothing, "decoding") == Decoding()
    plain, nulls = (
        load_generator({"model": URL, **options}, decoding={**GREEDY, "max_new_tokens": 7})
        for options in ({}, {"timeout": None, "body": None, "decoding": None, "name": None})
    )
    assert (nulls.fingerprint, nulls.decoding) == (plain.fingerprint, plain.decoding)
    assert plain.decoding["max_tokens"] == 7


def test_a_number_enters_keys_as_it_is_written():
    """1 and 1.0 are two keys of a stored answer."""
    given = {"temperature": 1, "top_p": 0.5, "repetition_penalty": 1.0}
    assert json.dumps(read_settings(Decoding, given, "decoding").sampling) == json.dumps(given)


BOUNDS = "43.2 [29.8, 56.6] (1 failed; 40.1 if all of those were wrong, 46.3 if all were right)"
SHELL = f"""
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "vrag_kit")
table = pd.DataFrame([[{BOUNDS!r}] * 40] * 100)
forms, _ = shell.display_formatter.format(table)
print(forms["text/html"].count({BOUNDS!r}), forms["text/plain"].count({BOUNDS!r}))
forms, _ = shell.display_formatter.format(table[0])
print(forms["text/plain"].count({BOUNDS!r}))
for rows in (500, 501):
    forms, _ = shell.display_formatter.format(pd.DataFrame({{"n": range(rows)}}))
    print(f"{{rows}} rows × 1 columns" in forms["text/html"])
"""


@pytest.mark.slow
def test_a_notebook_shows_texts_columns_and_rows_whole_and_says_how_long_a_table_is():
    told = subprocess.run(
        [sys.executable, "-c", SHELL], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[-4:] == ["4000 4000", "100", "False", "True"]
