"""Which pages of MiniWoB++ can be played as text, and why the others cannot.

``SUPPORTED`` pages have an oracle in ``ORACLES`` that wins them through the agent's own observation and actions; the
table ``tests/benchmarks/MINIWOB.md`` says how often. ``HELD_OUT`` are the pages of split ``test_families``, none of
whose instances is trained on.

Source: pages of ``miniwob`` 1.1.0, ``html/miniwob``; the multi-page forms of ``html/flight`` are left out.
"""

from __future__ import annotations

from collections.abc import Callable

from webrl_lite.envs import miniwob_journeys as journeys
from webrl_lite.envs import miniwob_oracles as oracles
from webrl_lite.envs.embedded.oracle import Moves, Page

ORACLES: dict[str, Callable[[Page, str], Moves[None]]] = {
    "ascending-numbers": oracles.click_numbers,
    "book-flight": journeys.book_flight,
    "book-flight-nodelay": journeys.book_flight,
    "buy-ticket": oracles.buy_ticket,
    "choose-date": journeys.choose_date,
    "choose-date-easy": journeys.choose_date,
    "choose-date-medium": journeys.choose_date,
    "choose-date-nodelay": journeys.choose_date,
    "choose-list": oracles.choose_option,
    "click-button": oracles.click_quoted_button,
    "click-button-sequence": oracles.click_one_then_two,
    "click-checkboxes": oracles.tick_named,
    "click-checkboxes-large": oracles.tick_named,
    "click-checkboxes-transfer": oracles.tick_named,
    "click-collapsible": oracles.open_section,
    "click-collapsible-nodelay": oracles.open_section,
    "click-collapsible-2": oracles.search_sections,
    "click-collapsible-2-nodelay": oracles.search_sections,
    "click-dialog": oracles.close_dialog,
    "click-dialog-2": oracles.close_dialog,
    "click-link": oracles.click_quoted,
    "click-menu": oracles.open_menu_item,
    "click-option": oracles.choose_radio,
    "click-scroll-list": oracles.choose_options,
    "click-tab": oracles.click_tab,
    "click-tab-2": oracles.search_sections,
    "click-tab-2-easy": oracles.search_sections,
    "click-tab-2-medium": oracles.search_sections,
    "click-tab-2-hard": oracles.search_sections,
    "click-test": oracles.click_only_button,
    "click-test-2": oracles.click_one,
    "click-test-transfer": oracles.click_one,
    "click-widget": oracles.click_widget,
    "copy-paste": oracles.copy_text,
    "copy-paste-2": oracles.copy_text,
    "email-inbox": journeys.mail,
    "email-inbox-delete": journeys.mail,
    "email-inbox-forward": journeys.mail,
    "email-inbox-forward-nl": journeys.mail,
    "email-inbox-forward-nl-turk": journeys.mail,
    "email-inbox-important": journeys.mail,
    "email-inbox-nl-turk": journeys.mail,
    "email-inbox-noscroll": journeys.mail,
    "email-inbox-reply": journeys.mail,
    "email-inbox-star-reply": journeys.mail,
    "enter-date": oracles.enter_date,
    "enter-password": oracles.enter,
    "enter-text": oracles.enter,
    "enter-text-2": oracles.enter_changed,
    "enter-text-dynamic": oracles.enter,
    "enter-time": oracles.enter_time,
    "find-greatest": oracles.pick_greatest,
    "find-word": oracles.find_word,
    "focus-text": oracles.click_field,
    "focus-text-2": oracles.click_field,
    "form-sequence": oracles.slide_and_tick,
    "form-sequence-2": oracles.radio_and_text,
    "form-sequence-3": journeys.choose_in_box,
    "generate-number": oracles.generate_number,
    "guess-number": oracles.guess_number,
    "login-user": oracles.log_in,
    "login-user-popup": oracles.log_in,
    "multi-layouts": oracles.search_movies,
    "multi-orderings": oracles.search_movies,
    "navigate-tree": oracles.open_tree,
    "odd-or-even": oracles.mark_numbers,
    "order-food": journeys.order_food,
    "phone-book": journeys.look_up_person,
    "read-table": oracles.read_table,
    "read-table-2": oracles.read_table_twice,
    "scroll-text-2": journeys.read_to_end,
    "search-engine": journeys.open_result,
    "simple-algebra": oracles.solve_for_x,
    "simple-arithmetic": oracles.solve_sum,
    "social-media": journeys.press_on_posts,
    "social-media-all": journeys.press_on_posts,
    "social-media-some": journeys.press_on_posts,
    "terminal": journeys.delete_file,
    "text-transform": oracles.enter_shown,
    "unicode-test": oracles.click_quoted_button,
    "use-autocomplete": oracles.complete,
    "use-autocomplete-nodelay": oracles.complete,
    "use-colorwheel": journeys.write_colour,
    "use-slider": oracles.slide_one,
    "use-slider-2": oracles.slide_three,
    "use-spinner": oracles.spin,
}
"""By the page's name, in alphabetical order but for variants of a page."""

