"""The reader of TOML files, which says in one line what is wrong with one."""

import pytest

from cardbeat.errors import StartupError
from cardbeat.toml_file import read_toml


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


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(StartupError, match=r"can't read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")
