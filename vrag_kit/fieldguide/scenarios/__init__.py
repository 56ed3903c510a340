"""MRAG-Bench's nine scenarios drawn with the guide's organisms: an edition in the data
set's own layout, and fresh questions for training.
"""

from vrag_kit.fieldguide.scenarios.lessons import Lesson, Pictures, lesson
from vrag_kit.fieldguide.scenarios.table import SCENARIOS
from vrag_kit.fieldguide.scenarios.topics import known_species, told_names

__all__ = ["SCENARIOS", "Lesson", "Pictures", "known_species", "lesson", "told_names"]
