"""A model that cannot be served leaves the rules' answer, and says so."""

from vettance.models.feature_set import Feature, FeatureSet
from vettance.models.serving_model import ModelMode, ServingModel
from vettance.models.trees import TreeModel, TreeText, text_digest, write_trees

FEATURES = FeatureSet((Feature("amount", "metadata.amount", "amount", "amount"),), "digest")


def model(leaf: float = 2.0, mode: ModelMode = ModelMode.ACTIVE, fault: str | None = None) -> ServingModel:
    text = write_trees(TreeText(("amount",), 0.0, [[0, 100.0, True, [-leaf, 3], [leaf, 1], 4]]))
    trees = None if fault else TreeModel(text, text_digest(text))
    return ServingModel(1, mode, may_block=False, features=FEATURES, trees=trees, fault=fault)


def test_what_it_says_is_recorded_with_its_reasons() -> None:
    said = model().say("digest", [300.0])
    assert (said.log_odds, said.error) == (2.0, None)
    assert said.reasons == (("MODEL_AMOUNT", "The model finds this event unusual: amount: 300."),)
    assert model(mode=ModelMode.SHADOW).say("digest", [300.0]).reasons == ()
    assert model().say("digest", [3.0]).reasons == ()


def test_what_goes_wrong_is_said_and_travels_no_further() -> None:
    for said, error in (
        (model(fault="the model is gone").say("digest", [1.0]), "the model is gone"),
        (model().say("other", [1.0]), "the model was made from other features"),
        (model(1e9).say("digest", [300.0]), "the model gave no number"),
        (model().say("digest", []), "index"),
    ):
        assert (said.log_odds, said.probability, said.score) == (None, None, None)
        assert said.error is not None
        assert error in said.error
