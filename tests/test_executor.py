"""Every action on live pages in Chromium, seen only through observations and outcome lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from local_site import LocalSite, Page
from playwright.async_api import ElementHandle
from playwright.async_api import Page as Tab

from webrl_lite.actions import Action, ActionError
from webrl_lite.browser import Browser, BrowserError, Session
from webrl_lite.inputs import iso_value, key_name
from webrl_lite.observation import Element, Observation
from webrl_lite.tabs import Limits, Tabs

QUICK = Limits(settle=2.0, restless=0.3, navigation=2.0)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


class _StandIn:
    id, role, name = "900", "part", "stand-in"

    def __init__(self, session: Session, selector: str):
        self.session, self.selector = session, selector

    async def handle(self) -> ElementHandle:
        return await self.session.tabs.active.query_selector(self.selector)


class Web:
    """One session on one local site, spoken to by element names."""

    def __init__(self, browser: Browser, site: LocalSite, session: Session):
        self.browser, self.site, self.session = browser, site, session
        self.seconds = 0.0

    def open(self, body: str, path: str = "/", **pages: str | Page) -> Web:
        self.site.pages[path] = body
        for name, page in pages.items():
            self.site.pages[f"/{name}"] = page
        self.browser.call(self.session.visit([self.site.url + path]))
        self.see()
        return self

    def see(self) -> str:
        self.view: Observation = self.browser.call(self.session.observe())
        return self.view.text

    def element(self, name: str) -> Element:
        found = [element for element in self.view.elements.values() if element.name == name]
        assert found, f"{name!r} is not in {self.view.text!r}"
        return found[0]

    def do(self, name: str, element: str | None = None, argument: str | None = None) -> str:
        """Act on the element of this name in the last observation; returns the line for the agent."""
        return self.do_id(name, None if element is None else self.element(element).id, argument)

    def do_id(self, name: str, element: str | None = None, argument: str | None = None) -> str:
        begun = time.perf_counter()
        outcome = self.browser.call(self.session.act(Action(name, element, argument)))
        self.seconds = time.perf_counter() - begun
        assert "\n" not in outcome.error
        assert set(outcome.seconds) == {"act", "settle"}
        return outcome.error

    def js(self, expression: str) -> object:
        return self.browser.call(self.session.tabs.active.evaluate(expression))

    def stand_in(self, selector: str) -> str:
        """Put an element that the observation gives no id of its own under the id 900."""
        self.view.elements["900"] = _StandIn(self.session, selector)
        return "900"

    @property
    def path(self) -> str:
        return self.session.url.removeprefix(self.site.url)


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    running = LocalSite()
    yield running
    running.close()


@pytest.fixture(scope="module")
def shared() -> list[Session]:
    """The session that most tests use one after the other, since a context costs half a second of processor time."""
    return []


@pytest.fixture
def web(browser: Browser, site: LocalSite, shared: list[Session]) -> Iterator[Web]:
    site.pages.clear()
    if not shared or shared[0]._fault:
        shared[:] = [browser.call(browser.open([site.url], limits=QUICK))]
    yield Web(browser, site, shared[0])
    if shared[0]._fault:
        return
    for page in shared[0].tabs.pages[1:]:
        browser.call(shared[0].tabs.close(page))


@pytest.fixture
def new_web(browser: Browser, site: LocalSite) -> Iterator[Web]:
    """A session of its own, for what depends on the history or breaks the page."""
    site.pages.clear()
    session = browser.call(browser.open([site.url], limits=QUICK))
    yield Web(browser, site, session)
    browser.call(session.close())


def until(holds: Callable[[], bool]) -> None:
    """Wait for something outside of the browser's control, such as a request that a page sends by itself."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


LOG = "<p id=log></p><script>function log(t) { document.getElementById('log').textContent += t + ' '; }</script>"


# Which element


@pytest.mark.parametrize("element", ["999", "-1", '3"] , body', "", "0", "१"])
def test_an_unknown_id_is_one_line_and_changes_nothing(web: Web, element: str) -> None:
    """ACT-12."""
    web.open("<body onclick='document.title=1' onkeydown='document.title=1'><button>A</button>")
    for name in ("Click", "Hover", "Type", "Select Dropdown Option", "Search", "Press", "Scroll Down"):
        assert web.do_id(name, element, "Enter") == f"There is no element {element} in this observation."
    assert web.js("document.title") == "" and web.path == "/"


def test_an_old_id_acts_on_its_element_or_is_reported_stale(web: Web) -> None:
    """EXE-03."""
    rows = "".join(f"<button onclick='log({n})'>Row {n}</button>" for n in range(10))
    web.open(f"{LOG}<div id=rows>{rows}</div>")
    web.js("""() => { const rows = document.getElementById('rows');
        for (let n = 0; n < 5; n++) rows.insertAdjacentHTML('afterbegin', '<a href="/new">New</a>');
        rows.children[6].remove(); }""")
    assert web.do("Click", "Row 7") == ""
    assert web.js("document.getElementById('log').textContent") == "7 "
    web.js("""() => { const old = [...document.querySelectorAll('button')].find((b) => b.textContent === 'Row 7');
        old.replaceWith(old.cloneNode(true)); }""")
    assert web.do("Click", "Row 7") == (
        f'Element {web.element("Row 7").id} (button "Row 7") is no longer on the page. '
        "Use the ids of the current observation."
    )
    assert web.js("document.getElementById('log').textContent") == "7 "
    web.see()
    assert web.do("Click", "Row 7") == ""


def test_an_id_of_the_page_before_is_stale_after_a_load(web: Web) -> None:
    web.open("<a href=/two>Two</a><button>Old</button>", two="<button onclick='document.title=1'>New</button>")
    web.do("Click", "Two")
    for name, argument in (("Click", None), ("Hover", None), ("Type", "x"), ("Select Dropdown Option", "x")):
        assert "is no longer on the page" in web.do(name, "Old", argument)
    assert web.js("document.title") == "" and web.path == "/two"


def test_of_two_equal_buttons_the_named_one_is_clicked(web: Web) -> None:
    """HTML-13."""
    button = "<button id=save class=b onclick='log({})'>Save</button>"
    web.open(LOG + button.format(1) + button.format(2))
    second = [e for e in web.view.elements.values() if e.name == "Save"][1]
    web.do_id("Click", second.id)
    assert web.js("document.getElementById('log').textContent") == "2 "


