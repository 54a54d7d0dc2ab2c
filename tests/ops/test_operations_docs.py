"""What operators read is what the code does."""

from pathlib import Path

from vettance.ops.gauges import GAUGES
from vettance.telemetry.meter_table import METERS

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")


def test_every_metric_is_documented_as_the_tables_say() -> None:
    rows = [(meter.name, meter.label, meter.help) for meter in METERS]
    rows += [(gauge.name, gauge.label, gauge.help) for gauge in GAUGES.values()]
    for name, label, text in rows:
        shown = f"`{label}`" if label else ""
        assert any(
            line.startswith(f"| `{name}` |") and line.endswith(f"| {shown} | {text} |")
            for line in PAGE.splitlines()
        ), name
