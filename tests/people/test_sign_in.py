"""Signing in: sessions, tries that slow down, links and second factors, on both engines."""

import asyncio

import msgspec
import pytest

from tests.people.conftest import AGENT, AWAY, FIRST, HOME, PASSWORD, SECOND, Door
from vettance.clock import HOUR_MS, MINUTE_MS
from vettance.errors import NotFound, Unprocessable
from vettance.people import sql
from vettance.people.role import Role
from vettance.people.session import SignedIn, Stage
from vettance.people.sign_in import CODE_REFUSED, REFUSED, SignInPaused, SignInRefused
from vettance.people.totp import code_at
from vettance.tenants.sql import update_tenant
from vettance.tenants.tenant import Tenant

NEW = "another good password"


async def signed(door: Door, token: str) -> SignedIn:
    found = await door.sign_ins.find(token)
    assert found is not None
    return found


async def test_a_user_signs_in_and_out(door: Door) -> None:
    user_id = await door.user("ada@a.example", Role.ANALYST, Role.LEAD)
    token = await door.enters(" ADA@a.example ")
    found = await signed(door, token)
    assert (found.user_id, found.tenant_id) == (user_id, FIRST)
    assert found.roles == {Role.ANALYST, Role.LEAD}
    assert found.csrf_token not in ("", token)
    await door.sign_ins.end(token)
    assert await door.sign_ins.find(token) is None
    assert await door.sign_ins.find("garbage") is None


async def test_every_sign_in_has_a_session_of_its_own(door: Door) -> None:
    await door.user("own@a.example")
    one, other = await door.enters("own@a.example"), await door.enters("own@a.example")
    assert (await signed(door, one)).csrf_token != (await signed(door, other)).csrf_token
    assert len(await door.sign_ins.sessions(await signed(door, one))) == 2
    await door.sign_ins.end_one(await signed(door, one), (await signed(door, other)).session_id)
    assert await door.sign_ins.find(other) is None


async def test_a_session_ends_unused_and_at_the_latest(door: Door) -> None:
    await door.user("idle@a.example")
    token = await door.enters("idle@a.example")
    door.now_ms += 30 * MINUTE_MS
    assert await door.sign_ins.find(token) is None
    token, begun_ms = await door.enters("idle@a.example"), door.now_ms
    while door.now_ms < begun_ms + 12 * HOUR_MS - 20 * MINUTE_MS:
        door.now_ms += 20 * MINUTE_MS
        assert await door.sign_ins.find(token) is not None
    door.now_ms += 20 * MINUTE_MS
    assert await door.sign_ins.find(token) is None


async def test_wrong_unknown_and_disabled_are_refused_alike(door: Door) -> None:
    off = await door.user("off@a.example")
    none = await door.user("none@a.example", password=False)
    alone = await door.user("alone@a.example")
    await door.user("on@a.example")
    await door.write(sql.change_user(off, door.now_ms, disabled=True), sql.remove_membership(FIRST, alone))
    assert none
    for number, (email, password) in enumerate(
        [
            ("off@a.example", PASSWORD),
            ("none@a.example", PASSWORD),
            ("alone@a.example", PASSWORD),
            ("on@a.example", "wrong password"),
            ("nobody@a.example", PASSWORD),
            ("no e-mail", ""),
        ]
    ):
        with pytest.raises(SignInRefused) as refused:
            await door.sign_ins.sign_in(email, password, f"203.0.113.{number}", AGENT)
        assert (refused.value.status, refused.value.message) == (401, REFUSED)


async def test_a_disabled_user_and_changed_roles_show_at_the_next_request(door: Door) -> None:
    user_id = await door.user("change@a.example", Role.ADMIN)
    token = await door.enters("change@a.example")
    await door.write(sql.put_membership(FIRST, user_id, [Role.VIEWER], door.now_ms))
    assert (await signed(door, token)).roles == {Role.VIEWER}
    await door.write(sql.change_user(user_id, door.now_ms, disabled=True))
    assert await door.sign_ins.find(token) is None


async def test_five_wrong_tries_are_followed_by_a_pause_that_doubles(door: Door) -> None:
    await door.user("slow@a.example")
    await door.user("slow2@a.example")
    address = "203.0.113.99"
    assert await door.tries("slow@a.example", 6, address) == [401] * 5 + [429]
    assert await door.status("slow@a.example", PASSWORD, address) == 429, "a right password waits as well"
    for pause_s in (1, 2, 4, 8):
        door.now_ms += pause_s * 1000 - 1
        assert await door.status("slow@a.example", "wrong password", address) == 429
        door.now_ms += 1
        assert await door.status("slow@a.example", "wrong password", address) == 401
    with pytest.raises(SignInPaused) as paused:
        await door.sign_ins.sign_in("slow2@a.example", PASSWORD, address, AGENT)
    assert paused.value.message == REFUSED
    assert ("retry-after", "16") in paused.value.headers, "the address has failed as often"
    door.now_ms += 16_000
    assert await door.status("slow@a.example", PASSWORD, address) == 200
    assert await door.tries("slow@a.example", 1, address) == [401], "the count began anew"


