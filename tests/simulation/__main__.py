"""Simulate the heartbeat for years, with faults of every kind: each run from a seed, which replays it exactly."""

import argparse
import gc
import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from time import monotonic
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DAY_SECONDS = 86400.0
YEAR_DAYS = 365.25
MONTH_DAYS = 30.0
DAY_RUNS = 4
"""In so many runs a day is simulated, each of a quarter of it."""
MOST_VIOLATIONS = 10
FAULTS_A_YEAR = 100
"""Of each kind, at the least, unless told otherwise."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--years", type=float, help="simulate so many, in runs of some months at most")
    what.add_argument("--day", action="store_true", help="simulate a day, in four runs of six hours")
    what.add_argument("--plants", nargs="*", metavar="NAME", help="put bugs back, all or these, and find each")
    what.add_argument("--seed", type=int, help="one run")
    parser.add_argument("--luck", type=int, help="with --day: draw the seeds from this number, the same each time")
    parser.add_argument("--faults", type=int, help="with --years: fail with fewer of any kind (100 a year)")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="with --years: go on from the runs that it has")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    parser.add_argument("--sweeps", type=int, default=3000, help="intervals of the sweep that a run lasts (3000)")
    parser.add_argument("--plant", default="", help="with --seed: the bug that is put back")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=NUMBER", help="with --seed: options of the world")
    options = parser.parse_args()
    if options.seed is not None:
        return run_one(options)
    if options.plants is not None:
        return find_plants(options.plants, options.jobs)
    if options.day:
        return simulate(1.0, day_runs(options.luck), options.jobs, Figures(), 0)
    faults = int(FAULTS_A_YEAR * options.years) if options.faults is None else options.faults
    return simulate(options.years * YEAR_DAYS, year_runs(options.sweeps), options.jobs, Figures(options.kept), faults)


def run_one(options: argparse.Namespace) -> int:
    """A run in this process; its last line is what came of it, as JSON."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Else the order of a set of strings would be another one in each process.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    from tests.simulation import replaced

    replaced.replace_all()
    from tests.simulation.plants import PLANTS
    from tests.simulation.world import World

    drawn: dict[str, Any] = {}
    if options.plant:
        PLANTS[options.plant].put_back()
        drawn = dict(PLANTS[options.plant].options)
    for setting in options.set:
        name, _, value = setting.partition("=")
        drawn[name] = float(value) if "." in value else int(value)
    # What was imported stays, and little of what a run makes is garbage that needs more than a count of references.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    world, began, failure = World(options.seed, **drawn), replaced.cpu_seconds(), ""
    try:
        world.run(options.sweeps * world.sweep_seconds)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        print(*world.lines(), sep="\n")
        if type(error).__name__ != "Violation":
            import traceback

            traceback.print_exception(error)
    result = {
        "seed": options.seed,
        "failure": failure,
        "hash": world.hash(),
        "days": world.now / DAY_SECONDS,
        "cpu": replaced.cpu_seconds() - began,
        "options": world.options,
        "is_expected": not options.plant or any(part in failure for part in PLANTS[options.plant].shows),
        "faults": {kind: world.counts.pop(kind, 0) for kind in world.faults.kinds},
        "counts": {
            **world.counts,
            "alerts": world.witness.recorded,
            "outages": world.witness.overdue,
            "reminders": world.witness.reminders,
            "merges": world.witness.merged,
        },
    }
    if failure:
        print(failure)
    print(json.dumps(result))
    return bool(failure)


def year_runs(sweeps: int) -> Iterator[list[str]]:
    """Each of `sweeps` intervals: one in five as it is drawn, one so short that alerts merge, the others for years."""
    while True:
        seed = random.SystemRandom().randrange(10**9)
        checks = f"checks={(20, 60, 200)[seed // 5 % 3]}"
        setting = [] if seed % 5 == 0 else ["--set", "sweep_seconds=3600", checks]
        if seed % 5 == 1:
            setting = ["--set", "sweep_seconds=5", "checks=15"]
        yield ["--seed", str(seed), "--sweeps", str(sweeps), *setting]


def day_runs(luck: int | None) -> Iterator[list[str]]:
    draw = random.SystemRandom() if luck is None else random.Random(luck)
    while True:
        seed = draw.randrange(10**9)
        sweep_seconds = (20, 60)[seed % 2]
        sweeps = DAY_SECONDS / DAY_RUNS / sweep_seconds
        checks = f"checks={(30, 200)[seed // 2 % 2]}"
        yield ["--seed", str(seed), "--sweeps", str(int(sweeps)), "--set", f"sweep_seconds={sweep_seconds}", checks]


