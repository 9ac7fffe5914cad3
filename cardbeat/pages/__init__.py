"""The pages: the card builder (`/`), the dashboard (`/dashboard`) and the documentation (`/docs`).

`routes` reads each file once and answers it from memory; `documentation` makes HTML of the Markdown in `cardbeat/docs`.
Each folder has the HTML, CSS or JavaScript of one part of a page, as the browser gets them, without a build step:
`builder`, `dashboard`, `editor`, `access` and `docs`. `shared` has what all pages load. The pages use the same HTTP API
as all other clients.

May import `errors`, `resources`, `vendor` and `web`. Begin with `routes`, then `dashboard/dashboard.html`.
"""
