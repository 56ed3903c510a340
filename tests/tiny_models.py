"""Tiny multimodal checkpoints with random weights, in the layout of the real ones:
config, weights, tokenizer, chat template, processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tiny_retrievers import SIZES, TEXTS, byte_pairs

from vrag_kit.types import Message, Prompt

CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% for part in message['content'] %}{%"
    " if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor"
    " %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_TEXT = {**SIZES, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0}
Made = tuple[Any, Any]  # a model and its processor


def _tokenizer(special: list[str], **more: Any) -> Any:
    names = ["<pad>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", *special]
    more |= {"pad_token": "<pad>", "eos_token": "<|end|>", "model_max_length": 100_000}
    pairs, own = byte_pairs(TEXTS, names), names[1:4] + special
    return hf.PreTrainedTokenizerFast(tokenizer_object=pairs, additional_special_tokens=own, **more)


def _named_tokenizer(**names: str) -> tuple[Any, list[int]]:
    """A tokenizer that knows its special tokens by these names, and their ids."""
    tokens = list(names.values())
    tokenizer = _tokenizer(tokens, model_specific_special_tokens=names)
    return tokenizer, tokenizer.convert_tokens_to_ids(tokens)


def _text(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """A text part's configuration that belongs to the tokenizer."""
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    return {**_TEXT, "vocab_size": len(tokenizer), **ends, **more}


def _chat(image: str) -> str:
    """A chat template that writes an image as this."""
    return CHAT.replace("IMAGE", image)


