"""What the benchmarks compute from what they measure."""

from pathlib import Path

from cardbeat.cards.seal import unseal
from cardbeat.cards.store import file_name
from tests.bench.clients import header_blocks
from tests.bench.path import SENDS, Call, Trace, count
from tests.bench.running import interleaved
from tests.bench.sealing import IEND, seal_all
from tests.bench.stock import targets_of


def test_rounds_go_there_and_back_and_give_medians_and_summed_failures() -> None:
    asked: list[tuple[str, int]] = []

    def measure(side: str, number: int) -> dict[str, float]:
        asked.append((side, number))
        return {"a second": [3.0, 1.0, 2.0][number], "failures": 1}

    found = interleaved({side: lambda number, side=side: measure(side, number) for side in ("a", "b")}, 3)

    assert asked == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)]
    assert found == {side: {"a second": 2.0, "failures": 3} for side in ("a", "b")}


def test_calls_are_counted_with_their_files_and_the_switches_between_them() -> None:
    calls = [
        Call(1, 7, "web/connection.py", "read"),
        Call(2, 7, "web/reader.py", "next"),
        Call(3, 7, "web/reader.py", "next.<locals>.<listcomp>"),
        Call(4, 8, "web/loop.py", SENDS),
        Call(5, 8, "cards/routes.py", "card.<locals>.<lambda>"),
        Call(6, 7, "web/connection.py", "answer"),
        Call(7, 7, "web/connection.py", SENDS),
        Call(9, 7, "web/server.py", "note"),
    ]
    assert count(Trace(calls)) == {
        "calls": 4,
        "files": 3,
        "switches to another file": 3,
        "switches to another thread": 2,
        "calls with those after the answer": 5,
    }


def test_cards_that_were_not_drawn_are_stored_as_different_sealed_pngs(tmp_path: Path) -> None:
    folder = tmp_path / "cards" / "version"
    folder.mkdir(parents=True)
    (tmp_path / "0.drawn").write_bytes(b"\x89PNG" + IEND)
    targets = ["/og?title=a", "/og?title=b", "/og?title=c"]

    names = seal_all(folder, targets)

    assert names == [file_name(target) for target in targets]
    stored = [(folder / name).read_bytes() for name in names[1:]]
    assert len(set(stored)) == 2
    assert [unseal(name, png) is not None for name, png in zip(names[1:], stored, strict=True)] == [True, True]
    assert not (folder / names[0]).exists()


def test_cards_and_clients_differ() -> None:
    assert len(set(targets_of(["sk_a", "sk_b"], 1000))) == 1000
    blocks = header_blocks()
    assert len(set(blocks)) > 400
    assert all(block.endswith("\r\n") and "\r\n\r\n" not in block for block in blocks)