async def test_the_pause_ends_at_fifteen_minutes(door: Door) -> None:
    await door.user("long@a.example")
    for _ in range(20):
        assert await door.status("long@a.example", "wrong password", "203.0.113.98") == 401
        door.now_ms += 15 * MINUTE_MS
    assert await door.status("long@a.example", PASSWORD, "203.0.113.98") == 200


async def test_tries_at_the_same_moment_are_no_more_than_tries_in_a_row(door: Door) -> None:
    await door.user("many@a.example")
    tries = (door.status("many@a.example", "wrong password", "203.0.113.97") for _ in range(12))
    assert sorted(await asyncio.gather(*tries)) == [401] * 5 + [429] * 7


async def test_a_stranger_cannot_keep_a_user_out_who_signed_in_from_their_address_before(door: Door) -> None:
    await door.user("victim@a.example")
    home, strange = "2001:db8:1::7", "203.0.113.96"
    assert await door.status("victim@a.example", PASSWORD, home) == 200
    assert (await door.tries("victim@a.example", 7, strange))[-1] == 429
    assert await door.status("victim@a.example", PASSWORD, AWAY) == 429, "from elsewhere it waits"
    assert await door.status("victim@a.example", PASSWORD, home) == 200
    assert await door.status("victim@a.example", PASSWORD, "2001:db8:1::9999") == 200, "the same network"
    assert (await door.tries("victim@a.example", 6, home))[-1] == 429, "its own failures count"


async def test_unknown_accounts_slow_down_alike(door: Door) -> None:
    assert await door.tries("ghost@a.example", 6, "203.0.113.95") == [401] * 5 + [429]
    assert await door.status("ghost@a.example", PASSWORD, "203.0.113.94") == 429


async def test_mistyping_before_getting_in_is_not_held_against_an_address(door: Door) -> None:
    address = "203.0.113.93"
    for number in range(4):
        email = f"clumsy{number}@a.example"
        await door.user(email)
        assert await door.tries(email, 3, address) == [401] * 3
        assert await door.status(email, PASSWORD, address) == 200


async def test_a_link_sets_a_password_once(door: Door) -> None:
    user_id = await door.user("new@a.example", password=False)
    link = await door.link(user_id)
    for _ in range(3):
        found = await door.credentials.link_user(link)
        assert found is not None
        assert found.email == "new@a.example"
    with pytest.raises(Unprocessable):
        await door.credentials.enter(link, "short", HOME, AGENT)
    begun = await door.credentials.enter(link, NEW, HOME, AGENT)
    assert (await signed(door, begun.token)).user_id == user_id
    assert await door.credentials.link_user(link) is None
    with pytest.raises(NotFound):
        await door.credentials.enter(link, NEW, HOME, AGENT)
    assert await door.status("new@a.example", NEW) == 200


async def test_of_many_who_take_a_link_at_once_one_gets_in(door: Door) -> None:
    link = await door.link(await door.user("race@a.example", password=False))
    tries = (door.credentials.enter(link, f"{NEW} {number}", HOME, AGENT) for number in range(4))
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(answer, NotFound) for answer in answers) == 3


async def test_a_link_ends_after_a_day_and_with_a_newer_password(door: Door) -> None:
    user_id = await door.user("late@a.example")
    old, link = await door.link(user_id), await door.link(user_id)
    token = await door.enters("late@a.example")
    await door.credentials.change_password(await signed(door, token), PASSWORD, NEW)
    assert await door.credentials.link_user(old) is None
    link = await door.link(user_id)
    door.now_ms += 24 * HOUR_MS
    assert await door.credentials.link_user(link) is None
    with pytest.raises(NotFound):
        await door.credentials.enter(link, NEW, HOME, AGENT)


async def test_a_changed_password_ends_all_other_sessions(door: Door) -> None:
    await door.user("pass@a.example")
    here, there = await door.enters("pass@a.example"), await door.enters("pass@a.example")
    with pytest.raises(Unprocessable):
        await door.credentials.change_password(await signed(door, here), "wrong password", NEW)
    await door.credentials.change_password(await signed(door, here), PASSWORD, NEW)
    assert await door.sign_ins.find(there) is None
    assert await door.sign_ins.find(here) is not None
    assert await door.status("pass@a.example", PASSWORD) == 401
    assert await door.status("pass@a.example", NEW) == 200