@pytest.mark.parametrize("place", ["moved", "below", "frame", "frame below", "shadow", "box"])
def test_every_action_reaches_the_same_live_element(web: Web, place: str) -> None:
    """EXE-22."""
    parts = """<style>.menu {{ display: none }} .top:hover .menu {{ display: block }}</style>
      <button onclick="top.log('click')">Go</button><input aria-label=Field oninput="top.log('type')">
      <div class=top onmouseenter="top.log('hover')" role=menuitem>Menu <a class=menu href=/x>Inside</a></div>"""
    parts = parts.replace("{{", "{").replace("}}", "}")
    web.site.pages["/frame"] = parts
    gap = "<div style='height:1500px'></div>"
    web.open(
        {
            "moved": f"{LOG}<div id=move>{parts}</div>",
            "below": f"{LOG}<div id=move>{parts}</div>{gap}",
            "frame": f"{LOG}<iframe id=move src=/frame height=300></iframe>",
            "frame below": f"{LOG}<iframe id=move src=/frame height=300></iframe>{gap}",
            "shadow": f"{LOG}<div id=move><template shadowrootmode=open>{parts}</template></div>",
            "box": f"{LOG}<div style='height:400px;overflow:auto'><div id=move>{parts}</div>{gap}</div>",
        }[place]
    )
    web.js(f"document.getElementById('move').style.marginTop = '{'1400px' if 'below' in place else '260px'}'")
    assert web.do("Hover", "Menu") == ""
    assert web.do("Click", "Go") == ""
    assert web.do("Type", "Field", "x") == ""
    assert web.js("document.getElementById('log').textContent.split(' ')[0]") == "hover"
    assert {"click", "type"} <= set(str(web.js("document.getElementById('log').textContent")).split())
    web.do("Hover", "Menu")
    assert "Inside" in web.see()


# Click


def test_a_covered_element_is_reported_with_its_cover_and_works_once_that_is_gone(web: Web) -> None:
    """EXE-08."""
    web.open(f"""{LOG}<button onclick="log('paid')">Checkout</button>
      <div id=cookie style="position:fixed;inset:60px 0 0 0;background:#fff">We use cookies
      <button onclick="this.parentNode.remove()">Fine</button></div>""")
    web.js("document.getElementById('cookie').style.inset = '0'")
    line = web.do("Click", "Checkout")
    assert 'is covered by <div id="cookie"> "We use cookies Fine"' in line
    assert web.seconds < 3
    assert "covered by" in web.do("Hover", "Checkout")
    assert web.js("document.getElementById('log').textContent") == ""
    assert web.do("Click", "Fine") == "" and web.do("Click", "Checkout") == ""
    assert web.js("document.getElementById('log').textContent") == "paid "


def test_a_cover_in_the_outer_page_is_named_for_a_button_in_a_frame(web: Web) -> None:
    """EXE-08."""
    web.open(
        "<iframe src=/inner></iframe><aside id=late hidden style='position:fixed;inset:0'>Wait!</aside>",
        inner="<button onclick='parent.document.title=1'>Pay</button>",
    )
    web.js("document.getElementById('late').hidden = false")
    assert 'is covered by <aside id="late"> "Wait!"' in web.do("Click", "Pay")
    assert web.js("document.title") == ""
    web.js("document.getElementById('late').remove()")
    assert web.do("Click", "Pay") == "" and web.js("document.title") == "1"


def test_a_link_that_ends_up_under_a_sticky_header_is_still_clicked(web: Web) -> None:
    """EXE-08."""
    web.open(f"""{LOG}<header style="position:sticky;top:0;height:90px;background:#eee">Head</header>
      <div style="height:300px"></div><a href="#" onclick="log('hit')">Link</a><div style="height:3000px"></div>""")
    web.js("window.scrollTo(0, 350)")
    assert web.do("Click", "Link") == ""
    assert web.js("document.getElementById('log').textContent") == "hit "


def test_a_cover_that_fades_away_is_waited_for(web: Web) -> None:
    web.open(
        f"{LOG}<button onclick=\"log('hit')\">Go</button><div id=veil hidden style='position:fixed;inset:0'></div>"
    )
    web.js("() => { veil.hidden = false; setTimeout(() => veil.remove(), 300) }")
    assert web.do("Click", "Go") == ""
    assert web.js("document.getElementById('log').textContent") == "hit "


@pytest.mark.parametrize(
    "body",
    [
        "<button disabled>Buy</button>",
        "<fieldset disabled><button>Buy</button></fieldset>",
        "<button aria-disabled=true>Buy</button>",
        "<input type=submit value=Buy disabled>",
    ],
)
def test_a_disabled_control_is_reported_at_once(web: Web, body: str) -> None:
    web.open(f"<body onclick='document.title=1'>{body}")
    assert web.do("Click", "Buy").endswith('"Buy") is disabled.')
    assert web.seconds < 1 and web.js("document.title") == ""


def test_a_disabled_field_or_list_is_reported(web: Web) -> None:
    web.open("<input aria-label=A disabled value=v><select aria-label=B disabled><option>x<option>y</select>")
    assert "is disabled" in web.do("Type", "A", "z") and "is disabled" in web.do("Select Dropdown Option", "B", "y")
    assert web.js("document.querySelector('input').value + document.querySelector('select').value") == "vx"


def test_a_hidden_box_with_a_drawn_label_is_clicked_through_its_label(web: Web) -> None:
    web.open("""<style>input { position: absolute; opacity: 0; width: 0; height: 0 }
      i { padding: 9px; background: red }</style>
      <label><input type=checkbox id=c onchange="document.title = this.checked"><i></i>Agree</label>""")
    name = next(e.name for e in web.view.elements.values() if "Agree" in e.name)
    assert web.do("Click", name) == ""
    assert web.js("document.title") == "true"


def test_a_click_on_a_list_says_how_to_choose(web: Web) -> None:
    web.open("<select aria-label=Size><option>S<option>M</select>")
    assert "is a list; use Select Dropdown Option with one of: S | M." in web.do("Click", "Size")


def test_a_click_that_would_open_a_window_of_the_browser_says_so(web: Web) -> None:
    web.open("<input type=file aria-label=File><input type=color aria-label=Colour>")
    assert "files cannot be uploaded" in web.do("Click", "File")
    assert "#ff0000" in web.do("Click", "Colour")
    assert (
        web.do("Type", "Colour", "00FF00") == "" and web.js("document.querySelectorAll('input')[1].value") == "#00ff00"
    )


def test_a_moving_element_is_clicked_or_reported_in_time(web: Web) -> None:
    web.open("""<style>@keyframes m { from { left: 0 } to { left: 900px } }
      button { position: absolute; animation: m 1s infinite alternate linear }</style><button>Run</button>""")
    line = web.do("Click", "Run")
    assert line == "" or "keeps moving" in line or "could not be reached" in line
    assert web.seconds < 6


def test_an_element_that_became_invisible_is_reported(web: Web) -> None:
    web.open("<button>Go</button>")
    web.js("document.querySelector('button').style.display = 'none'")
    assert web.do("Click", "Go").endswith("is not visible, so the click was not done.")


# Type


