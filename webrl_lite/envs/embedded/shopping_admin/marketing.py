"""Marketing and content: reviews, search terms, price rules and the shop's own pages of text."""

from __future__ import annotations

from dataclasses import replace
from sqlite3 import Row

from flask import Blueprint, abort, flash, redirect, render_template, request
from werkzeug.wrappers import Response

from webrl_lite.envs.embedded.shopping_admin.forms import Form, typed_date
from webrl_lite.envs.embedded.shopping_admin.grid import Column, Filter, Grid, show
from webrl_lite.envs.embedded.site import one, write

pages = Blueprint("marketing", __name__)

REVIEW_STATES = ("Approved", "Pending", "Not Approved")
RULE_STATES = ("Active", "Inactive")
PAGE_STATES = ("Enabled", "Disabled")

REVIEWS = Grid(
    title="Reviews",
    source="SELECT r.*, p.name AS product FROM shop_review AS r JOIN shop_product AS p ON p.id = r.product_id",
    columns=(
        Column("nickname", "Nickname"),
        Column("title", "Title"),
        Column("product", "Product"),
        Column("created_at", "Date", "day"),
        Column("status", "Status"),
    ),
    filters=(
        Filter("title", "Title"),
        Filter("nickname", "Nickname"),
        Filter("product", "Product"),
        Filter("status", "Status", "choice", REVIEW_STATES),
        Filter("created_at", "Date", "date"),
    ),
    search=("title", "nickname", "product"),
    order="created_at DESC, id DESC",
    link="/admin/review/{}",
    mass="/admin/reviews/mass",
    actions=("Approve", "Reject", "Delete"),
)
PENDING = replace(
    REVIEWS,
    title="Pending Reviews",
    source=f"{REVIEWS.source} WHERE r.status = 'Pending'",
    columns=tuple(column for column in REVIEWS.columns if column.key != "status"),
    filters=tuple(rule for rule in REVIEWS.filters if rule.key != "status"),
)
TERMS = Grid(
    title="Search Terms",
    source="SELECT * FROM admin_search_term",
    columns=(Column("term", "Search term"), Column("results", "Results", "number"), Column("uses", "Uses", "number")),
    filters=(
        Filter("term", "Search term"),
        Filter("results", "Results", "number"),
        Filter("uses", "Uses", "number"),
    ),
    search=("term",),
    order="id",
)
RULES = Grid(
    title="Price Rules",
    source="SELECT * FROM admin_price_rule",
    columns=(
        Column("name", "Rule"),
        Column("coupon", "Coupon"),
        Column("percent", "Percent off", "number"),
        Column("to_date", "Ends", "day"),
        Column("status", "Status"),
    ),
    filters=(
        Filter("name", "Rule"),
        Filter("coupon", "Coupon"),
        Filter("status", "Status", "choice", RULE_STATES),
        Filter("to_date", "Ends", "date"),
    ),
    search=("name", "coupon"),
    order="id",
    link="/admin/rule/{}",
    add=("/admin/rule/new", "Add New Rule"),
)
TEXTS = Grid(
    title="Pages",
    source="SELECT * FROM admin_page",
    columns=(Column("title", "Title"), Column("url_key", "URL key"), Column("status", "Status")),
    filters=(
        Filter("title", "Title"),
        Filter("url_key", "URL key"),
        Filter("status", "Status", "choice", PAGE_STATES),
    ),
    search=("title", "url_key"),
    order="id",
    link="/admin/page/{}",
)


@pages.get("/admin/reviews")
def review_grid() -> Response | str:
    """Show all reviews."""
    return show(REVIEWS)


@pages.get("/admin/reviews/pending")
def pending_grid() -> Response | str:
    """Show the reviews that wait for approval."""
    return show(PENDING)


@pages.post("/admin/reviews/mass")
def review_mass() -> Response:
    """Approve, reject or delete the selected reviews."""
    action = request.form.get("step", "")
    chosen = [int(text) for text in request.form.getlist("id") if text.isdecimal()]
    if action not in REVIEWS.actions or not chosen:
        flash("Select an action and at least one review.", "error")
        return redirect("/admin/reviews")
    for review_id in chosen:
        if action == "Delete":
            write("DELETE FROM shop_review WHERE id = ?", review_id)
        else:
            status = "Approved" if action == "Approve" else "Not Approved"
            write("UPDATE shop_review SET status = ? WHERE id = ?", status, review_id)
    done = {"Approve": "approved", "Reject": "rejected", "Delete": "deleted"}[action]
    flash(f"{len(chosen)} selected reviews were {done}.", "success")
    return redirect("/admin/reviews")


