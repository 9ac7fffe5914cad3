"""A request as a line of the log."""

from cardbeat.web.message import Request, Response, access_lines


def line_of(target, pattern=None):
    request = Request(
        "GET", target, "-", client="192.0.2.1", id="a-1", pattern=pattern
    )
    response = Response(200, b"12345", {"X-Cache": "HIT"})
    (line,) = access_lines([(request, response, 0.0012)])
    return line.split(" ", 2)[2]


def test_a_line_of_the_log_tells_all_but_secrets():
    end = "200 5 1.2ms 192.0.2.1 HIT a-1"
    for target, pattern, shown in (
        ("/og?key=sk_1", "/og", "/og?"),
        ("/ping/abcdefghijklmnop", "/ping/{id}", "/ping/{id}"),
        ("/x/sk_abcdefghijkl/y", None, "/x/sk_a.../y"),
        ("/abcdefghijkl/abcdefghijklm", None, "/abcdefghijkl/abcd..."),
        ("/\x85\xe2", None, r"/\x85\xe2"),
    ):
        assert line_of(target, pattern) == f"GET {shown} {end}"
    assert len(line_of("/abc" * 2000)) < 300


def test_good_answers_of_quiet_routes_have_no_line():
    health, other = [
        Request("GET", path, path, pattern=path)
        for path in ("/healthz", "/other")
    ]
    answers = [
        (health, Response(200), 0.001),
        (health, Response(503), 0.001),
    ]
    lines = access_lines(
        [*answers, (other, Response(200), 0.001)], {"/healthz"}
    )
    shown = [" ".join(line.split()[2:5]) for line in lines]
    assert shown == ["GET /healthz 503", "GET /other 200"]
