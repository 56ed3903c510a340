"""Every family of retriever, loaded through the public API from tiny checkpoints,
against the library that defines it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import tiny_retrievers as tiny
import torch
from PIL import Image
from tiny_retrievers import PROMPTS, QUESTIONS, embed, entry, queries

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, load_encoder
from vrag_kit.retrieval.dense import dense_run
from vrag_kit.types import Document


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "siglip", "siglip2"])
def test_cosines_are_the_logits_of_transformers_without_scale_and_bias(
    family: str, retrievers_made: Path, documents: list[Document]
) -> None:
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    model, tokenizer, images = (
        auto.from_pretrained(retrievers_made / family)
        for auto in (AutoModel, AutoTokenizer, AutoImageProcessor)
    )
    padding = (
        {"padding": True}
        if family == "clip"
        else {"padding": "max_length", "max_length": tokenizer.model_max_length}
    )
    tokens = tokenizer(QUESTIONS, truncation=True, return_tensors="pt", **padding)
    if family != "clip":
        del tokens[
            "attention_mask"
        ]  # as the checkpoints of SigLIP say: trained with the padding attended to
    with torch.inference_mode():
        logits = model(
            **tokens,
            **images(images=[document.image.open() for document in documents], return_tensors="pt"),
        ).logits_per_text
    expected = (logits - getattr(model, "logit_bias", 0)) / model.logit_scale.exp()
    encoder = load_encoder(str(retrievers_made / family))
    np.testing.assert_allclose(
        encoder.encode_queries(queries()) @ embed(encoder, documents).T,
        expected.detach().numpy(),
        atol=2e-3,
    )


def test_pictures_stand_upright_before_the_checkpoint_preprocesses_them(
    retrievers_made: Path, documents: list[Document], tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    documents[0].image.open().rotate(90, expand=True).save(tmp_path / "turned.png", exif=exif)
    for family in ("clip", "qwen2_vl"):
        encoder = load_encoder(entry(retrievers_made, family))
        np.testing.assert_allclose(
            embed(encoder, [Document(doc_id="turned", image=ImageFile(tmp_path / "turned.png"))]),
            embed(encoder, documents[:1]),
            atol=1e-5,
        )


def test_a_clip_with_code_of_its_own_is_loaded_natively_and_the_code_never_runs(
    retrievers_made: Path, copy_retriever: Callable[[str], Path], documents: list[Document]
) -> None:
    folder = copy_retriever("clip")
    (folder / "modeling_MMRet_CLIP.py").write_text(
        "raise SystemExit('remote code ran')\n", encoding="utf-8"
    )
    tiny.edit_json(folder / "config.json", auto_map={"AutoModel": "modeling_MMRet_CLIP.CLIPModel"})
    np.testing.assert_array_equal(
        embed(load_encoder(str(folder)), documents),
        embed(load_encoder(str(retrievers_made / "clip")), documents),
    )


@pytest.fixture
def foreign(
    copy_retriever: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A CLIP of a type that transformers does not know, with code that leaves a mark
    when it runs and returns bare tensors.
    """
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    folder = copy_retriever("clip")
    (folder / "modeling_foreign.py").write_text(
        f"""
from pathlib import Path
from transformers import CLIPConfig, CLIPModel
Path({str(tmp_path / "mark")!r}).touch()
class ForeignConfig(CLIPConfig):
    model_type = "foreign_clip"
class ForeignModel(CLIPModel):
    config_class = ForeignConfig
    def get_text_features(self, **inputs):
        return super().get_text_features(**inputs).pooler_output
    def get_image_features(self, **inputs):
        return super().get_image_features(**inputs).pooler_output
""",
        encoding="utf-8",
    )
    code = {
        "AutoConfig": "modeling_foreign.ForeignConfig",
        "AutoModel": "modeling_foreign.ForeignModel",
    }
    tiny.edit_json(folder / "config.json", model_type="foreign_clip", auto_map=code)
    return folder


def test_code_of_a_checkpoint_does_not_run_unless_the_entry_says_so(
    foreign: Path, tmp_path: Path
) -> None:
    with pytest.raises(VragError, match=r"\(modeling_foreign.*not run.*`trust_remote_code: true`"):
        load_encoder(str(foreign))
    assert not (tmp_path / "mark").exists()


