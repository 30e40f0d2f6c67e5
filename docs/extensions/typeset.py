"""Formulas in plain text as LaTeX: `x_{t+1} = W x_t` without code marks becomes `$x_{t+1} = W x_t$` on the site.

Sources keep formulas in Unicode where a terminal or a viewer of Markdown shows them as well: pages, docstrings, titles and
statements of claims. A formula is a run of symbols that no prose word interrupts, with something that prose does not have: an
index, a power, a Greek letter, or a letter beside an operator. Code, LaTeX, comments, links and pictures stay as they are.
"""

import re
from itertools import pairwise

from symbols import FUNCTIONS, GREEK, ITEM, MARKS, OPERATORS, PAIRS, PRODUCTS, SCRIPT, SPACE, Item, latex

RELATIONS = set("=<>≤≥≠≈~→←∈⊗⊙∝+−·×/")
ALONE = set("bcdijklnpqtuwxyzCDGHJKLMNPQSTUWXZ")  # letters that are formulas where they stand alone

PROTECTED = re.compile(
    r"^(?P<fence>[ ]*(?:`{3,}|~{3,})).*?^(?P=fence)[ ]*$"  # blocks of code
    r"|^:{3,}[^\n]*$|^:\w[\w-]*:[^\n]*$"  # directives and their options
    r"|^#\s[^\n]*$"  # titles of pages
    r"|(?<=\n\n)(?:[ ]{4,}\S[^\n]*\n)+(?=\n)"  # indented blocks
    r"|\$\$.*?\$\$|(?<![\\$])\$[^$\n]+(?:\n[^$\n]+){0,3}\$"  # LaTeX
    r"|\\begin\{.*?\\end\{\w+\*?\}"
    r"|<!--.*?-->|</?\w+[^>\n]*>|<https?:[^>]*>"  # comments, tags
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"  # code
    r"|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|\{[\w:]+\}(?=`)"  # pictures, targets of links, roles
    r"|https?://\S+",
    re.M | re.S,
)


def typeset(text: str) -> str:
    """The Markdown with its plain formulas as LaTeX."""
    parts, end = [], 0
    for kept in PROTECTED.finditer(text):
        parts += [_prose(text[end : kept.start()], _before(text, end), kept[0][:1]), _in_a_line(kept[0])]
        end = kept.end()
    return "".join([*parts, _prose(text[end:], _before(text, end), "")])


def formulas(text: str) -> list[tuple[str, str]]:
    """Every formula of the Markdown that is written plainly, with its LaTeX."""
    found = []
    _prose_parts(text, found)
    return found


def _prose_parts(text, found):
    end = 0
    for kept in [*PROTECTED.finditer(text), None]:
        stop = kept.start() if kept else len(text)
        piece = text[end:stop]
        found += [
            (piece[a:b], tex) for a, b, tex in _found(piece, _before(text, end), kept[0][:1] if kept else "")
        ]
        end = kept.end() if kept else stop


def _before(text, at):
    return text[at - 1 : at]


def _in_a_line(kept):
    """Formulas without line breaks: a line that begins with a minus would be the entry of a list."""
    return re.sub(r"\s*\n\s*", " ", kept) if kept[0] == "$" != kept[1] else kept


def _prose(text, before, after):
    parts, end = [], 0
    for start, stop, tex in _found(text, before, after):
        parts += [text[end:start], f"${tex}$"]
        end = stop
    return "".join([*parts, text[end:]])


def _found(text, before, after):
    """Start, end and LaTeX of each formula in a piece of prose."""
    for run in _runs(text, before, after):
        for part in _balanced(run):
            part = _trimmed(part)
            if part and _is_formula(part, text, before):
                yield part[0].start, part[-1].end, latex(part)


def _runs(text, before, after):
    """Lists of symbols that no prose interrupts."""
    run, at, depth = [], 0, 0
    while at < len(text):
        gap = SPACE.match(text, at).end()
        item = _item(text, gap, before, after, run, gap > at)
        stops = item is None or (item.kind == "comma" and depth == 0)
        if stops or (gap > at and text[at:gap].count("\n") and _is_new_line(text, gap)):
            if run:
                yield run
            run, depth = [], 0
            if stops:
                at = _after_prose(text, gap)
                continue
        depth += (item.kind == "open") - (item.kind == "close")
        depth = max(depth, 0)
        run.append(item)
        at = item.end
    if run:
        yield run


def _is_new_line(text, at):
    """Whether a row of a table, or an entry of a list, begins here."""
    return bool(re.match(r"\||[-*+]\s|\d+\.\s|#", text[at:]))


def _after_prose(text, at):
    """Where the next symbol may begin: behind the word that is here."""
    word = re.compile(r"[A-Za-z][A-Za-z0-9'’-]*(?:\.[A-Za-z]+)*|\d[\w.-]*[A-Za-z]\w*|\S|\s").match(text, at)
    return word.end() if word else at + 1


