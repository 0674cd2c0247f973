"""``python -m course.checks``: the judging process of a notebook (see :mod:`.judge_process`)."""

import os
import sys

from .judge_process import serve

if __name__ == "__main__":
    # What a question prints must not end up between two messages.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers)
