"""The doors of rule sets: versions listed, checked, saved and taken from one state to the next."""

from typing import Final, NamedTuple, TypeVar

import msgspec

from vettance.db.engine import Store
from vettance.errors import NotFound, Unprocessable
from vettance.governance.answers import (
    ActivateBody,
    CheckAnswer,
    CheckBody,
    RollbackBody,
    RuleSetBody,
    SavedAnswer,
    StepBody,
    StepList,
    VersionAnswer,
    VersionPage,
    VersionQuery,
    WholeVersionAnswer,
    check_answer,
    fault_answer,
    step_answer,
    version_members,
)
from vettance.governance.check_documents import DocumentChecker
from vettance.ids import IdSource
from vettance.rules.packs import load_pack_text
from vettance.rules.rule import RuleSetRefused
from vettance.rules.sql import RuleSets, document_digest
from vettance.rules.version import RuleSetVersion, VersionState, version_of
from vettance.rules.versioning import NewRules, Versioning
from vettance.tenants.key_scope import KeyScope
from vettance.web.paging import bad_cursor
from vettance.web.path_version import VERSION_MAX, version_in_path
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.body import read_body
from vettance.wire.numbers import read_whole
from vettance.wire.payload import Faults, timestamp

_BodyStruct = TypeVar("_BodyStruct", bound=msgspec.Struct)

#: The number of a pack that decides for a tenant who has no version of its own.
_PACK_VERSION: Final = 0


class RuleKind(NamedTuple):
    """One kind of rule sets: where its endpoints are, and the product that a tenant needs for them."""

    sets: RuleSets
    root: str
    tag: str
    product: str | None


