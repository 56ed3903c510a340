"""Train the demo's answerers, small FastVLM models: `python -m
vrag_kit.fieldguide.training.train_answerer NAME`.

First the vision tower learns to see (`train_tower`, once for both); then a language
model behind it, on the tower's features, learns to answer from a stream of `lessons`:
single photographs before many, bare questions before the paper's wording, each about a
freshly invented species. At last, starting from the stored half-precision weights, it
learns to read passages of text beside that. The two answerers share tower and
architecture; they differ in how many photographs their prompts held.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Subset

from vrag_kit.fieldguide.training.lessons import (
    READ_TOKENS,
    TOLD_SHARE,
    UNKNOWN,
    Lesson,
    Plan,
    lessons,
    look,
    read,
    told_facts,
    told_species,
)
from vrag_kit.fieldguide.training.train_tower import (
    ARCHITECTURE,
    FEATURES,
    IMAGE_SIZE,
    MEAN,
    ROUNDS,
    STD,
    TRAINING,
    read_notes,
    to_input,
    train_tower,
)
from vrag_kit.fieldguide.traits import stream
from vrag_kit.generation.templates import render

WEIGHTS = Path(__file__).parent / "weights"
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% if message['content'] is string %}{{"
    " message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] =="
    " 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|end|>{%"
    " endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ALONE = Plan(told=4, guess=2, single=26, several=0, most=1)
REVIEW = Plan(told=2, guess=1, single=5, several=2, most=20)
SPECIAL = ("<pad>", "<image>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one answerer is built and trained."""

    plan: Plan
    alone: int = 600  # steps of one photograph a prompt, in bare words
    bare: int = 600  # steps of the plan, in bare words
    worded: int = 1500  # steps of the plan, in the paper's wording
    # further steps with passages of text: one passage first, then up to four, then up to ten
    reading: int = 900
    width: int = 192
    layers: int = 4
    heads: int = 4
    vocabulary: int = 1536
    learning_rate: float = 1e-3
    # standard deviation of the first weights: with the usual 0.02 attention stays flat for
    # hundreds of steps
    spread: float = 0.06
    context: int = 2048
    seed: str = "answerer"

    @property
    def steps(self) -> int:
        """All steps before the reading."""
        return self.alone + self.bare + self.worded


RECIPES = {
    "field-guide-vlm-few": Recipe(Plan(told=5, guess=3, single=18, several=9, most=3, seldom=8)),
    "field-guide-vlm-many": Recipe(Plan(told=5, guess=3, single=11, several=11, most=20)),
}


