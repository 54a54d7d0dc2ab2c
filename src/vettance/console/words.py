"""Words: what the console itself says, as distinct from what it shows of events, names and notes."""


class Words(str):
    """A text of the program: a catalogue of another language may hold other words for it.

    Templates need no such mark, since all of their text is the program's (see `translated_templates`).
    """

    __slots__ = ()
