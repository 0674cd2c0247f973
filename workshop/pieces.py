"""A notebook's cells in pieces that can be said in another language, and put back together.

A piece of Markdown is a heading, a paragraph, an item of a list or a row of a table, without its bullet. A
piece of code is a comment, a docstring, or a text that is printed, claimed, or describes a picture. Formulas
alone, rows of numbers and names are not pieces.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator

from . import navigation

MARK = "(not translated)"
COMMENT, ALT, NAME = "comment in code", "alternative text", "name in a figure"
"""What some messages are."""


class Say:
    """How English texts are said: ``say(text)``. It knows all texts, unchanged, or those of a catalog."""

    def __init__(self, known: dict[str, str] | None = None, common: dict[str, str] | None = None):
        self.known, self.common = known, common or {}

    def __call__(self, text: str) -> str:
        return text if self.known is None else self.known.get(text) or self.common.get(text, text)

    def knows(self, text: str) -> bool:
        return self.known is None or text in self.known


# ---- Markdown ----
BLOCK = re.compile(
    r"^(\s*(?:#{1,6} |[-*+] |\d+\. |> )?(?:<details>)?(?:<summary>)?)(.*?)((?:</summary>)?\s*)$", re.DOTALL
)


def blocks(text: str) -> list[str]:
    """A cell in pieces that join back into it: fences and formulas whole, else paragraphs, items and rows."""
    pieces, now, fence = [], "", ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(```|\$\$)", line)
        starts = re.match(r"\s*([-*+] |\d+\. |#{1,6} |> |\|)", line) or not line.strip()
        if not fence and (starts or not now.strip() or mark):
            pieces, now = [*pieces, now], ""
        now += line
        if mark and (not fence and line.count(mark[1]) % 2 or fence == mark[1]):
            fence = "" if fence else mark[1]
    return [piece for piece in [*pieces, now] if piece]


def message(piece: str) -> tuple[str, str, str]:
    """``(before, text, after)`` of a piece; the text is empty if there is nothing to translate."""
    before, text, after = BLOCK.match(piece).groups()  # type: ignore[union-attr]  # it matches all
    words = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\]\([^)]*\)|<[^>]+>", "", text, flags=re.DOTALL)
    if "```" in text or not re.search(r"[A-Za-z]{2}", words):
        return piece, "", ""
    return before, text, after


WORDS = re.compile(r"(?<=\\text\{)[^{}]*(?:[A-Za-z]{2}|[^\x00-\u3000])[^{}]*(?=\}(?!\s*(?:\\[a-z]+)?\())")
"""Words in a formula. What stands before a parenthesis is the name of a function, and stays."""


def in_prose(cell: str) -> list[str]:
    """The messages of a Markdown cell; of a formula that stands alone, the words in it."""
    return [
        one
        for before, text, _ in map(message, blocks(untitled(cell)))
        for one in ([text] if text else WORDS.findall(before) if "$$" in before else [])
    ]


def prose(cell: str, say: Say) -> str:
    """A Markdown cell as ``say`` says its blocks; what it doesn't know gets a mark, except headings."""
    return titled(plain(untitled(cell), say), say)


def plain(cell: str, say: Say) -> str:
    """The same for a text without titles of links to the glossary."""
    out = ""
    for before, text, after in map(message, blocks(cell)):
        note = "" if not text or "#" in before or say.knows(text) else f" <small>{say(MARK)}</small>"
        bar = " |" if note and text.startswith("|") and text.endswith(" |") else ""
        if not text and "$$" in before:
            before = WORDS.sub(lambda words: say(words[0]), before)
        out += before + (say(text).removesuffix(bar) if text else "") + note + bar + after
    return out


def untitled(text: str) -> str:
    """Without the titles of links to the glossary, which are written anew."""
    return navigation.TERM.sub(r"](\1#\2)", text)


def titled(text: str, say: Say) -> str:
    """With the titles of links to the glossary: the term in the other language, and its sentence."""

    def title(link):
        term = navigation.terms()[link[2]]
        name = term.chinese if say.known is None else term.name
        return f']({link[1]}#{term.anchor} "{name}: {say(term.sentence)}")'

    return navigation.TERM.sub(title, text)


