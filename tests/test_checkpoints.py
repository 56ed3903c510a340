"""Checkpoints are found here or on the hub, and known by their files; entries of models
are read strictly.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from vrag_kit.checkpoints import FILE_KINDS, checkpoint_fingerprint, file_hash, find_checkpoint
from vrag_kit.config import read_entry
from vrag_kit.errors import VragError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint's files, with a part one level down."""
    folder = tmp_path / "checkpoints" / "mine"
    (folder / "1_Pooling").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "1_Pooling/config.json"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_a_local_folder_is_found(folder: Path) -> None:
    assert find_checkpoint(str(folder)) == folder


def test_a_folder_has_no_revisions(folder: Path) -> None:
    with pytest.raises(VragError, match="no revision 'refs/pr/3'"):
        find_checkpoint(str(folder), revision="refs/pr/3")


@pytest.mark.parametrize("spec", ["{parent}/mnie", "checkpoints/of/mine", "./mine"])
def test_a_mistyped_folder_is_never_looked_for_on_the_hub(
    folder: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("asked the hub")
    )
    with pytest.raises(VragError, match="there is no such folder"):
        find_checkpoint(spec.format(parent=folder.parent))


def test_a_mistyped_folder_that_might_be_on_the_hub_is_asked_about_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: Any, **__: Any) -> str:
        raise LocalEntryNotFoundError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_network)
    monkeypatch.chdir(folder.parents[1])
    with pytest.raises(VragError, match=r"Did you mean 'checkpoints/mine'\? Name or service"):
        find_checkpoint("checkpoints/mnie")
    with pytest.raises(VragError, match=r"no such folder\. Did you mean '\./checkpoints/mine'"):
        find_checkpoint("./checkpoints/mnie")
    with pytest.raises(VragError, match=r"hub\. Name or service not known\. Check the name"):
        find_checkpoint("checkpoints/something-else")


def test_a_hub_name_is_fetched_at_its_revision_without_pickles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find_checkpoint("openai/some-clip", revision="refs/pr/3") == tmp_path
    assert (asked["name"], asked["revision"], asked["allow_patterns"]) == (
        "openai/some-clip",
        "refs/pr/3",
        list(FILE_KINDS),
    )
    assert not any(
        pattern.endswith((".bin", ".pth", ".pt", "*")) for pattern in asked["allow_patterns"]
    )


@pytest.mark.parametrize("name", ["someone/not-there", "a b/c"])
def test_a_name_that_cannot_be_fetched_is_one_plain_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "someone/not-there":

        def no_network(*_: Any, **__: Any) -> str:
            raise LocalEntryNotFoundError("Name or service not known\nmore words")

        monkeypatch.setattr(huggingface_hub, "snapshot_download", no_network)
    with pytest.raises(VragError, match=rf"'{name}' is no folder here .* give a local folder\.$"):
        find_checkpoint(name)


def test_the_fingerprint_of_files_does_not_know_their_place(folder: Path, tmp_path: Path) -> None:
    before = checkpoint_fingerprint([folder], {"dtype": "auto"})
    shutil.move(folder, tmp_path / "elsewhere")
    assert checkpoint_fingerprint([tmp_path / "elsewhere"], {"dtype": "auto"}) == before


def test_links_into_a_cache_count_as_what_they_point_to(folder: Path, tmp_path: Path) -> None:
    before = checkpoint_fingerprint([folder], {})
    shutil.move(folder / "model.safetensors", tmp_path / "blob")
    (folder / "model.safetensors").symlink_to(tmp_path / "blob")
    assert checkpoint_fingerprint([folder], {}) == before


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "model.safetensors",
        "1_Pooling/config.json",
        "chat_template.jinja",
        "tokenizer.model",
        "modeling_new.py",
        "merges.txt",
    ],
)
def test_the_fingerprint_changes_with_every_file_of_the_checkpoint(folder: Path, name: str) -> None:
    before = checkpoint_fingerprint([folder], {})
    (folder / name).write_text("changed", encoding="utf-8")
    assert checkpoint_fingerprint([folder], {}) != before


