"""Sheets of claims for the tests, drawn by hand or at random, a small grammar, and the metrics'
slow and obvious definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from vrag_kit.claims import (
    ClaimVerdicts,
    EntailmentLabel,
    EntailmentRequest,
)
from vrag_kit.claims.verdicts import EvidenceItem, Label

SCORES = {"E": 1.0, "N": 0.0, "C": -1.0, "?": math.nan}


def row(letters: str) -> list[float]:
    """Verdicts by the initials of their labels; "?" is one that could not be read."""
    return [SCORES[letter] for letter in letters]


def letters(verdicts: np.ndarray) -> str:
    """The initials of verdicts."""
    return "".join("?" if math.isnan(score) else "CNE"[int(score) + 1] for score in verdicts)


def plain(sheet: ClaimVerdicts) -> tuple[object, ...]:
    """All that a sheet holds, to compare it with another."""
    return *sheet.subject, *map(letters, sheet.verdicts)


def block(own: str, by_item: list[str]) -> np.ndarray:
    """The verdicts on some claims: of answers, and for each claim those of all items."""
    rows = [row(first + rest) for first, rest in zip(own, by_item, strict=True)]
    return np.array(rows, float)


def sheet(
    items: str, claims: list[str], gold: list[str], accepted: str, recalled: str
) -> ClaimVerdicts:
    """A sheet of items "i" (image) and "t" (text), and rows of labels by initials; in
    `accepted` and `recalled` 1 stands for entailed and 0 for neutral.
    """
    binary = str.maketrans("10", "EN")
    verdicts = block((accepted + recalled).translate(binary), [*claims, *gold])
    return ClaimVerdicts(
        query_id="q",
        claims=tuple(f"claim {n}" for n in range(len(claims))),
        gold_claims=tuple(f"gold claim {n}" for n in range(len(gold))),
        items=tuple(
            EvidenceItem(f"d{n}", "image" if letter == "i" else "text")
            for n, letter in enumerate(items)
        ),
        verdicts=verdicts.reshape(len(claims) + len(gold), 1 + len(items)),
    )


@st.composite
def sheets(draw: st.DrawFn, letters: str = "ENC?") -> ClaimVerdicts:
    """Any sheet of up to four claims, gold claims and items."""
    n, m, p = (draw(st.integers(0, 4)) for _ in range(3))

    def labels(length: int) -> str:
        return draw(st.text(letters, min_size=length, max_size=length))

    items = draw(st.text("it", min_size=p, max_size=p))
    claims = [labels(p) for _ in range(n)]
    gold = [labels(p) for _ in range(m)]
    return sheet(items, claims, gold, labels(n), labels(m))


def slow_ragchecker(of: ClaimVerdicts, empty: float) -> dict[str, float]:
    """RAGChecker's definitions, by loops over every triple of claim, gold claim and
    item; None as any verdict that is missing.
    """
    n, m, p = len(of.claims), len(of.gold_claims), len(of.items)
    told = [
        _is_e(of.recalled[j]) for j in range(m) if any(_is_e(of.on_gold[j][d]) for d in range(p))
    ]
    counts = dict.fromkeys(("p", "h", "s", "f", "nr", "ni"), 0)
    for i in range(n):
        right = _is_e(of.accepted[i])
        by_relevant = by_irrelevant = False
        for d in range(p):
            relevant = any(_is_e(of.on_gold[j][d]) for j in range(m))
            if _is_e(of.on_claims[i][d]):
                by_relevant |= relevant
                by_irrelevant |= not relevant
        found = by_relevant or by_irrelevant
        counts["p"] += right
        counts["f"] += found
        counts["h"] += not right and not found
        counts["s"] += right and not found
        counts["nr"] += not right and by_relevant
        counts["ni"] += not right and by_irrelevant and not by_relevant
    recall = sum(_is_e(label) for label in of.recalled)
    there = sum(any(_is_e(label) for label in each) for each in of.on_gold)
    relevant = sum(any(_is_e(of.on_gold[j][d]) for j in range(m)) for d in range(p))
    a, b = np.isnan(of.accepted).any(), np.isnan(of.recalled).any()
    s, t = np.isnan(of.on_claims).any(), np.isnan(of.on_gold).any()

    def value(above: float, below: float, sizes: tuple[int, ...], missing: bool) -> float:
        if 0 in sizes:
            return empty
        if missing:
            return math.nan
        return above / below if below else empty

    precision = value(counts["p"], n, (n,), a)
    recalled = value(recall, m, (m,), b)
    f1 = 0.0
    if n == 0 or m == 0:
        f1 = empty
    elif a or b:
        f1 = math.nan
    elif precision and recalled:
        f1 = 2 / (1 / precision + 1 / recalled)
    return {
        "precision": precision,
        "recall": recalled,
        "f1": f1,
        "claim_recall": value(there, m, (m, p), t),
        "context_precision": value(relevant, p, (m, p), t),
        "context_utilization": value(sum(told), len(told), (m, p), t or b),
        "noise_sensitivity_in_relevant": value(counts["nr"], n, (n, m, p), a or s or t),
        "noise_sensitivity_in_irrelevant": value(counts["ni"], n, (n, m, p), a or s or t),
        "hallucination": value(counts["h"], n, (n, p), a or s),
        "self_knowledge": value(counts["s"], n, (n, p), a or s),
        "faithfulness": value(counts["f"], n, (n, p), s),
    }


def slow_evidence(of: ClaimVerdicts) -> dict[tuple[str, str], float]:
    """MM-RAGChecker's definitions, of claims (items) of which every verdict is known."""
    places = {
        "all": list(range(len(of.items))),
        "image": [d for d, item in enumerate(of.items) if item.modality == "image"],
        "text": [d for d, item in enumerate(of.items) if item.modality == "text"],
    }
    claims = list(range(len(of.claims)))
    shown = claims if of.items else []
    found: dict[tuple[str, str], float] = {}
    for name, letter in (("entailed", "E"), ("neutral", "N"), ("contradicted", "C")):
        known = [_final(letters(of.on_claims[i])) for i in shown]
        found[f"{name}_share", "all"] = _mean([x == letter for x in known if x != "?"])
    conflicts = []
    for i in shown:
        labels = letters(of.on_claims[i])
        if "?" not in labels:
            conflicts.append("E" in labels and "C" in labels)
    found["conflicted_share", "all"] = _mean(conflicts)
    found["answer_claim_recall", "all"] = _mean(
        [x == "E" for x in letters(of.recalled) if x != "?"]
    )
    for modality, where in places.items():
        used = [_any([of.on_claims[i][d] for i in claims]) for d in where]
        found["evidence_utilization", modality] = _mean([x for x in used if x is not None])
        recalled = [_any([each[d] for d in where]) for each in of.on_gold] if where else []
        found["claim_recall", modality] = _mean([x for x in recalled if x is not None])
    for name in ("evidence_utilization", "claim_recall"):
        found[f"{name}_gap", "all"] = found[name, "image"] - found[name, "text"]
    both_or_either = []
    for i in claims:
        s_img = _any([of.on_claims[i][d] for d in places["image"]])
        s_txt = _any([of.on_claims[i][d] for d in places["text"]])
        if s_img is not None and s_txt is not None and (s_img or s_txt):
            both_or_either.append(s_img and s_txt)
    two = places["image"] and places["text"]
    found["cross_modal_agreement", "all"] = _mean(both_or_either) if two else math.nan
    for modality in ("image", "text"):
        support = []
        for i in claims:
            if of.accepted[i] in (0, -1):
                support.append(_any([of.on_claims[i][d] for d in places[modality]]))
        known = [x for x in support if x is not None]
        found["error_support", modality] = _mean(known) if places[modality] else math.nan
    return found


