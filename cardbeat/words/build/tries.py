"""Reads the word lists of ICU: each a `BytesTrie` behind a header, as its bytestrie.h and dictionarydata.h say."""

import struct
from collections.abc import Iterator

_MAX_LINEAR_BRANCH = 5
"""Branches of more are searched by halves."""
_MAGIC = b"\xda\x27"


def packed_files(library: bytes) -> dict[str, bytes]:
    """The files inside ICU's common data, by name without the folder that names the version; found in any library."""
    start = library.index(b"CmnD") - 12
    header, magic = struct.unpack_from("<H2s", library, start)
    if magic != _MAGIC:
        raise ValueError("no common data of ICU")
    base = start + header
    (count,) = struct.unpack_from("<I", library, base)
    entries = [struct.unpack_from("<II", library, base + 4 + 8 * n) for n in range(count)]
    ends = [offset for _, offset in entries[1:]] + [len(library) - base]
    return {
        _name(library, base + name): library[base + offset : base + end]
        for (name, offset), end in zip(entries, ends, strict=True)
    }


def _name(library: bytes, at: int) -> str:
    return library[at : library.index(b"\0", at)].decode().partition("/")[2]


def words(dictionary: bytes) -> list[str]:
    """All words of a dictionary file, sorted by code point."""
    (header,) = struct.unpack_from("<H", dictionary)
    indexes = struct.unpack_from("<8i", dictionary, header)
    trie = dictionary[header + indexes[0] : header + indexes[3]]
    first = indexes[5] & 0x1FFFFF
    joiners = {0xFF: "\u200d", 0xFE: "\u200c"}
    return sorted("".join(joiners.get(b) or chr(first + b) for b in word) for word in _Trie(trie).words(0, b""))


class _Trie:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def words(self, at: int, before: bytes) -> Iterator[bytes]:
        """All that continue `before`, from the node at a place."""
        while True:
            node, at = self._data[at], at + 1
            if node < 0x10:
                count = node or self._data[at]
                yield from self._branch(at + (node == 0), count + 1, before)
                return
            if node < 0x20:
                length = node - 0x0F
                before, at = before + self._data[at : at + length], at + length
            else:
                yield before
                if node % 2:
                    return
                _, at = self._value(node, at)

    def _branch(self, at: int, count: int, before: bytes) -> Iterator[bytes]:
        while count > _MAX_LINEAR_BRANCH:
            delta, after = self._delta(at + 1)
            yield from self._branch(after + delta, count // 2, before)
            at, count = after, count - count // 2
        for _ in range(count - 1):
            key, node = self._data[at : at + 1], self._data[at + 1]
            value, at = self._value(node, at + 2)
            if node % 2:
                yield before + key
            else:
                yield from self.words(at + value, before + key)
        yield from self.words(at + 1, before + self._data[at : at + 1])

    def _value(self, node: int, at: int) -> tuple[int, int]:
        """A number whose first byte is shifted by one bit, and where it ends."""
        lead = node >> 1
        if lead < 0x51:
            return lead - 0x10, at
        if lead < 0x6C:
            return self._number(lead - 0x51, at, 1)
        if lead < 0x7E:
            return self._number(lead - 0x6C, at, 2)
        return self._number(0, at, 3 if lead == 0x7E else 4)

    def _delta(self, at: int) -> tuple[int, int]:
        """How far to jump, and where that number ends."""
        lead, at = self._data[at], at + 1
        if lead < 0xC0:
            return lead, at
        if lead < 0xF0:
            return self._number(lead - 0xC0, at, 1)
        if lead < 0xFE:
            return self._number(lead - 0xF0, at, 2)
        return self._number(0, at, 3 if lead == 0xFE else 4)

    def _number(self, lead: int, at: int, length: int) -> tuple[int, int]:
        return int.from_bytes(bytes([lead]) + self._data[at : at + length], "big"), at + length