# ---- code ----
FIGURES = ("plots.heat", "plots.lines", "plots.vectors", "plots.bars", "plots.dials", "plots.forest")
LABELS = ("title", "xlabel", "ylabel", "colorbar", "level", "levels")
"""What a figure says besides the names of its data, which are keys in the code and stay as they are there."""
SETS = ("set_title", "set_xlabel", "set_ylabel")
"""Where a cell labels an axes of matplotlib itself, and with ``ax.set(title=…)``."""


def _reader_sees(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call whose texts a reader sees."""
    name = ast.unparse(call.func)
    if name == "plots.show":
        return call.args[1:]
    if (method := name.rpartition(".")[2]) in SETS:
        return call.args[:1]
    if name in FIGURES or method == "set":
        said = [each.value for each in call.keywords if each.arg in LABELS]
        return [
            text for each in said for text in (each.keys if isinstance(each, ast.Dict) else [each]) if text
        ]
    if name not in ("print", "claims.test"):
        return []
    named = {each.arg: each.value for each in call.keywords}
    parts = named.pop("holds", call.args[1] if name == "claims.test" and len(call.args) > 1 else None)
    found = [*call.args, *(value for name, value in named.items() if name not in ("sep", "end"))]
    return found + [key for key in parts.keys if key] if isinstance(parts, ast.Dict) else found


def names(cells: Iterable[str]) -> list[str]:
    """The names of data that the figures of a notebook show: keys, ticks, and what is passed on as a label.

    They are followed from each call of ``plots`` back to where they stand, through variables, loops and
    functions. A name that is put together, such as ``f"clock {t}"``, is a text in the code (:func:`shown`).
    """
    return list(
        dict.fromkeys(
            node.value
            for node in _names([ast.parse(cell) for cell in cells])
            if isinstance(node, ast.Constant) and re.search("[A-Za-z]{2}", node.value)
        )
    )


def _names(trees: list[ast.Module]) -> Iterator[ast.expr]:
    """The texts, constants and f-strings, that become names in a figure."""
    given, waiting = _filled(trees), []
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in FIGURES:
                first = node.args[1:2] if ast.unparse(node.func) == "plots.lines" else node.args[:1]
                more = [
                    each.value
                    for each in node.keywords
                    if each.arg in ("xticks", "yticks", "columns")
                    or each.arg in LABELS
                    and isinstance(each.value, ast.Name | ast.Subscript)
                ]
                waiting += [(tree, each, False) for each in (*first, *more)]
    seen = set()
    while waiting:
        tree, node, inside = waiting.pop(0)  # inside: what it holds is meant, as in names[key]
        if not inside and (
            isinstance(node, ast.Constant) and isinstance(node.value, str) or isinstance(node, ast.JoinedStr)
        ):
            yield node
        elif isinstance(node, ast.Name) and (tree, node.id, inside) not in seen:
            seen.add((tree, node.id, inside))
            found = given.get((tree, node.id)) or given.get((None, node.id), [])
            waiting += [(*each, inside) for each in found]
        waiting += [(tree, *part) for part in _behind(node, inside)]


def _behind(node: ast.expr, inside: bool) -> list[tuple[ast.expr, bool]]:
    """The expressions that a name may come from, and whether what they hold is meant."""
    match node:
        case ast.Dict(keys, values):
            return [(each, False) for each in (values if inside else keys) if each]
        case ast.DictComp(key, value):
            return [(value if inside else key, False)]
        case ast.List(elts) | ast.Tuple(elts):
            return [(each, False) for each in elts]
        case ast.ListComp(each):
            return [(each, False)]
        case ast.Call(ast.Name() as function, given) if not inside:  # zip(…), sorted(…), one's own
            return [(each, False) for each in (function, *given)]
        case ast.Call(ast.Attribute(held, "items" | "keys" | "values" as what)):
            return [(held, what == "values")]
        case ast.Subscript(held) if not inside:
            return [(held, True)]
    return []


def _filled(trees: list[ast.Module]) -> dict[tuple[ast.Module | None, str], list]:
    """What gives a variable or a function its value, its keys or its result, each with its cell.

    A variable is known in all cells, that of a loop in its own.
    """
    found: dict[tuple[ast.Module | None, str], list] = defaultdict(list)

    def put(target, value, tree, known):
        match target:
            case ast.Tuple(targets):
                for each, one in zip(targets, _parallel(value, len(targets)), strict=True):
                    put(each, one, tree, known)
            case ast.Name(name):
                found[known, name].append((tree, value))
            case ast.Subscript(ast.Name(name), key):
                found[known, name].append((tree, key))

    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets, value):
                    for target in targets:
                        put(target, value, tree, None)
                case ast.For(target, through) | ast.comprehension(target, through):
                    for each in through.elts if isinstance(through, ast.Tuple | ast.List) else [through]:
                        put(target, each, tree, tree)
                case ast.FunctionDef(name):
                    found[None, name] += [
                        (tree, part.value)
                        for part in ast.walk(node)
                        if isinstance(part, ast.Return) and part.value
                    ]
    return found


def _parallel(value: ast.expr, n: int) -> list[ast.expr]:
    """What each of ``n`` variables gets: its own of a tuple, of what is zipped, keys and values, or all."""
    match value:
        case ast.Call(ast.Attribute(held, "items")) if n == 2:
            return [ast.Call(ast.Attribute(held, which), [], []) for which in ("keys", "values")]
        case ast.Call(ast.Name("zip"), parts) | ast.Tuple(parts) if len(parts) == n:
            return parts
    return [value] * n


def _strings(node: ast.expr) -> Iterator[ast.expr]:
    """The texts that an expression may give, leaving out the keys and arguments in it."""
    if isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            yield from _strings(node.func.value)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            for part in (node.func.value, *(getattr(each, "elt", each) for each in node.args)):
                yield from _strings(part)
    elif isinstance(node, ast.List | ast.Tuple | ast.BoolOp | ast.BinOp | ast.IfExp | ast.Starred):
        skipped = node.test if isinstance(node, ast.IfExp) else None
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and part is not skipped:
                yield from _strings(part)


def _spelled(node: ast.expr) -> str:
    """A text as a message: ``{…}`` stands for each expression of an f-string."""
    if isinstance(node, ast.Constant):
        return node.value
    out = ""
    for part in node.values:  # type: ignore[attr-defined]  # an f-string
        if isinstance(part, ast.Constant):
            out += part.value
        else:
            turned = "" if part.conversion < 0 else "!" + chr(part.conversion)
            form = f":{_spelled(part.format_spec)}" if part.format_spec else ""
            out += f"{{{ast.unparse(part.value)}{turned}{form}}}"
    return out


def shown(tree: ast.AST) -> list[ast.expr]:
    """The texts of a code cell that a reader sees: printed, claimed, of pictures, and docstrings."""
    found = [name for name in _names([tree]) if isinstance(name, ast.JoinedStr)]  # type: ignore[list-item]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found += [text for part in _reader_sees(node) for text in _strings(part)]
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.JoinedStr):
            found.append(node.value)  # a line that is put together to be printed
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            found.append(node.body[0].value)  # type: ignore[attr-defined]  # the docstring's statement
    return found


def texts(cell: str) -> list[ast.expr]:
    """Those of them that have words."""
    return _worded(ast.parse(cell))


def _worded(tree: ast.AST) -> list[ast.expr]:
    return [text for text in shown(tree) if re.search("[A-Za-z]{2}", re.sub(r"\{.*?\}", "", _spelled(text)))]


def comments(source: str) -> list[tuple[int, int, str]]:
    """``(line, column, text)`` of each comment, without its ``#``; a shape alone is none."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [
        (token.start, re.match(r"#+ ?", token.string).end(), token.string)  # type: ignore[union-attr]
        for token in tokens
        if token.type == tokenize.COMMENT
    ]
    return [
        (row, column + skip, text[skip:])
        for (row, column), skip, text in found
        if re.search("[A-Za-z]{2}", re.sub(r"\[[^\]]*\]", "", text))
    ]


