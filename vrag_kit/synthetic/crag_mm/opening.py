"""CRAG-MM as a notebook's parameters name it: a drawn edition, or the real rows and indexes. A
larger web of a drawn edition is made when it is opened, and is not on disk: many pages about an
entity, one of which has the facts that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from numpy.random import Generator

from vrag_kit.benchmarks.datasets.crag_mm import load_crag_mm
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.synthetic.crag_mm.drawing import MULTI_TURN, SINGLE_TURN, generate_crag_mm
from vrag_kit.synthetic.crag_mm.edition import EDITIONS, EntityEntry, plan_edition
from vrag_kit.synthetic.crag_mm.entities import SITE, Entity, WebPage, pages_about, with_article
from vrag_kit.synthetic.editions import CRAG_MM_EDITIONS, edition_or_rows, expected
from vrag_kit.synthetic.world.traits import choose, shuffled, stream
from vrag_kit.types import Benchmark, DocId, Document

WEBS = ("standard", "large")
"""The webs of a drawn edition: the one that is drawn, and `larger_web`."""
EgoSize = Sequence[int] | None
"""Width and height; None or nothing for pictures as they are."""


def open_single_turn(
    crag_mm_single: str,
    split: str = "validation",
    *,
    indexes: str = "",
    images: str = "",
    egocentric_size: EgoSize = None,
    web_index: str = WEBS[0],
) -> Benchmark:
    """The single-turn questions of a synthetic edition (its name in `CRAG_MM_EDITIONS`), generated
    if its folder is missing, over its knowledge graph and its web; or of the rows in a
    folder or a data set of the hub, over the split's indexes in the folder `indexes` ("":
    none), which have the names that they have in a drawn edition.

    `images` and `egocentric_size` as `load_crag_mm` says; `web_index`, of a synthetic
    edition, is one of `WEBS`. Raises `VragError` as drawing and
    loading do, for a name that is neither, for indexes or pictures named beside a drawn
    edition, for a folder without indexes of the split, for a web that is none of `WEBS`,
    and for another than the first beside rows.
    """
    if web_index not in WEBS:
        raise VragError(f"web_index is {web_index!r}; {expected(web_index, WEBS)}")
    usual = _open(SINGLE_TURN, crag_mm_single, split, indexes, images, egocentric_size)
    if web_index == WEBS[0]:
        return usual
    if crag_mm_single not in CRAG_MM_EDITIONS:
        raise VragError(
            f"web_index is {web_index!r} beside {crag_mm_single!r}, but is of synthetic editions"
            " alone; leave it out: the web of rows is the one in the folder 'indexes'."
        )
    return larger_web(usual, CRAG_MM_EDITIONS[crag_mm_single], split)


def open_multi_turn(
    crag_mm_multi: str,
    split: str = "validation",
    *,
    indexes: str = "",
    images: str = "",
    egocentric_size: EgoSize = None,
) -> Benchmark:
    """The conversations, as `open_single_turn` opens single questions."""
    return _open(MULTI_TURN, crag_mm_multi, split, indexes, images, egocentric_size)


def _open(
    kind: str, name: str, split: str, indexes: str, images: str, egocentric_size: EgoSize
) -> Benchmark:
    if egocentric_size and (len(egocentric_size) != 2 or min(egocentric_size) < 1):
        raise VragError(
            f"egocentric_size is {list(egocentric_size)}; expected [width, height] in pixels, or"
            " [] for images as they are."
        )
    parameter = "crag_mm_single" if kind == SINGLE_TURN else "crag_mm_multi"
    rows, is_edition = edition_or_rows(
        parameter, name, CRAG_MM_EDITIONS, generate_crag_mm, indexes or images
    )
    if is_edition:
        indexes, rows = str(rows), Path(rows) / kind
    image_index = web_index = None
    if indexes:
        folders = index_folders(project_path(indexes), split)
        image_index, web_index = (path if path.is_dir() else None for path in folders)
        if not (image_index or web_index):
            raise VragError(
                f"indexes is {indexes!r}, which holds neither {folders[0].name!r} nor"
                f" {folders[1].name!r}; expected converted indexes of the split in it."
            )
    benchmark = load_crag_mm(
        rows,
        split,
        image_index=image_index,
        web_index=web_index,
        images=project_path(images) if images else None,
        egocentric_size=(egocentric_size[0], egocentric_size[1]) if egocentric_size else None,
    )
    named = f"{name}-{kind}-{split.replace('_', '-')}" if is_edition else benchmark.name
    return replace(benchmark, name=named)


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
    own = {each.entity.name: list(_pages(each, seed)) for each in entries}
    usual = benchmark.corpus.items()
    kept = {name: page for name, page in usual if page.metadata.get("page_name") not in own}
    pages = shuffled([*chain.from_iterable(own.values())], stream(seed, "web"))
    corpus = kept | {page.doc_id: page for page in pages}
    texts = [f"{name} {page.text}" for name, page in corpus.items()]
    labels: dict[str, dict[DocId, int]] = {}
    for name, query in benchmark.queries.items():
        old = {doc_id: 1 for doc_id in benchmark.qrels[name] if doc_id in kept}
        labels[name] = old | {page.doc_id: 1 for page in own.get(query.entity, [])}
    return benchmark.derive("\n".join(texts), corpus=corpus, qrels=labels)


def _pages(entry: EntityEntry, seed: str) -> Iterator[Document]:
    """The pages about an entity, as `read_web_index` reads them."""
    if not entry.pages:
        return
    rng = stream(seed, "asides", entry.entity.name)
    pages = pages_about(entry.entity, 1, seed)
    pages += [_aside(entry.entity, i, rng) for i in range(1, PAGES[entry.popularity])]
    for page in pages:
        metadata = {"source": "web_search", **page.row()}
        yield Document(doc_id=page.url, text=page.snippet, metadata=metadata)


def _aside(entity: Entity, number: int, rng: Generator) -> WebPage:
    """A page about an entity that tells only what it is called and its kind."""
    count = _IN_SNIPPET + int(rng.integers(*_LATER))
    sentences = [f"{entity.name} is {with_article(entity.kind)}."]
    for form in shuffled([*_ASIDES], rng)[:count]:
        sentences.append(form.format(choose(_ASIDES[form].split(), rng)))
    snippet = " ".join(sentences[: 1 + _IN_SNIPPET])
    url = f"{SITE}/{entity.address}/{number}"
    return WebPage(url, entity.name, snippet, " ".join(sentences))
