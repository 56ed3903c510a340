"""First weights that find, from the start, the option that is being said."""

from __future__ import annotations

from typing import Any

import torch

from vrag_kit.fieldguide.training.answerer import Recipe, build_model
from vrag_kit.fieldguide.training.first_layers import LAYERS, give_first_layers
from vrag_kit.fieldguide.training.lessons import Plan

RECIPE = Recipe(Plan(told=0, guess=0, single=0, several=0, most=1), layers=LAYERS)


def small_model(seed: int) -> Any:
    """A model of 400 words with random weights."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(400)}, "w0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w1")
    torch.manual_seed(seed)
    model = build_model(RECIPE, tokenizer)
    model.set_attn_implementation("eager")
    return model


def listed(options: list[int]) -> list[int]:
    """ "(A) red", for each option: a letter is one of the words 10 to 13."""
    tokens = []
    for place, option in enumerate(options):
        tokens += [1, 10 + place, 2, option]
    return tokens


def attended(model: Any, tokens: list[int]) -> list[int]:
    """The place that the second layer's first head attends to most, at each token."""
    with torch.no_grad():
        ids = torch.tensor([tokens])
        out = model.model.language_model(input_ids=ids, output_attentions=True)
    return out.attentions[1][0, 0].argmax(1).tolist()


def test_two_tokens_after_an_option_is_said_its_place_in_the_list_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    found = []
    for seed in range(3):
        model = small_model(seed)
        give_first_layers(model, seed)
        for _ in range(10):
            options = (50 + torch.randperm(300, generator=generator)[:4]).tolist()
            said = int(torch.randint(4, (1,), generator=generator))
            tokens = [0, *listed(options), 3, 4, 5, options[said], 6, 7]  # "It is red, answer"
            found.append(attended(model, tokens)[-1] == tokens.index(options[said]))
    assert sum(found) >= 15  # of 30; by chance one or two


def test_what_stands_before_the_option_is_taken_along() -> None:
    model = small_model(7)
    give_first_layers(model, 7)
    letters = model.get_input_embeddings().weight[10:14].detach()
    options = [100, 150, 200, 250]
    right = 0
    for said in range(4):
        ids = torch.tensor([[0, *listed(options), 3, 4, 5, options[said], 6, 7]])
        with torch.no_grad():
            carried = model.model.language_model(input_ids=ids).last_hidden_state[0, -1]
        right += int((letters @ carried).argmax()) == said
    assert right >= 3
