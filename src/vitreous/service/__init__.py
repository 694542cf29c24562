"""The reader over HTTP: limits, a small queue, routes and a page; nothing of reading itself."""
