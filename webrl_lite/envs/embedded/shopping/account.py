"""The customer's own pages: account, address book, newsletter, orders, wish list, and the contact form."""

from __future__ import annotations

import re
import sqlite3

from flask import Blueprint, Response, abort, flash, redirect, render_template, request
from markupsafe import Markup

from webrl_lite.envs.embedded.shopping.checkout import addresses, put_in_cart
from webrl_lite.envs.embedded.shopping.shop import PRODUCTS, customer, options_of, product_of
from webrl_lite.envs.embedded.site import NOW, connection, login_required, one, paginate, query, write

account = Blueprint("account", __name__)

ORDERS_PER_PAGE = 8
TOPICS = ("Order", "Return", "Refund", "Product", "Other")
PHONE = re.compile(r"\d{3}-\d{4}", re.ASCII)
ZIP = re.compile(r"\d{5}", re.ASCII)
ADDRESS_FIELDS = {"name": "Name", "street": "Street", "town": "Town", "zip": "Zip", "phone": "Phone"}


@account.get("/customer/account/")
@login_required
def overview() -> str:
    """Show who is signed in, the usual address and the last orders."""
    mine = query("SELECT * FROM shop_order WHERE customer_id = ? ORDER BY id DESC LIMIT 3", customer()["id"])
    return render_template("account.html", address=next(iter(addresses()), None), orders=mine)


@account.route("/customer/account/edit/", methods=["GET", "POST"])
@login_required
def edit() -> Response | str:
    """Change the customer's name and phone number."""
    values, errors = dict(customer()), []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in ("first", "last", "phone")}
        labels = {"first": "First Name", "last": "Last Name"}
        errors = [f"{label} is a required field." for name, label in labels.items() if not values[name]]
        if not PHONE.fullmatch(values["phone"]):
            errors.append("Phone must look like 555-0100.")
        if not errors:
            write(
                "UPDATE shop_customer SET first = ?, last = ?, phone = ? WHERE id = ?",
                *values.values(),
                customer()["id"],
            )
            flash("You saved the account information.", "success")
            return redirect("/customer/account/")
    return render_template("account_edit.html", values=values, errors=errors)


@account.route("/newsletter/manage/", methods=["GET", "POST"])
@login_required
def newsletter() -> Response | str:
    """Subscribe to the newsletter or leave it."""
    if request.method == "POST":
        wanted = int("subscribed" in request.form)
        write("UPDATE shop_customer SET newsletter = ? WHERE id = ?", wanted, customer()["id"])
        flash("We have saved your subscription." if wanted else "We have removed your subscription.", "success")
        return redirect("/customer/account/")
    return render_template("newsletter.html")


# Address book -----------------------------------------------------------------------------------------------


@account.get("/customer/address/")
@login_required
def address_book() -> str:
    """List the customer's addresses."""
    return render_template("addresses.html", rows=addresses())


def own_address(address_id: int) -> sqlite3.Row:
    """Return one of the customer's addresses; any other is not found."""
    row = one("SELECT * FROM shop_address WHERE id = ? AND customer_id = ?", address_id, customer()["id"])
    if row is None:
        abort(404)
    return row


@account.route("/customer/address/new/", methods=["GET", "POST"])
@account.route("/customer/address/edit/id/<int:address_id>/", methods=["GET", "POST"])
@login_required
def edit_address(address_id: int | None = None) -> Response | str:
    """Add an address or change one."""
    values = dict(own_address(address_id)) if address_id else {}
    errors: list[str] = []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in ADDRESS_FIELDS}
        values["is_default"] = int("is_default" in request.form)
        errors = [f"{label} is a required field." for name, label in ADDRESS_FIELDS.items() if not values[name]]
        if values["zip"] and not ZIP.fullmatch(values["zip"]):
            errors.append("Zip must have five digits.")
        if values["phone"] and not PHONE.fullmatch(values["phone"]):
            errors.append("Phone must look like 555-0100.")
        if not errors:
            save_address(address_id, values)
            flash("You saved the address.", "success")
            return redirect("/customer/address/")
    return render_template(
        "address_edit.html", address_id=address_id, fields=ADDRESS_FIELDS, values=values, errors=errors
    )


