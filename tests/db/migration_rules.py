"""What a migration may do to a schema while programs older than it go on working on it."""

import re
from pathlib import Path
from typing import Final

from vettance.db.migrate import BREAKING

#: The last migration before this rule. What came with it was never run beside an older program.
UNHELD: Final = {"sqlite": 11, "postgres": 2}

_REFUSED: Final = (
    (r"\bDROP\s+(TABLE|COLUMN|VIEW|SEQUENCE|DEFAULT|POLICY|TRIGGER|FUNCTION)\b", "takes something away"),
    # A demand that falls away is one that older programs heed all the same.
    (r"\bALTER\s+TABLE\s+\S+\s+DROP\b(?!\s+CONSTRAINT)", "takes something away"),
    (r"\bRENAME\b", "gives something another name"),
    (r"\bALTER\s+(COLUMN\s+)?\S+\s+(SET\s+DATA\s+)?TYPE\b", "gives a column another type"),
    (r"\bSET\s+NOT\s+NULL\b", "demands what older programs do not write"),
    (
        r"\bADD\s+(CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY|EXCLUDE)\b",
        "demands what older programs do not heed",
    ),
    (r"\b(TRUNCATE|DELETE\s+FROM)\b", "removes rows"),
)
_COLUMN: Final = re.compile(
    r"\bADD\s+(?!CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY|EXCLUDE)(?:COLUMN\s+)?(.*)", re.I | re.S
)
_TABLE: Final = re.compile(r"\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.I)
_FREED: Final = re.compile(r"\bALTER\s+TABLE\s+(\w+)\s+DROP\s+CONSTRAINT\b", re.I)
_INDEX: Final = re.compile(r"\bDROP\s+INDEX\s+(\w+)", re.I)
_UNIQUE: Final = re.compile(r"\bCREATE\s+UNIQUE\s+INDEX\s+.*?\bON\s+(\w+)", re.I | re.S)


def complaints(name: str, text: str) -> list[str]:
    """Say what older programs could not live with; nothing where the name says so already."""
    if name.partition("_")[2].startswith(BREAKING):
        return []
    sql = re.sub(r"--[^\n]*|'(?:[^']|'')*'", " ", text)
    # A demand may be written anew in the migration that drops it, in other words; what it means is for the
    # tests of the table.
    made = {found.lower() for found in _TABLE.findall(sql) + _FREED.findall(sql)}
    indexes = [found.lower() for found in _INDEX.findall(sql)]
    found = []
    for statement in sql.split(";"):
        found += [why for pattern, why in _REFUSED if re.search(pattern, statement, re.I)]
        column = _COLUMN.search(statement) if re.search(r"\bALTER\s+TABLE\b", statement, re.I) else None
        if (
            column
            and re.search(r"\bNOT\s+NULL\b", column[1], re.I)
            and not re.search(r"\bDEFAULT\b", column[1], re.I)
        ):
            found.append("adds a column that older programs do not fill")
        unique = _UNIQUE.search(statement)
        is_replaced = unique and any(name.startswith(f"{unique[1].lower()}_") for name in indexes)
        if unique and not is_replaced and unique[1].lower() not in made:
            found.append("forbids rows that older programs may write")
    return found


def held(folder: Path) -> list[Path]:
    """Return the migrations of an engine that the rule is for."""
    return [file for file in sorted(folder.glob("*.sql")) if int(file.name[:4]) > UNHELD[folder.name]]
