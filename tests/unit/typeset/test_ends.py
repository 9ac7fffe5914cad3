"""Where a text that is cut ends, or begins."""

import pytest

from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.text import Block, fit, fit_end

FONTS = Fonts()


def cut_to(width_px: int, text: str) -> Block:
    return fit(FONTS, text, width_px=width_px, size_px=32, min_size_px=32)


def shown(block: Block) -> str:
    return " ".join(line.text for line in block.lines)


def test_a_text_is_cut_after_a_word_and_without_punctuation_that_waits_for_more() -> None:
    text = "Queues, locks – and “retries”, (or back-pressure) at 3:15"
    ends = set()
    for width in range(260, 800, 7):
        kept = shown(cut_to(width, text)).removesuffix("…")
        assert text.startswith(kept)
        assert text[len(kept) :][:1] in ("", " ", ",", "-", ")", "”", ":")
        assert kept[-1] not in ",–“(:- "
        ends.add(kept.rpartition(" ")[2])
    assert {"locks", "and"} <= ends


def test_a_word_that_leaves_little_when_it_goes_is_cut_inside() -> None:
    assert shown(cut_to(300, "A Donaudampfschifffahrtsgesellschaft")).startswith("A Donau")


def test_han_is_cut_where_a_line_could_end() -> None:
    assert "、…" not in shown(cut_to(32 * 6, "東京大阪、名古屋、福岡、札幌、仙台"))
    assert len(shown(cut_to(32 * 6, "東京大阪名古屋福岡札幌仙台"))) == 6


def end_of(width_px: int, text: str) -> Block:
    return fit_end(FONTS, text, width_px=width_px, size_px=32)


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


def test_it_begins_at_a_name_or_at_a_word_of_one_where_that_is_near() -> None:
    assert shown(end_of(480, "a-very-long-subdomain.of-another-long-name.example.com")) == "…long-name.example.com"


def test_what_has_room_stays_whole() -> None:
    block = end_of(480, "blog.example.com")
    assert (shown(block), block.cut) == ("blog.example.com", False)


def test_missing_glyphs_are_counted_in_what_is_cut_away_too() -> None:
    assert end_of(200, "\ue000" + "x" * 400 + ".com").missing == 1
