"""What of the service is replaced for each world: cards, the network, the system's signals, and how often it looks.

Unlike what `replaced.py` puts in place, this knows the product's modules.
"""

import logging
import sys
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from cardbeat import service
from cardbeat.errors import Refusal
from cardbeat.heartbeat.alerts.delivery import Delivery
from cardbeat.heartbeat.tidy import Tidy
from cardbeat.host.descriptors import Shares
from cardbeat.web.router import Router
from tests.simulation import scheduler
from tests.simulation.machine import Front, Nothing

if TYPE_CHECKING:
    from tests.simulation.world import World


def replace_parts(world: "World") -> None:
    """For a world that is about to run."""
    for name in ("Store", "CardRoutes", "PageRoutes"):
        setattr(service, name, Nothing)
    service.Painter = Nothing  # type: ignore[assignment, misc]
    service.new_sender = lambda *_: world.network  # type: ignore[assignment, return-value]
    service.HttpServer = _server  # type: ignore[assignment, misc]
    service.on_stop_signals = _on_stop_signals
    service.wake_on_signals = lambda _: None
    service.Delivery = partial(Delivery, poll_seconds=world.poll_seconds)  # type: ignore[assignment, misc]
    service.Tidy = partial(Tidy, poll_seconds=world.poll_seconds)  # type: ignore[assignment, misc]
    _set("POLL_SECONDS", world.poll_seconds)
    _lengthen("LOOK_SECONDS", world.sweep_seconds / 3)
    _lengthen("REPAIR_SECONDS", 10 * world.poll_seconds)
    _set("shares", lambda: Shares(senders=world.options["senders"]))
    _set("read_text", _read_text)
    logging.getLogger("cardbeat").setLevel(logging.WARNING)
    logger = logging.getLogger()
    logger.handlers = [_Log(world)]


class _Log(logging.Handler):
    """Keeps the lines; a failure that the product did not expect ends the run."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        current = self._world.scheduler.current
        process = "" if current is None else current.process.name
        if current is not None and current.process.is_dead:
            return
        self._world.show(f"{process} {record.getMessage()}")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, Refusal):
            self._world.scheduler.failure = self._world.scheduler.failure or error


def _server(front: Front, router: Router, *_: Any, **__: Any) -> Front:
    front.router = router
    return front


def _on_stop_signals(handler: Any) -> None:
    server = scheduler.SCHEDULER.own_thread().process.own["server"]
    server.stop_asked = lambda: handler(15, None)


_ORIGINAL: dict[str, Any] = {}


def _set(name: str, value: Any) -> None:
    """Replace a name in all modules of the product that have it."""
    modules = [module for own, module in sys.modules.items() if own.startswith("cardbeat.") and hasattr(module, name)]
    assert modules, f"nothing in the product is called {name} any more"
    for module in modules:
        if name == "read_text" and module.__name__ == "cardbeat.files":
            continue
        _ORIGINAL.setdefault(name, getattr(module, name))
        setattr(module, name, value)


def _lengthen(name: str, seconds: float) -> None:
    """What is done every so often in the product is done as often in relation to the sweeps."""
    for own, module in sys.modules.items():
        if own.startswith(("cardbeat.database.", "cardbeat.heartbeat.")) and hasattr(module, name):
            usual = _ORIGINAL.setdefault(f"{own}.{name}", getattr(module, name))
            setattr(module, name, max(usual, seconds))


@lru_cache(None)
def _read_text(name: str) -> str:
    """The text of a resource, which servers that start again and again would read as often."""
    return str(_ORIGINAL["read_text"](name))