def _literal(node: ast.expr, said: str, raw: str) -> str:
    if isinstance(node, ast.JoinedStr):
        return 'f"' + said.replace("\n", "\\n") + '"'
    return f'"""{said}"""' if raw.startswith('"""') else json.dumps(said, ensure_ascii=False)


def in_code(cell: str) -> list[tuple[str, str]]:
    """The messages of a code cell, each with what it is."""
    tree = ast.parse(cell)
    pictures = {
        id(text)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "plots.show"
        for found in map(_strings, node.args[1:])
        for text in found
    }
    return [
        *((text, COMMENT) for *_, text in comments(cell)),
        *((_spelled(node), ALT if id(node) in pictures else "text in code") for node in _worded(tree)),
    ]


def code(cell: str, say: Say) -> str:
    """A code cell with its texts and comments as ``say`` says them; a comment it doesn't know has a mark."""
    lines, raw = [line.encode() for line in cell.splitlines(keepends=True)], cell.encode()
    starts, changes = [sum(map(len, lines[:n])) for n in range(len(lines))], []
    for row, column, text in comments(cell):
        start = starts[row - 1] + len(lines[row - 1].decode()[:column].encode())
        note = "" if say.knows(text) else f" {say(MARK)}"
        changes.append((start, start + len(text.encode()), say(text) + note))
    for node in texts(cell):
        if (said := say(_spelled(node))) != _spelled(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
            changes.append((start, end, _literal(node, said, raw[start:end].decode())))
    for start, end, new in sorted(changes, reverse=True):
        raw = raw[:start] + new.encode() + raw[end:]
    return raw.decode()


def same_code(one: str, other: str) -> bool:
    """Is it the same program, apart from the words that a reader sees? What is in braces counts."""

    def bare(source):
        tree = ast.parse(source)
        for node in shown(tree):
            if isinstance(node, ast.JoinedStr):
                node.values = sorted(
                    (part for part in node.values if isinstance(part, ast.FormattedValue)), key=ast.dump
                )
            else:
                node.value = " ".join(braces(node.value))
        return ast.dump(tree)

    return bare(one) == bare(other)


# ---- what a translation must keep ----
def braces(text: str) -> list[str]:
    return sorted(re.findall(r"\{.*?\}", text))


def _kept(text: str) -> tuple:
    """Formulas, code, targets of links, tags, and the bars of a row."""
    bars = re.sub(r"\$[^$]*\$", "", text)
    return (
        sorted(WORDS.sub("", formula) for formula in re.findall(r"\$[^$]+\$", text)),
        sorted(re.sub(r" LANGUAGE=\w+", "", code) for code in re.findall(r"`[^`]+`", text)),
        sorted(re.findall(r"\]\(([^)\s]+)", text)),
        sorted(re.findall(r"</?(?:details|summary)>", text)),
        len(re.findall(r"(?<!\\)\|", bars)),
    )


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", re.sub(r"\]\([^)]*\)", "]", text)))


@functools.cache
def _markdown():
    from markdown_it import MarkdownIt

    return MarkdownIt().enable("table")


def stars(text: str) -> bool:
    """Do stars of an emphasis stay visible? In ``**中文。**中文`` they do, due to the punctuation inside."""
    if "*" not in text:
        return False
    shown = _markdown().render(re.sub(r"\$[^$]*\$", "x", text))
    return "*" in re.sub("<code>.*?</code>|<[^>]+>", "", shown)


def faults(english: str, said: str, is_prose: bool) -> list[str]:
    """What a translation has lost or broken, in words."""
    found = []
    if is_prose and _kept(english) != _kept(said):
        found.append("formulas, code, links, tags or bars are not kept")
    if not is_prose and braces(english) != braces(said):
        found.append("braces are not kept")
    if lost := _numbers(english) - _numbers(said):
        found.append(f"numbers are lost, {', '.join(sorted(lost))}")
    if is_prose and stars(said) and not stars(english):
        found.append("stars of an emphasis stay visible")
    return found
