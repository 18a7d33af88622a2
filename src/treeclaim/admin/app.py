# SPDX-License-Identifier: Apache-2.0
"""The admin listener's application: `/live`, `/ready` and `/metrics`."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import falcon
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from treeclaim import metrics
from treeclaim.admin import Census, FaultKind, KeystoneFault, TakeCensus
from treeclaim.admin.certificates import Expiry, list_expiry_warnings
from treeclaim.admin.collectors import Collect, FunctionCollector
from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.schema import revisions as schema

if TYPE_CHECKING:
    from treeclaim.admin.keystone_check import KeystoneState

_LOG = logging.getLogger(__name__)

_FAILURE_SECONDS = 300.0
"""Seconds for which `/ready` reports a failed thread."""


def make_admin_application(
    store: Store,
    collectors: Sequence[Collect],
    census: TakeCensus | None = None,
    expiries: Sequence[Expiry] = (),
    keystone: "KeystoneState | None" = None,
) -> falcon.App:  # type: ignore[type-arg]
    """Return the WSGI application; `census` is None if the workers are unknown, `keystone` without Keystone."""
    registry = CollectorRegistry()
    if metrics.slots is not None:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    for collect in collectors:
        registry.register(FunctionCollector(collect))
    application: falcon.App = falcon.App()  # type: ignore[type-arg]
    application.add_route("/live", _Page(partial(_show_live, census)))
    application.add_route("/ready", _Page(partial(_show_ready, store, census, expiries, keystone)))
    application.add_route("/metrics", _Page(partial(_show_metrics, registry)))
    return application


class _Page:
    """A page that a function writes into the response."""

    def __init__(self, show: Callable[[falcon.Response], None]) -> None:
        self._show = show

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type = falcon.MEDIA_TEXT
        self._show(response)

    on_head = on_get


def _show_live(census: TakeCensus | None, response: falcon.Response) -> None:
    """Return 503 if all workers that have started are stalled."""
    response.text = "alive\n"
    if census is None:
        return
    workers = census()
    if workers.silent_pids and not workers.answering_pids:
        _refuse(response, f"not alive: {_describe_silent(workers)}")
    elif workers.silent_pids:
        response.text = f"alive, but {_describe_silent(workers)}\n"


def _show_ready(
    store: Store,
    take_census: TakeCensus | None,
    expiries: Sequence[Expiry],
    state: "KeystoneState | None",
    response: falcon.Response,
) -> None:
    """Return 503 with the reason if a read would fail now.

    A read requires a database with the required schema, a worker that has just read the inventory in a request
    thread, and a Keystone that could validate tokens. An expired certificate is only a warning, because each client
    decides whether to accept it.
    """
    census = None if take_census is None else take_census()
    keystone = None if state is None else state.fault
    fault = (
        _find_database_fault(store)
        or (_find_worker_fault(census) if census is not None else None)
        or (_find_keystone_fault(keystone) if keystone is not None else None)
    )
    if fault is not None:
        _refuse(response, f"not ready: {fault}")
        return
    now = time.time()
    warnings = [*list_expiry_warnings(expiries, now), *_describe_failed_helpers(now)]
    if census is not None:
        warnings += _describe_worker_problems(census)
    if keystone is not None:
        warnings.append(_describe_keystone(keystone))
    response.text = f"ready, but {'; '.join(warnings)}\n" if warnings else "ready\n"


def _find_database_fault(store: Store) -> str | None:
    try:
        schema.require_ready(store.engine)
    except SchemaRevisionError as error:
        return str(error)
    except StoreUnavailableError as error:
        # Only the log gets the message of the database, because this listener requires no token.
        store.outages.record_failure(str(error), error.cause)
        return str(error)
    store.outages.record_success()
    return None


def _find_worker_fault(census: Census) -> str | None:
    if not census.answering_pids:
        reason = f": {_describe_silent(census)}" if census.silent_pids else ""
        return f"no worker answers{reason}"
    return None if census.reading_pids else "no worker can answer a read"


def _find_keystone_fault(fault: KeystoneFault) -> str | None:
    return None if fault.kind is FaultKind.DOUBTFUL else _describe_keystone(fault)


def _describe_keystone(fault: KeystoneFault) -> str:
    return f"[keystone_authtoken]: {fault.summary}"


def _describe_worker_problems(census: Census) -> Iterator[str]:
    if unable_pids := sorted({*census.answering_pids} - {*census.reading_pids}):
        yield f"these worker processes cannot answer a read: {', '.join(map(str, unable_pids))}"
    if census.is_reload_refused:
        yield "the last reload was refused; the log says why"


def _describe_failed_helpers(now: float) -> list[str]:
    """Describe the background threads of all processes that failed recently."""
    if metrics.slots is None:
        return []
    samples = [
        sample
        for metric in MultiProcessCollector(CollectorRegistry()).collect()  # type: ignore[no-untyped-call]
        if metric.name == metrics.HELPER_FAILED_NAME
        for sample in metric.samples
    ]
    return [
        f"the thread {sample.labels['thread']} failed {now - sample.value:.0f} s ago"
        for sample in samples
        if now - sample.value < _FAILURE_SECONDS
    ]


def _refuse(response: falcon.Response, reason: str) -> None:
    response.status = falcon.HTTP_503
    response.text = f"{reason}\n"


def _describe_silent(census: Census) -> str:
    return f"these worker processes have stalled: {', '.join(map(str, census.silent_pids))}"


def _show_metrics(registry: CollectorRegistry, response: falcon.Response) -> None:
    response.content_type = CONTENT_TYPE_LATEST
    if metrics.slots is not None:
        metrics.slots.find_living()
    response.data = generate_latest(registry)
