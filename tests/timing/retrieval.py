"""Where the time of retrieval goes, as ratios within one run: `python -m
tests.timing.retrieval`.

Machines are noisy, so each figure is the median of interleaved repetitions and nothing
here is asserted.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import open_clip
import torch
from PIL import Image
from safetensors.torch import save_file

from vrag_kit.benchmarks import ImageFile
from vrag_kit.retrieval import evaluate, load_encoder, make_run
from vrag_kit.retrieval.embedding_cache import _prepare_ahead, embed_documents
from vrag_kit.retrieval.encoders.base import Encoder
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import draw_photograph, numbered_species, sample_view
from vrag_kit.synthetic.world.traits import stream
from vrag_kit.types import Document

MODEL = "vrag_kit/synthetic/weights/field-guide-clip-64"
BATCH, WORKERS, REPEATS = 64, 2, 5


def seconds(*tasks: Callable[[], object]) -> list[float]:
    """Median wall time of each task; the tasks take turns, so that noise hits all
    alike.
    """
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(REPEATS):
        for task, spent in zip(tasks, times, strict=True):
            began = time.perf_counter()
            task()
            spent.append(time.perf_counter() - began)
    return [median(spent) for spent in times]


def draw_pictures(folder: Path, count: int, size: int) -> list[Document]:
    """`count` photographs of size × size pixels on disk."""
    folder.mkdir()
    documents = []
    for i in range(count):
        species = numbered_species("benchmark", list(KINDS)[i % len(KINDS)], i)
        view = sample_view(
            species, KINDS[species.kind].resting[0], 0.0, stream("benchmark", i), f"benchmark/{i}"
        )
        draw_photograph(species, view, size).save(folder / f"{i:04d}.jpg", quality=90)
        documents.append(
            Document(doc_id=f"{folder.name}/{i:04d}.jpg", image=ImageFile(folder / f"{i:04d}.jpg"))
        )
    return documents


def random_vit(folder: Path) -> Path:
    """A ViT-B/32 with random weights, in open_clip's layout."""
    folder.mkdir()
    model = open_clip.create_model("ViT-B-32")
    preprocessing = dict(model.visual.preprocess_cfg)
    stated = {"model_cfg": open_clip.get_model_config("ViT-B-32"), "preprocess_cfg": preprocessing}
    (folder / "open_clip_config.json").write_text(json.dumps(stated), encoding="utf-8")
    weights = {name: values.contiguous() for name, values in model.state_dict().items()}
    save_file(weights, folder / "open_clip_model.safetensors")
    return folder


def pipeline(encoder: Encoder, documents: list[Document], title: str) -> None:
    """Embedding to disk against decoding alone plus the model alone."""
    with ThreadPoolExecutor(WORKERS) as pool:
        prepared = list(pool.map(encoder.prepare, documents))

    def decode() -> None:
        for _ in _prepare_ahead(encoder, documents):
            pass

    def forward() -> None:
        for start in range(0, len(prepared), BATCH):
            encoder.encode_documents(prepared[start : start + BATCH])

    def embed() -> None:
        with tempfile.TemporaryDirectory() as store:
            embed_documents(encoder, documents, store)

    forward()
    whole, alone, model = seconds(embed, decode, forward)
    print(
        f"{title}: pipeline {whole:.2f} s / (decode alone {alone:.2f} s + model alone {model:.2f}"
        f" s) = {whole / (alone + model):.2f}  (aim at most 1.15); {model / whole:.2f} of the model"
        " alone (aim at least 0.95 where a picture takes it as long as ViT-B/32)"
    )


def preprocessing(documents: list[Document], title: str) -> None:
    """Decoding and resizing against open_clip's own path through Pillow, one thread
    each.
    """
    encoder = load_encoder(MODEL)
    model, _, transform = open_clip.create_model_and_transforms(
        f"local-dir:{Path(__file__).parents[2] / MODEL}"
    )
    mean, std = (
        torch.tensor(model.visual.preprocess_cfg[key]).view(3, 1, 1) for key in ("mean", "std")
    )
    files = [document.image.path for document in documents]  # type: ignore[union-attr]
    theirs, ours = seconds(
        lambda: [transform(Image.open(file).convert("RGB")) for file in files],
        lambda: [encoder.prepare(document) for document in documents],
    )
    gap = max(
        float(
            (
                encoder.prepare(d).float() / 255
                - (transform(Image.open(f).convert("RGB")) * std + mean)
            )
            .abs()
            .max()
        )
        for d, f in zip(documents, files, strict=True)
    )
    print(
        f"{title}: open_clip's PIL path {theirs:.2f} s / ours {ours:.2f} s = {theirs / ours:.2f}"
        f" times as fast; largest pixel difference {gap * 255:.2f}/255"
    )


def metrics() -> None:
    """Array metrics against a plain loop over 300 queries of 250 candidates."""
    rng = np.random.default_rng(0)
    names = [f"d{i:03d}" for i in range(250)]
    rows = []
    for i in range(300):
        found = rng.permutation(names)[:30].tolist()
        rows += [(f"q{i}", name, float(30 - rank)) for rank, name in enumerate(found)]
    run = make_run(rows)
    labels = {f"q{i}": {name: int(rng.random() < 0.06) for name in names} for i in range(300)}
    labels = {query: {**row, names[0]: 1} for query, row in labels.items()}
    loop, fast = seconds(lambda: plain_metrics(run, labels), lambda: evaluate(run, labels))
    print(
        f"metrics: plain loop {loop:.2f} s / arrays {fast:.3f} s = {loop / fast:.1f} times as fast"
    )


def plain_metrics(
    run: object, labels: dict[str, dict[str, int]]
) -> dict[tuple[str, int], list[float]]:
    """Recall, hit, hit count and both nDCGs the obvious way: a loop over queries and
    cut-offs.
    """
    ranked: dict[str, list[str]] = {}
    for query_id, doc_id, _, _ in run.itertuples(index=False):  # type: ignore[attr-defined]
        ranked.setdefault(query_id, []).append(doc_id)
    values: dict[tuple[str, int], list[float]] = {}
    for query_id, docs in ranked.items():
        gains, relevant = (
            [labels[query_id].get(d, 0) for d in docs],
            sorted(labels[query_id].values(), reverse=True),
        )
        for k in (1, 5, 10, 20, 30):
            dcg, ideal, again = (
                sum(g / np.log2(r + 2) for r, g in enumerate(order[:k]))
                for order in (gains, relevant, sorted(gains[:30], reverse=True))
            )
            for metric, value in (
                ("recall", sum(gains[:k]) / sum(relevant)),
                ("hit", float(any(gains[:k]))),
                ("hit_count", sum(gains[:k])),
                ("ndcg", dcg / ideal),
                ("ndcg_visual_rag", dcg / again if again else 0.0),
            ):
                values.setdefault((metric, k), []).append(value)
    return values


if __name__ == "__main__":
    print(
        f"{torch.get_num_threads()} torch threads, {WORKERS} decoding threads, batches of {BATCH},"
        f" median of {REPEATS}"
    )
    with tempfile.TemporaryDirectory() as scratch:
        for count, size in ((2048, 160), (1024, 500)):
            pictures = draw_pictures(Path(scratch) / str(size), count, size)
            pipeline(
                load_encoder(MODEL), pictures, f"{count} pictures of {size} px, the demo's model"
            )
            preprocessing(pictures[:256], f"preprocessing {size} px")
        large = load_encoder(str(random_vit(Path(scratch) / "ViT-B-32 with random weights")))
        pipeline(large, pictures[:192], f"192 pictures of {size} px, {large.name}")
    metrics()
