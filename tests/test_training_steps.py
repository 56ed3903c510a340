"""What all trainings of the demo share: parts, rates, one step, and going on after a cut."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.steps import phase_of, prepared
from vrag_kit.fieldguide.training.teaching import padded


@dataclass(frozen=True)
class Part:
    name: str
    steps: int


PARTS = (Part("a", 2), Part("b", 1), Part("c", 3))


def learner(seed: int, rate: float = 0.1) -> tuple[torch.nn.Module, Learner]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = adamw(model.parameters(), rate, weight_decay=0.05)
    return model, Learner(model, optimizer, lambda step: rise_and_fall(step, 8, rise=2))


def weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def test_each_step_is_in_one_part_in_their_order() -> None:
    assert "".join(phase_of(PARTS, step).name for step in range(6)) == "aabccc"
    with pytest.raises(IndexError):
        phase_of(PARTS, 6)


def test_the_rate_rises_straight_and_falls_along_a_cosine() -> None:
    # the cosine at 0, a half and all of the way: 1, 1/2, 0
    assert rise_and_fall(0, 100, rise=10) == pytest.approx(1 / 10)
    assert rise_and_fall(50, 100, rise=10) == pytest.approx(1 / 2)
    assert rise_and_fall(50, 100, rise=10, least=0.2) == pytest.approx(0.2 + 0.8 / 2)
    assert rise_and_fall(100, 100, rise=10, least=0.2) == pytest.approx(0.2)


def test_the_gradients_of_losses_add_up() -> None:
    data = torch.arange(12.0).reshape(4, 3) / 12
    whole, of_whole = learner(0)
    parts, of_parts = learner(0)
    sums = of_whole.step([whole(data).square().sum()])
    added = of_parts.step(parts(data[at : at + 1]).square().sum() for at in range(4))
    assert added == pytest.approx(sums)
    for one, other in zip(weights(whole), weights(parts), strict=True):
        torch.testing.assert_close(one, other)


def steps(model: torch.nn.Module, of_model: Learner, which: range) -> None:
    for step in which:
        of_model.step([(model(torch.full((2, 3), step / 5)) - 1).square().mean()])


def test_a_learner_goes_on_where_another_was_kept_unless_the_recipe_is_another(
    tmp_path: Path,
) -> None:
    file = tmp_path / "state.pt"
    whole, of_whole = learner(0)
    assert of_whole.go_on(file) is None
    steps(whole, of_whole, range(3))
    of_whole.keep(file, {"recipe": {"seed": "a"}, "log": "[]"})
    steps(whole, of_whole, range(3, 6))
    again, of_again = learner(1)
    before = weights(again)
    assert of_again.go_on(file, {"seed": "b"}) is None
    assert all(map(torch.equal, before, weights(again)))
    assert of_again.go_on(file, {"seed": "a"}) == {"recipe": {"seed": "a"}, "log": "[]"}
    steps(again, of_again, range(3, 6))
    assert all(map(torch.equal, weights(whole), weights(again)))


def test_a_state_is_read_as_torch_wrote_it_before_there_was_a_learner(tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    model, _ = learner(0)
    optimizer = adamw(model.parameters(), 0.1, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    for _ in range(2):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        schedule.step()
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "schedule": schedule}
    torch.save({name: part.state_dict() for name, part in parts.items()} | {"step": 2}, file)
    again, of_again = learner(1)
    assert of_again.go_on(file) == {"step": 2}
    assert all(map(torch.equal, weights(model), weights(again)))


def square(number: int) -> int:
    return number**2


def test_steps_are_prepared_in_order_and_counted_from_one() -> None:
    every = [(step, found) for step, found in prepared(square, range(3, 6))]
    assert every == [(4, 9), (5, 16), (6, 25)]


def test_shorter_rows_are_filled_up_where_nothing_is_read_or_said() -> None:
    rows = padded([([5, 6, 7], [-100, 6, 7]), ([8], [8])])
    assert rows.ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert rows.labels.tolist() == [[-100, 6, 7], [8, -100, -100]]
    assert rows.mask.tolist() == [[1, 1, 1], [1, 0, 0]]
