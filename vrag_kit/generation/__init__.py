"""Generate answers: evidence contexts, prompts, models, and the answer store."""

from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.contexts import (
    TOP_K,
    baseline_contexts,
    clue_position_sweep,
    clue_with_distractors,
    cutoffs_above_one,
    distractor_sets,
    first_clue,
    gcue_contexts,
    gt_clue,
    m_gt,
    m_in_k,
    non_clue,
    one_in_k,
    one_in_k_easy,
    top_k,
    with_blank_images,
    with_min_clues,
    zero_shot,
)
from vrag_kit.generation.conversation import ConversationConfig, EarlyStop, TokenLimit
from vrag_kit.generation.evidence_modes import evidence_modes, top_k_per_modality
from vrag_kit.generation.experiment import (
    ask_conversations,
    ask_models,
    build_prompt,
    pending_answers,
)
from vrag_kit.generation.generators import Reply, load_generator
from vrag_kit.generation.local.generator import LocalGenerator
from vrag_kit.generation.prompts import read_prompts
from vrag_kit.generation.rendering import render
from vrag_kit.generation.rewriting import load_rewriter
from vrag_kit.generation.store import AnswerStore, stored_field
from vrag_kit.types import Failure, Status