def build_processor(recipe: Recipe, folder: Path) -> Any:
    """Write tokenizer, chat template and image processor to `folder`; returns the
    processor.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import CLIPImageProcessor, LlavaProcessor, PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    words = Plan(told=0, guess=12, single=0, several=0, most=2)
    taught = [
        lesson
        for number in range(400)
        for lesson in lessons(words, [], f"{recipe.seed}/words/{number}", most=2, worded=True)
    ]
    texts = [text for lesson in taught for text in (lesson.question, f"Answer: {lesson.answer}")]
    templates = [
        str(render(template, "")[0].parts[0])
        for template in ("no_image", "clue_image", "one_image", "several_images")
    ]
    bpe.train_from_iterator(
        [*texts, *templates * 40, f"Answer: {UNKNOWN}"],
        trainers.BpeTrainer(
            vocab_size=recipe.vocabulary,
            special_tokens=list(SPECIAL),
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=list(SPECIAL[1:5]),
        model_max_length=recipe.context,
        padding_side="left",
    )
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    images = CLIPImageProcessor(
        size=size, do_center_crop=False, do_resize=True, image_mean=[MEAN] * 3, image_std=[STD] * 3
    )
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=32,
        vision_feature_select_strategy="full",
        chat_template=CHAT,
        image_token="<image>",
    )
    processor.save_pretrained(folder)
    return processor


def build_model(recipe: Recipe, tokenizer: Any) -> Any:
    """A FastVLM model with random weights."""
    from transformers import (
        FastVlmConfig,
        FastVlmForConditionalGeneration,
        Qwen2Config,
        TimmWrapperConfig,
    )

    text = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=2 * recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=recipe.context,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    vision = TimmWrapperConfig(
        **ARCHITECTURE, do_pooling=False, hidden_size=FEATURES, num_classes=0
    )
    config = FastVlmConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        tie_word_embeddings=True,
        image_seq_length=(IMAGE_SIZE // 32) ** 2,
    )
    model = FastVlmForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and "vision_tower" not in name:
            torch.nn.init.normal_(weight, std=recipe.spread)
    return model


class Steps(Dataset):
    """Step number → its lessons: single photographs in bare words first, then as many
    as the plan says, at last in the paper's wording.
    """

    def __init__(self, name: str, recipe: Recipe) -> None:
        self.name, self.recipe, self.facts = name, recipe, told_facts()

    def __len__(self) -> int:
        return self.recipe.steps + self.recipe.reading

    def __getitem__(self, step: int) -> list[Lesson]:
        recipe, name = self.recipe, f"{self.recipe.seed}/{self.name}/{step}"
        if step >= recipe.steps:
            return self._reading(step - recipe.steps, name)
        if step < recipe.alone:
            return lessons(ALONE, self.facts, name, most=1, worded=False)
        return lessons(
            recipe.plan,
            self.facts,
            name,
            most=3 if step < recipe.alone + recipe.bare // 3 else 99,
            worded=step >= recipe.alone + recipe.bare,
        )

    def _reading(self, step: int, name: str) -> list[Lesson]:
        """Passages beside what was learned before, of which there is less while reading
        is new.
        """
        third = self.recipe.reading // 3
        plan, count, most = (
            (REVIEW, 16, 1)
            if step < third
            else (REVIEW, 8, 4)
            if step < 2 * third
            else (self.recipe.plan, 4, 10)
        )
        texts = [read(f"{name}/read/{i}", most=most) for i in range(count)]
        bare = [replace(lesson, template="") for lesson in texts] if step < third else texts
        return [*lessons(plan, self.facts, name, most=self.recipe.plan.most, worded=True), *bare]


def encode(processor: Any, batch: list[Lesson]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, labels (−100 outside the answer) and attention mask, int64, shape
    (lessons, tokens), padded on the right.
    """
    rows = []
    for lesson in batch:
        words = str(
            render(lesson.template or "text_passages", lesson.question, passages=lesson.passages)[
                0
            ].parts[0]
        )
        words = words if lesson.template else words[words.index("Question: ") :]
        text = words + "<image>" * (9 * len(lesson.pixels))
        prompt = processor.tokenizer(f"<|user|>{text}<|end|><|assistant|>")["input_ids"]
        answer = processor.tokenizer(f"Answer: {lesson.answer}<|end|>")["input_ids"]
        rows.append((prompt, answer))
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids, labels, mask = (
        torch.zeros(len(rows), width, dtype=torch.long),
        torch.full((len(rows), width), -100),
        torch.zeros(len(rows), width, dtype=torch.long),
    )
    for i, (prompt, answer) in enumerate(rows):
        n = len(prompt) + len(answer)
        ids[i, :n], mask[i, :n] = torch.tensor(prompt + answer), 1
        labels[i, len(prompt) : n] = torch.tensor(answer)
    return ids, labels, mask


