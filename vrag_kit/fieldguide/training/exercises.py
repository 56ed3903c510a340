"""What the answerer of choices is taught with: MRAG-Bench's prompts about topics of the
`stock`, and the letter that the pictures allow.

In every prompt with options the right letter is the truth about the query's topic, also
where no picture and no passage tells it: there a model can only guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vrag_kit.fieldguide.scenarios.options import LETTERS, choices
from vrag_kit.fieldguide.scenarios.passages import passage
from vrag_kit.fieldguide.scenarios.table import other_topic
from vrag_kit.fieldguide.scenarios.topics import Asked
from vrag_kit.fieldguide.training.stock import N_OTHERS, N_QUERIES, Subject, subject
from vrag_kit.fieldguide.training.wording import PICTURE, in_words
from vrag_kit.fieldguide.traits import stream
from vrag_kit.generation.rendering import render
from vrag_kit.papers.mrag_bench.wording import WORDINGS
from vrag_kit.types import Evidence, Query

USUAL_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Exercise:
    """One prompt about a topic of the stock and what to answer."""

    words: str  # with "<image>" where a picture stands
    pictures: tuple[int, ...]  # of the topic's, in the prompt's order
    subject: int  # number of the topic
    answer: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What a prompt shows beside the query's picture."""

    pictures: tuple[int, ...] = ()  # of the topic's
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mix:
    """How often each sort of exercise comes, in shares of a step."""

    say: float = 0.0  # one picture, answered in words instead of a letter
    find: float = 0.0  # options alone, whose letters are to be found
    none: float = 0.0  # no evidence
    shows: float = 0.0  # one to five examples
    many: float = 0.0  # six to twenty
    mixed: float = 0.0  # examples among other topics' pictures, or these alone
    tells: float = 0.0  # passages, one of which tells
    both: float = 0.0  # examples and passages
    worded: bool = True  # with the paper's instructions
    most: int = USUAL_EXAMPLES  # examples and passages of a prompt

    @property
    def shares(self) -> dict[str, float]:
        """Sort → share; they add up to 1."""
        sorts = ("say", "find", "none", "shows", "many", "mixed", "tells", "both")
        return {sort: getattr(self, sort) for sort in sorts}


@dataclass(frozen=True, slots=True)
class Desk:
    """Makes exercises about the first topics of a stock."""

    seed: str
    topics: int
    _of_kind: dict[str, list[int]] = field(default_factory=dict)

    def exercise(self, name: str, mix: Mix) -> Exercise:
        """The exercise of that name, of a sort that the mix draws."""
        rng = stream(self.seed, name)
        sort = str(rng.choice(list(mix.shares), p=list(mix.shares.values())))
        about = self._subject(rng, many=sort == "many")
        if sort == "say":
            return say(about, rng)
        if sort == "find":
            return find(about, rng)
        return choose(about, rng, shown(sort, about, rng, mix.most), mix.worded)

    def _subject(self, rng: np.random.Generator, *, many: bool) -> Subject:
        while True:
            about = subject(self.seed, int(rng.integers(self.topics)))
            if not many or about.n_examples > 6:
                return about


def shown(sort: str, about: Subject, rng: np.random.Generator, most: int) -> Shown:
    """The evidence of an exercise of that sort; `most` caps what is usual."""
    examples = range(N_QUERIES, N_QUERIES + about.n_examples)
    usual = min(most, about.n_examples)
    if sort == "shows":
        return Shown(_some(examples, int(rng.integers(1, usual + 1)), rng))
    if sort == "many":
        return Shown(_some(examples, int(rng.integers(6, about.n_examples + 1)), rng))
    if sort == "mixed":
        return Shown(_mixed(about, rng, most))
    if sort == "tells":
        return Shown(passages=_passages(about, rng, int(rng.integers(1, most + 1))))
    if sort == "both":
        pictures = _some(examples, int(rng.integers(1, usual + 1)), rng)
        return Shown(pictures, _passages(about, rng, int(rng.integers(1, 3))))
    return Shown()


