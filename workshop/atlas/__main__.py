"""``python -m workshop.atlas`` measures every type anew; with names, it renews the rows of these types."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import warnings
from datetime import UTC, datetime
from importlib import metadata

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

from course.places import RECORDS  # noqa: E402

from . import record, tiny  # noqa: E402

FILE = RECORDS / "atlas.json"
SECONDS = 120


def too_long(*_) -> None:
    raise ValueError(f"its probes take longer than {SECONDS} s")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workshop.atlas", description=__doc__)
    parser.add_argument("types", nargs="*", help="model types whose rows are renewed; by default all are")
    names = parser.parse_args(arguments).types
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGALRM, too_long)
    rows = (
        {each["type"]: each for each in json.loads(FILE.read_text(encoding="utf-8"))["rows"]} if names else {}
    )
    for name in names or tiny.types():
        signal.alarm(SECONDS)
        rows[name] = record.row(name)
        signal.alarm(0)
        print(json.dumps(rows[name]), flush=True)
    about = {
        "versions": {package: metadata.version(package) for package in ("transformers", "torch")},
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "sizes": {"window": tiny.WINDOW, **record.SETTINGS},
    }
    lines = ",\n".join(f"  {json.dumps(rows[name])}" for name in sorted(rows))
    FILE.write_text(f'{json.dumps(about, indent=1)[:-2]},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
