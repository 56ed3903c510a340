"""Checkpoints are found here or on the hub, and identified by their files."""

import hashlib
import os
import shutil
import time
from functools import partial
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from retrieval_data import refused

from vrag_kit.checkpoints import FILE_KINDS, checkpoint_fingerprint, file_hash, find_checkpoint


@pytest.fixture
def folder(tmp_path):
    """A checkpoint's files, with a part one level down."""
    folder = tmp_path / "checkpoints" / "mine"
    (folder / "1_Pooling").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "1_Pooling/config.json"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_a_local_folder_is_found_and_has_no_revisions(folder):
    assert find_checkpoint(str(folder)) == folder
    refused(partial(find_checkpoint, str(folder), revision="refs/pr/3"), "no revision 'refs/pr/3'")


@pytest.mark.parametrize("spec", ["{parent}/mnie", "checkpoints/of/mine", "./mine", "mine"])
def test_a_mistyped_folder_is_never_looked_for_on_the_hub(folder, spec, monkeypatch):
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("asked the hub")
    )
    refused(partial(find_checkpoint, spec.format(parent=folder.parent)), "there is no such folder")


def test_without_network_a_name_is_refused(monkeypatch):
    def no_network(*_: Any, **__: Any) -> str:
        raise LocalEntryNotFoundError("Name or service not known\nmore words")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_network)
    for name in ("someone/not-there", "a b/c"):
        refused(partial(find_checkpoint, name), f"'{name}' is not on this machine", "local folder.")
    unknown = partial(find_checkpoint, "checkpoints/something-else")
    refused(unknown, "(Name or service not known)", "Check the name")


def test_a_hub_name_is_fetched_at_its_revision_without_pickles(tmp_path, monkeypatch):
    asked: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find_checkpoint("openai/some-clip", revision="refs/pr/3") == tmp_path
    assert (asked["name"], asked["revision"]) == ("openai/some-clip", "refs/pr/3")
    assert asked["allow_patterns"] == list(FILE_KINDS)
    assert not [each for each in FILE_KINDS if each.endswith((".bin", ".pth", ".pt", "*"))]


def test_the_fingerprint_knows_neither_place_nor_links(folder, tmp_path):
    before = checkpoint_fingerprint([folder], {"dtype": "auto"})
    shutil.move(folder, tmp_path / "elsewhere")
    folder = tmp_path / "elsewhere"
    assert checkpoint_fingerprint([folder], {"dtype": "auto"}) == before
    shutil.move(folder / "model.safetensors", tmp_path / "blob")
    (folder / "model.safetensors").symlink_to(tmp_path / "blob")
    assert checkpoint_fingerprint([folder], {"dtype": "auto"}) == before


READ = ["model.safetensors", "1_Pooling/config.json", "tokenizer.model", "modeling_new.py"]
NEVER = ["README.txt", ".cache/x.json", "pytorch_model.bin"]


@pytest.mark.parametrize("name", [*READ, *NEVER])
def test_the_fingerprint_changes_with_every_file_that_is_read(folder, name):
    before = checkpoint_fingerprint([folder], {})
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("changed", encoding="utf-8")
    assert (checkpoint_fingerprint([folder], {}) != before) == (name in READ)


def test_the_fingerprint_tells_options_and_the_order_of_folders_apart(folder, tmp_path):
    (tmp_path / "other").mkdir()
    both = [folder, tmp_path / "other"]
    cases = [([folder], {}), ([folder], {"prompt": "x"}), (both, {}), (both[::-1], {})]
    assert len({checkpoint_fingerprint(folders, options) for folders, options in cases}) == 4


BYTES = 4_000_000


@pytest.fixture
def large(tmp_path):
    """A file of weights, written a while ago."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"a" * BYTES)
    time.sleep(0.2)
    return path


@pytest.mark.skipif(os.name != "posix", reason="the time of change is POSIX's")
@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "rewritten"])
def test_a_file_of_the_same_size_and_time_is_not_taken_for_the_old_one(large, replaced):
    stat, before = large.stat(), file_hash(large)
    target = large.with_name("new") if replaced else large
    target.write_bytes(b"b" * BYTES)
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(target, large)
    assert large.stat().st_mtime_ns == stat.st_mtime_ns
    assert file_hash(large) != before


def test_a_large_file_in_the_hubs_cache_is_known_by_its_name(large):
    right = file_hash(large)
    blob = large.with_name("blobs") / right
    blob.parent.mkdir()
    large.rename(blob)
    large.symlink_to(blob)
    blob.write_bytes(b"not read")
    assert file_hash(large) == right
    small = blob.rename(blob.with_name(right[:40]))  # by its SHA-1, as git names it
    assert file_hash(small) == hashlib.sha256(b"not read").hexdigest()
