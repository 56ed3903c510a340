"""Candidate questions about features that photographs rarely show: a language model with the
paper's instructions (Table 10) or a template writes them, and a person edits their CSV file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.datasets.visual_rag import make_query_id
from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.benchmarks.sources import read_csv_rows, write_csv_rows
from vrag_kit.building.species import SpeciesFolder, description_text
from vrag_kit.config import Entry, check_choice
from vrag_kit.errors import VragError, did_you_mean, short_repr
from vrag_kit.files import display_path, project_path
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.generators import load_generator
from vrag_kit.generation.prompts import strip_thoughts
from vrag_kit.generation.store import AnswerStore
from vrag_kit.log import logger
from vrag_kit.types import Answer, Json, Message, Prompt
from vrag_kit.workspace import Workspace

_COLUMNS = "question_id species common folder question explanation feature writer dropped"
CANDIDATE_COLUMNS = _COLUMNS.split()
"""Columns of a table of candidate questions.
`dropped` is "" or the reason why one is dropped.
"""
NEEDED = ("species", "question", "feature", "writer")
"""Required columns of a hand-written file. The other columns default to empty."""
TEMPLATE = "template"
"""The writer that calls no model, as parameters and tables name it."""
_HERE = Path(__file__).parent
PAPER = json.loads((_HERE / "question_writer.json").read_text(encoding="utf-8"))
"""The instructions, verbatim, with their source; our additions are marked."""
_TEMPLATES = json.loads((_HERE / "template_parts.json").read_text(encoding="utf-8"))
PARTS: dict[str, list[Json]] = {}
for entry in _TEMPLATES["table"]:
    PARTS.update(dict.fromkeys(entry["ranks"], entry["parts"]))
"""Rank of a lineage → its rarely seen parts: part, plural, asks ("color", "pattern" or
"shape"), hint (why it is rarely seen).
"""
_FENCED = re.compile(r"```(?:json)?(.*)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """One question of a writer's answer, or an item that resembles one."""

    question: str  # in one line
    explanation: str = ""  # optional
    feature: str = ""  # "" only with a reason in `dropped`
    dropped: str = ""  # why it cannot be used; "" for one that can


def write_questions(
    writer: Entry,
    folders: Sequence[SpeciesFolder],
    pages: Mapping[str, Page],
    at: Workspace,
) -> pd.DataFrame:
    """Write candidate questions about each species; returns a table with `CANDIDATE_COLUMNS`.
    Rows are in the order of `folders`; no folders give no rows.

    `writer` is "template", which knows parts of iNaturalist's ranks and calls no model, or any
    model that `load_generator` takes. A model receives names and, from `pages`, the summary and
    description, and answers as JSON. Its answers are stored in the workspace's `answers_dir`
    and parsed at each use: no species is requested twice. A species whose call failed, or whose
    answer holds no question, has one row without a question and the reason in `dropped`. A question
    that is unusable or a duplicate has its reason there too. The number of usable questions is
    printed. Answers have 1,024 tokens at most, unless the
    writer's entry says otherwise. Raises `VragError` as `load_generator` and the generator do.
    """
    if writer == TEMPLATE:
        name, questions = TEMPLATE, [write_template_questions(folder) for folder in folders]
        failures = [
            f"the template writer knows no parts of {folder.scientific}; give a model as `writer`,"
            " or fill in question and feature here and empty this cell"
            for folder in folders
        ]
    else:
        name, answers = _ask(writer, folders, pages, at)
        questions = [read_questions_json(answer.raw or "") for answer in answers]
        failures = [_failure(answer) for answer in answers]
    rows = []
    for folder, parsed, failure in zip(folders, questions, failures, strict=True):
        for each in parsed or [ParsedQuestion("", dropped=failure)]:
            rows.append({**_identity(folder, each.question), **asdict(each), "writer": name})
    candidates = pd.DataFrame(rows, columns=CANDIDATE_COLUMNS, dtype=object)
    usable = candidates[candidates["dropped"] == ""]
    repeated = usable.index[usable.duplicated("question_id")]
    candidates.loc[repeated, "dropped"] = "duplicate question"
    logger.info(
        f"questions by {name}: {len(usable) - len(repeated):,} of {len(rows):,} are usable, about"
        f" {usable['species'].nunique():,} of {len(folders):,} species"
    )
    return candidates


