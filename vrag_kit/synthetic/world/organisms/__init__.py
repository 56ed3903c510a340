"""The kinds of organism in the guide: how each is classified, drawn, and asked about."""

from __future__ import annotations

from vrag_kit.synthetic.world.organisms import bird, fish, flower, lizard, moth, mushroom
from vrag_kit.synthetic.world.organisms.kind import HiddenPart, OrganismKind

KINDS: dict[str, OrganismKind] = {
    kind.name: kind
    for kind in (moth.KIND, bird.KIND, flower.KIND, mushroom.KIND, fish.KIND, lizard.KIND)
}
