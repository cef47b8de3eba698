"""Scripted solutions of the shop's tasks; see ``embedded.oracle`` for what an oracle may use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from webrl_lite.envs.embedded.oracle import (
    Moves,
    OracleLost,
    Page,
    click,
    hover,
    look_for,
    read_line,
    reply,
    select,
    type_in,
)

Values = Mapping[str, str]

CARD = re.compile(r"^(.+) \[\d+\] \| \w+ \| .*(\$[\d,.]+)")
"""Name and price of a product in a list."""
ORDER = re.compile(r"^(\d{9}) \[\d+\] \| (\w{3}) \d+, (\d{4}) \| (\$[\d,.]+) \| ([\w ]+)")
"""Number, month, year, total and status of an order in a list."""
REVIEW = re.compile(r"^(\d) stars? by (.+) on \w{3} \d+, \d{4}$")
"""Stars and nickname of a review."""

CLAIMS = {
    "the handle came off": "handle came off",
    "it has a scratch": "has a scratch",
    "it smells": "smells of paint",
    "it took five weeks": "waited five weeks",
    "a part was missing": "screw was missing",
    "the color is too dark": "color is darker",
    "it is too small": "smaller than I thought",
    "the instructions are not clear": "instructions are hard to read",
    "it is too heavy": "heavy to carry",
}
"""What a reviewer may complain about, and the words by which to know it."""

# Pieces -----------------------------------------------------------------------------------------------------


def search(page: Page, words: str) -> Moves[Page]:
    """Search the store."""
    return (yield from type_in(page, "Search the store", words, submit=True))


def open_product(page: Page, values: Values) -> Moves[Page]:
    """Search a product and open its page; ``brand`` tells it from others of its name."""
    page = yield from search(page, values["product"])
    return (yield from click(page, values["product"], "link", near=values.get("brand", "")))


def open_shelf(page: Page, values: Values) -> Moves[Page]:
    """Open a category through the menu."""
    page = yield from hover(page, values["department"], "link")
    return (yield from click(page, values["category"], "link"))


def open_orders(page: Page, words: str = "") -> Moves[Page]:
    """Open the list of orders, those with a product or number if ``words`` are given."""
    page = yield from click(page, "My Account", "link")
    page = yield from click(page, "My Orders", "link")
    if words:
        page = yield from type_in(page, "Search my orders", words, submit=True)
    return page


def orders_on(page: Page) -> list[re.Match[str]]:
    """Return the orders that stand on a page."""
    return [match for line in page.lines if (match := ORDER.match(line))]


def sort(page: Page, order: str) -> Moves[Page]:
    """Sort a list of products by a wording such as ``price, highest first``."""
    name, _, direction = order.partition(", ")
    page = yield from select(page, "Sort By", {"price": "Price", "name": "Product Name"}[name])
    if direction in ("highest first", "Z to A"):
        page = yield from click(page, "Set Descending Direction", "link")
    return page


def dollars(cents_text: str) -> Decimal:
    """Read an amount such as ``$1,234.50``."""
    return Decimal(cents_text.replace("$", "").replace(",", ""))


# Questions --------------------------------------------------------------------------------------------------


def price(page: Page, values: Values) -> Moves[str]:
    """Read the price in the search results."""
    page = yield from search(page, values["product"])
    page, line = yield from read_line(page, f"{values['product']} [", values.get("brand", ""), "$")
    return CARD.match(line)[2]


def not_sold(page: Page, values: Values) -> Moves[str]:
    """Search the product and find nothing."""
    page = yield from search(page, values["product"])
    yield from read_line(page, "returned no results")
    return "N/A"


def rating(page: Page, values: Values) -> Moves[str]:
    """Read the average on the product page."""
    page = yield from open_product(page, values)
    page, line = yield from read_line(page, "out of 5")
    return line.split(" out of 5")[0]


def weight(page: Page, values: Values) -> Moves[str]:
    """Read the weight under More Information."""
    page = yield from open_product(page, values)
    page = yield from click(page, "More Information", "link")
    page, line = yield from read_line(page, "Weight |")
    return line.split(" | ")[1]


def all_reviews(page: Page, values: Values) -> Moves[dict[str, tuple[int, str]]]:
    """Read all reviews of a product: stars and text by nickname."""
    page = yield from open_product(page, values)
    count = int(re.search(r"(\d+) Reviews? \[", page.text)[1])
    page = yield from click(page, "Reviews", "link")
    found: dict[str, tuple[int, str]] = {}
    while True:
        for place, line in enumerate(page.lines):
            match = REVIEW.match(line)
            if match and place + 1 < len(page.lines):
                found[match[2]] = (int(match[1]), page.lines[place + 1])
        if len(found) >= count:
            return found
        after = page.find("Next", "link")
        page = yield reply("Click", after) if after else reply("Scroll Down")


def reviewers(page: Page, values: Values) -> Moves[str]:
    """Name those who gave a number of stars."""
    found = yield from all_reviews(page, values)
    stars = int(values["stars"].split()[0])
    return ", ".join(name for name, (given, _) in found.items() if given == stars)


def review_says(page: Page, values: Values) -> Moves[str]:
    """Name the one whose review complains of something."""
    found = yield from all_reviews(page, values)
    return next(name for name, (_, text) in found.items() if CLAIMS[values["claim"]] in text)


def order_total(page: Page, values: Values) -> Moves[str]:
    """Read the total in the list of orders."""
    page = yield from open_orders(page, values["order"])
    return orders_on(page)[0][4]


def newest_order(page: Page, values: Values) -> Moves[str]:
    """Read number and status of the first order with a product."""
    page = yield from open_orders(page, values["product"])
    newest = orders_on(page)[0]
    return f"{newest[1]}, {newest[5]}"


def month_spend(page: Page, values: Values) -> Moves[str]:
    """Add up the totals of a month's orders."""
    page = yield from open_orders(page)
    month, year = values["month"].split()
    status = values["scope"].split()[0]
    total, seen = Decimal(0), False
    while True:
        rows = orders_on(page)
        fitting = [row for row in rows if (row[2], row[3]) == (month[:3], year)]
        total += sum(dollars(row[4]) for row in fitting if status in ("all", row[5].lower()))
        seen = seen or bool(fitting)
        after = page.find("Next", "link")
        if after is None or (seen and rows[-1] not in fitting):
            return f"${total:,.2f}"
        page = yield reply("Click", after)


