"""What the `torchsmith` command runs first: Ctrl-C is answered once modules are imported, too.

Before this module Python itself starts, and prints a traceback for a Ctrl-C in its `site`.
"""

import sys


def _interrupted() -> int:
    print("torchsmith: interrupted", file=sys.stderr)
    return 130


try:
    import signal  # takes milliseconds, as it imports enum
except KeyboardInterrupt:
    sys.exit(_interrupted())


def main() -> int:
    """Run the command and return its exit status."""
    try:
        # Within an import Python may run a callback, where an exception would be printed and lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        from torchsmith import cli

        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return cli.main()
    except KeyboardInterrupt:
        return _interrupted()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to do but end


if __name__ == "__main__":
    sys.exit(main())
