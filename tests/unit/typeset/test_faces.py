"""Opened fonts: bounded, and the same face for all who hold it."""

from importlib import resources

import pytest

from cardbeat.resources import read_bytes
from cardbeat.typeset.faces.files import Faces
from cardbeat.typeset.faces.fonts import Fonts
from tests.systems import RAQM

BYTES = 100_000


@pytest.fixture
def faces() -> Faces:
    return Faces(BYTES)


def files() -> list[str]:
    return ["inter-cyrillic-700.ttf.gz", *(f"inter-latin-{weight}.ttf.gz" for weight in (400, 500, 600, 700))]


def test_opened_faces_are_bounded(faces: Faces) -> None:
    for file in files():
        for size in (20, 30, 40, 50, 60):
            faces.font(file, size, raqm=False)
            assert 0 < faces.bytes <= BYTES


def test_a_face_that_a_text_holds_is_not_opened_again(faces: Faces) -> None:
    held = [faces.font(file, 30, raqm=False) for file in files() * 2]
    assert len(set(map(id, held))) == len(files())


@RAQM
def test_a_file_that_is_open_is_not_read_again_for_another_size_or_engine(
    monkeypatch: pytest.MonkeyPatch, faces: Faces
) -> None:
    read: list[str] = []
    monkeypatch.setattr("cardbeat.typeset.faces.files.read_bytes", lambda file: read.append(file) or read_bytes(file))
    held = [faces.font(file, size, raqm=size == 60) for size in (20, 40, 60) for file in files()]
    assert [font.size for font in held] == [20] * 5 + [40] * 5 + [60] * 5
    assert len(read) == len(files())


def test_every_file_has_the_shortest_header_of_gzip() -> None:
    fonts = resources.files("cardbeat") / "fonts"
    headers = {file.read_bytes()[:10] for file in fonts.iterdir() if file.name.endswith(".gz")}
    assert headers == {bytes.fromhex("1f8b08000000000002ff")}


@pytest.mark.parametrize(("grapheme", "anchored"), [("ب", True), ("a", False), ("漢", False)])
def test_only_letters_that_carry_marks_have_anchors_and_only_without_raqm(grapheme: str, anchored: bool) -> None:
    fonts = Fonts(shaping=False)
    ((subset, _),) = fonts.choose([grapheme], "ja")[0].pieces
    face = fonts.faces.face(400, subset, 30)
    assert not face.raqm
    assert bool(face.anchors.marks) is anchored


def test_a_small_letter_is_smaller_and_raised() -> None:
    fonts = Fonts()
    ((subset, _),) = fonts.choose(["⁵"], "ja")[0].pieces
    face = fonts.faces.face(400, subset, 100)
    assert (face.font.size, face.rise_px) == (60, 40)
