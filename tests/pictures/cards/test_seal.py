"""A sealed card comes back as it was, and nothing else does."""

import pytest

from cardbeat.cards.seal import IEND, seal, unseal

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(60)) + IEND


def test_a_sealed_card_tells_what_it_was_drawn_of():
    card = seal("a.png", PNG, 3)
    assert unseal(card.png) == card
    assert card.of == "a.png"
    assert card.missing_glyphs == 3
    assert card.png.startswith(PNG.removesuffix(IEND))
    assert card.png.endswith(IEND)


@pytest.mark.parametrize(
    "text", [b"tEXtcardbeat\x00", b"tEXtcardbeat\x00b.png 1 00000000"]
)
def test_a_picture_that_looks_like_a_seal_is_sealed_as_any_other(text):
    card = seal("a.png", PNG.removesuffix(IEND) + text, 0)
    assert unseal(card.png) == card


def test_other_bytes_are_no_card():
    """No torn or longer one, none with a flipped bit, none without a seal."""
    png = seal("a.png", PNG, 0).png
    others = [png[:length] for length in range(len(png))]
    others += [
        png + b"x",
        b"x",
        PNG,
        IEND,
        b"tEXtcardbeat\x00",
        bytes(100),
    ]
    for place in range(len(png)):
        for bit in range(8):
            flipped = bytes([png[place] ^ 1 << bit])
            others.append(png[:place] + flipped + png[place + 1 :])
    assert not any(map(unseal, others))


def test_another_picture_has_another_etag():
    other = seal("a.png", PNG.replace(b"\x05", b"\x06"), 0)
    assert seal("a.png", PNG, 0).etag != other.etag
    assert seal("b.png", PNG, 0).etag == seal("a.png", PNG, 0).etag
