"""Sales: orders, their invoices and shipments.

An order is Pending until it is invoiced or shipped, then Processing, and Complete once it is both; Pending and
Processing orders can be held, Pending ones canceled.
"""

from __future__ import annotations

from sqlite3 import Row

from flask import Blueprint, abort, flash, redirect, render_template, request
from werkzeug.wrappers import Response

from webrl_lite.envs.embedded.shopping.data import CARRIERS
from webrl_lite.envs.embedded.shopping_admin.forms import Form
from webrl_lite.envs.embedded.shopping_admin.grid import Column, Filter, Grid, show
from webrl_lite.envs.embedded.site import NOW, one, query, write

pages = Blueprint("orders", __name__)

STATUSES = ("Pending", "Processing", "Complete", "Canceled", "On Hold")
ADDRESS = ("ship_name", "ship_street", "ship_town", "ship_zip")

ORDER = (
    "SELECT o.*, c.first || ' ' || c.last AS customer, c.email FROM shop_order AS o"
    " JOIN shop_customer AS c ON c.id = o.customer_id"
)
ORDERS = Grid(
    title="Orders",
    source=ORDER,
    columns=(
        Column("number", "ID"),
        Column("created_at", "Date", "day"),
        Column("customer", "Customer"),
        Column("total", "Total", "money"),
        Column("status", "Status"),
    ),
    filters=(
        Filter("number", "ID"),
        Filter("customer", "Customer"),
        Filter("status", "Status", "choice", STATUSES),
        Filter("created_at", "Date", "date"),
        Filter("total", "Total", "money"),
    ),
    search=("number", "customer", "email"),
    order="created_at DESC, id DESC",
    link="/admin/order/{}",
    mass="/admin/orders/mass",
    actions=("Cancel", "Hold", "Unhold"),
)
INVOICES = Grid(
    title="Invoices",
    source="SELECT i.*, o.number AS order_number, o.ship_name FROM shop_invoice AS i"
    " JOIN shop_order AS o ON o.id = i.order_id",
    columns=(
        Column("number", "Invoice"),
        Column("created_at", "Date", "day"),
        Column("order_number", "Order"),
        Column("ship_name", "Bill to"),
        Column("total", "Total", "money"),
    ),
    filters=(
        Filter("number", "Invoice"),
        Filter("order_number", "Order"),
        Filter("created_at", "Date", "date"),
        Filter("total", "Total", "money"),
    ),
    search=("number", "order_number", "ship_name"),
    order="created_at DESC, id DESC",
    link="/admin/invoice/{}",
)
SHIPMENTS = Grid(
    title="Shipments",
    source="SELECT s.*, o.number AS order_number, o.ship_name FROM shop_shipment AS s"
    " JOIN shop_order AS o ON o.id = s.order_id",
    columns=(
        Column("order_number", "Order"),
        Column("created_at", "Date", "day"),
        Column("ship_name", "Ship to"),
        Column("carrier", "Carrier"),
        Column("tracking", "Tracking number"),
    ),
    filters=(
        Filter("order_number", "Order"),
        Filter("carrier", "Carrier"),
        Filter("tracking", "Tracking number"),
        Filter("created_at", "Date", "date"),
    ),
    search=("order_number", "ship_name", "tracking"),
    order="created_at DESC, id DESC",
    link="/admin/shipment/{}",
)


@pages.get("/admin/orders")
def order_grid() -> Response | str:
    """Show the orders."""
    return show(ORDERS)


@pages.get("/admin/invoices")
def invoice_grid() -> Response | str:
    """Show the invoices."""
    return show(INVOICES)


@pages.get("/admin/shipments")
def shipment_grid() -> Response | str:
    """Show the shipments."""
    return show(SHIPMENTS)


def find_order(order_id: int) -> Row:
    """Return an order with its customer's name and email, or end the request with 404."""
    return one(f"{ORDER} WHERE o.id = ?", order_id) or abort(404)


