"""Claim metrics: both families from one sheet of verdicts, against slow, obvious definitions; and
RAGChecker's JSON, completed by models, measured, and otherwise unchanged.
"""

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claim_sheets import (
    W1,
    W2,
    W3,
    W4,
    W5,
    Colors,
    letters,
    plain,
    sheets,
    slow_evidence,
    slow_ragchecker,
)
from hypothesis import given
from PIL import Image
from readme_pages import README
from strange_server import StrangeServer, text_in
from typer.testing import CliRunner

from vrag_kit.claims import (
    ClaimVerdicts,
    RuleChecker,
    RuleExtractor,
    claim_means_by_modality,
    complete_ragchecker_json,
    evidence_metrics,
    ragchecker_metrics,
    read_ragchecker_json,
)
from vrag_kit.claims.ragchecker_json import add_ragchecker_metrics
from vrag_kit.errors import VragError
from vrag_kit.runner.cli import app

NAN = math.nan


def shares(of: ClaimVerdicts) -> dict[tuple[str, str], float]:
    return {key: found.value for key, found in evidence_metrics(of).items()}


def test_w1_in_both_families():
    """Worked by hand, as are those of RAGChecker below."""
    by_hand = {
        ("neutral_share", "all"): 1 / 3,
        ("entailed_share", "all"): 1 / 2,
        ("contradicted_share", "all"): 1 / 6,
        ("conflicted_share", "all"): 1 / 6,
        ("answer_claim_recall", "all"): 1 / 2,
        ("evidence_utilization", "image"): 1,
        ("evidence_utilization", "text"): 1 / 2,
        ("evidence_utilization_gap", "all"): 1 / 2,
        ("claim_recall", "all"): 3 / 4,
        ("claim_recall_gap", "all"): -1 / 4,
        ("cross_modal_agreement", "all"): 1 / 3,
        ("error_support", "image"): 1 / 2,
        ("error_support", "text"): 0,
    }
    found = shares(W1)
    assert {key: found[key] for key in by_hand} == pytest.approx(by_hand)
    assert ragchecker_metrics(W1) == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 1 / 2,
            "f1": 4 / 7,
            "claim_recall": 3 / 4,
            "context_precision": 3 / 4,
            "context_utilization": 2 / 3,
            "noise_sensitivity_in_relevant": 0,
            "noise_sensitivity_in_irrelevant": 1 / 6,
            "hallucination": 1 / 6,
            "self_knowledge": 1 / 3,
            "faithfulness": 1 / 2,
        }
    )


@given(sheets())
def test_random_sheets_agree_with_the_definitions_taken_literally(of):
    for empty, nothing in (("nan", NAN), ("zero", 0.0)):
        found = ragchecker_metrics(of, empty=empty)
        assert found == pytest.approx(slow_ragchecker(of, nothing), nan_ok=True)
    expected = slow_evidence(of)
    assert shares(of).keys() == expected.keys()
    assert shares(of) == pytest.approx(expected, nan_ok=True)


def test_ragcheckers_metrics_are_there_for_each_modality():
    table = pd.DataFrame({"model": "small", "query_id": list("abc"), "group": list("abc")})
    means = claim_means_by_modality(table.assign(sheet=[W1, W2, None]), by=["model"])
    found = means.set_index(["family", "metric", "modality"])["value"]
    for modality in ("image", "text"):
        slow = [slow_ragchecker(each.restrict_to_modality(modality), math.nan) for each in (W1, W2)]
        for metric in ("claim_recall", "context_precision", "hallucination", "faithfulness"):
            known = [each[metric] for each in slow if not math.isnan(each[metric])]
            mine = found["ragchecker", metric, modality]
            assert mine == pytest.approx(sum(known) / len(known))
    # by hand, W1's claims: an image entails the first, second and fifth
    assert found["mm_ragchecker", "entailed_share", "image"] == pytest.approx(1 / 2)
    assert found["mm_ragchecker", "entailed_share", "text"] == pytest.approx(1 / 6)
    assert not means.duplicated(["family", "metric", "modality"]).any()
    assert ("ragchecker", "precision", "image") not in found.index  # it looks at no evidence


WORDS = {1.0: "Entailment", 0.0: "Neutral", -1.0: "Contradiction"}


