"""Reading a page back: what elements it has, what it would load, and its text."""

from html.parser import HTMLParser

VOID = frozenset(("meta", "link", "br", "hr", "img", "input"))
LOADS = frozenset(("src", "srcset", "data", "action", "poster", "background", "xlink:href"))


class Page(HTMLParser):
    """A page, read. Raises AssertionError where an element is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> within {self._open}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        """All text of the page, its style sheet too."""
        return " ".join(" ".join(self.text).split())

    def loaded(self) -> list[str]:
        """Return every address that a browser would ask for by itself."""
        found = [value for _, name, value in self.attributes if name in LOADS]
        found += [value for tag, name, value in self.attributes if (tag, name) == ("link", "href")]
        style = self.words
        return found + [word for word in ("url(", "@import") if word in style]
