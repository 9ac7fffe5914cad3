"""The heartbeat on a simulated machine, in one thread, from a seed: `python -m tests.model --help`.

The real service of `cardbeat/service.py` runs here without a change: sweep, credit, checks, outbox, schedule, delivery
and the database with its file. What it stands on is simulated, and replaced before it is imported (`replaced.py`):

- `threads.py`: time, and threads that take turns where real ones would wait (greenlets, so nothing runs at once);
- `disk.py`: how long a commit takes, when it fails, and what a crash or a power cut leaves of it;
- `network.py`: the receivers of alerts and what they answer;
- `server.py`: the server that starts, stops, crashes and is suspended;
- `people.py`: the jobs that ping, and the owners who edit, move, delete and revoke;
- `faults.py`: what goes wrong, and when;
- `model.py`: what must hold, whatever goes wrong: read this first;
- `witness.py`: what each commit has changed, for the model;
- `plants.py`: bugs put back, each of which must be found;
- `world.py`: one run, all of it drawn from its seed.

A run is a function of its seed: the same seed gives the same events in the same order, which their hash shows.
"""