def allowed(order: Row) -> tuple[str, ...]:
    """Return the steps that an order can take now, by the labels of their buttons."""
    if order["status"] == "On Hold":
        return ("Unhold",)
    if order["status"] not in ("Pending", "Processing"):
        return ()
    steps = ["Cancel"] if order["status"] == "Pending" else []
    steps.append("Hold")
    if not one("SELECT 1 FROM shop_invoice WHERE order_id = ?", order["id"]):
        steps.append("Invoice")
    if not one("SELECT 1 FROM shop_shipment WHERE order_id = ?", order["id"]):
        steps.append("Ship")
    return tuple(steps)


@pages.get("/admin/order/<int:order_id>")
def order_page(order_id: int) -> str:
    """Show an order."""
    return order_view(find_order(order_id), Form({}))


def order_view(order: Row, comment: Form) -> str:
    """Return an order's page, with the comment form as it was sent."""
    return render_template(
        "order.html",
        order=order,
        steps=allowed(order),
        items=query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", order["id"]),
        comments=query("SELECT * FROM shop_order_comment WHERE order_id = ? ORDER BY id DESC", order["id"]),
        invoices=query("SELECT * FROM shop_invoice WHERE order_id = ? ORDER BY id", order["id"]),
        shipments=query("SELECT * FROM shop_shipment WHERE order_id = ? ORDER BY id", order["id"]),
        values=comment.values,
        errors=comment.errors,
    )


def set_status(order: Row, step: str) -> bool:
    """Cancel, hold or release an order; return whether it could be done."""
    if step not in allowed(order):
        return False
    status = {"Cancel": "Canceled", "Hold": "On Hold", "Unhold": progress(order["id"])}[step]
    write("UPDATE shop_order SET status = ? WHERE id = ?", status, order["id"])
    return True


DONE = {"Cancel": "canceled", "Hold": "put on hold", "Unhold": "released from hold"}
"""What happened to an order, for the banner."""


@pages.post("/admin/order/<int:order_id>/<any(cancel, hold, unhold):step>")
def order_step(order_id: int, step: str) -> Response:
    """Cancel, hold or release an order."""
    done = DONE[step.capitalize()]
    if set_status(find_order(order_id), step.capitalize()):
        flash(f"The order was {done}.", "success")
    else:
        flash(f"The order cannot be {done}.", "error")
    return redirect(f"/admin/order/{order_id}")


@pages.post("/admin/orders/mass")
def order_mass() -> Response:
    """Cancel, hold or release the selected orders."""
    step = request.form.get("step", "")
    chosen = [find_order(int(text)) for text in request.form.getlist("id") if text.isdecimal()]
    if step not in DONE or not chosen:
        flash("Select an action and at least one order.", "error")
        return redirect("/admin/orders")
    count = sum(set_status(order, step) for order in chosen)
    if count:
        flash(f"{count} of {len(chosen)} selected orders were {DONE[step]}.", "success")
    else:
        flash(f"No selected order can be {DONE[step]}.", "error")
    return redirect("/admin/orders")


@pages.post("/admin/order/<int:order_id>/comment")
def order_comment(order_id: int) -> Response | str:
    """Add a comment to an order."""
    order, form = find_order(order_id), Form(request.form)
    body = form.text("comment", "Comment")
    if form.errors:
        return order_view(order, form)
    write(
        "INSERT INTO shop_order_comment (order_id, body, notified, status, created_at) VALUES (?, ?, ?, ?, ?)",
        order_id,
        body,
        int("notify" in form.values),
        order["status"],
        NOW,
    )
    flash("The comment was added.", "success")
    return redirect(f"/admin/order/{order_id}")


@pages.route("/admin/order/<int:order_id>/address", methods=["GET", "POST"])
def order_address(order_id: int) -> Response | str:
    """Edit an order's shipping address."""
    order, form = find_order(order_id), Form(request.form)
    if request.method == "POST":
        name, street, town = (form.text(*field) for field in (("name", "Name"), ("street", "Street"), ("town", "Town")))
        code = form.match("zip", "ZIP code", r"\d{5}", "five digits")
        if not form.errors:
            write(
                "UPDATE shop_order SET ship_name = ?, ship_street = ?, ship_town = ?, ship_zip = ? WHERE id = ?",
                name,
                street,
                town,
                code,
                order_id,
            )
            flash("You updated the order address.", "success")
            return redirect(f"/admin/order/{order_id}")
    else:
        form.values = {field.removeprefix("ship_"): order[field] for field in ADDRESS}
    return render_template("order_address.html", order=order, values=form.values, errors=form.errors)