SUPPORTED = tuple(ORACLES)

_POINT = "it is played with a point of a drawing, and an action names an element"
_SHAPE = "what is asked for is the look of a drawing, which the text does not have"
_DRAG = "it is played by dragging, and there is no such action"
_COLOUR = "boxes differ by their colour, which the text does not have"
_TIME = "it is played against the clock, and a step takes as long as the agent thinks"
_MARK = "a part of a text must be marked, and there is no such action"

UNSUPPORTED = {
    "bisect-angle": _POINT,
    "button-delay": _TIME,
    "chase-circle": _TIME,
    "circle-center": _POINT,
    "click-checkboxes-soft": "it asks for words of like meaning, which a script cannot tell: no oracle proves it",
    "click-color": _COLOUR,
    "click-menu-2": "every second instruction names its entry by a picture, which the text does not have",
    "click-pie": "its entries are letters of a drawing that open and close by hovering",
    "click-pie-nodelay": "its entries are letters of a drawing that open and close by hovering",
    "click-shades": _COLOUR,
    "click-shape": _SHAPE,
    "count-shape": _SHAPE,
    "count-sides": _SHAPE,
    "daily-calendar": _DRAG,
    "drag-box": _DRAG,
    "drag-circle": _DRAG,
    "drag-cube": _DRAG,
    "drag-items": _DRAG,
    "drag-items-grid": _DRAG,
    "drag-shapes": _DRAG,
    "drag-shapes-2": _DRAG,
    "drag-single-shape": _DRAG,
    "drag-sort-numbers": _DRAG,
    "draw-circle": _DRAG,
    "draw-line": _DRAG,
    "find-midpoint": _POINT,
    "grid-coordinate": "the points of the grid have no words that tell where they are",
    "highlight-text": _MARK,
    "highlight-text-2": _MARK,
    "hot-cold": _POINT,
    "hover-shape": _TIME,
    "identify-shape": _SHAPE,
    "moving-items": _TIME,
    "number-checkboxes": "the pattern to copy is a picture, which the text does not have",
    "resize-textarea": _DRAG,
    "right-angle": _POINT,
    "scroll-text": "the last word of a long field is cut from the text",
    "sign-agreement": "the agreement takes more scrolling than the 30 steps of an episode",
    "simon-says": _TIME,
    "stock-market": _TIME,
    "text-editor": _MARK,
    "tic-tac-toe": "crosses and noughts are pictures, which the text does not have",
    "use-colorwheel-2": _COLOUR,
    "visual-addition": "blocks to count are pictures, which the text does not have",
}
"""The other pages, and why."""

HELD_OUT = (
    "choose-date-medium",
    "click-collapsible-2-nodelay",
    "click-tab-2-hard",
    "click-checkboxes-large",
    "email-inbox-forward-nl-turk",
    "email-inbox-star-reply",
    "form-sequence-3",
    "login-user-popup",
    "multi-layouts",
    "order-food",
    "read-table-2",
    "social-media-some",
    "use-slider-2",
)
"""Pages of split ``test_families``."""
