"""Letters made bolder than their font has them."""

from PIL import Image

from cardbeat.typeset.faces.files import Face
from cardbeat.typeset.faces.fonts import Fonts

RARE = "囍"
"""A character that is there in the regular weight only."""


def face_of(character: str, weight: int) -> Face:
    fonts = Fonts()
    ((subset, _),) = fonts.choose([character], "zh-Hant")[0].pieces
    return fonts.faces.face(weight, subset, 96)


def coverage(face: Face, character: str) -> Image.Image:
    """In a picture of 120 x 120, the origin 10 right of its left side and 100 below its top."""
    bitmap, left, top = face.drawn(character, False, 10)
    image = Image.new("L", (120, 120))
    image.paste(bitmap, (left, 100 + top, left + bitmap.size[0], 100 + top + bitmap.size[1]))
    return image


def weight_of(image: Image.Image) -> int:
    return sum(image.tobytes()) // 255


def test_a_rare_character_among_bold_ones_is_drawn_bolder() -> None:
    assert face_of(RARE, 400).bolder_px == (0, 0)
    assert weight_of(coverage(face_of(RARE, 700), RARE)) > 1.3 * weight_of(coverage(face_of(RARE, 400), RARE))


def test_a_title_is_bold_in_scripts_whose_font_has_one_weight() -> None:
    for letter in "ཀꦏߞᐃⵜ𞤀ꯃܠᠮ":
        assert face_of(letter, 400).bolder_px == (0, 0)
        assert weight_of(coverage(face_of(letter, 700), letter)) > 1.2 * weight_of(
            coverage(face_of(letter, 400), letter)
        )
    assert face_of("∑", 700).bolder_px == (0, 0)


def test_a_common_character_is_drawn_from_its_bold_file() -> None:
    assert face_of("中", 700).bolder_px == (0, 0)


def test_a_bolder_character_stands_where_the_lighter_one_does() -> None:
    face = face_of(RARE, 400)
    left, top, right, bottom = coverage(face, RARE).getbbox() or (0, 0, 0, 0)
    box = coverage(face._replace(bolder_px=(4, 2)), RARE).getbbox()
    assert box == (left - 2, top - 1, right + 2, bottom + 1)


def test_a_bold_stroke_of_a_rare_character_is_as_wide_as_that_of_a_common_one() -> None:
    common = face_of("十", 700)
    made = face_of("十", 400)._replace(bolder_px=face_of(RARE, 700).bolder_px)
    assert abs(weight_of(coverage(made, "十")) / weight_of(coverage(common, "十")) - 1) < 0.2
