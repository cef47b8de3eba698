"""The shop's shelves: home, categories with layered filters, search, products and their reviews."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flask import Blueprint, Response, abort, flash, redirect, render_template, request

from webrl_lite.envs.embedded.shopping.shop import PRODUCTS, customer, options_of, product_of, stars
from webrl_lite.envs.embedded.site import NOW, one, paginate, query, with_query, write

catalog = Blueprint("catalog", __name__)

BANDS = ("0-25", "25-50", "50-100", "100-")
"""Price bands of the filter, in dollars; the lower bound belongs to the band, the upper does not."""
ORDERS = {"position": "Position", "name": "Product Name", "price": "Price"}
PER_PAGE = (9, 18, 36)
REVIEWS_PER_PAGE = 5
MOST_FILTERS = 6
"""A filter with more values than this is not shown."""
SIZE_GUIDE = {
    "Pans": ("20 cm", "24 cm", "28 cm"),
    "Rugs": ("60 cm", "120 cm", "200 cm"),
    "Tents": ("1 person", "2 people", "4 people"),
    "Bags": ("10 liters", "20 liters", "35 liters"),
}
RATINGS = {"5": "5 stars", "4": "4 stars", "3": "3 stars", "2": "2 stars", "1": "1 star"}


@dataclass(frozen=True)
class Choice:
    """A link or option that leads to this list in another form."""

    label: str
    url: str
    count: int = 0
    chosen: bool = False


@dataclass(frozen=True)
class Narrowing:
    """The filters of a list."""

    groups: dict[str, list[Choice]]
    """Links by the filter's title."""
    active: list[Choice]
    """What is filtered by now; the link takes the filter away."""


@catalog.get("/")
def home() -> str:
    """Show the newest product of each of six shelves."""
    last = "SELECT MAX(id) FROM shop_product WHERE enabled GROUP BY category_id"
    newest = query(f"{PRODUCTS} AND id IN ({last}) ORDER BY id DESC LIMIT 6")
    return render_template("home.html", products=newest)


@catalog.get("/<path:slug>.html")
def page(slug: str) -> str:
    """Show a category or a product."""
    category = one("SELECT * FROM shop_category WHERE slug = ?", slug)
    if category is not None:
        return category_page(category)
    product = one(f"{PRODUCTS} AND slug = ?", slug)
    if product is None:
        abort(404)
    return product_page(product)


# Lists ------------------------------------------------------------------------------------------------------


def category_page(category: sqlite3.Row) -> str:
    """Show a category's products, and for a department its categories."""
    children = query("SELECT * FROM shop_category WHERE parent_id = ? ORDER BY id", category["id"])
    within = [row["id"] for row in children] or [category["id"]]
    marks = ", ".join("?" * len(within))
    rows = query(f"{PRODUCTS} AND category_id IN ({marks}) ORDER BY id", *within)
    parent = one("SELECT * FROM shop_category WHERE id = ?", category["parent_id"])
    trail = [("Home", "/")] + ([(parent["name"], f"/{parent['slug']}.html")] if parent else [])
    return listing(category["name"], rows, trail, children=children)


@catalog.get("/catalogsearch/result/")
def search() -> str:
    """Show the products that have all words of the query in name, brand or SKU."""
    words = request.args.get("q", "").strip()
    return listing(
        f"Search results for: '{words}'",
        matching(words, "name", "brand") if words else [],
        [("Home", "/")],
        query=words,
    )


def matching(words: str, *columns: str) -> list[sqlite3.Row]:
    """Return the shown products in which every word of a text begins a word of the columns, or is the SKU."""
    wanted = words.lower().split()
    found = []
    for row in query(f"{PRODUCTS} ORDER BY id"):
        own = re.findall(r"[\w-]+", " ".join(row[column] for column in columns).lower())
        if all(word == row["sku"].lower() or any(each.startswith(word) for each in own) for word in wanted):
            found.append(row)
    return found


