"""Runs the order of text against all of Unicode's bidirectional test files, of which the unit tests run a part.

    python -m tests.bench.unicode_files

Needs Debian's package unicode-data. Takes about three minutes.
"""

from collections.abc import Callable, Iterator

from tests.unicode_files import BidiCase, character_cases, class_cases


def main() -> int:
    failed = _count("BidiCharacterTest.txt", character_cases) + _count("BidiTest.txt", class_cases)
    return int(failed > 0)


def _count(name: str, cases: Callable[[], Iterator[BidiCase]]) -> int:
    results = [case.passes() for case in cases()]
    failed = results.count(False)
    print(f"{name}: {len(results)} cases, {failed} differ", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
