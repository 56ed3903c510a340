"""Tiny multimodal checkpoints with random weights, in the layout of the real ones: config, weights, tokenizer, chat template, processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FAMILIES = ("llava", "qwen2_5_vl", "qwen3_vl", "gemma3")
CHAT = ("{% for message in messages %}<|{{ message['role'] }}|>{% for part in message['content'] %}{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}"
        "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")
TEXTS = ["Please answer the question regarding a visual feature of an organism.", "What color are the hindwings of the moth?", "Answer: red and blue", "I don't know"]


def _tokenizer(special: list[str], **more: Any) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    names = ["<pad>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", *special]
    bpe.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=names, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", eos_token="<|end|>", additional_special_tokens=names[1:4] + special, model_max_length=512, **more)


_TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0}


def build(family: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny checkpoint of one of `FAMILIES` to `folder`."""
    import torch

    torch.manual_seed(seed)
    model, processor = {"llava": _llava, "qwen2_5_vl": _qwen25, "qwen3_vl": _qwen3, "gemma3": _gemma}[family]()
    model.generation_config.update(eos_token_id=processor.tokenizer.eos_token_id, pad_token_id=0)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _llava() -> tuple[Any, Any]:
    from transformers import CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    tokenizer = _tokenizer(["<image>"])
    text = LlamaConfig(vocab_size=len(tokenizer), bos_token_id=None, eos_token_id=tokenizer.eos_token_id, **_TEXT)
    vision = CLIPVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=16)
    config = LlavaConfig(text_config=text, vision_config=vision, image_token_index=tokenizer.convert_tokens_to_ids("<image>"), image_seq_length=4)
    images = CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)
    processor = LlavaProcessor(images, tokenizer, patch_size=16, vision_feature_select_strategy="default", num_additional_image_tokens=1,
                               chat_template=CHAT.replace("IMAGE", "<image>"), image_token="<image>")
    return LlavaForConditionalGeneration(config), processor


_VISION_TOKENS = ["<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|vision_end|>"]


def _qwen_text(tokenizer: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """(text configuration, token ids) of both Qwen families."""
    names = ("vision_start_token_id", "image_token_id", "video_token_id", "vision_end_token_id")
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in zip(names, _VISION_TOKENS, strict=True)}
    return {**_TEXT, "vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id,
            "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}}, ids


def _qwen25() -> tuple[Any, Any]:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    tokenizer = _tokenizer(_VISION_TOKENS)
    text, ids = _qwen_text(tokenizer)
    vision = {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 32,
              "out_hidden_size": 32, "fullatt_block_indexes": [1]}
    images = Qwen2VLImageProcessor(patch_size=8, merge_size=2, temporal_patch_size=2, min_pixels=16 * 16, max_pixels=64 * 64)
    videos = Qwen2VLVideoProcessor(patch_size=8, merge_size=2, temporal_patch_size=2)
    processor = Qwen2_5_VLProcessor(images, tokenizer, videos, chat_template=CHAT.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"))
    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids)), processor


def _qwen3() -> tuple[Any, Any]:
    from transformers import Qwen2VLImageProcessor, Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor, Qwen3VLVideoProcessor

    tokenizer = _tokenizer(_VISION_TOKENS)
    text, ids = _qwen_text(tokenizer)
    vision = {"depth": 3, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2,
              "out_hidden_size": 32, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
    images = Qwen2VLImageProcessor(patch_size=8, merge_size=2, temporal_patch_size=2, min_pixels=16 * 16, max_pixels=64 * 64)
    videos = Qwen3VLVideoProcessor(patch_size=8, merge_size=2, temporal_patch_size=2)
    processor = Qwen3VLProcessor(images, tokenizer, videos, chat_template=CHAT.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"))
    return Qwen3VLForConditionalGeneration(Qwen3VLConfig(text_config={**text, "head_dim": 16}, vision_config=vision, **ids)), processor


def _gemma() -> tuple[Any, Any]:
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessor, Gemma3Processor, Gemma3TextConfig, SiglipVisionConfig

    names = {"boi_token": "<boi>", "image_token": "<image_soft_token>", "eoi_token": "<eoi>"}
    tokenizer = _tokenizer(list(names.values()), model_specific_special_tokens=names)
    boi, image, eoi = tokenizer.convert_tokens_to_ids(list(names.values()))
    text = Gemma3TextConfig(**{**_TEXT, "vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "head_dim": 16, "sliding_window": 64})
    vision = SiglipVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8)
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=image, boi_token_index=boi, eoi_token_index=eoi)
    processor = Gemma3Processor(Gemma3ImageProcessor(size={"height": 32, "width": 32}), tokenizer, chat_template=CHAT.replace("IMAGE", "<boi>"), image_seq_length=4)
    model = Gemma3ForConditionalGeneration(config)
    model.model.multi_modal_projector.mm_input_projection_weight.data.normal_()  # zeros at first, which would make it blind
    return model, processor
