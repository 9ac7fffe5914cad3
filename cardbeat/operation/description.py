"""`GET /openapi.json`: the description of all endpoints as OpenAPI 3.1, a file of the package."""

import json

from cardbeat.files import read_bytes
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route


class DescriptionRoutes:
    """Answers the file with the URL of this server in place of that of a trial.

    It is read at the start, because an upgrade may replace the artifact while it runs.
    """

    def __init__(self, base_url: str) -> None:
        url = json.dumps(base_url).encode()
        self.body = read_bytes("openapi.json").replace(b'"http://127.0.0.1:8080"', url, 1)

    def routes(self) -> list[Route]:
        return [Route("GET", "/openapi.json", self.read, in_loop=True)]

    def read(self, _request: Request) -> Response:
        return Response(200, self.body, {"Content-Type": "application/json"})
