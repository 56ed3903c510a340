"""Numbers in the paper's text and their values in its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.papers.crag_mm.printed import MULTI, SINGLE
from vrag_kit.papers.text_numbers import TextNumber, TextNumberRow, collect_text_numbers

_INDUSTRY = ("Claude Sonnet", "Gemini", "GPT-5", "SG MMAI")
_TEAM, _BASE = "Winning team", "Llama 3.2 11B RAG"
Tables = Mapping[int | str, pd.DataFrame]


def text_numbers(tables: Tables) -> list[TextNumber]:
    """Returns every number of the text, and of the README of the authors' code, that can be
    computed from the tables.
    """
    told = [
        *_straightforward(tables),
        *_found_entities(tables),
        *_systems(tables),
        *_data(tables),
        *_searches(tables),
    ]
    return collect_text_numbers(told) + _stops_and_differences(tables)


def _values(table: pd.DataFrame, split: str, metric: str, setting: str = "") -> pd.Series:
    """One metric by model or system; `setting` names an arm."""
    rows = table[(table["split"] == split) & (table["metric"] == metric)]
    if setting:
        rows = rows[rows["setting"] == setting]
    return rows.set_index("model")["value"]


def _straightforward(tables: Tables) -> list[TextNumberRow]:
    """The models alone, and with straightforward searches (section 5.2.1)."""
    single, multi = tables[8], tables[9]
    right = _values(single, SINGLE, "accuracy", "mm_llm")["GPT-5 Mini"]
    truth = _values(single, SINGLE, "truthfulness", "mm_llm")["GPT-5 Mini"]
    turns = _values(multi, MULTI, "accuracy", "mm_llm")["GPT-5 Mini"]
    talks = _values(multi, MULTI, "truthfulness", "mm_llm")["GPT-5 Mini"]
    gain = _values(single, SINGLE, "truthfulness", "task_1")["GPT-5 Mini"] - truth
    best = {
        "accuracy": _values(single, SINGLE, "accuracy", "task_2").max(),
        "truthfulness": _values(single, SINGLE, "truthfulness", "task_2").max(),
        "conversations": _values(multi, MULTI, "truthfulness", "task_3").max(),
    }
    mini, searched = "GPT-5 Mini alone", "straightforward solutions"
    where = "5.2.1"
    return [
        ("alone, accuracy", where, 8, f"{mini}: 37%", 37, right),
        ("alone, truthfulness", where, 8, f"{mini}: 18%", 18, truth),
        ("alone, accuracy, turns", where, 9, f"{mini}: 49%", 49, turns),
        ("alone, conversations", where, 9, f"{mini}: 30%", 30, talks),
        ("gain of image search", where, 8, "modest improvement (+4%)", 4, gain),
        ("searched, accuracy", where, 8, f"{searched}: 50%", 50, best["accuracy"]),
        ("searched, truthfulness", where, 8, f"{searched}: 32%", 32, best["truthfulness"]),
        ("searched, conversations", where, 9, f"{searched}: 43%", 43, best["conversations"]),
    ]


def _found_entities(tables: Tables) -> list[TextNumberRow]:
    """Where the entity was found (section 5.2.1, A.6.2)."""
    told = [
        (10, SINGLE, "accuracy", 56),
        (11, MULTI, "accuracy", 61),
        (10, SINGLE, "truthfulness", 39),
        (11, MULTI, "truthfulness", 42),
    ]
    rows: list[TextNumberRow] = []
    for number, split, metric, printed in told:
        own = _values(tables[number], split, metric).max()
        says = f"with the entity found at most {printed}%"
        rows.append((f"found, {metric}, {split}", "5.2.1", number, says, printed, own))
    return rows


def _systems(tables: Tables) -> list[TextNumberRow]:
    """Winners of the challenge and industry's systems (section 5.2.2)."""
    table, rows = tables[5], list[TextNumberRow]()
    where = "5.2.2"
    for split, main, gain, team, lowest, highest in (
        (SINGLE, tables[8], 13, 28, 31, 49),
        (MULTI, tables[9], 9, 18, 26, 35),
    ):
        right, truth = _values(table, split, "accuracy"), _values(table, split, "truthfulness")
        wrong = _values(table, split, "hallucination").loc[list(_INDUSTRY)]
        more = right.max() - _values(main, split, "accuracy").max()
        above = truth[_TEAM] - truth[_BASE]
        says = f"hallucination rates of industry: {lowest}–{highest}%"
        rows += [
            (f"industry, accuracy, {split}", where, 5, f"industry gains +{gain}%", gain, more),
            (f"winners, {split}", where, 5, f"winning solutions gain +{team}%", team, above),
            (f"least hallucination, {split}", where, 5, says, lowest, wrong.min()),
            (f"most hallucination, {split}", where, 5, says, highest, wrong.max()),
        ]
    best = {name: _values(table, SINGLE, name)["GPT-5"] for name in ("accuracy", "hallucination")}
    return [
        *rows,
        ("GPT-5, accuracy", "1", 5, "63% accuracy", 63, best["accuracy"]),
        ("GPT-5, hallucination", "1", 5, "with 31% hallucinations", 31, best["hallucination"]),
    ]


