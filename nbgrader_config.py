"""nbgrader's settings for the course's own folder: how exercises/ is made from solutions/.

    nbgrader generate_assignment ex06_rope --force      (or: … workshop.authoring release ex06)

A class is graded in a folder of its own, with settings of its own: docs/instructor/grading.md.
"""

from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

from classroom.assignments import COURSE
from classroom.student_version import GivenSolutions

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = COURSE
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.GenerateAssignment.preprocessors = [
    GivenSolutions if step is ClearSolutions else step for step in GenerateAssignment.preprocessors.default()
]
