"""The records that come with the course are whole, are those of its experiments, and give its page."""

from course import atlas
from course.experiments import EXPERIMENTS, RESULTS, report, tuning
from course.experiments.record import Record
from course.experiments.sweep import plain


def test_the_page_is_what_the_records_give():
    """Otherwise: `python -m course.experiments results`."""
    assert (RESULTS.parent / "docs" / "results.md").read_text(encoding="utf-8") == report.page()


def test_no_two_parts_of_the_page_have_one_title():
    """An experiment may have a record of a CPU and one of a GPU."""
    titles = [line for line in report.page().splitlines() if line.startswith("## ")]
    assert len(set(titles)) == len(titles)


def test_each_record_is_what_its_command_would_measure():
    for path in sorted({*RESULTS.glob("*.json")} - {atlas.FILE}):
        record = Record.load(path)
        experiment = EXPERIMENTS[record.experiment]
        assert path.name == f"{record.experiment}-{record.preset}.json"
        assert record.settings == plain(experiment.presets[record.preset]), f"measure {path.name} again"
        assert record.seeds == list(experiment.seeds[record.preset])
        few = experiment is tuning.EXPERIMENT or record.preset == "gpu"  # a GPU is lent for minutes
        assert len(record.seeds) >= (2 if few else 3)
        wanted = [(cell, seed) for seed in record.seeds for cell in plain(experiment.cells(record.settings))]
        assert [(run.cell, run.seed) for run in record] == wanted
        assert f"run {record.experiment} --preset {record.preset}" in record.command