def _identity(folder: SpeciesFolder, question: str) -> dict[str, str]:
    """The columns that follow from the folder and the words of the question."""
    return {
        "question_id": make_query_id(folder.scientific, question) if question else "",
        "species": folder.scientific,
        "common": folder.common,
        "folder": folder.name,
    }


def _ask(
    writer: Entry,
    folders: Sequence[SpeciesFolder],
    pages: Mapping[str, Page],
    at: Workspace,
) -> tuple[str, list[Answer]]:
    """The writer's name, and its answer for each species."""
    check_choice(writer, [TEMPLATE], "question_writer")
    generator = load_generator(writer, decoding={"max_new_tokens": 1024}, at=at)
    prompts = []
    for folder in folders:
        page = pages.get(folder.scientific)
        prompts.append(question_prompt(folder, description_text(page.article) if page else ""))
    with AnswerStore(at.answers_file) as store:
        answers = ask_prompts(
            generator,
            prompts,
            store,
            at=at,
            task=Task(what="questions", read=lambda raw: {}),
        )
    return generator.name, answers


def question_prompt(folder: SpeciesFolder, paragraph: str) -> Prompt:
    """Return the prompt for questions about one species.
    It has instructions, examples, names, and the paragraph on one line (or that there is none).

    They are the paper's, except the last instruction: JSON is requested, not prose.
    """
    instructions = [*PAPER["instructions"][:-1], PAPER["json_ours"]["instruction"]]
    examples = []
    for each in (*PAPER["examples"], *PAPER["examples_ours"]["examples"]):
        names = _names(PAPER["example"], each["scientific"], each["common"])
        questions = json.dumps({"questions": each["questions"]}, ensure_ascii=False)
        examples.append("\n".join([*names, PAPER["example"]["question"], questions]))
    article = PAPER["no_paragraph_ours"]["text"]
    if paragraph.strip():
        article = PAPER["query"]["paragraph"].format(paragraph=" ".join(paragraph.split()))
    names = _names(PAPER["query"], folder.scientific, folder.common)
    query = "\n".join([*names, article, PAPER["query"]["question"]])
    ending = (PAPER["closing"], PAPER["json_ours"]["text"], PAPER["request"], query)
    text = "\n\n".join([*instructions, PAPER["opening"], *examples, *ending])
    return (Message(role="user", parts=(text,)),)


def _names(templates: Mapping[str, str], scientific: str, common: str) -> list[str]:
    names = [templates["scientific"].format(scientific=scientific)]
    if common:
        names.append(templates["common"].format(common=common))
    return names


def _failure(answer: Answer) -> str:
    """Why an answer without a question has none."""
    if answer.failure:
        return f"no answer: {answer.failure}"
    return f"unreadable: no question in {short_repr(' '.join((answer.raw or '').split()))}"


def read_questions_json(text: str) -> list[ParsedQuestion]:
    """Parse the questions in a JSON answer, in order; [] for anything else.
    Format: `{"questions": [{"question": …, "explanation": …, "feature": …}]}`.

    Only thoughts in <think> tags and a code fence may surround the JSON. An item without a
    question, a question mark or a feature has the reason in `dropped`; an explanation is optional.
    """
    words = strip_thoughts(text)
    fenced = _FENCED.fullmatch(words)
    try:
        parsed = json.loads(fenced[1] if fenced else words)
    except ValueError:
        return []
    items = parsed.get("questions") if isinstance(parsed, dict) else None
    return [_parse_item(item) for item in items] if isinstance(items, list) else []


def _parse_item(item: object) -> ParsedQuestion:
    if not isinstance(item, dict):
        return ParsedQuestion(str(item), dropped="no JSON object")
    found = {name: item.get(name) for name in ("question", "explanation", "feature")}
    texts = {
        name: " ".join(text.split()) if isinstance(text, str) else ""
        for name, text in found.items()
    }
    dropped = "" if texts["feature"] else "no feature"
    if not texts["question"].endswith("?"):
        dropped = "no question mark"
    return ParsedQuestion(**texts, dropped=dropped)


