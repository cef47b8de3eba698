"""Scripted solutions of the admin's tasks: the clicks that a member of the staff would make."""

from __future__ import annotations

from collections.abc import Mapping

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

SEARCH = "Search by keyword"


def open_grid(page: Page, menu: str, link: str) -> Moves[Page]:
    """Open a page through the menu's fly-out."""
    page = yield from hover(page, menu, "button")
    return (yield from click(page, link, "link"))


def search(page: Page, text: str) -> Moves[Page]:
    """Search a grid by keyword."""
    return (yield from type_in(page, SEARCH, text, submit=True))


def open_row(page: Page, menu: str, link: str, text: str) -> Moves[Page]:
    """Open a grid through the menu, search, and open the row whose link has the text searched for."""
    page = yield from open_grid(page, menu, link)
    page = yield from search(page, text)
    return (yield from click(page, text, "link"))


def cells(page: Page, first: str) -> Moves[list[str]]:
    """Return the cells of the table row whose first cell is a text."""
    while True:
        for line in page.lines:
            parts = line.split(" | ")
            if parts[0] == first and len(parts) > 1:
                return parts
        if not page.more:
            raise OracleLost(f"no row {first!r} on:\n{page.text}")
        page = yield reply("Scroll Down")


def row(page: Page, name: str, role: str = "link") -> Moves[list[str]]:
    """Return the cells of the row whose link has this name."""
    _, seen = yield from look_for(page, name, role)
    return [part.split(" [")[0].strip() for part in seen.line.split(" | ")]


def after(page: Page, label: str) -> Moves[str]:
    """Return what follows a label on its line."""
    _, line = yield from read_line(page, label)
    return line.split(label, 1)[1].strip(" |:")


# Questions ----------------------------------------------------------------------------------------------------------


def order_total(page: Page, values: Values) -> Moves[str]:
    """Read an order's total in the grid."""
    page = yield from open_grid(page, "Sales", "Orders")
    page = yield from search(page, values["number"])
    return (yield from row(page, values["number"]))[3]


def order_customer(page: Page, values: Values) -> Moves[str]:
    """Read who placed an order."""
    page = yield from search(page, values["number"])
    return (yield from row(page, values["number"]))[2]


def invoice_total(page: Page, values: Values) -> Moves[str]:
    """Read an invoice's total in the grid."""
    page = yield from open_grid(page, "Sales", "Invoices")
    page = yield from search(page, values["number"])
    return (yield from row(page, values["number"]))[4]


def tracking_number(page: Page, values: Values) -> Moves[str]:
    """Read the tracking number of an order's shipment."""
    page = yield from open_grid(page, "Sales", "Shipments")
    page = yield from search(page, values["number"])
    return (yield from row(page, values["number"]))[4]


def customer_by_phone(page: Page, values: Values) -> Moves[str]:
    """Find the customer who has a phone number."""
    page = yield from open_grid(page, "Customers", "All Customers")
    page = yield from search(page, values["phone"])
    _, line = yield from read_line(page, f"| {values['phone']} |")
    return line.split(" [")[0]


def customer_orders(page: Page, values: Values) -> Moves[str]:
    """Read how many orders a customer has."""
    page = yield from search(page, values["customer"])
    page = yield from click(page, values["customer"], "link")
    return (yield from after(page, "Number of orders:"))


def pending_reviews(page: Page, values: Values) -> Moves[str]:
    """Count the pending reviews that the keyword search finds."""
    page = yield from open_grid(page, "Marketing", "Pending Reviews")
    page = yield from search(page, values["kind"])
    page, _ = yield from read_line(page, f"Keyword: {values['kind']}")
    _, line = yield from read_line(page, "records found")
    return line.split(" | ")[-1].split()[0]


def stock_by_sku(page: Page, values: Values) -> Moves[str]:
    """Read a product's stock in the grid."""
    page = yield from search(page, values["sku"])
    _, line = yield from read_line(page, f"| {values['sku']} |")
    return line.split(" | ")[3]


def term_uses(page: Page, values: Values) -> Moves[str]:
    """Read how often a term was searched for."""
    page = yield from open_grid(page, "Marketing", "Search Terms")
    page = yield from search(page, values["term"])
    return (yield from cells(page, values["term"]))[2]