def cheapest(page: Page, values: Values) -> Moves[str]:
    """Filter a category by brand, sort it by price and read the first name."""
    page = yield from open_shelf(page, values)
    page = yield from click(page, values["brand"], "link")
    page = yield from sort(page, "price" if values["extreme"] == "cheapest" else "price, highest first")
    for line in page.lines:
        if match := CARD.match(line):
            return match[1]
    raise OracleLost(f"no product on:\n{page.text}")


def tracking(page: Page, values: Values) -> Moves[str]:
    """Read a fact of the shipment in the tab that opens."""
    page = yield from open_orders(page, values["order"])
    page = yield from click(page, values["order"], "link")
    page = yield from click(page, "Track Your Order", "link")
    labels = {"tracking number": "Tracking number |", "shipping date": "Shipped on |"}
    page, line = yield from read_line(page, labels[values["fact"]])
    return line.split(" | ")[1]


# Pages ------------------------------------------------------------------------------------------------------


def product_page(page: Page, values: Values) -> Moves[str]:
    """Open a product's page."""
    yield from open_product(page, values)
    return "done"


def filter_page(page: Page, values: Values) -> Moves[str]:
    """Open a category, filter it by price and sort it."""
    page = yield from open_shelf(page, values)
    page = yield from click(page, values["band"], "link")
    yield from sort(page, values["order"])
    return "done"


def sorted_search(page: Page, values: Values) -> Moves[str]:
    """Search and sort the results."""
    page = yield from search(page, values["words"])
    yield from sort(page, values["order"])
    return "done"


def advanced_search(page: Page, values: Values) -> Moves[str]:
    """Fill the form of the advanced search."""
    page = yield from click(page, "Advanced Search", "link")
    page = yield from type_in(page, values["field"], values["words"])
    page = yield from type_in(page, "Price from", values["low"])
    page = yield from type_in(page, "Price to", values["high"])
    yield from click(page, "Search Products", "button")
    return "done"


# Changes ----------------------------------------------------------------------------------------------------


def add_to_cart(page: Page, values: Values) -> Moves[str]:
    """Choose the options and the quantity, then add."""
    page = yield from open_product(page, values)
    for choice in values["options"].split(" and "):
        name, value = choice.split(" ", 1)
        page = yield from select(page, name.capitalize(), value)
    page = yield from type_in(page, "Quantity", values["quantity"])
    yield from click(page, "Add to Cart", "button")
    return "done"


