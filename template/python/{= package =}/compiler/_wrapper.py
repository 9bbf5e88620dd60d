"""What writes the code of a graph, with that of the graphs within it."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen


class Wrapper(PythonWrapperCodegen):
    """Writes the calls of a graph. What a subclass changes holds for the graphs within it as well."""

    @classmethod
    def create(
        cls,
        is_subgraph: bool,
        subgraph_name: Any,
        parent_wrapper: Any,
        partition_signatures: Any = None,
    ) -> PythonWrapperCodegen:
        """Return a wrapper for a graph, or for one within that of ``parent_wrapper``."""
        if not is_subgraph:
            return cls()
        within: Any = type(f"Subgraph{cls.__name__}", (cls, SubgraphPythonWrapperCodegen), {})
        wrapper: PythonWrapperCodegen = within(subgraph_name, parent_wrapper, partition_signatures)
        return wrapper
