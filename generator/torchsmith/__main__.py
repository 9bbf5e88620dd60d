"""The entry point of the `torchsmith` command. It handles Ctrl-C and other signals from the start.

Before this module Python itself starts, and prints a traceback for a Ctrl-C in its `site`.
"""

import _thread
import sys


def _keep_interrupt(failure: "sys.UnraisableHookArgs") -> None:
    # In a callback, such as those of an import, Python prints an exception and goes on. Ctrl-C is
    # not to be lost: from a thread it comes again behind the callback.
    if issubclass(failure.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(signal.pthread_kill, (_thread.get_ident(), signal.SIGINT))
    else:
        sys.__unraisablehook__(failure)


def _interrupted() -> int:
    print("torchsmith: interrupted", file=sys.stderr)
    return 130


try:
    import signal  # takes milliseconds, as it imports enum
except KeyboardInterrupt:
    sys.exit(_interrupted())


def main() -> int:
    """Run the command and return its exit status; what ends it otherwise lets it tidy up first."""
    asked: list[int] = []

    def interrupt(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # a terminal that closes may say so twice
        asked.append(number)
        raise KeyboardInterrupt

    try:
        sys.unraisablehook = _keep_interrupt
        for each in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) == signal.SIG_DFL:  # under nohup it is ignored
                signal.signal(each, interrupt)
        from torchsmith import cli

        return cli.main()
    except KeyboardInterrupt:
        return _interrupted()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to do but end
        if asked:  # as it would have without us, which whoever sent the signal is to see
            signal.signal(asked[0], signal.SIG_DFL)
            signal.raise_signal(asked[0])


if __name__ == "__main__":
    sys.exit(main())
