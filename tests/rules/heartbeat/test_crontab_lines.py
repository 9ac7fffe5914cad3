"""The lines to be pasted into a crontab, wherever the program and its documentation print one."""

from tests.rules.test_architecture import PACKAGE, ROOT

KINDS = {".md", ".py", ".js", ".html", ".json", ".toml", ".txt"}
PLACES = [
    ROOT / "README.md",
    *(path for path in PACKAGE.rglob("*") if path.suffix in KINDS),
]


def test_a_ping_is_tried_again_also_while_nobody_listens():
    """To curl a refused connection is nothing passing: `--retry` alone gives up at once."""
    lines = [
        line for path in PLACES for line in path.read_text().splitlines()
    ]
    pings = [
        line
        for line in lines
        if "--retry " in line or ("curl -" in line and "&&" in line)
    ]
    assert len(pings) >= 2
    assert [
        line
        for line in pings
        if "--retry " not in line or "--retry-connrefused" not in line
    ] == []
