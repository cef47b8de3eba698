"""Cart and checkout: three steps, then an order.

What a customer has chosen so far stands in the session, not in the database, so that leaving the checkout
changes nothing.
"""

from __future__ import annotations

import sqlite3

from flask import Blueprint, Response, abort, flash, redirect, render_template, request, session
from markupsafe import Markup

from webrl_lite.envs.embedded.shopping.catalog import product_page
from webrl_lite.envs.embedded.shopping.data import PAYMENTS, SHIPPING
from webrl_lite.envs.embedded.shopping.shop import cart_items, chosen_options, customer, product_of, totals
from webrl_lite.envs.embedded.site import NOW, connection, login_required, one, query, write

checkout = Blueprint("checkout", __name__)

MOST = 99
"""Largest quantity of one row of a cart."""


def quantity_of(text: str) -> int | None:
    """Read a quantity, 1 to ``MOST``; None if it is none."""
    text = text.strip()
    number = int(text) if text.isdecimal() and len(text) < 5 else 0
    return number if 1 <= number <= MOST else None


def put_in_cart(product: sqlite3.Row, option_text: str, quantity: int) -> str:
    """Put a product into the signed-in customer's cart.

    Returns:
        What speaks against it; empty if it was done.
    """
    buyer = customer()
    row = one(
        "SELECT * FROM shop_cart_item WHERE customer_id = ? AND product_id = ? AND option_text = ?",
        buyer["id"],
        product["id"],
        option_text,
    )
    wanted = quantity + (row["quantity"] if row else 0)
    if wanted > min(product["stock"], MOST):
        return f"The requested quantity of {product['name']} is not available."
    if row:
        write("UPDATE shop_cart_item SET quantity = ? WHERE id = ?", wanted, row["id"])
    else:
        write(
            "INSERT INTO shop_cart_item (customer_id, product_id, option_text, quantity) VALUES (?, ?, ?, ?)",
            buyer["id"],
            product["id"],
            option_text,
            quantity,
        )
    return ""


@checkout.post("/checkout/cart/add/<int:product_id>")
@login_required
def add(product_id: int) -> Response | str:
    """Put a product into the cart and go back to its page."""
    product = product_of(product_id)
    if product is None:
        abort(404)
    option_text, missing = chosen_options(product_id, request.form)
    errors = [f"Please choose a {name.lower()}." for name in missing]
    quantity = quantity_of(request.form.get("qty", "1"))
    if quantity is None:
        errors.append(f"Please enter a quantity from 1 to {MOST}.")
    if not errors:
        errors = [problem for problem in [put_in_cart(product, option_text, quantity)] if problem]
    if errors:
        return product_page(product, errors, request.form)
    text = Markup('You added {} to your <a href="/checkout/cart/">shopping cart</a>.').format(product["name"])
    flash(text, "success")
    return redirect(f"/{product['slug']}.html")


@checkout.get("/checkout/cart/")
@login_required
def cart() -> str:
    """Show the cart."""
    items = cart_items()
    return render_template("cart.html", items=items, subtotal=totals(items, "Store Pickup").subtotal)


@checkout.post("/checkout/cart/update")
@login_required
def update() -> Response:
    """Set the quantities of the cart's rows."""
    for item in cart_items():
        text = request.form.get(f"qty{item['id']}", str(item["quantity"]))
        quantity = quantity_of(text)
        if quantity is None or quantity > item["stock"]:
            flash(f"The requested quantity of {item['name']} is not available.", "error")
        elif quantity != item["quantity"]:
            write("UPDATE shop_cart_item SET quantity = ? WHERE id = ?", quantity, item["id"])
    return redirect("/checkout/cart/")


@checkout.post("/checkout/cart/delete/<int:item_id>")
@login_required
def delete(item_id: int) -> Response:
    """Take a row out of the cart."""
    write("DELETE FROM shop_cart_item WHERE id = ? AND customer_id = ?", item_id, customer()["id"])
    flash("The item was removed from your cart.", "success")
    return redirect("/checkout/cart/")


# Steps ------------------------------------------------------------------------------------------------------


def addresses() -> list[sqlite3.Row]:
    """Return the signed-in customer's addresses, the default one first."""
    return query("SELECT * FROM shop_address WHERE customer_id = ? ORDER BY is_default DESC, id", customer()["id"])


