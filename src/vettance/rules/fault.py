"""What is wrong with a rule's text, and where: a message, the place, and a hint how to mend it."""

_SHOWN_CHARS_MAX = 96  # A longer line is shown cut around the fault, so that the caret stays on screen.


class RuleFault(Exception):
    """A rule text that is refused. `line` and `column` count from 1; `str()` shows the place with a caret.

    `also` holds further faults of the same text. One that is a `warning` refuses nothing.
    """

    def __init__(
        self, message: str, text: str, line: int, column: int, width: int = 1, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.line = line
        self.column = column
        self.width = max(1, width)
        self.hint = hint
        self.warning = False
        self.also: tuple[RuleFault, ...] = ()

    def __str__(self) -> str:
        parts = [f"line {self.line}, column {self.column}: {self.message}"]
        parts += pointed(self.text, self.line, self.column, self.width)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


def pointed(text: str, line: int, column: int, width: int) -> list[str]:
    """Return a line of a text, and a second line whose carets point at `width` characters of it."""
    lines = text.split("\n")
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    shown, start = _cut("".join(char if char.isprintable() else "·" for char in shown), column - 1)
    caret = "^" * max(1, min(width, len(shown) - start))
    return [f"    {shown}", f"    {' ' * start}{caret}"]


def _cut(line: str, at: int) -> tuple[str, int]:
    """Cut a long line around a position; return what is shown and where the position is in it."""
    if len(line) <= _SHOWN_CHARS_MAX:
        return line, at
    first = max(0, at - _SHOWN_CHARS_MAX // 2)
    head = "…" if first else ""
    tail = "…" if first + _SHOWN_CHARS_MAX < len(line) else ""
    return head + line[first : first + _SHOWN_CHARS_MAX] + tail, at - first + len(head)
