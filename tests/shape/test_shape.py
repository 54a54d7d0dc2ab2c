"""The shape of the house, held by tests: who awaits, where SQL stands, how large things grow."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.source import FILES, NAMES, PROJECT, SOURCE

#: Packages that are engines or edges: what they do is wait for the outside world.
SHELL_PACKAGES = {"web", "db", "demo", "console"}
#: Protocols of engines, whose methods wait.
PORTS = {"streams/broker.py", "deployment/protocols.py", "limits/verdict.py", "velocity/port.py"}
#: Flows (verbs) and doors may await; every other file thinks without waiting.
VERBS = {
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
    "deliverer_process.py",
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
    "import_rows.py",
    "job_results.py",
    "keep_snoozes.py",
    "change_features.py",
    "find_recorded.py",
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
    nodes = ast.walk(ast.parse((SOURCE / name).read_text("utf-8")))
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module is not None}


def is_wiring(name: str) -> bool:
    return "/" not in name or name.startswith(("demo/", "server/", "deployment/")) or name in WIRING


def test_every_row_of_these_tables_is_about_a_file() -> None:
    files = {path.name for path in FILES}
    assert files >= VERBS | DOORS
    assert set(NAMES) >= WIRING
    assert {f"vettance.{name.removesuffix('.py').replace('/', '.')}" for name in NAMES} >= ENGINES


@pytest.mark.parametrize("name", NAMES)
def test_only_doors_and_the_wiring_import_a_door(name: str) -> None:
    if is_wiring(name) or is_door(name):
        return
    doors = {found for found in imported_by(name) if is_door(f"{found.rpartition('.')[2]}.py")}
    assert not doors, f"{name} imports {doors}: move what it needs down into a file that is no door"


@pytest.mark.parametrize("name", NAMES)
def test_engines_are_named_by_the_wiring_and_the_command_line_only(name: str) -> None:
    if is_wiring(name) or name.endswith("cli.py") or Path(name).parts[0] in ("db", "velocity"):
        return
    engines = imported_by(name) & ENGINES
    assert not engines, (
        f"{name} names {engines}: take the port as an argument; deployment/ chooses the engine"
    )


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


@pytest.mark.parametrize("name", NAMES)
def test_only_the_shell_awaits(name: str) -> None:
    if is_shell(name) or name in PORTS:
        return
    tree = ast.parse((SOURCE / name).read_text("utf-8"))
    waiting = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef)
    ]
    assert not waiting, (
        f"{name} is core and must not wait (lines {waiting}): move it into a flow, or add a verb to VERBS"
    )


@pytest.mark.parametrize("name", NAMES)
def test_sql_stands_in_sql_files_only(name: str) -> None:
    if Path(name).parts[0] == "db" or name.endswith(("sql.py", "outbox.py", "delivery_queue.py")):
        return
    tree = ast.parse((SOURCE / name).read_text("utf-8"))
    texts = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
    ]
    assert not texts, f"{name} holds SQL (lines {texts}); it belongs in sql.py"


@pytest.mark.parametrize("name", NAMES)
def test_files_and_functions_stay_small(name: str) -> None:
    text = (SOURCE / name).read_text("utf-8")
    count = len(text.splitlines())
    assert count <= FILE_LINES_MAX, (
        f"{name} has {count} lines, {FILE_LINES_MAX} are allowed: split it by what it does"
    )
    for function in functions(ast.parse(text)):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        assert length <= FUNCTION_LINES_MAX, (
            f"{name}:{function.lineno} {function.name} has {length} lines, too many: name a part"
        )


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.lua")), ids=lambda path: path.name)
def test_scripts_of_redis_stay_small_too(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    assert lines <= FILE_LINES_MAX, f"{path.name} has {lines} lines: split it, `LuaScript` joins the files"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_a_drawer(name: str) -> None:
    for part in Path(name).parts:
        assert not DRAWERS.search(part), f"{name}: say what it is for"


@pytest.mark.parametrize("name", NAMES)
def test_every_module_says_what_it_is_for(name: str) -> None:
    doc = ast.get_docstring(ast.parse((SOURCE / name).read_text("utf-8")))
    assert doc, f"{name} has no docstring"
    assert len(doc.splitlines()[0]) <= 110


@pytest.mark.parametrize("name", NAMES)
def test_broad_excepts_stand_only_where_a_loop_or_the_edge_needs_them(name: str) -> None:
    if (
        name in ("web/edge.py", "server/change_feed.py", "fairness/isolation.py")
        or Path(name).parts[0] == "db"
    ):
        return
    for node in ast.walk(ast.parse((SOURCE / name).read_text("utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            caught = getattr(node.type, "id", None)
            assert node.type is not None, f"{name}:{node.lineno} catches everything"
            if caught in ("Exception", "BaseException"):
                raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                allowed = (
                    raises
                    or "noqa: BLE001" in (SOURCE / name).read_text("utf-8").splitlines()[node.lineno - 1]
                )
                assert allowed, f"{name}:{node.lineno} swallows {caught}"


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
        tree = ast.parse((SOURCE / name).read_text("utf-8"))
        found = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert name == "telemetry/logs.py" or not any(one.split(".")[0] == "structlog" for one in found), name
