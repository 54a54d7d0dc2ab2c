"""Suggestions: thresholds, new rules and scores that the labels of a tenant speak for."""
