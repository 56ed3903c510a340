"""The Field Guide with other facts: every clue drawn again, the same view of the same
species, but the asked part in another colour or pattern.

So it can be told whether an answer comes from the picture: nothing else in it changed.
Only a drawn guide can be drawn again; photographs cannot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from numpy.random import Generator
from PIL import Image

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.generation import gt_clue
from vrag_kit.generation.contexts import CONTRADICTION, Others
from vrag_kit.synthetic.editions import DRAWN, VERSION, Source, expected
from vrag_kit.synthetic.visual_rag import questions
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, plan_species, species_slots
from vrag_kit.synthetic.world.organisms import hidden_part, hidden_parts
from vrag_kit.synthetic.world.photographs import (
    View,
    draw_photograph,
    encode_jpeg,
    numbered_species,
)
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, Species, choose, stream
from vrag_kit.types import Benchmark, Context, Query


@dataclass(frozen=True, slots=True, eq=False)
class CounterfactualImage:
    """A photograph that is drawn when someone looks at it, encoded as the guide's are;
    implements `LazyImage`. Its page is planned then too: that takes longer than drawing.
    """

    where: str
    species: Species
    edition: str  # of the guide, which has the photograph of the species as it is
    photo: str  # "<species folder>/<file>", its name there

    @property
    def view(self) -> View:
        """That of the guide's photograph."""
        folder, file = self.photo.split("/", 1)
        return _views(self.edition, int(folder[:5]))[file]

    @property
    def stamp(self) -> str:
        """Changes with the species, the photograph, and the version of the generator."""
        drawn = repr((self.species, self.edition, self.photo, VERSION))
        return hashlib.sha256(drawn.encode()).hexdigest()

    def data(self) -> bytes:
        """The picture as a JPEG file."""
        return encode_jpeg(draw_photograph(self.species, self.view, EDITIONS[self.edition].size))

    def open(self) -> Image.Image:
        """The decoded picture, RGB."""
        return decode(self.data(), self.where)


def counterfactual_benchmark(guide: Source, benchmark: Benchmark, *, seed: int = 0) -> Benchmark:
    """The questions of `benchmark`, which is the drawn `guide` or a part of it, in a
    world where the asked part looks otherwise: `answers` are the new values, and each
    clue is a picture drawn again (`counterfactual_id`), in corpus, labels and pools.

    Each question gets one new value, which `seed` and question determine: a colour, two
    colours or a pattern that the asked part did not have and nothing else of the species
    has. Wording, pose, background, light and noise are the same. Raises `VragError` for
    data that are not drawn, or not by this code.
    """
    if not isinstance(guide, str) or guide not in DRAWN:
        known = expected(str(guide), DRAWN)
        raise VragError(f"evidence can be swapped only in a drawn world; found {guide!r}, {known}")
    edition = DRAWN[guide]
    queries = dict(benchmark.queries)
    qrels = dict(benchmark.qrels)
    corpus = dict(benchmark.corpus)
    for query_id, query in benchmark.queries.items():
        own, question = _found(edition, query)
        species = _otherwise(own, question, stream("swap", seed, query_id))
        part = hidden_part(species, question.part)
        assert part
        answers = questions.make_question(species, part, question.asks).answers
        queries[query_id] = replace(query, answers=answers)
        clues = benchmark.relevant(query_id)
        again = {doc_id: counterfactual_id(doc_id, query_id) for doc_id in clues}
        for doc_id, name in again.items():
            image = CounterfactualImage(f"drawn again: {name}", species, edition, doc_id)
            corpus[name] = replace(corpus[doc_id], doc_id=name, image=image)
        labels = benchmark.qrels[query_id].items()
        qrels[query_id] = {again.get(doc_id, doc_id): label for doc_id, label in labels}
    return benchmark.derive(
        f"swapped/{seed}",
        queries=queries,
        qrels=qrels,
        corpus=corpus,
        pools={query_id: tuple(labels) for query_id, labels in qrels.items()},
    )


def counterfactual_id(doc_id: str, query_id: str) -> str:
    """The name of a clue drawn again for a question: one picture may be a clue for two,
    and looks otherwise for each.
    """
    return f"{doc_id}~{query_id}"


def with_counterfactual_clues(contexts: Sequence[Context], benchmark: Benchmark) -> list[Context]:
    """The same contexts with each clue drawn again; ask them of the `counterfactual_benchmark`."""
    swapped = []
    for context in contexts:
        clues = benchmark.relevant(context.query_id)
        again = {doc_id: counterfactual_id(doc_id, context.query_id) for doc_id in clues}
        shown = tuple(again.get(doc_id, doc_id) for doc_id in context.doc_ids)
        swapped.append(replace(context, doc_ids=shown))
    return swapped


def with_contradicting_images(
    data: Source, benchmark: Benchmark, *, seed: int = 0
) -> tuple[Benchmark, dict[str, Others]]:
    """(benchmark with more documents, {"contradiction": query → its look-alike}) for
    `company` and `clue_with_distractors`: the clue of each query's first draw, drawn again with
    the value of `counterfactual_benchmark`.

    Photographs cannot be drawn again: data that are not drawn come back as they are,
    with {}.
    """
    if isinstance(data, Mapping):
        return benchmark, {}
    world = counterfactual_benchmark(data, benchmark, seed=seed)
    again = with_counterfactual_clues(gt_clue(benchmark, draws=1, seed=seed), benchmark)
    look_alikes = {context.query_id: context.doc_ids for context in again}
    documents = [world.corpus[doc_id] for (doc_id,) in look_alikes.values()]
    return benchmark.with_documents(documents), {CONTRADICTION: look_alikes}


@lru_cache(maxsize=256)
def _views(edition: str, index: int) -> Mapping[str, View]:
    """File → view of the photographs of the species with this index."""
    page = plan_species(EDITIONS[edition], species_slots(EDITIONS[edition])[index])
    return {file: photo.view for file, photo in zip(page.files, page.photos, strict=True)}


def _found(edition: str, query: Query) -> tuple[Species, questions.Question]:
    """The species that a query asks about, and its question."""
    for slot in species_slots(EDITIONS[edition]):
        species = numbered_species(EDITIONS[edition].seed, slot.kind, slot.number)
        if species.scientific_name != query.entity:
            continue
        for part in hidden_parts(species):
            for asks in questions.askable_traits(species, part):
                question = questions.make_question(species, part, asks)
                if question.text == query.text:
                    return species, question
    raise VragError(
        f"query {query.query_id!r} is none of the {edition} Field Guide; its clues cannot be"
        " drawn again. Open the guide that the questions are from, by its name."
    )


def _otherwise(species: Species, question: questions.Question, rng: Generator) -> Species:
    """The species with another look of the asked part."""
    look = species.hidden[question.part]
    outside = species.outside
    seen = (look.color, look.second, outside.color, outside.second)
    if question.asks == "pattern":
        new = replace(look, pattern=_other(PATTERNS, (look.pattern, outside.pattern), rng))
    else:
        new = replace(look, color=_other(COLORS, seen, rng))
    if question.asks == "colors":
        new = replace(new, second=_other(COLORS, (*seen, new.color), rng))
    return replace(species, hidden={**species.hidden, question.part: new})


def _other(values: Iterable[str], taken: Sequence[str], rng: Generator) -> str:
    return choose([value for value in values if value not in taken], rng)
