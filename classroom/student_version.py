"""What a student gets in place of a solution: a stub, or the broken code that is to be repaired.

nbgrader's own step replaces each solution by one fixed text. This one (named in
``nbgrader_config.py``) writes a stub that names its question, and turns the lines of a solution
that begin with ``#~`` into code: in a question on debugging they are the broken implementation.
"""

from __future__ import annotations

import re

from tutorial_lib.optional import needs

from .assignments import WRITTEN

with needs("teach"):
    from nbgrader.preprocessors import ClearSolutions

GIVEN = re.compile(r"^(\s*)#~ ?(.*)$")


class GivenSolutions(ClearSolutions):
    """Replace ``### BEGIN SOLUTION`` … ``### END SOLUTION`` by what the student begins with."""

    def _replace_solution_region(self, cell, language):
        if cell.cell_type != "code":
            self.text_stub = WRITTEN
            return super()._replace_solution_region(cell, language)
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "this")
        lines, block, found = [], None, False
        for line in cell.source.split("\n"):
            if self.begin_solution_delimeter in line:
                if block is not None:
                    raise RuntimeError(f"{name}: a solution begins inside of another")
                block, found, indent = [], True, line[: len(line) - len(line.lstrip())]
            elif self.end_solution_delimeter in line:
                if block is None:
                    raise RuntimeError(f"{name}: a solution ends that has not begun")
                given = [(match[1] + match[2]).rstrip() for match in map(GIVEN.match, block) if match]
                lines += given or [f'{indent}raise NotImplementedError("{name} is not written yet")']
                block = None
            elif block is None:
                lines.append(line)
            else:
                block.append(line)
        if block is not None:
            raise RuntimeError(f"{name}: a solution does not end")
        cell.source = "\n".join(lines)
        return found
