"""Cohen's κ, against figures computed by hand."""

import pytest

from vettance.reviews.agreement import agreement_of


def test_nothing_seen_twice_has_no_agreement() -> None:
    assert agreement_of({}) is None


def test_kappa_is_what_is_beyond_chance() -> None:
    # Cohen's own form of the example: 35 of 50 alike; chance .5 · .6 + .5 · .4 = .5; κ = (.7 - .5) / .5.
    counted = {
        ("approve", "approve"): 20,
        ("approve", "deny"): 5,
        ("deny", "approve"): 10,
        ("deny", "deny"): 15,
    }
    found = agreement_of(counted)
    assert found is not None
    assert (found.seen_twice, found.share) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)


def test_two_who_always_say_the_same_word_agree_by_chance_alone() -> None:
    found = agreement_of({("deny", "deny"): 7})
    assert found is not None
    assert (found.share, found.kappa) == (1.0, None)
