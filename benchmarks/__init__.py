"""The figures of the docs: what rendering, building and running a backend costs."""
