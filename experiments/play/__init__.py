"""Play games in the browser: the server and its pages."""