def result(of: ClaimVerdicts, query_id: str) -> dict[str, Any]:
    """A sheet as RAGChecker writes it, and what a file may hold beside."""
    labels = np.vectorize(WORDS.get, otypes=[object])
    context = [{"doc_id": item.doc_id, "text": "words"} for item in of.items]
    for entry, item in zip(context, of.items, strict=True):
        if item.modality == "image":
            entry["modality"] = "image"
    verdicts = {
        "answer2response": labels(of.accepted).tolist(),
        "response2answer": labels(of.recalled).tolist(),
        "retrieved2response": labels(of.on_claims).tolist(),
        "retrieved2answer": labels(of.on_gold).tolist(),
    }
    return raw(
        query_id=query_id,
        response="So — und so.",
        retrieved_context=context,
        response_claims=[["claim", "is", str(n)] for n, _ in enumerate(of.claims)],
        gt_answer_claims=[["gold", "is", str(n)] for n, _ in enumerate(of.gold_claims)],
        metrics={},
        **verdicts,
    )


CASES = {"w1": W1, "w2": W2, "w3": W3, "w4": W4, "w5": W5}


@pytest.fixture
def document():
    results = [result(of, query_id) for query_id, of in CASES.items()]
    return {"results": results, "overall_metrics": {}, "told by": "me"}


def vrag(*words: object) -> Any:
    return CliRunner().invoke(app, ["claims", *map(str, words)], catch_exceptions=False)


def test_json_has_every_answer_and_both_families(document, tmp_path):
    told = json.loads(vrag(write(tmp_path, document), "--json").stdout)
    assert list(told) == ["answers", "ragchecker", "rows"]
    assert told["answers"] == 5
    keys = ["query_id", "family", "metric", "modality"]
    rows = pd.DataFrame(told["rows"]).set_index(keys)["value"].astype(float)
    assert len(set(rows.index)) == len(rows) == 5 * (11 + 16)
    expected = {}
    for query_id, of in CASES.items():
        for metric, value in ragchecker_metrics(of, empty="zero").items():
            expected[query_id, "ragchecker", metric, "all"] = value
        for (metric, modality), found in evidence_metrics(of).items():
            expected[query_id, "mm_ragchecker", metric, modality] = found.value
    assert rows.to_dict() == pytest.approx(expected, nan_ok=True)
    groups = told["ragchecker"]
    assert groups["overall_metrics"]["precision"] == 33.3  # (2/3 + 0 + 1/2 + 0 + 1/2) / 5
    assert groups["generator_metrics"]["faithfulness"] == 25.0  # of four: w5's is unknown
    assert [len(group) for group in groups.values()] == [3, 2, 6]


def test_the_readmes_checked_result_can_be_measured(tmp_path):
    (shown,) = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    told = vrag(write(tmp_path, json.loads(shown)), "--json")
    assert told.exit_code == 0, told.output
    # one of two claims is right, and the right answer's only one is told
    assert '"precision": 50.0' in told.stdout
    assert '"recall": 100.0' in told.stdout


PLANS = {"Write one fact a line": ["say It is red."], "Judge claims": ["say 1: ENTAILMENT"]}


def raw(**more: object) -> dict[str, Any]:
    """A result of RAGChecker's input."""
    texts = {"a": "it is red", "b": "it is blue", "c": "it flies"}
    return {
        "query_id": "1",
        "query": "Of what color is it?",
        "gt_answer": "red",
        "response": "red and blue",
        "retrieved_context": [{"doc_id": doc_id, "text": text} for doc_id, text in texts.items()],
        "my own": {"kept": True},
        **more,
    }


def test_a_file_of_input_gets_claims_labels_and_metrics(tmp_path):
    result = raw()
    file = write(tmp_path, {"results": [result], "told by": "me"})
    found = complete_ragchecker_json(file, RuleExtractor(Colors()), RuleChecker(Colors()))
    (sheet,) = found.sheets
    assert (found.n_completed, found.failures) == (1, ())
    assert (sheet.claims, sheet.gold_claims) == (("It is red.", "It is blue."), ("It is red.",))
    # the claim red, then the claim blue: against the right answer; against a, b and c
    assert (letters(sheet.accepted), letters(sheet.recalled)) == ("EC", "E")
    assert [*map(letters, sheet.on_claims), *map(letters, sheet.on_gold)] == ["ECN", "CEN", "ECN"]
    document, left_out = add_ragchecker_metrics(found)
    assert left_out == 0
    (tmp_path / "out.json").write_text(json.dumps(document), encoding="utf-8")
    (again,) = read_ragchecker_json(tmp_path / "out.json").sheets
    assert plain(again) == plain(sheet)
    (told,) = document["results"]
    assert {name: told[name] for name in result} == result
    assert document["told by"] == "me"
    assert told["metrics"]["precision"] == 1 / 2
    assert told["metrics"]["faithfulness"] == 1


