# SPDX-License-Identifier: Apache-2.0
"""A failing schedule in the form of PostgreSQL's isolation tester, and the command that repeats it."""

import textwrap

_WIDTH = 96


def written(case, failure):
    """The sessions with their steps, the permutation, what came of it, and why that is wrong.

    Args:
        case: The explored case.
        failure: The schedule that went wrong.
    """
    steps = failure.course.steps
    labels = _labels(steps)
    lines = [f"# {case.name}, on {case.database}", "", *_setup(case.world)]
    for number, name in enumerate(case.scripts):
        lines += ["", f"session s{number + 1}  # {name}"]
        for label, step in zip(labels, steps, strict=True):
            if step.session == number:
                lines.append(f"step {label} {{ {_shortened(step.statement)} }}")
    permutation = " ".join(
        f"{label} <waiting ...>" if step.waited else label
        for label, step in zip(labels, steps, strict=True)
    )
    lines += ["", "permutation", *textwrap.wrap(permutation, _WIDTH), ""]
    for number, results in enumerate(failure.outcome.results):
        lines += [f"s{number + 1} answered: {result}" for result in results]
    lines += [f"WRONG: {reason}" for reason in failure.reasons]
    lines += _closest(failure)
    lines += ["", "Again:", f"    {command(case, failure)}"]
    return "\n".join(lines)


def command(case, failure):
    """The command line that runs the schedule again."""
    choices = "".join(str(number + 1) for number in failure.course.choices)
    return (
        f"python -m tests.store.schedules --database {case.database} --world {case.world.name} "
        f"--scripts {' '.join(case.scripts)} --replay {choices}"
    )


def _labels(steps):
    counts = {}
    labels = []
    for step in steps:
        counts[step.session] = counts.get(step.session, 0) + 1
        labels.append(f"s{step.session + 1}_{counts[step.session]}")
    return labels


def _setup(world):
    yield "setup {"
    for table, rows in world.rows.items():
        for row in rows:
            yield f"    {table}: {', '.join(f'{name}={value}' for name, value in row.items())}"
    yield "}"


def _shortened(statement):
    return textwrap.shorten(" ".join(statement.split()), _WIDTH, placeholder=" ...")


def _closest(failure):
    """Describe the answers of the serial orders, and how the database differs from theirs."""
    candidates = []
    for serial in failure.serial:
        if serial in candidates:
            continue
        candidates.append(serial)
        yield "A serial order answers"
        yield from (f"    {' | '.join(results)}" for results in serial.results)
        differences = failure.outcome.after.picture.differences(serial.after.picture)
        if differences:
            yield "  and what there is differs from it so:"
            yield from (f"    {line}" for line in differences)
