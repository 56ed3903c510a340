"""Generation: which images a question is asked with, how it is worded, which model answers, and where answers are kept."""

from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.endpoint import EndpointGenerator
from vrag_kit.generation.experiment import ask_all, ask_models
from vrag_kit.generation.generator import Forecast, Generator, Reply
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.local import LocalGenerator
from vrag_kit.generation.settings import DRAWS, ONE_IN_K, TOP_K, gt_clue, non_clue, one_in_k, top_k, zero_shot
from vrag_kit.generation.store import AnswerStore
from vrag_kit.generation.templates import render, template_of

__all__ = ["DRAWS", "ONE_IN_K", "TOP_K", "AnswerStore", "EndpointGenerator", "Forecast", "Generator", "LocalGenerator", "Reply", "ask_all", "ask_models", "ask_prompts",
           "gt_clue", "load_generator", "non_clue", "one_in_k", "render", "template_of", "top_k", "zero_shot"]