class RuleDoors:
    """Shows and changes the rule sets of one kind."""

    def __init__(self, store: Store, ids: IdSource, checker: DocumentChecker, kind: RuleKind) -> None:
        self._store = store
        self._ids = ids
        self._checker = checker
        self._kind = kind

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        root, tag, product = f"{self._kind.root}/rulesets", self._kind.tag, self._kind.product
        one = f"{root}/{{version}}"
        routes = (
            Route(
                "GET",
                root,
                self.page,
                "Versions of the rule set",
                tag,
                query=VersionQuery,
                answers=VersionPage,
            ),
            Route(
                "POST",
                root,
                self.create,
                "Save a rule set as a new version",
                tag,
                takes=RuleSetBody,
                answers=SavedAnswer,
                status=201,
                refusals=(409, 422),
                idempotent=True,
            ),
            Route(
                "POST",
                f"{root}/check",
                self.check,
                "Check a rule set; nothing is saved",
                tag,
                takes=CheckBody,
                answers=CheckAnswer,
            ),
            Route(
                "POST",
                f"{root}/rollback",
                self.roll_back,
                "Take earlier rules back into force",
                tag,
                takes=RollbackBody,
                may_lack_body=True,
                answers=VersionAnswer,
                status=201,
                refusals=(404, 409),
                idempotent=True,
            ),
            Route("GET", f"{root}/log", self.log, "Who did what with versions", tag, answers=StepList),
            Route(
                "GET",
                one,
                self.one,
                "A version with its document; `active` is the one in force, `pack` that of the release",
                tag,
                answers=WholeVersionAnswer,
                refusals=(404,),
            ),
            *self._steps_of_one(one),
        )
        offered = (msgspec.structs.replace(route, product=product) for route in routes)
        return reached_by(offered, KeyScope.RULES)

    def _steps_of_one(self, one: str) -> tuple[Route, ...]:
        """The rows of the steps that a version takes."""
        steps = (
            ("propose", self.propose, "Propose a draft", StepBody),
            ("approve", self.approve, "Approve a proposed version", StepBody),
            ("reject", self.reject, "Reject a version that is not in force", StepBody),
            ("activate", self.activate, "Put a version into force", ActivateBody),
        )
        return tuple(
            Route(
                "POST",
                f"{one}/{step}",
                handler,
                summary,
                self._kind.tag,
                takes=takes,
                may_lack_body=True,
                answers=VersionAnswer,
                refusals=(404, 409, 422),
            )
            for step, handler, summary, takes in steps
        )

    async def page(self, call: Call) -> RouteReply:
        """GET /rulesets."""
        query = read_query(call.query_string, VersionQuery)
        beyond = _read_cursor(query.cursor)
        sets, tenant = self._kind.sets, call.tenant.id
        total = (await self._store.read(sets.count_versions(tenant, query.state)))[0][0]
        rows = await self._store.read(
            sets.select_page(
                tenant,
                query.state,
                beyond,
                query.limit + 1,
                query.offset,
                descending=query.descending,
            )
        )
        found = [version_of(row) for row in rows[: query.limit]]
        following = str(found[-1].version) if len(rows) > query.limit else None
        return RouteReply(VersionPage.of(query, [_answer(one) for one in found], total, following))

    async def one(self, call: Call) -> RouteReply:
        """GET /rulesets/{version}."""
        sets, tenant = self._kind.sets, call.tenant.id
        if (named := call.path["version"]) in ("active", "pack"):
            rows = await self._store.read(sets.select_pushed(tenant))
            if not rows or named == "pack":
                return RouteReply(self._pack(VersionState.RETIRED if rows else VersionState.ACTIVE))
        else:
            rows = await self._store.read(sets.select_pushed(tenant, version_in_path(call)))
        if not rows:
            raise NotFound
        version, document, pushed = rows[0]
        found = version_of((await self._store.read(sets.select_one(tenant, version)))[0])
        return RouteReply(
            WholeVersionAnswer(
                **version_members(found),
                document=document if pushed is None else pushed,
                resolved=document,
            )
        )

    async def log(self, call: Call) -> RouteReply:
        """GET /rulesets/log."""
        rows = await self._store.read(self._kind.sets.select_steps(call.tenant.id))
        return RouteReply(StepList(data=[step_answer(row) for row in rows]))

    async def check(self, call: Call) -> RouteReply:
        """POST /rulesets/check."""
        body = _read(call, CheckBody)
        found = await self._checker.check(call.tenant.id, self._kind.sets, body.document)
        return RouteReply(check_answer(found))

    async def create(self, call: Call) -> RouteReply:
        """POST /rulesets."""
        body = _read(call, RuleSetBody)
        if body.break_glass is not None and not body.activate:
            raise Unprocessable(
                "The request cannot be processed; see details.",
                {"breakGlass": "is for `activate`: nothing else needs an approval"},
            )
        found = await self._checker.check(call.tenant.id, self._kind.sets, body.document)
        steps, rules = self._steps(call), found.new_rules
        if (body.propose or body.activate) and not found.is_good:
            raise _refused(RuleSetRefused(found.faults))
        if body.activate:
            over = body.over if body.over is not None else await steps.active_version()
            made = await steps.push(rules, body.note, over=over or None, break_glass=body.break_glass)
        elif body.propose:
            made = await steps.propose_new(rules, body.note)
        else:
            made = await steps.draft(rules, body.note)
        faults = [fault_answer(fault) for fault in found.faults]
        return RouteReply(SavedAnswer(**version_members(made), faults=faults), 201)

    async def propose(self, call: Call) -> RouteReply:
        """POST /rulesets/{version}/propose."""
        version, body = version_in_path(call), _read(call, StepBody)

        async def admit(text: str) -> NewRules:
            found = await self._checker.check(call.tenant.id, self._kind.sets, text)
            if not found.is_good:
                raise _refused(RuleSetRefused(found.faults))
            return found.new_rules

        return RouteReply(_answer(await self._steps(call).propose(version, admit, body.note)))

    async def approve(self, call: Call) -> RouteReply:
        """POST /rulesets/{version}/approve."""
        version, body = version_in_path(call), _read(call, StepBody)
        return RouteReply(_answer(await self._steps(call).approve(version, body.note)))

    async def reject(self, call: Call) -> RouteReply:
        """POST /rulesets/{version}/reject."""
        version, body = version_in_path(call), _read(call, StepBody)
        return RouteReply(_answer(await self._steps(call).reject(version, body.note)))

    async def activate(self, call: Call) -> RouteReply:
        """POST /rulesets/{version}/activate."""
        version, body = version_in_path(call), _read(call, ActivateBody)
        steps = self._steps(call)
        return RouteReply(_answer(await steps.activate(version, body.break_glass, body.note, body.over)))

    async def roll_back(self, call: Call) -> RouteReply:
        """POST /rulesets/rollback."""
        body = _read(call, RollbackBody)
        return RouteReply(_answer(await self._steps(call).roll_back(body.to, body.over)), 201)

    def _steps(self, call: Call) -> Versioning:
        actor = call.actor or call.key.id
        return Versioning(self._store, self._kind.sets, call.tenant.id, actor, self._ids)

    def _pack(self, state: VersionState) -> WholeVersionAnswer:
        """Return the pack, as the version that decides for a tenant without one of its own."""
        text = load_pack_text(self._kind.sets.pack)
        return WholeVersionAnswer(
            version=_PACK_VERSION,
            state=state,
            note="The default pack.",
            author=None,
            approved_by=None,
            created_at=timestamp(0),
            decided_at=None,
            activated_at=None,
            digest=document_digest(text),
            break_glass=None,
            rollback_of=None,
            document=text,
            resolved=text,
        )


def _answer(one: RuleSetVersion) -> VersionAnswer:
    return VersionAnswer(**version_members(one))


def _read(call: Call, shape: type[_BodyStruct]) -> _BodyStruct:
    """Read the body. Raises `Invalid` (400) or `Unprocessable` (422) naming every fault."""
    faults = Faults()
    said = read_body(call.json() if call.body else {}, shape, faults)
    faults.raise_any()
    return said


def _read_cursor(cursor: str | None) -> int | None:
    """Return the version that a page begins beyond. Raises `Invalid` (400)."""
    if cursor is None:
        return None
    number = read_whole(cursor, 0, VERSION_MAX)
    if number is None:
        raise bad_cursor()
    return number


def _refused(refused: RuleSetRefused) -> Unprocessable:
    """Return the refusal of a document with the place of each fault."""
    faults = [fault_answer(fault) for fault in refused.faults]
    return Unprocessable(refused.message, {**refused.details, "faults": faults})
