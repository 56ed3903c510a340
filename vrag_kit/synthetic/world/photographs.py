"""A species' photographs, chosen so that a hidden part shows in exactly the wanted
number of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vrag_kit.synthetic.visual_rag.questions import hidden_parts
from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart
from vrag_kit.synthetic.world.traits import Species, generate_species_traits, stream
from vrag_kit.synthetic.world.views import View, sample_view, visible_and_hidden_parts

_TRIES = 200


@dataclass(frozen=True, slots=True)
class Photo:
    """One photograph before it is drawn: the view, and what it shows."""

    view: View
    shown: frozenset[str]  # hidden parts that can be judged from it


def numbered_species(seed: object, kind: str, number: object) -> Species:
    """The species with this number of this kind in the world of `seed`."""
    parts = tuple(part.name for part in KINDS[kind].hidden)
    return generate_species_traits(
        kind, KINDS[kind].noun, parts, stream("species", seed, kind, number)
    )


def plan_clue_photo(species: Species, part: HiddenPart, name: str) -> Photo:
    """A photograph that shows `part`."""
    rng = stream(name)
    for _ in range(_TRIES):
        openness = float(0.35 + 0.65 * rng.beta(1.6, 1.2))
        view = sample_view(species, part.pose, openness, rng, name)
        shown, _ = visible_and_hidden_parts(species, view)
        if part.name in shown:
            return Photo(view, shown)
    raise RuntimeError(
        f"{species.scientific_name}: no view shows the {part.name} after {_TRIES} tries ({name})"
    )


def plan_plain_photo(
    species: Species, avoid: frozenset[str], name: str, near_miss: float = 0.4
) -> Photo:
    """A photograph that gives no hint of the parts in `avoid`.

    Most rest in a pose that hides everything; a share `near_miss` has the pose of a
    hidden part, which is then covered by a leaf, too far away, or only ajar.
    """
    rng, kind = stream(name), KINDS[species.kind]
    for _ in range(_TRIES):
        if rng.random() < near_miss:
            part = kind.hidden[int(rng.integers(2))]
            openness = float(rng.uniform(0.0, 1.0))
            cover = part.name if rng.random() < 0.75 else ""
            view = sample_view(species, part.pose, openness, rng, name, cover)
        else:
            view = sample_view(species, str(rng.choice(kind.resting)), 0.0, rng, name)
        shown, hidden = visible_and_hidden_parts(species, view)
        if avoid <= hidden:
            return Photo(view, shown)
    raise RuntimeError(
        f"{species.scientific_name}: every view shows one of {sorted(avoid)} after {_TRIES} tries"
        f" ({name})"
    )


def clue_count(n_photos: int, rng: np.random.Generator) -> int:
    """A skewed number of clues: about 6 % on average, a quarter of the queries under 2
    %, none over 25 %.
    """
    share = 0.041 * np.exp(rng.normal(0, 0.95))
    return int(np.clip(round(share * n_photos), 1, max(1, n_photos // 4 - 1)))


def plan_photos(species: Species, asked: tuple[str, ...], n_photos: int, name: str) -> list[Photo]:
    """`n_photos` photographs in shuffled order; each part in `asked` has its own skewed
    number of clues.

    Parts nobody asks about show in a few photographs too, as other rare views do in the
    field.
    """
    rng = stream(name, "album")
    photos: list[Photo] = []
    for part in hidden_parts(species):
        wanted = clue_count(n_photos, rng)
        photos += [plan_clue_photo(species, part, f"{name}/{part.name}/{i}") for i in range(wanted)]
    avoid, left = frozenset(asked), n_photos - len(photos)
    photos += [plan_plain_photo(species, avoid, f"{name}/plain/{i}") for i in range(left)]
    return [photos[i] for i in rng.permutation(len(photos))]


def hidden_part(species: Species, part: str) -> HiddenPart | None:
    """Return the hidden part of that name; None for the outside."""
    return next((each for each in hidden_parts(species) if each.name == part), None)


def view_showing(species: Species, part: str, name: str) -> View:
    """Return a usual view that shows the part: for a hidden one its rare pose, with nothing in
    the way. Any other `part` is the outside.
    """
    hidden = hidden_part(species, part)
    if hidden:
        return plan_clue_photo(species, hidden, name).view
    view = sample_view(species, KINDS[species.kind].outside_pose, 0.0, stream(name), name)
    near = max(view.scale, 0.6)
    return replace(view, scale=near, leaf=False, blades=min(view.blades, 1), blur=0.003)