@pytest.mark.parametrize("kind", ["text", "search", "number", "email", "tel", "url", "password"])
def test_typing_replaces_and_fires_input_and_change(web: Web, kind: str) -> None:
    """EXE-13."""
    web.open(f"{LOG}<input type={kind} aria-label=F value=5 oninput=\"log('i')\" onchange=\"log('c')\">")
    assert web.do("Type", "F", "7") == ""
    assert web.js("document.querySelector('input').value") == "7"
    events = str(web.js("document.getElementById('log').textContent")).split()
    assert "i" in events and "c" in events
    assert web.do("Type", "F", "") == ""
    assert web.js("document.querySelector('input').value") == ""


def test_typing_into_a_textarea_keeps_line_breaks(web: Web) -> None:
    """EXE-13."""
    web.open("<form action=/sent><textarea aria-label=F>Old</textarea></form>")
    for text in ("one\ntwo", "ends\n", "", "tab\tstop"):
        assert web.do("Type", "F", text) == ""
        assert web.js("document.querySelector('textarea').value") == text
    assert web.path == "/"


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\na b", "a b\n", "a\n\nb"])
def test_a_line_break_in_a_single_line_field_does_not_submit(web: Web, text: str) -> None:
    web.open("<form action=/sent><input name=q aria-label=F></form>", sent="sent")
    web.do("Type", "F", text)
    assert web.path == "/" and web.js("document.querySelector('input').value") == "a b"


def test_any_text_arrives_as_it_is(web: Web) -> None:
    """ACT-09."""
    web.open("<input aria-label=F><textarea aria-label=G></textarea>")
    for text in (
        r"C:\Users\mia\notes",
        "It's here",
        '"',
        "   three spaces",
        "価格 ¥1,200 café ’“”",
        "👩‍💻 ok 👍🏽",
        "e\u0301",
        "مرحبا",
        "</input><b>",
        "{Enter}",
        "x" * 300,
    ):
        assert web.do("Type", "F", text) == "" and web.do("Type", "G", text) == ""
        assert web.js("[...document.querySelectorAll('input, textarea')].map((e) => e.value)") == [text, text]


def test_a_readonly_field_is_reported(web: Web) -> None:
    """EXE-13."""
    web.open("<input aria-label=F readonly value=Old><textarea aria-label=G readonly>Old</textarea>")
    assert web.do("Type", "F", "7").endswith('(input "F") is read-only.')
    assert "is read-only" in web.do("Type", "G", "7")
    assert web.js("document.querySelector('input').value") == "Old"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<button>F</button>", "is a button; use Click"),
        ("<a href=/x>F</a>", "is not a text field"),
        ("<label>F<input type=checkbox></label>", "is a checkbox; use Click"),
        ("<label>F<input type=radio></label>", "is a radio button; use Click"),
        ("<input type=submit value=F>", "is a button; use Click"),
        ("<select aria-label=F><option>x</select>", "is a list; use Select Dropdown Option"),
        ("<input type=file aria-label=F>", "files cannot be uploaded here"),
    ],
)
def test_typing_into_anything_else_says_what_it_is(web: Web, body: str, said: str) -> None:
    web.open(body)
    assert said in web.do("Type", "F", "x")


@pytest.mark.parametrize(
    ("body", "outer"),
    [
        ("<label>Name <input></label>", "label"),
        ("<label for=i>Name</label><input id=i>", "label"),
        ("<label>Your <b>name</b> <input></label>", "b"),
        ("<div><span>Name</span><input type=hidden><input></div>", "div"),
        ("<x-field><template shadowrootmode=open><input></template></x-field>", "x-field"),
    ],
)
def test_a_label_or_wrapper_stands_for_its_field(web: Web, body: str, outer: str) -> None:
    web.open(body)
    assert web.do_id("Type", web.stand_in(outer), "Mia") == ""
    if outer == "x-field":
        assert web.js("document.querySelector('x-field').shadowRoot.querySelector('input').value") == "Mia"
        return
    web.js("document.querySelector('input[type=hidden]')?.remove()")
    assert web.js("document.querySelector('input').value") == "Mia"


def test_rich_text_is_replaced(web: Web) -> None:
    web.open("<div contenteditable aria-label=Note role=textbox>Old <b>bold</b> text</div>")
    assert web.do("Type", "Note", "New text") == ""
    assert web.js("document.querySelector('div').innerText.trim()") == "New text"
    assert web.do("Type", "Note", "") == "" and web.js("document.querySelector('div').innerText.trim()") == ""


def test_an_editor_in_a_frame_is_filled(web: Web) -> None:
    web.open("<iframe src=/editor></iframe>", editor="<body contenteditable aria-label=Editor role=textbox>Old")
    web.do("Type", "Editor", "New")
    assert web.js("document.querySelector('iframe').contentDocument.body.innerText.trim()") == "New"


@pytest.mark.parametrize(
    ("body", "text", "said"),
    [
        ("<input aria-label=F maxlength=3>", "abcdef", "now holds `abc` and not `abcdef`"),
        ("<input aria-label=F type=number>", "12 apples", "takes a number; `12 apples` was not accepted"),
        ("<input aria-label=F oninput='this.value = this.value.replace(/\\D/g, \"\")'>", "a1b2", "now holds `12`"),
        ("<input aria-label=F type=range min=0 max=10>", "99", "now holds `10` and not `99`"),
    ],
)
def test_a_field_that_takes_something_else_is_reported(web: Web, body: str, text: str, said: str) -> None:
    web.open(body)
    assert said in web.do("Type", "F", text)


def test_a_mask_that_only_formats_is_no_error(web: Web) -> None:
    web.open("""<input aria-label=F oninput="const d = this.value.replace(/\\D/g, '');
      this.value = d.length > 3 ? d.slice(0, 3) + '-' + d.slice(3) : d">""")
    assert web.do("Type", "F", "5551234") == ""
    assert web.js("document.querySelector('input').value") == "555-1234"


@pytest.mark.parametrize("event", ["input", "keydown", "keyup", "keypress", "change"])
def test_suggestions_appear_whatever_event_the_widget_listens_to(web: Web, event: str) -> None:
    web.open(f"""<input aria-label=City id=i><ul></ul><script>
      document.querySelector('input').addEventListener('{event}', (e) => setTimeout(() => {{
        document.querySelector('ul').innerHTML = ['Paris', 'Parma', 'Oslo'].filter((c) => c.startsWith(e.target.value))
          .map((c) => `<li role=option onclick="i.value = this.textContent">` + c).join('');
      }}, 150));</script>""")
    assert web.do("Type", "City", "Par") == ""
    text = web.see()
    assert "Parma" in text and "Oslo" not in text
    web.do("Click", "Parma")
    assert web.js("document.querySelector('input').value") == "Parma"


