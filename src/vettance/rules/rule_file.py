"""The commands about a file of rules: check it, run its tests, and show what is wrong with it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from vettance.commands import counted, data_option, fail, json_option, show, write_document
from vettance.rules.compiler import CompiledRules
from vettance.rules.document import DOCUMENT_BYTES_MAX
from vettance.rules.gate import Context, examine
from vettance.rules.packs import PackUnknown, load_pack_text
from vettance.rules.remote_rules import RemoteRules, fault_of, server_option
from vettance.rules.rule import Fault, RuleSet, missed_out, shown_value
from vettance.rules.ruleset import write_ruleset
from vettance.wire.payload import JSON

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))

_SEVERITIES: Final = {False: "error", True: "warning"}


class CheckedRuleFile(NamedTuple):
    """A file that passed the gate: its text, and what it becomes with the pack that it builds on.

    `document` is what is stored to be run: the text itself, or one that no longer needs the pack.
    """

    text: str
    document: str
    extends: str | None
    ruleset: RuleSet
    compiled: CompiledRules
    warnings: tuple[Fault, ...]

    @property
    def missed_out(self) -> list[JSON]:
        """The tests that rules which are only tried do not pass, as scripts read them."""
        return missed_out(fault for fault in self.warnings if not fault.warning)


def read_rules(file: Path) -> str:
    """Return the text of a file of rules, or end the command."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read as UTF-8 text: {error}")


def fault_out(fault: Fault) -> JSON:
    """Return a fault as scripts read it."""
    return {
        "severity": _SEVERITIES[fault.warning],
        "where": fault.where,
        "line": fault.line,
        "column": fault.column,
        "message": fault.message,
        "hint": fault.hint,
        "saw": dict(fault.saw) or None,
    }


def summary_of(faults: Sequence[Fault]) -> str:
    """Count the faults and the warnings in words."""
    warnings = sum(fault.warning for fault in faults)
    parts = [counted(len(faults) - warnings, "fault")] if len(faults) > warnings else []
    if warnings:
        parts.append(counted(warnings, "warning"))
    return " and ".join(parts)


def refuse(file: Path | str, faults: Sequence[Fault]) -> NoReturn:
    """End the command with everything that is wrong with a file."""
    fail(
        f"{file} is refused: {summary_of(faults)}.",
        more="".join(f"\n\n{fault}" for fault in faults),
        faults=[fault_out(fault) for fault in faults],
    )


def warn(faults: Iterable[Fault]) -> None:
    """Show warnings on standard error, where they are in the way of no script."""
    for fault in faults:
        click.echo(f"{fault}\n", err=True)


