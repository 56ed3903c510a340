"""MRAG-Suite drawn from the Field Guide: eight data sets in their own layouts, the
language that they speak, what each of their documents shows, and checkers of claims.
"""

from vrag_kit.fieldguide.suite.ambiguity import made_ambiguous
from vrag_kit.fieldguide.suite.assessing import (
    PUT_BACK,
    RULE,
    TRUTH,
    detect_all,
    open_ambiguous,
    say_anew,
)
from vrag_kit.fieldguide.suite.by_construction import fixed_means
from vrag_kit.fieldguide.suite.checking import open_rule_checker
from vrag_kit.fieldguide.suite.closed_book import ask_closed_book
from vrag_kit.fieldguide.suite.drawing import draw_suite
from vrag_kit.fieldguide.suite.facts import Fact, relation
from vrag_kit.fieldguide.suite.in_words import WITH_WORDS, InWords
from vrag_kit.fieldguide.suite.judges import open_judges
from vrag_kit.fieldguide.suite.long_answers import (
    LongAnswers,
    known_world,
    open_readers,
    with_references,
)
from vrag_kit.fieldguide.suite.looking import PictureChecker
from vrag_kit.fieldguide.suite.opening import World, open_suite, open_world
from vrag_kit.fieldguide.suite.true_claims import TrueClaims
from vrag_kit.fieldguide.suite.truth import TruthChecker
from vrag_kit.fieldguide.suite.wording import (
    FIELD_GUIDE,
    open_prompts,
    open_wording,
    open_wordings,
)

__all__ = [
    "FIELD_GUIDE",
    "PUT_BACK",
    "RULE",
    "TRUTH",
    "WITH_WORDS",
    "Fact",
    "InWords",
    "LongAnswers",
    "PictureChecker",
    "TrueClaims",
    "TruthChecker",
    "World",
    "ask_closed_book",
    "detect_all",
    "draw_suite",
    "fixed_means",
    "known_world",
    "made_ambiguous",
    "open_ambiguous",
    "open_judges",
    "open_prompts",
    "open_readers",
    "open_rule_checker",
    "open_suite",
    "open_wording",
    "open_wordings",
    "open_world",
    "relation",
    "say_anew",
    "with_references",
]
