"""Simulate the heartbeat for years, with faults of every kind. A run's seed replays it exactly."""

import argparse
import gc
import json
import math
import os
import random
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.simulation.world import World

ROOT = Path(__file__).resolve().parents[2]
DAY_SECONDS = 86400.0
YEAR_DAYS = 365.25
MONTH_DAYS = 30.0
DAY_RUNS = 4
"""A day is simulated in so many runs, each of a part of it."""
PLANT_SWEEPS = 1000

Luck = Callable[[int], int]
"""A number from 0 below another one, from which a run is drawn."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--years", type=float, help="simulate so many, in runs of some months")
    what.add_argument("--day", action="store_true", help="simulate a day, in four runs")
    what.add_argument("--plants", nargs="*", metavar="NAME", help="find bugs that are put back")
    what.add_argument("--seed", type=int, help="one run")
    parser.add_argument("--luck", type=int, help="draw the seeds from this number")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once [2]")
    parser.add_argument("--sweeps", type=int, default=3000, help="of each run [3000]")
    parser.add_argument("--plant", default="", help="with --seed: the bug that is put back")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=N", help="of the world")
    options = parser.parse_args()
    if options.seed is not None:
        return run_one(options)
    draw = random.SystemRandom() if options.luck is None else random.Random(options.luck)
    if options.plants is not None:
        first_seed = draw.randrange(10**9)
        return find_plants(options.plants or plant_names(), first_seed, options.jobs)
    if options.day:
        return simulate(1.0, islice(day_runs(draw.randrange), DAY_RUNS), options.jobs)
    runs = year_runs(draw.randrange, options.sweeps)
    return simulate(options.years * YEAR_DAYS, runs, options.jobs)


# One run in this process; its last line is what came of it, as JSON.


def run_one(options: argparse.Namespace) -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Else the order of a set of strings would be another one in each process.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})
    from tests.simulation import replaced

    replaced.replace_all()
    from tests.simulation.plants import PLANTS
    from tests.simulation.world import World

    shows: tuple[str, ...] = ("",)
    drawn: dict[str, Any] = {}
    if options.plant:
        plant = PLANTS[options.plant]
        plant.put_back()
        shows = plant.shows
        drawn |= plant.options
    for setting in options.set:
        name, _, value = setting.partition("=")
        drawn[name] = float(value) if "." in value else int(value)
    # What was imported stays, and a count of references frees most of what a run makes.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    world = World(options.seed, **drawn)
    began = replaced.cpu_seconds()
    failure = failure_of(world, options.sweeps)
    result = result_of(world, failure) | {
        "cpu": replaced.cpu_seconds() - began,
        "is_expected": any(part in failure for part in shows),
    }
    print(json.dumps(result))
    return bool(failure)


def failure_of(world: "World", sweeps: int) -> str:
    """What went wrong in a run of so many sweeps, which is printed too."""
    try:
        world.run(sweeps * world.sweep_seconds)
    except Exception as error:
        print(*world.lines(), sep="\n")
        if type(error).__name__ != "Violation":
            traceback.print_exception(error)
        failure = f"{type(error).__name__}: {error}"
        print(failure)
        return failure
    return ""


def result_of(world: "World", failure: str) -> dict[str, Any]:
    faults = {kind: world.counts.pop(kind, 0) for kind in world.faults.kinds}
    witness = world.witness
    told = {
        "alerts": witness.recorded,
        "outages": witness.overdue,
        "reminders": witness.reminders,
        "taken back": witness.taken_back,
    }
    return {
        "seed": world.seed,
        "failure": failure,
        "hash": world.hash(),
        "days": world.now / DAY_SECONDS,
        "options": world.options,
        "faults": faults,
        "counts": dict(world.counts) | told,
    }


# Many runs, each in a process of its own.


class Ran(NamedTuple):
    arguments: list[str]
    result: dict[str, Any]
    """Nothing if the process died."""
    output: str


def run(arguments: list[str]) -> Ran:
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    *lines, last = done.stdout.splitlines() or [""]
    try:
        return Ran(arguments, json.loads(last), "\n".join(lines) + done.stderr)
    except ValueError:
        return Ran(arguments, {}, done.stdout + done.stderr)


def run_arguments(seed: int, sweeps: int, settings: dict[str, float]) -> list[str]:
    shown = [f"{name}={value}" for name, value in settings.items()]
    return ["--seed", str(seed), "--sweeps", str(sweeps), "--set", *shown]


def year_runs(luck: Luck, sweeps: int) -> Iterator[list[str]]:
    """One in five as it is drawn, one so short that outages are taken back, the others for years."""
    while True:
        seed = luck(10**9)
        settings: dict[str, float] = {"sweep_seconds": 3600, "checks": (20, 60, 200)[luck(3)]}
        if seed % 5 == 0:
            settings = {}
        if seed % 5 == 1:
            settings = {"sweep_seconds": 5, "checks": 15}
        yield run_arguments(seed, sweeps, settings)


def day_runs(luck: Luck) -> Iterator[list[str]]:
    while True:
        seed = luck(10**9)
        sweep_seconds = (20, 60)[seed % 2]
        sweeps = int(DAY_SECONDS / DAY_RUNS / sweep_seconds)
        checks = (30, 200)[seed // 2 % 2]
        yield run_arguments(seed, sweeps, {"sweep_seconds": sweep_seconds, "checks": checks})


def simulate(days: float, runs: Iterator[list[str]], jobs: int) -> int:
    """Until so many days have passed, or there are no more runs; 1 after a violation."""
    done = 0.0
    failed = False
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(jobs) as pool:
        under_way: set[Future[Ran]] = set()
        while True:
            if done < days and not failed:
                more = islice(runs, jobs - len(under_way))
                under_way |= {pool.submit(run, arguments) for arguments in more}
            if not under_way:
                break
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for arguments, result, output in (future.result() for future in ended):
                if not result or result["failure"]:
                    failed = True
                    print(output)
                    print(f"replay: python -m tests.simulation {' '.join(arguments)}", flush=True)
                    continue
                done += result["days"]
                counts.update(result["counts"])
                counts.update(result["faults"])
                took = f"{result['days']:.2f} days in {result['cpu']:.0f} s of CPU"
                print(f"seed {result['seed']}: {took}, {result['hash']}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:>10}  {name}")
    print(f"{done:.1f} days, {'a violation' if failed else 'no violation'}")
    return int(failed)


# Bugs that are put back.


def plant_names() -> list[str]:
    code = "from tests.simulation import replaced; replaced.replace_all()\n"
    code += "from tests.simulation.plants import PLANTS; print(*PLANTS)"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, stdout=-1, text=True, check=True).stdout.split()


def find_plants(names: list[str], first_seed: int, jobs: int) -> int:
    """Whether each is found within a simulated month; prints after how long, and by what."""
    with ThreadPoolExecutor(jobs) as pool:
        return int(not all(list(pool.map(partial(is_found, first_seed), names))))


def is_found(first_seed: int, name: str) -> bool:
    days = 0.0
    seed = first_seed
    while days < MONTH_DAYS:
        found = run([*run_arguments(seed, PLANT_SWEEPS, {}), "--plant", name])
        if not found.result:
            print(found.output)
            return False
        days += found.result["days"]
        failure = found.result["failure"]
        if failure:
            is_it = found.result["is_expected"] and passes_without(found.result)
            verdict = "found" if is_it else "something else is found"
            print(f"{name}: {verdict} after {days:.1f} days, seed {seed}: {failure[:110]}")
            return is_it
        seed += 1
    print(f"{name}: NOT found in {days:.1f} days, up to seed {seed}", flush=True)
    return False


def passes_without(found: dict[str, Any]) -> bool:
    """Whether the same run passes without the bug, up to where that was found."""
    options = found["options"]
    sweeps = math.ceil(found["days"] * DAY_SECONDS / options["sweep_seconds"]) + 1
    result = run(run_arguments(found["seed"], sweeps, options)).result
    return bool(result) and not result["failure"]


if __name__ == "__main__":
    sys.exit(main())