def admit_file(file: Path, context: Context, *, is_trial: bool = False) -> CheckedRuleFile:
    """Pass a file through the gate. Everything wrong is shown, and any error ends the command.

    Rules that are only tried (`is_trial`) need not pass their tests: those that fail are shown.
    """
    text = read_rules(file)
    found = examine(text, context)
    document = text
    if found.extends is not None and not found.broken:
        # The same file must become the same document, whatever its name.
        document = f"# What was pushed came to this on {found.extends}.\n{write_ruleset(found.ruleset)}"
        if len(document.encode()) > DOCUMENT_BYTES_MAX:
            size = f"with its pack it is larger than {DOCUMENT_BYTES_MAX // 1024} KiB"
            found = found._replace(faults=(*found.faults, Fault("document", size)))
    if (found.broken if is_trial else found.errors) or found.compiled is None:
        refuse(file, found.faults)
    warn(found.faults)
    return CheckedRuleFile(text, document, found.extends, found.ruleset, found.compiled, found.faults)


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """How the files of one kind of rules are handled on the command line."""

    group: click.Group
    #: What they are called in a sentence.
    noun: str
    #: The file that the examples name.
    example: str
    #: The pack that they may build on, by its folder.
    pack: str
    #: What they are checked with; the data folder may name settings that matter.
    context: Callable[[str | None], Context]
    #: Where a service has their endpoints, below `/api/v1`.
    path: str
    #: What a note of the examples says of a change, and of one that is turned down.
    note: str
    objection: str

    def help(self, text: str, example: str) -> str:
        """Return the help of a command: what it does, and an example."""
        return f"{text}\n\nExample: vettance {self.group.name} {example}"

    def add_file_commands(self) -> None:
        """Add `check`, `test` and `pack` to the group."""
        for add in (self._add_check, self._add_test, self._add_pack):
            add()

    def _add_check(self) -> None:
        text = (
            "Pass FILE through the gate that saving passes: shape, language, types, cost, and its own tests. "
            "Everything wrong is shown at once, with line and column."
        )

        @self.group.command("check", help=self.help(text, f"check {self.example}"))
        @file_argument
        @server_option
        @json_option
        @data_option
        def check_file(file: Path, server: RemoteRules | None, as_json: bool, data: str | None) -> None:
            if server is not None:
                self._show_check(file, server, as_json=as_json)
                return
            admitted = admit_file(file, self.context(data))
            ruleset, compiled = admitted.ruleset, admitted.compiled
            tests = sum(len(rule.tests) for rule in ruleset.running)
            found = {
                "name": ruleset.name,
                "extends": admitted.extends,
                "rules": len(ruleset.rules),
                "running": len(ruleset.running),
                "tests": tests,
                "aggregates": len(compiled.plan.aggregates),
                "series": len(compiled.plan.series),
                "cost": compiled.cost,
                "warnings": [fault_out(fault) for fault in admitted.warnings],
            }
            said = (
                f"{file} is good: {counted(len(ruleset.rules), 'rule')} ({found['running']} running), "
                f"{counted(tests, 'test')}{' passed' if tests else ''}, "
                f"{counted(len(compiled.plan.aggregates), 'aggregate')} over {found['series']} series, "
                f"cost {compiled.cost}."
            )
            show(found, said, as_json=as_json)

    def _show_check(self, file: Path, server: RemoteRules, *, as_json: bool) -> None:
        """Have a service check FILE, and show what it finds."""
        document = read_rules(file)
        found = server.post(f"{self.path}/rulesets/check", {"document": document})
        faults = [fault_of(one, document) for one in found["faults"]]
        if not found["ok"]:
            refuse(file, faults)
        warn(faults)
        said = (
            f"{file} is good: {counted(found['rules'], 'rule')} ({found['running']} running), "
            f"{counted(len(found['tests']), 'test')}{' passed' if found['tests'] else ''}, "
            f"cost {found['cost']}."
        )
        show(found, said, as_json=as_json)

    def _add_test(self) -> None:
        text = "Run the tests that the rules of FILE bring along; of one that fails, show what the rule saw."

        @self.group.command("test", help=self.help(text, f"test {self.example} --rule my-rule"))
        @file_argument
        @click.option("--rule", "rule_id", metavar="ID", help="Only the tests of this rule.")
        @server_option
        @json_option
        @data_option
        def test_file(
            file: Path, rule_id: str | None, server: RemoteRules | None, as_json: bool, data: str | None
        ) -> None:
            tests = _run_tests(file, self.context(data)) if server is None else self._ask_tests(file, server)
            rows = [one for one in tests if rule_id in (None, one["rule"])]
            if rule_id is not None and not rows:
                fail(f"{file} has no running rule {rule_id} with tests")
            _show_tests(file, rows, as_json=as_json)
            if not all(one["passed"] for one in rows):
                raise SystemExit(1)

    def _ask_tests(self, file: Path, server: RemoteRules) -> list[JSON]:
        """Have a service run the tests of FILE; what else is wrong with it ends the command."""
        document = read_rules(file)
        found = server.post(f"{self.path}/rulesets/check", {"document": document})
        failed = {f"test {one['test']!r}" for one in found["tests"] if not one["passed"]}
        broken = [
            fault
            for fault in (fault_of(one, document) for one in found["faults"])
            if not fault.warning and fault.message.partition(": ")[0] not in failed
        ]
        if broken:
            refuse(file, broken)
        rows = []
        for one in found["tests"]:
            fault = one.pop("message")
            rows.append({**one, "fault": fault, "saw": None if one["passed"] else one["saw"]})
        return rows

    def _add_pack(self) -> None:
        text = "Write the pack that comes with the service. To build on it, write `extends: default` instead."

        @self.group.command("pack", help=self.help(text, f"pack > {self.example}"))
        @click.argument("name", default=self.pack)
        @server_option
        @json_option
        def show_pack(name: str, server: RemoteRules | None, as_json: bool) -> None:
            if server is not None:
                if name != self.pack:
                    raise click.UsageError(f"with --server there is the pack {self.pack}")
                document = server.get(f"{self.path}/rulesets/pack")["document"]
                write_document(document, {"pack": name}, None, as_json=as_json)
                return
            try:
                document = load_pack_text(name)
            except PackUnknown as fault:
                fail(str(fault))
            write_document(document, {"pack": name}, None, as_json=as_json)


def _run_tests(file: Path, context: Context) -> list[JSON]:
    """Run the tests of a file; what else is wrong with it ends the command."""
    found = examine(read_rules(file), context)
    # Failing tests are what is shown; whatever else is wrong keeps rules from running.
    if found.broken:
        refuse(file, found.broken)
    return [
        {
            "rule": one.rule,
            "test": one.test,
            "passed": one.miss is None,
            "fault": one.miss.message if one.miss is not None else None,
            "saw": dict(one.miss.saw) if one.miss is not None else None,
        }
        for one in found.results
    ]


def _show_tests(file: Path, rows: list[JSON], *, as_json: bool) -> None:
    lines = []
    for one in rows:
        lines.append(f"{'pass' if one['passed'] else 'FAIL'}  {one['rule']}: {one['test']}")
        if not one["passed"]:
            lines.append(f"      {one['fault']}; it saw:" if one["saw"] else f"      {one['fault']}")
            lines += [f"        {shown_value(name, value)}" for name, value in (one["saw"] or {}).items()]
    failed = sum(not one["passed"] for one in rows)
    if rows:
        ended = f"{failed} failed" if failed else "all passed"
        rules = counted(len({one["rule"] for one in rows}), "rule")
        lines.append(f"{counted(len(rows), 'test')} of {rules}: {ended}.")
    else:
        lines.append(f"{file} has no tests.")
    show(rows, "\n".join(lines), as_json=as_json)
