"""The entry point of the `torchsmith` command. It handles Ctrl-C and other signals from the start.

Python prints a traceback for an earlier Ctrl-C, while it imports `site`.
"""

import _thread
import sys


def _keep_interrupt(failure: "sys.UnraisableHookArgs") -> None:
    # Python prints an exception of a callback, such as those of an import, and continues. To keep
    # Ctrl-C, a thread sends SIGINT again after the callback.
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
    """Run the command and return its exit status. SIGTERM and SIGHUP run its cleanup first."""
    asked: list[int] = []

    def interrupt(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # a closing terminal may send it twice
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
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the exit is left
        if asked:  # end by the signal, so that the sender sees it
            signal.signal(asked[0], signal.SIG_DFL)
            signal.raise_signal(asked[0])


if __name__ == "__main__":
    sys.exit(main())
