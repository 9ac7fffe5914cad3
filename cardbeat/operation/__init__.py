"""What an operator and their monitoring ask the service.

`health` decides between 200 and 503. `metrics` counts for the whole service, `check_metrics` shows
the checks of one key. The meanings of both are in `metrics.json`.

May import the services (`cards`, `heartbeat`), `keys`, `web` and everything below them. Only
`service` imports from here. Begin with `health`.
"""
