"""What an operator and their monitoring ask the service.

`routes` has all of it: `HealthRoutes` decides between 200 and 503, `Metrics` counts for the whole
service, and `CheckMetricsRoutes` shows the checks of one key. What the numbers mean is in
`metrics.json`.

May import the services (`cards`, `heartbeat`), `keys`, `web` and everything below them. Only
`service` imports from here.
"""
