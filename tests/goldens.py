"""What must not change while the code does: `python tests/goldens.py` writes tests/goldens/.

Each file is a mapping of names to what was found: bytes that are drawn, random orders, what
loaders read, what each provider is sent, and what each parameter file would ask. A change is a
decision: whoever writes a file anew says why in the commit. `test_goldens.py` holds the small
ones in every run; `python tests/goldens.py --all` also the full editions and the demos' forecasts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import chart_rows
import crag_rows
import page_rows
from strange_server import StrangeServer, images_in
from timing import paper_data
from worded import worded

from vrag_kit.benchmarks import (
    ImageFile,
    load_chart_mrag,
    load_crag_mm,
    load_mrag_bench,
    load_page_benchmark,
    load_visual_rag,
)
from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.generation import load_generator
from vrag_kit.generation.generators import CostEstimate
from vrag_kit.generation.remote.providers import ENDPOINTS, SERVERS
from vrag_kit.open import open_benchmark, open_inat_corpus, open_webqa
from vrag_kit.runner.dry_run import describe, dry_run_notebooks
from vrag_kit.runner.plan import read_plan
from vrag_kit.synthetic import crag_mm, mrag_bench
from vrag_kit.synthetic.editions import generate_edition
from vrag_kit.synthetic.mrag_suite import open_suite
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Benchmark, LazyImage, Prompt, ordered

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests/goldens"
FULL = ("field-guide", "field-guide-mrag-bench", "field-guide-crag-mm", "field-guide-mrag-suite")
SMALL = tuple(f"{name}-small" for name in FULL)
PICTURE = re.compile(r"data:image/[^\"]+")
SYNTHETIC = ("quick", "demo")
"""Parameter files of the drawn editions."""
NOTES = ("edition.json",)
"""Files of an edition that say by which code it was drawn: they change where no image does."""
Golden = dict[str, Any]  # name -> what JSON holds


def digest(parts: Iterable[object]) -> str:
    """A hash of the parts as JSON, one a line."""
    told = hashlib.sha256()
    for part in parts:
        told.update(json.dumps(part, default=_named, ensure_ascii=False).encode() + b"\n")
    return told.hexdigest()[:16]


def _named(value: object) -> str:
    """What is no JSON, such as a picture in metadata, by its kind."""
    return type(value).__name__


def drawn(editions: tuple[str, ...], *there: str) -> Golden:
    """Folder of each edition, drawn anew but for folders of ours that are `there` → how many
    files are below it, and a hash of their names and bytes.
    """
    found: Golden = {}
    with project(*there):
        for edition in editions:
            folder = Path("data") / edition
            generate_edition(edition, folder)
            files: dict[str, list[tuple[str, str]]] = {}
            for path in sorted(folder.rglob("*")):
                within = path.relative_to(folder)
                hidden = any(part.startswith(".") for part in within.parts)
                if path.is_file() and not hidden and within.name not in NOTES:
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                    files.setdefault(within.parts[0], []).append((within.as_posix(), content))
            for name, told in files.items():
                found[f"{edition}/{name}"] = [len(told), digest(told)]
    return found


@contextmanager
def project(*folders: str) -> Iterator[None]:
    """The current folder is an empty project, with these folders of ours."""
    with tempfile.TemporaryDirectory() as made, chdir(made):
        for name in ("notebooks", "params", *folders):
            (ROOT / name).mkdir(parents=True, exist_ok=True)
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).symlink_to(ROOT / name)
        yield


def draws() -> Golden:
    """Twenty random orders of ten names, and twenty streams of numbers."""
    names = [f"doc{number}" for number in range(10)]
    orders = {f"ordered {seed} clue": ordered(names, seed, "q1", "clue") for seed in range(20)}
    streams = {
        f"stream {seed} moth": stream("moth", seed).integers(1_000, size=5).tolist()
        for seed in range(20)
    }
    return {**orders, **streams}


def _pixels(images: Iterable[LazyImage | None]) -> str:
    return digest(pixel_hash(image.open()) if image else None for image in images)


def read(benchmark: Benchmark) -> Golden:
    """What a loader read, a hash for each thing that may change by itself."""
    queries = benchmark.queries.values()
    named = sorted(benchmark.queries)
    sample = list(benchmark.corpus.values())[:: max(1, len(benchmark.corpus) // 20)]
    return {
        "queries": len(benchmark.queries),
        "documents": len(benchmark.corpus),
        "asked": digest(
            (q.query_id, q.text, q.answers, q.choices, q.entity, q.group, q.conversation_id, q.turn)
            for q in queries
        ),
        "pictures": _pixels(q.image for q in list(queries)[:20]),
        "metadata": digest(
            (q.query_id, sorted((key, q.metadata[key]) for key in q.metadata if key != "where"))
            for q in queries
        ),  # "where" is a path of this machine
        "corpus": digest((d.doc_id, d.text, d.modality) for d in benchmark.corpus.values()),
        "images": _pixels(d.image for d in sample),
        "qrels": digest((name, sorted(benchmark.qrels.get(name, {}).items())) for name in named),
        "candidates": digest((name, benchmark.candidates(name)) for name in named),
        "left_out": digest((name, sorted(benchmark.left_out.get(name, ()))) for name in named),
        "fingerprint": benchmark.fingerprint,
    }


def fixtures(folder: Path) -> dict[str, Benchmark]:
    """Benchmarks of a few rows in each published layout."""
    found = {}
    for revision in ("v0.1.1", "v0.1.2"):
        turns = [crag_rows.turn("i1"), crag_rows.turn("i2", "Where does it live?")]
        rows = [crag_rows.session("s1", *turns), crag_rows.session("s2", color="blue")]
        place = folder / revision / "multi-turn"
        crag_rows.write_rows(place, rows, revision=revision)
        found[f"CRAG-MM {revision}"] = load_crag_mm(place)
    for one in (True, False):
        rows = chart_rows.ROWS[1:] if one else chart_rows.ROWS
        places = chart_rows.write_charts(folder / f"charts{one}", rows, one_picture=one)
        found[f"charts, one picture {one}"] = load_chart_mrag(*places, name="charts")
    found["pages"] = load_page_benchmark(page_rows.write_pages(folder / "pages"), name="pages")
    files = paper_data.visual_rag(folder / "visual-rag", 2)
    annotations, images = (Path(files[key]) for key in ("annotations", "image_root"))
    found["Visual-RAG"] = load_visual_rag(annotations, images, name="rows")
    for scenario in ("Angle", "Incomplete"):
        rows = paper_data.mrag_bench(folder / scenario, 2, scenario)
        found[f"MRAG-Bench {scenario}"] = load_mrag_bench(rows)
    return found


def editions(names: tuple[str, ...]) -> dict[str, Benchmark]:
    """Every benchmark of the drawn editions: Field Guide, MRAG-Bench, CRAG-MM, MRAG-Suite."""
    guide, mrag, crag, suite = names
    asked = open_benchmark(guide)
    found = {
        guide: asked,
        f"{guide}, plates": open_inat_corpus(guide, asked),
        f"{guide}, captions": open_webqa(guide),
        mrag: mrag_bench.open_mrag_bench(mrag),
        f"{crag}, larger web": crag_mm.open_single_turn(crag, web_index="large"),
    }
    found[f"{mrag}, texts"] = mrag_bench.open_mrag_passages(found[mrag], mrag)
    for split in ("validation", "public_test"):
        found[f"{crag}, single {split}"] = crag_mm.open_single_turn(crag, split)
        found[f"{crag}, multi {split}"] = crag_mm.open_multi_turn(crag, split)
    return found | {f"{suite}, {name}": each for name, each in open_suite(suite).items()}


def loaders(names: tuple[str, ...]) -> Golden:
    """What loaders read of the fixtures, where the first editions are asked for, and of these."""
    found = {name: read(each) for name, each in editions(names).items()}
    if names == SMALL:
        with tempfile.TemporaryDirectory() as made, chdir(made):
            found |= {name: read(each) for name, each in fixtures(Path("rows")).items()}
    return found


def requests() -> Golden:
    """What each provider and kind of server is sent: two pictures and a question, and which
    fields go with it at each decoding; pictures by their pixels.
    """
    decodings: list[Any] = [{}, {"temperature": 0}, {"temperature": 0.7, "top_p": 0.9}]
    with tempfile.TemporaryDirectory() as made, StrangeServer() as server:
        pictures = []
        for number, color in enumerate(("red", "blue")):
            path = Path(made) / f"{color}.jpg"
            path.write_bytes(crag_rows.picture(color, (600, 400), orientation=1 + 5 * number))
            pictures.append(ImageFile(path))
        prompt = worded("several_images", "What colour is it?", pictures)
        entries = {f"{m}@{e}": {} for e, about in ENDPOINTS.items() for m in about["models"]}
        entries |= {f"x@{server.url}": {"server": kind, "max_image_side": 64} for kind in SERVERS}
        return {
            f"{model.partition('@')[0]} {entry.get('server', '')} {decoding}": _sent(
                server, {"model": model, **entry}, prompt, decoding
            )
            for model, entry in entries.items()
            for decoding in decodings
        }


def _sent(server: StrangeServer, entry: Golden, prompt: Prompt, decoding: Any) -> Golden:
    """The body of a model's first call, its pictures as sizes and hashes."""
    endpoint = entry["model"].rpartition("@")[2]
    here = {"base_url": server.url, "key": None}
    server.requests.clear()
    with ExitStack() as stack:
        if endpoint in ENDPOINTS:
            stack.enter_context(mock.patch.dict(ENDPOINTS[endpoint], here))
        try:
            generator = load_generator(entry, decoding={**decoding, "max_new_tokens": 16})
        except VragError:
            return {"refused": True}  # a decoding that the endpoint does not take
        generator.prepare()
        generator.generate([prompt])
    body = server.requests[-1]
    told = [f"{image.size} {digest([image.tobytes().hex()])}" for image in images_in(body)]
    words = PICTURE.sub("a picture", json.dumps(body["messages"]))
    return {**body, "messages": digest([words]), "pictures": told}


