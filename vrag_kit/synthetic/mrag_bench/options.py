"""The options of a drawn question: the answer among three wrong ones."""

from __future__ import annotations

import numpy as np

from vrag_kit.synthetic.mrag_bench.topics import TopicQuestion

Options = tuple[str, str, str, str]
LETTERS = ("A", "B", "C", "D")


def shuffle_options(question: TopicQuestion, rng: np.random.Generator) -> tuple[Options, str]:
    """(options, right letter): the answer among three wrong ones, each place as likely."""
    options = [str(each) for each in rng.choice(question.others, size=3, replace=False)]
    place = int(rng.integers(4))
    options.insert(place, question.answer)
    return (options[0], options[1], options[2], options[3]), LETTERS[place]