def signed_out_town(page: Page, values: Values) -> Moves[str]:
    """Sign in again and read where an order is shipped to."""
    page = yield from type_in(page, "Username", values["username"])
    page = yield from type_in(page, "Password", values["password"])
    page = yield from click(page, "Sign in", "button")
    page = yield from search(page, values["number"])
    page = yield from click(page, values["number"], "link")
    page, heading = yield from read_line(page, "= Shipping address")
    return page.lines[page.lines.index(heading) + 3].rsplit(" ", 1)[0]


def report(page: Page, link: str, values: Values) -> Moves[Page]:
    """Show a report between two dates."""
    page = yield from open_grid(page, "Reports", link)
    page = yield from type_in(page, "From", values["start"])
    page = yield from type_in(page, "To", values["end"])
    page = yield from select(page, "Period", values["period"])
    return (yield from click(page, "Show Report", "button"))


def bestseller(page: Page, values: Values) -> Moves[str]:
    """Read the first product of the bestsellers report."""
    page = yield from report(page, "Bestsellers", values)
    return (yield from first_rows(page, "Interval | Product"))[0][1]


def sales_total(page: Page, values: Values) -> Moves[str]:
    """Read the total of the sales report."""
    page = yield from report(page, "Sales Report", values)
    return (yield from cells(page, "Total"))[4]


RANKS = ("most", "second most", "third most")
"""How the rank of a customer is called, from the first."""


def top_customer(page: Page, values: Values) -> Moves[str]:
    """Read the n-th customer of the order count report."""
    page = yield from report(page, "Order Count", values)
    return (yield from first_rows(page, "Interval | Customer"))[RANKS.index(values["rank"])][1]


def first_rows(page: Page, head: str) -> Moves[list[list[str]]]:
    """Return the cells of the lines that follow a table's head."""
    page, line = yield from read_line(page, head)
    return [below.split(" | ") for below in page.lines[page.lines.index(line) + 1 :]]


# Pages to open ------------------------------------------------------------------------------------------------------


def orders_filter(page: Page, values: Values) -> Moves[str]:
    """Filter the orders by customer and status."""
    page = yield from open_grid(page, "Sales", "Orders")
    page = yield from click(page, "Filters", "link")
    page = yield from type_in(page, "Customer", values["customer"])
    page = yield from select(page, "Status", values["status"])
    yield from click(page, "Apply filters", "button")
    return "done"


def open_customer(page: Page, values: Values) -> Moves[str]:
    """Open a customer's page from the grid."""
    page = yield from search(page, values["email"])
    _, line = yield from read_line(page, f"| {values['email']} |")
    yield from click(page, line.split(" [")[0], "link")
    return "done"


def category_sorted(page: Page, values: Values) -> Moves[str]:
    """Open a category's products and sort them."""
    page = yield from open_grid(page, "Catalog", "Categories")
    page = yield from click(page, values["category"], "link")
    page = yield from click(page, values["column"], "link")
    if values["direction"] == "highest first":
        yield from click(page, values["column"], "link", part=True)
    return "done"


# Changes ------------------------------------------------------------------------------------------------------------


def review_status(page: Page, values: Values) -> Moves[str]:
    """Approve or reject a pending review."""
    page = yield from open_grid(page, "Marketing", "Pending Reviews")
    page = yield from search(page, values["product"])
    page = yield from click(page, values["nickname"], "link", near=values["product"])
    page = yield from select(page, "Status", values["status"])
    yield from click(page, "Save review", "button")
    return "done"


def product_disable(page: Page, values: Values) -> Moves[str]:
    """Disable a product."""
    page = yield from open_row(page, "Catalog", "Products", values["product"])
    page = yield from select(page, "Enable product", "No")
    yield from click(page, "Save", "button")
    return "done"


def product_price(page: Page, values: Values) -> Moves[str]:
    """Set a product's price."""
    page = yield from open_row(page, "Catalog", "Products", values["product"])
    page = yield from type_in(page, "Price", values["price"].lstrip("$"))
    yield from click(page, "Save", "button")
    return "done"