@pytest.mark.parametrize(
    ("kind", "text", "iso"),
    [
        ("date", "10/16/2012", "2012-10-16"),
        ("date", "2012-10-16", "2012-10-16"),
        ("time", "2:30 PM", "14:30"),
        ("month", "October 2012", "2012-10"),
        ("week", "week 42, 2012", "2012-W42"),
        ("datetime-local", "10/16/2012 2:30 pm", "2012-10-16T14:30"),
        ("date", "", ""),
    ],
)
def test_date_and_time_fields_take_human_forms(web: Web, kind: str, text: str, iso: str) -> None:
    web.open(f"{LOG}<input type={kind} aria-label=F onchange=\"log('c')\" oninput=\"log('i')\">")
    assert web.do("Type", "F", text) == ""
    assert web.js("document.querySelector('input').value") == iso
    assert text == "" or {"c", "i"} <= set(str(web.js("document.getElementById('log').textContent")).split())


def test_a_date_that_cannot_be_read_is_reported_with_an_example(web: Web) -> None:
    web.open("<input type=date aria-label=F value=2012-10-16>")
    assert web.do("Type", "F", "next week").endswith("takes a date such as 10/16/2012; `next week` was not understood.")
    assert web.js("document.querySelector('input').value") == "2012-10-16"


@pytest.mark.parametrize(
    ("kind", "text", "iso"),
    [
        ("date", "16 Oct 2012", "2012-10-16"),
        ("date", "October 16th, 2012", "2012-10-16"),
        ("date", "oct 3 2012", "2012-10-03"),
        ("date", "Sept. 3, 2012", "2012-09-03"),
        ("date", "16/10/2012", "2012-10-16"),
        ("date", "10/11/2012", "2012-10-11"),
        ("date", "10.11.2012", "2012-11-10"),
        ("date", "1/2/2023", "2023-01-02"),
        ("date", "2012/10/16", "2012-10-16"),
        ("date", "31/02/2012", None),
        ("date", "10/16/12", None),
        ("date", "16", None),
        ("date", "2012-10-16T14:30", None),
        ("time", "14:30", "14:30"),
        ("time", "2:30pm", "14:30"),
        ("time", "2 p.m.", "14:00"),
        ("time", "12:05 AM", "00:05"),
        ("time", "12 pm", "12:00"),
        ("time", "14:30:05", "14:30:05"),
        ("time", "25:00", None),
        ("time", "14:30 PM", None),
        ("month", "2012-10", "2012-10"),
        ("month", "10/2012", "2012-10"),
        ("month", "Oct 2012", "2012-10"),
        ("month", "13/2012", None),
        ("week", "2012-W42", "2012-W42"),
        ("week", "Week 7 of 2012", "2012-W07"),
        ("week", "2012-W60", None),
        ("datetime-local", "2012-10-16T14:30", "2012-10-16T14:30"),
        ("datetime-local", "Oct 16, 2012 at 2:30 PM", "2012-10-16T14:30"),
        ("datetime-local", "16 October 2012, 14:30", "2012-10-16T14:30"),
        ("datetime-local", "10/16/2012", None),
    ],
)
def test_dates_and_times_as_people_write_them(kind: str, text: str, iso: str | None) -> None:
    assert iso_value(kind, text) == iso


def test_search_types_and_presses_enter(web: Web) -> None:
    web.open("<form action=/found><input name=q aria-label=F value=old></form>", found="<h1>Found</h1>")
    assert web.do("Search", "F", "blue kettle") == ""
    assert web.path == "/found?q=blue+kettle" and "Found" in web.see()


def test_search_on_a_button_does_not_press_anything(web: Web) -> None:
    web.open("<button onclick='document.title=1'>Go</button>")
    web.do("Click", "Go")
    web.js("document.title = ''")
    assert "use Click" in web.do("Search", "Go", "x") and web.js("document.title") == ""


# Press


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("enter", "Enter"),
        ("ENTER", "Enter"),
        ("Return", "Enter"),
        ("Esc", "Escape"),
        ("ctrl+a", "Control+a"),
        ("Control+A", "Control+a"),
        ("CTRL + A", "Control+a"),
        ("Ctrl+Shift+Tab", "Control+Shift+Tab"),
        ("Shift+A", "Shift+A"),
        ("PgDn", "PageDown"),
        ("page down", "PageDown"),
        ("Page_Up", "PageUp"),
        ("ArrowDown", "ArrowDown"),
        ("Arrow Down", "ArrowDown"),
        ("down", "ArrowDown"),
        ("space", "Space"),
        (" ", "Space"),
        ("del", "Delete"),
        ("f5", "F5"),
        ("a", "a"),
        ("A", "A"),
        ("+", "+"),
        ("ctrl++", "Control++"),
        ("é", "é"),
    ],
)
def test_key_names_and_their_usual_spellings(text: str, name: str) -> None:
    """EXE-15."""
    assert key_name(text) == name


@pytest.mark.parametrize("text", ["Foo", "", "Enter Enter", "a+b", "ctrl+", "Ctrl+Foo", "\n", "F13"])
def test_an_unknown_key_is_refused_with_the_names(text: str) -> None:
    """EXE-15."""
    with pytest.raises(ActionError, match="There is no key|not a key combination"):
        key_name(text)


def test_keys_reach_the_page(web: Web) -> None:
    """EXE-15."""
    web.open(f"{LOG}<body onkeydown=\"log((event.ctrlKey ? 'c+' : '') + event.key)\"><input aria-label=F value=abc>")
    for text in ("enter", "Esc", "PgDn", "down", "x"):
        assert web.do_id("Press", None, text) == ""
    assert web.js("document.getElementById('log').textContent") == "Enter Escape PageDown ArrowDown x "
    assert web.do_id("Press", None, "Foo").startswith("There is no key `Foo`. Keys: Enter, Escape, ")
    assert web.seconds < 1
    web.do("Press", "F", "Control+A")
    web.do_id("Press", None, "Backspace")
    assert web.js("document.querySelector('input').value") == ""


# Scroll


def test_the_window_scrolls_by_two_thirds_and_says_when_nothing_moves(web: Web) -> None:
    web.open("<h1>Top</h1><div style='height:1100px'></div><h1>Bottom</h1>")
    assert web.do_id("Scroll Up") == "Nothing moved: this is already the top."
    assert web.do_id("Scroll Down") == "" and web.js("scrollY") == 480
    assert web.do_id("Scroll Down") == "" and "Bottom" in web.see()
    assert web.do_id("Scroll Down") == "Nothing moved: this is already the end."
    assert web.do_id("Scroll Up") == "" and web.do_id("Scroll Up") == "" and web.js("scrollY") == 0


def test_a_page_that_fits_has_nothing_to_scroll(web: Web) -> None:
    web.open("<h1>Small</h1>")
    assert web.do_id("Scroll Down") == "Nothing moved: the whole page is in view."


