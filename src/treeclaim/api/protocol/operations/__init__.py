# SPDX-License-Identifier: Apache-2.0
"""Operations as data: the inputs and the answers of each method of a path.

The pipeline, the policy's rules and the API description are made from these declarations.
"""

from treeclaim.api.protocol.operations.call import Call, Reply, Versioned
from treeclaim.api.protocol.operations.operation import EMPTY, Answer, Forms, Operation

__all__ = ["EMPTY", "Answer", "Call", "Forms", "Operation", "Reply", "Versioned"]
