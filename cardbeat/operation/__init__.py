"""What an operator and their monitoring ask the service.

`health` decides between 200 and 503. `metrics` counts for the whole service, and shows the
checks of one key; what the numbers mean is in `metrics.json`.

May import the services (`cards`, `heartbeat`), `keys`, `web` and everything below them. Only
`service` imports from here. Begin with `health`.
"""
