"""Remembers which namespaces are being deleted: the API server says so where it refuses to create a Secret.

It says nothing where a resource is patched, and to read or watch namespaces takes a right that nothing else needs.
"""

from __future__ import annotations

from collections.abc import Callable

from edge_operator.engine.operations import Waiting
from edge_operator.engine.reasons import Waits
from edge_operator.kube import errors

BELIEVED_SECONDS = 30.0
"""By then each resource of the namespace is marked for deletion, or the namespace was made anew."""


class Endings:
    """Namespaces that are on their way out."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seen: dict[str, float] = {}

    def note(self, namespace: str, error: errors.Forbidden) -> None:
        """Take in a refusal.

        Raises:
            Waiting: the only reason is that the namespace is being deleted.
        """
        if error.namespace_terminating:
            self._seen[namespace] = self._monotonic()
            self.check(namespace)

    def check(self, namespace: str) -> None:
        """Nothing, if something may be made for a resource of this namespace.

        Raises:
            Waiting: it was refused a moment ago.
        """
        now = self._monotonic()
        self._seen = {name: at for name, at in self._seen.items() if now - at < BELIEVED_SECONDS}
        if namespace in self._seen:
            raise Waiting(Waits.DELETING, "the namespace is being deleted; nothing is made for it any more")