def forecasts(files: list[Path]) -> Golden:
    """Parameter file → calls, images, tokens and dollars of everyone it asks, which notebooks
    cannot be counted, and how many things are missing: in a project without answers,
    and without data but those of the drawn editions, for demos.
    """
    found: Golden = {}
    without = {name: told for name, told in os.environ.items() if not name.endswith("_API_KEY")}
    drawn_too = ["data"] if all(file.stem in SYNTHETIC for file in files) else []
    with project(*drawn_too), mock.patch.dict(os.environ, without, clear=True):
        for file in files:
            found[file.relative_to(ROOT).as_posix()] = _foreseen(file)
    return found


def _foreseen(file: Path) -> Golden:
    plan = read_plan(file)
    told = dry_run_notebooks(plan)
    _, missing = describe(plan, told)
    uncounted = {**told.failed, **told.undrawn}
    asked: dict[str, list[list[float]]] = {}  # one name may stand for two decodings
    for each in told.models:
        asked.setdefault(each.name, []).append(_numbers(each.forecast))
    return {
        "asked": asked,
        "uncounted": sorted(uncounted),
        "cut": {book: note for note, book in told.notes if "drawn" not in note},
        "missing": len(missing),
    }


def _numbers(forecast: CostEstimate) -> list[float]:
    counts = (forecast.calls, forecast.images, forecast.tokens, forecast.answer_tokens)
    return [*map(round, counts), round(forecast.cost or 0, 4)]