def _item(text, at, before, after, run, spaced):
    found = ITEM.match(text, at)
    if not found:
        return None
    kind, said = found.lastgroup, found[0]
    previous = (text[at - 1] if at else before) or " "
    following = (text[found.end()] if found.end() < len(text) else after) or " "
    if kind == "word":
        indexed = re.match(r"_[a-z](?!\w)", text[found.end() :])  # sign_j
        scripted = re.match(rf"(?:{SCRIPT})", text[found.end() :]) and following not in "*'"
        if said in FUNCTIONS | OPERATORS | PRODUCTS:
            if following in "-'" or re.match(r"_\w{2}", text[found.end() :]):
                return None
        elif not (indexed or (len(said) == 2 and scripted) or (run and following == "(")):
            return None
    if kind == "letter" and said.isascii():
        joined = run and not spaced and run[-1].end == at and run[-1].kind != "comma"
        if (previous.isalnum() or previous in "-_'’`") and not joined:
            return None
        if following in "-’`" or (following == "'" and text[found.end() : found.end() + 2][1:].isalpha()):
            return None
        if following == "." and re.match(r"\.\w", text[found.end() :]):
            return None
        if following.isdecimal():
            return None
        if said in "sh" and run and run[-1].kind == "number" and spaced:  # seconds, hours
            return None
    if kind == "number":
        joined = run and not spaced and run[-1].end == at
        if (previous.isalnum() or previous in "-_.") and not joined:
            return None
        if following.isalpha() and re.match(r"[A-Za-z]{2,}", text[found.end() :]):
            return None
        if following in "-" or re.match(r"\.\d", text[found.end() :]):
            return None
    if kind == "script" and (spaced or not run or run[-1].kind in ("sign", "open", "comma")):
        return None
    if kind == "script" and said == "*" and (run[-1].kind in ("number", "word") or run[-1].text in ".…"):
        return None
    if kind == "plain" and said == "|" and _in_table(text, at, before):
        return None
    return Item(kind, said, at, found.end(), spaced)


def _in_table(text, at, before):
    line = text.rfind("\n", 0, at) + 1
    return text[line : line + 1] == "|" or line == 0 or text[at - 1 : at + 2] == " | "


def _balanced(run):
    """The pieces of a run in which brackets and bars come in pairs."""
    stack, bad = [], set()
    for number, item in enumerate(run):
        if item.kind == "open":
            stack.append(number)
        elif item.kind == "close":
            if stack and PAIRS[run[stack[-1]].text] == item.text:
                stack.pop()
            else:
                bad.add(number)
    bad |= set(stack)
    for bar in "‖|∣":
        bars = [number for number, item in enumerate(run) if item.text == bar]
        if len(bars) % 2:
            bad.add(bars[-1])
    piece, inside = [], 0
    for number, item in enumerate(run):
        inside += (item.kind == "open") - (item.kind == "close") if number not in bad else 0
        if number in bad or (item.kind == "comma" and inside <= 0):
            if piece:
                yield piece
            piece = []
        else:
            piece.append(item)
    if piece:
        yield piece


def _trimmed(part):
    """Without what may not begin or end a formula: operators, the article a, counts, brackets of prose."""
    while part:
        if _begins_badly(part):
            part = part[1:]
        elif len(part) > 2 and part[-2].text == "±" and part[-2].spaced and not part[-1].spaced:
            part = part[:-2]  # a value of its own
        elif _ends_badly(part):
            part = part[:-1]
        elif _is_wrapped(part):
            part = part[1:-1]
        else:
            break
    return part


def _begins_badly(part):
    first, after = part[0], part[1] if len(part) > 1 else None
    if first.kind == "sign":
        return not _is_prefix(first, after)
    if first.text in "aA":
        return bool(after and after.spaced and after.kind != "sign" and after.text != "b")
    if first.kind == "number":
        return bool(after and after.spaced and _is_count(after))
    return first.kind in ("comma", "script") or first.text == "…"


def _ends_badly(part):
    last, before = part[-1], part[-2] if len(part) > 1 else None
    if last.text in "aA":
        return bool(before and last.spaced and before.kind != "sign")
    if last.kind == "number":
        return bool(before and last.spaced and before.kind not in ("sign", "word", "plain"))
    return last.kind in ("comma", "sign", "sum") or last.text in FUNCTIONS | OPERATORS | set("…∇∂")


def _is_prefix(sign, after):
    return sign.text in "−±" and after is not None and not after.spaced


def _is_count(after):
    """Whether a number before it is a count of things and no factor."""
    return after.kind == "number" or (after.kind == "open" and after.spaced)


def _is_wrapped(part):
    """Whether the brackets around the whole are those of prose: one thing without a comma is in them."""
    if part[0].text != "(" or part[-1].text != ")" or any(item.kind == "comma" for item in part):
        return False
    depth = 0
    for item in part[:-1]:
        depth += (item.kind == "open") - (item.kind == "close")
        if depth == 0:
            return False
    return True


def _is_formula(part, text, before):
    letters = [item for item in part if item.kind == "letter" or item.text in PRODUCTS]
    if any(item.kind == "script" for item in part):
        return not (len(part) == 2 and part[1].text == "'")
    if any(re.search(rf"[{GREEK}ℓŷŵŜŴẑ{MARKS}]", item.text) for item in letters):
        return True
    if any(item.text in "‖√∇∂∞" for item in part):
        return len(part) > 1 or part[0].text == "∞"
    if letters and any(item.text in RELATIONS for item in part):
        return True
    if letters and any(item.text in FUNCTIONS for item in part):
        return True
    if any(one.text == "E" and other.kind in ("letter", "open") for one, other in pairwise(part)):
        return True
    if len(part) > 1:
        return bool(letters) and part[0].kind == "letter" and part[1].kind == "open" and not part[1].spaced
    item = part[0]
    if item.text in PRODUCTS and item.text.islower():
        return True
    if item.kind != "letter":
        return False
    return item.text in ALONE or _is_matrix(item, text, before)


def _is_matrix(item, text, before):
    """Whether A or I is a matrix: no sentence begins with it."""
    earlier = (before + text[: item.start]).rstrip(" ")
    earlier = earlier[:-1] if earlier.endswith("\n") and not earlier.endswith("\n\n") else earlier
    follows = text[item.end : item.end + 7]
    if item.text == "a":
        return follows.startswith((" and b", ", b"))
    return item.text in "AIBR" and bool(re.search(r"[a-z,;=]$", earlier))
