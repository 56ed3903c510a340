"""The checker of claims about the drawn suite, as a notebook's parameters name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vrag_kit.fieldguide.suite.looking import PictureChecker
from vrag_kit.fieldguide.suite.opening import World
from vrag_kit.judging import RuleChecker, refuse_own_eyes
from vrag_kit.options import Entry

_TOKENS = 16  # of a reply


def open_rule_checker(
    world: World,
    pictures: Entry,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> RuleChecker:
    """Rules for texts of the guide's language, and the model that `pictures` names for
    pictures; its words are kept in `answers_dir`, as answers are.

    Of `run_with` device, batch_size and retry_failures count here too. Raises
    `VragError` for a model that is one of the `answerers`, and as `load_generator` does.
    """
    from vrag_kit.generation.asking_options import Asking
    from vrag_kit.generation.loading import load_generator

    refuse_own_eyes(pictures, answerers)
    how = Asking.beside_answerers(run_with or {}, Asking(max_new_tokens=_TOKENS))
    generator = load_generator(
        pictures,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )
    looking = PictureChecker(world.language, world.species, generator, answers_dir, how=how)
    return RuleChecker(world.language, looking)
