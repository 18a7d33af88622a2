# SPDX-License-Identifier: Apache-2.0
"""Assembles the service: database, replica, policy, and the layers around the pipeline."""

import logging
from functools import cache
from typing import TYPE_CHECKING

import falcon
from oslo_middleware import cors, http_proxy_to_wsgi

from treeclaim.api.admission import Admission
from treeclaim.api.description.openapi import build_description
from treeclaim.api.middleware.authentication import (
    BasicAuthentication,
    KeystoneAuthentication,
    NoAuthentication,
)
from treeclaim.api.middleware.layers import RequestLayer
from treeclaim.api.pipeline import Pipeline
from treeclaim.api.policy_rules import list_rules
from treeclaim.api.protocol.operations.call import Services
from treeclaim.api.protocol.policy import Policy
from treeclaim.api.protocol.texts import to_json
from treeclaim.api.routes import OPERATIONS
from treeclaim.config import Configuration
from treeclaim.model.errors import TreeclaimError
from treeclaim.replica import Batches, Replica, SharedForest
from treeclaim.store import Store
from treeclaim.store.database.engine import await_database
from treeclaim.store.database.requirements import require_usable_server
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema
from treeclaim.ui.serving import Pages
from treeclaim.watching import Hub

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)


def start_services(configuration: Configuration) -> Services:
    """Create the services of handlers over the configured database; the caller closes the store.

    Raises:
        PolicyFileError: if the policy files are invalid.
        SchemaRevisionError: if the schema of the database has another revision.
        StoreUnavailableError: if the database cannot be reached.
    """
    policy = Policy(configuration.options, list_rules())
    store = open_store(configuration)
    try:
        prepare_database(store, configuration)
    except TreeclaimError:
        store.close()
        raise
    return create_services(configuration, policy, store)


def open_store(configuration: Configuration) -> Store:
    """Return the configured database without connecting to it."""
    return Store(configuration.database, attempts=configuration.claim_attempts)


def prepare_database(store: Store, configuration: Configuration) -> None:
    """Wait for the database, and ensure that it has schema and standard names.

    Raises:
        SchemaRevisionError: if the schema of the database has another revision.
        StoreUnavailableError: if the database cannot be reached.
    """
    options = configuration.options.placement_database
    await_database(store.engine, attempts=options.max_retries, pause=options.retry_interval)
    require_usable_server(store.engine, configuration.database)
    if options.sync_on_startup:
        schema.sync(store.engine)
    schema.require_ready(store.engine)
    store.write(standard_names.sync_standard_names)


def create_services(
    configuration: Configuration,
    policy: Policy,
    store: Store,
    inventory: SharedForest | None = None,
) -> Services:
    """Create the services of handlers over a prepared database.

    No other process may use `store`. Without an `inventory`, the database is read.
    """
    placement = configuration.options.placement
    store.housekeeper.start()
    replica = Replica(store, max(configuration.server_threads // 4, 1), inventory)
    replica.keep_up()
    return Services(
        store=store,
        replica=replica,
        batches=Batches(store, replica),
        policy=policy,
        search=configuration.search,
        hub=Hub(store),
        options=configuration.options.treeclaim,
        claim_attempts=configuration.claim_attempts,
        admission=Admission(configuration.server_threads),
        incomplete_project_id=placement.incomplete_consumer_project_id,
        incomplete_user_id=placement.incomplete_consumer_user_id,
        description=_openapi_document,
    )


@cache
def _openapi_document() -> bytes:
    # As objects, the document needs seven times as much memory.
    return to_json(build_description(OPERATIONS))


def create_application(services: Services, configuration: Configuration) -> "WSGIApplication":
    """Return the WSGI application over the services."""
    return _wrap_in_layers(_pipeline(services), configuration, services.admission)


def _pipeline(services: Services) -> "WSGIApplication":
    application = falcon.App()
    # A response without a body has no content type.
    application.resp_options.default_media_type = None  # type: ignore[assignment]
    application.add_sink(Pipeline(services), prefix=r"/")
    return application


def _wrap_in_layers(
    application: "WSGIApplication", configuration: Configuration, admission: Admission
) -> "WSGIApplication":
    """Wrap the layers around the pipeline; a request enters the last layer first."""
    options = configuration.options.api
    if options.auth_strategy == "noauth2":
        _LOG.warning(
            "[api]/auth_strategy is noauth2: the service trusts the identity in each token "
            "without verification. Use it only for tests and on a single machine."
        )
        application = NoAuthentication(application)
    elif options.auth_strategy == "http_basic":
        application = BasicAuthentication(
            application, options.http_basic_auth_user_file, admission
        )
    else:
        application = KeystoneAuthentication(application, configuration, admission)
    if configuration.options.cors.allowed_origin:
        application = cors.CORS(application, configuration.options)
    if configuration.pages:
        application = Pages(application)
    if configuration.options.oslo_middleware.enable_proxy_headers_parsing:
        application = http_proxy_to_wsgi.HTTPProxyToWSGI(application, configuration.options)
    if configuration.options.treeclaim.tracing:
        # The libraries are an extra.
        from treeclaim.api.middleware.tracing import Tracing  # noqa: PLC0415

        application = Tracing(application)
    return RequestLayer(application)
