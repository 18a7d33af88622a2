# SPDX-License-Identifier: Apache-2.0
"""The table of all commands: words, class, and a line of help.

Only the command that runs is imported, as the modules of the service take seconds. The help of the program
imports no command.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

_COLUMNS = re.compile(" {2,}")

_ENDPOINT_OPTIONS = ("--endpoint", "--os-cloud", "--token")
"""Options of cloud commands that may precede the command."""


class CommandEntry(NamedTuple):
    """A command: `module:class` below `treeclaim.cli`, a line of help, and a short name or None."""

    target: str
    help: str
    alias: str | None = None

    def load(self) -> Any:
        """Import the class."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(f"treeclaim.cli.{module}"), name)


# Words, short name, class and line of help of each command.
_COMMANDS = """
serve                         serve:Serve                              run the service; SIGHUP reloads it without losing a request
db sync                       service.commands:SyncDatabase            upgrade the schema to the newest revision
db version                    service.commands:ShowVersion             print the revision of the Placement schema
db stamp                      service.commands:StampDatabase           record a revision without migrating the schema
db online_data_migrations     service.commands:MigrateOnline           fill in the columns that older rows lack
db prune                      service.commands:PruneDatabase           delete rows that the change feed no longer needs
db reset-feed                 service.commands:ResetFeed               make every worker load everything again
db check                      service.commands:CheckDatabase           check whether the database can be taken over
upgrade check                 service.commands:CheckUpgrade            check whether an upgrade needs preparation
config sample                 service.commands:PrintConfigSample       print a commented placement.conf
config check                  service.commands:CheckConfig             check the configuration, and print the options in effect
policy sample                 service.commands:PrintPolicySample       print a commented policy.yaml
admin                         serve:ServeAdmin                         serve liveness, readiness and metrics
load                          providers.load:LoadProviders             load provider trees from a file
copy                          providers.load:CopyService               copy everything from one Placement API endpoint to another, and compare the two
edit                          providers.edit:EditProvider              edit a provider's inventories, traits, aggregates and attributes
compare                       providers.compare:CompareServices        compare the answers of two services, such as Placement and Treeclaim
candidate list = candidates   search.candidates:ListCandidates         list the candidates of a query
candidate explain = explain   search.candidates:ExplainCandidates      show why a query has no candidate
candidate count = fit         search.candidates:CountCandidates        count how many consumers still fit
allocation claim = claim      consumers.allocations:ClaimAllocation    claim a candidate for a consumer
allocation place = place      consumers.allocations:PlaceConsumers     find places for consumers and claim them, all or nothing
allocation release = release  consumers.allocations:ReleaseAllocation  release all allocations of a consumer
allocation show               consumers.allocations:ShowAllocation     show the allocations of a consumer
hold create                   consumers.holds:CreateHolds              reserve capacity for later claims
hold list                     consumers.holds:ListHolds                list holds and the amounts drawn from them
condition set                 providers.conditions:SetCondition        stop new allocations from a provider
condition unset               providers.conditions:UnsetCondition      remove a condition from a provider
condition list                providers.conditions:ListConditions      list the conditions of providers
mix set                       planning.mixes:SetMix                    create or replace a mix
mix learn                     planning.mixes:LearnMix                  make a mix of the stored requests of consumers
mix show                      planning.mixes:ShowMix                   show a mix
mix list                      planning.mixes:ListMixes                 list all mixes
mix delete                    planning.mixes:DeleteMix                 delete a mix
plan drain                    planning.plans:DrainProviders            list the moves that empty hosts
plan make-room                planning.plans:MakeRoom                  list the moves that make room for more consumers
plan defragment               planning.plans:Defragment                list the moves that make most room for a mix
survival                      planning.survival:CheckSurvival          check whether all consumers would find a place elsewhere if hosts or racks failed
request import                consumers.requests:ImportRequests        store the requests of consumers
aggregate list                providers.aggregates:ListAggregates      list the names of aggregates
aggregate set                 providers.aggregates:SetAggregate        name an aggregate
aggregate import              providers.aggregates:ImportAggregates    name aggregates as Nova or a file does
provider tree = tree          providers.tree:ListTrees                 show provider trees
provider show                 providers.show:ShowProvider              show a provider
provider watch = watch        providers.show:WatchChanges              print changes as they happen
audit                         consumers.audit:Audit                    find errors in the records of the service, and repair them
demo                          demo:Demo                                run the main commands against a temporary service
"""

# First words of two, with their lines of help.
_GROUPS = """
db          create, upgrade and tidy up the database
upgrade     prepare an upgrade
config      show and check the configuration
policy      show the policy
candidate   search for candidates
allocation  claim, place, release and show allocations
hold        reserve capacity for later claims
condition   stop new allocations from a provider, or allow them again
mix         store the requests that the cloud expects
plan        list the moves that reach a goal
request     store the requests of consumers
aggregate   list, set and import the names of aggregates
provider    show providers, and watch their changes
"""


def _read_commands() -> Iterator[tuple[str, CommandEntry]]:
    for line in _COMMANDS.strip().splitlines():
        names, target, text = _COLUMNS.split(line, maxsplit=2)
        name, _, alias = names.partition(" = ")
        yield name, CommandEntry(target, text, alias or None)


COMMANDS = dict(_read_commands())
"""Commands by their words."""

GROUPS = dict(_COLUMNS.split(line, maxsplit=1) for line in _GROUPS.strip().splitlines())
"""Lines of help by the first words of commands."""

_BY_ALIAS = {entry.alias: entry for entry in COMMANDS.values() if entry.alias is not None}


def list_commands() -> dict[str, CommandEntry]:
    """Return the commands by their words and aliases."""
    return COMMANDS | _BY_ALIAS


def find_command(words: Sequence[str]) -> tuple[str, CommandEntry] | None:
    """Return the name and the entry of the command that begins a command line; None without one."""
    commands = list_commands()
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in commands:
            return name, commands[name]
    return None


def split_leading_options(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split a command line; return its end from the command on, and the endpoint options before it."""
    begin = 0
    while begin < len(words) and words[begin].partition("=")[0] in _ENDPOINT_OPTIONS:
        begin += 1 if "=" in words[begin] else 2
    return words[begin:], words[:begin]


def run_command(words: Sequence[str], trailing_options: Sequence[str] = ()) -> int | None:
    """Run a command line with appended options; return the exit status, None for an unknown command."""
    match = find_command(words)
    if match is None:
        return None
    name, entry = match
    command = entry.load()()
    parser = command.get_parser(f"treeclaim {name}")
    return int(command.run(parser.parse_args([*words[len(name.split()) :], *trailing_options])))