def find_review(review_id: int) -> Row:
    """Return a review with its product's name, or end the request with 404."""
    return one(f"SELECT * FROM ({REVIEWS.source}) WHERE id = ?", review_id) or abort(404)


@pages.route("/admin/review/<int:review_id>", methods=["GET", "POST"])
def review_page(review_id: int) -> Response | str:
    """Show and save a review."""
    review, form = find_review(review_id), Form(request.form)
    if request.method == "POST":
        status = form.choice("status", "Status", REVIEW_STATES)
        nickname = form.text("nickname", "Nickname")
        title = form.text("title", "Title")
        body = form.text("body", "Review")
        if not form.errors:
            write(
                "UPDATE shop_review SET status = ?, nickname = ?, title = ?, body = ? WHERE id = ?",
                status,
                nickname,
                title,
                body,
                review_id,
            )
            flash("You saved the review.", "success")
            return redirect("/admin/reviews")
    else:
        form.values = {field: review[field] for field in ("status", "nickname", "title", "body")}
    return render_template("review.html", review=review, states=REVIEW_STATES, values=form.values, errors=form.errors)


@pages.post("/admin/review/<int:review_id>/delete")
def review_delete(review_id: int) -> Response:
    """Delete a review."""
    write("DELETE FROM shop_review WHERE id = ?", find_review(review_id)["id"])
    flash("The review has been deleted.", "success")
    return redirect("/admin/reviews")


@pages.get("/admin/terms")
def term_grid() -> Response | str:
    """Show what visitors searched for."""
    return show(TERMS)


@pages.get("/admin/rules")
def rule_grid() -> Response | str:
    """Show the price rules."""
    return show(RULES)


@pages.route("/admin/rule/new", methods=["GET", "POST"])
def rule_new() -> Response | str:
    """Create a price rule."""
    return rule_form(None)


@pages.route("/admin/rule/<int:rule_id>", methods=["GET", "POST"])
def rule_page(rule_id: int) -> Response | str:
    """Show and save a price rule."""
    return rule_form(one("SELECT * FROM admin_price_rule WHERE id = ?", rule_id) or abort(404))


def rule_form(rule: Row | None) -> Response | str:
    """Show the form of a price rule, or save what it holds; None makes a new one."""
    form = Form(request.form)
    if request.method == "POST":
        name = form.text("name", "Rule name")
        status = form.choice("status", "Status", RULE_STATES)
        percent = form.whole("percent", "Percent off", 1, 90)
        coupon = form.match("coupon", "Coupon code", r"[A-Z0-9]{3,12}", "3 to 12 capital letters or digits")
        start = form.date("from_date", "Starts")
        end = form.date("to_date", "Ends")
        if start and end and start > end:
            form.errors.append("Ends must not be before Starts.")
        if not form.errors:
            values = (name, status, percent, start, end, coupon)
            if rule is None:
                write(
                    "INSERT INTO admin_price_rule (name, status, percent, from_date, to_date, coupon)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    *values,
                )
            else:
                write(
                    "UPDATE admin_price_rule SET name = ?, status = ?, percent = ?, from_date = ?, to_date = ?,"
                    " coupon = ? WHERE id = ?",
                    *values,
                    rule["id"],
                )
            flash("You saved the rule.", "success")
            return redirect("/admin/rules")
    elif rule is not None:
        form.values = {
            **{field: str(rule[field]) for field in ("name", "status", "percent", "coupon")},
            **{field: typed_date(rule[field]) for field in ("from_date", "to_date")},
        }
    return render_template("rule.html", rule=rule, states=RULE_STATES, values=form.values, errors=form.errors)


@pages.get("/admin/pages")
def text_grid() -> Response | str:
    """Show the pages of text."""
    return show(TEXTS)


@pages.route("/admin/page/<int:page_id>", methods=["GET", "POST"])
def text_page(page_id: int) -> Response | str:
    """Show and save a page of text."""
    page = one("SELECT * FROM admin_page WHERE id = ?", page_id) or abort(404)
    form = Form(request.form)
    if request.method == "POST":
        title = form.text("title", "Page title")
        status = form.choice("status", "Status", PAGE_STATES)
        content = form.text("content", "Content")
        if not form.errors:
            write(
                "UPDATE admin_page SET title = ?, status = ?, content = ? WHERE id = ?", title, status, content, page_id
            )
            flash("You saved the page.", "success")
            return redirect("/admin/pages")
    else:
        form.values = {field: page[field] for field in ("title", "status", "content")}
    return render_template("page.html", page=page, states=PAGE_STATES, values=form.values, errors=form.errors)
