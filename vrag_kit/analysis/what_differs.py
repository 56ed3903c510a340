"""Differences in configuration between two compared sides: conditions, judges and their prompts,
and notebook parameters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from vrag_kit.analysis.run_comparison import Choice, match_answers
from vrag_kit.generation.ask import quote_with_counts
from vrag_kit.types import Json
from vrag_kit.workspace import portable_path

_COLUMNS = ("setting", "A", "B")
ABSENT = "–"
"""The text for a parameter that one side lacks."""
NOT_KEPT = "not recorded"
Line = tuple[str, str, str]


def config_diff(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
) -> pd.DataFrame:
    """Compares the configurations of two sides of answers (of `load_answers`, or `add_questions`),
    selected as in `paired_answers`. There is one row per difference (setting, A, B), with full
    texts; no row where nothing differs.

    First come the columns that are compared, then the models that endpoints report, then the judges
    where they are not the same (`judge_id`), and their prompts where these are known and differ,
    then parameters of the notebooks that saved the answers, key by key where they are mappings
    ("decoding.max_new_tokens"), with the experiment after the name where not all of them differ so.
    Where a side's parameters were not recorded, a row says so. Raises as `match_answers`.
    """
    matched = match_answers(a, b, choose_a=choose_a, choose_b=choose_b)
    compared = [name for name in matched.values if name not in matched.by]
    lines = [_line(name, *matched.values[name]) for name in compared]
    sides = matched.sides
    if apart := "experiment" in matched.by:
        one, other = sides
        sides = [
            one[one["experiment"].isin(set(other["experiment"]))],
            other[other["experiment"].isin(set(one["experiment"]))],
        ]
    lines += [*_served(*sides), *_judges(*sides), *_parameters(*sides, apart=apart)]
    return pd.DataFrame(lines, columns=list(_COLUMNS))


def _line(name: str, a: object, b: object) -> Line:
    """A line of the table: paths from the project, where that leaves them apart."""
    told = _in_words(_named(a)), _in_words(_named(b))
    return (name, *told) if told[0] != told[1] else (name, _in_words(a), _in_words(b))


def _in_words(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_in_words, value)) or "[]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _named(value: Any) -> Any:  # Any: of a parameter
    if isinstance(value, str):
        return portable_path(value)
    if isinstance(value, list):
        return [_named(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _named(each) for name, each in value.items()}
    return value


def _served(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[Line]:
    """The models that endpoints say answered, where both sides have some, and others."""
    names = [Counter(side.get("served_model", pd.Series(dtype=object)).dropna()) for side in (a, b)]
    for each in names:
        each.pop("", None)
    if all(names) and set(names[0]) != set(names[1]):
        yield "served model", quote_with_counts(names[0]), quote_with_counts(names[1])


def _judges(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[Line]:
    """The judges of both sides, and their words, where they are not the same."""
    judges = [_once(side, "judge", "judge_id") for side in (a, b)]
    names = [[name for name, _ in told] for told in judges]
    if names[0] == names[1]:
        known = all(key for _, key in [*judges[0], *judges[1]])
        if judges[0] == judges[1] or not known:
            return
        names = [[f"{name} ({key})" for name, key in told] for told in judges]
    if not all(judges):
        return
    yield _line("judge", *names)
    words = [[each for (each,) in _once(side, "judge_prompt")] for side in (a, b)]
    if words[0] != words[1]:
        yield _line("what the judge is asked", *("\n\n".join(each) or ABSENT for each in words))


def _once(side: pd.DataFrame, *names: str) -> list[tuple[str, ...]]:
    """The different rows of some columns, "" where one is missing; [] without the first."""
    if names[0] not in side:
        return []
    columns = side.reindex(columns=list(names)).astype(object).fillna("").astype(str)
    return list(columns.drop_duplicates().itertuples(index=False, name=None))


def _parameters(a: pd.DataFrame, b: pd.DataFrame, *, apart: bool) -> list[Line]:
    """The parameters that differ, each once; experiments `apart` where both sides have the
    same ones.
    """
    kept = [_kept(side, apart=apart) for side in (a, b)]
    missing = [not any(told.values()) for told in kept]
    if any(missing):
        said = [NOT_KEPT if none else "kept" for none in missing]
        return [("parameters of the notebook", said[0], said[1])]
    found: dict[Line, list[str]] = {}
    having: dict[str, int] = {}
    for experiment, one in kept[0].items():
        other = kept[1][experiment]
        for name in {**one, **other}:
            for line in _differing(name, one.get(name, ABSENT), other.get(name, ABSENT)):
                found.setdefault(line, []).append(experiment)
            having[name] = having.get(name, 0) + 1
    lines = []
    for (name, in_a, in_b), where in found.items():
        everywhere = len(where) == having[name.partition(".")[0]]
        lines.append((name if everywhere else f"{name} ({', '.join(where)})", in_a, in_b))
    return lines


def _kept(side: pd.DataFrame, *, apart: bool) -> dict[str, Json]:
    """Experiment → its parameters; all in one, called "", unless they are `apart`."""
    if "parameters" not in side:
        return {"": {}}
    found: dict[str, Json] = {}
    names = side["experiment"] if apart else [""] * len(side)
    for name, text in dict.fromkeys(zip(names, side["parameters"], strict=True)):
        found.setdefault(name, {}).update(
            json.loads(text) if isinstance(text, str) and text else {}
        )
    return found


def _differing(name: str, a: Any, b: Any) -> Iterator[Line]:  # Any: of a parameter
    """The lines of one parameter: none where it is the same."""
    if a == b:
        return
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        one, other = _keys(a), _keys(b)
        for key in {**one, **other}:
            yield from _differing(f"{name}.{key}", one.get(key, ABSENT), other.get(key, ABSENT))
    else:
        yield _line(name, a, b)


def _keys(value: Any) -> Mapping[str, Any]:  # Any: of a parameter
    """A mapping as it is; a name alone is the entry of that model."""
    if isinstance(value, Mapping):
        return value
    return {} if value == ABSENT else {"model": value}
