"""Panels for what needs a person at the screen, each with a twin in HTML.

The panels are plain ipywidgets; the twins are read without a kernel.
"""

from vrag_kit.widgets.cases import browse_cases, cases_page
from vrag_kit.widgets.choosing import choices_page, choose_options
from vrag_kit.widgets.claim_labelling import label_claims
from vrag_kit.widgets.conversations import browse_conversations, conversations_page
from vrag_kit.widgets.flips import flips_page
from vrag_kit.widgets.labelling import label_answers, labels_table

__all__ = [
    "browse_cases",
    "browse_conversations",
    "cases_page",
    "choices_page",
    "choose_options",
    "conversations_page",
    "flips_page",
    "label_answers",
    "label_claims",
    "labels_table",
]
