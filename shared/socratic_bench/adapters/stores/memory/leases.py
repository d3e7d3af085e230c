"""The roles `Leases` and `SharedLimits` of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from socratic_bench.adapters.stores.memory.state import MemoryRole, StoreState
from socratic_bench.domain.fair_share import after_claim
from socratic_bench.domain.leasing import (
    FORGOTTEN_AFTER,
    SECOND,
    Claimant,
    LeaseAnswer,
    Owner,
    TurnCalls,
    TurnStanding,
    answer_to,
    answers_in_order,
)
from socratic_bench.domain.pause import NONE, PauseNews, after
from socratic_bench.domain.provider_batch import is_batch
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import (
    CallCount,
    CallEnd,
    Lease,
    LeaseKey,
    ModelInHand,
    Spending,
    WaitingTurn,
)
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim
from socratic_bench.ports.stores.responses import TurnKey


class MemoryLeases(MemoryRole):
    """Grants and ends leases, and knows the live owners."""

    async def take_leases(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool = True
    ) -> Sequence[LeaseAnswer]:
        answers: dict[tuple[object, ...], LeaseAnswer] = {}
        async with self._state_alone() as state:
            now = self._clock()
            for lease in leases:
                if lease.key[:3] not in answers:
                    claimant = Claimant(owner, lease.key.lease_id, lease.reserve, may_judge)
                    answers[lease.key[:3]] = _grant(state, lease, claimant, now)
        return answers_in_order(((lease.key[:3], lease.key.lease_id) for lease in leases), answers)

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
        hand, told = frozenset(in_hand), tuple(each.model_copy(deep=True) for each in troubles)
        async with self._state_alone() as state:
            state.owners[owner] = Owner(self._clock(), overdue=overdue, in_hand=hand, troubles=told)

    async def leave(self, owner: str) -> None:
        async with self._state_alone() as state:
            now = self._clock()
            state.owners[owner] = Owner(now, gone=True)
            for name, each in list(state.owners.items()):
                if each.seen_at < now - FORGOTTEN_AFTER:
                    del state.owners[name]

    async def leave_others(self, owner: str) -> None:
        async with self._state_alone() as state:
            now = self._clock()
            others = {name for name, each in state.owners.items() if not each.gone}
            every = (calls for facts in state.facts.values() for calls in facts.calls.values())
            others |= {calls.owner for calls in every if calls.until >= now}
            others = {name for name in others if name != owner and not is_batch(name)}
            state.owners |= dict.fromkeys(others, Owner(now, gone=True))

    async def waiting_turns(self, experiment_id: str) -> Sequence[WaitingTurn]:
        async with self._state_alone() as state:
            return [
                WaitingTurn(
                    LeaseKey(experiment_id, *turn, each.lease_id), each.owner, each.reserved
                )
                for turn, each in state.facts_of(experiment_id).calls.items()
                if each.lease_id and is_batch(each.owner)
            ]

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
        spending: dict[str, Spending] = {}
        async with self._state_alone() as state:
            now = self._clock()
            for id_ in experiment_ids:
                if (account := state.accounts.get(id_)) is not None:
                    calls = state.facts_of(id_).calls.values()
                    in_flight = sum(each.in_flight(state.owners, now) for each in calls)
                    spending[id_] = Spending.of(account, in_flight)
        return spending

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        async with self._state_alone() as state:
            account = state.account_of(experiment_id)
            if account.left is not None and account.left < reserve:
                account.exhausted = True

    def _alive(self, state: StoreState) -> list[Owner]:
        now = self._clock()
        return [owner for owner in state.owners.values() if not owner.holder(now).is_dead]


class MemorySharedLimits(MemoryRole):
    """Divides shared limits, and keeps the pauses of models."""

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        granted: dict[str, int] = {}
        async with self._state_alone() as state:
            now = self._clock()
            until = now + round(seconds * SECOND)
            for scope, total, wants in claims:
                held = state.shares.get(scope, {})
                granted[scope], state.shares[scope] = after_claim(
                    held, total, owner, wants, now, until
                )
        return granted

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        answers: dict[str, PauseAnswer] = {}
        async with self._state_alone() as state:
            now = self._clock() / SECOND
            for each in news:
                pause, may_call = after(state.pauses.get(each.scope, NONE), each, now)
                if each.replied or each.pushed_back or each.wants_call:
                    state.pauses[each.scope] = pause
                answers[each.scope] = PauseAnswer(pause.at(now), may_call)
        return answers


def settle(state: StoreState, lease: LeaseKey, cost: int | None, *, begun: bool = True) -> bool:
    """End a lease; returns whether it was open.

    `cost` replaces the reservation; None: the reservation stays committed. A call that did not
    begin does not count. Raises StoreRefused for a cost that is too large to count.
    """
    turn = TurnKey(lease.run_id, lease.turn)
    calls = state.facts_of(lease.experiment_id).calls.get(turn, TurnCalls())
    if (reserved := calls.reserved_under(lease.lease_id)) is None:
        return False
    if cost is not None:
        account = state.account_of(lease.experiment_id)
        account.pay(cost, lease.experiment_id, reserved=reserved)
    calls.end(lease.lease_id, begun=begun)
    return True


def _grant(state: StoreState, lease: Lease, claimant: Claimant, now: int) -> LeaseAnswer:
    """Lease a turn if the rule of leases allows it.

    Raises StoreRefused, and changes nothing, for a reservation that is too large to count.
    """
    id_, turn = lease.key.experiment_id, TurnKey(lease.key.run_id, lease.key.turn)
    experiment, account = state.experiments.get(id_), state.account_of(id_)
    calls = state.facts_of(id_).calls.get(turn, TurnCalls())
    held = calls.open(state.owners, now)
    standing = TurnStanding(
        may_call=experiment is None or experiment.state.calls_may_begin,
        is_answered=state.response(turn) is not None,
        open=held,
        left=account.left,
    )
    answer = answer_to(claimant, standing)
    if answer is LeaseAnswer.GRANTED and not (held and held.is_of(claimant)):
        account.commit(lease.reserve, id_)
        until = now + round(lease.seconds * SECOND)
        calls.lease(claimant.lease_id, claimant.owner, until, lease.reserve)
        state.facts_to_change(id_).calls[turn] = calls
    return answer
