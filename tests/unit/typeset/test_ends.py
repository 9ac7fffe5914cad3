"""Where a domain that has no room begins."""

import pytest

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.labels import fit_end
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import Block

FONTS = Fonts()


def shown(block: Block) -> str:
    return " ".join(line.text for line in block.lines)


def end_of(width_px: int, text: str) -> Block:
    return fit_end(FONTS, text, Style(400, 32, 32), width_px)


@pytest.mark.parametrize("width", [120, 200, 333, 480])
@pytest.mark.parametrize(
    "domain",
    ["a-very-long-subdomain.of-another-long-name.example.com", "x" * 400 + ".com", "пример" * 30 + ".рф", "例" * 900],
)
def test_what_keeps_its_end_loses_its_front(width: int, domain: str) -> None:
    block = end_of(width, domain)
    kept = shown(block)
    assert block.cut
    assert block.width_px <= width
    assert kept.startswith("…")
    assert domain.endswith(kept.removeprefix("…"))
    assert len(kept) >= 3


def test_it_begins_at_a_name_where_that_is_near() -> None:
    assert shown(end_of(480, "a-very-long-subdomain.of-another-long-name.example.com")) == "…example.com"


def test_what_has_room_stays_whole() -> None:
    block = end_of(480, "blog.example.com")
    assert (shown(block), block.cut) == ("blog.example.com", False)


def test_missing_glyphs_are_counted_in_what_is_cut_away_too() -> None:
    assert end_of(200, "\ue000" + "x" * 400 + ".com").missing == 1
