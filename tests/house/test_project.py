"""What a project needs that people can join: how to cite it, templates of issues, rules, a workflow."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import tutorial_lib

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_the_citation_has_what_its_format_asks_for():
    """Version 1.2.0 asks for four keys; authors are persons, or entities with a name."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0" and cited["type"] == "software"
    assert all(isinstance(cited[key], str) and cited[key] for key in ("message", "title", "abstract"))
    assert cited["authors"] and all(author.keys() & {"name", "family-names"} for author in cited["authors"])
    assert str(cited["version"]) == tutorial_lib.__version__
    assert cited["license"] == ["MIT", "CC-BY-4.0"]
    assert [part["version"] for part in cited["references"]] == [tutorial_lib.__version__]
    assert cited["authors"][0]["name"].lower() in (ROOT / "LICENSE").read_text(encoding="utf-8").lower()
    allowed = (
        "abstract authors cff-version commit contact date-released doi identifiers keywords license "
        "license-url message preferred-citation references repository repository-artifact "
        "repository-code title type url version"
    )
    assert cited.keys() <= set(allowed.split())


def test_the_archive_of_releases_is_told_what_the_citation_says():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert archived["creators"] == cited["authors"]
    assert archived["description"].startswith(cited["abstract"])
    for key in ("title", "version", "keywords"):
        assert archived[key] == cited[key], key


WORKFLOWS = [path.relative_to(ROOT).as_posix() for path in sorted((GITHUB / "workflows").glob("*.yml"))]


@pytest.mark.parametrize(
    "command",
    [
        ["uv", "tool", "run", "reuse==6.2.0", "lint", "--quiet"],  # not in the lock: it has no wheel
        ["check_jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff"],
        ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
    ],
    ids=["licences", "citation", "workflows"],
)
def test_what_hosts_read_is_in_their_format(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name, title",
    [
        ("sentence", "A sentence is wrong"),
        ("stuck", "I am stuck at"),
        ("method", "A method is missing"),
        ("task", "A task to take"),
    ],
)
def test_a_template_begins_with_its_name_and_asks_for_the_place(name, title):
    _, head, body = (GITHUB / "ISSUE_TEMPLATE" / f"{name}.md").read_text(encoding="utf-8").split("---\n", 2)
    head = yaml.safe_load(head)
    assert head["name"] == title and head["about"] and head["title"]
    assert len(re.findall(r"^\*\*.+\*\*", body, re.M)) >= 3


def test_the_workflow_builds_the_site_as_the_makefile_does():
    workflow = yaml.safe_load((GITHUB / "workflows" / "site.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["site"]["steps"]
    (run,) = [step["run"] for step in steps if "run" in step]
    command, target, *settings = run.split()
    assert command == "make" and target in TARGETS
    assert {setting.partition("=")[0] for setting in settings} == {"STUDENTS", "SITE_URL", "ISSUES_URL"}
    kept = [step for step in steps if "upload" in step.get("uses", "")]
    assert [step["with"]["path"] for step in kept] == ["build/site"] * 2
    assert "if" not in kept[0] and "PUBLISH" in kept[1]["if"], "a host is asked for, not taken for granted"


@pytest.mark.parametrize("file", WORKFLOWS)
def test_a_workflow_uses_nothing_but_the_actions_of_its_host(file):
    jobs = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["jobs"].values()
    named = {step["uses"] for job in jobs for step in job["steps"] if "uses" in step}
    assert named and all(re.fullmatch(r"actions/[a-z-]+@v\d+", one) for one in named)


def test_the_tests_run_by_the_lines_of_the_set_up_on_every_python_that_is_allowed():
    workflow = yaml.safe_load((GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    assert [one.partition("-")[0] for one in matrix["os"]] == ["ubuntu", "macos", "windows"]
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert all(f"{one}.0" in allowed for one in matrix["python"]) and len(matrix["python"]) == 3
    runs = [step["run"] for step in job["steps"] if "run" in step]
    page = (ROOT / "docs" / "setup.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", page, re.M | re.S)
    assert "make test" in runs and runs[0] in blocks
    *lines, test = runs[-1].splitlines()
    assert test == "python -m pytest" and any(block.startswith("\n".join(lines)) for block in blocks)
    assert workflow["jobs"]["everything"]["steps"][-1]["run"].endswith(".ci/run")


def test_what_a_newcomer_may_do_first_names_files_that_exist():
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!task|-).+ \| (.+) \| .+ \|$", text, re.M)
    assert len(rows) == 10
    for row in rows:
        file, *heading = re.match(r"`([^`]+)`(?:, \*(.+)\*)?", row).groups()
        if file.endswith(".po"):  # to be begun
            assert (ROOT / "docs" / Path(file).with_suffix(".md").name).is_file()
            continue
        page = (ROOT / file).read_text(encoding="utf-8")
        assert not heading[0] or re.search(rf"^## {re.escape(heading[0])}", page, re.M), row
    for link in re.findall(r"\]\(([^)#:]+)", text + (GITHUB / "SECURITY.md").read_text(encoding="utf-8")):
        assert (GITHUB / link).exists(), link


def test_the_rules_say_what_is_expected_and_what_to_do():
    text = (GITHUB / "CODE_OF_CONDUCT.md").read_text(encoding="utf-8")
    for part in ("**We expect of each other**", "**We do not accept**", "**If something happens**"):
        assert part in text


def test_the_paper_has_what_its_journal_asks_for():
    """JOSE's checklist; each reference is cited, and has a DOI."""
    text = (ROOT / "docs/paper/paper.md").read_text(encoding="utf-8")
    entries = re.split(r"^@", (ROOT / "docs/paper/paper.bib").read_text(encoding="utf-8"), flags=re.M)[1:]
    assert {re.match(r"\w+{(\w+),", entry)[1] for entry in entries} == {*re.findall(r"@(\w+)", text)}
    assert all(re.search(r"^  doi = \{10\.\d+/\S+\}$", entry, re.M) for entry in entries)
    for word in (
        "Summary",
        "Statement of need",
        "objectives",
        "Content",
        "Story",
        "experience",
        "References",
    ):
        assert re.search(rf"^# .*{word}", text, re.M), word
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert yaml.safe_load(text.split("---\n")[1])["authors"][0]["name"] == cited["authors"][0]["name"]
    deeper, exercises = (
        len([*ROOT.glob(pattern)]) for pattern in ("notebooks/deeper/*.ipynb", "exercises/ex*")
    )
    assert (deeper, exercises) == (30, 10), "the paper's summary counts them"
