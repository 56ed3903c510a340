"""The checker of claims about the drawn suite, as a notebook's parameters name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vrag_kit.claims import RuleChecker, forbid_self_check
from vrag_kit.config import Entry
from vrag_kit.synthetic.mrag_suite.looking import VisualClaimChecker
from vrag_kit.synthetic.mrag_suite.opening import GroundTruth

_TOKENS = 16  # of a reply


def open_rule_checker(
    world: GroundTruth,
    pictures: Entry,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> RuleChecker:
    """Rules for texts of the guide's language, and the model that `pictures` names for
    pictures; its words are kept in `answers_dir`, as answers are.

    `hardware` names fields of `Hardware`. Raises `VragError` for a model that is one of the
    `answerers`, and as `load_generator` does.
    """
    from vrag_kit.config import hardware_of
    from vrag_kit.generation.generators import load_generator

    forbid_self_check(pictures, answerers)
    decoding = {"max_new_tokens": _TOKENS}
    generator = load_generator(pictures, decoding=decoding, hardware=hardware)
    how = hardware_of(hardware)
    looking = VisualClaimChecker(
        world.language, world.species, generator, answers_dir, hardware=how
    )
    return RuleChecker(world.language, looking)
