"""Tiny retrievers with random weights, in the layout of the real ones: config, weights,
tokenizer, preprocessing; written by the real classes.
"""

from __future__ import annotations

import json
import re
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from vrag_kit.types import Document, Query

WEIGHTS = Path(__file__).parents[1] / "vrag_kit" / "synthetic" / "weights"
TEXTS = [
    "What color are the hindwings of the moth?",
    "A goose has black feet and a white belly.",
    "Find me an everyday image that matches the given caption:",
]
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


QUESTIONS = ["What color are the hindwings of the moth?", "a goose", "Black feet, white belly"]
PROMPTS = {
    "query_prompt": "Find: {text}",
    "document_prompt": "<|image_pad|> Represent the given image.",
}
SEQUENTIAL = {**PROMPTS, "positions": "sequential"}
FAMILIES = ["clip", "siglip", "siglip2", "qwen2_vl", "lora", "bert", "sentences", "open_clip"]


def clip(folder: Path) -> Path:
    """A CLIPModel of transformers with a byte-level tokenizer that begins and ends
    texts as CLIP's does.
    """
    tokenizer = _byte_tokenizer(["<pad>", "<|startoftext|>", "<|endoftext|>"], length=77, wrap=True)
    text = _text(tokenizer, 77, hidden_act="quick_gelu", bos_token_id=1, eos_token_id=2)
    vision = {**SIZES, "image_size": 32, "patch_size": 8, "hidden_act": "quick_gelu"}
    config = hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    crop = {"height": 32, "width": 32}
    images = hf.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=crop)
    return _save(folder, hf.CLIPModel, config, tokenizer, images)


def siglip(folder: Path, tokenizer: Any = None) -> Path:
    """A SiglipModel; its texts are padded to 16 tokens, and the padding is attended to."""
    tokenizer = tokenizer or _byte_tokenizer(["<pad>"], length=16)
    text = _text(tokenizer, 16, projection_size=32, bos_token_id=None, eos_token_id=None)
    vision = {**SIZES, "image_size": 32, "patch_size": 8}
    config = hf.SiglipConfig(text_config=text, vision_config=vision)
    images = hf.SiglipImageProcessor(size={"height": 32, "width": 32})
    return _save(folder, hf.SiglipModel, config, tokenizer, images)


def siglip2_tokenizer(length: int) -> Any:
    """A tokenizer of SigLIP 2, which lowers texts, with bytes as its words."""
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    names += [f"<0x{byte:02X}>" for byte in range(256)]
    words = {name: i for i, name in enumerate(names)}
    return hf.Siglip2Tokenizer(vocab=words, padding_side="right", model_max_length=length)


def siglip2(folder: Path) -> Path:
    """A Siglip2Model with pictures of their own shape (NaFlex): patches, a mask of the
    padding ones, and the grid's shape.
    """
    tokenizer = siglip2_tokenizer(64)
    text = _text(tokenizer, 64, projection_size=32, bos_token_id=2, eos_token_id=1)
    vision = {**SIZES, "patch_size": 8, "num_patches": 16}
    config = hf.Siglip2Config(text_config=text, vision_config=vision)
    images = hf.Siglip2ImageProcessor(patch_size=8, max_num_patches=16)
    return _save(folder, hf.Siglip2Model, config, tokenizer, images)


def qwen2_vl(folder: Path) -> Path:
    """A Qwen2-VL for conditional generation, the architecture under VLM2Vec."""
    from tiny_models import qwen

    torch.manual_seed(0)
    vision = {"embed_dim": 32, "mlp_ratio": 2}
    model, processor = qwen("Qwen2VL", hf.Qwen2VLForConditionalGeneration, 2, {}, **vision)
    _louder(model).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def open_clip(folder: Path, side: int = 32, **changes: Any) -> Path:
    """A folder in open_clip's layout, with the tokenizer of the demo's CLIP; `changes` are of the
    model's configuration, `preprocess` of that of images.
    """
    import open_clip

    preprocess = {"mean": [0.5, 0.4, 0.3], "std": [0.25, 0.2, 0.3], "interpolation": "bicubic"}
    preprocess |= {"resize_mode": "shortest", **changes.pop("preprocess", {})}
    vision = {"image_size": side, "patch_size": 8, "width": 32, "layers": 1, "head_width": 16}
    text = {"context_length": 32, "vocab_size": 1024, "width": 32, "heads": 2, "layers": 2}
    text |= {"hf_tokenizer_name": ".", "tokenizer_kwargs": {"strip_sep_token": False}}
    model = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text, **changes}
    folder.mkdir()
    stated = {"model_cfg": model, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(stated), encoding="utf-8")
    for file in (WEIGHTS / "field-guide-clip-32").glob("token*.json"):
        shutil.copy(file, folder)
    torch.manual_seed(0)
    made = _louder(open_clip.create_model(f"local-dir:{folder}", load_weights=False))
    state = {name: values.contiguous() for name, values in made.state_dict().items()}
    save_file(state, folder / "open_clip_model.safetensors")
    return folder