def build(family: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny checkpoint of one of `FAMILIES` to `folder`."""
    torch.manual_seed(seed)
    model, processor = FAMILIES[family]()
    model.generation_config.update(eos_token_id=processor.tokenizer.eos_token_id, pad_token_id=0)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    if family == "phi4_multimodal":
        _adapter(model, folder / "vision-lora")
    return folder


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

    where = ["qkv_proj", "o_proj"]
    config = LoraConfig(r=4, lora_alpha=8, target_modules=where, init_lora_weights=False)
    get_peft_model(model, config).save_pretrained(folder)


def _llava() -> Made:
    tokenizer = _tokenizer(["<image>"])
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(**_text(tokenizer)),
        vision_config=hf.CLIPVisionConfig(**SIZES, image_size=32, patch_size=16),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=4,
    )
    images = hf.CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)
    counted = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    processor = hf.LlavaProcessor(
        images, tokenizer, patch_size=16, chat_template=_chat("<image>"), **counted
    )
    return hf.LlavaForConditionalGeneration(config), processor


_VISION_TOKENS = ["<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|vision_end|>"]
_ROPE = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
_QWEN_VISION = {
    "hidden_size": 32,
    "num_heads": 2,
    "intermediate_size": 64,
    "patch_size": 8,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 32,
}


def qwen(name: str, whole: Any, depth: int, text: dict[str, Any], **vision: Any) -> Made:
    """A Qwen family by its name in transformers, and the class of its whole model."""
    tokenizer = _tokenizer(_VISION_TOKENS)
    names = ("vision_start_token_id", "image_token_id", "video_token_id", "vision_end_token_id")
    ids = zip(names, tokenizer.convert_tokens_to_ids(_VISION_TOKENS), strict=True)
    config = getattr(hf, f"{name}Config")(
        text_config={**_text(tokenizer, rope_parameters=_ROPE), **text},
        vision_config={**_QWEN_VISION, "depth": depth, **vision},
        **dict(ids),
    )
    patches = {"patch_size": 8, "merge_size": 2, "temporal_patch_size": 2}
    images = hf.Qwen2VLImageProcessor(**patches, min_pixels=16 * 16, max_pixels=64 * 64)
    videos = hf.Qwen3VLVideoProcessor if depth == 3 else hf.Qwen2VLVideoProcessor
    chat = _chat("<|vision_start|><|image_pad|><|vision_end|>")
    made = getattr(hf, f"{name}Processor")
    return whole(config), made(images, tokenizer, videos(**patches), chat_template=chat)


def _qwen25() -> Made:
    vision = {"window_size": 32, "fullatt_block_indexes": [1]}
    return qwen("Qwen2_5_VL", hf.Qwen2_5_VLForConditionalGeneration, 2, {}, **vision)


def _qwen3() -> Made:
    vision = {"num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
    return qwen("Qwen3VL", hf.Qwen3VLForConditionalGeneration, 3, {"head_dim": 16}, **vision)


def _gemma() -> Made:
    tokenizer, (boi, image, eoi) = _named_tokenizer(
        boi_token="<boi>", image_token="<image_soft_token>", eoi_token="<eoi>"
    )
    config = hf.Gemma3Config(
        text_config=hf.Gemma3TextConfig(**_text(tokenizer, head_dim=16, sliding_window=64)),
        vision_config=hf.SiglipVisionConfig(**SIZES, image_size=32, patch_size=8),
        mm_tokens_per_image=4,
        image_token_index=image,
        boi_token_index=boi,
        eoi_token_index=eoi,
    )
    images = hf.Gemma3ImageProcessor(size={"height": 32, "width": 32})
    processor = hf.Gemma3Processor(
        images, tokenizer, chat_template=_chat("<boi>"), image_seq_length=4
    )
    model = hf.Gemma3ForConditionalGeneration(config)
    # zeros at first, which would make it blind
    model.model.multi_modal_projector.mm_input_projection_weight.data.normal_()
    return model, processor


def _internvl() -> Made:
    tokenizer, (_, _, image, _) = _named_tokenizer(
        start_image_token="<img>",
        end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )
    config = hf.InternVLConfig(
        text_config=hf.Qwen2Config(**_text(tokenizer, max_position_embeddings=4096)),
        vision_config=hf.InternVLVisionConfig(**SIZES, image_size=(32, 32), patch_size=(8, 8)),
        image_token_id=image,
        image_seq_length=4,
    )
    size = {"height": 32, "width": 32}
    images, videos = hf.GotOcr2ImageProcessor(size=size), hf.InternVLVideoProcessor(size=size)
    chat = _chat("<IMG_CONTEXT>\n")
    processor = hf.InternVLProcessor(
        images, tokenizer, videos, image_seq_length=4, chat_template=chat
    )
    return hf.InternVLForConditionalGeneration(config), processor


def _mllama() -> Made:
    from transformers.models.mllama.configuration_mllama import MllamaTextConfig, MllamaVisionConfig

    tokenizer = _tokenizer(["<|begin|>", "<|image|>", "<|python_tag|>"], bos_token="<|begin|>")
    begin, image = tokenizer.convert_tokens_to_ids(["<|begin|>", "<|image|>"])
    text = MllamaTextConfig(
        **_text(tokenizer, max_position_embeddings=1024, bos_token_id=begin),
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
    config = hf.MllamaConfig(text_config=text, vision_config=vision, image_token_index=image)
    model = hf.MllamaForConditionalGeneration(config)
    for name, value in model.named_parameters():
        if name.endswith("gate"):
            value.data.fill_(1.0)  # zeros at first, which would make it blind
    images = hf.MllamaImageProcessor(size={"height": 28, "width": 28}, max_image_tiles=4)
    chat = "<|begin|>" + _chat("<|image|>")
    return model, hf.MllamaProcessor(images, tokenizer, chat_template=chat)


def _pixtral() -> Made:
    tokenizer = _tokenizer(["[IMG]", "[IMG_BREAK]", "[IMG_END]"])
    text = _text(tokenizer, max_position_embeddings=4096, head_dim=16)
    config = hf.LlavaConfig(
        text_config=hf.MistralConfig(**text),
        vision_config=hf.PixtralVisionConfig(**SIZES, image_size=64, patch_size=8),
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
        image_seq_length=1,
    )
    sizes = {"size": {"longest_edge": 64}, "patch_size": {"height": 8, "width": 8}}
    images = hf.PixtralImageProcessor(**sizes)
    processor = hf.PixtralProcessor(images, tokenizer, patch_size=8, chat_template=_chat("[IMG]"))
    return hf.LlavaForConditionalGeneration(config), processor


def _phi4() -> Made:
    tokenizer, (image, audio) = _named_tokenizer(image_token="<|image|>", audio_token="<|audio|>")
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}
    hearing = {
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
        vision_config={**SIZES, "image_token_id": image},  # its processor fixes 448 and 14
        audio_config=hearing,
        sliding_window=None,
        rope_parameters=rope,
    )
    images, sounds = hf.Phi4MultimodalImageProcessor(), hf.Phi4MultimodalFeatureExtractor()
    chat = _chat("<|image|>")
    processor = hf.Phi4MultimodalProcessor(images, sounds, tokenizer, chat_template=chat)
    return hf.Phi4MultimodalForCausalLM(config), processor


FAMILIES = {
    "llava": _llava,
    "qwen2_5_vl": _qwen25,
    "qwen3_vl": _qwen3,
    "gemma3": _gemma,
    "internvl": _internvl,
    "mllama": _mllama,
    "pixtral": _pixtral,
    "phi4_multimodal": _phi4,
}


def prepared(processor: Any, prompts: Sequence[Prompt]) -> dict[str, Any]:
    """A batch as transformers' own processor prepares it: the oracle of the kit's."""
    inputs = processor.apply_chat_template(
        [[_message(message) for message in prompt] for prompt in prompts],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        processor_kwargs={"padding": True},
    )
    return dict(inputs)


def _message(message: Message) -> dict[str, Any]:
    content = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image", "image": part.open()}
        for part in message.parts
    ]
    return {"role": message.role, "content": content}