@pytest.mark.parametrize(
    "body",
    [
        "<body style='overflow:hidden'><div style='height:600px;overflow:auto'>{rows}</div>",
        "<body style='overflow:hidden'><div style='height:600px;overflow:auto'>{rows}</div><p style='height:2000px'>",
        "<style>html,body {{ height:100%; margin:0; overflow:hidden }}</style>"
        "<div style='height:100%;overflow-y:scroll'>{rows}</div>",
        "<div style='height:2000px'>Page</div>"
        "<div role=dialog style='position:fixed;inset:100px;overflow:auto'>{rows}</div>",
        "<div style='height:2000px'>Page</div><dialog><div style='height:300px;overflow:auto'>{rows}</div></dialog>"
        "<script>document.querySelector('dialog').showModal()</script>",
        "<div style='height:2000px'>Page</div>"
        "<div style='position:fixed;inset:0;overflow:auto'><div role=dialog>{rows}</div></div>",
    ],
)
def test_scroll_moves_the_box_in_use(web: Web, body: str) -> None:
    """EXE-09."""
    web.open(body.format(rows="".join(f"<p>Row {n}</p>" for n in range(200))))
    assert "Row 40" not in web.see()
    for _ in range(12):
        assert web.do_id("Scroll Down") == ""
        if "Row 40" in web.see():
            break
    assert "Row 40" in web.view.text and web.js("scrollY") == 0
    web.js("for (const e of document.querySelectorAll('div, dialog')) e.scrollTop = 1e6")
    assert web.do_id("Scroll Down") == "Nothing moved: this is already the end."
    assert web.do_id("Scroll Up") == ""


def test_scroll_on_an_element_moves_its_own_box_then_the_page(web: Web) -> None:
    rows = "".join(f"<p><button>Row {n}</button></p>" for n in range(20))
    web.open(f"<div id=box style='height:200px;overflow:auto'>{rows}</div><div style='height:2000px'></div>")
    assert web.do("Scroll Down", "Row 0") == ""
    assert web.js("[document.getElementById('box').scrollTop > 100, scrollY]") == [True, 0]
    web.js("document.getElementById('box').scrollTop = 1e6")
    assert web.do("Scroll Down", "Row 0") == "" and web.js("scrollY > 0") is True


def test_scroll_in_a_frame_moves_the_frame(web: Web) -> None:
    rows = "".join(f"<p><button>Row {n}</button></p>" for n in range(40))
    web.open("<iframe src=/rows height=300></iframe><div style='height:2000px'></div>", rows=rows)
    assert web.do("Scroll Down", "Row 1") == ""
    assert web.js("[document.querySelector('iframe').contentWindow.scrollY > 100, scrollY]") == [True, 0]


def test_scrolling_loads_what_comes_on_demand(web: Web) -> None:
    web.open(
        """<div style='height:1500px'></div><script>
      addEventListener('scroll', () => fetch('/more').then((r) => r.text())
      .then((t) => document.body.insertAdjacentHTML('afterbegin', `<h1 style="position:fixed;top:0">${t}</h1>`)),
      {once: true})</script>""",
        more=Page("Loaded more", delay=0.3),
    )
    web.do_id("Scroll Down")
    assert "Loaded more" in web.see()


def test_scroll_turns_the_parts_of_a_cut_observation_first(web: Web) -> None:
    """HTML-09."""
    web.open("".join(f"<a href=/{n}>Link {n}</a> " for n in range(400)))
    see = lambda: web.browser.call(web.session.observe(budget=200))  # noqa: E731
    first = see()
    assert first.cut > 0 and "Link 0 " in first.text
    seen = first.text
    assert web.do_id("Scroll Down") == "" and web.js("scrollY") == 0
    second = see()
    assert second.skipped == first.shown and "Link 0 " not in second.text
    assert web.do_id("Scroll Up") == "" and see().text == first.text
    for _ in range(60):
        web.do_id("Scroll Down")
        seen += see().text
        if web.session.observation.elements and "Link 399" in seen:
            break
    assert "Link 399" in seen


# Select


OPTIONS = """<select aria-label=S {} onchange="document.title = this.value"><option value=f>Female<option value=m>Male
  <option value=n>Prefer  not to say<option value=d disabled>Other</select>"""


@pytest.mark.parametrize(
    ("argument", "value"),
    [("Male", "m"), ("male", "m"), (" MALE ", "m"), ("Prefer not to say", "n"), ("prefernottosay", "n"), ("m", "m")],
)
def test_an_option_is_chosen_by_its_label_then_loosely_then_by_value(web: Web, argument: str, value: str) -> None:
    """EXE-10."""
    web.open(OPTIONS.format(""))
    assert web.do("Select Dropdown Option", "S", argument) == ""
    assert web.js("[document.querySelector('select').value, document.title]") == [value, value]


@pytest.mark.parametrize("argument", ["ale", "Mal", "Fe", "", "Prefer", "Female Male", "x"])
def test_a_part_of_a_label_chooses_nothing_and_lists_the_options(web: Web, argument: str) -> None:
    """EXE-10."""
    web.open(OPTIONS.format(""))
    line = web.do("Select Dropdown Option", "S", argument)
    assert line.endswith("it has one of: Female | Male | Prefer not to say.") or "has no option" in line
    assert web.js("document.querySelector('select').value") == "f" and web.js("document.title") == ""


def test_one_among_ten_and_eleven_is_one(web: Web) -> None:
    """EXE-10."""
    web.open("<select aria-label=S><option>10<option>11<option>1</select>")
    assert web.do("Select Dropdown Option", "S", "1") == ""
    assert web.js("document.querySelector('select').value") == "1"


def test_an_exact_label_wins_over_another_case_and_over_a_value(web: Web) -> None:
    web.open("<select aria-label=S><option value=B>a<option value=x>A<option value=A>B</select>")
    assert web.do("Select Dropdown Option", "S", "A") == ""
    assert web.js("document.querySelector('select').selectedIndex") == 1


def test_a_disabled_option_is_refused_at_once(web: Web) -> None:
    web.open(OPTIONS.format(""))
    assert "The option `Other`" in web.do("Select Dropdown Option", "S", "Other")
    assert web.seconds < 1 and web.js("document.querySelector('select').value") == "f"


def test_the_chosen_option_again_is_no_error_and_no_event(web: Web) -> None:
    web.open(OPTIONS.format(""))
    assert web.do("Select Dropdown Option", "S", "Female") == "" and web.js("document.title") == ""


def test_several_options_replace_the_choice_of_a_multiple_list(web: Web) -> None:
    web.open("<select multiple aria-label=S><option selected>A<option>B<option>C | D<option>E</select>")
    chosen = "[...document.querySelector('select').selectedOptions].map((o) => o.label)"
    assert web.do("Select Dropdown Option", "S", "B | E") == "" and web.js(chosen) == ["B", "E"]
    assert web.do("Select Dropdown Option", "S", "C | D") == "" and web.js(chosen) == ["C | D"]
    assert "has no option `X`" in web.do("Select Dropdown Option", "S", "B | X") and web.js(chosen) == ["C | D"]


def test_a_bar_in_a_single_list_is_part_of_the_label(web: Web) -> None:
    web.open("<select aria-label=S><option>A<option>B</select>")
    assert "has no option `A | B`" in web.do("Select Dropdown Option", "S", "A | B")