def _stops_and_differences(tables: Tables) -> list[TextNumber]:
    """Early stops (sections 5.2.3, A.6.1), and differences of rounded numbers (5.2.2)."""
    stops = _values(tables[5], MULTI, "early_stop")
    found = [
        TextNumber(
            name="fewest early stops",
            section="5.2.3",
            table=5,
            says="even the best system results in 27% of conversations being early-stopped",
            printed=27,
            found=float(stops.min()),
        ),
        TextNumber(
            name="fewest stops, straightforward",
            section="A.6.1",
            table=9,
            says="more than 44% of conversations were early stopped",
            printed=44,
            found=float(_values(tables[9], MULTI, "early_stop").min()),
            above=True,
        ),
    ]
    for split, number, printed in ((SINGLE, 8, 0), (MULTI, 9, 2)):
        ours = _values(tables[5], split, "truthfulness").max()
        gain = ours - _values(tables[number], split, "truthfulness").max()
        found.append(
            TextNumber(
                name=f"industry, truthfulness, {split}",
                section="5.2.2",
                table=f"5, {number}",
                says=f"industry's truthfulness remains similar (+{printed}%)",
                printed=printed,
                found=float(gain),
                rounded_first=True,
            )
        )
    return found


def _data(tables: Tables) -> list[TextNumberRow]:
    """Shares of images and questions (section 1), and what the code counts."""
    images = tables[2].set_index(["image_quality", "image_type"])["value"]
    every, worn = images["total", "total"], images["total", "egocentric"]
    low = worn - images["normal", "egocentric"]
    questions = tables[3].set_index(["domain", "split", "question_type"])["value"]
    single, talks = questions["total", SINGLE, "total"], questions["total", MULTI, "total"]
    simple = sum(
        questions["total", SINGLE, f"simple_{each}"] for each in ("recognition", "knowledge")
    )
    complex_share = 100 * (single - simple) / single
    several = 100 * talks / (single + talks)
    domains = tables[3]["domain"].nunique() - 1
    kinds = tables[3]["question_type"].nunique() - 1
    poor = "15% of images are low-quality egocentric images"
    return [
        ("egocentric images", "1", 2, "79% of the images are egocentric", 79, 100 * worn / every),
        ("low-quality egocentric images", "1", 2, poor, 15, 100 * low / every),
        ("complex questions", "1", 3, "52% of questions are complex", 52, complex_share),
        ("conversations", "1", 3, "23% are conversations", 23, several),
        ("domains", "code's README", 3, "14 domains", 14, domains),
        ("question types", "code's README", 3, "4 question types", 4, kinds),
    ]


def _searches(tables: Tables) -> list[TextNumberRow]:
    """What searches find, and the judge (sections 3.3 and 4)."""
    recall = tables["figure03_curves"].groupby("setting")["value"].max()
    judge = tables[7].set_index(["label", "metric"])["value"]
    return [
        ("image search", "3.3", "figure 3", "52% recall", 52, recall["whole image"]),
        ("web search", "3.3", "figure 3", "the top 50 hold 89%", 89, recall["full pages"]),
        ("judge", "4", 7, "99% accuracy", 99, judge["average", "accuracy"]),
    ]
