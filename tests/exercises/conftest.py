"""What every test of the exercises shares."""

import pytest
import torch


@pytest.fixture(scope="module", autouse=True)
def numbers_are_printed_as_ever():
    """An exercise whose cells run here says how numbers are printed; the examples of docstrings do not."""
    yield
    torch.set_printoptions(profile="default")


@pytest.fixture(autouse=True)
def nothing_is_trained(recorded_runs):
    """A notebook that is run whole still trains."""