def test_trusted_code_runs_and_may_return_bare_tensors(
    foreign: Path, retrievers_made: Path, tmp_path: Path, documents: list[Document]
) -> None:
    theirs, ours = (
        load_encoder({"model": str(foreign), "trust_remote_code": True}),
        load_encoder(str(retrievers_made / "clip")),
    )
    assert (tmp_path / "mark").exists()
    np.testing.assert_allclose(embed(theirs, documents), embed(ours, documents), atol=1e-6)
    np.testing.assert_allclose(
        theirs.encode_queries(queries()), ours.encode_queries(queries()), atol=1e-6
    )


def _last_states(
    model: Any, processor: Any, prompt: str, positions: str, picture: Image.Image | None = None
) -> np.ndarray:
    """The last token's state at unit length, by the model's own call, one at a time and
    without padding.
    """
    inputs = processor(text=[prompt], images=[picture] if picture else None, return_tensors="pt")
    if positions == "sequential":
        inputs["position_ids"] = torch.arange(inputs["input_ids"].shape[1])[None]
    with torch.inference_mode():
        state = model(**inputs, output_hidden_states=True).hidden_states[-1][0, -1]
    return (state / state.norm()).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["model", "sequential"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_instructed_vector_is_the_last_state_of_the_prompt_whatever_side_is_padded(
    positions: str, side: str, copy_retriever: Callable[[str], Path], documents: list[Document]
) -> None:
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = copy_retriever("qwen2_vl")
    tiny.edit_json(folder / "tokenizer_config.json", padding_side=side)
    model, processor = (
        AutoModelForImageTextToText.from_pretrained(folder),
        AutoProcessor.from_pretrained(folder),
    )
    encoder = load_encoder({"model": str(folder), **PROMPTS, "positions": positions})
    assert len({encoder.prepare(document)["input_ids"].shape for document in documents}) > 1, (
        "the pictures should need padding"
    )
    expected = [
        _last_states(model, processor, PROMPTS["document_prompt"], positions, document.image.open())
        for document in documents
    ]
    np.testing.assert_allclose(embed(encoder, documents), expected, atol=1e-4)
    np.testing.assert_allclose(
        encoder.encode_queries(queries()),
        [_last_states(model, processor, f"Find: {text}", positions) for text in QUESTIONS],
        atol=1e-5,
    )


def test_picture_tokens_without_a_vision_start_stand_at_sequential_positions_as_vlm2vec_was_trained(
    retrievers_made: Path, documents: list[Document]
) -> None:
    """The rule of its authors' code: a picture is found by the vision-start token
    before it; without one, all positions count on, as in text.
    """
    seen: list[torch.Tensor] = []
    encoder = load_encoder(entry(retrievers_made, "qwen2_vl"))
    encoder.model._model.language_model.rotary_emb.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(kwargs.get("position_ids", args[-1])), with_kwargs=True
    )
    prepared = [encoder.prepare(document) for document in documents[:2]]
    encoder.encode_documents(prepared)
    for row, inputs in enumerate(prepared):
        length = inputs["input_ids"].shape[1]
        assert seen[0][:, row, :length].tolist() == [list(range(length))] * 3


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llava", "pixtral", "qwen2_5_vl", "gemma3"])
def test_any_family_of_image_text_to_text_models_can_be_an_embedder(
    family: str, documents: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = tiny_models.built(family, tmp_path_factory)
    model, processor = (
        AutoModelForImageTextToText.from_pretrained(folder),
        AutoProcessor.from_pretrained(folder),
    )
    prompt = f"{getattr(processor, 'boi_token', processor.image_token)} Represent the given image."
    vectors = embed(
        load_encoder({"model": str(folder), "query_prompt": "{text}", "document_prompt": prompt}),
        documents,
    )
    np.testing.assert_allclose(
        vectors,
        [
            _last_states(model, processor, prompt, "model", document.image.open())
            for document in documents
        ],
        atol=1e-4,
    )
    assert (vectors @ vectors.T)[~np.eye(4, dtype=bool)].max() < 0.999, "the picture should matter"


@pytest.mark.slow
@pytest.mark.parametrize("positions", ["model", "sequential"])
def test_a_lora_adapter_merged_is_its_base_with_the_adapter_beside(
    positions: str, retrievers_made: Path, documents: list[Document]
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText, AutoProcessor

    base = AutoModelForImageTextToText.from_pretrained(retrievers_made / "qwen2_vl")
    model, processor = (
        PeftModel.from_pretrained(base, retrievers_made / "lora").eval(),
        AutoProcessor.from_pretrained(retrievers_made / "lora"),
    )
    encoder = load_encoder(entry(retrievers_made, "lora", positions=positions))
    expected = [
        _last_states(model, processor, PROMPTS["document_prompt"], positions, document.image.open())
        for document in documents
    ]
    np.testing.assert_allclose(embed(encoder, documents), expected, atol=1e-4)
    plain = embed(load_encoder(entry(retrievers_made, "qwen2_vl", positions=positions)), documents)
    assert np.diag(embed(encoder, documents) @ plain.T).max() < 0.9, "the adapter should matter"


def test_an_adapter_with_the_names_of_transformers_4_finds_its_places(
    retrievers_made: Path, copy_retriever: Callable[[str], Path], documents: list[Document]
) -> None:
    def older(state: dict[str, torch.Tensor]) -> None:
        for name in list(state):
            state[
                name.replace("model.model.language_model.layers", "model.model.layers").replace(
                    "model.model.visual", "model.visual"
                )
            ] = state.pop(name)

    folder = copy_retriever("lora")
    tiny.edit_weights(folder / "adapter_model.safetensors", older)
    np.testing.assert_allclose(
        embed(load_encoder(entry(folder.parent, "lora")), documents),
        embed(load_encoder(entry(retrievers_made, "lora")), documents),
        atol=1e-5,
    )


def test_an_adapter_of_another_model_is_refused(copy_retriever: Callable[[str], Path]) -> None:
    def rename(state: dict[str, torch.Tensor]) -> None:
        for name in list(state):
            state[name.replace("q_proj", "query")] = state.pop(name)

    folder = copy_retriever("lora")
    tiny.edit_weights(folder / "adapter_model.safetensors", rename)
    with pytest.raises(
        VragError, match=r"4 of its weights have no place \(such as .*query.*4 places"
    ):
        load_encoder(entry(folder.parent, "lora"))


def test_an_adapter_whose_base_is_gone_says_which(copy_retriever: Callable[[str], Path]) -> None:
    folder = copy_retriever("lora")
    tiny.edit_json(folder / "adapter_config.json", base_model_name_or_path="/models/gone")
    with pytest.raises(VragError, match="'/models/gone' cannot be loaded: there is no such folder"):
        load_encoder(entry(folder.parent, "lora"))


def test_a_batch_that_does_not_fit_into_memory_is_halved(
    retrievers_made: Path, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(entry(retrievers_made, "qwen2_vl"))
    expected, whole, sizes = embed(encoder, documents), encoder.model._embed, []

    def small(inputs: list[Mapping[str, torch.Tensor]], *, most: int = 1) -> np.ndarray:
        sizes.append(len(inputs))
        if len(inputs) > most:
            raise torch.OutOfMemoryError("out of memory")
        return whole(inputs)

    monkeypatch.setattr(encoder.model, "_embed", small)
    np.testing.assert_allclose(embed(encoder, documents), expected, atol=1e-5)
    assert sizes == [4, 2, 1, 1, 2, 1, 1]
    monkeypatch.setattr(encoder.model, "_embed", lambda inputs: small(inputs, most=0))
    with pytest.raises(VragError, match="one picture does not fit into the memory"):
        embed(encoder, documents[:1])


def test_known_models_bring_their_authors_options(
    retrievers_made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {
        "TIGER-Lab/VLM2Vec-Qwen2VL-2B": "lora",
        "facebook/dragon-plus-query-encoder": "bert",
        "facebook/dragon-plus-context-encoder": "context",
    }
    monkeypatch.setattr(
        "vrag_kit.retrieval.encoders.loading.find_checkpoint",
        lambda spec, **_: retrievers_made / folders.get(spec, spec),
    )
    vlm2vec = load_encoder("TIGER-Lab/VLM2Vec-Qwen2VL-2B")
    assert vlm2vec.name == "TIGER-Lab-VLM2Vec-Qwen2VL-2B"
    assert vlm2vec.prompts == {
        "query": "Find me an everyday image that matches the given caption: {text}",
        "document": "<|image_pad|> Represent the given image.",
    }
    assert vlm2vec.model._processor.image_processor.size == {
        "shortest_edge": 3136,
        "longest_edge": 12845056,
    }
    dragon = load_encoder("facebook/dragon-plus-query-encoder")
    assert dragon.normalized is False
    assert (
        dragon.fingerprint
        == load_encoder(
            entry(retrievers_made, "bert", documents="facebook/dragon-plus-context-encoder")
        ).fingerprint
    )


@pytest.mark.slow
def test_two_encoders_rank_by_the_dot_product_of_first_tokens_as_a_plain_loop_does(
    retrievers_made: Path, documents: list[Document], tmp_path: Path
) -> None:
    from transformers import AutoModel, AutoTokenizer

    encoder = load_encoder(
        entry(retrievers_made, "bert", documents=str(retrievers_made / "context"))
    )
    assert encoder.normalized is False
    run = dense_run(encoder, embed_documents(encoder, documents, tmp_path), queries(), 4)

    def first_token(side: str, text: str) -> np.ndarray:
        tokens = AutoTokenizer.from_pretrained(retrievers_made / side)(text, return_tensors="pt")
        with torch.inference_mode():
            return (
                AutoModel.from_pretrained(retrievers_made / side)(**tokens)
                .last_hidden_state[0, 0]
                .numpy()
            )

    for query in queries():
        scores = {
            document.doc_id: float(
                first_token("bert", query.text) @ first_token("context", document.text)
            )
            for document in documents
        }
        found = run[run["query_id"] == query.query_id]
        assert list(found["doc_id"]) == sorted(scores, key=scores.__getitem__, reverse=True)
        np.testing.assert_allclose(
            found["score"], [scores[doc_id] for doc_id in found["doc_id"]], rtol=1e-4
        )


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [None, {"query": "query: ", "document": "passage: "}])
def test_a_sentence_transformers_folder_encodes_as_the_library_does(
    prompts: dict[str, str] | None, tmp_path: Path, documents: list[Document]
) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tiny.sentences(tmp_path / "sentences", prompts=prompts, normalize=prompts is None)
    library, encoder = SentenceTransformer(str(folder), device="cpu"), load_encoder(str(folder))
    np.testing.assert_allclose(
        encoder.encode_queries(queries()), library.encode_query(QUESTIONS), atol=1e-5
    )
    np.testing.assert_allclose(
        embed(encoder, documents),
        library.encode_document([document.text for document in documents]),
        atol=1e-5,
    )
    assert encoder.normalized is (prompts is None)
    assert encoder.prompts == (
        {"query": "query: {text}", "document": "passage: {text}"}
        if prompts
        else {"query": "{text}", "document": "{text}"}
    )


def test_a_part_of_a_sentence_transformers_folder_outside_of_it_is_not_opened(
    copy_retriever: Callable[[str], Path],
) -> None:
    folder = copy_retriever("sentences")
    parts = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    shutil.copytree(folder, folder.parent / "other")
    parts[0]["path"] = "../other"
    (folder / "modules.json").write_text(json.dumps(parts), encoding="utf-8")
    with pytest.raises(VragError, match=r"modules\.json: '\.\./other' points outside"):
        load_encoder(str(folder))


def test_given_prompts_replace_those_of_a_sentence_transformers_folder(
    retrievers_made: Path, documents: list[Document]
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(
        entry(
            retrievers_made,
            "sentences",
            query_prompt="query: {text}",
            document_prompt="passage: {text}",
        )
    )
    library = SentenceTransformer(str(retrievers_made / "sentences"), device="cpu")
    np.testing.assert_allclose(
        encoder.encode_queries(queries()),
        library.encode([f"query: {text}" for text in QUESTIONS]),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        embed(encoder, documents),
        library.encode([f"passage: {document.text}" for document in documents]),
        atol=1e-5,
    )
