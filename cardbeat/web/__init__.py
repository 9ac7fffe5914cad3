"""The HTTP server: sockets, the parsing of requests, routing, and the access log.

It knows nothing of cards, checks, keys or the database: the other parts hand it `Route`s, and a `Guard` for the routes
that need a key. It may import the modules for configuration, errors, clocks, threads, logging and the operating system,
and nothing else of the package.

Begin with the theory of operation at the top of `loop`. Then follow a request: `server` accepts the client,
`connection` receives and sends, `reader` cuts requests out of the bytes, `exchange` gives each to the handler that
`router` finds, and `message` has the `Request` that a handler gets and the `Response` that it returns. `phases` holds
the time limits of connections and decides which one gives way when there are too many. `query` reads a query,
`forwarded` finds the client behind a proxy.
"""
