"""A name out of data is joined to a folder by `safe_join`, which refuses one that leads outside.
That each reader uses it is in bad_inputs.csv ("outside") and in the readers' own tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_kit.errors import VragError
from vrag_kit.files import safe_join


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "..", "a\\..\\x", "a\0.png"])
def test_a_name_that_leads_outside_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(VragError, match=r"rows line 3: .* points outside .*; expected") as error:
        safe_join(tmp_path, name, "rows line 3")
    assert repr(name) in str(error.value)


def test_only_links_of_the_user_are_followed(tmp_path: Path) -> None:
    """`data/inat` may be a link to another disk, and a species' folder in it, too; what a
    stranger packed may lead nowhere else.
    """
    disk, data = tmp_path / "disk", tmp_path / "data"
    disk.mkdir()
    (disk / "a.png").touch()
    data.mkdir()
    (data / "inat").symlink_to(disk)
    assert safe_join(data, "inat/a.png", "x").is_file()
    with pytest.raises(VragError, match=r"'inat/a\.png' is a link that points outside"):
        safe_join(data, "inat/a.png", "x", links=False)
    assert safe_join(data / "inat", "a.png", "x", links=False).is_file()
    (data / "b.png").touch()
    (data / "again.png").symlink_to("b.png")
    assert safe_join(data, "again.png", "x", links=False).is_file()
    assert safe_join(data, "..b.png", "x") == data / "..b.png"
