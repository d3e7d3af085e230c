"""The role `Leases` of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from socratic_bench.adapters.stores.memory.granting import grant, holder
from socratic_bench.adapters.stores.memory.ledger import settle
from socratic_bench.adapters.stores.memory.role import MemoryRole
from socratic_bench.adapters.stores.memory.state import Owner, StoreState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import (
    CallCount,
    CallEnd,
    Lease,
    LeaseKey,
    ModelInHand,
    Spending,
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