def save_address(address_id: int | None, values: dict[str, object]) -> None:
    """Write an address; a new default takes the place of the old one."""
    owner = customer()["id"]
    old = one("SELECT * FROM shop_address WHERE id = ?", address_id)
    columns = [*ADDRESS_FIELDS, "is_default"]
    with connection() as db:
        if values["is_default"]:
            db.execute("UPDATE shop_address SET is_default = 0 WHERE customer_id = ?", (owner,))
        elif old:
            values["is_default"] = old["is_default"]  # there is always a default; it goes by naming another
        row = tuple(values[name] for name in columns)
        if old:
            sets = ", ".join(f"{name} = ?" for name in columns)
            db.execute(f"UPDATE shop_address SET {sets} WHERE id = ?", (*row, address_id))
        else:
            sql = f"INSERT INTO shop_address (customer_id, {', '.join(columns)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
            db.execute(sql, (owner, *row))


@account.post("/customer/address/delete/id/<int:address_id>/")
@login_required
def delete_address(address_id: int) -> Response:
    """Delete an address other than the default one."""
    if own_address(address_id)["is_default"]:
        flash("The default address cannot be deleted.", "error")
    else:
        write("DELETE FROM shop_address WHERE id = ?", address_id)
        flash("You deleted the address.", "success")
    return redirect("/customer/address/")


# Orders -----------------------------------------------------------------------------------------------------


@account.get("/sales/order/history/")
@login_required
def orders() -> str:
    """List the customer's orders, newest first; ``q`` keeps those with such a number or product."""
    words = request.args.get("q", "").strip()
    rows = query("SELECT * FROM shop_order WHERE customer_id = ? ORDER BY id DESC", customer()["id"])
    if words:
        containing = {
            row["order_id"]
            for row in query("SELECT order_id FROM shop_order_item WHERE instr(lower(name), lower(?))", words)
        }
        rows = [row for row in rows if row["id"] in containing or words in row["number"]]
    return render_template("orders.html", orders=paginate(rows, ORDERS_PER_PAGE), words=words)


def own_order(order_id: int) -> sqlite3.Row:
    """Return one of the customer's orders; any other is not found."""
    row = one("SELECT * FROM shop_order WHERE id = ? AND customer_id = ?", order_id, customer()["id"])
    if row is None:
        abort(404)
    return row


@account.get("/sales/order/view/order_id/<int:order_id>/")
@account.get("/sales/order/print/order_id/<int:order_id>/", endpoint="print_order")
@login_required
def view_order(order_id: int) -> str:
    """Show an order, or its print form."""
    order = own_order(order_id)
    return render_template(
        "order_print.html" if "/print/" in request.path else "order.html",
        order=order,
        items=query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", order_id),
        shipment=one("SELECT * FROM shop_shipment WHERE order_id = ? ORDER BY id DESC", order_id),
        invoices=query("SELECT * FROM shop_invoice WHERE order_id = ? ORDER BY id", order_id),
        comments=query("SELECT * FROM shop_order_comment WHERE order_id = ? AND notified ORDER BY id", order_id),
    )


@account.get("/shipping/tracking/order_id/<int:order_id>/")
@login_required
def tracking(order_id: int) -> str:
    """Show where an order's parcels are."""
    order = own_order(order_id)
    rows = query("SELECT * FROM shop_shipment WHERE order_id = ? ORDER BY id", order_id)
    return render_template("tracking.html", order=order, shipments=rows)


@account.post("/sales/order/reorder/order_id/<int:order_id>/")
@login_required
def reorder(order_id: int) -> Response:
    """Put everything of an order into the cart that can still be bought."""
    own_order(order_id)
    for item in query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", order_id):
        product = product_of(item["product_id"])
        if product is None:
            flash(f"{item['name']} is no longer for sale.", "error")
            continue
        problem = put_in_cart(product, item["option_text"], item["quantity"])
        if problem:
            flash(problem, "error")
    return redirect("/checkout/cart/")


