"""What a page says of a request that an endpoint refused: its sentence, and what is wrong with each field."""

from vettance.errors import Refusal


def refusal_words(refused: Refusal | None) -> str:
    """Return it as one text; nothing where nothing was refused."""
    if refused is None:
        return ""
    said = [f"{name}: {text}." for name, text in refused.details.items() if _is_field(name, text)]
    return " ".join([refused.message, *said])


def _is_field(name: str, text: object) -> bool:
    return name not in ("reason", "faults") and isinstance(text, str)
