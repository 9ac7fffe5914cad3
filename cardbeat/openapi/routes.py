"""`GET /openapi.json`: the description of the service, as OpenAPI 3.1."""

from collections.abc import Iterable
from functools import cache

from cardbeat.web.message import Request, Response, json_bytes
from cardbeat.web.router import Route


class OpenApiRoutes:
    """Describes the routes `others` of the other parts, and its own. `base_url` has no slash at its end."""

    def __init__(self, base_url: str, others: Iterable[Route]) -> None:
        self._base_url = base_url
        self._others = others
        self.body = cache(self._body)

    def routes(self) -> list[Route]:
        return [Route("GET", "/openapi.json", self.read, in_loop=True)]

    def read(self, _request: Request) -> Response:
        return Response(200, self.body(), {"Content-Type": "application/json"})

    def _body(self) -> bytes:
        from cardbeat.openapi.document import document  # noqa: PLC0415 - importing it takes long

        return json_bytes(document(self._base_url, (*self._others, *self.routes())))
