"""The letter of an avatar."""

import pytest

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.labels import initial_block, initial_of
from cardbeat.typeset.paragraph import Style
from tests.systems import RAQM


@pytest.mark.parametrize(
    ("name", "initial"),
    [
        ("Ada", "A"),
        ("éa", "É"),
        ("e\u0301a", "É"),
        ("’t Hooft", "T"),
        ("@handle", "H"),
        ("«Йод»", "Й"),
        ("ʻOkina", "O"),
        ("เอกชัย", "เอ"),
        ("ศรี", "ศ"),
        ("ໂຂງ", "ໂຂ"),
        ("ശ്രീജിത്ത്", "ശ്രീ"),
        ("அம்மா", "அ"),
        ("ශ්\u200dරී", "ශ්\u200dරී"),
        ("အောင်", "အော"),
        ("क्षितिज", "क्षि"),
        ("გია", "გ"),
        ("ß", "ß"),
        ("ǆ", "ǅ"),
        ("李赟", "李"),
        ("3M", "3"),
        ("🦀 Ferris", "🦀"),
        ("…", ""),
        ("…und Söhne", "U"),
        ("?", "?"),
        (" \u200b", ""),
    ],
)
def test_an_initial_is_the_first_letter_of_a_name(name: str, initial: str) -> None:
    assert initial_of(name).strip("\u200b ") == initial


@pytest.mark.parametrize("shaping", [False, pytest.param(True, marks=RAQM)])
@pytest.mark.parametrize("name", ["ശ്രീജിത്ത്", "ஸ்ரீநிவாசன்", "ශ්\u200dරී", "အောင်", "เอกชัย", "Wang", "﷽", "𒐫"])
def test_an_initial_is_never_cut(name: str, shaping: bool) -> None:
    block = initial_block(Fonts(shaping=shaping), name, Style(700, 44, 22), 72, language=None)
    assert not block.cut
    assert block.width_px <= 72
    assert "…" not in "".join(line.text for line in block.lines)
