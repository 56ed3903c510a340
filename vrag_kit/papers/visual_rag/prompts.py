"""Prompt templates of the paper (Table 11), and ours where it has none, marked in the file."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.generation.prompts import read_prompts

PROMPTS = read_prompts(Path(__file__).with_name("prompts.yaml"))
"""Prompt templates no_image, clue_image, one_image, several_images and text_passages, and the
template of each setting.
"""
