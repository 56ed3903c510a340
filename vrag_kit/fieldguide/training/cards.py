"""The model cards of the demo's models, filled in from what `training.json` records."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_kit.fieldguide.scenarios import SCENARIOS, known_species
from vrag_kit.fieldguide.training.lessons import READ_TOKENS, TOLD_SHARE, UNKNOWN, told_species
from vrag_kit.fieldguide.training.tower import ARCHITECTURE, CHANNELS, IMAGE_SIZE
from vrag_kit.fieldguide.training.worn_stock import ALIKE, EACH, INPUT, SHARD
from vrag_kit.fieldguide.worn.pictures import QUALITIES
from vrag_kit.generation.told import TOLD_FILE
from vrag_kit.plain import Json

HERE = Path(__file__).parent
QUERIES = 16  # questions in a step of the retrievers' training
PHOTOS = 8  # photographs of each
CLUES = 2  # of these
_SETS = ("told", "clue", "no clue", "1 in 5", "1 in 15", "read", "not read")


def write_retriever_card(folder: Path) -> None:
    """Write the card of the retriever in `folder`."""
    notes = _notes(folder)
    recipe, last = notes["recipe"], notes["log"][-1]
    rows = [
        f"| {row['step']} | {row['loss']:.2f} | {100 * row['hit@1']:.0f} | {100 * row['hit@5']:.0f}"
        f" | {row['mrr']:.2f} |"
        for row in notes["log"]
        if row["step"] % 500 == 0 or row is last
    ]
    values = {
        "name": notes["name"],
        "torch": notes["torch"],
        "recipe": recipe,
        "blocks": tuple(recipe["blocks"]),
        "size": _megabytes(folder),
        "queries": QUERIES,
        "photos": PHOTOS,
        "clues": CLUES,
        "others": PHOTOS - CLUES,
        "n_species": recipe["steps"] * QUERIES,
        "n_photos": recipe["steps"] * QUERIES * PHOTOS,
        "minutes": last["minutes"],
        "rows": "\n".join(rows),
    }
    _fill("card_retriever.md", values, folder)


def write_fused_card(folder: Path) -> None:
    """Write the card of the fused retriever in `folder`."""
    notes = _notes(folder)
    recipe, last = notes["recipe"], notes["log"][-1]
    names = [name for name in last if name not in ("step", "loss", "minutes", "all")]
    values = {
        "name": notes["name"],
        "torch": notes["torch"],
        "recipe": recipe,
        "sizes": notes["sizes"],
        "size": _megabytes(folder),
        "n_pictures": recipe["topics"] * (1 + recipe["examples"]),
        "n_found": recipe["held_out"] * recipe["pool"],
        "minutes": last["minutes"],
        "all": 100 * last["all"],
        "rows": "\n".join(f"| {name} | {100 * last[name]:.0f} |" for name in names),
    }
    _fill("card_fused.md", values, folder)


def write_worn_encoder_card(folder: Path) -> None:
    """Write the card of the encoder of worn pictures in `folder`."""
    notes = _notes(folder)
    recipe, last = notes["recipe"], notes["log"][-1]
    shown = ("recall@1", "recall@10", "kind", "color", "pattern", "second")
    rows = []
    for row in notes["log"]:
        shares = " | ".join(f"{100 * row[name]:.0f}" for name in shown)
        rows.append(f"| {row['step']} | {row['loss']:.2f} | {shares} |")
    values = {
        "name": notes["name"],
        "torch": notes["torch"],
        "recipe": recipe,
        "size": _megabytes(folder),
        "species": recipe["shards"] * SHARD,
        "pictures": recipe["shards"] * SHARD * EACH,
        "step_species": recipe["clusters"] * ALIKE,
        "input": INPUT,
        "minutes": last["minutes"],
        "threshold": last["threshold"],
        "precision": 100 * last["precision"],
        "kept": 100 * last["kept"],
        "rows": "\n".join(rows),
        "qualities": ", ".join(f"{name} {100 * last[name]:.0f}" for name in QUALITIES),
    }
    _fill("card_worn_encoder.md", values, folder)


def write_answerer_card(folder: Path) -> None:
    """Write the card of the answerer in `folder`."""
    notes = _notes(folder)
    recipe, rounds = notes["recipe"], notes["tower"]
    plan, sees = recipe["plan"], rounds[-1]["log"][-1]
    seldom = f" (in one of six such prompts up to {plan['seldom']})" if plan["seldom"] else ""
    values = {
        "name": notes["name"],
        "torch": notes["torch"],
        "recipe": recipe,
        "plan": plan,
        "prompts": plan["told"] + plan["guess"] + plan["single"] + plan["several"],
        "seldom": seldom,
        "size": _megabytes(folder),
        "unknown": UNKNOWN,
        "read_tokens": READ_TOKENS,
        "n_told": len(told_species()),
        "told_file": TOLD_FILE,
        "told_share": 100 * TOLD_SHARE,
        "architecture": ARCHITECTURE,
        "channels": list(CHANNELS),
        "image_size": IMAGE_SIZE,
        "photographs": sum(_photographs(row) for row in rounds),
        "tower_minutes": sum(row["log"][-1]["minutes"] for row in rounds),
        "minutes": notes["log"][-1]["minutes"],
        "color": 100 * sees["color"],
        "pattern": 100 * sees["pattern"],
        "unworded": recipe["alone"] + recipe["bare"],
        "sets": " | ".join(_SETS),
        "rules": "---|" * len(_SETS),
        "rows": "\n".join(_row(row) for row in notes["log"]),
    }
    _fill("card_answerer.md", values, folder)


def write_chooser_card(folder: Path) -> None:
    """Write the card of the answerer of choices in `folder`."""
    notes = _notes(folder)
    eyes, reading = notes["eyes"], notes.get("reading", {"parts": [], "log": []})
    last = [*notes["log"], *reading["log"]][-1]
    sees = eyes["log"][-1]
    text = json.loads((folder / "config.json").read_text(encoding="utf-8"))["text_config"]
    sets = ("none", "1", "5", "mixed", "20", "tells", "one", "say")
    counts, rows = notes["exercises"], []
    for row in [*notes["log"], *reading["log"]]:
        shares = " | ".join(f"{100 * row[name]:.0f}" if name in row else "" for name in sets)
        rows.append(f"| {row['step']} | {row['loss']:.2f} | {shares} |")
    values = {
        **notes["recipe"],
        "name": notes["name"],
        "torch": notes["torch"],
        "architecture": ARCHITECTURE,
        "image_size": IMAGE_SIZE,
        "size": _megabytes(folder),
        "layers": text["num_hidden_layers"],
        "vocabulary": text["vocab_size"],
        "pictures": eyes["pictures"],
        "topics": eyes["topics"],
        "eyes_minutes": sees["minutes"],
        **{name: 100 * sees[name] for name in ("color", "pattern", "region", "chips")},
        "minutes": notes["log"][-1]["minutes"],
        "reading_steps": sum(part["steps"] for part in reading["parts"]),
        "reading_minutes": sum(row["minutes"] for row in reading["log"][-1:]),
        "n_known": len(known_species()),
        "counts": " | ".join(str(counts.get(name, "")) for name in sets),
        "rows": "\n".join(rows),
        "held_out": counts["5"],
        "each": counts["5"] // len(SCENARIOS),
        "scenarios": ", ".join(f"{name} {100 * last[name]:.0f}" for name in SCENARIOS),
    }
    _fill("card_chooser.md", values, folder)


def write_told(folder: Path) -> None:
    """Write the species that answerers are told about beside the weights in `folder`."""
    names = [species.scientific_name for species in told_species()]
    (folder / TOLD_FILE).write_text("\n".join(["about", *names, ""]), encoding="utf-8")


def _photographs(round_of_tower: Json) -> int:
    steps = sum(count for _, count in round_of_tower["phases"])
    return int(steps * round_of_tower["batch"])


def _row(row: Json) -> str:
    shares = [f"{100 * row[name]:.0f}" if name in row else "" for name in _SETS]
    return f"| {row['step']} | {row['loss']:.2f} | {' | '.join(shares)} |"


def _notes(folder: Path) -> Json:
    return dict(json.loads((folder / "training.json").read_text(encoding="utf-8")))


def _megabytes(folder: Path) -> float:
    files = [file for file in folder.iterdir() if file.suffix in (".safetensors", ".json")]
    return sum(file.stat().st_size for file in files) / 1e6


def _fill(template: str, values: Json, folder: Path) -> None:
    text = (HERE / template).read_text(encoding="utf-8").format(**values)
    (folder / "README.md").write_text(text, encoding="utf-8")


def write_talker_card(folder: Path) -> None:
    """Write the card of the answerer of conversations in `folder`."""
    notes = _notes(folder)
    last = notes["log"][-1]
    text = json.loads((folder / "config.json").read_text(encoding="utf-8"))["text_config"]
    names = [name for name in last if name not in ("step", "loss", "minutes")]
    arms, types = names[:5], names[5:]
    rows = []
    for row in notes["log"]:
        shares = " | ".join(f"{100 * row[name]:.0f}" for name in arms)
        rows.append(f"| {row['step']} | {row['loss']:.2f} | {shares} |")
    values = {
        **notes["recipe"],
        "name": notes["name"],
        "torch": notes["torch"],
        "architecture": ARCHITECTURE,
        "input": INPUT,
        "size": _megabytes(folder),
        "layers": text["num_hidden_layers"],
        "width": text["hidden_size"],
        "vocabulary": text["vocab_size"],
        "lessons": sum(phase["steps"] * phase["lessons"] for phase in notes["phases"]),
        "minutes": last["minutes"],
        "arms": " | ".join(arms),
        "rules": "---|" * len(arms),
        "rows": "\n".join(rows),
        "types": ", ".join(f"{name} {100 * last[name]:.0f}" for name in types),
    }
    _fill("card_talker.md", values, folder)
