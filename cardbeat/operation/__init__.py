"""What an operator and their monitoring ask the service: `/healthz`, `/metrics` and `/checks/metrics`.

`health` decides between 200 and 503. `metrics` holds the counters of the whole service and the Prometheus text format;
`check_metrics` uses that format for the checks of one key.

May import the services (`cards`, `heartbeat`), `keys`, `web` and everything below them. Only `service` and `openapi`
import from here. Begin with `health`.
"""
