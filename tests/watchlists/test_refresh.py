"""Lists are taken over whole or not at all; the last good version stays, and a running process follows."""

import http.server
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.watchlists import publishers
from tests.watchlists.publishers import write
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore, store_path
from vettance.watchlists import sql
from vettance.watchlists.entity import EntityType
from vettance.watchlists.list_store import difference, index_path, shelf_of, take
from vettance.watchlists.match import Subject
from vettance.watchlists.refresh import IndexKeeper, ListRefused, import_list, refresh_list
from vettance.watchlists.sources.formats import SourceFault

NOW_MS = 1_700_000_000_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    migrate(store_path(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
async def store(data: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(store_path(data), writer="thread") as opened:
        yield opened


def own_list(folder: Path, names: list[str], file: str = "own.csv") -> Path:
    return write(folder, file, "name,type\n" + "".join(f"{name},INDIVIDUAL\n" for name in names))


def people(count: int) -> list[str]:
    return [f"Person{chr(97 + number % 26)}{number:03d}x Example" for number in range(count)]


async def current(store: SqliteStore) -> dict[str, str]:
    rows = [sql.version_of(row) for row in await store.read(sql.select_current())]
    return {row.version.source: row.version.version for row in rows}


async def test_an_import_is_a_version_with_counts_and_the_digests_of_its_files(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    done = await import_list(store, data, "un_sc", [write(tmp_path, "un.xml", publishers.UN)], NOW_MS)
    (stored,) = [sql.version_of(row) for row in await store.read(sql.select_versions())]
    assert stored.version == done.version
    assert (stored.version.entities, stored.version.names) == (2, 6)
    assert len(stored.version.files["un.xml"]) == 64
    assert stored.imported_at_ms == NOW_MS
    kept = list(take(shelf_of(data), "un_sc", done.version.version))
    assert [entity.id for entity in kept] == ["un_sc:EXi.001", "un_sc:EXe.001"]


async def test_the_same_list_again_is_the_same_version(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    path = write(tmp_path, "un.xml", publishers.UN)
    first = await import_list(store, data, "un_sc", [path], NOW_MS)
    again = await import_list(store, data, "un_sc", [path], NOW_MS + 5)
    assert not again.changed
    assert first.version.version == again.version.version
    (stored,) = [sql.version_of(row) for row in await store.read(sql.select_versions())]
    assert (stored.imported_at_ms, stored.checked_at_ms) == (NOW_MS, NOW_MS + 5)


async def test_a_broken_file_is_refused_and_the_last_good_version_stays(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    await import_list(store, data, "un_sc", [write(tmp_path, "un.xml", publishers.UN)], NOW_MS)
    before = await current(store)
    with pytest.raises(SourceFault):
        await import_list(store, data, "un_sc", [write(tmp_path, "cut.xml", publishers.UN[:900])], NOW_MS)
    with pytest.raises(ListRefused, match="no entity"):
        await import_list(store, data, "un_sc", [write(tmp_path, "empty.xml", "<a/>")], NOW_MS)
    assert await current(store) == before
    assert not list((data / "watchlists").rglob("*.draft"))


async def test_a_list_that_shrank_is_refused_unless_it_is_accepted(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    await import_list(store, data, "csv", [own_list(tmp_path, people(40))], NOW_MS)
    before = await current(store)
    fewer = own_list(tmp_path, people(30), "fewer.csv")
    with pytest.raises(ListRefused, match="shrank from 40 to 30"):
        await import_list(store, data, "csv", [fewer], NOW_MS)
    assert await current(store) == before
    await import_list(store, data, "csv", [fewer], NOW_MS, smaller=True)
    assert await current(store) != before
    await import_list(store, data, "csv", [own_list(tmp_path, people(28))], NOW_MS)


async def test_versions_can_be_compared_entity_by_entity(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    text = publishers.OWN
    old = await import_list(store, data, "csv", [write(tmp_path, "a.csv", text)], NOW_MS)
    changed = text.replace("Chargeback ring", "Cleared").replace(
        "2,Tidewater Widgets GmbH", "3,Umber Widgets"
    )
    new = await import_list(store, data, "csv", [write(tmp_path, "b.csv", changed)], NOW_MS + 1)
    shelf = shelf_of(data)
    found = difference(take(shelf, "csv", old.version.version), take(shelf, "csv", new.version.version))
    assert list(found.added) == ["csv:3"]
    assert list(found.removed) == ["csv:2"]
    assert list(found.changed) == ["csv:1"]


async def test_entities_with_one_id_are_all_kept(store: SqliteStore, data: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "own.csv", "id,name\n1,Torvald Mikkelsen\n1,Ingrid Haddad\n")
    done = await import_list(store, data, "csv", [path], NOW_MS)
    kept = [entity.id for entity in take(shelf_of(data), "csv", done.version.version)]
    assert kept == ["csv:1", "csv:1~2"]


async def test_a_running_process_swaps_the_index_and_lets_screenings_finish(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    keeper = IndexKeeper(store, data)
    await keeper.reload()
    assert keeper.current is None
    asked = Subject(name="Oleksiy Berezko", type=EntityType.INDIVIDUAL)
    await import_list(store, data, "csv", [own_list(tmp_path, ["Ingrid Haddad"])], NOW_MS)
    await keeper.reload()
    old = keeper.current
    assert old is not None
    assert old.search(asked) == []
    await import_list(store, data, "un_sc", [write(tmp_path, "un.xml", publishers.UN)], NOW_MS + 1)
    await keeper.reload()
    assert keeper.current is not None
    assert keeper.current.search(asked)[0].score == 100
    assert set(keeper.current.versions) == {"csv", "un_sc"}
    # Whoever took the old index keeps it to the end of the screening.
    assert old.search(asked) == []


async def test_a_lost_index_is_built_again_from_the_versions(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    done = await import_list(store, data, "un_sc", [write(tmp_path, "un.xml", publishers.UN)], NOW_MS)
    folder = index_path(shelf_of(data), done.index)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    keeper = IndexKeeper(store, data)
    await keeper.reload()
    assert keeper.fault is None
    assert keeper.current is not None


async def test_lost_files_are_said_and_the_open_index_stays(
    store: SqliteStore, data: Path, tmp_path: Path
) -> None:
    keeper = IndexKeeper(store, data)
    await import_list(store, data, "csv", [own_list(tmp_path, ["Ingrid Haddad"])], NOW_MS)
    await keeper.reload()
    done = await import_list(store, data, "un_sc", [write(tmp_path, "un.xml", publishers.UN)], NOW_MS + 1)
    folder = index_path(shelf_of(data), done.index)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    for path in (data / "watchlists" / "un_sc").iterdir():
        path.unlink()
    before = keeper.current
    await keeper.reload()
    assert keeper.current is before
    assert keeper.fault is not None


class Publisher(http.server.BaseHTTPRequestHandler):
    """Serves one list, whole, cut short, or not at all, by the path."""

    def do_GET(self) -> None:
        body = publishers.UN.encode()
        if self.path == "/gone.xml":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:300] if self.path == "/cut.xml" else body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@pytest.fixture
def publisher() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Publisher) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(5)


async def test_a_list_is_fetched_from_its_publisher(store: SqliteStore, data: Path, publisher: str) -> None:
    done = await refresh_list(store, data, "un_sc", NOW_MS, urls=[f"{publisher}/consolidated.xml"])
    assert done.version.entities == 2
    assert not [path for path in (data / "watchlists").iterdir() if path.name.startswith("fetch.")]


@pytest.mark.parametrize("path", ["/gone.xml", "/cut.xml"])
async def test_what_a_publisher_does_not_send_whole_is_refused(
    store: SqliteStore, data: Path, publisher: str, path: str
) -> None:
    await refresh_list(store, data, "un_sc", NOW_MS, urls=[f"{publisher}/consolidated.xml"])
    before = await current(store)
    with pytest.raises(SourceFault):
        await refresh_list(store, data, "un_sc", NOW_MS + 1, urls=[f"{publisher}{path}"])
    assert await current(store) == before


async def test_files_of_the_machine_are_never_fetched(store: SqliteStore, data: Path) -> None:
    with pytest.raises(SourceFault, match="https"):
        await refresh_list(store, data, "un_sc", NOW_MS, urls=["file:///etc/passwd"])