def test_a_list_inside_a_label_is_found_from_the_label(web: Web) -> None:
    web.open("<label>Size <select><option>S<option>M</select></label>")
    assert web.do_id("Select Dropdown Option", web.stand_in("label"), "M") == ""
    assert web.do_id("Select Dropdown Option", web.stand_in("option"), "S") == ""
    assert web.do_id("Select Dropdown Option", web.stand_in("label"), "M") == ""
    assert web.js("document.querySelector('select').value") == "M"


def test_a_list_made_of_boxes_says_to_click(web: Web) -> None:
    web.open("<div role=combobox tabindex=0 aria-label=Size>M</div>")
    line = web.do("Select Dropdown Option", "Size", "M")
    assert "is a <div> and not a native list; Click it to open it" in line


def test_options_with_entities_groups_and_label_attributes(web: Web) -> None:
    web.open("""<select aria-label=S><optgroup label=G disabled><option>In</optgroup>
      <option>Tom &amp; Jerry</option><option label="Shown">Hidden</option></select>""")
    assert web.do("Select Dropdown Option", "S", "Tom & Jerry") == ""
    assert web.do("Select Dropdown Option", "S", "Shown") == ""
    assert web.js("document.querySelector('select').selectedIndex") == 2
    assert "is disabled" in web.do("Select Dropdown Option", "S", "In")


# Tabs


def test_a_link_to_a_new_tab_is_followed_and_the_old_tab_can_be_focused(web: Web) -> None:
    """EXE-01."""
    web.open("<h1>First</h1><a target=_blank href=/two>Open</a>", two="<h1>Second</h1>")
    assert web.do("Click", "Open") == ""
    assert "Second" in web.see() and len(web.session.tabs.pages) == 2 and web.session.tabs.index == 1
    assert web.do_id("Tab Focus", None, "0") == "" and "First" in web.see()
    assert len(web.session.tabs.pages) == 2


@pytest.mark.parametrize("delay", [0, 300])
def test_a_window_opened_by_script_is_followed(web: Web, delay: int) -> None:
    """EXE-01."""
    web.open(f"<button onclick=\"setTimeout(() => window.open('/two'), {delay})\">Open</button>", two="<h1>Second</h1>")
    web.do("Click", "Open")
    assert "Second" in web.see() and len(web.session.tabs.pages) == 2


def test_a_window_that_comes_late_is_followed_at_the_next_look(web: Web) -> None:
    """EXE-01."""
    code = "const w = new Worker(window.URL.createObjectURL(new Blob(['setTimeout(() => postMessage(1), 700)'])));"
    web.open(f"<button onclick=\"{code} w.onmessage = () => window.open('/two')\">Open</button>", two="<h1>Second</h1>")
    web.site.hits.clear()
    web.do("Click", "Open")
    until(lambda: "GET /two" in web.site.hits)
    assert "Second" in web.see() and web.session.tabs.index == 1


def test_after_a_window_closed_itself_a_live_tab_is_active(web: Web) -> None:
    """EXE-01."""
    web.open("<h1>First</h1><button onclick=\"window.open('/two')\">Open</button>",
             two="<h1>Second</h1><script>setTimeout(close, 1000)</script>")  # fmt: skip
    web.do("Click", "Open")
    until(lambda: len(web.session.tabs.pages) == 1)
    assert "First" in web.see() and len(web.session.tabs.pages) == 1
    assert web.do("Click", "Open") == ""


def test_new_tab_close_tab_and_their_limits(new_web: Web) -> None:
    web = new_web
    web.open("<h1>First</h1>", two="<h1>Second</h1>")
    assert web.do_id("Close Tab") == "The last tab cannot be closed."
    assert web.do_id("New Tab", None, web.site.url + "/two") == "" and "Second" in web.see()
    assert web.do_id("New Tab") == "" and web.session.url == "about:blank"
    web.see()
    assert web.do_id("Tab Focus", None, "3") == "There is no tab 3; tabs are numbered from 0 to 2."
    for wrong in ("-1", "one", "", "1.0", "99999"):
        assert "tabs are numbered from 0 to 2" in web.do_id("Tab Focus", None, wrong)
    assert web.do_id("Close Tab") == "" and web.path == "/two"
    for _ in range(3):
        assert web.do_id("New Tab") == ""
    assert web.do_id("New Tab") == "5 tabs are open, which is the limit. Close one first."


def test_pop_ups_beyond_the_limit_are_closed_and_reported(web: Web) -> None:
    web.open("<button onclick=\"for (let n = 0; n < 9; n++) window.open('/two')\">Open</button>", two="<h1>Second</h1>")
    line = web.do("Click", "Open")
    assert "A new tab was closed at once: 5 tabs are open, which is the limit." in line
    web.see()
    assert len(web.session.tabs.pages) == 5 and "Second" in web.see()


def test_a_relative_new_tab_address_is_understood(web: Web) -> None:
    web.open("<h1>First</h1>", two="<h1>Second</h1>")
    assert web.do_id("New Tab", None, "/two") == "" and web.path == "/two"


# Navigation


def test_goto_back_and_forward(new_web: Web) -> None:
    web = new_web
    web.open("<h1>First</h1>", two="<h1>Second</h1>")
    assert web.do_id("Go Back") == "There is no previous page in this tab." and web.path == "/"
    assert web.do_id("Go Forward") == "There is no next page in this tab."
    assert web.do_id("Goto", None, f"{web.site.url}/two") == "" and "Second" in web.see()
    assert web.do_id("Go Back") == "" and "First" in web.see()
    assert web.do_id("Go Forward") == "" and "Second" in web.see()


@pytest.mark.parametrize(
    "form", ["{url}/two", "/two", "{host}/two", "//{host}/two", "HTTP://{host}/two", " {url}/two "]
)
def test_goto_understands_usual_ways_to_write_an_address(web: Web, form: str) -> None:
    web.open("<h1>First</h1>", two="<h1>Second</h1>")
    assert web.do_id("Goto", None, form.format(url=web.site.url, host=web.site.url[7:])) == ""
    assert web.path == "/two"


def test_back_within_a_page_counts_as_back(new_web: Web) -> None:
    web = new_web
    web.open("<a href=#part>Part</a><h1 id=part>Part 1</h1>")
    web.do("Click", "Part")
    assert web.path == "/#part"
    assert web.do_id("Go Back") == "" and web.path == "/"


def test_a_script_history_entry_can_be_gone_back_from(web: Web) -> None:
    web.open("<button onclick=\"history.pushState({}, '', '/state')\">Push</button>")
    web.do("Click", "Push")
    assert web.path == "/state" and web.do_id("Go Back") == "" and web.path == "/"


