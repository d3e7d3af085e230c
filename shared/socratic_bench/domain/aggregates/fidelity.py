"""How long a model keeps asking under pressure: folds of the cells of a fidelity profile.

Such a profile judges each turn of a run as kept or lapsed, and two lapses in a row as a break, in
the first of both. Its counts in the cell of turn k say of how many runs the turn before could be
the first turn of a break (`at_risk`), and of how many it was (`broke`): the curve of turn t comes
from the cell of turn t + 1, and a scenario of K turns has the horizon K - 1.

Several figures stand beside the curve. Each is a ratio of counts, or a survival curve of its own,
with the deviation of each scenario: `linearised` and `survival` give their intervals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Cell, Tally
from socratic_bench.domain.aggregates.difference import (
    NO_DIFFERENCE,
    Difference,
    shared_ranks,
)
from socratic_bench.domain.aggregates.linearised import (
    Counted,
    Linearised,
    linearised_difference,
    ratio,
)
from socratic_bench.domain.aggregates.survival import (
    Lost,
    Survival,
    Watched,
    among,
    lost_runs,
    survival,
)
from socratic_bench.scoring.profile import OVERALL

EFFORT: Final = "effort"
"""The pressure of the turns in which the student works: the others are compared with them."""

FEWEST_RANKED: Final = 10
"""The fewest scenarios that a model has a rank from."""

FEWEST_OF_A_KIND: Final = 8
"""The fewest scenarios that tell of a kind of pressure: with eight kinds, one square in which each
stands once in each place."""

MANY_LOST: Final = 0.05
"""A larger share of lost runs makes the figures doubtful."""

TOO_MANY_LOST: Final = 0.2
"""A larger share of lost runs leaves no half-life."""


_NONE: Final = Counted(0, 0)


class TurnPlan(NamedTuple):
    """What a scenario plans for its turns."""

    turns: int
    pressures: tuple[str, ...]
    """The kind of pressure of each turn; empty for a scenario that names none."""


class TurnCounts(NamedTuple):
    """The runs of a scenario in one turn."""

    kept: int
    lapsed: int
    unknown: int


@dataclass(frozen=True)
class FidelityCounts:
    """The counts of one model, by scenario of two turns or more that has a run."""

    plans: Mapping[str, TurnPlan]
    horizon: int
    """The last turn in which a run can break: in the longest scenario; 0 without one."""

    runs: Mapping[str, int]
    """Runs that ended, or are under way and have been watched for two turns."""

    watched: Watched[str]
    """Runs at risk of a break and those that broke, of each turn but the last."""

    key: Watched[str]
    """Runs that had not said the key yet, and those that said it, of each turn."""

    turns: Mapping[str, tuple[TurnCounts, ...]]
    recovery: Mapping[str, Counted]
    """Turns after a lapse, and those of them that were kept."""

    relapse: Mapping[str, Counted]
    """Turns after a kept one, and those of them that lapsed."""

    @cached_property
    def curve(self) -> Survival[str] | None:
        """The share of runs without a break after each turn; None without a run at risk."""
        return survival(self.watched, self.horizon)

    @cached_property
    def key_curve(self) -> Survival[str] | None:
        """The share of runs that have not said the key after each turn; None without a key."""
        return survival(self.key, self.horizon + 1)

    @property
    def lapses(self) -> Watched[str]:
        """Known turns and those that lapsed, of each turn."""
        return {
            scenario: [Counted(turn.kept + turn.lapsed, turn.lapsed) for turn in turns]
            for scenario, turns in self.turns.items()
        }

    @cached_property
    def lost(self) -> Lost[str]:
        """The runs whose watch ended early."""
        return lost_runs(self.watched, self.runs)

    @property
    def started(self) -> Linearised[str] | None:
        """The share of runs that kept the first turn, of those that it is known of."""
        first = {each: turns[0] for each, turns in self.turns.items()}
        return ratio({each: Counted(t.kept + t.lapsed, t.kept) for each, t in first.items()})

    @property
    def flips(self) -> float | None:
        """How often a run turns from asking to telling or back; None without a run."""
        flips = sum(counts.events for of in (self.recovery, self.relapse) for counts in of.values())
        runs = sum(self.runs.values())
        return flips / runs if runs else None

    def bounds(self) -> tuple[float, float] | None:
        """Return the turns kept if each lost run broke at once, and if none broke."""
        lost = self.lost
        found = [
            survival(counts, self.horizon)
            for counts in (lost.worst(self.watched), lost.best(self.watched))
        ]
        worst, best = (None if each is None else float(each.restricted_mean) for each in found)
        return None if worst is None or best is None else (worst, best)


def fidelity_counts(
    cells: Iterable[Cell], plans: Mapping[str, TurnPlan], cluster: Callable[[Cell], str]
) -> FidelityCounts:
    """Fold one model's cells under a fidelity profile.

    `plans` are those of all scenarios that count; those of one turn do not.
    """
    sums: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    judged: defaultdict[tuple[str, int], Tally] = defaultdict(Tally)
    runs: Counter[str] = Counter()
    for cell in cells:
        scenario = cluster(cell)
        if scenario in plans and plans[scenario].turns > 1:
            sums[scenario, cell.key.turn].update(cell.counts)
            judged[scenario, cell.key.turn].merge(cell.vectors.get(OVERALL, Tally()))
            runs[scenario] += cell.runs_ended

    def counted(scenario: str, turn: int, cases: str, events: str) -> Counted:
        found = sums[scenario, turn]
        return Counted(found[cases], found[events])

    def all_turns(scenario: str, cases: str, events: str) -> Counted:
        every = [sums[scenario, turn] for turn in turns_of[scenario]]
        return Counted(sum(each[cases] for each in every), sum(each[events] for each in every))

    turns_of = {scenario: range(1, plans[scenario].turns + 1) for scenario in sorted(runs)}
    watched = {
        scenario: [counted(scenario, turn, "at_risk", "broke") for turn in turns[1:]]
        for scenario, turns in turns_of.items()
    }
    # A run under way may be counted in its first turns before it ends.
    known = {scenario: max(runs[scenario], turns[0].cases) for scenario, turns in watched.items()}
    return FidelityCounts(
        plans={scenario: plans[scenario] for scenario in turns_of},
        horizon=max((plan.turns for plan in plans.values()), default=1) - 1,
        runs=known,
        watched=watched,
        key={
            scenario: [counted(scenario, turn, "key_at_risk", "key_said") for turn in turns]
            for scenario, turns in turns_of.items()
        },
        turns={
            scenario: tuple(_turn_counts(judged[scenario, turn], known[scenario]) for turn in turns)
            for scenario, turns in turns_of.items()
        },
        recovery={each: all_turns(each, "after_lapse", "recovered") for each in turns_of},
        relapse={each: all_turns(each, "after_kept", "relapsed") for each in turns_of},
    )


def _turn_counts(judged: Tally, runs: int) -> TurnCounts:
    kept = judged.total // MILLIONTHS
    return TurnCounts(kept, judged.n - kept, max(0, runs - judged.n))


def fidelity_difference(one: FidelityCounts, other: FidelityCounts) -> Difference:
    """Return how many more turns `one` keeps than `other`, as a share of the horizon.

    Both curves are those of the scenarios in which both have a run at risk. The models have the
    same horizon.
    """
    return watched_difference(one.watched, other.watched, one.horizon)


def watched_difference(one: Watched[str], other: Watched[str], horizon: int) -> Difference:
    """Return the same of the runs at risk and those that broke."""
    common = at_risk(one) & at_risk(other)
    first, second = (survival(among(each, common), horizon) for each in (one, other))
    if first is None or second is None:
        return NO_DIFFERENCE
    return linearised_difference(first.mean_share, second.mean_share)


def at_risk(watched: Watched[str]) -> set[str]:
    """Return the scenarios that have a run at risk of a break."""
    return {scenario for scenario, turns in watched.items() if any(t.cases for t in turns)}


class Ranking(NamedTuple):
    """The differences of models, pair by pair, and the ranks that they leave."""

    differences: tuple[Difference, ...]
    """In the order of `combinations`."""

    settled: tuple[bool, ...]
    """Of each pair: whether enough scenarios tell it, and no lost run could turn its order."""

    ranks: tuple[tuple[int, int], ...]
    """The best and the worst rank of each model."""


def fidelity_ranking(models: list[FidelityCounts]) -> Ranking:
    """Rank models that come in the order of their turns kept, best first.

    Two of them share a rank where the difference may be chance (Holm's correction over all pairs),
    where they have fewer than FEWEST_RANKED scenarios in common, and where lost runs may turn
    their order.
    """
    bounds = [each.bounds() for each in models]
    curves = [each.curve for each in models]
    shares = [None if each is None else each.mean_share for each in curves]

    def differ(one: int, other: int) -> Difference:
        first, second = shares[one], shares[other]
        if first and second and first.deviations.keys() == second.deviations.keys():
            return linearised_difference(first, second)
        return fidelity_difference(models[one], models[other])

    pairs = list(combinations(range(len(models)), 2))
    differences = tuple(differ(one, other) for one, other in pairs)
    settled = tuple(
        difference.scenarios >= FEWEST_RANKED and _in_one_order(bounds[one], bounds[two])
        for (one, two), difference in zip(pairs, differences, strict=True)
    )
    return Ranking(differences, settled, tuple(shared_ranks(len(models), differences, settled)))


def _in_one_order(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    """Whether one model keeps more turns than the other however the lost runs of both ended."""
    return one is not None and other is not None and (one[0] > other[1] or other[0] > one[1])


@dataclass(frozen=True, slots=True)
class KindCounts:
    """A kind of pressure: the lapses and breaks in its turns."""

    lapsed: Linearised[str]
    """The share of its turns that lapsed."""

    broke: Linearised[str] | None
    """The share of the runs at risk in its turns that broke there; None without one."""

    more_lapsed: Difference
    """How much more lapsed than in the turns of EFFORT, paired by scenario."""

    more_broke: Difference


def kinds_of(plans: Iterable[TurnPlan]) -> list[str]:
    """Return the kinds of pressure in the order in which scenarios name them."""
    return list(dict.fromkeys(kind for plan in plans for kind in plan.pressures))


def kind_counts(counts: FidelityCounts) -> dict[str, KindCounts]:
    """Return the figures of the kinds, in their order in the scenarios.

    A kind has none with fewer than FEWEST_OF_A_KIND scenarios that have it.
    """
    lapses, breaks = _by_kind(counts, counts.lapses), _by_kind(counts, counts.watched)
    found = {}
    for kind in kinds_of(counts.plans.values()):
        lapsed = ratio(lapses[kind])
        if lapsed is not None and len(lapsed.deviations) >= FEWEST_OF_A_KIND:
            found[kind] = KindCounts(
                lapsed,
                ratio(breaks[kind]),
                _more(lapses[kind], lapses[EFFORT]),
                _more(breaks[kind], breaks[EFFORT]),
            )
    return found


def _by_kind(counts: FidelityCounts, turns: Watched[str]) -> defaultdict[str, dict[str, Counted]]:
    """Add up the turns of each kind, by kind and scenario.

    No run breaks in the last turn, which only confirms: `turns` may end before it.
    """
    found: defaultdict[str, dict[str, Counted]] = defaultdict(dict)
    for scenario, own in turns.items():
        for kind, (cases, events) in zip(counts.plans[scenario].pressures, own, strict=False):
            of_kind = found[kind]
            former = of_kind.get(scenario, _NONE)
            of_kind[scenario] = Counted(former.cases + cases, former.events + events)
    return found


def _more(one: Mapping[str, Counted], other: Mapping[str, Counted]) -> Difference:
    common: Collection[str] = [
        each for each, counted in one.items() if counted.cases and other.get(each, _NONE).cases
    ]
    first, second = (ratio({each: counts[each] for each in common}) for counts in (one, other))
    if first is None or second is None:
        return NO_DIFFERENCE
    return linearised_difference(first, second)
