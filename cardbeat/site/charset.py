"""In what encoding a page is, by the rules of browsers: the Encoding Standard. Pure."""

import re
from collections.abc import Mapping

from cardbeat.site.tags import tags_of
from cardbeat.vendor.webencodings.labels import LABELS

_UTF_8 = "utf-8"
_BEGINNINGS = {
    b"\xef\xbb\xbf": _UTF_8,
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\0?\0x\0": "utf-16-le",
    b"\0<\0?\0x": "utf-16-be",
}
_CODECS = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "iso-2022-jp": "iso2022_jp_ext",
    "iso-8859-8-i": "iso-8859-8",
    "shift_jis": "cp932",
    "utf-16be": _UTF_8,  # A page that says so in ASCII is in UTF-8.
    "utf-16le": _UTF_8,
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-user-defined": "cp1252",
}
"""Python's codecs for encodings of the standard that it calls otherwise, or knows less of."""
_NEWER = (
    "csunicode iso-10646-ucs-2 ucs-2 unicode unicode11utf8 unicode20utf8 unicodefeff unicodefffe"
    " x-unicode20utf8"
)
_NAMES = LABELS | dict.fromkeys(_NEWER.split(), _UTF_8)
_NAMES |= {"koi8-ru": "koi8-u", "ms932": "shift_jis"}
"""With what the standard has had since, but for three labels that no browser can read."""
_CONTENT = re.compile(
    r"""charset\s*=\s*(["']?)([^"'\s;]+)\1""", re.ASCII | re.IGNORECASE
)
_XML = re.compile(
    r"""<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)""", re.ASCII
)


def codec_of(raw: bytes) -> str:
    """The codec of a page.

    1. That of its first bytes, such as a byte order mark.
    2. That of the first `meta`, else of the XML declaration, that declares one.
    3. UTF-8 if all of it can be read so, else windows-1252.
    """
    for beginning, codec in _BEGINNINGS.items():
        if raw.startswith(beginning):
            return codec
    view = raw.decode("latin-1")
    last = view.lower().rfind("<meta")
    for tag in tags_of(view):
        if tag.start > last:
            break
        declared = tag.name == "meta" and codec_of_meta(tag.values)
        if declared:
            return declared
    in_xml = _XML.match(view)
    declared = in_xml and _codec_of(in_xml[1])
    if declared:
        return declared
    try:
        raw.decode(_UTF_8)
    except UnicodeDecodeError:
        return "cp1252"
    return _UTF_8


def codec_of_meta(values: Mapping[str, str]) -> str | None:
    """The codec that a `meta` with these attributes declares."""
    if "charset" in values:
        return _codec_of(values["charset"])
    is_type = values["http-equiv"].lower() == "content-type"
    found = is_type and _CONTENT.search(values["content"])
    return _codec_of(found[2]) if found else None


def decoded(raw: bytes, codec: str) -> str:
    """The text of a page. Bytes that are no letters become surrogates or U+FFFD."""
    if codec.startswith("utf-16"):
        raw = raw[: len(raw) // 2 * 2]
    return raw.decode(codec, _errors(codec))


def byte_of(raw: bytes, text: str, at: int, codec: str) -> int | None:
    """The byte of a page at a place in its text; None if the codec writes it otherwise."""
    before = text[:at].encode(codec, _errors(codec))
    return len(before) if raw.startswith(before) else None


def _codec_of(label: str) -> str | None:
    name = _NAMES.get(label.strip(" \t\n\r\f").lower())
    return _CODECS.get(name, name) if name else None


def _errors(codec: str) -> str:
    """What lets a codec of Python read any bytes, and write most of them as they were."""
    if codec.startswith("utf-16"):
        return "surrogatepass"
    if codec.startswith(("hz", "iso2022", "iso-2022")):
        return "replace"
    return "surrogateescape"
