"""The program of the other process: runs the code in each input line, and prints one line."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

import _device as api
import numpy as np
from groups.shared_numbers import add, read, write


def main() -> None:
    names: dict[str, Any] = {
        "api": api,
        **{function.__name__: functools.partial(function, api) for function in (add, read, write)},
    }
    for line in sys.stdin:
        request = json.loads(line)
        names.update(request["values"])
        answer: dict[str, Any] = {"value": None}
        try:
            if request["is_question"]:
                value = eval(request["code"], names)
                answer["value"] = value.tolist() if isinstance(value, np.ndarray) else value
            else:
                exec(request["code"], names)
        except (api.DeviceError, MemoryError) as error:
            answer = {"error": str(error), "code": error.code.name}
        print(json.dumps(answer), flush=True)


main()
