"""Checkpoints that are cut, incomplete or of another size are refused; a dry run says what it
can see without the weights.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from conftest import WEIGHTS
from retrieval_data import refused

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator
from vrag_kit.retrieval import load_encoder
from vrag_kit.retrieval.encoders.loading import open_encoder

CONFIG, WEIGHT = "open_clip_config.json", "open_clip_model.safetensors"
Damage = Callable[[Path], object]


def cut(name: str, left: int) -> Damage:
    """Leave the first bytes of a file."""
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:left])


def gone(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut(WEIGHT, -1), r"cannot be loaded: .*open_clip_model\.safetensors: "),
        (cut(WEIGHT, 5), r"cannot be loaded: .*open_clip_model\.safetensors: "),
        (gone(WEIGHT), r"no weights as \*\.safetensors"),
        (gone(CONFIG), r"neither config\.json, .* in "),
    ],
)
def test_a_broken_folder_is_refused_and_missing(damage: Damage, words: str, tmp_path: Path) -> None:
    folder = shutil.copytree(WEIGHTS / "field-guide-clip-32", tmp_path / "mine")
    with dry_run(tmp_path) as recorded:
        open_encoder(str(folder))
        assert not recorded.missing
        damage(folder)
        open_encoder(str(folder))
    (message,) = recorded.missing
    assert re.match(rf"retriever '{re.escape(str(folder))}'.*{words}", message), message
    with pytest.raises(VragError) as error:
        load_encoder(str(folder))
    assert str(error.value) == message


def test_missing_and_outside_shards_are_refused(copy_retriever: Callable[[str], Path]) -> None:
    folder = copy_retriever("clip")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    listed, load = folder / "model.safetensors.index.json", partial(load_encoder, str(folder))
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    listed.write_text(json.dumps({"metadata": {}, "weight_map": shards}), encoding="utf-8")
    refused(load, "cannot be loaded: ", "model-2")
    (folder.parent / "model-2.safetensors").touch()
    listed.write_text(json.dumps({"weight_map": {**shards, "b": "../model-2.safetensors"}}))
    refused(load, "index.json: '../model-2.safetensors' points outside")


def test_a_broken_model_is_missing_in_a_dry_run_and_refused_when_asked(tmp_path: Path) -> None:
    folder = shutil.copytree(WEIGHTS / "field-guide-vlm-few", tmp_path / "mine")
    cut("config.json", 30)(folder)
    with dry_run(tmp_path) as recorded:
        load_generator(str(folder)).prepare()
    (message,) = recorded.missing
    assert "config.json: no JSON" in message
    with pytest.raises(VragError, match=r"config\.json: no JSON"):
        load_generator(str(folder)).prepare()