@account.post("/sales/order/cancel/order_id/<int:order_id>/")
@login_required
def cancel(order_id: int) -> Response:
    """Cancel an order that is still pending."""
    if own_order(order_id)["status"] == "Pending":
        write("UPDATE shop_order SET status = 'Canceled' WHERE id = ?", order_id)
        flash("The order was canceled.", "success")
    else:
        flash("Only a pending order can be canceled.", "error")
    return redirect(f"/sales/order/view/order_id/{order_id}/")


# Wish list --------------------------------------------------------------------------------------------------


@account.get("/wishlist/")
@login_required
def wish_list() -> str:
    """Show the wish list."""
    rows = query(
        f"SELECT p.*, w.id AS wish_id FROM shop_wishlist w JOIN ({PRODUCTS}) p ON p.id = w.product_id"
        " WHERE w.customer_id = ? ORDER BY w.id",
        customer()["id"],
    )
    return render_template("wishlist.html", rows=rows)


@account.post("/wishlist/index/add/<int:product_id>")
@login_required
def wish(product_id: int) -> Response:
    """Put a product on the wish list, once."""
    product = product_of(product_id)
    if product is None:
        abort(404)
    mine = (customer()["id"], product_id)
    if one("SELECT 1 FROM shop_wishlist WHERE customer_id = ? AND product_id = ?", *mine) is None:
        write("INSERT INTO shop_wishlist (customer_id, product_id) VALUES (?, ?)", *mine)
    flash(f"{product['name']} has been added to your Wish List.", "success")
    return redirect("/wishlist/")


@account.post("/wishlist/index/remove/<int:wish_id>")
@login_required
def unwish(wish_id: int) -> Response:
    """Take a product off the wish list."""
    write("DELETE FROM shop_wishlist WHERE id = ? AND customer_id = ?", wish_id, customer()["id"])
    flash("The product was removed from your Wish List.", "success")
    return redirect("/wishlist/")


@account.post("/wishlist/index/cart/<int:wish_id>")
@login_required
def wish_to_cart(wish_id: int) -> Response:
    """Move a product from the wish list to the cart; one with options must be chosen on its page."""
    row = one("SELECT * FROM shop_wishlist WHERE id = ? AND customer_id = ?", wish_id, customer()["id"])
    product = product_of(row["product_id"]) if row else None
    if product is None:
        abort(404)
    if options_of(product["id"]):
        flash("You need to choose options for your item.", "error")
        return redirect(f"/{product['slug']}.html")
    problem = put_in_cart(product, "", 1)
    if problem:
        flash(problem, "error")
        return redirect("/wishlist/")
    write("DELETE FROM shop_wishlist WHERE id = ?", wish_id)
    text = Markup('You moved {} to your <a href="/checkout/cart/">shopping cart</a>.').format(product["name"])
    flash(text, "success")
    return redirect("/wishlist/")


# Contact ----------------------------------------------------------------------------------------------------


@account.route("/contact/", methods=["GET", "POST"])
def contact() -> Response | str:
    """Take a message to the shop."""
    sender = customer()
    values = {"name": f"{sender['first']} {sender['last']}", "email": sender["email"]} if sender else {}
    errors: list[str] = []
    if request.method == "POST":
        names = ("name", "email", "topic", "order_number", "body")
        values = {name: request.form.get(name, "").strip() for name in names}
        labels = {"name": "Name", "body": "Message"}
        errors = [f"{label} is a required field." for name, label in labels.items() if not values[name]]
        if not re.fullmatch(r"[^@\s]+@[^@\s]+", values["email"]):
            errors.append("Email must be a valid address.")
        if values["topic"] not in TOPICS:
            errors.append("Please choose a topic.")
        if not re.fullmatch(r"(\d{9})?", values["order_number"], re.ASCII):
            errors.append("Order Number must have nine digits.")
        if not errors:
            write(
                "INSERT INTO shop_message (customer_id, name, email, topic, order_number, body, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                sender["id"] if sender else None,
                *values.values(),
                NOW,
            )
            flash("Thanks for writing to us. We will answer you soon.", "success")
            return redirect("/contact/")
    return render_template("contact.html", topics=TOPICS, values=values, errors=errors)
