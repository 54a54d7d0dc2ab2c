"""What a write says of all tenants counts the rows of all, also where it changes those of one."""

from vettance.db.engine import Store
from vettance.tenants.sql import note_change
from vettance.watchlists.sql import AREA, insert_index, select_index


async def test_every_owner_gets_an_index_of_lists_of_its_own(store: Store) -> None:
    owners = ["ten_" + digit * 32 for digit in "123"]
    for moment, owner in enumerate(owners):
        # As an import does, which tells of it in the same commit.
        index = insert_index(owner, f"index-{owner}", {"own": "1"}, 1, 1, moment)
        await store.write(index, note_change(AREA, owner, f"index-{owner}", moment))
    for owner in owners:
        assert [row[0] for row in await store.read(select_index(owner))] == [f"index-{owner}"]
