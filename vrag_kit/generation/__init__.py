"""Generation: which images a question is asked with, how it is worded, which model
answers, and where answers are kept.
"""

from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.arms import baselines, gcue_arms
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.asking_options import Asking, Round
from vrag_kit.generation.company import clue_among, company, with_blanks
from vrag_kit.generation.contexts import (
    ONE_IN_K,
    TOP_K,
    clue_moved,
    enough_clues,
    first_clue,
    gt_clue,
    m_gt,
    m_in_k,
    non_clue,
    one_in_k,
    one_in_k_easy,
    over_one,
    top_k,
    zero_shot,
)
from vrag_kit.generation.cutting import Cut
from vrag_kit.generation.evidence import MODES, evidence_modes, side_by_side
from vrag_kit.generation.experiment import ask_all, ask_conversations, ask_models, prompt_of, to_ask
from vrag_kit.generation.generator import Forecast, Generator, Reply
from vrag_kit.generation.loading import load_generator
from vrag_kit.generation.local.model import LocalGenerator
from vrag_kit.generation.parts import Decomposed, Part
from vrag_kit.generation.people import people_answers, read_choices
from vrag_kit.generation.probabilities import reply_probabilities
from vrag_kit.generation.remote.endpoint import EndpointGenerator
from vrag_kit.generation.rendering import render
from vrag_kit.generation.rewriting import load_rewriter
from vrag_kit.generation.talk import EarlyStop, Talk
from vrag_kit.generation.told import told_facts
from vrag_kit.generation.wording import Wording, read_wording
from vrag_kit.outcomes import Failure, Status

__all__ = [
    "MODES",
    "ONE_IN_K",
    "TOP_K",
    "AnswerStore",
    "Asking",
    "Cut",
    "Decomposed",
    "EarlyStop",
    "EndpointGenerator",
    "Failure",
    "Forecast",
    "Generator",
    "LocalGenerator",
    "Part",
    "Reply",
    "Round",
    "Status",
    "Talk",
    "Wording",
    "ask_all",
    "ask_conversations",
    "ask_models",
    "ask_prompts",
    "baselines",
    "clue_among",
    "clue_moved",
    "company",
    "enough_clues",
    "evidence_modes",
    "first_clue",
    "gcue_arms",
    "gt_clue",
    "load_generator",
    "load_rewriter",
    "m_gt",
    "m_in_k",
    "non_clue",
    "one_in_k",
    "one_in_k_easy",
    "over_one",
    "people_answers",
    "prompt_of",
    "read_choices",
    "read_wording",
    "render",
    "reply_probabilities",
    "side_by_side",
    "to_ask",
    "told_facts",
    "top_k",
    "with_blanks",
    "zero_shot",
]
