"""The answerer of conversations before and while it learns: what its first weights find,
and that a training which was cut goes on.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from vrag_kit.fieldguide.training import train_talker
from vrag_kit.fieldguide.training.talk_contexts import Stage
from vrag_kit.fieldguide.training.talk_lessons import Album, Lesson, School
from vrag_kit.fieldguide.training.talk_tokens import WORDS, build_talk_tokenizer
from vrag_kit.fieldguide.training.talker import build_talker, encoded
from vrag_kit.fieldguide.training.train_talker import Phase, train
from vrag_kit.fieldguide.training.train_worn_encoder import Recipe

SCHOOL = School("first", Album("worn", 1200))
SHORT = Stage(entities=3, pages=2, whole=1.0, talk=1.0, blind=0.0)
TINY = Recipe(seed="tiny", shards=1, exam_shards=1)
SPECIES = 40


def lessons(count: int) -> list[Lesson]:
    return [SCHOOL.lesson(f"{number}", SHORT) for number in range(count)]


def test_before_anything_is_learned_the_name_behind_a_look_is_found() -> None:
    """Among the 240 words that names begin with, where a guess is right once in 240."""
    chosen = lessons(60)
    texts = [text for each in chosen for text in (*each.prompts, *each.answers)]
    tokens = build_talk_tokenizer([*texts, *[f" {text}" for text in texts]])
    model = build_talker(tokens, seed=0)
    genera = tokens.convert_tokens_to_ids([f" {word}" for word in WORDS["genus"]])
    comma = tokens.convert_tokens_to_ids(",")
    right = []
    for each in chosen[:25]:
        asked = encoded(tokens, [each])
        ids, labels = asked.ids[0], asked.labels[0]
        with torch.inference_mode():
            words = model.model.language_model.embed_tokens(asked.ids)
            hidden = model.model.language_model(inputs_embeds=words).last_hidden_state
            logits = model.lm_head(hidden)[0]
        for place in range(1, len(ids)):
            if int(labels[place]) in genera and int(ids[place - 1]) == comma:
                best = genera[int(logits[place - 1][genera].argmax())]
                right.append(best == int(labels[place]))
    assert len(right) > 25
    assert sum(right) / len(right) > 0.1


def test_a_training_that_was_cut_goes_on_and_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("talker", "worn_stock", "train_talker"):
        monkeypatch.setattr(f"vrag_kit.fieldguide.training.{module}.SHARD", SPECIES)
    monkeypatch.setattr(train_talker, "PHASES", (Phase(2, 2, SHORT), Phase(2, 2, SHORT)))
    monkeypatch.setattr(train_talker, "STEPS", 4)
    monkeypatch.setattr(train_talker, "WAVES", {0: 1.0, 2: 0.5})
    monkeypatch.setattr(train_talker, "LOGGED", 2)
    monkeypatch.setattr(train_talker, "ASKED", 1)
    monkeypatch.setattr(train_talker, "TAUGHT", 4)
    train(TINY, tmp_path / "whole", tmp_path / "work")
    (tmp_path / "work" / "talker.pt").unlink()
    taken: list[int] = []
    losses = train_talker.losses

    def cut(*given: object) -> object:
        taken.append(len(taken))
        if len(taken) == 3:
            raise KeyboardInterrupt
        return losses(*given)  # type: ignore[arg-type]  # the same as it was given

    monkeypatch.setattr(train_talker, "losses", cut)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "again", tmp_path / "work")
    train(TINY, tmp_path / "again", tmp_path / "work")
    assert len(taken) == 3 + 2  # after the second step its state was kept
    whole, again = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "again"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert "# field-guide-vlm-talks" in (tmp_path / "again" / "README.md").read_text("utf-8")
