"""The two pages, the card builder (`/`) and the dashboard (`/dashboard`), and the module that answers them.

`routes` reads each file once and answers it from memory. Each folder has the HTML, CSS or JavaScript of one part of a
page, as the browser gets them, without a build step: `builder`, `dashboard`, `editor` and `access`. `shared` has what
both pages load. The pages use the same HTTP API as all other clients.

May import `errors`, `resources` and `web`. Begin with `routes`, then `dashboard/dashboard.html`.
"""
