"""Lines to breathe: `python tests/lines.py` names every expression with too many thoughts.

A comprehension has one `for` and at most one `if`; an assignment unpacks at most a pair; a
conditional expression stands neither in another nor in an f-string; what the formatter
breaks over more than eight lines has parts that want names (strings and plain data apart).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 8
STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def faults(source: str) -> Iterator[tuple[int, str]]:
    """(line, fault) of each expression in `source` that holds too many thoughts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, COMPREHENSIONS):
            if len(node.generators) > 1:
                yield node.lineno, "a comprehension with two `for`"
            if any(len(each.ifs) > 1 for each in node.generators):
                yield node.lineno, "a comprehension with two `if`"
        if isinstance(node, ast.Assign) and any(_width(target) > 2 for target in node.targets):
            yield node.lineno, "an assignment that binds three values or more"
        if isinstance(node, ast.IfExp | ast.JoinedStr) and _holds_a_choice(node):
            yield node.lineno, "a conditional expression in another, or in an f-string"
        if isinstance(node, STATEMENTS) and _lines(node) > LONGEST:
            yield node.lineno, f"an expression over {_lines(node)} lines"


def _width(target: ast.expr) -> int:
    return len(target.elts) if isinstance(target, ast.Tuple) else 1


def _holds_a_choice(node: ast.IfExp | ast.JoinedStr) -> bool:
    return any(isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node)


def _lines(node: ast.stmt) -> int:
    """Lines of code in a statement, without those of strings and of displays of constants."""
    value = getattr(node, "value", None)
    if value is None or _is_data(value):
        return 0
    covered = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for inner in ast.walk(value):
        if isinstance(inner, ast.expr) and _is_data(inner):
            covered -= set(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    return len(covered)


def _is_data(node: ast.expr) -> bool:
    if isinstance(node, ast.Dict):
        parts = [*(key for key in node.keys if key is not None), *node.values]
        return all(_is_data(part) for part in parts)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(_is_data(part) for part in node.elts)
    if isinstance(node, ast.UnaryOp):  # a negative number
        return _is_data(node.operand)
    return isinstance(node, ast.JoinedStr | ast.Constant)


def main(places: list[str]) -> int:
    """Print every fault below `places`; returns how many there are."""
    files = [file for place in places for file in sorted((ROOT / place).rglob("*.py"))]
    found = 0
    for file in files:
        for line, fault in sorted(set(faults(file.read_text(encoding="utf-8")))):
            print(f"{file.relative_to(ROOT)}:{line}: {fault}")
            found += 1
    return found


if __name__ == "__main__":
    sys.exit(int(main(sys.argv[1:] or ["vrag_kit"]) > 0))