@pytest.mark.parametrize(
    "name", ["README.md", "README.txt", ".gitattributes", ".cache/x.json", "pytorch_model.bin"]
)
def test_the_fingerprint_does_not_change_with_what_is_never_read(folder: Path, name: str) -> None:
    before = checkpoint_fingerprint([folder], {})
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("new", encoding="utf-8")
    assert checkpoint_fingerprint([folder], {}) == before


def test_the_fingerprint_tells_options_and_the_order_of_folders_apart(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    cases = [
        ([folder], {}),
        ([folder], {"prompt": "x"}),
        ([folder, tmp_path / "other"], {}),
        ([tmp_path / "other", folder], {}),
    ]
    assert len({checkpoint_fingerprint(folders, options) for folders, options in cases}) == len(
        cases
    )


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("clip", ("clip", {})),
        ({"model": "clip"}, ("clip", {})),
        ({"model": "clip", "dtype": "float16"}, ("clip", {"dtype": "float16"})),
    ],
)
def test_an_entry_is_a_name_or_a_name_with_options(
    entry: str | Mapping[str, Any], found: tuple[str, dict[str, Any]]
) -> None:
    assert read_entry(entry, ("dtype",), "retriever") == found


BYTES = 4_000_000
READ_SO_FAR = Path("/proc/self/io")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of weights, written a while ago."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"a" * BYTES)
    time.sleep(0.2)
    return path


def bytes_read(work: Any) -> int:
    """How many bytes this process reads while it does `work`."""

    def so_far() -> int:
        return int(READ_SO_FAR.read_text(encoding="utf-8").split()[1])

    before = so_far()
    work()
    return so_far() - before


@pytest.mark.skipif(not READ_SO_FAR.exists(), reason="needs Linux's count of what is read")
def test_a_file_is_read_once_a_process(large: Path) -> None:
    folder = large.parent
    first = checkpoint_fingerprint([folder], {})
    assert bytes_read(lambda: checkpoint_fingerprint([folder], {})) < BYTES / 10
    assert checkpoint_fingerprint([folder], {}) == first
    large.write_bytes(b"b" * BYTES)
    assert bytes_read(lambda: checkpoint_fingerprint([folder], {})) >= BYTES
    assert checkpoint_fingerprint([folder], {}) != first


@pytest.mark.skipif(os.name != "posix", reason="the time of change is POSIX's")
@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "rewritten"])
def test_a_file_of_the_same_size_and_time_is_not_taken_for_the_old_one(
    large: Path, replaced: bool
) -> None:
    stat, before = large.stat(), file_hash(large)
    target = large.with_name("new") if replaced else large
    target.write_bytes(b"b" * BYTES)
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(target, large)
    assert large.stat().st_mtime_ns == stat.st_mtime_ns
    assert file_hash(large) != before


def test_a_large_file_in_the_hubs_cache_is_known_by_its_name(large: Path) -> None:
    right = file_hash(large)
    blob = large.with_name("blobs") / right
    blob.parent.mkdir()
    large.rename(blob)
    large.symlink_to(blob)
    blob.write_bytes(b"not read")
    assert file_hash(large) == right
    small = blob.rename(blob.with_name(right[:40]))  # by its SHA-1, as git names it
    assert file_hash(small) == hashlib.sha256(b"not read").hexdigest()


def test_threads_that_hash_the_same_file_agree(large: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(file_hash(large))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_checkpoints_are_told_apart_without_importing_what_reads_them(folder: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from vrag_kit.checkpoints import checkpoint_fingerprint, find_checkpoint
checkpoint_fingerprint([find_checkpoint({str(folder)!r})], {{}})
print([name for name in ("torch", "transformers", "huggingface_hub") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
