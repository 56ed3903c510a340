"""Sheets of claims for the tests, drawn by hand or at random, a small grammar, and the metrics'
slow and obvious definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from vrag_kit.claims import ClaimVerdicts, EntailmentLabel, EntailmentRequest
from vrag_kit.claims.verdicts import MODALITIES, EvidenceItem, Label

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
    kinds = ["image" if letter == "i" else "text" for letter in items]
    return ClaimVerdicts(
        query_id="q",
        claims=tuple(f"claim {n}" for n in range(len(claims))),
        gold_claims=tuple(f"gold claim {n}" for n in range(len(gold))),
        items=tuple(EvidenceItem(f"d{n}", kind) for n, kind in enumerate(kinds)),
        verdicts=verdicts.reshape(len(claims) + len(gold), 1 + len(items)),
    )


@st.composite
def sheets(draw: st.DrawFn, letters: str = "ENC?") -> ClaimVerdicts:
    """Any sheet of up to four claims, gold claims and items."""
    size = st.integers(0, 4)
    n, m = draw(size), draw(size)
    p = draw(size)

    def labels(length: int) -> str:
        return draw(st.text(letters, min_size=length, max_size=length))

    items = draw(st.text("it", min_size=p, max_size=p))
    claims = [labels(p) for _ in range(n)]
    gold = [labels(p) for _ in range(m)]
    return sheet(items, claims, gold, labels(n), labels(m))


def slow_ragchecker(of: ClaimVerdicts, empty: float) -> dict[str, float]:
    """RAGChecker's definitions by sets of numbers of claims, gold claims and items; `empty` is
    the share of nothing, NaN that of verdicts of which one is missing.
    """
    claims, gold = range(len(of.claims)), range(len(of.gold_claims))
    items = range(len(of.items))
    right = {i for i in claims if of.accepted[i] == 1}
    recalled = {j for j in gold if of.recalled[j] == 1}
    supported = {(i, d) for i, d in product(claims, items) if of.on_claims[i][d] == 1}
    told = {(j, d) for j, d in product(gold, items) if of.on_gold[j][d] == 1}
    there, relevant = {j for j, _ in told}, {d for _, d in told}
    found = {i for i, _ in supported}
    by_relevant = {i for i, d in supported if d in relevant}
    a, b = of.accepted, of.recalled
    s, t = of.on_claims, of.on_gold

    def share(part: Any, whole: Any, sizes: Sequence[range], *verdicts: np.ndarray) -> float:
        if not all(sizes):
            return empty
        if any(np.isnan(each).any() for each in verdicts):
            return math.nan
        return len(part) / len(whole) if whole else empty

    one, all_three = (claims, items), (claims, gold, items)
    precision, recall = share(right, claims, (claims,), a), share(recalled, gold, (gold,), b)
    f1 = share((), claims, (claims, gold), a, b)  # 0, if it is a number
    if f1 == 0 and precision * recall > 0:
        f1 = 2 / (1 / precision + 1 / recall)
    return {
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "claim_recall": share(there, gold, (gold, items), t),
        "context_precision": share(relevant, items, (gold, items), t),
        "context_utilization": share(there & recalled, there, (gold, items), t, b),
        "noise_sensitivity_in_relevant": share(by_relevant - right, claims, all_three, a, s, t),
        "noise_sensitivity_in_irrelevant": share(
            found - by_relevant - right, claims, all_three, a, s, t
        ),
        "hallucination": share({*claims} - found - right, claims, one, a, s),
        "self_knowledge": share(right - found, claims, one, a, s),
        "faithfulness": share(found, claims, one, s),
    }


def slow_evidence(of: ClaimVerdicts) -> dict[tuple[str, str], float]:
    """MM-RAGChecker's definitions, of claims (items) of which every verdict is known."""
    kinds = [item.modality for item in of.items]
    places = {"all": list(range(len(kinds)))}
    for modality in ("image", "text"):
        places[modality] = [d for d in places["all"] if kinds[d] == modality]
    known = [labels for labels in map(letters, of.on_claims) if "?" not in labels and kinds]
    found: dict[tuple[str, str], float] = {}
    for name, letter in (("entailed", "E"), ("neutral", "N"), ("contradicted", "C")):
        final = [next(each for each in "ECN" if each in labels) for labels in known]
        found[f"{name}_share", "all"] = _mean([each == letter for each in final])
    found["conflicted_share", "all"] = _mean([{*"EC"} <= {*labels} for labels in known])
    recalled = letters(of.recalled).replace("?", "")
    found["answer_claim_recall", "all"] = _mean([each == "E" for each in recalled])
    for modality, where in places.items():
        used = [_any(of.on_claims[:, d]) for d in where]
        found["evidence_utilization", modality] = _mean(used)
        told = [_any(each[where]) for each in of.on_gold] if where else []
        found["claim_recall", modality] = _mean(told)
    for name in ("evidence_utilization", "claim_recall"):
        found[f"{name}_gap", "all"] = found[name, "image"] - found[name, "text"]
    by_image, by_text = ([_any(each[places[kind]]) for each in of.on_claims] for kind in MODALITIES)
    both = []
    for pair in zip(by_image, by_text, strict=True):
        if None not in pair and any(pair):
            both.append(all(pair))
    two = places["image"] and places["text"]
    found["cross_modal_agreement", "all"] = _mean(both) if two else math.nan
    for modality, support in (("image", by_image), ("text", by_text)):
        wrong = [each for each, right in zip(support, of.accepted, strict=True) if right <= 0]
        found["error_support", modality] = _mean(wrong) if places[modality] else math.nan
    return found


def _any(verdicts: np.ndarray) -> bool | None:
    """Whether one is entailed; None where one is missing."""
    return None if np.isnan(verdicts).any() else bool((verdicts == 1).any())


def _mean(truths: Sequence[bool | None]) -> float:
    known = [each for each in truths if each is not None]
    return sum(known) / len(known) if known else math.nan


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
