"""A report that is written and read again as a page."""

import json
import re
from html.parser import HTMLParser

import pytest

from mesascope.report import write_report


class Page(HTMLParser):
    """A page's elements, texts and what is not closed."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.texts, self.open, self.data = [], [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert not self.open, f"not closed: {self.open}"
        words = " ".join(" ".join(self.texts).split())
        self.text = re.sub(r"(?<=[\[]) | (?=[\],:;])", "", words)  # elements inside of a sentence part it

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            if self.elements[-1][1].get("type") == "application/json":
                self.data.append(json.loads(data))
        elif not self.open or self.open[-1] != "style":
            self.texts.append(data)

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def links(self):
        return [attributes["href"] for tag, attributes in self.elements if tag == "a"]


@pytest.fixture
def report(tmp_path):
    def write(*what, **options):
        written = write_report(*map(str, what), out=tmp_path / "report.html", **options)
        return written, Page(written.file)

    return write
