"""The explorer of notebook 07: what it says of a mask, and which heads win its challenge."""

import math

import numpy as np

from tutorial_lib.encodings.alibi import AsymmetricALiBi, slopes
from tutorial_lib.explorers import ALiBiExplorer
from tutorial_lib.explorers.alibi import FORMS, TEXT
from workshop import front


def test_the_penalty_and_the_released_code_leave_the_same_weights():
    penalty, released = front.ask(ALiBiExplorer, {"form": "penalty"}, {"form": "released"})
    np.testing.assert_allclose(penalty.views["weights"], released.views["weights"], atol=1e-9)
    assert penalty.views["bias"][1].max() == 0 < released.views["bias"][1].max()


def test_a_key_that_is_masked_has_no_bias():
    said = front.seen(ALiBiExplorer, query=4, key=9)
    assert said.readouts["bias"] == "query 4, key 9: masked"
    assert "may not look at the key at 9" in said.description
    for form in FORMS:
        own = {"released": "1"}.get(form, "0")
        here = front.seen(ALiBiExplorer, query=4, key=4, form=form)
        assert here.readouts["bias"] == f"query 4, key 4: bias {own}"


def test_there_is_a_word_for_each_position():
    assert len(TEXT.split()) == max(ALiBiExplorer.parameters["length"].values)


def test_the_description_says_who_is_a_mirror():
    texts = {form: front.seen(ALiBiExplorer, form=form).description for form in FORMS}
    assert texts["symmetric"].endswith("a key behind and one as far ahead weigh the same.")
    assert texts["asymmetric"].endswith("a key behind and one as far ahead weigh differently.")


def test_the_challenge_is_measured():
    asked = [
        {"heads": heads, "head": head, "form": form}
        for heads in (3, 4, 8, 12, 16)
        for head in range(heads)
        for form in FORMS
    ]
    found = set()
    for params, said in zip(asked, front.ask(ALiBiExplorer, *asked), strict=True):
        heads, head, form = params.values()
        m = AsymmetricALiBi(heads).left[head] if form == "asymmetric" else float(slopes(heads)[head])
        far = math.log(10_000) / m
        assert bool(said.reached) == (100 <= far <= 110)
        if said.reached:
            found.add((heads, head, form == "asymmetric"))
            assert said.reached.endswith(f"the horizon {far:.0f}.")
    assert found == {(12, 11, False), (16, 6, False), (8, 3, True)}
