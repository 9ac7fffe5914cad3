"""A client of the HTTP API, for the command `checks`.

`api` sends requests, tries again, and bounds each answer. `apply` reads the file of
`checks apply`, compares it with the server and makes the changes.

It imports the rules for a check's fields from the heartbeat, so that a bad file is refused before
anything is sent, and nothing else of the server. Begin reading with `apply`.
"""
