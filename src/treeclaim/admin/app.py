# SPDX-License-Identifier: Apache-2.0
"""The admin listener's application: `/live`, `/ready` and `/metrics`."""

import logging

import falcon
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from treeclaim.admin.workers import forget_dead_workers
from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.schema import revisions as schema

_LOG = logging.getLogger(__name__)


def make_admin_application(store: Store, collectors: list[Collector]) -> falcon.App:  # type: ignore[type-arg]
    """Return the WSGI application of the admin listener.

    Args:
        store: The database of the service; it is asked whether the service is ready.
        collectors: What is measured at each scrape, besides what the workers count.
    """
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    for collector in collectors:
        registry.register(collector)
    application: falcon.App = falcon.App()  # type: ignore[type-arg]
    application.add_route("/live", _Live())
    application.add_route("/ready", _Ready(store))
    application.add_route("/metrics", _Metrics(registry))
    return application


class _Live:
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type = falcon.MEDIA_TEXT
        response.text = "alive\n"


class _Ready:
    """Ready means that the database answers and has the schema that the service needs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type = falcon.MEDIA_TEXT
        try:
            schema.require_ready(self._store.engine)
        except SchemaRevisionError as error:
            response.status = falcon.HTTP_503
            response.text = f"not ready: {error}\n"
        except StoreUnavailableError as error:
            # The database's own words go to the log only: this listener asks for no token.
            self._store.outages.failed(str(error), error.cause)
            response.status = falcon.HTTP_503
            response.text = f"not ready: {error}\n"
        else:
            self._store.outages.answered()
            response.text = "ready\n"


class _Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        forget_dead_workers()
        response.content_type = CONTENT_TYPE_LATEST
        response.data = generate_latest(self._registry)
