"""Which answers are drawn for labelling, and how labels are stored and joined."""

from functools import partial

import pandas as pd
from factories import labelled
from retrieval_data import refused

from vrag_kit.judging import annotation_sample, join_labels, read_human_labels

HEADER = "query_id,answer,label,annotator\n"
COLUMNS = HEADER.strip().split(",")


def drawn(table: pd.DataFrame, n: int, seed: int = 0) -> list[tuple[str, int]]:
    sample = annotation_sample(table, n, seed=seed)
    return list(zip(sample["query_id"], sample["draw"], strict=True))


def test_a_larger_sample_begins_with_the_smaller_one_whatever_the_words_and_the_order():
    assert drawn(labelled(), 20)[:5] == drawn(labelled(), 5)
    assert len(set(drawn(labelled(), 40))) == 40
    assert drawn(labelled(), 20) != drawn(labelled(), 20, seed=1)
    assert drawn(labelled(answer="other", score=0.5), 12) == drawn(labelled(), 12)
    assert drawn(labelled()[::-1], 12) == drawn(labelled(), 12)
    counted = labelled(m=pd.array([None] * 40, "Int64"))  # clues are not counted
    assert drawn(counted, 5) == drawn(labelled(), 5)


def test_equally_many_are_drawn_of_each_arm_and_each_says_how_many_it_stands_for():
    arms = [labelled(10, setting="zero_shot", k=0), labelled(40), labelled(3, setting="non_clue")]
    table = pd.concat(arms)
    sample = annotation_sample(table, 5)
    counts = {"zero_shot": 5, "gt_clue": 5, "non_clue": 3}  # all that there are
    assert sample["setting"].value_counts().to_dict() == counts
    sizes = sample.groupby("setting")["arm_size"].unique().map(list).to_dict()
    assert sizes == {"zero_shot": [10], "gt_clue": [40], "non_clue": [3]}
    assert set(sample["setting"][:3]) == set(sizes)  # whoever stops early has labelled of each
    by_draw = annotation_sample(labelled(40), 2, of_each=["draw"])
    assert by_draw["draw"].value_counts().to_dict() == {0: 2, 1: 2, 2: 2, 3: 2}
    simple, each = annotation_sample(table, 12, of_each=[]), annotation_sample(table, 50)
    assert len(simple) == 12
    for setting, part in simple.groupby("setting"):  # in the same order
        same = each[each["setting"] == setting].head(len(part))
        assert part["query_id"].tolist() == same["query_id"].tolist()


def test_failed_answers_are_not_drawn_and_answers_of_one_name_are_refused():
    table = labelled(status=["ok", "timeout"] * 20)
    assert set(annotation_sample(table, 20)["status"]) == {"ok"}
    refused(partial(annotation_sample, table, 21), "21 answers", "1 to 20")
    refused(partial(annotation_sample, pd.concat([labelled(10)] * 2), 5), "m/gt_clue/1/0/0/q")
    clues = pd.concat([labelled(10, m=m, setting="m_in_k") for m in (1, 3)])
    assert len(annotation_sample(clues, 20)) == 20


def test_a_label_goes_to_every_answer_of_the_same_words(capsys):
    words = {"answer": ["red", "red", "blue", "green"], "score": [1.0, 0.5, 0.0, float("nan")]}
    sample = labelled(4, query_id="q", group="species", arm_size=90, **words)
    rows = [("q", "red", "true", "me"), ("q", "green", "false", "me"), ("q", "gone", "true", "me")]
    labels = pd.DataFrame([*rows, ("other", "red", "true", "me")], columns=COLUMNS)
    pairs = join_labels(sample, labels)
    output = "labels: 3 of 4 sampled answers have one; 2 of 4 labels belong to none of them\n"
    assert capsys.readouterr().out == output
    columns = ["answer", "human_label", "judge_label", "annotator", "weight"]
    assert pairs[columns].to_numpy().tolist() == [
        ["red", "true", "true", "me", 45.0],
        ["red", "true", "partial", "me", 45.0],
    ]  # the two stand for all 90 of their arm
    refused(partial(join_labels, sample.drop(columns="arm_size"), labels), "'arm_size'")


def test_a_file_that_a_spreadsheet_saved_is_read_and_a_missing_one_refused(tmp_path):
    lines = "\ufeff" + HEADER.replace("\n", "\r\n") + 'q,"NA",true,me\r\n\r\n'
    (tmp_path / "l.csv").write_bytes(lines.encode())
    assert read_human_labels(tmp_path / "l.csv").to_numpy().tolist() == [["q", "NA", "true", "me"]]
    missing = tmp_path / "none.csv"
    refused(partial(read_human_labels, missing), "none.csv", "No such file", "`label_answers`")
