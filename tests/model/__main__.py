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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"PYTHONHASHSEED": "0"}
"""Else the order of a set of strings would be another one in each process."""
DAY_SECONDS = 86400.0
YEAR_DAYS = 365.25
MONTH_DAYS = 30.0
DAY_RUNS = 4
"""A day is simulated in so many runs, each of a part of it."""
SWEEPS = 3000
PLANT_SWEEPS = 1000
JOBS = 2
"""Processes at once."""


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.model", description=__doc__
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--years",
        type=float,
        help="simulate so many, in runs of some months",
    )
    what.add_argument(
        "--day", action="store_true", help="simulate a day, in four runs"
    )
    what.add_argument(
        "--plants",
        nargs="*",
        metavar="NAME",
        help="find bugs that are put back",
    )
    what.add_argument("--seed", type=int, help="one run")
    parser.add_argument(
        "--luck", type=int, help="draw the seeds from this number"
    )
    parser.add_argument(
        "--sweeps",
        type=int,
        default=SWEEPS,
        help=f"of the run [{SWEEPS}]",
    )
    parser.add_argument(
        "--plant", help="with --seed: the bug that is put back"
    )
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="NAME=N",
        help="of the world",
    )
    options = parser.parse_args()
    if options.seed is not None:
        return run_one(options)
    luck = (
        random.SystemRandom()
        if options.luck is None
        else random.Random(options.luck)
    )
    if options.plants is not None:
        return find_plants(
            options.plants or plant_names(), luck.randrange(10**9)
        )
    if options.day:
        return simulate(1.0, islice(day_runs(luck), DAY_RUNS))
    return simulate(options.years * YEAR_DAYS, year_runs(luck))


# One run in this process; its last line is what came of it, as JSON.


def run_one(options):
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "tests.model", *sys.argv[1:]]
        os.execve(sys.executable, command, ENVIRONMENT)
    from tests.model import replaced

    replaced.replace_all()
    from tests.model.plants import PLANTS
    from tests.model.world import World

    shows = ()
    drawn = read_settings(options.set)
    if options.plant:
        plant = PLANTS[options.plant]
        plant.put_back()
        shows = plant.shows
        drawn = plant.options | drawn
    # What was imported stays, and a count of references frees most of what a run makes.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    world = World(options.seed, **drawn)
    failure = play(world, options.sweeps)
    result = {
        "failure": failure,
        "is_expected": any(part in failure for part in shows),
        "hash": world.hash(),
        "days": world.now / DAY_SECONDS,
        "options": world.options,
        "counts": world.counts,
    }
    print(json.dumps(result))
    return bool(failure)


def read_settings(settings):
    values = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        values[name] = float(value) if "." in value else int(value)
    return values


def play(world, sweeps):
    """What has ended it before its time, if anything."""
    failure = ""
    try:
        world.run(sweeps * world.sweep_seconds)
    except Exception as error:
        print(*world.lines(), sep="\n")
        if type(error).__name__ != "Violation":
            traceback.print_exception(error, file=sys.stdout)
        failure = f"{type(error).__name__}: {error}"
        print(failure)
    return failure


# Many runs, each in a process of its own.


def run(arguments):
    """What came of it, with its `arguments` and `output`; the process may have died."""
    command = [sys.executable, "-m", "tests.model", *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    try:
        result = json.loads(lines.pop())
    except (IndexError, ValueError):
        result = {
            "failure": "the process died",
            "is_expected": False,
            "days": 0.0,
        }
    return result | {
        "arguments": arguments,
        "output": "\n".join(lines) + done.stderr,
    }


def run_arguments(seed, sweeps, settings):
    shown = [f"{name}={value}" for name, value in settings.items()]
    return ["--seed", str(seed), "--sweeps", str(sweeps), "--set", *shown]


def year_runs(luck):
    """One in five as it is drawn, one so short that outages are taken back, the others for years."""
    while True:
        seed = luck.randrange(10**9)
        settings = {
            "sweep_seconds": 3600,
            "checks": luck.choice((20, 60, 200)),
        }
        if seed % 5 == 0:
            settings = {}
        if seed % 5 == 1:
            settings = {"sweep_seconds": 5, "checks": 15}
        yield run_arguments(seed, SWEEPS, settings)


def day_runs(luck):
    while True:
        settings = {
            "sweep_seconds": luck.choice((20, 60)),
            "checks": luck.choice((30, 200)),
        }
        sweeps = int(DAY_SECONDS / DAY_RUNS / settings["sweep_seconds"])
        yield run_arguments(luck.randrange(10**9), sweeps, settings)


def simulate(days, runs):
    """Until so many days have passed, or there are no more runs; 1 after a violation."""
    done = 0.0
    counts = Counter()
    with ThreadPoolExecutor(JOBS) as pool:
        while done < days and (some := list(islice(runs, JOBS))):
            for result in pool.map(run, some):
                replay = f"python -m tests.model {' '.join(result['arguments'])}"
                if result["failure"]:
                    print(result["output"], f"replay: {replay}", sep="\n")
                    return 1
                done += result["days"]
                counts.update(result["counts"])
                print(
                    f"{result['days']:.2f} days, {result['hash']}: {replay}",
                    flush=True,
                )
    for name, count in sorted(counts.items()):
        print(f"{count:>10}  {name}")
    print(f"{done:.1f} days, no violation")
    return 0


# Bugs that are put back.


def plant_names():
    code = "from tests.model import replaced; replaced.replace_all()\n"
    code += "from tests.model.plants import PLANTS; print(*PLANTS)"
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=ROOT, stdout=-1, text=True, check=True
    ).stdout.split()


def find_plants(names, first_seed):
    """Whether each is found within a simulated month; prints after how long, and by what."""
    with ThreadPoolExecutor(JOBS) as pool:
        return not all(
            list(pool.map(partial(is_found, first_seed), names))
        )


def is_found(first_seed, name):
    days = 0.0
    seed = first_seed
    while days < MONTH_DAYS:
        found = run(
            [*run_arguments(seed, PLANT_SWEEPS, {}), "--plant", name]
        )
        days += found["days"]
        failure = found["failure"]
        if failure:
            is_it = found["is_expected"] and passes_without(seed, found)
            verdict = "found" if is_it else "something else is found"
            print(
                f"{name}: {verdict} after {days:.1f} days, seed {seed}: {failure[:110]}"
            )
            return is_it
        seed += 1
    print(f"{name}: NOT found in {days:.1f} days, up to seed {seed}")
    return False


def passes_without(seed, found):
    """Whether the same run passes without the bug, up to where that was found."""
    options = found["options"]
    sweeps = (
        math.ceil(found["days"] * DAY_SECONDS / options["sweep_seconds"])
        + 1
    )
    return not run(run_arguments(seed, sweeps, options))["failure"]


if __name__ == "__main__":
    sys.exit(main())
