# SPDX-License-Identifier: Apache-2.0
"""Files of provider trees: their meaning, and that no file causes harm or a traceback."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from treeclaim.client.topology import file
from treeclaim.client.topology.file import parse_topology


def list_names(text):
    return [provider.name for provider in parse_topology(text, "file").providers]


def list_problems(text):
    """Return the errors of a text, with their lines."""
    return sorted(set(parse_topology(text, "file").problems))


def test_name_templates_are_filled_in_and_never_executed():
    text = "providers: [{name: 'h-{n:03}-{{x}}', count: 2, children: [{name: '{parent}/a'}]}]"
    assert list_names(text) == ["h-001-{x}", "h-001-{x}/a", "h-002-{x}", "h-002-{x}/a"]
    for name in ("{n.__class__}", "{n:>999999999}", "{0}", "{x}", "{", "}"):
        (problem,) = list_problems(f"providers: [{{name: '{name}'}}]")
        assert "filled in" in problem.text


def test_scalar_names_are_read_as_text():
    (provider,) = parse_topology(
        "providers: [{name: 007, aggregates: [1e3], traits: [NO]}]", "f"
    ).providers
    assert (provider.name, provider.values["traits"]) == ("007", {"NO"})
    (provider,) = parse_topology(
        "providers: [{name: 12:30, attributes: {c: TRUE, d: -4, e: '12:30'}}]", "f"
    ).providers
    assert provider.name == "12:30"
    assert provider.values["attributes"] == {"c": True, "d": -4, "e": "12:30"}
    assert "attributes.a" in list_problems("providers: [{name: a, attributes: {a: 2.10}}]")[0].text


def test_omitted_and_empty_parts_differ():
    left_out, empty = parse_topology(
        "providers: [{name: a}, {name: b, inventories: {}, traits: [], aggregates: [], "
        "children: [], parent: null}]",
        "file",
    ).providers
    assert left_out.values == {}
    assert empty.values == {"inventories": {}, "traits": set(), "aggregates": set()}
    assert (left_out.parent_line, empty.parent_line, empty.parent) == (0, 1, None)
    assert (left_out.children, empty.children) == (None, [])


def test_merge_keys_and_aliases_are_supported():
    text = """
common: &c {traits: [A], inventories: &i {VCPU: 4}}
providers:
  - {<<: *c, name: a}
  - {<<: *c, name: b, inventories: {<<: *i, MEMORY_MB: 5}}
"""
    (problem,) = list_problems(text)
    assert "unknown 'common'" in problem.text
    text = """
providers:
  - &c {name: a, traits: [A], inventories: &i {VCPU: 4}}
  - {<<: *c, name: b, inventories: {<<: *i, MEMORY_MB: 5}}
"""
    _, second = parse_topology(text, "file").providers
    assert second.values == {
        "traits": {"A"},
        "inventories": {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 5}},
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("providers:\n - &a {name: a, children: [*a]}", 2, "in itself"),
        ("providers: &a [*a]", 1, "in itself"),
        ("providers:\n - name: a\n   name: b", 3, "line 2 has it too"),
        ("providers:\n - {name: a, inventories: {VCPU: 1,\n     VCPU: 2}}", 3, "twice"),
        ("providers:\n - {name: a, traits: [A,\n    A]}", 3, "twice"),
        ("[" * 5000, 1, "nested"),
        ("{a: " * 5000, 1, "nested"),
        ("providers: [{name: a, count: 2000000}]", 1, "more than"),
        ("providers: [{name: a, count: yes}]", 1, "count"),
        ("providers: [{name: a, traits: }]", 1, "write []"),
        ("providers: [{name: a, inventories: }]", 1, "write {}"),
        ("providers: [{name: a, inventories: {VCPU: 3000000000}}]", 1, "VCPU.total: it must be"),
        ("providers: [{name: a, inventories: {VCPU: true}}]", 1, "not 'true'"),
        ("providers: [{name: a, inventories: {MEMORY_MB: 64GB}}]", 1, "not '64GB'"),
        ("providers: [{name: a, inventories: {VCPU: 010}}]", 1, "not '010'"),
        ("providers: [{name: a, inventories: {VCPU: 1_000}}]", 1, "not '1_000'"),
        ("providers: [{name: a, inventories: {VCPU: {total: 1, reserved: 2}}}]", 1, "reserved"),
        ("providers: [{name: a, inventories: {VCPU: {allocation_ratio: .nan}}}]", 1, "ratio"),
        ("providers: [{name: a, inventories: {vcpu: 1}}]", 1, "capital"),
        (f"providers: [{{name: a, traits: [{'A' * 256}]}}]", 1, "255"),
        (f"providers: [{{name: {'a' * 201}}}]", 1, "200"),
        ("providers: [{name: ''}]", 1, "name"),
        ("providers: [{name: ~}]", 1, "name"),
        ("providers: [{name: a, tratis: []}]", 1, "did you mean 'traits'"),
        ("providers: [{name: a, children: [{name: b, parent: c}]}]", 1, "must not name a parent"),
        ("providers: [{name: !!python/object:os.system a}]", 1, "cannot be read"),
        ("providers: [{name: a}]\n---\nproviders: []", 2, "not YAML"),
        ("providers: [{name: a, ? [x] : y}]", 1, "a key"),
        ("providers: [{name: host-{n}}]", 1, 'quote texts with braces: "host-{n}"'),
        ("a\x00b", 1, "not YAML"),
        ("%YAML 9", 1, "YAML"),
        ("providers:\n\t- name: a", 2, "a tab"),
        ("", 1, "providers"),
        ("providers: {}", 1, "a list of providers"),
        ("- 1", 1, "'providers' is expected"),
        ("*a", 1, "not YAML"),
        ("providers: [{name: a, count: 9" + "9" * 5000 + "}]", 1, "count: it must be"),
    ],
    ids=range(37),
)
def test_errors_are_reported_with_their_lines(text, line, message):
    faults = list_problems(text)
    assert any(fault.line == line and message in fault.text for fault in faults), faults


def test_exponential_aliases_are_refused_quickly(monkeypatch):
    monkeypatch.setattr(file, "MOST_PROVIDERS", 2000)
    lines = ["providers:", " - &x0 {name: '{n}{parent}'}"]
    for number in range(1, 60):
        above = f"*x{number - 1}"
        lines.append(f" - &x{number} {{name: 'a{number}', children: [{above}, {above}]}}")
    (problem,) = list_problems("\n".join(lines))
    assert "more than 2000 providers" in problem.text


ENTRY_MEMBERS = st.sampled_from(
    ("name", "uuid", "count", "parent", "inventories", "traits", "aggregates", "children", "x")
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(("a", "VCPU", "CUSTOM_X", "{n}", "{", "", "é", "<<", "2024-13-40")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(ENTRY_MEMBERS | st.just("total"), inner, max_size=5)
    ),
    max_leaves=25,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(ANYTHING)
def test_any_document_is_parsed_or_refused_with_problems(document):
    for text in (yaml.safe_dump({"providers": document}), yaml.safe_dump(document)):
        topology = parse_topology(text, "file")
        assert topology.providers or topology.problems or not document
        assert all(problem.line >= 1 and problem.text for problem in topology.problems)


@settings(max_examples=150, deadline=None)
@given(st.text("providers:[]{}&a*-\n \"'|>!%@,?#~<\t\x00é1", max_size=60))
def test_any_text_is_parsed_or_refused_with_problems(text):
    topology = parse_topology(text, "file")
    assert topology.problems or "providers" in text
