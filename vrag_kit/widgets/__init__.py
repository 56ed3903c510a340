"""Notebook panels for browsing and labelling, each with a static HTML version.

The panels are plain ipywidgets; the static versions need no kernel.
"""

from vrag_kit.widgets.annotation import label_answers, label_claims, labels_table
from vrag_kit.widgets.answers import answers_page, browse_answers, flips_page, show_prompt
from vrag_kit.widgets.conversations import conversations_page
from vrag_kit.widgets.multiple_choice import choices_page, multiple_choice_panel
