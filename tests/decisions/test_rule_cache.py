"""Rule sets are compiled once for each document, and away from the event loop."""

import threading

import pytest

from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.features import fraud_schema
from vettance.decisions.load_ruleset import prepare
from vettance.rules.compiler import CompiledRules
from vettance.rules.gate import compile_document
from vettance.rules.rule import RuleSetRefused
from vettance.rules.ruleset import RuleSet

DOCUMENT = """
name: shop
rules:
  - id: large
    name: Large
    reason: LARGE
    explanation: The amount is large.
    when: metadata.amount > 100
    score: 60
    mode: shadow
"""


async def test_rules_are_compiled_in_a_thread_and_once() -> None:
    threads: list[int] = []

    def compiled(text: str) -> tuple[RuleSet, CompiledRules]:
        threads.append(threading.get_ident())
        return compile_document(text, fraud_schema())

    cache = RuleCache(compiled)
    first = await prepare(cache, 1, DOCUMENT)
    second = await prepare(cache, 2, DOCUMENT)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    assert first.compiled is second.compiled is cache.active(3, DOCUMENT).compiled
    assert (first.version, second.version) == (1, 2)


async def test_what_does_not_compile_is_refused_and_not_kept() -> None:
    cache = RuleCache(lambda text: compile_document(text, fraud_schema()))
    for _ in range(2):
        with pytest.raises(RuleSetRefused):
            await prepare(cache, 1, DOCUMENT.replace("> 100", ">"))
