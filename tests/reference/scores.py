# SPDX-License-Identifier: Apache-2.0
"""Scores by brute force: contract page 98, section 2, line by line, in exact fractions."""

import hashlib
from fractions import Fraction

from tests.reference.world import uuid_of


class Scores:
    """Scores the candidates of one request in one world."""

    def __init__(self, reference, request):
        self.reference = reference
        self.request = request
        self.groups = {group.suffix: group for group in request.groups}

    def score(self, candidate):
        """The score of a candidate, not rounded."""
        terms = self.request.order
        weights = sum(weight for _, _, weight in terms)
        values = [weight * self.term(name, args, candidate) for name, args, weight in terms]
        return sum(values, Fraction(0)) / weights

    def term(self, name, args, candidate):
        """The value of a term."""
        if name in ("spread", "spread_providers", "far"):
            opposite = {"spread": "pack", "spread_providers": "pack_providers", "far": "near"}
            return 1 - self.term(opposite[name], args, candidate)
        return getattr(self, name)(args, candidate)

    def pack(self, classes, candidate):
        """Used and taken over capacity, in the trees and where it takes from."""
        alloc, _ = candidate
        trees = self.reference.trees({p for p, _, _ in alloc})
        values = []
        for c in set(classes) or {c for _, c, _ in alloc}:
            providers = {
                p
                for p, provider in self.reference.P.items()
                if c in provider.stock and self.reference.root(p) in trees
            } | {p for p, name, _ in alloc if name == c}
            total = sum(n for _, name, n in alloc if name == c)
            used = sum(self.reference.used(p, c) for p in providers)
            capacity = sum(self.reference.capacity(p, c) for p in providers)
            values.append(min(Fraction(used + total, capacity), Fraction(1)))
        return sum(values) / len(values)

    def slots(self, candidate):
        """The slots: suffix and class, each with its providers and what each gives there."""
        alloc, mapping = candidate
        remaining = {(p, c): n for p, c, n in alloc}
        slots = {}
        for suffix, providers in mapping:
            if suffix:
                (p,) = providers
                for c, n in self.groups[suffix].resources.items():
                    slots[suffix, c] = {p: n}
                    remaining[p, c] -= n
        for (p, c), n in remaining.items():
            if n:
                slots.setdefault(("", c), {})[p] = n
        return slots

    def pack_providers(self, classes, candidate):
        """Used and taken over capacity, of each slot's own provider."""
        alloc, _ = candidate
        amounts = {(p, c): n for p, c, n in alloc}
        values = []
        for (_, c), parts in self.slots(candidate).items():
            if classes and c not in classes:
                continue
            fill_shares = {
                p: min(
                    Fraction(
                        self.reference.used(p, c) + amounts[p, c], self.reference.capacity(p, c)
                    ),
                    Fraction(1),
                )
                for p in parts
            }
            values.append(sum(fill_shares[p] * n for p, n in parts.items()) / sum(parts.values()))
        return sum(values) / len(values)

    def preferred(self, _, candidate):
        """The weights of the preferences that hold over those of all."""
        mapping = dict(candidate[1])
        held_weight = total = 0
        for suffix, trait, is_wanted, weight in self.request.preferred:
            total += weight
            has = any(trait in self.reference.traits(p) for p in mapping[suffix])
            held_weight += weight if has == is_wanted else 0
        return Fraction(held_weight, total)

    def near(self, suffixes, candidate):
        """Return how near the providers of some groups are."""
        mapping = dict(candidate[1])
        chains = [self.reference.anc(p) for suffix in suffixes for p in mapping[suffix]]
        common = [x for x in chains[0] if all(x in chain for chain in chains)]
        if not common:
            return Fraction(0)
        depth = max(len(self.reference.anc(x)) - 1 for x in common)
        return Fraction(depth + 1, max(map(len, chains)))

    def most(self, args, candidate):
        """Return how great an attribute is beside those of all providers."""
        return self.part_of(args, candidate, lambda value, least, greatest: value - least)

    def least(self, args, candidate):
        """Return how small an attribute is beside those of all providers."""
        return self.part_of(args, candidate, lambda value, least, greatest: greatest - value)

    def part_of(self, args, candidate, part):
        """A part of the distance from the least to the greatest."""
        name, suffix = args
        (p,) = dict(candidate[1])[suffix]
        values = {q: provider.attributes.get(name) for q, provider in self.reference.P.items()}
        integers = [value for value in values.values() if type(value) is int]
        if type(values[p]) is not int:
            return Fraction(0)
        least, greatest = min(integers), max(integers)
        if least == greatest:
            return Fraction(1)
        return Fraction(part(values[p], least, greatest), greatest - least)

    def shuffle(self, seed, candidate):
        """A number made of the seed and the smallest root's uuid."""
        trees = self.reference.trees({p for p, _, _ in candidate[0]})
        root = min(uuid_of(root) for root in trees)
        digest = hashlib.sha256(f"{seed[0]}/{root}".encode()).digest()
        return Fraction(int.from_bytes(digest[:8], "big"), 2**64)