async def enrol(door: Door, token: str) -> tuple[bytes, list[str]]:
    secret = await door.credentials.begin_factor(await signed(door, token))
    assert await door.credentials.begin_factor(await signed(door, token)) == secret
    code = code_at(secret, door.now_ms // 30_000)
    return secret, await door.credentials.confirm_factor(await signed(door, token), code)


async def test_a_second_factor_is_asked_for_and_no_code_is_taken_twice(door: Door) -> None:
    await door.user("totp@a.example")
    secret, codes = await enrol(door, await door.enters("totp@a.example"))
    begun = await door.sign_ins.sign_in("totp@a.example", PASSWORD, HOME, AGENT)
    assert begun.stage is Stage.FACTOR
    half = await signed(door, begun.token)
    assert (half.stage, half.roles) == (Stage.FACTOR, frozenset())
    used = code_at(secret, door.now_ms // 30_000)
    with pytest.raises(SignInRefused, match=CODE_REFUSED[:20]):
        await door.sign_ins.give_code(begun.token, used, HOME, AGENT)
    door.now_ms += 30_000
    code = code_at(secret, door.now_ms // 30_000)
    full = await door.sign_ins.give_code(begun.token, code, HOME, AGENT)
    assert full.token != begun.token
    assert await door.sign_ins.find(begun.token) is None
    assert (await signed(door, full.token)).stage is Stage.FULL
    # A recovery code takes its place, once.
    for expected in (200, 401):
        begun = await door.sign_ins.sign_in("totp@a.example", PASSWORD, HOME, AGENT)
        try:
            await door.sign_ins.give_code(begun.token, codes[0].upper(), HOME, AGENT)
            assert expected == 200
        except SignInRefused:
            assert expected == 401
    assert await door.credentials.recovery_codes_left(await signed(door, full.token)) == 9


async def test_whoever_knows_the_password_has_few_tries_at_the_code(door: Door) -> None:
    await door.user("guess@a.example")
    await enrol(door, await door.enters("guess@a.example"))
    strange, answers = "203.0.113.92", []
    for _ in range(4):
        try:
            begun = await door.sign_ins.sign_in("guess@a.example", PASSWORD, strange, AGENT)
            await door.sign_ins.give_code(begun.token, "000000", strange, AGENT)
        except (SignInRefused, SignInPaused) as refusal:
            answers.append(refusal.status)
    assert answers == [401, 401, 429, 429]


async def test_a_tenant_can_demand_a_second_factor(door: Door) -> None:
    user_id = await door.user("must@a.example", Role.ADMIN, tenant=SECOND)
    await door.write(sql.put_membership(FIRST, user_id, [Role.VIEWER], door.now_ms))
    token = await door.enters("must@a.example")
    strict = Tenant(id=SECOND, name="Tenant ten_2", second_factor=True)
    await door.write(update_tenant(strict))
    try:
        assert await door.sign_ins.choose_tenant(await signed(door, token), SECOND)
        found = await signed(door, token)
        assert (found.stage, found.roles) == (Stage.ENROLMENT, frozenset())
        await enrol(door, token)
        found = await signed(door, token)
        assert (found.stage, found.roles) == (Stage.FULL, {Role.ADMIN})
    finally:
        await door.write(update_tenant(msgspec.structs.replace(strict, second_factor=False)))


async def test_a_tenant_without_a_membership_cannot_be_chosen(door: Door) -> None:
    await door.user("one@a.example")
    found = await signed(door, await door.enters("one@a.example"))
    assert not await door.sign_ins.choose_tenant(found, SECOND)
    assert list(found.memberships) == [FIRST]


async def test_the_profile_takes_what_pages_know(door: Door) -> None:
    await door.user("look@a.example")
    token = await door.enters("look@a.example")
    await door.credentials.set_profile(await signed(door, token), " Ada ", "dark", "UTC")
    found = await signed(door, token)
    assert (found.name, found.theme, found.time_zone) == ("Ada", "dark", "UTC")
    with pytest.raises(Unprocessable) as refused:
        await door.credentials.set_profile(found, "x\ny", "pink", "Mars/Base")
    assert set(refused.value.details) == {"name", "theme", "timeZone"}


async def test_a_second_factor_goes_with_the_password(door: Door) -> None:
    await door.user("drop@a.example")
    token = await door.enters("drop@a.example")
    await enrol(door, token)
    with pytest.raises(Unprocessable):
        await door.credentials.remove_factor(await signed(door, token), "wrong password")
    await door.credentials.remove_factor(await signed(door, token), PASSWORD)
    assert not (await signed(door, token)).has_second_factor