class Figures:
    """What came of the runs so far, in `done` simulated days; those of `kept`, to which each run is added, count."""

    def __init__(self, kept: Path | None = None) -> None:
        self.done = 0.0
        self.violations = 0
        self._began = monotonic()
        self._seeds = 0
        self._cpu_seconds = 0.0
        self._counts = Counter[str]()
        self._faults = Counter[str]()
        for line in kept.read_text().splitlines() if kept is not None and kept.exists() else ():
            self._add(*json.loads(line))
        self._kept = kept

    def add(self, arguments: list[str], result: dict[str, Any], output: str) -> None:
        if self._kept is not None:
            with self._kept.open("a") as file:
                print(json.dumps((arguments, result, output)), file=file)
        self._add(arguments, result, output)

    def _add(self, arguments: list[str], result: dict[str, Any], output: str) -> None:
        if not result or result["failure"]:
            self.violations += 1
            print(output)
            print(f"replay: python -m tests.simulation {' '.join(arguments)}", flush=True)
            return
        self.done += result["days"]
        self._seeds += 1
        self._cpu_seconds += result["cpu"]
        self._counts.update(result["counts"])
        self._faults.update(result["faults"])
        took = f"{result['days']:.2f} days in {result['cpu']:.0f} s of CPU"
        print(f"seed {result['seed']}: {took}, {result['hash']}; {self.done / YEAR_DAYS:.2f} years", flush=True)

    def show(self, least_faults: int) -> bool:
        """Print them; whether there was no violation, and none of the faults came more seldom than that."""
        years = f"{self.done / YEAR_DAYS:.2f} years ({self.done:.1f} days) from {self._seeds} seeds"
        found = f"{self.violations or 'no'} violation{'s' if self.violations > 1 else ''}"
        print(f"{years}, {found}; {monotonic() - self._began:.0f} s, {self._cpu_seconds:.0f} s of CPU")
        for heading, counts in (("What was done:", self._counts), ("Faults, by kind:", self._faults)):
            print(heading)
            for name, count in sorted(counts.items()):
                print(f"{count:>10}  {name}")
        rare = sorted(kind for kind, count in self._faults.items() if count < least_faults)
        if rare:
            print(f"fewer than {least_faults} faults of: {', '.join(rare)}")
        sys.stdout.flush()
        return not self.violations and not rare


def simulate(days: float, runs: Iterator[list[str]], jobs: int, figures: Figures, least_faults: int) -> int:
    """Run one after the other until so many days have passed without a violation; prints the figures.

    Fails where there was a violation, or where a kind of fault came less often than asked for.
    """

    def stop(*_: object) -> None:
        figures.show(least_faults)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    expected = figures.done
    with ThreadPoolExecutor(jobs) as pool:
        under_way: dict[Future[tuple[list[str], dict[str, Any], str]], float] = {}
        while figures.done < days and figures.violations < MOST_VIOLATIONS:
            while len(under_way) < jobs and (not under_way or expected < days):
                arguments = next(runs)
                under_way[pool.submit(_run, arguments)] = _expected_days(arguments)
                expected = figures.done + sum(under_way.values())
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                del under_way[future]
                figures.add(*future.result())
    return not figures.show(least_faults)


def find_plants(names: list[str], jobs: int) -> int:
    """Whether each bug is found within a simulated month; prints after how long, and by what."""
    known = names or _plant_names()
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(_find, known))
    return not all(found)


def _find(name: str) -> bool:
    days = 0.0
    seed = random.SystemRandom().randrange(10**9)
    while days < MONTH_DAYS:
        arguments = ["--seed", str(seed), "--sweeps", "1000", "--plant", name]
        _, result, output = _run(arguments)
        if not result:
            print(output)
            return False
        days += result["days"]
        if result["failure"]:
            is_found = result["is_expected"] and _passes_without(result)
            verdict = "found" if is_found else "something else is found"
            print(f"{name}: {verdict} after {days:.1f} days, seed {seed}: {result['failure'][:110]}", flush=True)
            return is_found
        seed += 1
    print(f"{name}: NOT found in {days:.1f} days, up to seed {seed}", flush=True)
    return False


def _passes_without(found: dict[str, Any]) -> bool:
    """Whether the same run passes without the bug, up to where that was found."""
    sweeps = math.ceil(found["days"] * DAY_SECONDS / found["options"]["sweep_seconds"]) + 1
    settings = [f"{name}={value}" for name, value in found["options"].items()]
    _, result, _ = _run(["--seed", str(found["seed"]), "--sweeps", str(sweeps), "--set", *settings])
    return bool(result) and not result["failure"]


def _plant_names() -> list[str]:
    code = "from tests.simulation import replaced; replaced.replace_all()\n"
    code += "from tests.simulation.plants import PLANTS; print(*PLANTS)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.split()


def _run(arguments: list[str]) -> tuple[list[str], dict[str, Any], str]:
    """What came of a run in a process of its own, nothing if that died; and all it has printed."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    try:
        result = json.loads(lines[-1])
    except (IndexError, ValueError):
        return arguments, {}, run.stdout + run.stderr
    return arguments, result, "\n".join(lines[:-1]) + run.stderr


def _expected_days(arguments: list[str]) -> float:
    """As many as the run will last, as far as its arguments tell."""
    sweeps = int(arguments[arguments.index("--sweeps") + 1])
    settings = dict(setting.split("=") for setting in arguments if "=" in setting)
    return sweeps * float(settings.get("sweep_seconds", 0)) / DAY_SECONDS


if __name__ == "__main__":
    sys.exit(main())