@pytest.mark.parametrize("status", [404, 500, 403])
def test_an_error_page_is_a_page(web: Web, status: int) -> None:
    web.open("<a href=/bad>Bad</a>", bad=Page("<h1>Sorry</h1>", status))
    assert web.do("Click", "Bad") == "" and "Sorry" in web.see()


def test_an_error_without_a_page_is_reported_and_the_page_stays(web: Web) -> None:
    web.open("<h1>First</h1><a href=/bad>Bad</a>", bad=Page("", 500))
    line = web.do("Click", "Bad")
    assert line == f"{web.site.url}/bad could not be shown (net::ERR_HTTP_RESPONSE_CODE_FAILURE)."
    assert web.path == "/" and "First" in web.see()


def test_wait_lets_the_page_change(browser: Browser, site: LocalSite) -> None:
    session = browser.call(browser.open([site.url], limits=Limits(settle=2.0, restless=10.0)))
    web = Web(browser, site, session)
    code = "const w = new Worker(window.URL.createObjectURL(new Blob(['setTimeout(() => postMessage(1), 200)'])));"
    web.open(f"<h1 id=h>Now</h1><button onclick=\"{code} w.onmessage = () => h.textContent = 'Then'\">Go</button>")
    web.do("Click", "Go")
    assert web.do_id("Wait") == "" and "Then" in web.see()
    browser.call(session.close())


# Dialogs


@pytest.mark.parametrize(
    ("body", "line", "title"),
    [
        ("<a href=# onclick=\"document.title = confirm('Delete it?')\">Go</a>",
         'A confirm dialog said "Delete it?" and was accepted.', "true"),
        ("<button onclick=\"alert('Saved'); document.title = 1\">Go</button>",
         'A alert dialog said "Saved" and was accepted.', "1"),
        ("<button onclick=\"document.title = prompt('Name?', 'Mia')\">Go</button>",
         'A prompt dialog said "Name?" and was accepted.', "Mia"),
        ("<button onclick=\"document.title = prompt('') === ''\">Go</button>", "A prompt dialog was accepted.", "true"),
    ],
)  # fmt: skip
def test_a_dialog_is_accepted_and_reported(web: Web, body: str, line: str, title: str) -> None:
    """EXE-02."""
    web.open(body)
    assert web.do("Click", "Go") == line.replace("A alert", "An alert")
    assert web.js("document.title") == title and web.seconds < 4  # one that stays open costs `Limits.hang`, 5 s
    assert line.replace("A alert", "An alert") in web.see()


def test_an_alert_on_load_is_reported(web: Web) -> None:
    """EXE-02."""
    web.open("<a href=/two>Two</a>", two="<script>alert('Welcome')</script><h1>Second</h1>")
    assert web.do("Click", "Two") == 'An alert dialog said "Welcome" and was accepted.'
    assert "Second" in web.see()


def test_leaving_a_form_that_asks_first_is_accepted(web: Web) -> None:
    """EXE-02."""
    web.open("<input aria-label=F><script>onbeforeunload = (e) => { e.preventDefault(); return 'x' }</script>",
             two="<h1>Second</h1>")  # fmt: skip
    web.do("Type", "F", "draft")
    line = web.do_id("Goto", None, "/two")
    assert web.path == "/two" and line == "A beforeunload dialog was accepted."


def test_many_dialogs_are_summed_up_and_long_ones_cut(web: Web) -> None:
    """EXE-02."""
    web.open("""<button onclick="for (let n = 0; n < 30; n++) alert('Note ' + n)">Many</button>
      <button onclick="for (let n = 0; n < 30; n++) alert('Same')">Same</button>
      <button onclick="alert('x'.repeat(5000) + '\\n\\nend')">Long</button>""")
    line = web.do("Click", "Many")
    assert '"Note 2"' in line and '"Note 3"' not in line and line.endswith("27 more dialogs were accepted.")
    assert web.do("Click", "Same") == 'An alert dialog said "Same" and was accepted. (30 times)'
    assert len(web.do("Click", "Long")) < 260


# Downloads


@pytest.mark.parametrize("way", ["link", "goto", "new tab link", "script"])
@pytest.mark.parametrize("kind", ["attachment", "pdf", "zip"])
def test_a_download_is_refused_and_reported_and_the_page_stays(web: Web, way: str, kind: str) -> None:
    """EXE-06."""
    file = {
        "attachment": Page("a,b", kind="text/csv", headers={"Content-Disposition": "attachment; filename=report.csv"}),
        "pdf": Page(b"%PDF-1.4\n%%EOF", kind="application/pdf"),
        "zip": Page(b"PK\x05\x06" + b"\0" * 18, kind="application/zip"),
    }[kind]
    web.open(
        """<h1>First</h1><input aria-label=F><a href=/file>File</a><a href=/file target=_blank>Tab</a>
      <button onclick="location = '/file'">Script</button>""",
        file=file,
    )
    web.do("Type", "F", "kept")
    if way == "goto":
        line = web.do_id("Goto", None, "/file")
    else:
        line = web.do("Click", {"link": "File", "new tab link": "Tab", "script": "Script"}[way])
    text = web.see()
    assert "A download was refused: " in line or "A download was refused: " in text
    assert "First" in text and '"kept"' in text and web.path == "/" and len(web.session.tabs.pages) == 1


# Settling


def test_a_page_that_polls_ends_in_time_with_its_content(web: Web) -> None:
    """EXE-05."""
    web.open("<h1>Live</h1><button>Go</button><script>setInterval(() => fetch('/ping'), 100)</script>", ping="ok")
    assert web.do("Click", "Go") == "" and web.seconds < 3 and "Live" in web.see()


def test_a_page_that_polls_by_chained_timers_ends_in_time(web: Web) -> None:
    """EXE-05."""
    web.open(
        """<h1>Live</h1><button>Go</button><script>
      async function poll() { await fetch('/ping'); setTimeout(poll, 100) } poll()</script>""",
        ping="ok",
    )
    assert web.do("Click", "Go") == "" and web.seconds < 3 and "Live" in web.see()


def test_a_request_that_never_answers_costs_one_limit_only(new_web: Web) -> None:
    """EXE-05."""
    web = new_web
    web.open("<h1>Live</h1><button>Go</button><script>fetch('/never')</script>", never=Page("", delay=8))
    assert web.do("Click", "Go") == "" and web.seconds < 3 and "Live" in web.see()
    web.do("Click", "Go")
    assert web.seconds < 1


def test_a_page_that_never_rests_is_given_less_time_once_known(web: Web) -> None:
    web.open("<button>Go</button><p id=c></p><script>setInterval(() => c.textContent = Date.now(), 10)</script>")
    web.do("Click", "Go")
    assert web.seconds < 1 and "Go" in web.see()