def parameter_files() -> tuple[list[Path], list[Path]]:
    """(those that name real data, which is not here; those of the drawn editions)"""
    files = sorted((ROOT / "params").rglob("*.yaml"))
    return [f for f in files if f.stem not in SYNTHETIC], [f for f in files if f.stem in SYNTHETIC]


QUICK: dict[str, Callable[[], Golden]] = {
    "drawn_small": lambda: drawn(SMALL, *(f"data/{name}" for name in SMALL[:2])),
    "draws": draws,
    "loaders_small": lambda: loaders(SMALL),
    "requests": requests,
    "forecasts": lambda: forecasts(parameter_files()[0]),
}
"""File of tests/goldens → what it holds; each takes seconds to a minute."""
SLOW: dict[str, Callable[[], Golden]] = {
    "drawn_full": lambda: drawn(FULL),
    "loaders_full": lambda: loaders(FULL),
    "forecasts_demo": lambda: forecasts(parameter_files()[1]),
}
"""The same of the full editions: minutes."""


def differences(old: Golden, new: Golden) -> list[str]:
    """What is not the same, a line each."""
    names = sorted(old.keys() | new.keys())
    changed = [name for name in names if old.get(name) != new.get(name)]
    return [f"{name}: {old.get(name)} became {new.get(name)}" for name in changed]


def kept(name: str) -> Golden:
    """A golden as it is committed; empty where there is none."""
    path = KEPT / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main() -> int:
    KEPT.mkdir(exist_ok=True)
    wanted = {**QUICK, **(SLOW if "--all" in sys.argv else {})}
    changed = 0
    for name, find in wanted.items():
        new = json.loads(json.dumps(find()))
        lines = differences(kept(name), new)
        changed += len(lines)
        print(f"{name}: {len(new)} entries, {len(lines)} changed", *lines[:5], sep="\n  ")
        rows = [f"{json.dumps(key)}: {json.dumps(new[key], ensure_ascii=False)}" for key in new]
        (KEPT / f"{name}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
