"""The paper's prompts (Table 11), and ours where it gives none, marked in the file."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.generation.wording import read_wording

WORDING = read_wording(Path(__file__).with_name("wording.json"))
"""Templates no_image, clue_image, one_image, several_images and text_passages, and
which of them each setting uses.
"""
