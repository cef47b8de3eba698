"""Customers: the grid, and one customer's account with what they ordered."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, request
from werkzeug.wrappers import Response

from webrl_lite.envs.embedded.shopping_admin.forms import Form
from webrl_lite.envs.embedded.shopping_admin.grid import Column, Filter, Grid, show
from webrl_lite.envs.embedded.site import one, query, write

pages = Blueprint("customers", __name__)

GROUPS = ("General", "Wholesale", "Retailer")
FIELDS = ("first", "last", "email", "phone", "group_name")

CUSTOMERS = Grid(
    title="Customers",
    source="SELECT *, first || ' ' || last AS name FROM shop_customer",
    columns=(
        Column("name", "Name"),
        Column("email", "Email"),
        Column("phone", "Phone"),
        Column("group_name", "Group"),
    ),
    filters=(
        Filter("name", "Name"),
        Filter("email", "Email"),
        Filter("phone", "Phone"),
        Filter("group_name", "Group", "choice", GROUPS),
        Filter("created_at", "Since", "date"),
    ),
    search=("name", "email", "phone"),
    order="id",
    link="/admin/customer/{}",
)


@pages.get("/admin/customers")
def customer_grid() -> Response | str:
    """Show the customers."""
    return show(CUSTOMERS)


@pages.route("/admin/customer/<int:customer_id>", methods=["GET", "POST"])
def customer_page(customer_id: int) -> Response | str:
    """Show and save a customer's account."""
    customer = one(f"SELECT * FROM ({CUSTOMERS.source}) WHERE id = ?", customer_id) or abort(404)
    form = Form(request.form)
    if request.method == "POST":
        first = form.text("first", "First name")
        last = form.text("last", "Last name")
        email = form.match("email", "Email", r"[^@\s]+@[^@\s]+\.[a-z]+", "an email address")
        phone = form.match("phone", "Phone", r"[0-9 +()-]{7,20}", "a phone number")
        group = form.choice("group_name", "Group", GROUPS)
        if not form.errors:
            write(
                "UPDATE shop_customer SET first = ?, last = ?, email = ?, phone = ?, group_name = ? WHERE id = ?",
                first,
                last,
                email,
                phone,
                group,
                customer_id,
            )
            flash("You saved the customer.", "success")
            return redirect(f"/admin/customer/{customer_id}")
    else:
        form.values = {field: customer[field] for field in FIELDS}
    return render_template(
        "customer.html",
        customer=customer,
        groups=GROUPS,
        totals=one(
            "SELECT count(*) AS orders, coalesce(sum(CASE WHEN status != 'Canceled' THEN total END), 0) AS sales"
            " FROM shop_order WHERE customer_id = ?",
            customer_id,
        ),
        address=one("SELECT * FROM shop_address WHERE customer_id = ? AND is_default", customer_id),
        orders=query(
            "SELECT * FROM shop_order WHERE customer_id = ? ORDER BY created_at DESC, id DESC LIMIT 5", customer_id
        ),
        values=form.values,
        errors=form.errors,
    )
