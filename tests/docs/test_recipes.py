"""Recipes of the documentation do what they say."""

import re
from pathlib import Path

from click.testing import CliRunner

from vettance.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "aml.md"


def test_the_traffic_of_the_recipe_of_aml_fits_the_throttle_that_it_sets(tmp_path: Path) -> None:
    recipe = PAGE.read_text("utf-8").partition("By hand:")[2].split("```")[1]
    generate = re.search(r"^vettance (generate aml .*) --output money ", recipe, re.MULTILINE)
    throttle = re.search(
        r"^vettance tenant set ten_… --throttle (\d+) +# ([\d,]+) events", recipe, re.MULTILINE
    )
    assert generate
    assert throttle
    made = CliRunner().invoke(main, [*generate[1].split(), "--out", str(tmp_path)])
    assert made.exit_code == 0
    events = len((tmp_path / "events.ndjson").read_bytes().splitlines())
    assert f"{events:,}" == throttle[2]
    assert events <= int(throttle[1])