def _final(labels: str) -> str:
    return next(letter for letter in "?ECN" if letter in labels)


def _any(labels: list[float]) -> bool | None:
    return None if any(map(math.isnan, labels)) else any(map(_is_e, labels))


def _is_e(label: float) -> bool:
    return label == 1


def _mean(truths: list[bool]) -> float:
    return sum(truths) / len(truths) if truths else math.nan


W1 = sheet(
    "iitt",
    ["ENNN", "ENEN", "NNNC", "NNNN", "NENC", "NNNN"],
    ["ENNN", "NNEN", "NNNE", "NNNN"],
    "110101",
    "1100",
)


W2 = sheet("it", [], ["EN", "NN"], "", "10")


W3 = sheet("", ["", ""], ["", ""], "10", "10")


W4 = sheet("ii", ["EN", "NN"], [], "00", "")


W5 = sheet("it", ["?E", "?N"], ["EN"], "10", "1")


COLORS = ("red", "blue", "green")


class Colors:
    """A grammar of colours: a text that names some denies the others."""

    def claims(self, question: str, words: str) -> list[str]:
        return [f"It is {word}." for word in words.split() if word in COLORS]

    def relation(self, claim: str, text: str) -> EntailmentLabel | None:
        found = [word for word in COLORS if word in text.split()]
        if not found:
            return EntailmentLabel.NEUTRAL
        same = claim[len("It is ") : -1] in found
        return EntailmentLabel.ENTAILMENT if same else EntailmentLabel.CONTRADICTION


class Painter:
    """Knows what each picture shows by its name; counts what it is asked."""

    name, fingerprint = "painter", "painter"

    def __init__(self) -> None:
        self.asked: list[EntailmentRequest] = []

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        self.asked += requests
        labels = []
        for each in requests:
            color = each.item.doc_id.rpartition("_")[2]
            labels.append(tuple(Colors().relation(claim, color) for claim in each.claims))
        return labels
