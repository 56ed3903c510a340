"""Annotators' votes on images of one species, on disk."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.building.annotations import AnnotationFile, Annotations, Vote, read_votes
from vrag_kit.building.species import SpeciesFolder


class Votes:
    """Saves what annotators say about images, which are named by letters, in `place`."""

    def __init__(self, place: Path, folder: SpeciesFolder) -> None:
        self.place = place
        self.folder = folder

    def __call__(
        self, annotator: str, question_id: str, clues: str = "", answer: str = "", **more: str
    ) -> None:
        names = {Path(doc_id).stem: doc_id for doc_id in self.folder.images}
        shown = more.pop("shown", "abcd")
        vote = {
            "question_id": question_id,
            "species": "Branta leucopsis",
            "folder": self.folder.name,
            "question": f"{question_id}?",
            "feature": "feet",
            "status": "done",
            "images": {names[letter]: int(letter in clues) for letter in shown},
            "answer": answer,
            **more,
        }
        AnnotationFile(self.place / f"{annotator}.jsonl", annotator).save(Vote.model_validate(vote))

    def read(self, *annotators: str) -> list[Annotations]:
        return [read_votes(self.place / f"{name}.jsonl") for name in annotators]


def asked(*ids: str, **changes: object) -> pd.DataFrame:
    """A table of questions that the coarse filter kept."""
    questions = {"question_id": ids, "question": [f"{question_id}?" for question_id in ids]}
    table = pd.DataFrame(questions).assign(species="Branta leucopsis", dropped="")
    table = table.assign(estimated_clue_rate=0.1, n_judged=4, n_unjudged=0)
    return table.assign(**changes)


def questions(folder: SpeciesFolder, *features: str) -> pd.DataFrame:
    """A question about each feature, as the coarse filter takes them."""
    ids = [f"q{number}" for number in range(len(features))]
    texts = [f"What color are the {feature}?" for feature in features]
    table = pd.DataFrame({"question_id": ids, "question": texts, "feature": features})
    return table.assign(species=folder.scientific, folder=folder.name, dropped="")
