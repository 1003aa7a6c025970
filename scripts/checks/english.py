# SPDX-License-Identifier: Apache-2.0
"""Finds words of the glossary (docs/glossary.md) in the lines that a change adds."""

import collections
import io
import os
import re
import subprocess
import tokenize

from source import CannotRun

GLOSSARY = "docs/glossary.md"
# Generated, recorded, copied, or about the words themselves.
SKIPPED = re.compile(r"docs/glossary\.md$|scripts/checks/english\.py$|tests/repo/english_test\.py$|hw/contract/gen/|"
                     r"docs/(contract|settings|coverage|uet-profile)\.md$|tests/(fuzz|differential)/corpus/|LICENSE$")
PROSE = (".md", ".1", ".7", ".7.in", ".txt")
C_LIKE = (".c", ".cc", ".h", ".sv", ".svh", ".S", ".ld", ".mjs", ".lua", ".vlt")
HASH = (".sh", ".toml", ".cmake", "CMakeLists.txt", "Makefile", ".yml")
FRAGMENT = re.compile(r"(?:^|[.!:;] )(Of|What|Who) (?![^.!]*\?)")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Glossary:
    """What not to write, and what to write instead."""

    def __init__(self, text):
        self.phrases, self.names = [], []
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
            if len(cells) < 2 or not (found := re.findall(r"`([^`]+)`", "".join(cells[1:2]))) and not cells[2:]:
                continue
            self.phrases += [(self.phrase(p), cells[0]) for p in found]
            self.names += [(tuple(n.split("_")), cells[0]) for n in re.findall(r"`([^`]+)`", "".join(cells[2:3]))]
        if not self.phrases:
            raise CannotRun(f"{GLOSSARY} has no table")

    @staticmethod
    def phrase(text):
        words = [re.escape(word).replace(r"\*", r"\w*") for word in text.split()]
        return re.compile(r"(?<![\w'-])" + r"\s+".join(words) + r"(?![\w-])", re.I)

    def in_text(self, text):
        """(what is there, what to write) of each phrase of a text."""
        for pattern, write in self.phrases:
            if match := pattern.search(text):
                yield match[0], write
        if match := FRAGMENT.search(text):
            yield f"{match[1]} ...", "a sentence with its subject first"

    def in_name(self, name):
        words = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
        parts = tuple(re.sub(r"\bat (least|most)\b", "", " ".join(words)).split())
        for words, write in self.names:
            if any(parts[i:i + len(words)] == words for i in range(len(parts) - len(words) + 1)):
                yield name, write


def git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else None


def base_of(root):
    """The commit that the change begins at: where it left the branch that it lands on, as far as the clone has seen that,
    or the commit before; HEDDLE_LINT_BASE names another. None without one."""
    if chosen := os.environ.get("HEDDLE_LINT_BASE"):
        named = git(root, "rev-parse", "--verify", chosen)
        return named.strip() if named else None
    candidates = []
    for ref in ("origin/main", "FETCH_HEAD"):
        if base := git(root, "merge-base", "HEAD", ref):
            candidates.append((int(git(root, "rev-list", "--count", f"{base.strip()}..HEAD")), base.strip()))
    # Either ref may be old; the nearest one is the latest. At HEAD itself, everything has landed.
    if candidates and min(candidates)[0] > 0:
        return min(candidates)[1]
    before = git(root, "rev-parse", "--verify", "HEAD^")
    return before.strip() if before else None


