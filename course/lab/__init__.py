"""The learner's desk: JupyterLab as a course, with a working copy that no update overwrites.

``python -m course.lab`` (or ``make lab``) brings the working copy up to date and opens it;
``python -m course.lab again 06`` starts one notebook over. Lessons need none of this: they
run in anybody's JupyterLab, in Colab and in VS Code, just without its comforts.
"""
