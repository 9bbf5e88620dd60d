"""The figures of the docs: the costs of rendering, building and running a backend."""
