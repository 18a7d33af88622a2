# SPDX-License-Identifier: Apache-2.0
"""`treeclaim completion`: a script that lets a shell complete commands and options, as the parsers have them."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treeclaim.cli.output import say_script


@dataclass(frozen=True, slots=True)
class Described:
    """A command.

    Attributes:
        words: How it is called, without the program's name.
        help: What it does, in a line.
        parser: Its arguments.
        commands: Names of commands below it.
    """

    words: tuple[str, ...]
    help: str
    parser: argparse.ArgumentParser
    commands: tuple[str, ...]

    def options(self) -> Iterator[argparse.Action]:
        """Yield its options, without arguments that have a place."""
        for action in self.parser._actions:  # noqa: SLF001 - argparse has no other way to ask
            if action.option_strings and action.help is not argparse.SUPPRESS:
                yield action


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description="Print a completion script. For bash: source <(treeclaim completion bash). "
        "For zsh: the same, after compinit. For fish: treeclaim completion fish | source.",
    )
    command.add_argument("shell", choices=sorted(_WRITERS), help="which shell")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    # All parsers, which only this command needs.
    from treeclaim.cli.main import parser  # noqa: PLC0415

    say_script(_WRITERS[options.shell](list(described(parser()))))
    return 0


def _words_after(command: Described) -> list[str]:
    return [
        *command.commands,
        *(name for option in command.options() for name in option.option_strings),
    ]


def _cases(commands: Sequence[Described]) -> str:
    """Return shell code that sets `words` for the command in `path`."""
    lines = [
        f"    {shlex.quote(' '.join(command.words))}) words={shlex.quote(' '.join(_words_after(command)))} ;;"
        for command in commands
    ]
    return "\n".join(lines)


_BASH = """\
# Completion of treeclaim for bash: source <(treeclaim completion bash)
_treeclaim() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" path="" word words known={known}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $known == *"|${{path:+$path }}$word|"* ]] && path="${{path:+$path }}$word"
  done
  case "$path" in
{cases}
  esac
  if [[ $current == -* || ( -n $words && $words != -* ) ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=()
  fi
}}
complete -o default -F _treeclaim treeclaim"""

_ZSH = """\
#compdef treeclaim
# Completion of treeclaim for zsh: source <(treeclaim completion zsh)
_treeclaim() {{
  local path="" word words known={known}
  for word in "${{(@)words_given}}"; do
    [[ $known == *"|${{path:+$path }}$word|"* ]] && path="${{path:+$path }}$word"
  done
  case "$path" in
{cases}
  esac
  compadd -- ${{=words}}
  _files
}}
_treeclaim_start() {{
  local -a words_given=("${{(@)words[2,CURRENT-1]}}")
  _treeclaim
}}
compdef _treeclaim_start treeclaim"""


def _known(commands: Sequence[Described]) -> str:
    return shlex.quote(
        "|" + "|".join(" ".join(command.words) for command in commands if command.words) + "|"
    )


def _bash(commands: Sequence[Described]) -> str:
    return _BASH.format(known=_known(commands), cases=_cases(commands))


def _zsh(commands: Sequence[Described]) -> str:
    return _ZSH.format(known=_known(commands), cases=_cases(commands))


def _fish(commands: Sequence[Described]) -> str:
    lines = ["# Completion of treeclaim for fish: treeclaim completion fish | source"]
    helps = {command.words: command.help for command in commands}
    for command in commands:
        condition = _fish_condition(command)
        for name in command.commands:
            text = helps[(*command.words, name)]
            lines.append(
                f"complete -c treeclaim -n {condition} -f -a {name} -d {_fish_quoted(text)}"
            )
        for option in command.options():
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.option_strings
            )
            takes = "" if option.nargs == 0 else " -r"
            text = _fish_quoted(_first_words(option))
            lines.append(f"complete -c treeclaim -n {condition} {names}{takes} -d {text}")
    return "\n".join(lines)


def _fish_condition(command: Described) -> str:
    if not command.words:
        return "__fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
    return _fish_quoted(seen)


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _first_words(option: argparse.Action) -> str:
    return (option.help or "").replace("%%", "%").split(";")[0]


_WRITERS: Mapping[str, Callable[[Sequence[Described]], str]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}


def described(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = (), text: str = ""
) -> Iterator[Described]:
    """Yield a command and all below it."""
    parts = [
        action
        for action in parser._actions  # noqa: SLF001 - see above
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    below = {name: choice for part in parts for name, choice in part.choices.items()}
    helps = {
        pseudo.dest: pseudo.help or ""
        for part in parts
        for pseudo in part._choices_actions  # noqa: SLF001
    }
    yield Described(words, text, parser, tuple(below))
    for name, choice in below.items():
        yield from described(choice, (*words, name), helps.get(name, ""))
