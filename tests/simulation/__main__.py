"""Simulate years: `python -m tests.simulation --years 100 --jobs 2`."""

import argparse
import os
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--sweeps", type=int, default=5000)
    parser.add_argument("--set", nargs="*", default=[], help="name=value")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    from tests.simulation import replaced
    replaced.replace_all()
    from tests.simulation.world import World
    import cProfile
    from tests.simulation import model; model.TESTS_WAIT = bool(os.environ.get('TW'))
    began = replaced.real_seconds()
    world = World(options.seed, **{n: float(v) if "." in v else int(v) for n, _, v in (s.partition("=") for s in options.set)})
    print(world.options)
    try:
        if os.environ.get("PROFILE"):
            p = cProfile.Profile(); p.enable()
        world.run(options.sweeps * world.sweep_seconds)
    except BaseException as error:
        print(*world.lines(), sep="\n")
        import traceback; traceback.print_exc()
        return 1
    finally:
        if os.environ.get("PROFILE"):
            p.disable()
            import pstats; pstats.Stats(p).sort_stats("tottime").print_stats(35)
        print(world.hash(), f"{world.now/86400:.2f} days", f"{replaced.real_seconds() - began:.1f} s", world.scheduler.switches, world.witness.commits, world.witness.recorded, world.witness.overdue)
        print(dict(world.counts))
    return 0

sys.exit(main())