def write_template_questions(folder: SpeciesFolder) -> list[ParsedQuestion]:
    """Return questions about a species, each with its feature.

    They cover the parts of the most specific rank of its lineage that the table knows. [] when it
    knows none, as for folders without a lineage.
    """
    rank = next((rank for rank in reversed(folder.lineage) if rank in PARTS), "")
    questions = []
    for part in PARTS.get(rank, ()):
        words = {**part, "do": "do" if part["plural"] else "does", "called": folder.called}
        question = _TEMPLATES["questions"][part["asks"]].format(**words)
        feature = _TEMPLATES["features"][part["asks"]].format(**words)
        questions.append(ParsedQuestion(question, feature=feature))
    return questions


def load_or_write_questions(
    path: Path | str, make: Callable[[], pd.DataFrame], folders: Sequence[SpeciesFolder]
) -> pd.DataFrame:
    """Return the candidate questions in the file at `path`.
    If it is missing, the questions that `make` returns are written there first.

    An existing file, which a person may have edited, is never overwritten. Prints what was done.
    Raises `VragError` as `read_questions` does
    and when no question is left, and `OSError` when the file cannot be written.
    """
    path = project_path(path)
    made = not path.exists()
    if made:
        rows = make()[CANDIDATE_COLUMNS].to_numpy().tolist()
        write_csv_rows(path, CANDIDATE_COLUMNS, rows)
    questions = read_questions(path, folders)
    usable = int((questions["dropped"] == "").sum())
    if not usable:
        raise VragError(
            f"{path}: none of its {len(questions):,} questions can be used; its column `dropped`"
            " says why. Write your own there, or name a model as `writer`."
        )
    done = "written to" if made else "read from"
    logger.info(
        f"{usable:,} of {len(questions):,} questions, {done} {display_path(path)}; edit it and run"
        " this again, or delete it to have them written again"
    )
    return questions


def read_questions(path: Path | str, folders: Sequence[SpeciesFolder]) -> pd.DataFrame:
    """Read the candidate questions in a CSV file that a person may have edited.
    It needs the columns `NEEDED`; the others of `write_questions` are optional, in any order.

    Each question_id is computed from species and question; it may be empty, and follows edits.
    Folder and common name are those of the species, which may be given by its folder's name. Raises
    `VragError` as `read_csv_rows`, and naming the line for a species without a folder and a row
    without a writer; of rows that are not dropped, also for one without question or feature, and
    for a duplicate question.
    """
    known = {folder.name: folder for folder in folders}
    known |= {folder.scientific: folder for folder in folders}
    lines: dict[str, int] = {}
    rows = []
    for number, row in read_csv_rows(
        project_path(path),
        NEEDED,
        "questions",
        "Have them written by `load_or_write_questions`, or give the path of another file.",
        optional=[name for name in CANDIDATE_COLUMNS if name not in NEEDED],
    ):
        where = f"{path} line {number}"
        checked = _check_row({name: value.strip() for name, value in row.items()}, known, where)
        key = checked["question_id"]
        if not checked["dropped"] and (first := lines.setdefault(key, number)) != number:
            raise VragError(
                f"{where}: {checked['question']!r} is in line {first} too; keep one of them, or"
                " give the reason for the other in `dropped`."
            )
        rows.append(checked)
    return pd.DataFrame(rows, columns=CANDIDATE_COLUMNS, dtype=object)


def _check_row(row: dict[str, str], known: dict[str, SpeciesFolder], where: str) -> dict[str, str]:
    """The row with question_id, folder and common name filled in."""
    folder = known.get(row["species"])
    if folder is None:
        raise VragError(
            f"{where}: found the species {row['species']!r}; expected one that has a folder with"
            f" images, such as {next(iter(known))!r}.{did_you_mean(row['species'], known)}"
        )
    for name in ("writer", "question", "feature"):
        if not row[name] and (name == "writer" or not row["dropped"]):
            raise VragError(
                f"{where}: the {name} is empty; fill it in, or give the reason in `dropped`."
            )
    return {**row, **_identity(folder, row["question"])}
