"""Files that a person names."""

import os

import pytest

from cardbeat.errors import StartupError
from cardbeat.files import read_toml
from tests.kit.systems import PIPES


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_toml_is_read_with_and_without_a_byte_order_mark(tmp_path, mark):
    path = tmp_path / "a.toml"
    path.write_bytes(mark + "[a]\nb = 'ä'".encode())
    assert read_toml(path) == {"a": {"b": "ä"}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[a", "is not valid TOML"),
        (b"a = '\xff'", "is not valid TOML"),
        (b"a = " + b"9" * 5000, "is not valid TOML"),
        (b"a = " + b"[" * 100_000, "is not valid TOML"),
        (b"a = '" + b"x" * 1024 * 1024 + b"'", "is larger than 1 MiB"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_can_not_be_read_is_one_line_that_names_the_file(
    tmp_path, content, problem
):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(StartupError, match=rf"a\.toml {problem}[^\n]*$"):
        read_toml(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(
        StartupError, match=r"can't read .*none\.toml: No such file"
    ):
        read_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "make", [pytest.param("mkfifo", marks=PIPES), "mkdir"]
)
def test_only_a_regular_file_is_read(tmp_path, make):
    getattr(os, make)(tmp_path / "a.toml")
    with pytest.raises(
        StartupError, match=r"a\.toml is not a regular file$"
    ):
        read_toml(tmp_path / "a.toml")
