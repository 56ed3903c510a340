"""An old name is refused with the new one, and a mistyped one with the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest
from strip_notebooks import PATHS

from vrag_kit.checkpoints import shipped_models
from vrag_kit.errors import RENAMED, VragError, did_you_mean, nearest
from vrag_kit.generation.conversation import HISTORIES
from vrag_kit.papers.crag_mm.search import REWRITES
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import read_plan
from vrag_kit.synthetic.crag_mm.opening import WEBS
from vrag_kit.synthetic.editions import CRAG_MM_EDITIONS, DRAWN, DRAWN_MRAG, DRAWN_SUITE
from vrag_kit.synthetic.mrag_bench.opening import open_mrag_bench


def names_in_use() -> set[str]:
    """Parameters, the keys and choices of their mappings, data and models."""
    names = {*DRAWN, *DRAWN_MRAG, *CRAG_MM_EDITIONS, *DRAWN_SUITE, *shipped_models()}
    names |= {*HISTORIES, *REWRITES, *WEBS}
    for notebook in PATHS:
        for name, default in declared_parameters(notebook).items():
            names |= {name, *(default if isinstance(default, dict) else ())}
    return names


def test_every_new_name_is_in_use_and_no_old_one_leads_to_itself() -> None:
    new = {name for names in RENAMED.values() for name in names}
    assert new - names_in_use() == set()
    assert [old for old, names in RENAMED.items() if old in names] == []


def test_an_old_name_leads_to_the_new_one_though_another_is_spelt_more_alike() -> None:
    assert nearest("company_ks", ["companies", "distractor_ks"]) == "distractor_ks"
    assert nearest("company_ks", ["companies"]) == "companies"
    assert did_you_mean("margin", ["ks", "region_margin"]) == " Did you mean 'region_margin'?"
    assert did_you_mean("x", ["ks"]) == ""


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("company_ks: [1, 5]", "distractor_ks"),
        ("run_with: {device: cpu}", "decoding"),
        ("labelling: {per_arm: 2}", "per_setting"),
    ],
)
def test_a_parameter_file_with_an_old_name_is_told_the_new_one(
    line: str, new: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"notebooks: [visual_rag]\n{line}\n", encoding="utf-8")
    with pytest.raises(VragError, match=f"Did you mean '{new}'"):
        read_plan(file)


def test_data_with_an_old_name_are_told_the_new_one() -> None:
    with pytest.raises(VragError, match="'field-guide-mrag-bench'"):
        open_mrag_bench("mrag-drawn", "")
