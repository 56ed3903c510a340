"""Files of a custom benchmark: its annotations, and the parameter file with the notebooks that
run on it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.decisions import Decision
from vrag_kit.errors import VragError
from vrag_kit.files import display_path, project_path, write_file
from vrag_kit.types import Benchmark, Json, JsonView

_MODELS: JsonView = {
    "models": ["field-guide-vlm-few", "field-guide-vlm-many"],
    "tour_model": "field-guide-vlm-many",
    "retrievers": ["field-guide-clip-64", "field-guide-clip-32"],
    "retriever": "field-guide-clip-64",
    "text_retriever": "field-guide-clip-64",
}
"""The notebooks' own."""
_PRESERVED = (*_MODELS, "judge", "decoding", "hardware")
_NEEDED_BY = {
    "query_index": "00_tour",
    "tour_model": "00_tour",
    "retriever": "04_top_k_vs_one_in_k",
    "max_clues": "06_number_of_clues",
    "articles": "09_wikipedia_text_rag",
    "text_retriever": "09_wikipedia_text_rag",
}
"""Parameter → the notebook without which it is not in the file."""
_HEADER = """\
# 20_build_a_benchmark replaces this file whenever it runs. Changes of models, retrievers,
# judge, decoding and hardware are preserved; for other changes copy the file.
"""
_ABOUT_MODELS = """\
# These small models know the synthetic Field Guide only: their answers about other images mean
# nothing. Replace them, such as by Qwen/Qwen2.5-VL-7B-Instruct for answers and
# ViT-L-14-336-quickgelu/openai for retrieval; params/visual_rag/one_gpu.yaml shows how.
"""


_yaml = partial(
    yaml.safe_dump, sort_keys=False, allow_unicode=True, default_flow_style=None, width=98
)


def write_benchmark(
    folder: Path | str,
    decisions: Sequence[Decision],
    image_root: Path,
    name: str,
    *,
    articles: Path | None = None,
    species: Path | None = None,
) -> Path:
    """Write the kept questions to <folder>/annotations.jsonl, and return its path.
    The format is Visual-RAG, version 2. A parameter file for `vrag run` is written too.

    The parameter file is named as the folder; see `parameter_file_text`. Raises `VragError` when no
    question is kept and when the folder holds a benchmark over other images, and `OSError` when it
    cannot be written; existing files stay.
    """
    folder = project_path(folder)
    annotations, parameters = folder / "annotations.jsonl", folder / f"{folder.name}.yaml"
    kept = [each for each in decisions if each.status == "kept"]
    if not kept:
        counts = Counter(each.status.replace("_", " ") for each in decisions)
        statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
        raise VragError(
            f"{annotations}: no question is kept, so no benchmark is written ({statuses}). Annotate"
            " in the notebook's panel, in JupyterLab, and name its file in annotation_files."
        )
    root = display_path(image_root)
    sources: Json = {
        "data": {"annotations": display_path(annotations), "image_root": root, "name": name}
    }
    if articles and species:
        sources["articles"] = {
            "pages": display_path(articles),
            "species_list": display_path(species),
        }
    before: Json = {}
    if parameters.is_file():
        before = yaml.safe_load(parameters.read_text(encoding="utf-8"))
        if (images := before["data"]["image_root"]) != root:
            raise VragError(
                f"{folder}: holds a benchmark over {images!r}; this one is over {root!r}. Choose"
                " another folder for it."
            )
    lines = [json.dumps(_row(each), ensure_ascii=False) + "\n" for each in kept]
    write_file(annotations, "".join(lines))
    benchmark = load_visual_rag(annotations, image_root)
    write_file(parameters, parameter_file_text(benchmark, folder.name, sources, before))
    return annotations


def _row(decision: Decision) -> dict[str, object]:
    """A question as a row of Visual-RAG's annotations, version 2."""
    return {
        "question": decision.question,
        "answer": list(decision.answers),
        "sn": decision.species,
        "images": dict(decision.labels),
        "y_rate": decision.clue_rate,
        "y_count": sum(decision.labels.values()),
        "is_changed_v2": "unchanged",
    }


def parameter_file_text(benchmark: Benchmark, name: str, data: JsonView, before: JsonView) -> str:
    """Return the text of a parameter file for `vrag run` on a benchmark.
    It lists the notebooks that can run (the others in a comment, each with its reason), `data` (its
    location, and articles where there are any), and the default models. The models of `before`, the
    values of the replaced file, have precedence. Results go to folders that end with `name`.
    """
    from vrag_kit.building.requirements import max_clues, unmet_requirements  # heavy

    reasons = unmet_requirements(benchmark, articles="articles" in data)
    run = [book for book, reason in reasons.items() if not reason]
    notebooks = [book if book == "00_tour" else f"visual_rag/{book}" for book in run]
    others = [f"# {book}: {reason}\n" for book, reason in reasons.items() if reason]
    values = {
        **data,
        "query_index": 0,
        "max_clues": max_clues(benchmark),
        "figures_dir": f"runs/figures-{name}",
        "trec_dir": f"runs/trec-{name}",
    }
    models = {**_MODELS, **{key: before[key] for key in _PRESERVED if key in before}}
    return (
        f"{_HEADER}{_yaml({'notebooks': notebooks})}# Not on this list:\n{''.join(others)}"
        f"{_yaml(_declared(values, run))}{_ABOUT_MODELS}{_yaml(_declared(models, run))}"
    )


def _declared(values: JsonView, run: list[str]) -> Json:
    """The values that a notebook of the list declares."""
    return {name: value for name, value in values.items() if _NEEDED_BY.get(name, run[0]) in run}
