"""Searches go by the indexes made for them; a plan that reads every term would still answer, only late."""

import sqlite3
from contextlib import closing
from pathlib import Path

from vettance.db.migrate import migrate
from vettance.terms.sql import scan_terms


def test_texts_with_a_folded_case_of_their_own_are_found_by_their_index(tmp_path: Path) -> None:
    file = tmp_path / "vettance.db"
    migrate(file)
    asked = scan_terms("ten_" + "0" * 32, "ß")
    with closing(sqlite3.connect(file)) as connection:
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + asked.sql, asked.args)]
    assert any("term_folded" in step for step in plan), plan
