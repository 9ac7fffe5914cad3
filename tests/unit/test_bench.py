"""What the benchmarks compute from what they measure."""

import re
from pathlib import Path

from cardbeat.cards.seal import unseal
from cardbeat.cards.store import file_name
from tests import bench
from tests.bench.attacks import resolving
from tests.bench.attacks.callers import TIMEOUT_SECONDS, Times
from tests.bench.attacks.demands import at_least, at_most
from tests.bench.clients import header_blocks
from tests.bench.path import SENDS, Call, Trace, count
from tests.bench.running import interleaved
from tests.bench.sealing import IEND, seal_all
from tests.bench.stock import targets_of


def test_the_list_of_benchmarks_names_all_that_can_be_run() -> None:
    text = bench.__doc__ or ""
    files = "".join(path.read_text() for path in Path(bench.__file__).parent.rglob("*.py"))
    can_be_run = set(re.findall(r"(?m)^    python -m tests\.bench\.(\w+)", files))
    assert can_be_run <= set(re.findall(r"\w+", text))
    assert set(re.findall(r"(?m)^    (\w+)", text)) <= can_be_run


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


def test_a_silence_counts_for_all_who_would_have_asked_meanwhile() -> None:
    times = Times()

    for _ in range(4):
        times.add(0.5, answered=True, every_seconds=1)
    times.add(4, answered=True, every_seconds=1)

    assert sorted(times.seconds) == [0.5, 0.5, 0.5, 0.5, 1, 2, 3, 4]
    assert (times.asked, times.percentile(0.5), times.percentile(1)) == (5, 1, 4)


def test_a_refusal_counts_as_long_as_a_caller_would_have_waited() -> None:
    times = Times()

    times.add(0.001, answered=False, every_seconds=1)

    assert (times.refused, times.percentile(0.5)) == (1, TIMEOUT_SECONDS)


def test_a_demand_is_not_met_by_what_was_not_measured() -> None:
    assert at_most("at most {}", 3, 3) == ("at most 3", 3, True)
    assert at_least("at least {}", 2, 3) == ("at least 3", 2, False)
    assert not at_most("at most {}", Times().percentile(0.5), 3).met


def test_a_name_of_the_attacks_resolver_holds_its_address() -> None:
    addresses = {entry[4] for entry in resolving.getaddrinfo("any.127-1-2-3.test", 80)}

    assert addresses == {("127.1.2.3", 80)}
