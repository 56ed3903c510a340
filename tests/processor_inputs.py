"""Model inputs as transformers' own processor prepares them: the oracle of the kit's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vrag_kit.types import Message, Prompt


def prepared(processor: Any, prompts: Sequence[Prompt]) -> dict[str, Any]:
    """The model's inputs for a batch, pixels included, padded to the longest prompt."""
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
