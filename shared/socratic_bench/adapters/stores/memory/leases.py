"""The roles `Leases` and `SharedLimits` of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from socratic_bench.adapters.stores.memory.state import (
    HeldShare,
    MemoryRole,
    Owner,
    StoreState,
    TurnCalls,
)
from socratic_bench.domain.fair_share import Share, part_of
from socratic_bench.domain.leasing import (
    Claimant,
    Holder,
    LeaseAnswer,
    OpenLease,
    TurnStanding,
    answer_to,
)
from socratic_bench.domain.pause import NONE, PauseNews, after
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import StoreRefused
from socratic_bench.ports.stores.leases import (
    CallCount,
    CallEnd,
    Lease,
    LeaseKey,
    ModelInHand,
    Spending,
)
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim
from socratic_bench.ports.stores.responses import TurnKey

MOST_NANODOLLARS: Final = 2**63 - 1
"""The largest amount that every store can count."""


def commit(state: StoreState, experiment_id: str, nanodollars: int) -> None:
    """Add to the committed money of an experiment, if it is registered.

    Raises StoreRefused, and changes nothing, for a number that is too large.
    """
    account = state.accounts.get(experiment_id)
    committed = 0 if account is None else account.committed
    if committed + nanodollars > MOST_NANODOLLARS:
        raise StoreRefused(f"experiment {experiment_id} would cost more than a store can count")
    if account is not None:
        account.committed += nanodollars


def settle(state: StoreState, lease: LeaseKey, cost: int | None, *, begun: bool = True) -> bool:
    """End a lease; returns whether it was open.

    `cost` replaces the reservation; None: the reservation stays committed. A call that did not
    begin does not count. Raises StoreRefused as `commit` does.
    """
    calls = state.facts_of(lease.experiment_id).calls.get(TurnKey(lease.run_id, lease.turn))
    if calls is None or (reserved := calls.reserved_under(lease.lease_id)) is None:
        return False
    if cost is not None:
        commit(state, lease.experiment_id, cost - reserved)
    calls.end(lease.lease_id)
    calls.calls -= not begun
    return True


def holder(state: StoreState, name: str, now: datetime) -> Holder:
    """Return the standing of an owner."""
    owner = state.owners.get(name)
    if owner is None:
        return Holder.UNKNOWN
    silent = (now - owner.seen_at).total_seconds()
    return Holder.of(silent, is_gone=owner.gone, overdue=owner.overdue)


def grant(
    state: StoreState, lease: Lease, owner: str, now: datetime, *, may_judge: bool
) -> LeaseAnswer:
    """Lease a turn to an owner if the rule of leases allows it.

    Raises StoreRefused, and changes nothing, for a reservation that is too large to count.
    """
    key = lease.key
    turn = TurnKey(key.run_id, key.turn)
    calls = state.facts_of(key.experiment_id).calls.get(turn) or TurnCalls()
    claimant = Claimant(owner, key.lease_id, lease.reserve, may_judge)
    answer = answer_to(claimant, _standing(state, key.experiment_id, turn, calls, now))
    is_held_already = (calls.owner, calls.lease_id) == (owner, key.lease_id)
    if answer is not LeaseAnswer.GRANTED or is_held_already:
        return answer
    commit(state, key.experiment_id, lease.reserve)
    if calls.lease_id:
        calls.lapsed[calls.lease_id] = calls.reserved
    calls.calls += 1
    calls.owner = owner
    calls.leased_until = now + timedelta(seconds=lease.seconds)
    calls.reserved, calls.lease_id = lease.reserve, key.lease_id
    state.facts_to_change(key.experiment_id).calls[turn] = calls
    return answer


def _standing(
    state: StoreState, experiment_id: str, turn: TurnKey, calls: TurnCalls, now: datetime
) -> TurnStanding:
    experiment = state.experiments.get(experiment_id)
    account = state.accounts.get(experiment_id)
    is_over = calls.leased_until is None or calls.leased_until < now
    return TurnStanding(
        may_call=experiment is None or experiment.state.calls_may_begin,
        is_answered=state.response(turn) is not None,
        open=(
            OpenLease(calls.owner, calls.lease_id, is_over, holder(state, calls.owner, now))
            if calls.lease_id
            else None
        ),
        left=None if account is None else account.left,
    )


FORGOTTEN_AFTER: Final = timedelta(days=7)
"""Silence after which the store forgets an owner: its leases have expired."""


class MemoryLeases(MemoryRole):
    """Grants and ends leases, and knows the live owners."""

    async def take_leases(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool = True
    ) -> Sequence[LeaseAnswer]:
        firsts: dict[LeaseKey, tuple[LeaseKey, LeaseAnswer]] = {}
        answers: list[LeaseAnswer] = []
        async with self._state_alone() as state:
            now = self._now()
            for lease in leases:
                turn = lease.key._replace(lease_id="")
                if turn not in firsts:
                    answer = grant(state, lease, owner, now, may_judge=may_judge)
                    firsts[turn] = lease.key, answer
                first, answer = firsts[turn]
                # Of two claims of one turn at once, the first one holds it.
                is_same = lease.key == first or answer is LeaseAnswer.ANSWERED
                answers.append(answer if is_same else LeaseAnswer.HELD)
        return answers

    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        async with self._state_alone() as state:
            for lease in leases:
                settle(state, lease, 0, begun=False)

    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        async with self._state_alone() as state:
            for lease, billed in ends:
                settle(state, lease, None if billed else 0)

    async def heartbeat(
        self,
        owner: str,
        in_hand: Collection[ModelInHand],
        troubles: Collection[Trouble] = (),
        *,
        overdue: bool = False,
    ) -> None:
        told = tuple(trouble.model_copy(deep=True) for trouble in troubles)
        async with self._state_alone() as state:
            state.owners[owner] = Owner(
                self._now(), in_hand=frozenset(in_hand), troubles=told, overdue=overdue
            )

    async def leave(self, owner: str) -> None:
        async with self._state_alone() as state:
            now = self._now()
            state.owners[owner] = Owner(now, gone=True)
            for name, each in list(state.owners.items()):
                if each.seen_at < now - FORGOTTEN_AFTER:
                    del state.owners[name]

    async def leave_others(self, owner: str) -> None:
        async with self._state_alone() as state:
            now = self._now()
            others = {name for name, each in state.owners.items() if not each.gone}
            others |= {
                calls.owner
                for facts in state.facts.values()
                for calls in facts.calls.values()
                if calls.leased_until is not None and calls.leased_until >= now
            }
            for name in others - {owner}:
                state.owners[name] = Owner(now, gone=True)

    async def models_in_hand(self, experiment_id: str) -> Mapping[str, int]:
        owners: Counter[str] = Counter()
        async with self._state_alone() as state:
            for owner in self._alive(state):
                owners.update(model for id_, model in owner.in_hand if id_ == experiment_id)
        return owners

    async def troubles(self, experiment_id: str) -> Sequence[Trouble]:
        async with self._state_alone() as state:
            return [
                trouble.model_copy(deep=True)
                for owner in self._alive(state)
                for trouble in owner.troubles
                if trouble.experiment_id == experiment_id
            ]

    async def calls(self, experiment_id: str) -> CallCount:
        async with self._state_alone() as state:
            counts = [each.calls for each in state.facts_of(experiment_id).calls.values()]
        return CallCount(calls=sum(counts), turns=sum(count > 0 for count in counts))

    async def spending(self, experiment_id: str) -> Spending:
        if spending := (await self.spending_of([experiment_id])).get(experiment_id):
            return spending
        raise self._no_experiment(experiment_id)

    async def spending_of(self, experiment_ids: Collection[str]) -> Mapping[str, Spending]:
        async with self._state_alone() as state:
            now = self._now()
            return {
                id_: Spending(
                    account.budget,
                    account.committed,
                    _in_flight(state, id_, now),
                    account.exhausted,
                )
                for id_ in experiment_ids
                if (account := state.accounts.get(id_)) is not None
            }

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        async with self._state_alone() as state:
            account = state.accounts.get(experiment_id)
            if account is not None and account.left is not None and account.left < reserve:
                account.exhausted = True

    def _alive(self, state: StoreState) -> list[Owner]:
        now = self._now()
        return [
            owner for name, owner in state.owners.items() if not holder(state, name, now).is_dead
        ]


def _in_flight(state: StoreState, experiment_id: str, now: datetime) -> int:
    """Return the reservations under leases of live owners, in nanodollars."""
    return sum(
        calls.reserved
        for calls in state.facts_of(experiment_id).calls.values()
        if calls.leased_until is not None
        and calls.leased_until >= now
        and not holder(state, calls.owner, now).is_dead
    )


class MemorySharedLimits(MemoryRole):
    """Divides shared limits, and keeps the pauses of models."""

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        of_scopes = {claim.scope: claim for claim in claims}
        async with self._state_alone() as state:
            now = self._now()
            return {
                scope: _claim_share(state.shares[scope], claim, owner, now, seconds)
                for scope, claim in of_scopes.items()
            }

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        answers: dict[str, PauseAnswer] = {}
        async with self._state_alone() as state:
            now = self._now().timestamp()
            for each in news:
                pause, may_call = after(state.pauses.get(each.scope, NONE), each, now)
                if each.replied or each.pushed_back or each.wants_call:
                    state.pauses[each.scope] = pause
                answers[each.scope] = PauseAnswer(pause.at(now), may_call)
        return answers


def _claim_share(
    held: dict[str, HeldShare], claim: ShareClaim, owner: str, now: datetime, seconds: float
) -> int:
    for name, each in list(held.items()):
        if name == owner or each.until < now:
            del held[name]
    others = {name: each.share for name, each in held.items()}
    parts = part_of(claim.total, owner, claim.wants, others, now.timestamp())
    if parts or claim.wants:
        held[owner] = HeldShare(Share(parts, claim.wants), now + timedelta(seconds=seconds))
    return parts
