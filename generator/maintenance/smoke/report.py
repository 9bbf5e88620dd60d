"""The results of a smoke run: JUnit XML for CI, one HTML page for people."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from xml.etree import ElementTree

# Longer logs are cut at the front, as the error is at the end.
MOST_LOG = 20_000


@dataclass
class Result:
    """A row and how it ended: its state is a stage until then, and "build failed" or so after."""

    label: str
    command: str
    state: str = "waiting"
    seconds: float = 0.0
    log: str = ""
    smallest: tuple[str, ...] = field(default=())
    repeat: str = ""
    searching: bool = False
    """Whether the smallest set that fails like it is being looked for."""

    @property
    def failed(self) -> bool:
        """Whether it is over and did not pass."""
        return self.state.endswith("failed")

    @property
    def verdict(self) -> str:
        """One line on a failure: the smallest set of features that fails so, and how to see it."""
        if not self.repeat:
            return f"repeat it with: {self.command}"
        features = " + ".join(self.smallest) or "the core alone"
        return f"smallest failing set: {features}; repeat it with: {self.repeat}"


def junit_xml(results: list[Result]) -> str:
    """Return the results as JUnit XML."""
    failures = [result for result in results if result.failed]
    suite = ElementTree.Element(
        "testsuite",
        name="torchsmith smoke",
        tests=str(len(results)),
        failures=str(len(failures)),
        time=f"{sum(result.seconds for result in results):.1f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname="smoke", name=result.label, time=f"{result.seconds:.1f}"
        )
        if result.failed:
            message = f"{result.state}: {result.verdict}"
            failure = ElementTree.SubElement(case, "failure", message=message)
            failure.text = _legal_xml(result.log[-MOST_LOG:])
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def html_page(results: list[Result]) -> str:
    """Return the results as one HTML page that needs nothing else."""
    passed = sum(result.state == "passed" for result in results)
    rows = "\n".join(_row(result) for result in results)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Smoke builds: {passed} of {len(results)} passed</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .4rem .6rem; border-bottom: 1px solid #8884; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30rem; overflow: auto; }}
.passed {{ color: light-dark(#0a6b2d, #6fdc8c); }}
.failed {{ color: light-dark(#b3261e, #ffb4ab); }}
</style>
<h1>Smoke builds: {passed} of {len(results)} passed</h1>
<table>
<thead><tr><th>Combination</th><th>Result</th><th>Seconds</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</html>
"""


def _row(result: Result) -> str:
    kind = "failed" if result.failed else result.state
    detail = ""
    if result.failed:
        detail = (
            f"<p>{html.escape(result.verdict)}</p><details><summary>Log</summary>"
            f"<pre>{html.escape(result.log[-MOST_LOG:])}</pre></details>"
        )
    return (
        f"<tr><td>{html.escape(result.label)}{detail}</td>"
        f'<td class="{kind}">{html.escape(result.state)}</td><td>{result.seconds:.0f}</td></tr>'
    )


def _legal_xml(text: str) -> str:
    """Drop the control characters that XML cannot hold."""
    return "".join(char for char in text if char >= " " or char in "\t\n\r")
