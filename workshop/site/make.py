"""Make the site in all languages: ``python workshop/site/make.py build`` writes it to ``build/site``.

The English site stands at the top, and each other language in a folder of its own. Translated notebooks are
run first, into ``build/<language>``, where ``make lab`` takes them from. If names such as ``01`` follow the
folder, only those are run: the others keep their earlier outputs, or show the English ones.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import weigh  # noqa: E402

from tutorial_lib.language import ENGLISH  # noqa: E402
from workshop import translation  # noqa: E402


def main(folder: str, *only: str) -> int:
    build = Path(folder).resolve()
    site = build / "site"
    shutil.rmtree(site, ignore_errors=True)
    others = translation.languages()

    def edition(language):
        own = {
            "TUTORIAL_LANG": language,
            "TUTORIAL_LOCALE": str(build),
            "SITE_LANGUAGES": " ".join((ENGLISH, *others)),
        }
        out, trees = (site, "doctrees") if language == ENGLISH else (site / language, f"doctrees-{language}")
        line = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-E", "-q", "-b", "html"]
        line += ["-c", HERE, "-d", build / trees, ROOT, out]
        return subprocess.Popen(line, cwd=ROOT, env={**os.environ, **own})

    with edition(ENGLISH) as english:  # while the translated notebooks run
        for language in others:
            translation.build(language, only, build)
    failed = english.returncode
    for language in others:  # they leave out the pictures that the English edition has
        failed |= edition(language).wait()
    print(weigh.report(site))
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("only", nargs="*", help="notebooks to run, such as 01")
    asked = parser.parse_args()
    sys.exit(main(asked.folder, *asked.only))
