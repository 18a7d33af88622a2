# SPDX-License-Identifier: Apache-2.0
"""What others may call says what it does, and how it fails."""

import ast

from tests.repository.sources import trees

TOLD_BY_THEIR_CLASS = {"_Numbered.thread_id"}
FAULTS_OF_THE_CALLER = {"NotImplementedError", "RuntimeError"}
FAILURES_ARE_TOLD_ELSEWHERE = (
    "api/resources/",  # by the table of operations, from which the API description follows
    "cli/",  # by the exit code of a command
    "store/database/",  # `failures/` says what those of a driver mean
    "store/schema/migrations/",
)


def public_functions(tree):
    """Public functions and methods, those of private classes included, by name."""
    owners = [
        ("", tree),
        *((f"{c.name}.", c) for c in tree.body if isinstance(c, ast.ClassDef)),
    ]
    return {
        f"{prefix}{node.name}": node
        for prefix, owner in owners
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if not any(
            ast.unparse(decorator).endswith((".setter", "overload"))
            for decorator in node.decorator_list
        )
    }


def bases_in(tree):
    """The names of the bases of each class of a module."""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return {
        node.name: [ast.unparse(base).partition("[")[0] for base in node.bases] for node in classes
    }


def is_told_by_a_base(name, functions, bases):
    """Whether a class above that of a method, in the same module, says what the method does."""
    owner, _, method = name.rpartition(".")
    above = [f"{base}.{method}" for base in bases.get(owner, ())]
    return any(
        (each in functions and ast.get_docstring(functions[each]))
        or is_told_by_a_base(each, functions, bases)
        for each in above
    )


def raised_in(function):
    """The errors that a function itself raises; not those of functions within it."""
    waiting, errors = list(function.body), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            errors.add(ast.unparse(node.exc.func).rpartition(".")[2])
        waiting += ast.iter_child_nodes(node)
    return {error for error in errors if error.endswith("Error") and not error.startswith("_")}


def test_every_public_function_says_what_it_does():
    silent = set()
    for path, tree in trees().items():
        if not path.startswith("store/schema/migrations/"):
            functions, bases = public_functions(tree), bases_in(tree)
            silent |= {
                name
                for name, function in functions.items()
                if not ast.get_docstring(function)
                and not is_told_by_a_base(name, functions, bases)
            }
    assert silent == TOLD_BY_THEIR_CLASS


def test_whoever_calls_a_public_function_reads_which_errors_it_raises():
    unsaid = {
        f"{path} {name}": missing
        for path, tree in trees().items()
        if not path.startswith(FAILURES_ARE_TOLD_ELSEWHERE)
        for name, function in public_functions(tree).items()
        if (text := ast.get_docstring(function)) is not None
        if (missing := {e for e in raised_in(function) - FAULTS_OF_THE_CALLER if e not in text})
    }
    assert unsaid == {}