def product_stock(page: Page, values: Values) -> Moves[str]:
    """Set a product's stock, starting from the grid."""
    page = yield from search(page, values["product"])
    page = yield from click(page, values["product"], "link")
    page = yield from type_in(page, "Quantity", values["stock"])
    yield from click(page, "Save", "button")
    return "done"


def order_cancel(page: Page, values: Values) -> Moves[str]:
    """Cancel an order."""
    page = yield from open_row(page, "Sales", "Orders", values["number"])
    yield from click(page, "Cancel", "button")
    return "done"


def order_comment(page: Page, values: Values) -> Moves[str]:
    """Comment on an order, with or without a notice to the customer."""
    page = yield from open_row(page, "Sales", "Orders", values["number"])
    page, _ = yield from look_for(page, "Submit comment", "button")
    page = yield from type_in(page, "Comment", values["comment"])
    if values["notice"] == "and notify the customer":
        page = yield from click(page, "Notify customer", "checkbox")
    yield from click(page, "Submit comment", "button")
    return "done"


def order_ship(page: Page, values: Values) -> Moves[str]:
    """Ship an order with a carrier and a tracking number."""
    page = yield from open_row(page, "Sales", "Orders", values["number"])
    page = yield from click(page, "Ship", "link")
    page = yield from select(page, "Carrier", values["carrier"])
    page = yield from type_in(page, "Tracking number", values["tracking"])
    yield from click(page, "Submit shipment", "button")
    return "done"


def order_address(page: Page, values: Values) -> Moves[str]:
    """Change where an order is shipped to."""
    page = yield from open_row(page, "Sales", "Orders", values["number"])
    page = yield from click(page, "Edit address", "link")
    page = yield from type_in(page, "Street", values["street"])
    page = yield from type_in(page, "Town", values["town"])
    page = yield from type_in(page, "ZIP code", values["zip"])
    yield from click(page, "Save address", "button")
    return "done"


def page_title(page: Page, values: Values) -> Moves[str]:
    """Rename a page of text."""
    page = yield from open_row(page, "Content", "Pages", values["title"])
    page = yield from type_in(page, "Page title", values["new_title"])
    yield from click(page, "Save page", "button")
    return "done"


def customer_group(page: Page, values: Values) -> Moves[str]:
    """Move a customer to another group."""
    page = yield from open_row(page, "Customers", "All Customers", values["customer"])
    page = yield from select(page, "Group", values["group"])
    yield from click(page, "Save customer", "button")
    return "done"


def rule_create(page: Page, values: Values) -> Moves[str]:
    """Create a price rule."""
    page = yield from open_grid(page, "Marketing", "Price Rules")
    page = yield from click(page, "Add New Rule", "link")
    page = yield from type_in(page, "Rule name", values["rule"])
    page = yield from type_in(page, "Percent off", values["percent"])
    page = yield from type_in(page, "Coupon code", values["coupon"])
    page = yield from type_in(page, "Starts", values["start"])
    page = yield from type_in(page, "Ends", values["end"])
    yield from click(page, "Save rule", "button")
    return "done"


def mass(page: Page, link: tuple[str, str], text: str, rows: tuple[str, str], action: str) -> Moves[str]:
    """Send a mass action for two rows that a keyword search finds."""
    page = yield from open_grid(page, *link)
    page = yield from click(page, "Mass actions", "link")
    page = yield from search(page, text)
    page = yield from select(page, "Action", action)
    for name in rows:
        page = yield from click(page, f"Select {name}", "checkbox")
    yield from click(page, "Submit", "button")
    return "done"


def mass_products(page: Page, values: Values) -> Moves[str]:
    """Disable two products at once."""
    rows = (values["first"], values["second"])
    return (yield from mass(page, ("Catalog", "Products"), values["first"].split()[0], rows, "Disable"))


def mass_orders(page: Page, values: Values) -> Moves[str]:
    """Put two orders of one customer on hold at once."""
    rows = (values["first"], values["second"])
    return (yield from mass(page, ("Sales", "Orders"), values["customer"], rows, "Hold"))
