"""The reader of TOML files, which says in one line what is wrong with one."""

import os
import time

import pytest

from cardbeat.errors import StartupError
from cardbeat.toml_file import read_toml
from tests.systems import PIPES


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path, mark):
    path = tmp_path / "a.toml"
    path.write_bytes(mark + "[a]\nb = 'ä'".encode())
    assert read_toml(path) == {"a": {"b": "ä"}}


@pytest.mark.parametrize("content", [b"[a", b"a = '\xff'", b"a = " + b"9" * 5000, b"a = " + b"[" * 100_000])
def test_what_is_no_toml_is_one_line_that_names_the_file(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(StartupError, match=r"a\.toml is not valid TOML: [^\n]+$"):
        read_toml(path)


@pytest.mark.parametrize(
    "content",
    [
        b"a = '" + b"x" * 1024 * 1024 + b"'",
        b"a" + b".a" * 20_000 + b" = 1",
        b"  [[" + b' "\\"" .' * 20_000 + b"a]]",
        b"x = {a = 1, " + b"a." * 20_000 + b"a = 1}",
    ],
)
def test_what_would_take_long_to_read_is_refused_at_once(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    began = time.process_time()
    with pytest.raises(StartupError, match=r"a\.toml (has a key of more than 16 parts|is larger than 1 MiB)$"):
        read_toml(path)
    assert time.process_time() - began < 1


def test_texts_with_many_dots_are_no_keys(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(f"a.b = 'http://{'a.' * 99}/{'1.' * 99}'\n[{'a.' * 15}a]")
    assert read_toml(path)["a"]["b"].startswith("http://a.a")


@pytest.mark.parametrize("make", [pytest.param("mkfifo", marks=PIPES), "mkdir"])
def test_only_a_regular_file_is_read(tmp_path, make):
    getattr(os, make)(tmp_path / "a.toml")
    with pytest.raises(StartupError, match=r"a\.toml is not a regular file$"):
        read_toml(tmp_path / "a.toml")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(StartupError, match=r"can't read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")
