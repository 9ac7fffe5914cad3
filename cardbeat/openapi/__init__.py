"""`GET /openapi.json`: the description of all endpoints as OpenAPI 3.1.

`operations` describes the endpoints and the webhook. `parts` has what they are written with, and what refusals have in
common, `schemas` the schemas of bodies, `examples` an example of each. Method, path, key, tag and most refusals of an
endpoint come from its `Route`, the sentences of refusals from the catalogue in `cardbeat.errors`.

May import everything below `service`, to take limits and names from where they are used. Begin with `document.py`.
"""
