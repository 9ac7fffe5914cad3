"""The pages: the card builder (`/`), the dashboard (`/dashboard`) and the documentation (`/docs`).

`routes` reads each file once and answers it from memory, as it does `openapi.json`;
`documentation` makes HTML of the Markdown in `cardbeat/docs`. The folders have HTML, CSS and
JavaScript as the browser gets them, without a build step: `builder`, `dashboard`, `editor`,
`access` and `docs`. `shared` has what all pages load, and `looks` the builder's pictures. The pages
use the same HTTP API as all other clients.

May import `errors`, `files`, `vendor` and `web`. Begin with `routes`, then
`dashboard/dashboard.html`.
"""
