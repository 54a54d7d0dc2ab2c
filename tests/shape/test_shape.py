"""The shape of the house, held by tests: who awaits, where SQL stands, how large things grow."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.source import FILES, NAMES, PROJECT, SOURCE, text_of, tree_of

#: Packages that are engines or edges: what they do is wait for the outside world.
SHELL_PACKAGES = {"web", "db", "demo", "console"}
#: Protocols of engines, whose methods wait.
PORTS = {"streams/broker.py", "deployment/protocols.py", "limits/verdict.py", "velocity/port.py"}
#: Flows (verbs) and doors may await; every other file thinks without waiting.
VERBS = {
    "write_additions.py",
    "share_look.py",
    "queue_looks.py",
    "time_slice.py",
    "cluster_connection.py",
    "cluster_velocity.py",
    "part_calls.py",
    "readiness.py",
    "redis_positions.py",
    "calibrate_rules.py",
    "find_rules.py",
    "logged_values.py",
    "recorded_inputs.py",
    "measure_threshold.py",
    "order_job.py",
    "suggest.py",
    "suggestion_process.py",
    "weigh_rules.py",
    "amqp_stream.py",
    "consume.py",
    "kafka_stream.py",
    "nats_stream.py",
    "send_results.py",
    "take_messages.py",
    "watch_job.py",
    "administer.py",
    "keep_forms.py",
    "openid_provider.py",
    "provider_sign_in.py",
    "aml_rebuild.py",
    "application.py",
    "attempt_results.py",
    "velocity_backfill.py",
    "audited_store.py",
    "backlog_limit.py",
    "fan_out.py",
    "backtest.py",
    "aml_backtest.py",
    "backtest_process.py",
    "bulk_desk.py",
    "run_backtests.py",
    "case_review.py",
    "count_rules.py",
    "count_decisions.py",
    "count_alerts.py",
    "change_feed.py",
    "check_documents.py",
    "governance.py",
    "cli.py",
    "commands.py",
    "compaction.py",
    "connect.py",
    "console_front.py",
    "credentials.py",
    "decide_imported.py",
    "decision_search.py",
    "deliver.py",
    "companion.py",
    "companion_process.py",
    "indexer.py",
    "drain_gate.py",
    "embedded.py",
    "entity_links.py",
    "entity_neighbours.py",
    "erasure.py",
    "evaluate.py",
    "expiry.py",
    "explain.py",
    "fraud_memory.py",
    "gauges.py",
    "http_client.py",
    "import_file.py",
    "import_rows.py",
    "job_results.py",
    "keep_snoozes.py",
    "change_features.py",
    "find_maturity.py",
    "find_recorded.py",
    "find_terms.py",
    "grow_features.py",
    "held_out.py",
    "change_models.py",
    "change_alert_models.py",
    "keep_alert_order.py",
    "run_training.py",
    "train_alerts.py",
    "alert_facts.py",
    "keep_learning.py",
    "keep_models.py",
    "training_process.py",
    "measure_effect.py",
    "steer_models.py",
    "watch_drift.py",
    "key_mirror.py",
    "key_use.py",
    "label_memory.py",
    "lifecycle.py",
    "load_ruleset.py",
    "log_by_time.py",
    "log_replay.py",
    "loop_time.py",
    "metrics_server.py",
    "monitor.py",
    "new_keys.py",
    "own_limits.py",
    "party_screening.py",
    "quota_usage.py",
    "take_label.py",
    "read_log.py",
    "velocity_rebuild.py",
    "versioning.py",
    "quality_desk.py",
    "quality_parts.py",
    "redis_claims.py",
    "announcements.py",
    "change_announcer.py",
    "redis_connection.py",
    "redis_limits.py",
    "redis_velocity.py",
    "refresh.py",
    "replay.py",
    "rescreening.py",
    "review_desk.py",
    "resolve.py",
    "rollup.py",
    "ruleset_cli.py",
    "screen.py",
    "screening_review.py",
    "search.py",
    "search_processes.py",
    "secret_check.py",
    "segment_rewrite.py",
    "serialized.py",
    "session_sync.py",
    "shared.py",
    "shared_sync.py",
    "shared_velocity.py",
    "velocity_snapshots.py",
    "deliverer.py",
    "start_progress.py",
    "sign_in.py",
    "statistics.py",
    "supervisor.py",
    "takeover.py",
    "tenant_deletion.py",
    "tenant_tasks.py",
    "tracing.py",
    "watch_imported.py",
    "web_process.py",
    "worker_pool.py",
}
DOORS = {"api.py", "pages.py", "cli.py", "worker.py"}
#: Who puts parts together names whatever it puts together: files outside of any package, the demo, and these.
WIRING = {
    "aml/assemble.py",
    "governance/governance.py",
    "learning/learning_parts.py",
    "quality/quality_parts.py",
    "reviews/review_parts.py",
}
ENGINES = {
    "vettance.db.sqlite",
    "vettance.db.postgres",
    "vettance.velocity.memory.memory_velocity",
    "vettance.velocity.redis.redis_velocity",
}

DRAWERS = re.compile(r"(^|_)(utils?|helpers?|managers?|services?|common|base|misc|tools?|stuff)(_|\.py$|$)")
SQL = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE)\b", re.DOTALL)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 75


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def is_door(name: str) -> bool:
    return Path(name).name in DOORS or name.endswith("_cli.py")


def is_shell(name: str) -> bool:
    parts = Path(name).parts
    return parts[0] in SHELL_PACKAGES or parts[-1] in VERBS or is_door(name)


def imported_by(name: str) -> set[str]:
    """The modules of ours that a file takes something from, wherever in it."""
    nodes = ast.walk(tree_of(name))
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module is not None}


def is_wiring(name: str) -> bool:
    return "/" not in name or name.startswith(("demo/", "server/", "deployment/")) or name in WIRING


def test_every_row_of_these_tables_is_about_a_file() -> None:
    files = {path.name for path in FILES}
    assert files >= VERBS | DOORS
    assert set(NAMES) >= WIRING
    assert {f"vettance.{name.removesuffix('.py').replace('/', '.')}" for name in NAMES} >= ENGINES


def test_only_doors_and_the_wiring_import_a_door() -> None:
    wrong = [
        f"{name} imports {doors}: move what it needs down into a file that is no door"
        for name in NAMES
        if not is_wiring(name)
        and not is_door(name)
        and (doors := {found for found in imported_by(name) if is_door(f"{found.rpartition('.')[2]}.py")})
    ]
    assert not wrong, "\n".join(wrong)


def test_engines_are_named_by_the_wiring_and_the_command_line_only() -> None:
    wrong = [
        f"{name} names {engines}: take the port as an argument; deployment/ chooses the engine"
        for name in NAMES
        if not is_wiring(name)
        and not name.endswith("cli.py")
        and Path(name).parts[0] not in ("db", "velocity")
        and (engines := imported_by(name) & ENGINES)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_page_of_the_architecture_shows_the_floors_as_they_are() -> None:
    page = (PROJECT / "ARCHITECTURE.md").read_text("utf-8")
    tree = page.partition("src/vettance/\n")[2].partition("```")[0]
    lines = [line[2:22].rstrip() for line in tree.splitlines() if not line.startswith("    ")]
    rooms = [room for line in lines for room in re.findall(r"(\w+)(?:/|\.py)(?= |$)", line)]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    floor_of = {room: floor for floor, layer in enumerate(layers) for room in re.findall(r"\w+", layer)}
    assert sorted(rooms) == sorted(floor_of), "ARCHITECTURE.md and the import contract name other rooms"
    floors = [floor_of[room] for room in rooms]
    assert floors == sorted(floors), "ARCHITECTURE.md has another order than the import contract"


def test_only_the_shell_awaits() -> None:
    wrong = [
        f"{name} is core and must not wait (lines {lines}): move it into a flow, or add a verb to VERBS"
        for name in NAMES
        if not is_shell(name) and name not in PORTS and (lines := waiting_lines(name))
    ]
    assert not wrong, "\n".join(wrong)


def waiting_lines(name: str) -> list[int]:
    waiting = ast.Await | ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef
    return [node.lineno for node in ast.walk(tree_of(name)) if isinstance(node, waiting)]


def test_sql_stands_in_sql_files_only() -> None:
    wrong = [
        f"{name} holds SQL (lines {lines}); it belongs in sql.py"
        for name in NAMES
        if Path(name).parts[0] != "db"
        and not name.endswith(("sql.py", "outbox.py", "delivery_queue.py"))
        and (lines := sql_lines(name))
    ]
    assert not wrong, "\n".join(wrong)


def sql_lines(name: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
    ]


def test_files_stay_small() -> None:
    counts = {name: len(text_of(name).splitlines()) for name in NAMES}
    long = {name: count for name, count in counts.items() if count > FILE_LINES_MAX}
    assert not long, f"{FILE_LINES_MAX} lines are allowed, split these by what they do: {long}"


def test_functions_stay_small() -> None:
    wrong = [
        f"{name}:{function.lineno} {function.name} has {length} lines, too many: name a part"
        for name in NAMES
        for function in functions(tree_of(name))
        if (length := (function.end_lineno or function.lineno) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.lua")), ids=lambda path: path.name)
def test_scripts_of_redis_stay_small_too(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    assert lines <= FILE_LINES_MAX, f"{path.name} has {lines} lines: split it, `LuaScript` joins the files"


def test_nothing_is_a_drawer() -> None:
    drawers = [name for name in NAMES if any(DRAWERS.search(part) for part in Path(name).parts)]
    assert not drawers, f"say what these are for: {drawers}"


def test_every_module_says_what_it_is_for() -> None:
    docs = {name: ast.get_docstring(tree_of(name)) for name in NAMES}
    silent = [name for name, doc in docs.items() if not doc]
    assert not silent, f"these have no docstring: {silent}"
    long = [name for name, doc in docs.items() if doc and len(doc.splitlines()[0]) > 110]
    assert not long, f"the first lines of these docstrings are longer than 110 characters: {long}"


def test_broad_excepts_stand_only_where_a_loop_or_the_edge_needs_them() -> None:
    wrong = [
        f"{name}:{fault}"
        for name in NAMES
        if name not in ("web/edge.py", "server/change_feed.py", "fairness/isolation.py")
        and Path(name).parts[0] != "db"
        for fault in broad_excepts(name)
    ]
    assert not wrong, "\n".join(wrong)


def broad_excepts(name: str) -> Iterator[str]:
    for node in ast.walk(tree_of(name)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield f"{node.lineno} catches everything"
        caught = getattr(node.type, "id", None)
        raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
        allowed = "noqa: BLE001" in text_of(name).splitlines()[node.lineno - 1]
        if caught in ("Exception", "BaseException") and not raises and not allowed:
            yield f"{node.lineno} swallows {caught}"


def test_the_project_speaks_of_itself_alone() -> None:
    root = SOURCE.parents[1]
    banned = re.compile(
        "|".join((r"\.\./sha" + "red", "Clau" + "de", "Anthro" + "pic", "opt/py" + "pi")), re.IGNORECASE
    )
    folders = ("src", "docs", "tests", "bench", "sdk")
    files = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    files += [path for path in root.iterdir() if path.is_file()]
    for path in files:
        if path.suffix in {".pyc", ".db", ".parquet"} or {"static", "node_modules"} & set(path.parts):
            continue
        assert not banned.search(path.read_text("utf-8", errors="replace")), path


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_a_gap_and_each_number_is_given_once(engine: str) -> None:
    numbers = [int(path.name[:4]) for path in sorted((SOURCE / "db" / "schema" / engine).glob("*.sql"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_structlog_is_loaded_by_the_first_line_of_a_log_only() -> None:
    for name in NAMES:
        tree = tree_of(name)
        found = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert name == "telemetry/logs.py" or not any(one.split(".")[0] == "structlog" for one in found), name
