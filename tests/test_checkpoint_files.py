"""Checkpoints whose files are cut, not there or not of one model are refused; what needs no
weights to see, `vrag check` says.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_retrievers as tiny
import yaml
from conftest import ROOT, WEIGHTS

from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator
from vrag_kit.retrieval import load_encoder
from vrag_kit.retrieval.encoders.checkpoint import check_encoder_files
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.runner.check import check_parameters

OPEN_CLIP = WEIGHTS / "field-guide-clip-32"
TALKER = WEIGHTS / "field-guide-vlm-few"
WEIGHT = "open_clip_model.safetensors"
Damage = Callable[[Path], object]


def _without(*keys: str) -> Damage:
    """Take keys out of open_clip_config.json, the last out of what the first hold."""

    def damage(folder: Path) -> None:
        path = folder / "open_clip_config.json"
        stated = json.loads(path.read_text(encoding="utf-8"))
        inner = stated
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        path.write_text(json.dumps(stated), encoding="utf-8")

    return damage


def _cut(name: str, left: int) -> Damage:
    """Leave the first bytes of a file."""
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:left])


def _gone(*names: str) -> Damage:
    return lambda folder: [(folder / name).unlink() for name in names]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut(WEIGHT, -1), r"cannot be loaded: .*open_clip_model\.safetensors: "),
        (_cut(WEIGHT, 5), r"cannot be loaded: .*open_clip_model\.safetensors: "),
        (_gone(WEIGHT), r"there are no weights as \*\.safetensors"),
        (_gone("open_clip_config.json"), r"neither config\.json, .*; found README\.md"),
    ],
)
def test_a_broken_folder_of_open_clip_is_told_by_the_check_and_by_loading_with_its_file(
    damage: Damage, words: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(OPEN_CLIP, tmp_path / "mine")
    with dry_run(tmp_path) as recorded:
        open_encoder(str(folder))
        assert not recorded.missing
        damage(folder)
        open_encoder(str(folder))
    (told,) = recorded.missing
    assert re.match(rf"retriever '{re.escape(str(folder))}'.*{words}", told), told
    with pytest.raises(VragError) as refused:
        load_encoder(str(folder))
    assert str(refused.value) == told


@pytest.mark.parametrize(
    "damage",
    [
        _without("model_cfg", "text_cfg"),
        _without("model_cfg"),
        _cut("open_clip_config.json", 100),
        _gone("tokenizer.json"),
    ],
)
def test_a_folder_of_open_clip_that_lacks_something_is_refused(
    damage: Damage, tmp_path: Path
) -> None:
    folder = shutil.copytree(OPEN_CLIP, tmp_path / "mine")
    damage(folder)
    with pytest.raises(VragError, match=f"^retriever '{folder}' cannot be loaded from "):
        load_encoder(str(folder))


def _says(folder: Path, key: str, value: object, file: str = "open_clip_config.json") -> None:
    """Change what a configuration says under a key, "a.b" of a mapping in a mapping."""
    stated = json.loads((folder / file).read_text(encoding="utf-8"))
    *outer, last = key.split(".")
    inner = stated
    for each in outer:
        inner = inner[each]
    assert inner[last] != value
    inner[last] = value
    (folder / file).write_text(json.dumps(stated), encoding="utf-8")


@pytest.mark.parametrize(
    ("key", "value"),
    [("vision_cfg.width", 48), ("vision_cfg.layers", [1, 2, 2, 1]), ("text_cfg.layers", 4)],
)
def test_a_size_that_open_clips_weights_do_not_have_is_refused(
    key: str, value: object, tmp_path: Path
) -> None:
    folder = shutil.copytree(WEIGHTS / "field-guide-clip-64", tmp_path / "mine")
    _says(folder, f"model_cfg.{key}", value)
    with pytest.raises(VragError, match=r"cannot be loaded from .*state_dict"):
        load_encoder(str(folder))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("projection_dim", 32),
        ("vision_config.hidden_size", 64),
        ("vision_config.patch_size", 16),
        ("text_config.hidden_size", 64),
        ("text_config.vocab_size", 1000),
        ("text_config.num_hidden_layers", 3),
    ],
)
def test_a_size_that_transformers_weights_do_not_have_is_refused(
    key: str, value: int, copy_retriever: Callable[[str], Path]
) -> None:
    folder = copy_retriever("clip")
    _says(folder, key, value, "config.json")
    with pytest.raises(VragError, match=f"^retriever '{folder}'"):
        load_encoder(str(folder))


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_folders_of_transformers_are_checked_by_their_headers(
    family: str, copy_retriever: Callable[[str], Path]
) -> None:
    folder = copy_retriever(family)
    check_encoder_files("x", folder)
    (weights, *_) = sorted(folder.rglob("*.safetensors"))
    whole = weights.read_bytes()
    for left in (len(whole) - 7, 40):
        weights.write_bytes(whole[:left])
        with pytest.raises(VragError, match=rf"^retriever 'x' cannot be loaded: {weights}: "):
            check_encoder_files("x", folder)


def test_shards_that_are_not_there_or_lie_elsewhere_are_refused(
    copy_retriever: Callable[[str], Path],
) -> None:
    folder = copy_retriever("clip")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    listed = folder / "model.safetensors.index.json"
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    listed.write_text(json.dumps({"metadata": {}, "weight_map": shards}), encoding="utf-8")
    with pytest.raises(VragError, match=r"cannot be loaded: .*model-2"):
        load_encoder(str(folder))
    (folder.parent / "model-2.safetensors").touch()
    listed.write_text(json.dumps({"weight_map": {**shards, "b": "../model-2.safetensors"}}))
    with pytest.raises(VragError, match=r"index\.json: '\.\./model-2\.safetensors' points outside"):
        check_encoder_files("x", folder)


@pytest.mark.parametrize("folder", sorted(WEIGHTS.iterdir()), ids=lambda folder: folder.name)
def test_the_models_of_the_kit_are_whole(folder: Path) -> None:
    if "vlm" in folder.name:
        assert load_generator(str(folder)).missing() == ""
    else:
        check_encoder_files(str(folder), folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut("model.safetensors", 100_000), r"cannot be loaded: "),
        (_cut("config.json", 30), r"config\.json: no JSON"),
        (_cut("tokenizer_config.json", 30), "cannot be loaded: "),
        (_gone("tokenizer.json"), "cannot be loaded: .*tokenizer"),
    ],
)
def test_a_broken_model_is_missing_in_a_check_and_refused_when_it_is_asked(
    damage: Damage, words: str, guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    folder = shutil.copytree(TALKER, tmp_path / "mine")
    damage(folder)
    data = {
        "annotations": str(guide_folder / "annotations.jsonl"),
        "image_root": str(guide_folder / "images"),
        "name": "small",
    }
    values = {"notebooks": ["03"], "data": data, "models": [str(folder)]}
    values["answers_dir"] = str(tmp_path / "answers")
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    (told,) = check_parameters(file)[1]
    assert re.search(words, told), told
    with pytest.raises(VragError, match=words):
        load_generator(str(folder)).prepare()
