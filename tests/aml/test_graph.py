"""The graph: circles and chains are found whatever else happens, and a hub costs what others do."""

from hypothesis import given
from hypothesis import strategies as st

from tests.lines_run import lines_run
from vettance.aml.graph import EDGES_MAX, PARTIES_MAX, Graph
from vettance.clock import HOUR_MS

PAIR_MS = 90 * 86_400_000
START = 1_760_000_000_000


def move(graph: Graph, sender: str, receiver: str, amount: float, hours: float):
    return graph.add(sender, receiver, START + int(hours * HOUR_MS), amount, "out", PAIR_MS)


@given(
    size=st.integers(3, PARTIES_MAX - 1),
    keeps=st.floats(0.8, 1.0),
    noise=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 400)), max_size=20),
)
def test_a_circle_is_found_among_small_payments(size: int, keeps: float, noise) -> None:
    graph = Graph()
    for sender, receiver, amount in noise:
        # Parties who have dealt with each other before are looked at from larger sums on only.
        move(graph, f"n{sender}", f"m{receiver}", amount, 0)
        move(graph, f"m{sender}", f"n{receiver}", amount, 0)
    amount = 5_000.0
    for step in range(size):
        edge = move(graph, f"n{step}", f"n{(step + 1) % size}", amount, 1 + step)
        found = graph.cycle(edge)
        assert bool(found) == (step == size - 1)
        amount *= keeps
    assert set(found) == {f"n{step}" for step in range(size)}


def test_a_circle_of_ten_that_takes_eighteen_days_is_found_and_one_of_a_month_is_not() -> None:
    for days, is_found in ((2, True), (3, False)):
        graph = Graph()
        for step in range(10):
            edge = move(graph, f"n{step}", f"n{(step + 1) % 10}", 5_000 - 100 * step, 24 * days * step)
        assert bool(graph.cycle(edge)) == is_found


def test_two_friends_are_no_circle_and_neither_is_the_wrong_order() -> None:
    graph = Graph()
    move(graph, "a", "b", 1000, 0)
    assert not graph.cycle(move(graph, "b", "a", 1000, 1))
    graph = Graph()
    move(graph, "b", "c", 1000, 0)
    move(graph, "a", "b", 1000, 1)
    assert not graph.cycle(move(graph, "c", "a", 1000, -1))


def test_a_party_that_has_another_name_by_now_ends_the_search_and_nothing_else() -> None:
    graph = Graph()
    move(graph, "a", "b", 1000, 0)
    move(graph, "b", "c", 1000, 1)
    graph.merge("b", "b-by-its-other-name")
    assert not graph.cycle(move(graph, "c", "d", 1000, 2))


def test_a_chain_counts_its_hops_and_names_its_parties() -> None:
    graph = Graph()
    for step in range(4):
        edge = move(graph, f"n{step}", f"n{step + 1}", 5000 - 100 * step, 5 * step)
    assert edge.depth == 4
    assert edge.path == ("n0", "n1", "n2", "n3", "n4")


def test_a_sum_that_is_handed_on_tells_how_many_others_its_source_has_paid() -> None:
    graph = Graph()
    for number in range(4):
        move(graph, "source", f"m{number}", 1000, number)
    move(graph, "source", "rent", 9_000, 4)  # No like sum.
    move(graph, "source", "m0", 1000, 5)  # No new party.
    edge = move(graph, "m1", "end", 950, 6)
    assert (graph.spread(edge), graph.gathered(edge)) == (4, 1)
    assert graph.gathered(move(graph, "m2", "end", 950, 7)) == 2
    assert graph.spread(move(graph, "m3", "end", 950, 24 * 3)) == 4
    assert graph.spread(move(graph, "x", "y", 950, 8)) == 0


def test_a_grid_counts_senders_of_three_shared_receivers_and_the_receivers_of_two_senders() -> None:
    graph = Graph()
    found = [
        graph.grid(move(graph, sender, receiver, 1000, 1))
        for sender, receiver in ("aq", "ar", "as", "bq", "br", "bs", "bt", "cs", "cr", "cq", "az")
    ]
    none = (0, 0)
    assert found == [none, none, none, (1, 1), (1, 2), (2, 3), none, (1, 1), (1, 2), (3, 3), none]
    assert graph.grid(move(graph, "d", "q", 1, 2)) == none


def test_both_sides_of_one_transfer_are_one_transfer() -> None:
    graph = Graph()
    first = graph.add("a", "b", START, 900.0, "out", PAIR_MS)
    again = graph.add("a", "b", START + 5, 900.0, "in", PAIR_MS)
    assert (again.at_ms, again.told) == (first.at_ms, "both")
    assert len(graph.nodes["b"].ins) == 1
    graph.add("a", "b", START + 9, 900.0, "in", PAIR_MS)
    assert len(graph.nodes["b"].ins) == 2


def test_what_is_kept_of_a_hub_is_bounded() -> None:
    graph = Graph()
    for number in range(10_000):
        move(graph, f"s{number}", "hub", 800, number / 1000)
        move(graph, "hub", f"r{number}", 800, number / 1000)
    assert len(graph.nodes["hub"].ins) <= 2 * EDGES_MAX
    assert len(graph.nodes["hub"].known) <= 2_048


def test_a_hub_costs_no_more_than_twice_an_ordinary_account() -> None:
    graph = Graph()
    for number in range(100_000):
        move(graph, f"s{number}", "hub", 800, number / 2000)
        move(graph, "hub", f"r{number}", 800, number / 2000)
    for number in range(2 * EDGES_MAX):
        move(graph, f"t{number}", "ordinary", 800, 50 + number / 2000)
        move(graph, "ordinary", f"u{number}", 800, 50 + number / 2000)

    def search(party: str, sender: str, receiver: str) -> None:
        for edge in (move(graph, party, receiver, 900, 51), move(graph, sender, party, 900, 51)):
            graph.cycle(edge)
            graph.gathered(edge)
            graph.spread(edge)
            graph.grid(edge)
            graph.mirror(edge)
            graph.repeats(edge)

    ordinary = lines_run(lambda: search("ordinary", "x1", "y1"))
    assert lines_run(lambda: search("hub", "x2", "y2")) <= 2 * ordinary
