"""Notebook panels for browsing and labelling, each with a static HTML version.

The panels are plain ipywidgets; the static versions need no kernel.
"""

from vrag_kit.widgets.answers import answers_page, browse_answers
from vrag_kit.widgets.claim_labelling import label_claims
from vrag_kit.widgets.conversations import browse_conversations, conversations_page
from vrag_kit.widgets.disagreements import flips_page
from vrag_kit.widgets.labelling import label_answers, labels_table
from vrag_kit.widgets.multiple_choice import choices_page, multiple_choice_panel

__all__ = [
    "answers_page",
    "browse_answers",
    "browse_conversations",
    "choices_page",
    "conversations_page",
    "flips_page",
    "label_answers",
    "label_claims",
    "labels_table",
    "multiple_choice_panel",
]
