"""Tiny multimodal checkpoints with random weights, in the layout of the real ones:
config, weights, tokenizer, chat template, processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from tiny_retrievers import byte_pairs

FAMILIES = (
    "llava",
    "qwen2_5_vl",
    "qwen3_vl",
    "gemma3",
    "internvl",
    "mllama",
    "pixtral",
    "phi4_multimodal",
)
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% for part in message['content'] %}{%"
    " if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor"
    " %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TEXTS = [
    "Please answer the question regarding a visual feature of an organism.",
    "What color are the hindwings of the moth?",
    "Answer: red and blue",
    "I don't know",
]


def _tokenizer(special: list[str], **more: Any) -> Any:
    names = ["<pad>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", *special]
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=byte_pairs(TEXTS, names),
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=names[1:4] + special,
        model_max_length=100_000,
        **more,
    )


_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
_TEXT = {
    **_SIZES,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
}


def _text(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """A text part's configuration that belongs to the tokenizer."""
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    return {**_TEXT, "vocab_size": len(tokenizer), **ends, **more}


def build(family: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny checkpoint of one of `FAMILIES` to `folder`."""
    torch.manual_seed(seed)
    makers = {
        "llava": _llava,
        "qwen2_5_vl": _qwen25,
        "qwen3_vl": _qwen3,
        "gemma3": _gemma,
        "internvl": _internvl,
        "mllama": _mllama,
        "pixtral": _pixtral,
        "phi4_multimodal": _phi4,
    }
    model, processor = makers[family]()
    model.generation_config.update(eos_token_id=processor.tokenizer.eos_token_id, pad_token_id=0)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    if family == "phi4_multimodal":
        _adapter(model, folder / "vision-lora")
    return folder


_BUILT: dict[str, Path] = {}


def built(family: str, folders: pytest.TempPathFactory) -> Path:
    """The checkpoint of a family, to read: it is built once for all test modules."""
    if family not in _BUILT:
        _BUILT[family] = build(family, folders.mktemp("models") / family)
    return _BUILT[family]


@contextmanager
def recorded_logits(model: Any) -> Iterator[list[torch.Tensor]]:
    """The logits behind the last token, (prompts, vocabulary), of each pass of a transformers
    model within the block.
    """
    passes: list[torch.Tensor] = []
    hook = model.lm_head.register_forward_hook(lambda _m, _i, out: passes.append(out[:, -1]))
    yield passes
    hook.remove()


def _adapter(model: Any, folder: Path) -> None:
    """Write a vision adapter beside a Phi-4 checkpoint, as its repository has one."""
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(
        model,
        LoraConfig(
            r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj"], init_lora_weights=False
        ),
    )
    adapted.save_pretrained(folder)


def _llava() -> tuple[Any, Any]:
    tokenizer = _tokenizer(["<image>"])
    text = hf.LlamaConfig(**_text(tokenizer))
    vision = hf.CLIPVisionConfig(
        **_SIZES,
        image_size=32,
        patch_size=16,
    )
    config = hf.LlavaConfig(
        text_config=text,
        vision_config=vision,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=4,
    )
    images = hf.CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)
    processor = hf.LlavaProcessor(
        images,
        tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT.replace("IMAGE", "<image>"),
        image_token="<image>",
    )
    return hf.LlavaForConditionalGeneration(config), processor


_VISION_TOKENS = ["<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|vision_end|>"]


_ROPE = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}


def _qwen_text(tokenizer: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """(text configuration, token ids) of both Qwen families."""
    names = ("vision_start_token_id", "image_token_id", "video_token_id", "vision_end_token_id")
    ids = {
        name: tokenizer.convert_tokens_to_ids(token)
        for name, token in zip(names, _VISION_TOKENS, strict=True)
    }
    return _text(tokenizer, rope_parameters=_ROPE), ids


_QWEN_VISION = {
    "hidden_size": 32,
    "num_heads": 2,
    "intermediate_size": 64,
    "patch_size": 8,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 32,
}


def _qwen_processor(whole: Any, videos: Any, tokenizer: Any) -> Any:
    """The processor of either Qwen family, of its classes for all and for videos."""
    images = hf.Qwen2VLImageProcessor(
        patch_size=8, merge_size=2, temporal_patch_size=2, min_pixels=16 * 16, max_pixels=64 * 64
    )
    return whole(
        images,
        tokenizer,
        videos(patch_size=8, merge_size=2, temporal_patch_size=2),
        chat_template=CHAT.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
    )


def _qwen25() -> tuple[Any, Any]:
    tokenizer = _tokenizer(_VISION_TOKENS)
    text, ids = _qwen_text(tokenizer)
    vision = {**_QWEN_VISION, "depth": 2, "window_size": 32, "fullatt_block_indexes": [1]}
    config = hf.Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids)
    processor = _qwen_processor(hf.Qwen2_5_VLProcessor, hf.Qwen2VLVideoProcessor, tokenizer)
    return hf.Qwen2_5_VLForConditionalGeneration(config), processor


def _qwen3() -> tuple[Any, Any]:
    tokenizer = _tokenizer(_VISION_TOKENS)
    text, ids = _qwen_text(tokenizer)
    vision = {**_QWEN_VISION, "depth": 3, "num_position_embeddings": 64}
    vision["deepstack_visual_indexes"] = [0, 1]
    config = hf.Qwen3VLConfig(text_config={**text, "head_dim": 16}, vision_config=vision, **ids)
    processor = _qwen_processor(hf.Qwen3VLProcessor, hf.Qwen3VLVideoProcessor, tokenizer)
    return hf.Qwen3VLForConditionalGeneration(config), processor


def _gemma() -> tuple[Any, Any]:
    names = {"boi_token": "<boi>", "image_token": "<image_soft_token>", "eoi_token": "<eoi>"}
    tokenizer = _tokenizer(list(names.values()), model_specific_special_tokens=names)
    boi, image, eoi = tokenizer.convert_tokens_to_ids(list(names.values()))
    text = hf.Gemma3TextConfig(**_text(tokenizer, head_dim=16, sliding_window=64))
    vision = hf.SiglipVisionConfig(
        **_SIZES,
        image_size=32,
        patch_size=8,
    )
    config = hf.Gemma3Config(
        text_config=text,
        vision_config=vision,
        mm_tokens_per_image=4,
        image_token_index=image,
        boi_token_index=boi,
        eoi_token_index=eoi,
    )
    processor = hf.Gemma3Processor(
        hf.Gemma3ImageProcessor(size={"height": 32, "width": 32}),
        tokenizer,
        chat_template=CHAT.replace("IMAGE", "<boi>"),
        image_seq_length=4,
    )
    model = hf.Gemma3ForConditionalGeneration(config)
    # zeros at first, which would make it blind
    model.model.multi_modal_projector.mm_input_projection_weight.data.normal_()
    return model, processor


def _internvl() -> tuple[Any, Any]:
    names = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = _tokenizer(list(names.values()), model_specific_special_tokens=names)
    text = hf.Qwen2Config(**_text(tokenizer, max_position_embeddings=4096))
    vision = hf.InternVLVisionConfig(
        **_SIZES,
        image_size=(32, 32),
        patch_size=(8, 8),
    )
    config = hf.InternVLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
    )
    images = hf.GotOcr2ImageProcessor(size={"height": 32, "width": 32})
    processor = hf.InternVLProcessor(
        images,
        tokenizer,
        hf.InternVLVideoProcessor(size={"height": 32, "width": 32}),
        image_seq_length=4,
        chat_template=CHAT.replace("IMAGE", "<IMG_CONTEXT>\n"),
    )
    return hf.InternVLForConditionalGeneration(config), processor


def _mllama() -> tuple[Any, Any]:
    from transformers.models.mllama.configuration_mllama import MllamaTextConfig, MllamaVisionConfig

    tokenizer = _tokenizer(["<|begin|>", "<|image|>", "<|python_tag|>"], bos_token="<|begin|>")
    image = tokenizer.convert_tokens_to_ids("<|image|>")
    text = MllamaTextConfig(
        **_text(tokenizer, max_position_embeddings=1024, bos_token_id=tokenizer.bos_token_id),
        cross_attention_layers=[1],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    vision = MllamaVisionConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_global_layers=1,
        attention_heads=2,
        intermediate_size=64,
        vision_output_dim=64,
        image_size=28,
        patch_size=14,
        intermediate_layers_indices=[0],
    )
    model = hf.MllamaForConditionalGeneration(
        hf.MllamaConfig(text_config=text, vision_config=vision, image_token_index=image)
    )
    for name, value in model.named_parameters():
        if name.endswith("gate"):
            value.data.fill_(1.0)  # zeros at first, which would make it blind
    images = hf.MllamaImageProcessor(size={"height": 28, "width": 28}, max_image_tiles=4)
    return model, hf.MllamaProcessor(
        images, tokenizer, chat_template="<|begin|>" + CHAT.replace("IMAGE", "<|image|>")
    )


def _pixtral() -> tuple[Any, Any]:
    tokenizer = _tokenizer(["[IMG]", "[IMG_BREAK]", "[IMG_END]"])
    text = hf.MistralConfig(**_text(tokenizer, max_position_embeddings=4096, head_dim=16))
    vision = hf.PixtralVisionConfig(
        **_SIZES,
        image_size=64,
        patch_size=8,
    )
    config = hf.LlavaConfig(
        text_config=text,
        vision_config=vision,
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
        image_seq_length=1,
    )
    images = hf.PixtralImageProcessor(
        size={"longest_edge": 64}, patch_size={"height": 8, "width": 8}
    )
    return hf.LlavaForConditionalGeneration(config), hf.PixtralProcessor(
        images, tokenizer, patch_size=8, chat_template=CHAT.replace("IMAGE", "[IMG]")
    )


def _phi4() -> tuple[Any, Any]:
    names = {"image_token": "<|image|>", "audio_token": "<|audio|>"}
    tokenizer = _tokenizer(list(names.values()), model_specific_special_tokens=names)
    image, audio = tokenizer.convert_tokens_to_ids(list(names.values()))
    vision = {
        **_SIZES,
        "image_token_id": image,
    }  # 448 and 14 are fixed in its processor
    audio_config = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_blocks": 1,
        "num_attention_heads": 2,
        "ext_pw_out_channel": 32,
        "depthwise_separable_out_channel": 32,
        "nemo_conv_channels": 32,
        "audio_token_id": audio,
    }
    config = hf.Phi4MultimodalConfig(
        **_text(tokenizer, max_position_embeddings=16384),
        original_max_position_embeddings=16384,
        vision_config=vision,
        audio_config=audio_config,
        sliding_window=None,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 1.0,
        },
    )
    processor = hf.Phi4MultimodalProcessor(
        hf.Phi4MultimodalImageProcessor(),
        hf.Phi4MultimodalFeatureExtractor(),
        tokenizer,
        chat_template=CHAT.replace("IMAGE", "<|image|>"),
    )
    return hf.Phi4MultimodalForCausalLM(config), processor
