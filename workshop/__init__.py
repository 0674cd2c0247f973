"""Making the course: notebooks as text, their navigation, slides, coverage, the summary page, the exercises.

For those who edit the course, in a clone of it. Nothing that a learner imports lives here, and no
other room imports this one.
"""

from course.places import ROOT

FONTS = ROOT / "course" / "fonts"
"""The font for scripts that a reader's machine may have none for, and its licence."""
