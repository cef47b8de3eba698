"""Catalog: products and categories."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, request
from werkzeug.wrappers import Response

from webrl_lite.envs.embedded.shopping_admin.forms import Form, typed_money
from webrl_lite.envs.embedded.shopping_admin.grid import Column, Filter, Grid, show
from webrl_lite.envs.embedded.site import one, query, write

pages = Blueprint("catalog", __name__)

STATES = ("Disabled", "Enabled")
"""Names of a product's ``enabled``, 0 and 1."""

PRODUCTS = Grid(
    title="Products",
    source="SELECT p.*, CASE p.enabled WHEN 1 THEN 'Enabled' ELSE 'Disabled' END AS status, c.name AS category"
    " FROM shop_product AS p JOIN shop_category AS c ON c.id = p.category_id",
    columns=(
        Column("name", "Name"),
        Column("sku", "SKU"),
        Column("price", "Price", "money"),
        Column("stock", "Stock", "number"),
        Column("status", "Status"),
    ),
    filters=(
        Filter("name", "Name"),
        Filter("sku", "SKU"),
        Filter("category", "Category"),
        Filter("status", "Status", "choice", STATES),
        Filter("price", "Price", "money"),
        Filter("stock", "Stock", "number"),
    ),
    search=("name", "sku"),
    order="id",
    link="/admin/product/{}",
    mass="/admin/products/mass",
    actions=("Disable", "Enable"),
)


@pages.get("/admin/products")
def product_grid() -> Response | str:
    """Show the products."""
    return show(PRODUCTS)


@pages.post("/admin/products/mass")
def product_mass() -> Response:
    """Enable or disable the selected products."""
    action = request.form.get("step", "")
    chosen = [int(text) for text in request.form.getlist("id") if text.isdecimal()]
    if action not in PRODUCTS.actions or not chosen:
        flash("Select an action and at least one product.", "error")
        return redirect("/admin/products")
    for product_id in chosen:
        write("UPDATE shop_product SET enabled = ? WHERE id = ?", int(action == "Enable"), product_id)
    flash(f"{len(chosen)} selected products were {action.lower()}d.", "success")
    return redirect("/admin/products")


@pages.route("/admin/product/<int:product_id>", methods=["GET", "POST"])
def product_page(product_id: int) -> Response | str:
    """Show and save a product."""
    product = one(f"SELECT * FROM ({PRODUCTS.source}) WHERE id = ?", product_id) or abort(404)
    form = Form(request.form)
    if request.method == "POST":
        name = form.text("name", "Product name")
        price = form.cents("price", "Price")
        special = form.cents("special_price", "Special price", optional=True)
        stock = form.whole("stock", "Quantity", 0, 99_999)
        enabled = form.choice("enabled", "Enable product", ("Yes", "No"))
        description = form.text("description", "Description")
        if price is not None and special is not None and special >= price:
            form.errors.append("Special price must be lower than the price.")
        if not form.errors:
            write(
                "UPDATE shop_product SET name = ?, price = ?, special_price = ?, stock = ?, enabled = ?,"
                " description = ? WHERE id = ?",
                name,
                price,
                special,
                stock,
                int(enabled == "Yes"),
                description,
                product_id,
            )
            flash("You saved the product.", "success")
            return redirect(f"/admin/product/{product_id}")
    else:
        form.values = {
            "name": product["name"],
            "price": typed_money(product["price"]),
            "special_price": typed_money(product["special_price"]),
            "stock": str(product["stock"]),
            "enabled": "Yes" if product["enabled"] else "No",
            "description": product["description"],
        }
    reviews = one("SELECT count(*) AS total FROM shop_review WHERE product_id = ?", product_id)["total"]
    return render_template("product.html", product=product, reviews=reviews, values=form.values, errors=form.errors)


@pages.get("/admin/categories")
def category_list() -> str:
    """Show the category tree with the number of products of each, sub-categories included."""
    rows = query(
        "SELECT c.*, (SELECT count(*) FROM shop_product AS p JOIN shop_category AS own ON own.id = p.category_id"
        " WHERE c.id IN (own.id, own.parent_id)) AS products FROM shop_category AS c ORDER BY c.id"
    )
    tree = [(top, [row for row in rows if row["parent_id"] == top["id"]]) for top in rows if not top["parent_id"]]
    return render_template("categories.html", tree=tree)