def listing(title: str, rows: list[sqlite3.Row], trail: Sequence[tuple[str, str]], **more: object) -> str:
    """Show a list of products, filtered, sorted and cut into pages as the address asks.

    Args:
        title: the page's heading.
        rows: all products of the list, by position.
        trail: labels and paths of the pages above.
        more: what else the template shows.
    """
    kept, narrowing = narrow(rows)
    order = request.args.get("product_list_order", "position")
    down = request.args.get("product_list_dir") == "desc"
    if order == "name":
        kept.sort(key=lambda row: (row["name"], row["id"]), reverse=down)
    elif order == "price":
        kept.sort(key=lambda row: (row["cost"], row["id"]), reverse=down)
    elif down:
        kept.reverse()
    limit = request.args.get("product_list_limit", "")
    per_page = int(limit) if limit in map(str, PER_PAGE) else PER_PAGE[0]
    return render_template(
        "listing.html",
        title=title,
        trail=trail,
        products=paginate(kept, per_page),
        narrowing=narrowing,
        orders=[
            Choice(
                label,
                with_query(product_list_order=None if key == "position" else key, p=None),
                chosen=key == order,
            )
            for key, label in ORDERS.items()
        ],
        direction=Choice("Set Ascending Direction", with_query(product_list_dir=None, p=None))
        if down
        else Choice("Set Descending Direction", with_query(product_list_dir="desc", p=None)),
        limits=[
            Choice(
                str(number),
                with_query(product_list_limit=None if number == PER_PAGE[0] else number, p=None),
                chosen=number == per_page,
            )
            for number in PER_PAGE
        ],
        **more,
    )


def narrow(rows: list[sqlite3.Row]) -> tuple[list[sqlite3.Row], Narrowing]:
    """Apply the price band and the brand of the address to a list."""
    groups: dict[str, list[Choice]] = {}
    active: list[Choice] = []
    kept = rows
    band, brand = request.args.get("price", ""), request.args.get("brand", "")
    if bounds(band):
        kept = [row for row in kept if within(row, band)]
        active.append(Choice(f"Price: {band_label(band)}", with_query(price=None, p=None)))
    if brand:
        kept = [row for row in kept if row["brand"] == brand]
        active.append(Choice(f"Brand: {brand}", with_query(brand=None, p=None)))
    if not bounds(band):
        counts = {each: sum(within(row, each) for row in kept) for each in BANDS}
        links = [Choice(band_label(b), with_query(price=b, p=None), n) for b, n in counts.items() if n]
        if links:
            groups["Price"] = links
    brands = sorted({row["brand"] for row in kept})
    if not brand and 0 < len(brands) <= MOST_FILTERS:
        groups["Brand"] = [
            Choice(each, with_query(brand=each, p=None), sum(row["brand"] == each for row in kept)) for each in brands
        ]
    return kept, Narrowing(groups, active)


def bounds(band: str) -> tuple[int, int | None] | None:
    """Read a price band such as ``25-50`` or ``100-``, in cents; None if it is none."""
    match = re.fullmatch(r"(\d{1,6})-(\d{0,6})", band, re.ASCII)
    return (int(match[1]) * 100, int(match[2]) * 100 if match[2] else None) if match else None


def within(row: sqlite3.Row, band: str) -> bool:
    """Whether a product's price lies in a price band."""
    low, high = bounds(band) or (0, None)
    return low <= row["cost"] and (high is None or row["cost"] < high)


def band_label(band: str) -> str:
    """Return a price band as the filter names it."""
    low, high = band.split("-")
    return f"${low} and above" if not high else f"${low} to ${high}" if low != "0" else f"Under ${high}"


# Advanced search --------------------------------------------------------------------------------------------

FIELDS = {"name": "Product Name", "sku": "SKU", "description": "Description"}
PRICES = {"price_from": "Price from", "price_to": "Price to"}


@catalog.get("/catalogsearch/advanced/")
def advanced() -> str:
    """Show the form of the advanced search."""
    return render_template("advanced.html", fields=FIELDS, prices=PRICES, values={}, errors=[])


