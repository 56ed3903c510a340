"""Generation: which images a question is asked with, how it is worded, which model
answers, and where answers are kept.
"""

from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.contexts import (
    CLUES,
    DRAWS,
    ONE_IN_K,
    TOP_K,
    enough_clues,
    clue_moved,
    first_clue,
    gt_clue,
    m_gt,
    m_in_k,
    non_clue,
    one_in_k,
    one_in_k_easy,
    top_k,
    zero_shot,
)
from vrag_kit.generation.experiment import ask_all, ask_models
from vrag_kit.generation.generator import Forecast, Generator, Reply
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.local.model import LocalGenerator
from vrag_kit.generation.remote.endpoint import EndpointGenerator
from vrag_kit.generation.templates import render, template_of

__all__ = [
    "CLUES",
    "DRAWS",
    "ONE_IN_K",
    "TOP_K",
    "AnswerStore",
    "EndpointGenerator",
    "Forecast",
    "Generator",
    "LocalGenerator",
    "Reply",
    "ask_all",
    "ask_models",
    "ask_prompts",
    "enough_clues",
    "clue_moved",
    "first_clue",
    "gt_clue",
    "load_generator",
    "m_gt",
    "m_in_k",
    "non_clue",
    "one_in_k",
    "one_in_k_easy",
    "render",
    "template_of",
    "top_k",
    "zero_shot",
]
