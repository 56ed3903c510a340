"""Several servers of one model, asked as if they were one: each question goes to the
server with the fewest under way, and to another where that one fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Reply
from vrag_kit.generation.remote.calls import Calls, Fields, NobodyError
from vrag_kit.generation.remote.completions import NOT_ANSWERED
from vrag_kit.types import Failure, Status

_OTHERS_MAY_TAKE = 10.0
"""Seconds that servers are waited for at the beginning, once one has answered; they join
later.
"""
_FIRST_REST = 5.0
_LONGEST_REST = 300.0
"""Seconds until a server that failed is tried again; they double each time."""
_GONE = "does not answer, or answers wrongly: the others go on, and it is tried again now and then"


class _OtherModelError(VragError):
    """A server tells another thing of its model than the first one."""


@dataclass(slots=True)
class _Server:
    """One of the servers, and how it fares."""

    calls: Calls
    under_way: int = 0
    """Questions that it is being asked."""
    met: bool = False
    """Whether it was found to serve the same model as the others."""
    trying: bool = False
    """Whether it is being made out just now."""
    rests_until: float = 0.0
    """When it is tried again, by the monotonic clock; 0 while all is well."""
    answered: float = 0.0
    """When it last answered, by that clock."""
    rest: float = 0.0
    """How long it rests when it fails next, in seconds; 0 for the shortest."""
    problem: VragError | None = None
    """Why it could not be met."""
    said: set[str] = field(default_factory=set)
    """What was said of it, of which each is said once."""


class SeveralCalls:
    """Calls of several servers of one model, with what `Calls` offers; they may run in
    several threads.

    A server that failed where another answered rests, and is then met again beside the
    work; it joins when it answers and serves the same model. Where all fail, each
    is asked as patiently as if it were alone, first the one that answered last.
    """

    def __init__(self, servers: Sequence[Calls], owner: str) -> None:
        self.timeout = servers[0].timeout
        self._owner = owner
        self._servers = [_Server(calls) for calls in servers]
        self._changed = threading.Condition()
        self._about: dict[str, str] = {}
        self._told_by = ""
        self._fields: Fields = {}
        self._tokens: dict[str, int] = {}

    def try_once(self, fields: Fields) -> dict[str, int]:
        """One short call to each; returns the tokens of one of them, none where one does
        not count them.

        One that refuses the key, the model or a field, or answers no words, is left out
        while another answers; one that does not answer in time joins later. Raises
        `VragError` where none answers, and where two serve different models.
        """
        self._fields = fields
        with self._changed:
            for server in self._servers:
                self._try(server)
            self._changed.wait_for(lambda: self._met() or not self._trying())
            self._changed.wait_for(lambda: not self._trying(), _OTHERS_MAY_TAKE)
            problems = [server.problem for server in self._servers if server.problem]
            for problem in problems:
                told = not self._met() and not isinstance(problem, NobodyError)
                if told or isinstance(problem, _OtherModelError):
                    raise problem
            if not self._met():
                others = ", ".join(server.calls.url for server in self._servers[1:])
                raise NobodyError(f"{self._servers[0].problem} Nor can {others} be asked.")
            for server in self._servers:
                if server.problem:
                    self._say(server, _why_not(server.problem))
            return self._tokens

    def reply(self, messages: Sequence[Fields], fields: Fields, limit: int) -> tuple[Reply, bool]:
        """As `Calls.reply`; where servers fail, what the last one did."""
        failed: list[_Server] = []
        while (server := self._next(failed)) is not None:
            try:
                reply, own_fault = self._ask(server, messages, fields, limit)
            except VragError:
                failed.append(server)
                continue
            failure = reply.failure
            if own_fault or failure is None or failure.kind not in NOT_ANSWERED:
                self._blame(failed, server)
                return reply, own_fault
            failed.append(server)
        if not failed:
            raise VragError(
                f"{self._owner}: none of its servers serves the same model any more. Start them as"
                " they were, and run again; answers so far are kept."
            )
        for server in sorted(failed, key=lambda each: each.answered, reverse=True):
            reply, own_fault = self._ask(server, messages, fields, limit, patient=True)
            failure = reply.failure
            if own_fault or failure is None or failure.kind not in NOT_ANSWERED:
                break
        return reply, own_fault

    def _ask(
        self,
        server: _Server,
        messages: Sequence[Fields],
        fields: Fields,
        limit: int,
        *,
        patient: bool = False,
    ) -> tuple[Reply, bool]:
        """What one server says; another model's words are a failure."""
        with self._changed:
            server.under_way += 1
        try:
            reply, own_fault = server.calls.reply(messages, fields, limit, patient=patient)
        finally:
            with self._changed:
                server.under_way -= 1
        served, expected = reply.fields.get("served"), self._about.get("model")
        if served and expected and served != expected:
            words = f"{server.calls.url} now serves {served!r}, expected {expected!r}"
            return Reply(raw=None, failure=Failure(Status.ERROR, words)), False
        return replace(reply, fields={**reply.fields, "endpoint": server.calls.url}), own_fault

    def _next(self, tried: Sequence[_Server]) -> _Server | None:
        """The server to be asked next: the least busy one, those that rest last."""
        with self._changed:
            for server in self._servers:
                if server.rests_until and time.monotonic() >= server.rests_until:
                    self._try(server)
            left = [each for each in self._servers if each.met and each not in tried]
            return min(left, key=lambda each: (each.rests_until > 0, each.under_way), default=None)

    def _blame(self, failed: Sequence[_Server], answered: _Server) -> None:
        """Let servers rest that failed where another one answered."""
        with self._changed:
            answered.answered = time.monotonic()
            for server in failed:
                if not server.rests_until:
                    self._put_to_rest(server)
                    self._say(server, _GONE)
            if not answered.rests_until:
                answered.rest = 0.0

    def _put_to_rest(self, server: _Server) -> None:
        server.rest = min(max(2 * server.rest, _FIRST_REST), _LONGEST_REST)
        server.rests_until = time.monotonic() + server.rest

    def _say(self, server: _Server, words: str) -> None:
        """Print something of a server, once."""
        if words not in server.said:
            server.said.add(words)
            print(f"note: {self._owner}: {server.calls.url} {words}", flush=True)

    def _met(self) -> bool:
        return any(server.met for server in self._servers)

    def _trying(self) -> bool:
        return any(server.trying for server in self._servers)

    def _try(self, server: _Server) -> None:
        """Begin to make out, beside the work, whether a server is there."""
        if not server.trying:
            server.trying = True
            threading.Thread(target=self._meet, args=(server,), daemon=True).start()

    def _meet(self, server: _Server) -> None:
        """Make one short call, and learn what is served."""
        problem: VragError | None = None
        tokens: dict[str, int] = {}
        about: dict[str, str] = {}
        try:
            tokens, about = server.calls.meet(self._fields)
        except VragError as error:
            problem = error
        with self._changed:
            problem = problem or self._difference(about, server)
            server.trying = False
            server.problem = problem
            if problem is None:
                self._welcome(server, tokens, about)
            else:
                self._send_away(server, problem)
            self._changed.notify_all()

    def _welcome(self, server: _Server, tokens: dict[str, int], about: dict[str, str]) -> None:
        """A server that answers and serves the model: it is asked from now on."""
        if not self._met():
            self._about = about
            self._told_by = server.calls.url
            self._tokens = tokens
        elif not tokens:
            self._tokens = {}
        if server.rests_until:
            self._say(server, "answers now")
        server.met = True
        server.rests_until = 0.0

    def _send_away(self, server: _Server, problem: VragError) -> None:
        """A server that does not answer, or serves another model: it rests."""
        self._put_to_rest(server)
        if not isinstance(problem, NobodyError):
            server.met = False
            if self._met():
                self._say(server, _why_not(problem))

    def _difference(self, about: Mapping[str, str], server: _Server) -> VragError | None:
        """What is wrong where a server tells another thing of its model than the first
        one.
        """
        for name in about:
            if name in self._about and about[name] != self._about[name]:
                return _OtherModelError(
                    f"{self._owner}: {server.calls.url} serves {name} {about[name]!r}, and"
                    f" {self._told_by} serves {name} {self._about[name]!r}. All must serve the same"
                    " model: start them alike, or make two entries of them, with a `name` each."
                )
        return None


def _why_not(problem: VragError) -> str:
    """What is said of a server that cannot be asked while others can."""
    if isinstance(problem, NobodyError):
        return _GONE
    return f"is left out, the others go on, and it is tried again now and then: {problem}"
