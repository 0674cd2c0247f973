"""The hub's exchange, for students and teachers. A class folder also has settings of its own."""

import os
from pathlib import Path

from nbgrader.exchange.default import ExchangeSubmit

from classroom.assignments import COURSE

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = COURSE
if "NBGRADER_EXCHANGE" in os.environ:
    c.Exchange.root = os.environ["NBGRADER_EXCHANGE"]
c.Exchange.timezone = "UTC"
# Students hand in what was laid out for them: there the links to lessons work, and nobody has to fetch.
c.Exchange.assignment_dir = str(Path.home() / COURSE / "exercises")


class Submit(ExchangeSubmit):
    """All run as the same user of the machine, so a submission belongs to whoever has signed in.

    Only here: for a teacher's commands, ``student_id`` says which students are meant.
    """

    def start(self):
        if self.coursedir.student_id == "*":  # nobody was named with --student
            self.coursedir.student_id = os.environ["JUPYTERHUB_USER"]
        return super().start()


if os.environ.get("HUB_USERS") == "pretend" and "JUPYTERHUB_USER" in os.environ:
    c.ExchangeFactory.submit = Submit
c.ExchangeCollect.check_owner = os.environ.get("HUB_USERS") == "system"