@pytest.mark.parametrize("image", ["link.png", "way/private.png", "pipe.png"])
def test_no_picture_outside_the_files_folder_is_read_or_sent(tmp_path, image):
    """The file lies in a folder that is a link, as `data` often is; more in `bad_inputs.csv`."""
    Image.new("RGB", (2, 2)).save(tmp_path / "private.png")
    (tmp_path / "disk").mkdir()
    (tmp_path / "files").symlink_to("disk")
    folder = tmp_path / "files"
    (folder / "link.png").symlink_to(tmp_path / "private.png")
    (folder / "way").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.png")
    shown = [{"doc_id": "p", "modality": "image", "image": image}]
    file = write(folder, {"results": [raw(retrieved_context=shown)]})
    named = "is a link that points outside" if image != "pipe.png" else "there is no picture"
    with StrangeServer(PLANS) as server:
        with pytest.raises(VragError, match=rf"raw\.json, query '1', .*number 1: .*{named}"):
            vrag(file, "--extractor", f"one@{server.url}", "--answers-dir", tmp_path / "answers")
        assert not server.requests  # nothing is asked in vain


def test_metrics_are_added_and_nothing_changed(document, tmp_path):
    out = tmp_path / "out.json"
    done = vrag(write(tmp_path, document), "--to", out)
    assert "note: 1 results have verdicts missing" in done.stderr
    del document["results"][4]  # w5, whose verdicts are not all there
    written = json.loads(out.read_text(encoding="utf-8"))
    for each in written["results"]:
        assert each["metrics"].keys() == ragchecker_metrics(W1).keys()
        each["metrics"] = {}
    for group in ("overall_metrics", "retriever_metrics", "generator_metrics"):
        assert all(0 <= value <= 100 for value in written.pop(group).values())
    del document["overall_metrics"]
    assert written == document
    again = json.loads(vrag(out, "--json").stdout)
    assert again == json.loads(vrag(write(tmp_path, document), "--json").stdout)


def write(folder: Path, document: object) -> Path:
    file = folder / "raw.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def test_what_is_no_claims_file_or_needs_a_model_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for place in (tmp_path, tmp_path / "pipe.json", Path("/dev/zero")):  # nor waited for
        with pytest.raises(VragError, match="is no plain file; expected RAGChecker's JSON"):
            vrag(place)
    with pytest.raises(VragError, match="claims FILE --extractor gpt-4o-mini@openai"):
        vrag(write(tmp_path, {"results": [raw()]}))


def test_the_command_asks_a_model_once_and_can_say_beforehand_what(tmp_path):
    file, out = write(tmp_path, {"results": [raw()]}), tmp_path / "out.json"
    with StrangeServer(PLANS) as server:

        def asked() -> int:
            return sum("word: ready" not in text_in(each) for each in server.requests)

        named = ["--extractor", f"one@{server.url}", "--answers-dir", tmp_path / "answers"]
        assert "forecast:" in vrag(file, *named, "--dry-run").stdout
        assert asked() == 0
        done = vrag(file, *named, "--json", "--to", out)
        rows = json.loads(done.stdout)["rows"]
        assert [each["value"] for each in rows if each["metric"] == "precision"] == [1]
        # two texts to take apart; one claim against four, one gold claim against four
        assert asked() == 2 + 4 + 4 - 3  # the two claims are the same in three places
        assert json.loads(vrag(file, *named, "--json").stdout)["rows"] == rows
        assert json.loads(vrag(out, "--json").stdout)["rows"] == rows
        assert "no model is asked anything" in vrag(file, *named, "--dry-run").stdout
        assert asked() == 7
