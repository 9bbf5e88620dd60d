"""The steps of the workflow `relay`: `python .github/relay plan`, `gate` or `report`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import callback
import gate
import payload
import settings

CONCLUSIONS = ("success", "failure", "cancelled")


def main(arguments: list[str]) -> int:
    """Run one step and return its status: 1 for a failed gate, 2 for other errors."""
    steps = {"plan": plan, "start": start, "gate": run, "report": report}
    if len(arguments) != 1 or arguments[0] not in steps:
        print(f"usage: python .github/relay {'|'.join(steps)}", file=sys.stderr)
        return 2
    try:
        return steps[arguments[0]]()
    except (payload.InvalidPayloadError, settings.SettingsError, callback.ReportError) as error:
        print(f"relay: {error}", file=sys.stderr)
        return 2


def plan() -> int:
    """Print what is to be tested, and pass it to the jobs that follow."""
    event, chosen = _event(), settings.read()
    if chosen.reports and not event.delivery:
        raise payload.InvalidPayloadError(f"there is no delivery_id, which {chosen.level} needs")
    idle = event.idle(chosen.label)
    wanted = f"{event.name} at {event.sha}: the gate of {chosen.level}, PyTorch: {chosen.pytorch}"
    print(f"nothing to test: {idle}" if idle else wanted)
    outputs = {
        "run": "false" if idle else "true",
        "event": event.kind,
        "sha": event.sha,
        "level": chosen.level,
        "pytorch": chosen.pytorch,
    }
    lines = "".join(f"{name}={value}\n" for name, value in outputs.items())
    _append("GITHUB_OUTPUT", lines)
    return 0


def start() -> int:
    """Report to the relay that the gate begins."""
    _tell(callback.workflow(os.environ))
    return 0


def run() -> int:
    """Run the gate."""
    return 0 if gate.run(settings.read().level) else 1


def report() -> int:
    """Report the result of the gate to the relay, and write the summary of this run."""
    event, conclusion = _event(), os.environ.get("RESULT", "")
    if conclusion not in CONCLUSIONS:
        raise settings.SettingsError(f"RESULT is {conclusion!r}: the workflow sets it")
    counts = gate.results()
    tests = ", ".join(f"{count} {name}" for name, count in (counts or {}).items())
    _append(
        "GITHUB_STEP_SUMMARY",
        f"{event.name} of pytorch/pytorch at `{event.sha}`: **{conclusion}**\n\n"
        f"Tests: {tests or 'the gate has left no figures'}\n",
    )
    _tell(callback.workflow(os.environ, conclusion, counts))
    return 0


def _tell(told: dict[str, object]) -> None:
    chosen = settings.read()
    if not chosen.reports:
        print("L1 reports nothing")
        return
    callback.send(chosen.callback, _event().echo, told, callback.identity(os.environ))
    print(f"the relay knows: {told['conclusion'] or told['status']}")


def _event() -> payload.Event:
    return payload.read(Path(os.environ.get("GITHUB_EVENT_PATH", "")))


def _append(variable: str, text: str) -> None:
    """Write to the file that GitHub names in a variable, if it is set."""
    if name := os.environ.get(variable):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