@catalog.get("/catalogsearch/advanced/result/")
def advanced_result() -> Response | str:
    """Show what fits all filled fields; an address with empty fields leads to the one without them."""
    given = {name: value.strip() for name, value in request.args.items() if value.strip()}
    if len(given) < len(request.args):
        return redirect(with_query(**{name: given.get(name) for name in request.args}))
    wanted = {name: given[name] for name in (*FIELDS, *PRICES) if name in given}
    errors = [f"{PRICES[name]} must be a number." for name in PRICES if not re.fullmatch(r"\d*", wanted.get(name, ""))]
    if not wanted:
        errors.append("Fill at least one field.")
    if errors:
        return render_template("advanced.html", fields=FIELDS, prices=PRICES, values=wanted, errors=errors)
    rows = query(f"{PRODUCTS} ORDER BY id")
    for name in FIELDS:
        fitting = {row["id"] for row in matching(wanted.get(name, ""), name)}
        rows = [row for row in rows if row["id"] in fitting]
    low = int(wanted.get("price_from", "0")) * 100
    high = int(wanted["price_to"]) * 100 if "price_to" in wanted else None
    rows = [row for row in rows if low <= row["cost"] and (high is None or row["cost"] <= high)]
    return listing("Advanced Search Results", rows, [("Home", "/"), ("Advanced Search", "/catalogsearch/advanced/")])


# Products ---------------------------------------------------------------------------------------------------


def product_page(
    product: sqlite3.Row, errors: Sequence[str] = (), values: Mapping[str, str] | None = None, tab: str = ""
) -> str:
    """Show a product.

    Args:
        product: its row.
        errors: what is wrong with the form that was sent.
        values: what that form held, to be shown again.
        tab: ``details``, ``more`` or ``reviews``; empty takes the address's.
    """
    shelf = one("SELECT * FROM shop_category WHERE id = ?", product["category_id"])
    department = one("SELECT * FROM shop_category WHERE id = ?", shelf["parent_id"])
    tab = tab or request.args.get("tab", "details")
    reviews = query(
        "SELECT * FROM shop_review WHERE product_id = ? AND status = 'Approved' ORDER BY created_at DESC, id DESC",
        product["id"],
    )
    buyer = customer()
    return render_template(
        "product.html",
        product=product,
        trail=[("Home", "/"), *((row["name"], f"/{row['slug']}.html") for row in (department, shelf))],
        tab=tab if tab in ("details", "more", "reviews") else "details",
        options=options_of(product["id"]),
        stars=stars(product["id"]),
        reviews=paginate(reviews, REVIEWS_PER_PAGE),
        ratings=RATINGS,
        errors=errors,
        values=values or {"nickname": buyer["first"] if buyer else ""},
    )


@catalog.post("/review/product/post/<int:product_id>")
def post_review(product_id: int) -> Response | str:
    """Take a review; it waits for approval."""
    product = product_of(product_id)
    if product is None:
        abort(404)
    values = {name: request.form.get(name, "").strip() for name in ("rating", "nickname", "title", "body")}
    errors = []
    if values["rating"] not in RATINGS:
        errors.append("Please choose a rating.")
    errors += [f"{name} is a required field." for name in ("Nickname", "Title") if not values[name.lower()]]
    if len(values["body"]) < 10:
        errors.append("The review must have at least 10 characters.")
    if errors:
        return product_page(product, errors, values, "reviews")
    buyer = customer()
    write(
        "INSERT INTO shop_review (product_id, customer_id, nickname, rating, title, body, status, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, 'Pending', ?)",
        product_id,
        buyer["id"] if buyer else None,
        values["nickname"],
        int(values["rating"]),
        values["title"],
        values["body"],
        NOW,
    )
    flash("You submitted your review for moderation.", "success")
    return redirect(f"/{product['slug']}.html")


@catalog.get("/size-guide")
def size_guide() -> str:
    """Show what the sizes mean for each category that has sizes."""
    return render_template("size_guide.html", guide=SIZE_GUIDE)
