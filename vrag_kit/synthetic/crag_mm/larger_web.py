"""A larger web for a split: many pages about an entity, one of which has the facts that are asked
for. It is made when it is opened, and is not on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from vrag_kit.synthetic.crag_mm.edition import EDITIONS, EntityEntry, plan_edition
from vrag_kit.synthetic.crag_mm.entities import Entity, with_article
from vrag_kit.synthetic.crag_mm.web_pages import SITE, WebPage, pages_about
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Benchmark, DocId, Document

PAGES = {"head": 16, "torso": 10, "tail": 6}
"""Popularity → pages about one of its entities, where the usual web has any about it."""
_ASIDES = {
    "It is found by {}.": "children hikers painters poets shepherds tailors",
    "It is eaten before {}.": "dawn dusk midnight noon sunrise sunset",
    "Its smell is strongest before {}.": "dawn dusk midnight noon sunrise sunset",
    "It was described in {}.": "almanacs ballads diaries leaflets letters verses",
    "It does live alone in {}.": "attics barns cellars hedges sheds stables",
    "It is seen from {}.": "balconies boats bridges ladders towers windows",
    "A family keeps it for its {}.": "beauty fame patience rarity silence speed",
    "In the capital of its region it is drawn on {}.": "coins doors flags plates stamps tiles",
    "The person who described it was born in {}.": "comfort exile hardship poverty wealth winter",
    "It is as long as {}.": "candles feathers keys needles pencils spoons",
    "It is as wide as {}.": "buckles buttons corks medals ribbons thimbles",
    "The color of its pattern fades in {}.": "drought fog frost rain sunlight wind",
}
"""What no question asks for, in words of the questions → what may stand there, one word
each, which is the answer to no question.
"""
_IN_SNIPPET = 3
_LATER = (2, 7)
"""Asides further down the page: from so many to fewer than so many."""


def larger_web(benchmark: Benchmark, edition: str, split: str) -> Benchmark:
    """The split's benchmark of a drawn edition ("full" or "small") over its larger web.

    The first page about an entity is written like the usual web's first: in full it
    tells all facts, its snippet some. All others (`PAGES` counts them) tell none.
    What has no page in the usual web has none here. Pictures and the pages about
    regions and describers are the usual ones. The same edition gives the same pages.
    """
    seed = f"{EDITIONS[edition].seed}/{split}/larger"
    entries = next(each.entries for each in plan_edition(EDITIONS[edition]) if each.name == split)
    own = {each.entity.name: _written(each, seed) for each in entries}
    usual = benchmark.corpus.items()
    kept = {name: page for name, page in usual if page.metadata.get("page_name") not in own}
    pages = list(chain.from_iterable(each.values() for each in own.values()))
    order = stream(seed, "web").permutation(len(pages))
    corpus = kept | {pages[i].doc_id: pages[i] for i in order}
    told = [benchmark.fingerprint, *(f"{name} {page.text}" for name, page in corpus.items())]
    labels: dict[str, dict[DocId, int]] = {}
    for name, query in benchmark.queries.items():
        old = {doc_id: 1 for doc_id in benchmark.qrels[name] if doc_id in kept}
        labels[name] = old | dict.fromkeys(own.get(query.entity, {}), 1)
    fingerprint = hashlib.sha256("\n".join(told).encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, corpus=corpus, qrels=labels)


def _written(entry: EntityEntry, seed: str) -> Mapping[DocId, Document]:
    """The pages about an entity by address."""
    if not entry.pages:
        return {}
    rng = stream(seed, "asides", entry.entity.name)
    pages = pages_about(entry.entity, 1, seed)
    pages += [_aside(entry.entity, i, rng) for i in range(1, PAGES[entry.popularity])]
    return {page.url: _document(page) for page in pages}


def _aside(entity: Entity, number: int, rng: np.random.Generator) -> WebPage:
    """A page about an entity that tells only what it is called and its kind."""
    count = _IN_SNIPPET + int(rng.integers(*_LATER))
    forms = [list(_ASIDES)[i] for i in rng.permutation(len(_ASIDES))[:count]]
    said = [form.format(rng.choice(_ASIDES[form].split())) for form in forms]
    snippet = " ".join([f"{entity.name} is {with_article(entity.kind)}.", *said[:_IN_SNIPPET]])
    result = " ".join([snippet, *said[_IN_SNIPPET:]])
    url = f"{SITE}/{entity.address}/{number}"
    return WebPage(url, entity.name, snippet, result)


def _document(page: WebPage) -> Document:
    """A page as `read_web_index` reads it."""
    told = {"page_name": page.name, "page_snippet": page.snippet, "page_url": page.url}
    told |= {"page_result": page.result, "page_last_modified": ""}
    return Document(doc_id=page.url, text=page.snippet, metadata={"source": "web_search", **told})
