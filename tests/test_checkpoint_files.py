"""Checkpoints whose files are cut, no JSON or not there are told by `vrag check`, and by
the run before any weights are read.
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

from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator
from vrag_kit.retrieval import load_encoder
from vrag_kit.retrieval.finding import check_files
from vrag_kit.runner.at_hand import retriever_problem
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
        (
            _without("model_cfg", "text_cfg"),
            r"open_clip_config\.json has no text_cfg in model_cfg, which holds .*; expected embed",
        ),
        (_without("model_cfg"), r"open_clip_config\.json has no model_cfg; expected an object"),
        (_cut(WEIGHT, 2000), r"open_clip_model\.safetensors holds 2,000 bytes"),
        (_cut(WEIGHT, -1), r"holds ([\d,]+) bytes; expected [\d,]+, as its header says"),
        (_cut(WEIGHT, 5), r"holds 5 bytes without a whole header"),
        (_cut("open_clip_config.json", 100), r"holds 100 bytes that are not JSON"),
        (_gone("tokenizer.json"), r"no tokenizer in .*; expected one of tokenizer\.json, vocab"),
        (_gone(WEIGHT), r"there are no weights as \*\.safetensors"),
        (_gone("open_clip_config.json"), r"neither config\.json, .*; found README\.md"),
    ],
)
def test_a_broken_folder_of_open_clip_is_told_by_the_check_and_by_loading_with_its_file(
    damage: Damage, words: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(OPEN_CLIP, tmp_path / "mine")
    assert retriever_problem(str(folder)) == ""
    damage(folder)
    told = retriever_problem(str(folder))
    assert re.match(rf"retriever '{re.escape(str(folder))}'.*: .*{words}", told), told
    with pytest.raises(VragError) as refused:
        load_encoder(str(folder))
    assert str(refused.value) == told


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


@pytest.fixture(scope="session")
def open_clip_vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in open_clip's layout, of its own smallest ViT, with few layers."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("vit")
    vision = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
    text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 3}
    told = {"embed_dim": 16, "vision_cfg": vision, "text_cfg": text}
    torch.manual_seed(0)
    model = open_clip.CLIP(**told)
    save_file(
        {name: value.contiguous() for name, value in model.state_dict().items()},
        folder / WEIGHT,
    )
    preprocess = {"mean": [0.5] * 3, "std": [0.25] * 3}
    words = json.dumps({"model_cfg": told, "preprocess_cfg": preprocess})
    (folder / "open_clip_config.json").write_text(words, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("embed_dim", 24, r"16, as 'visual\.proj' is of shape \(64, 16\)"),
        ("vision_cfg.width", 96, r"64, as 'visual\.positional_embedding' is of shape \(17, 64\)"),
        ("vision_cfg.patch_size", 16, r"8, as 'visual\.conv1\.weight' is of shape \(64, 3, 8, 8\)"),
        ("vision_cfg.layers", 1, r"2, as so many layers visual\.transformer\.resblocks\.… have"),
        ("text_cfg.width", 64, r"32, as 'token_embedding\.weight' is of shape \(49408, 32\)"),
        ("text_cfg.vocab_size", 1000, r"49,408, as 'token_embedding\.weight' is of shape"),
        ("text_cfg.layers", 12, r"3, as so many layers transformer\.resblocks\.… have weights"),
    ],
)
def test_a_size_that_open_clips_weights_do_not_have_is_told_before_they_are_read(
    key: str, value: int, words: str, open_clip_vit: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(open_clip_vit, tmp_path / "mine")
    assert retriever_problem(str(folder)) == ""
    load_encoder(str(folder))
    _says(folder, f"model_cfg.{key}", value)
    told = retriever_problem(str(folder))
    said = rf"open_clip_config\.json says model_cfg\.{re.escape(key)}: {value:,}; expected {words}"
    assert re.search(said, told), told
    with pytest.raises(VragError, match=said):
        load_encoder(str(folder))


@pytest.mark.parametrize(
    ("key", "value"),
    [("vision_cfg.width", 48), ("vision_cfg.layers", [1, 2, 2, 1]), ("text_cfg.layers", 4)],
)
def test_sizes_of_a_resnet_are_held_against_its_weights_too(
    key: str, value: object, tmp_path: Path
) -> None:
    folder = shutil.copytree(WEIGHTS / "field-guide-clip-64", tmp_path / "mine")
    _says(folder, f"model_cfg.{key}", value)
    assert f"says model_cfg.{key}" in retriever_problem(str(folder))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("projection_dim", 32),
        ("vision_config.hidden_size", 64),
        ("vision_config.patch_size", 16),
        ("vision_config.num_hidden_layers", 1),  # transformers leaves the other out, in silence
        ("text_config.hidden_size", 64),
        ("text_config.vocab_size", 1000),
        ("text_config.num_hidden_layers", 3),
    ],
)
def test_a_size_that_transformers_weights_do_not_have_is_told_before_they_are_read(
    key: str, value: int, copy_retriever: Callable[[str], Path]
) -> None:
    folder = copy_retriever("clip")
    check_files("x", folder)
    _says(folder, key, value, "config.json")
    with pytest.raises(
        VragError, match=rf"config\.json says {re.escape(key)}: {value:,}; expected"
    ):
        check_files("x", folder)


@pytest.mark.parametrize("family", ["clip", "bert"])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_weights_that_are_no_numbers_are_told_without_reading_all(
    family: str, kind: str, copy_retriever: Callable[[str], Path]
) -> None:
    import torch

    folder = copy_retriever(family)

    def convert(state: dict[str, torch.Tensor]) -> None:
        for name in list(state):
            state[name] = state[name].to(getattr(torch, kind))

    tiny.edit_weights(folder / "model.safetensors", convert)
    check_files("x", folder)

    def spoil(state: dict[str, torch.Tensor]) -> None:
        for each in state.values():
            each.fill_(float("nan"))

    tiny.edit_weights(folder / "model.safetensors", spoil)
    with pytest.raises(
        VragError, match=r"holds [\d,]+ values that are NaN or infinite in weight '"
    ):
        check_files("x", folder)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_folders_of_transformers_are_checked_by_their_files_too(
    family: str, copy_retriever: Callable[[str], Path]
) -> None:
    folder = copy_retriever(family)
    check_files("x", folder)
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (weights, *_) = sorted(folder.rglob("*.safetensors"))
    config = folder / ("adapter_config.json" if family == "lora" else "config.json")
    for path, left in ((weights, len(whole[weights]) - 7), (weights, 40), (config, 20)):
        path.write_bytes(whole[path][:left])
        with pytest.raises(VragError, match=rf"^retriever 'x' cannot be loaded: {path} holds "):
            check_files("x", folder)
        path.write_bytes(whole[path])
    if family != "lora":  # its base has one
        (folder / "tokenizer.json").unlink()
        with pytest.raises(VragError, match="no tokenizer in"):
            check_files("x", folder)


def test_shards_that_are_listed_and_not_there_are_counted(
    copy_retriever: Callable[[str], Path],
) -> None:
    folder = copy_retriever("bert")
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-2.safetensors"}
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    listed = folder / "model.safetensors.index.json"
    listed.write_text(json.dumps({"weight_map": shards}), encoding="utf-8")
    with pytest.raises(VragError, match=r"names 2 files, of which 1 are not there \(model-2"):
        check_files("x", folder)
    (folder.parent / "model-2.safetensors").touch()
    listed.write_text(json.dumps({"weight_map": {**shards, "b": "../model-2.safetensors"}}))
    with pytest.raises(VragError, match=r"index\.json: '\.\./model-2\.safetensors' points outside"):
        check_files("x", folder)


@pytest.mark.parametrize("folder", sorted(WEIGHTS.iterdir()), ids=lambda folder: folder.name)
def test_the_models_of_the_kit_are_whole(folder: Path) -> None:
    if "vlm" in folder.name:
        assert load_generator(str(folder)).missing() == ""
    else:
        assert retriever_problem(str(folder)) == ""


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut("model.safetensors", 100_000), r"model\.safetensors holds 100,000 bytes; expected"),
        (_cut("config.json", 30), r"config\.json: not readable JSON"),
        (_cut("tokenizer_config.json", 30), r"tokenizer_config\.json"),
        (_gone("tokenizer.json"), "no tokenizer in "),
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
