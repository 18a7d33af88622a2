# SPDX-License-Identifier: Apache-2.0
"""What POST /treeclaim/providers answers (contract page 99, section 8)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import INTEGER, STRING, STRINGS, record
from treeclaim.model.extension.batch import BatchResult

APPLIED = Answer(
    body=record(
        {
            "providers": {
                "type": "array",
                "items": record(
                    {
                        "uuid": STRING,
                        "generation": INTEGER,
                        "result": {"enum": [result.value for result in BatchResult]},
                        "changed": STRINGS,
                    }
                ),
            }
        }
    ),
    dated=False,
)
"""What became of each entry, in their order."""
