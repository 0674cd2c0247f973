"""A class votes: thirty students write into the folder, one of them by the card in a browser."""

import os

from course.lesson import votes

KEY = "06.layout"
FIRST = ["error"] * 12 + ["same"] * 9 + ["between"] * 5 + ["none"] * 3  # and one in the browser
SECOND = ["between"] * 20 + ["same"] * 6 + ["none"] * 3


def students(folder, said, n):
    for code, choice in enumerate(said):
        votes.write(
            {
                "question": KEY,
                "vote": n,
                "choice": choice,
                "right": None,
                "version": "1",
                "code": f"{code:016x}",
            },
            folder,
        )


def test_thirty_votes_twice(lab, write_notebook, tmp_path):
    folder = tmp_path / "drop"
    folder.mkdir(mode=0o733)
    begin = f"import os; os.environ['TUTORIAL_VOTES'] = {str(folder)!r}\nfrom course import lesson"
    write_notebook("student.ipynb", [begin, f"lesson.predict({KEY!r})"])
    write_notebook("teacher.ipynb", [begin, f"lesson.vote({KEY!r})"])
    teacher, student = lab.open("teacher.ipynb"), lab.open("student.ipynb")
    try:
        teacher.run()
        student.run()
        says = teacher.cell(1).locator(".order-votes")
        says.get_by_text("First vote: 0. Second vote: 0.").wait_for()
        students(folder, FIRST, 1)
        (folder / "notes.txt").write_text("hello")
        os.mkfifo(folder / f"vote-{KEY}-1-{'f' * 16}.json")

        asked = card = student.cell(1)
        assert not card.get_by_role("button", name="Share this").is_visible(), "nothing to share yet"
        asked.get_by_text("An error: something doesn't fit.").click()
        asked.get_by_role("button", name="Commit").click()
        card.get_by_text('"choice": "error"').wait_for()
        assert len(list(folder.glob("vote-*"))) == len(FIRST) + 1
        card.get_by_role("button", name="Share this").click()
        card.get_by_text("Shared, as your vote 1").wait_for()

        says.get_by_text("First vote: 30. Second vote: 0. Files that are no votes: 2.").wait_for()
        assert teacher.cell(1).locator("td").count() == 0, "hidden"
        teacher.cell(1).get_by_role("button", name="Reveal the counts").click()
        assert counts(teacher) == [["13", ""], ["9", ""], ["5", ""], ["3", ""]]

        students(folder, SECOND, 2)
        student.run_cell(1)  # after the discussion
        asked.get_by_text("A loss between the two").click()
        asked.get_by_role("button", name="Commit").click()
        card.get_by_label("my second vote").click()
        card.get_by_text('"vote": 2').wait_for()
        card.get_by_role("button", name="Share this").click()
        says.get_by_text("First vote: 30. Second vote: 30.").wait_for()
        assert counts(teacher) == [["13", "0"], ["9", "6"], ["5", "21"], ["3", "3"]]
        teacher.cell(1).get_by_role("button", name="Fill the screen").click()
        filled = "document.fullscreenElement?.querySelector('.order-asked').getBoundingClientRect().width"
        teacher.page.wait_for_function(f"{filled} > 0.8 * innerWidth")
        teacher.cell(1).get_by_role("button", name="Back to the notebook").click()
        teacher.page.wait_for_function("document.fullscreenElement === null")
        teacher.cell(1).get_by_role("button", name="Hide the counts").click()
        teacher.cell(1).locator("td").first.wait_for(state="detached")
        assert teacher.problems() == student.problems() == []
    finally:
        student.close()
        teacher.close()


def counts(notebook):
    """The table's numbers, row by row, once it is there."""
    notebook.cell(1).locator("td").first.wait_for()
    rows = notebook.cell(1).locator("tr").all()[1:]
    return [[cell.strip() for cell in row.locator("td").all_inner_texts()] for row in rows]