def chosen_address() -> sqlite3.Row | None:
    """Return the address that this checkout sends to, or None."""
    wanted = session.get("checkout", {}).get("address")
    return next((row for row in addresses() if row["id"] == wanted), None)


def missing_step() -> Response | None:
    """Send back a visitor who skipped a step."""
    if not cart_items():
        return redirect("/checkout/cart/")
    if chosen_address() is None:
        return redirect("/checkout/")
    return None


@checkout.route("/checkout/", methods=["GET", "POST"])
@login_required
def shipping_address() -> Response | str:
    """Choose the address to send to."""
    if not cart_items():
        return redirect("/checkout/cart/")
    rows, errors = addresses(), []
    wanted = request.form.get("address", str(rows[0]["id"]) if rows else "")
    if request.method == "POST":
        if wanted in {str(row["id"]) for row in rows}:
            session["checkout"] = {"address": int(wanted)}
            return redirect("/checkout/shipping-method/")
        errors.append("Please choose an address.")
    return render_template("checkout_address.html", rows=rows, wanted=wanted, errors=errors)


@checkout.route("/checkout/shipping-method/", methods=["GET", "POST"])
@login_required
def shipping_method() -> Response | str:
    """Choose how to send it."""
    back = missing_step()
    if back is not None:
        return back
    errors = []
    if request.method == "POST":
        method = request.form.get("method", "")
        if method in SHIPPING:
            session["checkout"] = {**session["checkout"], "method": method}
            return redirect("/checkout/review/")
        errors.append("Please choose a shipping method.")
    return render_template("checkout_method.html", methods=SHIPPING, address=chosen_address(), errors=errors)


@checkout.route("/checkout/review/", methods=["GET", "POST"])
@login_required
def review() -> Response | str:
    """Check everything, choose how to pay, and place the order."""
    back = missing_step()
    if back is not None:
        return back
    method = session["checkout"].get("method")
    if method is None:
        return redirect("/checkout/shipping-method/")
    items, errors = cart_items(), []
    payment = request.form.get("payment", PAYMENTS[0])
    if request.method == "POST":
        if payment not in PAYMENTS:
            errors.append("Please choose a payment method.")
        errors += [f"{item['name']} is out of stock." for item in items if item["stock"] < item["quantity"]]
        if not errors:
            session["placed"] = place_order(items, method, payment)
            session.pop("checkout")
            return redirect("/checkout/success/")
    return render_template(
        "checkout_review.html",
        items=items,
        totals=totals(items, method),
        address=chosen_address(),
        method=method,
        payments=PAYMENTS,
        payment=payment,
        errors=errors,
    )


def place_order(items: list[sqlite3.Row], method: str, payment: str) -> str:
    """Make an order of the cart and empty the cart; return the order's number.

    The stock stays as it is: it goes down when the shop ships.
    """
    buyer, address, sums = customer(), chosen_address(), totals(items, method)
    last = one("SELECT MAX(number) AS number FROM shop_order")["number"]
    number = f"{int(last) + 1:09}"
    with connection() as db:
        order_id = db.execute(
            "INSERT INTO shop_order (number, customer_id, status, created_at, subtotal, shipping, tax, total,"
            " ship_name, ship_street, ship_town, ship_zip, payment)"
            " VALUES (?, ?, 'Pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                buyer["id"],
                NOW,
                sums.subtotal,
                sums.shipping,
                sums.tax,
                sums.total,
                *(address[name] for name in ("name", "street", "town", "zip")),
                payment,
            ),
        ).lastrowid
        for item in items:
            db.execute(
                "INSERT INTO shop_order_item (order_id, product_id, sku, name, option_text, price, quantity)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    order_id,
                    *(item[name] for name in ("product_id", "sku", "name", "option_text", "cost", "quantity")),
                ),
            )
        db.execute("DELETE FROM shop_cart_item WHERE customer_id = ?", (buyer["id"],))
    return number


@checkout.get("/checkout/success/")
@login_required
def success() -> Response | str:
    """Show the number of the order that was just placed."""
    number = session.get("placed")
    order = one("SELECT * FROM shop_order WHERE number = ? AND customer_id = ?", number, customer()["id"])
    return render_template("checkout_success.html", order=order) if order else redirect("/checkout/cart/")