def answer_logits(
    model: Any, processor: Any, batch: list[Lesson]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(logits, labels, lesson) of every answer token: shapes (tokens, vocabulary),
    (tokens,), (tokens,). The tower is frozen.
    """
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    ids, labels, mask = encode(processor, batch)
    pictures = [lesson.pixels for lesson in batch if len(lesson.pixels)]
    images = None
    if pictures:
        with torch.no_grad():
            features = (
                model.model.vision_tower(to_input(torch.cat(pictures)))
                .last_hidden_state.flatten(2)
                .permute(0, 2, 1)
            )
        images = {
            "image": BaseModelOutputWithPooling(
                pooler_output=model.model.multi_modal_projector(features)
            )
        }
    hidden = model.model(
        input_ids=ids, attention_mask=mask, mm_encoder_outputs=images, use_cache=False
    ).last_hidden_state
    where = labels[:, 1:] >= 0
    return model.lm_head(hidden[:, :-1][where]), labels[:, 1:][where], where.nonzero()[:, 0]


def halves(batch: list[Lesson]) -> Iterator[list[Lesson]]:
    """The step's lessons in batches of similar length: up to one photograph, more, and
    passages.
    """
    for part in (
        [x for x in batch if len(x.pixels) < 2 and not x.passages],
        [x for x in batch if len(x.pixels) > 1],
        [x for x in batch if x.passages],
    ):
        if part:
            yield part


@torch.inference_mode()
def validate(model: Any, processor: Any, sets: dict[str, list[Lesson]]) -> dict[str, float]:
    """Share of answers that are exactly right, by set, on held-out species (the told
    facts are the told ones).
    """
    shares = {}
    for name, chosen in sets.items():
        right = 0
        for start in range(0, len(chosen), 24):
            batch = chosen[start : start + 24]
            logits, labels, row = answer_logits(model, processor, batch)
            wrong = torch.zeros(len(batch)).index_add_(0, row, (logits.argmax(1) != labels).float())
            right += int((wrong == 0).sum())
        shares[name] = round(right / len(chosen), 3)
    return shares


def validation_sets(recipe: Recipe) -> dict[str, list[Lesson]]:
    """Held-out lessons in the paper's wording: told facts, one clue, no clue, one clue
    among 5 and 15, and passages that tell the answer and that do not.
    """
    name = f"{recipe.seed}/validation"
    return {
        "told": told_facts(),
        "clue": [look(f"{name}/clue/{i}", 1, 1) for i in range(150)],
        "no clue": [look(f"{name}/none/{i}", 1, 0) for i in range(72)],
        "1 in 5": [look(f"{name}/5/{i}", 5, 1) for i in range(72)],
        "1 in 15": [look(f"{name}/15/{i}", 15, 1) for i in range(72)],
        "read": [read(f"{name}/read/{i}", True) for i in range(48)],
        "not read": [read(f"{name}/not/{i}", False) for i in range(48)],
    }


def train(name: str, recipe: Recipe, folder: Path) -> None:
    """Train one answerer from random weights, and then teach it to read."""
    from safetensors.torch import load_file

    tower = train_tower(TRAINING)
    processor = build_processor(recipe, folder)
    torch.manual_seed(int(stream(recipe.seed, name).integers(2**31)))
    model = build_model(recipe, processor.tokenizer)
    model.model.vision_tower.timm_model.load_state_dict(load_file(tower))
    rounds = [
        read_notes(TRAINING / f"tower-{number}.safetensors") for number in range(1, len(ROUNDS) + 1)
    ]
    learn(
        model,
        processor,
        folder,
        {"name": name, "tower": rounds, "log": []},
        recipe,
        range(recipe.steps),
        recipe.learning_rate,
    )
    learn_to_read(name, recipe, folder)


def learn_to_read(name: str, recipe: Recipe, folder: Path) -> None:
    """Go on from the checkpoint in `folder` with lessons of the plan and passages of
    text, which need a longer context.
    """
    from transformers import AutoProcessor, FastVlmForConditionalGeneration

    processor = AutoProcessor.from_pretrained(folder)
    processor.tokenizer.model_max_length = recipe.context
    processor.save_pretrained(folder)
    model = FastVlmForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    model.config.text_config.max_position_embeddings = recipe.context
    notes = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    learn(
        model,
        processor,
        folder,
        notes,
        recipe,
        range(recipe.steps, recipe.steps + recipe.reading),
        recipe.learning_rate / 2,
    )


def learn(
    model: Any,
    processor: Any,
    folder: Path,
    notes: dict[str, Any],
    recipe: Recipe,
    steps: range,
    rate: float,
) -> None:
    """Train on the lessons of `steps`; every 300 steps, and at the end, write the
    checkpoint (half precision), `training.json` and the card into `folder`.

    The highest learning rate is `rate`; `notes` hold the log so far, which is added to.
    """
    model.model.vision_tower.requires_grad_(False).to(memory_format=torch.channels_last)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1]},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=rate,
        betas=(0.9, 0.98),
        weight_decay=0.05,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda t: (
            min(1.0, (t + 1) / 60) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * t / len(steps))))
        ),
    )
    held_out = validation_sets(recipe)
    print(
        f"{notes['name']}: {sum(p.numel() for p in model.parameters()):,} parameters,"
        f" {sum(p.numel() for p in parameters):,} trained, {len(steps)} steps",
        flush=True,
    )
    began, before, running = (
        time.monotonic(),
        notes["log"][-1]["minutes"] if notes["log"] else 0.0,
        0.0,
    )
    stream_of_lessons = Subset(Steps(notes["name"], recipe), steps)
    for step, batch in enumerate(
        DataLoader(stream_of_lessons, batch_size=None, num_workers=1, prefetch_factor=4),
        start=steps.start + 1,
    ):
        optimizer.zero_grad()
        total = 0.0
        for part in halves(batch):
            logits, labels, _ = answer_logits(model.eval(), processor, part)
            loss = F.cross_entropy(logits, labels) * len(part) / len(batch)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        running = total if step == steps.start + 1 else 0.98 * running + 0.02 * total
        if step % 300 == 0 or step == steps.stop:
            worded = step > recipe.alone + recipe.bare
            sets = (
                held_out
                if worded
                else {
                    name: [replace(lesson, template="") for lesson in chosen]
                    for name, chosen in held_out.items()
                    if not chosen[0].passages
                }
            )
            notes["log"].append(
                {
                    "step": step,
                    "loss": round(running, 4),
                    **validate(model, processor, sets),
                    "minutes": round(before + (time.monotonic() - began) / 60, 1),
                }
            )
            print(json.dumps(notes["log"][-1]), flush=True)
            save(model, folder)
            notes |= {
                "recipe": {**asdict(recipe), "steps": recipe.steps},
                "torch": torch.__version__,
            }
            (folder / "training.json").write_text(
                json.dumps(notes, indent=2) + "\n", encoding="utf-8"
            )
            write_card(folder)


def write_card(folder: Path) -> None:
    """Write the model card `README.md` from what `training.json` records."""
    notes = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    recipe, last, rounds, sees = (
        notes["recipe"],
        notes["log"][-1],
        notes["tower"],
        notes["tower"][-1]["log"][-1],
    )
    plan = recipe["plan"]
    size = (
        sum(
            file.stat().st_size
            for file in folder.iterdir()
            if file.suffix in (".safetensors", ".json")
        )
        / 1e6
    )
    sets = ("told", "clue", "no clue", "1 in 5", "1 in 15", "read", "not read")
    rows = "\n".join(
        f"| {row['step']} | {row['loss']:.2f} | "
        + " | ".join(f"{100 * row[name]:.0f}" if name in row else "" for name in sets)
        + " |"
        for row in notes["log"]
    )
    photographs = sum(steps * row["batch"] for row in rounds for _, steps in row["phases"])
    minutes = sum(row["log"][-1]["minutes"] for row in rounds)
    seldom = f" (in one of six such prompts up to {plan['seldom']})" if plan["seldom"] else ""
    (folder / "README.md").write_text(
        f"""# {notes["name"]}

A small multimodal model for the Field Guide, the bundled demo benchmark of vrag_kit: it answers questions about photographs of invented organisms, and says
"{UNKNOWN}" when none shows the answer. It knows nothing about real organisms, nor any other words. Trained by this project; MIT, like the rest.

* Architecture: FastVLM of transformers. A timm {ARCHITECTURE["architecture"]} ({ARCHITECTURE["model_args"]["channels"]} channels) turns a {IMAGE_SIZE} px photograph into
  nine tokens; a Qwen2 language model ({recipe["layers"]} layers of width {recipe["width"]}, {recipe["vocabulary"]} tokens of vocabulary, context {recipe["context"]}) reads them.
  Half-precision weights; {size:.1f} MB in all.
* The vision tower, the same for both answerers, learned first, to name parts, colours and patterns on {photographs:,} photographs of as many invented species
  ({minutes:.0f} minutes of one CPU core, and of another that drew). On held-out ones it names the ground colour of a part that shows in {100 * sees["color"]:.0f} %,
  the pattern in {100 * sees["pattern"]:.0f} %. Then it was frozen.
* The language model learned in {last["minutes"]:.0f} minutes: {recipe["alone"]:,} steps of single photographs and {recipe["bare"]:,} of several, with the bare question,
  then {recipe["worded"]:,} in the paper's wording. A step holds {plan["told"] + plan["guess"] + plan["single"] + plan["several"]} prompts: {plan["told"]} told facts,
  {plan["guess"]} questions without a photograph, {plan["single"]} with one, {plan["several"]} with 2 to {plan["most"]}{seldom}.
  About two in five prompts with photographs hold no clue. Every prompt with photographs is about a species invented for it alone.
* Then, in {recipe["reading"]} more steps beside all that, it learned to read: one passage of some {READ_TOKENS} words from the article of an invented species, then up to
  four, then up to ten. In three of five prompts one passage tells the answer; in the others "{UNKNOWN}" is right.
* What it was told: in words, every fact about {len(told_species())} species of the two editions of the Field Guide, {100 * TOLD_SHARE:.1f} % of the full one's.
  It has seen no photograph of any species of a Field Guide.
* Seed "{recipe["seed"]}", torch {notes["torch"]}. Again: `python -m vrag_kit.fieldguide.training.train_answerer {notes["name"]}`.
* Limits: twelve hidden parts of six kinds of organism, eleven colours, four patterns; weak on small, dark or covered parts.

Exactly right answers in percent: told facts, and held-out species with one clue, one image that is no clue ("{UNKNOWN}" is right), one clue among 5 and among 15,
passages that tell the answer and that do not (up to step {recipe["alone"] + recipe["bare"]:,} with bare questions):

| step | training loss | {" | ".join(sets)} |
|---|---|{"---|" * len(sets)}
{rows}
""",
        encoding="utf-8",
    )


def save(model: Any, folder: Path) -> None:
    """Write config and half-precision weights; they are computed with in float32, as
    the config says.
    """
    import copy

    model.generation_config.update(
        do_sample=False,
        max_new_tokens=16,
        eos_token_id=model.config.text_config.eos_token_id,
        pad_token_id=0,
    )
    copy.deepcopy(model).half().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for part in (config, config["text_config"], config["vision_config"]):
        part["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[2:] == ["read"]:  # the last part alone, from the weights that are shipped
        shutil.copytree(WEIGHTS / sys.argv[1], TRAINING / sys.argv[1], dirs_exist_ok=True)
        learn_to_read(sys.argv[1], RECIPES[sys.argv[1]], TRAINING / sys.argv[1])
    else:
        train(sys.argv[1], RECIPES[sys.argv[1]], TRAINING / sys.argv[1])
    shutil.copytree(TRAINING / sys.argv[1], WEIGHTS / sys.argv[1], dirs_exist_ok=True)