def lens(folder: Path) -> Path:
    """The head of a MagicLens, and in it the open_clip model that it stands on."""
    from vrag_kit.retrieval.encoders.magiclens import HeadConfig, MagicLensHead

    sizes = {"width": 12, "layers": 2, "heads": 3, "hidden": 40, "pooled": 48}
    pixels = {"interpolation": "bilinear", "resize_mode": "squash"}
    folder.mkdir()
    open_clip(folder / "clip", embed_dim=12, quick_gelu=True, preprocess=pixels)
    weights = MagicLensHead(HeadConfig(**sizes)).state_dict()
    for values in weights.values():
        values += 0.4 * torch.randn_like(values)
    save_file(weights, folder / "model.safetensors")
    config = {"model_type": "magiclens", "base": "clip", **sizes}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def llava_next(folder: Path) -> Path:
    """A LLaVA-NeXT with a Llama, the architecture of E5-V; its processor was saved by an
    older transformers and does not tell how tokens are counted.
    """
    marks = ["<image>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    tokenizer = _byte_tokenizer(["<|endoftext|>", *marks], length=512)
    vision = {**SIZES, "model_type": "clip_vision_model", "image_size": 32, "patch_size": 8}
    grids = {"image_grid_pinpoints": [[32, 64], [64, 32], [64, 64]]}
    config = hf.LlavaNextConfig(
        text_config=_text(tokenizer, 512, model_type="llama", num_key_value_heads=2),
        vision_config=vision,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        **grids,
    )
    crop = {"height": 32, "width": 32}
    images = hf.LlavaNextImageProcessor(size={"shortest_edge": 32}, crop_size=crop, **grids)
    processor = hf.LlavaNextProcessor(images, tokenizer)
    return _save(folder, hf.LlavaNextForConditionalGeneration, config, processor)


def lora(folder: Path, base: Path) -> Path:
    """A LoRA adapter of `base` whose weights are not zero, with the base's processor
    beside it, as VLM2Vec ships it.
    """
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    where = ["q_proj", "v_proj", "down_proj", "qkv"]
    config = LoraConfig(r=4, lora_alpha=16, target_modules=where)
    model = get_peft_model(hf.AutoModelForImageTextToText.from_pretrained(base), config)
    for name, weight in model.named_parameters():
        if ".lora_" in name:
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    hf.AutoProcessor.from_pretrained(base).save_pretrained(folder)
    return folder


def bert(folder: Path, *, seed: int = 0) -> Path:
    """A BertModel with a word-piece tokenizer, as each side of DRAGON+ is."""
    tokenizer = _word_tokenizer()
    config = hf.BertConfig(**_text(tokenizer, 64))
    return _save(folder, hf.BertModel, config, tokenizer, seed=seed)


def sentences(
    folder: Path, *, prompts: dict[str, str] | None = None, normalize: bool = True
) -> Path:
    """A sentence-transformers folder: BERT, mean pooling, and unit length if
    `normalize`.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    transformer = Transformer(str(bert(folder.with_name(f"{folder.name}-bert"))))
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    modules = [transformer, pooling, *([Normalize()] if normalize else [])]
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save_pretrained(str(folder))
    return folder


def edit_json(path: Path, part: str = "", **changes: Any) -> None:
    """Change keys of a JSON file, or of the mapping `part` in it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    (content[part] if part else content).update(changes)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_weights(path: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the tensors of a safetensors file."""
    state = load_file(path)
    edit(state)
    whole = {name: values.contiguous() for name, values in state.items()}
    save_file(whole, path, metadata={"format": "pt"})


def _text(tokenizer: Any, positions: int, **more: Any) -> dict[str, Any]:
    """A text part's configuration that belongs to the tokenizer."""
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": positions, "pad_token_id": 0}
    return {**SIZES, **sizes, **more}


def _louder(model: Any) -> Any:
    """Random weights so large that different inputs give clearly different vectors."""
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.2)
    return model


def _save(folder: Path, model: Any, config: Any, *parts: Any, seed: int = 0) -> Path:
    """Write a model of random weights and what belongs to it."""
    torch.manual_seed(seed)
    _louder(model(config)).save_pretrained(folder)
    for part in parts:
        part.save_pretrained(folder)
    return folder


def byte_pairs(texts: list[str], special: list[str]) -> Any:
    """A tokenizer of byte-level pairs, trained on the texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    how = {"vocab_size": 400, "special_tokens": special, "initial_alphabet": letters}
    bpe.train_from_iterator(texts, trainers.BpeTrainer(show_progress=False, **how))
    return bpe


def _byte_tokenizer(special: list[str], *, length: int, wrap: bool = False) -> Any:
    """Byte-level pairs; `special` begins with the padding token.

    `wrap` puts the next two around every text.
    """
    from tokenizers import processors

    bpe = byte_pairs(TEXTS, special)
    if wrap:
        bpe.post_processor = processors.TemplateProcessing(
            single=f"{special[1]} $A {special[2]}",
            special_tokens=[(special[1], 1), (special[2], 2)],
        )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token=special[0],
        eos_token=special[2 if wrap else 0],
        additional_special_tokens=special[1:],
        model_max_length=length,
    )


def _word_tokenizer() -> Any:
    """Word pieces: the words of `TEXTS`, and every letter for the others. It is not
    trained, as the order of what `WordPieceTrainer` gives differs from process to process.
    """
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word for text in TEXTS for word in re.findall(r"\w+|[^\w\s]", text.lower())}
    letters = sorted({letter for word in words for letter in word} | set(string.ascii_lowercase))
    within = [f"##{letter}" for letter in letters]
    pieces = [*special, *letters, *within, *sorted(words.difference(letters))]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    return hf.BertTokenizer(vocab=vocabulary, model_max_length=64)


def queries(texts: list[str] = QUESTIONS) -> list[Query]:
    return [Query(query_id=f"q{i}", text=text) for i, text in enumerate(texts)]


def embed(encoder: Any, documents: list[Document]) -> np.ndarray:
    return encoder.encode_documents([encoder.prepare(document) for document in documents])


def entry(retrievers_made: Path, family: str, **more: Any) -> dict[str, Any]:
    """The entry that loads a family's tiny checkpoint."""
    own = {"bert": {"pooling": "cls", "normalize": False}}
    own |= dict.fromkeys(("qwen2_vl", "lora"), SEQUENTIAL)
    return {"model": str(retrievers_made / family), **own.get(family, {}), **more}
