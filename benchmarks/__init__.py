"""The figures of the README: what rendering, building and running a backend costs."""
