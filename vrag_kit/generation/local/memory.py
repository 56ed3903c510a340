"""Compare the memory of a model's weights and attention cache with that of its device.

This is reported before the weights are loaded.
"""

from __future__ import annotations

from pathlib import Path

import psutil
import torch

from vrag_kit.checkpoints import LibraryObject

_SHRINK = {None: 1.0, "8bit": 0.55, "4bit": 0.3}
"""What quantization leaves of 16-bit weights; embeddings and norms stay as they are."""


def weight_bytes(
    folder: Path, config: LibraryObject, *, dtype: str, quantization: str | None
) -> int:
    """Estimate the bytes of a checkpoint's weights from the size of its files."""
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    have = _size(getattr(config, "dtype", None) or torch.float32)
    want = have if dtype == "auto" else _size(getattr(torch, dtype))
    return int(stored * _SHRINK.get(quantization, 1.0) * want / have)


def cache_bytes(config: LibraryObject, tokens: int, bytes_a_number: int) -> int:
    """Return the bytes of attention keys and values for `tokens` tokens of one prompt."""
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return int(2 * text.num_hidden_layers * heads * width * tokens * bytes_a_number)


def memory_note(config: LibraryObject, weights: int, tokens: int, device: str) -> str:
    """Return a note on the memory that weights and the longest prompt's cache need, and what is
    free on the device; "" if they need less than a tenth of it.
    """
    cache = cache_bytes(config, tokens, _size(getattr(config, "dtype", None)))
    if device.startswith("cuda") and torch.cuda.is_available():
        free = torch.cuda.mem_get_info(torch.device(device))[0]
        where = device
    else:
        free = psutil.virtual_memory().available
        where = "this machine's memory"
    if weights + cache < 0.1 * free:
        return ""
    verdict = ""
    if weights + cache >= 0.9 * free:
        verdict = (
            ": too little, unless the weights are there already. Quantize, or make pictures smaller"
        )
    return (
        f"weights take {weights / 2**30:.1f} GiB and the longest prompt's attention cache"
        f" {cache / 2**30:.2f} GiB, activations come on top; {where} has {free / 2**30:.1f} GiB"
        f" free{verdict}"
    )


def _size(dtype: object) -> int:
    """Bytes of a number; 4 where a config has another word for its type."""
    return torch.tensor([], dtype=dtype).element_size() if isinstance(dtype, torch.dtype) else 4
