"""Attacks that fill the disk."""

import os
from functools import partial
from pathlib import Path

from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.demands import at_least, at_most
from tests.bench.attacks.trial import Scene, Trial
from tests.bench.attacks.with_alerts import FREE_CHECKS, disk
from tests.bench.attacks.with_checks import EMOJI, longest_url

KEYS = 8
LEFT_MIB = 59
"""Less than the reserve of a disk of this size."""
DISK_MIB = 1400


def flapping(trial: Trial) -> None:
    """800 checks of 8 free keys turn overdue and back every 3 s, below the disk's reserve; no receiver answers."""
    with disk(DISK_MIB) as folder, trial.scene(data=folder / "data") as scene:
        keys = scene.checks_keys(KEYS)
        ids = [check_id for key in keys for check_id in create_flapping(scene, key)]
        fill(folder, LEFT_MIB)
        before = free_bytes(folder)
        attackers = scene.only_attack(partial(ping_all, ids=ids), seconds=trial.seconds)
        taken = before - free_bytes(folder)
        trial.figures |= {
            "KiB of pings": attackers.sent_bytes / 1024,
            "MiB of disk taken": taken / 2**20,
            "pings refused": attackers.statuses.total() - attackers.statuses[200],
        }
        deleted = sum(scene.attacker(key).ask("DELETE", "/key").status == 204 for key in keys)
        trial.verdicts += [
            at_most("disk taken at most {} MiB", taken / 2**20, 12),
            at_most("pings refused at most {}", trial.figures["pings refused"], 0),
            at_least("keys deleted at least {}", deleted, KEYS),
        ]


def create_flapping(scene: Scene, key: str) -> list[str]:
    """The ids of as many checks as a free key may have, with a period of 1 s and the longest names and URLs."""
    caller = scene.attacker(key)
    url = longest_url(caller, f"http://127.5.0.1:{scene.receivers.unreachable_port}/")
    check = {"name": EMOJI * 100, "period_seconds": 1, "grace_seconds": 0, "webhook_url": url}
    return [caller.created("POST", "/checks", check).member("check")["id"] for _ in range(FREE_CHECKS)]


async def ping_all(attackers: Attackers, ids: list[str]) -> None:
    """A ping of each check every 3 s, so that it is overdue each time."""
    await attackers.repeat(
        16, lambda number: request("GET", f"/ping/{ids[number % len(ids)]}"), per_second=len(ids) / 3
    )


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def fill(folder: Path, left_mib: int) -> None:
    """Take all room of a disk but this much."""
    with (folder / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes(folder) - left_mib * 2**20)
