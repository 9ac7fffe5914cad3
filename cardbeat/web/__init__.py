"""The HTTP server: sockets, the parsing of requests, routing, and the access log.

It knows nothing of cards, checks, keys or the database: the other parts hand it `Route`s, and a
`Guard` for the routes that need a key. It may import the modules for configuration, errors, clocks,
jobs, logging and the operating system, and nothing else of the package.

Begin with the theory of operation at the top of `loop`. Then follow a request: `server` accepts the
client, `connection` receives and sends, `reader` cuts requests out of the bytes, `router` finds the
handler, and `message` has the `Request` that a handler gets and the `Response` that it returns. It
also reads queries, finds the client behind a proxy, and writes the lines of the access log.
"""
