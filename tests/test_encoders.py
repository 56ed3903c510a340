"""What holds for retrievers of every family, loaded through the public API from tiny
checkpoints.
"""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_retrievers as tiny
import torch
from tiny_retrievers import FAMILIES, embed, entry, queries

from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, load_encoder, search_all
from vrag_kit.retrieval.encoders import checkpoint as checkpoint_module
from vrag_kit.retrieval.encoders import loading
from vrag_kit.types import Benchmark, Document


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_order_and_company_do_not_change_a_vector(
    family: str, retrievers_made: Path, documents: list[Document]
) -> None:
    encoder = load_encoder(entry(retrievers_made, family))
    together, alone = (
        embed(encoder, documents),
        np.concatenate([embed(encoder, [document]) for document in documents]),
    )
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(embed(encoder, documents[::-1])[::-1], together, atol=1e-5)
    np.testing.assert_array_equal(
        encoder.encode_queries(queries()[::-1])[::-1], encoder.encode_queries(queries())
    )
    assert together.dtype == encoder.encode_queries(queries()).dtype == np.float32
    assert encoder.encode_queries([]).shape == (0, together.shape[1])
    cosines = (
        together
        @ together.T
        / np.linalg.norm(together, axis=1)
        / np.linalg.norm(together, axis=1)[:, None]
    )
    assert cosines[~np.eye(4, dtype=bool)].max() < 0.99, (
        "the tiny checkpoint cannot tell its documents apart"
    )


def test_texts_are_padded_at_their_end_whatever_the_tokenizer_says(
    retrievers_made: Path, copy_retriever: Callable[[str], Path], documents: list[Document]
) -> None:
    for family in ("bert", "siglip2"):
        folder = copy_retriever(family)
        tiny.edit_json(folder / "tokenizer_config.json", padding_side="left")
        left, right = (
            load_encoder(entry(folder.parent, family)),
            load_encoder(entry(retrievers_made, family)),
        )
        np.testing.assert_allclose(
            left.encode_queries(queries()), right.encode_queries(queries()), atol=1e-5
        )
        np.testing.assert_allclose(embed(left, documents), embed(right, documents), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_copied_folder_keeps_its_fingerprint_and_a_changed_weight_does_not(
    family: str, retrievers_made: Path, copy_retriever: Callable[[str], Path]
) -> None:
    before, folder = (
        load_encoder(entry(retrievers_made, family)).fingerprint,
        copy_retriever(family),
    )
    assert load_encoder(entry(folder.parent, family)).fingerprint == before

    def nudge(state: dict[str, torch.Tensor]) -> None:
        state[min(state)] += 1

    tiny.edit_weights(next(folder.glob("*.safetensors")), nudge)
    assert load_encoder(entry(folder.parent, family)).fingerprint != before


@pytest.mark.parametrize("family", FAMILIES)
def test_what_identifies_an_encoder_is_known_before_its_weights_are_read(
    family: str, retrievers_made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = entry(retrievers_made, family)
    loaded = load_encoder(told)
    monkeypatch.setattr(checkpoint_module, "_load", lambda _: pytest.fail("weights are read"))
    opened = loading.open_encoder(told)
    for name in ("name", "fingerprint", "document_key", "modalities", "prompts", "normalized"):
        assert getattr(opened, name) == getattr(loaded, name)


def poisoned(folder: Path) -> None:
    def poison(state: dict[str, torch.Tensor]) -> None:
        state[max(state)].view(-1)[0] = float("nan")

    tiny.edit_weights(next(folder.glob("*.safetensors")), poison)


def incomplete(folder: Path) -> None:
    def lose(state: dict[str, torch.Tensor]) -> None:
        del state[next(name for name in sorted(state) if "layers.1" in name or "layer.1" in name)]

    tiny.edit_weights(next(folder.glob("*.safetensors")), lose)


def truncated(folder: Path) -> None:
    weights = next(folder.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:1000])


def pickled(folder: Path) -> None:
    name = "adapter_model.bin" if folder.name == "lora" else "pytorch_model.bin"
    next(folder.glob("*.safetensors")).rename(folder / name)


@pytest.mark.parametrize(
    ("damage", "words", "families"),
    [
        (poisoned, "NaN or infinite", FAMILIES),
        (incomplete, "1 weights are not in|1 places have no weight", FAMILIES),
        (truncated, "^retriever '.*' cannot be loaded: ", ["clip"]),
        (pickled, r"_model\.bin is a pickle; .*safetensors only.*`revision`", ["clip", "lora"]),
    ],
)
def test_damaged_weights_are_refused_in_every_family_and_never_random(
    damage: Callable[[Path], None],
    words: str,
    families: list[str],
    copy_retriever: Callable[[str], Path],
) -> None:
    for family in families:
        folder = copy_retriever(family)
        damage(folder)
        with pytest.raises(VragError, match=words):
            load_encoder(entry(folder.parent, family))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("clip", {"query_prompt": "a photo of {text}"}),
        ("clip", {"dtype": "bfloat16"}),
        ("qwen2_vl", {"query_prompt": "Seek: {text}"}),
        ("qwen2_vl", {"positions": "model"}),
        ("qwen2_vl", {"image_size": {"shortest_edge": 256, "longest_edge": 1024}}),
        ("bert", {"pooling": "mean"}),
        ("bert", {"normalize": True}),
        ("bert", {"document_prompt": "passage: {text}"}),
        ("bert", {"documents": "context"}),
        ("sentences", {"query_prompt": "query: {text}"}),
    ],
)
def test_every_option_that_changes_a_vector_changes_the_fingerprint(
    family: str, changes: dict[str, Any], retrievers_made: Path, documents: list[Document]
) -> None:
    if "documents" in changes:
        changes = {"documents": str(retrievers_made / "context")}
    before, after = (
        load_encoder(entry(retrievers_made, family)),
        load_encoder(entry(retrievers_made, family, **changes)),
    )
    assert before.fingerprint != after.fingerprint
    same = [
        np.array_equal(before.encode_queries(queries()), after.encode_queries(queries())),
        np.array_equal(embed(before, documents), embed(after, documents)),
    ]
    assert not all(same)


