# SPDX-License-Identifier: Apache-2.0
"""The operations of the audit (contract page 99, section 5)."""

from treeclaim.api.protocol.operations import Forms, Operation
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.api.resources.extension.audit import answers, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature

_LIST = "treeclaim:audit:list"

OPERATIONS = (
    Operation(
        "GET",
        schemas.PATH,
        handlers.show_audit,
        policy=_LIST,
        summary="Look for what is wrong with what is stored.",
        answers=(answers.FINDINGS,),
        query=schemas.QUERY,
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
    Operation(
        "POST",
        schemas.PATH,
        handlers.audit_against_living,
        policy=_LIST,
        summary="Look for what is wrong, and for consumers that do not live any more.",
        answers=(answers.FINDINGS_FOR_A_LIST,),
        query=schemas.QUERY,
        body=schemas.LIVING,
        forms=Forms(body=schemas.with_uuids),
        most_values=MOST_VALUES_IN_BULK,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
    Operation(
        "POST",
        schemas.REPAIRS_PATH,
        handlers.repair_findings,
        policy="treeclaim:audit:repair",
        summary="Mend findings of an audit that need no guess.",
        answers=(answers.REPAIRS,),
        body=schemas.REPAIRS,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
)
