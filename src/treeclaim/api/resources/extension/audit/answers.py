# SPDX-License-Identifier: Apache-2.0
"""What the operations of the audit answer (contract page 99, section 5)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import INTEGER, STRING, mapping, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.extension.audit import FindingKind, RepairResult

_ITEMS: Schema = {"type": "array", "items": {"type": "object"}}
_FINDINGS = record(
    {
        "findings": mapping(
            f"^({'|'.join(FindingKind)})$", record({"count": INTEGER, "items": _ITEMS})
        )
    }
)

FINDINGS = Answer(body=_FINDINGS)
"""What was found, by kind."""

FINDINGS_FOR_A_LIST = Answer(body=_FINDINGS, dated=False)
"""The same for who sent a list of who lives."""

REPAIRS = Answer(
    body=record(
        {
            "repairs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "kind": {"enum": list(FindingKind)},
                        "result": {"enum": list(RepairResult)},
                        "detail": STRING,
                    },
                    "required": ["kind", "result"],
                },
            }
        }
    ),
    dated=False,
)
"""Each repair as it was asked for, with what became of it."""