def wish(page: Page, values: Values) -> Moves[str]:
    """Put a product on the wish list."""
    page = yield from open_product(page, values)
    yield from click(page, "Add to Wish List", "button")
    return "done"


def newsletter_and_wish(page: Page, values: Values) -> Moves[str]:
    """Subscribe to the newsletter, then put a product on the wish list."""
    page = yield from click(page, "My Account", "link")
    page = yield from click(page, "Newsletter", "link")
    page = yield from click(page, "General Subscription", "checkbox")
    page = yield from click(page, "Save", "button")
    return (yield from wish(page, values))


def sign_in_and_wish(page: Page, values: Values) -> Moves[str]:
    """Sign in again, then put a product on the wish list."""
    page = yield from click(page, "Sign In", "link")
    page = yield from type_in(page, "Email", values["email"])
    page, field = yield from look_for(page, "Password")
    page = yield reply("Type", field, values["password"])
    page = yield from click(page, "Sign in", "button")
    return (yield from wish(page, values))


def write_review(page: Page, values: Values) -> Moves[str]:
    """Fill the review form; the nickname stands there already."""
    page = yield from open_product(page, values)
    first = page.find("Be the first to review this product", "link")
    page = yield from click(page, first.name if first else "Add Your Review", "link")
    page = yield from select(page, "Your Rating", values["stars"])
    page = yield from type_in(page, "Title", values["title"])
    page = yield from type_in(page, "Review", values["body"])
    yield from click(page, "Submit Review", "button")
    return "done"


def change_address(page: Page, values: Values) -> Moves[str]:
    """Change one or two fields of an address."""
    page = yield from click(page, "My Account", "link")
    page = yield from click(page, "Address Book", "link")
    page = yield from click(page, "Edit", "link", near=f"{values['name']} | {values['street']}")
    if "new_street" in values:
        page = yield from type_in(page, "Street", values["new_street"])
    if "new_phone" in values:
        page = yield from type_in(page, "Phone", values["new_phone"])
    yield from click(page, "Save Address", "button")
    return "done"


def add_address(page: Page, values: Values) -> Moves[str]:
    """Fill the form of a new address."""
    page = yield from click(page, "My Account", "link")
    page = yield from click(page, "Address Book", "link")
    page = yield from click(page, "Add New Address", "link")
    for label in ("Name", "Street", "Town", "Zip", "Phone"):
        page = yield from type_in(page, label, values[label.lower()])
    yield from click(page, "Save Address", "button")
    return "done"


def reorder(page: Page, values: Values) -> Moves[str]:
    """Put the goods of an order into the cart again."""
    page = yield from open_orders(page, values["order"])
    page = yield from click(page, values["order"], "link")
    yield from click(page, "Reorder", "button")
    return "done"


def cancel_order(page: Page, values: Values) -> Moves[str]:
    """Cancel the pending order with a product."""
    page = yield from open_orders(page, values["product"])
    number = next(row[1] for row in orders_on(page) if row[5] == "Pending")
    page = yield from click(page, number, "link")
    yield from click(page, "Cancel Order", "button")
    return "done"


def buy(page: Page, values: Values) -> Moves[str]:
    """Buy one piece through the checkout."""
    page = yield from open_product(page, values)
    page = yield from click(page, "Add to Cart", "button")
    page = yield from click(page, "shopping cart", "link")
    page = yield from click(page, "Proceed to Checkout", "link")
    if "name" in values:
        page = yield from click(page, f"{values['name']}, {values['street']}", "radio", part=True)
    page = yield from click(page, "Next", "button")
    page = yield from click(page, values["method"], "radio", part=True)
    page = yield from click(page, "Next", "button")
    if "payment" in values:
        page = yield from select(page, "Payment Method", values["payment"])
    yield from click(page, "Place Order", "button")
    return "done"


def contact(page: Page, values: Values) -> Moves[str]:
    """Write to the shop about an order."""
    page = yield from click(page, "Contact Us", "link")
    page = yield from select(page, "Topic", values["topic"])
    page = yield from type_in(page, "Order Number", values["order"])
    page = yield from type_in(page, "Message", values["body"])
    yield from click(page, "Send Message", "button")
    return "done"
