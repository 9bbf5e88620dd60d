"""The entry point of `torchsmith`: Ctrl-C is handled while the modules are imported, too."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command and return its exit status."""
    try:
        from torchsmith import cli

        return cli.main()
    except KeyboardInterrupt:
        print("torchsmith: interrupted", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all that is left is to end


if __name__ == "__main__":
    sys.exit(main())
