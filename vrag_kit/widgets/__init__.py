"""Notebook panels for browsing and labelling, each with a static HTML version.

The panels are plain ipywidgets; the static versions need no kernel.
"""

from vrag_kit.widgets.annotation import label_answers as label_answers
from vrag_kit.widgets.annotation import label_claims as label_claims
from vrag_kit.widgets.annotation import labels_table as labels_table
from vrag_kit.widgets.answers import answers_page as answers_page
from vrag_kit.widgets.answers import browse_answers as browse_answers
from vrag_kit.widgets.answers import flips_page as flips_page
from vrag_kit.widgets.conversations import browse_conversations as browse_conversations
from vrag_kit.widgets.conversations import conversations_page as conversations_page
from vrag_kit.widgets.multiple_choice import choices_page as choices_page
from vrag_kit.widgets.multiple_choice import multiple_choice_panel as multiple_choice_panel