@pages.post("/admin/order/<int:order_id>/invoice")
def order_invoice(order_id: int) -> Response:
    """Invoice an order in full."""
    order = find_order(order_id)
    if "Invoice" not in allowed(order):
        flash("The order cannot be invoiced.", "error")
        return redirect(f"/admin/order/{order_id}")
    last = one("SELECT max(number) AS number FROM shop_invoice")["number"] or "0"
    write(
        "INSERT INTO shop_invoice (order_id, number, total, created_at) VALUES (?, ?, ?, ?)",
        order_id,
        f"{int(last) + 1:09d}",
        order["total"],
        NOW,
    )
    advance(order_id)
    flash("The invoice has been created.", "success")
    return redirect(f"/admin/order/{order_id}")


@pages.route("/admin/order/<int:order_id>/ship", methods=["GET", "POST"])
def order_ship(order_id: int) -> Response | str:
    """Ship an order: choose a carrier and give the tracking number."""
    order, form = find_order(order_id), Form(request.form)
    if "Ship" not in allowed(order):
        flash("The order cannot be shipped.", "error")
        return redirect(f"/admin/order/{order_id}")
    if request.method == "POST":
        carrier = form.choice("carrier", "Carrier", CARRIERS)
        tracking = form.match("tracking", "Tracking number", r"[A-Za-z0-9-]{4,30}", "4 to 30 letters or digits")
        if not form.errors:
            write(
                "INSERT INTO shop_shipment (order_id, carrier, tracking, created_at) VALUES (?, ?, ?, ?)",
                order_id,
                carrier,
                tracking,
                NOW,
            )
            advance(order_id)
            flash("The shipment has been created.", "success")
            return redirect(f"/admin/order/{order_id}")
    items = query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", order_id)
    return render_template(
        "order_ship.html", order=order, items=items, carriers=CARRIERS, values=form.values, errors=form.errors
    )


def progress(order_id: int) -> str:
    """Return the status that follows from what was done with an order: invoiced, shipped, both or nothing."""
    done = sum(
        one(f"SELECT 1 FROM {table} WHERE order_id = ?", order_id) is not None
        for table in ("shop_invoice", "shop_shipment")
    )
    return ("Pending", "Processing", "Complete")[done]


def advance(order_id: int) -> None:
    """Move an order on after it was invoiced or shipped."""
    write("UPDATE shop_order SET status = ? WHERE id = ?", progress(order_id), order_id)


def find_invoice(invoice_id: int) -> Row:
    """Return an invoice with its order's number and address, or end the request with 404."""
    return one(
        "SELECT i.*, o.number AS order_number, o.ship_name, o.ship_street, o.ship_town, o.ship_zip, o.subtotal,"
        " o.shipping, o.tax FROM shop_invoice AS i JOIN shop_order AS o ON o.id = i.order_id WHERE i.id = ?",
        invoice_id,
    ) or abort(404)


@pages.get("/admin/invoice/<int:invoice_id>")
def invoice_page(invoice_id: int) -> str:
    """Show an invoice."""
    invoice = find_invoice(invoice_id)
    items = query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", invoice["order_id"])
    return render_template("invoice.html", invoice=invoice, items=items)


@pages.get("/admin/invoice/<int:invoice_id>/print")
def invoice_print(invoice_id: int) -> str:
    """Show an invoice without the admin's menu, in a tab of its own."""
    invoice = find_invoice(invoice_id)
    items = query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", invoice["order_id"])
    return render_template("invoice_print.html", invoice=invoice, items=items)


@pages.get("/admin/shipment/<int:shipment_id>")
def shipment_page(shipment_id: int) -> str:
    """Show a shipment."""
    shipment = one(
        "SELECT s.*, o.number AS order_number, o.ship_name, o.ship_street, o.ship_town, o.ship_zip"
        " FROM shop_shipment AS s JOIN shop_order AS o ON o.id = s.order_id WHERE s.id = ?",
        shipment_id,
    ) or abort(404)
    items = query("SELECT * FROM shop_order_item WHERE order_id = ? ORDER BY id", shipment["order_id"])
    return render_template("shipment.html", shipment=shipment, items=items)
