"""What all answers of the service are made of."""

import enum
from typing import Self

import msgspec


class Answer(msgspec.Struct, frozen=True):
    """An answer as a value. Members that a later version of the service adds are ignored."""


class Word(enum.StrEnum):
    """One of a few words. A word that a later version of the service adds is taken as it is."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = value
        word._value_ = value
        return word