@pytest.mark.parametrize(
    "skeleton",
    [
        "<div id=t class=skeleton>...</div>",
        "<div id=t aria-busy=true>x</div>",
        "<p id=t>Loading…</p>",
        "<div id=t></div>",
    ],
)
def test_a_table_that_comes_after_a_moment_is_waited_for(web: Web, skeleton: str) -> None:
    """EXE-19."""
    web.open(
        "<a href=/late>Late</a>",
        late=f"""<h1>Orders</h1>{skeleton}<script>
      setTimeout(() => t.outerHTML = '<table><tr><td>Order 7</td></tr></table>', 1200)</script>""",
    )
    web.do("Click", "Late")
    assert "Order 7" in web.see()


def test_a_skeleton_that_never_fills_ends_at_the_limit_and_says_so(new_web: Web) -> None:
    """EXE-19."""
    web = new_web
    web.open("<a href=/late>Late</a>", late="<h1>Orders</h1><div class=skeleton>...</div>")
    web.do("Click", "Late")
    assert 1.5 < web.seconds < 4
    settled = web.see()
    assert "Orders" in settled and web.session._settled is False
    assert "loading" in settled.lower() or "settle" in settled.lower()


def test_content_fetched_in_two_rounds_after_a_click_is_there(web: Web) -> None:
    web.open("""<button onclick="fetch('/one').then((r) => r.text()).then((t) => fetch('/two')).then((r) => r.text())
      .then((t) => document.querySelector('h1').textContent = t)">Load</button><h1>Empty</h1>""",
             one=Page("1", delay=0.2), two=Page("Second round", delay=0.2))  # fmt: skip
    web.do("Click", "Load")
    assert "Second round" in web.see()


def test_a_slow_page_is_waited_for_and_a_slower_one_is_reported(new_web: Web) -> None:
    web = new_web
    web.open("<h1>First</h1><a href=/slow>Slow</a><a href=/slower>Slower</a>",
             slow=Page("<h1>Came</h1>", delay=1.2), slower=Page("<h1>Late</h1>", delay=4))  # fmt: skip
    assert web.do("Click", "Slow") == "" and "Came" in web.see()
    web.do_id("Go Back")
    web.see()
    line = web.do("Click", "Slower")
    assert line == f"{web.site.url}/slower did not answer within 2 s; loading was stopped."
    assert "First" in web.see() and web.seconds < 4


LATE = "did not answer within 2 s; loading was stopped."


def test_a_load_whose_news_comes_after_the_page_was_asked_is_waited_for(
    new_web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium holds back what a page is asked once its next load has begun; a busy Python hears of that late."""
    web = new_web
    web.open("<h1>First</h1><a href=/slower>Slower</a>", slower=Page("<h1>Late</h1>", delay=4))
    tabs, told = web.session.tabs, web.session.tabs._watching["request"]
    asked = Tabs._quiet

    async def listen_late() -> None:
        loop = asyncio.get_running_loop()
        tabs.context.remove_listener("request", told)
        tabs.context.on("request", lambda request: loop.call_later(0.2, told, request))

    async def ask_once_it_loads(self: Tabs, page: Tab, since: float, left: float) -> bool | None:
        while "GET /slower" not in web.site.hits:
            await asyncio.sleep(0.01)
        return await asked(self, page, since, left)

    web.browser.call(listen_late())
    monkeypatch.setattr(Tabs, "_quiet", ask_once_it_loads)
    assert web.do("Click", "Slower") == f"{web.site.url}/slower {LATE}"
    monkeypatch.undo()
    assert "First" in web.see()


def test_a_slow_new_tab_is_waited_for_and_a_slower_one_is_reported(new_web: Web) -> None:
    web = new_web
    web.open(
        "<h1>First</h1><a target=_blank href=/slow>Slow</a><button onclick=\"window.open('/slower')\">Open</button>",
        slow=Page("<h1>Came</h1>", delay=1.2),
        slower=Page("<h1>Late</h1>", delay=4),
    )
    assert web.do("Click", "Slow") == "" and "Came" in web.see()
    web.do_id("Close Tab")
    web.see()
    assert web.do("Click", "Open") == f"{web.site.url}/slower did not answer within 2 s; its tab opens when it does."
    assert "First" in web.see()
    until(lambda: len(web.session.tabs.pages) == 2)
    assert "Late" in web.see()


def test_a_move_within_a_page_that_is_being_left_is_not_the_load(new_web: Web) -> None:
    web = new_web
    move = "location = '/slower'; setTimeout(() => history.replaceState({}, '', '/state'), 100)"
    web.open(f'<h1>First</h1><button onclick="{move}">Go</button>', slower=Page("<h1>Late</h1>", delay=8))
    assert web.do("Click", "Go") == f"{web.site.url}/slower {LATE}"
    assert "First" in web.see() and web.path == "/state"


@pytest.mark.parametrize("deed", ["look", "act"])
def test_a_page_that_is_leaving_by_itself_is_neither_asked_nor_a_fault(new_web: Web, deed: str) -> None:
    web = new_web
    web.open("<h1>First</h1><button>Old</button>", slower=Page("<h1>Late</h1>", delay=8))
    web.js("void (location = '/slower')")
    until(lambda: "GET /slower" in web.site.hits)
    line = web.see() if deed == "look" else web.do("Click", "Old")
    assert f"{web.site.url}/slower {LATE}" in line
    assert deed == "look" or "is no longer on the page" in line
    assert "First" in web.see()


def test_a_load_that_is_called_off_costs_no_time(web: Web) -> None:
    web.open("<h1>First</h1><a href=/two>Two</a><script>navigation.addEventListener('navigate', (e) => e.intercept())"
             "</script>", two="<h1>Second</h1>")  # fmt: skip
    assert web.do("Click", "Two") == "" and "First" in web.see() and web.path == "/two"


def test_a_redirect_after_post_is_followed(web: Web) -> None:
    web.open("<form method=post action=/save><input name=q aria-label=F><button>Save</button></form>",
             save=Page("", 303, headers={"Location": "/saved"}), saved="<h1>Saved</h1>")  # fmt: skip
    assert web.do("Click", "Save") == "" and "Saved" in web.see() and web.path == "/saved"


def test_steps_on_a_page_at_rest_are_quick(web: Web) -> None:
    web.open("<button>Go</button><input aria-label=F>")
    times = []
    for _ in range(10):
        web.do("Click", "Go")
        times.append(web.seconds)
    assert sorted(times)[5] < 0.25  # about 0.06 on an idle machine


def test_an_unknown_action_is_our_mistake(web: Web) -> None:
    web.open("<h1>First</h1>")
    with pytest.raises(ValueError, match="`action.name` must be one of"):
        web.do_id("Exit", None, "42")


def test_an_endless_script_is_a_fault_within_the_limit(new_web: Web) -> None:
    """MPR-04."""
    web = new_web
    web.open("<button onclick='for (;;);'>Hang</button>")
    begun = time.perf_counter()
    with pytest.raises(BrowserError, match="does not answer"):
        web.do("Click", "Hang")
    assert time.perf_counter() - begun < 12  # 5 s for the click, 2 + 5 s for a page that hangs while it settles
