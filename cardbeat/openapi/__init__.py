"""`GET /openapi.json`: the description of all endpoints as OpenAPI 3.1.

`operations` describes the endpoints of keys, cards and checks, and the webhook; `site` describes the others. `parts`
has what they are written with, `schemas` the schemas of bodies, `examples` an example of each. `errors` describes
refusals. Method, path, key and ignored bodies come from the `Route`s, refusals from the catalogue in `cardbeat.errors`.

May import everything below `service`, to take limits and names from where they are used. Begin with `document` in
`routes`.
"""
