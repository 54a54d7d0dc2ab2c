"""Reviews: what people decide about decisions that were held."""