def added_lines(root, base):
    """Numbers of the lines that each file has since `base`, committed or not; a line that only moved is none."""
    added, removed = collections.defaultdict(dict), set()
    name, number = None, 0
    for line in git(root, "diff", "-M", "-C", "-U0", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", base).splitlines():
        if line.startswith("+++ "):
            name = line[6:] if line != "+++ /dev/null" else None
        elif line.startswith("@@"):
            number = int(re.match(r"@@ -\S+ \+(\d+)", line)[1])
        elif line.startswith("+") and name:
            added[name][number] = line[1:].strip()
            number += 1
        elif line.startswith("-") and not line.startswith("--- "):
            removed.add(line[1:].strip())
    for name in (git(root, "ls-files", "-o", "--exclude-standard") or "").splitlines():
        text = (root / name).read_text(errors="replace")
        added[name] = {number: line.strip() for number, line in enumerate(text.splitlines(), 1)}
    return {name: {n for n, line in numbered.items() if line not in removed} for name, numbered in added.items()}


def c_text(text):
    """(line, comment or string) of a file with the comments of C++, and its code with those left out."""
    parts, code = [], []
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', re.S)
    at = 0
    for match in token.finditer(text):
        code.append(text[at:match.start()])
        first = text.count("\n", 0, match.start()) + 1
        for offset, line in enumerate(match[0].split("\n")):
            line = line.strip()
            parts.append((first + offset, re.sub(r"^(///?<?|/\*+|\*+)\s*|\s*\*/$|^\"|\"$", "", line), match[0][0] == "/"))
        code.append("\n" * match[0].count("\n"))
        at = match.end()
    code.append(text[at:])
    return parts, "".join(code)


def python_text(text):
    parts, code = [], []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                is_doc = token.type == tokenize.COMMENT or token.string.lstrip("rbfRBF").startswith('"""')
                for offset, line in enumerate(token.string.split("\n")):
                    parts.append((token.start[0] + offset, line.strip().strip("#\"' "), is_doc))
            elif token.type == tokenize.NAME:
                code.append((token.start[0], token.string))
    except (tokenize.TokenError, IndentationError):
        return [], []
    return parts, code


def hash_text(text):
    """Shell, TOML, CMake: comments, and strings that are sentences."""
    parts, code = [], []
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(?:^|\s)#+\s?(.*)", line)
        body = line[:comment.start()] if comment else line
        parts += [(number, string, False) for string in re.findall(r'"([^"]*)"', body)]
        if comment:
            parts.append((number, comment[1], True))
        code += [(number, word) for word in WORD.findall(re.sub(r'"[^"]*"', "", body))]
    return parts, code


def texts_of(name, text):
    """(line, text) pairs of prose and (line, name) pairs of identifiers."""
    if name.endswith(PROSE) and not name.endswith("CMakeLists.txt"):
        return [(number, line) for number, line in enumerate(text.splitlines(), 1)], []
    if name.endswith(C_LIKE):
        parts, code = c_text(text)
        words = [(number, word) for number, line in enumerate(code.split("\n"), 1) for word in WORD.findall(line)]
    elif name.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        parts, words = python_text(text)
    elif name.endswith(HASH) or text.startswith("#!"):
        parts, words = hash_text(text)
    else:
        return [], []
    # A string without a space is a key, not a message.
    return [(number, line) for number, line, is_comment in parts if is_comment or " " in line.strip()], words


def plain(line):
    """A line without what only looks like prose: code spans, targets of links, addresses, options."""
    line = re.sub(r"``.*?``|`[^`]*`", "`", line)
    line = re.sub(r"\]\([^)]*\)", "]", line)
    line = re.sub(r"\bhttps?://\S+", "", line)
    return re.sub(r"^\s*(?:[-*+>]|\d+\.|\|)\s+", "", line).replace("**", "")


def check_english(root, _build):
    """Added lines have the words of docs/glossary.md."""
    if not (root / GLOSSARY).exists():
        raise CannotRun(f"{GLOSSARY} is missing")
    glossary = Glossary((root / GLOSSARY).read_text())
    if git(root, "rev-parse", "--git-dir") is None:
        raise CannotRun("no git history says which lines are new")
    base = base_of(root)
    if base is None:  # A shallow clone, or the first commit.
        return
    complaints, names = [], collections.defaultdict(list)
    for name, numbers in added_lines(root, base).items():
        if SKIPPED.search(name) or not (root / name).is_file():
            continue
        lines, words = texts_of(name, (root / name).read_text(errors="replace"))
        for number, line in lines:
            if number in numbers:
                complaints += [(name, number, *found) for found in glossary.in_text(plain(line))]
        for number, word in words:
            if number in numbers and (found := next(glossary.in_name(word), None)):
                names[word].append((name, number, *found))
    for word, found in names.items():
        # A name that the base has is not new.
        if git(root, "grep", "-qwF", "-e", word, base, "--", ":!*.md") is None:
            complaints.append(found[0])
    for name, number, there, write in sorted(complaints):
        yield f"{name}:{number}: `{there}`: write {write} ({GLOSSARY})"