@pytest.mark.parametrize(
    ("family", "document", "words"),
    [
        ("clip", Document(doc_id="bare"), "'bare' has no image"),
        ("qwen2_vl", Document(doc_id="bare"), "'bare' has no image"),
        ("bert", Document(doc_id="mute", text=" "), "'mute' has no text"),
        ("sentences", Document(doc_id="mute"), "'mute' has no text"),
    ],
)
def test_a_document_without_what_is_encoded_is_named(
    family: str, document: Document, words: str, retrievers_made: Path
) -> None:
    with pytest.raises(VragError, match=words):
        load_encoder(entry(retrievers_made, family)).prepare(document)


@pytest.mark.parametrize(
    ("family", "changes", "words"),
    [
        (
            "clip",
            {"pooling": "cls"},
            "take no option 'pooling'.*expected document, dtype, query",
        ),
        ("clip", {"max_side": 3}, "'max_side'; expected .*document_prompt"),
        ("clip", {"query_prompt": "a photo"}, "query_prompt is 'a photo'.*text"),
        ("clip", {"dtype": "half"}, "dtype: found 'half'; expected 'auto', 'float32'"),
        (
            "clip",
            {"trust_remote_code": "no"},
            "trust_remote_code: found 'no'; .*boolean",
        ),
        ("qwen2_vl", {"document_prompt": "An image."}, r"picture .*<\|image_pad\|>"),
        ("qwen2_vl", {"positions": "spiral"}, "positions: found 'spiral'; expected 'model'"),
        ("bert", {"pooling": "max"}, "pooling: found 'max'; expected 'cls'"),
        ("bert", {"documents": {"model": "x", "dtype": "auto"}}, "documents 'x': .*'dtype'"),
        ("bert", {"document_prompt": "passage"}, "document_prompt is 'passage'.*text"),
        ("sentences", {"normalize": False}, "unit length"),
        ("sentences", {"query_prompt": "{text}?"}, r"\{text\}.* at its end"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_right(
    family: str, changes: dict[str, Any], words: str, retrievers_made: Path
) -> None:
    with pytest.raises(VragError, match=words):
        load_encoder(entry(retrievers_made, family, **changes))


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("qwen2_vl", "`query_prompt`.*`document_prompt`, with the model's image token"),
        ("bert", "pooling is None.*Add the option `pooling`"),
    ],
)
def test_what_the_files_cannot_say_must_be_an_option(
    family: str, words: str, retrievers_made: Path
) -> None:
    with pytest.raises(VragError, match=words):
        load_encoder(str(retrievers_made / family))


def test_an_open_clip_model_takes_few_options_and_a_mistyped_one_is_answered_by_open_clip(
    checkpoint: Callable[..., Path],
) -> None:
    with pytest.raises(VragError, match=r"take no option 'dtype' .*; expected document, query"):
        load_encoder({"model": str(checkpoint()), "dtype": "float16"})
    with pytest.raises(VragError, match="ViT-L-14-337"):
        load_encoder("ViT-L-14-337/openai")


def test_a_folder_that_is_no_checkpoint_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    with pytest.raises(VragError, match=r"neither config\.json.*found notes\.txt"):
        load_encoder(str(tmp_path))


def test_half_precision_that_overflows_is_refused_by_document(
    copy_retriever: Callable[[str], Path], documents: list[Document], tmp_path: Path
) -> None:
    def huge(state: dict[str, torch.Tensor]) -> None:
        state["vision_model.post_layernorm.weight"] *= (
            1e3  # both fit into half precision, their product does not
        )
        state["visual_projection.weight"] *= 1e3

    folder = copy_retriever("clip")
    tiny.edit_weights(folder / "model.safetensors", huge)
    embed_documents(load_encoder(str(folder)), documents, tmp_path / "store")
    with pytest.raises(VragError, match=r"the embedding of 'd0' has length nan.*try float32"):
        embed_documents(
            load_encoder({"model": str(folder), "dtype": "float16"}), documents, tmp_path / "store"
        )


def test_several_families_search_the_small_guide_one_in_memory_at_a_time(
    guide: Benchmark, retrievers_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = guide.subset(list(guide.queries)[:2])
    small = replace(
        small,
        corpus={
            doc_id: guide.corpus[doc_id]
            for query_id in small.queries
            for doc_id in small.candidates(query_id) or ()
        },
    )
    alive: list[weakref.ref[Any]] = []

    load_model = checkpoint_module._load

    def load(checkpoint: Any) -> Any:
        gc.collect()  # a cycle is no reference that we hold
        assert not any(reference() for reference in alive), (
            "an encoder is still in memory while the next one is loaded"
        )
        model = load_model(checkpoint)
        alive.append(weakref.ref(model))
        return model

    monkeypatch.setattr(checkpoint_module, "_load", load)
    retrievers = [
        {"model": str(retrievers_made / "clip"), "query_prompt": "a photo of {text}"},
        "vrag_kit/synthetic/weights/field-guide-clip-32",
    ]
    runs = search_all(small, retrievers, k=30, cache_dir=tmp_path)
    assert list(runs) == ["clip", "field-guide-clip-32"]
    assert all(len(run) == 60 for run in runs.values())
    manifest = json.loads(next(tmp_path.glob("clip-*/manifest.json")).read_text(encoding="utf-8"))
    assert manifest["prompts"] == {"query": "a photo of {text}"}
    with pytest.raises(VragError, match="two retrievers are named 'clip'"):
        search_all(small, [str(retrievers_made / "clip")] * 2, k=30, cache_dir=tmp_path)
