"""Runs cardbeat with a resolver of its own, which knows names that no name server has.

`NAME.127-1-2-3.test` has the address 127.1.2.3. The look-up of `NAME.silent.test` hangs, as with a name server that
gives no answer, and then fails. Any other name goes to the system's resolver.

Only this text is used, by an interpreter that runs it with `-c` in the folder of the tree to measure: this works for
any tree, and needs no rights on the host.
"""

import re
import runpy
import socket
import time

HANGS_SECONDS = 30
KNOWN = re.compile(r"[^.]+\.(\d+)-(\d+)-(\d+)-(\d+)\.test")

system_getaddrinfo = socket.getaddrinfo


def getaddrinfo(host: object, *arguments: object, **named: object) -> list[object]:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name.endswith(".silent.test"):
        time.sleep(HANGS_SECONDS)
        raise socket.gaierror(socket.EAI_AGAIN, "no name server answered")
    known = KNOWN.fullmatch(name)
    return system_getaddrinfo(".".join(known.groups()) if known else host, *arguments, **named)


if __name__ == "__main__":
    socket.getaddrinfo = getaddrinfo
    runpy.run_module("cardbeat", run_name="__main__", alter_sys=True)