def _some(pictures: range, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(each) for each in rng.permutation(pictures)[:count])


def _mixed(about: Subject, rng: np.random.Generator, most: int) -> tuple[int, ...]:
    """Up to `most` pictures, of which from none to all but one show the topic."""
    others = range(N_QUERIES + about.n_examples, N_QUERIES + about.n_examples + N_OTHERS)
    n_others = int(rng.integers(1, N_OTHERS + 1))
    room = min(max(0, most - n_others), about.n_examples)
    n_own = 0 if rng.random() < 0.25 else int(rng.integers(0, room + 1))
    own = _some(range(N_QUERIES, N_QUERIES + about.n_examples), n_own, rng)
    both = [*own, *_some(others, n_others, rng)]
    return tuple(int(each) for each in rng.permutation(both))


def _passages(about: Subject, rng: np.random.Generator, count: int) -> tuple[str, ...]:
    """Passages, in any order; in one of six prompts with several none is about the topic."""
    key = f"{about.topic.key}/passage/{int(rng.integers(1000))}"
    told = [passage(about.topic, key)]
    if count > 1 and rng.random() < 1 / 6:
        told = []
    while len(told) < count:
        other = other_topic(about.scenario, about.topic, f"{key}/{len(told)}")
        told.append(passage(other, other.key))
    return tuple(told[i] for i in rng.permutation(len(told)))


def choose(about: Subject, rng: np.random.Generator, evidence: Shown, worded: bool) -> Exercise:
    """A question with options about a topic, in either wording; not `worded`: without
    its instruction.
    """
    question = ask(about, rng)
    options, letter = choices(question, rng)
    pictures = (int(rng.integers(N_QUERIES)), *evidence.pictures)
    name = "alone"
    if evidence.passages:
        name = "examples and passages" if evidence.pictures else "passages"
    elif evidence.pictures:
        name = "examples"
    query = Query(query_id="any", text=question.text, choices=options, image=PICTURE)
    documents = [Evidence(doc_id=f"i{i}", image=PICTURE) for i in evidence.pictures]
    documents += [Evidence(doc_id=f"t{i}", text=text) for i, text in enumerate(evidence.passages)]
    template = WORDINGS[str(rng.choice(list(WORDINGS)))].template(name)
    words = in_words(render(template, query, documents)[0])
    if not worded:
        words = words[words.index("<image>") :]
    return Exercise(words, pictures, about.number, said(question.answer, letter))


def say(about: Subject, rng: np.random.Generator) -> Exercise:
    """One example, and the answer in words; of a tray also the query, since what lacks
    there is asked.
    """
    question = ask(about, rng)
    example = N_QUERIES + int(rng.integers(about.n_examples))
    pictures = (0, example) if question.asks == "chip" else (example,)
    words = f"{'<image>' * len(pictures)}\nQuestion: {question.text}\nAnswer:"
    return Exercise(words, pictures, about.number, said(question.answer))


def said(answer: str, letter: str = "") -> str:
    """How an answer is worded: what is seen first, then its letter if there are options."""
    return f"It is {answer}, answer {letter}" if letter else f"It is {answer}"


def find(about: Subject, rng: np.random.Generator) -> Exercise:
    """Options alone, and each of them with its letter in another order: how letters are
    found is learned faster so than from questions, of which each has one.
    """
    options, _ = choices(ask(about, rng), rng)
    form = "({}) {}" if rng.random() < 0.5 else "{}: {}"
    listed = [form.format(*pair) for pair in zip(LETTERS, options, strict=True)]
    order = rng.permutation(np.tile(np.arange(len(options)), 2))
    answer = "\n".join(said(options[i], LETTERS[i]) for i in order)
    return Exercise("Choices:\n" + "\n".join(listed), (), about.number, answer)


def ask(about: Subject, rng: np.random.Generator) -> Asked:
    """One of the questions that can be asked about a topic."""
    asked = about.topic.asked()
    return asked[int(rng.integers(len(asked)))]
