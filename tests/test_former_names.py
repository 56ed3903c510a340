"""Parameter files with names that are keys of a mapping now are told how to write them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vrag_kit.errors import VragError
from vrag_kit.runner.parameters import declared
from vrag_kit.runner.plan import all_notebooks, read_plan

FORMER = {
    "k_images: 5\nk_texts: 4": ("mrag_suite/46", "k: {image: 5, text: 4}"),
    "votes: 2\nconfidence: 0.8": ("mrag_suite/41", "rules: {votes: 2, confidence: 0.8}"),
    "drop_share: 0.2": ("mrag_suite/41", "rules: {drop_share: 0.2}"),
    "seed: 1": ("mrag_suite/43", "questions: {seed: 1}"),
    "claim_labels: [a.csv, b.csv]": ("mrag_suite/44", "labelling: {files: [a.csv, b.csv]}"),
    "per_arm: 3\nlabeller: ada": ("visual_rag/11", "labelling: {per_arm: 3, labeller: ada}"),
    "assessed_questions: 9\nleft_out: 0": (
        "mrag_suite/45",
        "assess: {questions: 9, left_out: 0}",
    ),
    "prompts: [CoT]\nas_printed: 0": ("mrag_suite/46", "sweep: {prompts: [CoT], as_printed: 0}"),
    "swept_questions: 7": ("mrag_suite/46", "sweep: {questions: 7}"),
    "filter_model: ''": ("building/20", "coarse_filter: {filter_model: ''}"),
    "filter_wording: yes_no": ("building/20", "coarse_filter: {wording: yes_no}"),
    "position_ks: [5]\nposition_draws: 2": ("visual_rag/15", "positions: {ks: [5], draws: 2}"),
    "evidence_ks: [1, 5]\nevidence_draws: 2": (
        "visual_rag/19",
        "evidence: {ks: [1, 5], draws: 2}",
    ),
    "largest_description: 0.4\nlargest_clue_rate: 0.2": (
        "building/20",
        "largest: {description: 0.4, clue_rate: 0.2}",
    ),
}


@pytest.mark.parametrize("lines", FORMER)
def test_a_former_name_is_refused_with_what_to_write_and_that_is_taken(
    lines: str, tmp_path: Path
) -> None:
    book, now = FORMER[lines]
    (name,) = [
        f"{each.parent.name}/{each.stem}"
        for each in all_notebooks()
        if f"{each.parent.name}/{each.name}".startswith(book)
    ]
    file = tmp_path / "p.yaml"
    file.write_text(f"notebooks: [{name}]\n{lines}\n", encoding="utf-8")
    with pytest.raises(VragError) as refused:
        read_plan(file)
    (told,) = str(refused.value).splitlines()
    assert told.endswith(f"written {now} now.")

    file.write_text(f"notebooks: [{name}]\n{now}\n", encoding="utf-8")
    (given,) = read_plan(file).given.values()
    ((mapping, values),) = yaml.safe_load(now).items()
    (whole,) = [each for each in all_notebooks() if each.stem == name.split("/")[1]]
    assert given[mapping] == {**declared(whole)[mapping], **values}  # the others stay


def test_a_parameter_that_is_gone_is_told_with_what_there_is_instead(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("notebooks: [crag_mm]\nabstention: kit\n", encoding="utf-8")
    with pytest.raises(VragError) as refused:
        read_plan(file)
    (told,) = str(refused.value).splitlines()
    assert "abstention is no parameter any more" in told
    assert "52 and 56 show the other readings" in told


def test_what_was_mistyped_is_told_beside_a_former_name(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    text = "notebooks: [mrag_suite/43_evidence_modes]\nk_images: 5\ndataset: []\nquestions: 24\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(VragError) as refused:
        read_plan(file)
    former, unknown, number = str(refused.value).splitlines()
    assert former.endswith("k_images is written k: {image: 5} now.")
    assert "declares 'dataset'. Did you mean 'datasets'?" in unknown
    assert "questions is 24 (int)" in number
    assert number.endswith("In YAML: questions: {a data set: …}.")


@pytest.mark.parametrize(
    "count", ["k: {image: 0}", "rules: {votes: 0}", "positions: {draws: 0}", "evidence: {draws: 0}"]
)
def test_a_number_within_a_mapping_is_one_at_least(count: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"notebooks: [mrag_suite, visual_rag]\n{count}\n", encoding="utf-8")
    with pytest.raises(VragError, match="is 0; expected a whole number from 1 on"):
        read_plan(file)
