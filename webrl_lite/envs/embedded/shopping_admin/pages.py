"""Corner Market Admin: the application, its log-in rule, its menu and its dashboard.

The other pages are in ``orders``, ``catalog``, ``marketing`` and ``reports``. Prices, stock, orders and customers are
the shop's own rows, so a change made here is visible in the shop.
"""

from __future__ import annotations

from flask import redirect, render_template, request
from werkzeug.wrappers import Response

from webrl_lite.envs.embedded.shopping_admin import catalog, customers, marketing, orders, reports
from webrl_lite.envs.embedded.shopping_admin.forms import typed_money
from webrl_lite.envs.embedded.site import TODAY, login_required, make_site, one, query

MENU = (
    ("Sales", (("Orders", "/admin/orders"), ("Invoices", "/admin/invoices"), ("Shipments", "/admin/shipments"))),
    ("Catalog", (("Products", "/admin/products"), ("Categories", "/admin/categories"))),
    ("Customers", (("All Customers", "/admin/customers"),)),
    (
        "Marketing",
        (
            ("Price Rules", "/admin/rules"),
            ("Search Terms", "/admin/terms"),
            ("All Reviews", "/admin/reviews"),
            ("Pending Reviews", "/admin/reviews/pending"),
        ),
    ),
    ("Content", (("Pages", "/admin/pages"),)),
    (
        "Reports",
        (
            ("Sales Report", "/admin/reports/sales"),
            ("Bestsellers", "/admin/reports/bestsellers"),
            ("Order Count", "/admin/reports/customers"),
        ),
    ),
)
"""The navigation: each entry opens a fly-out of links."""

app = make_site("shopping_admin", "Corner Market Admin", login_path="/admin")
app.jinja_env.globals["menu"] = MENU
app.jinja_env.filters["typed_money"] = typed_money
for part in (orders, catalog, customers, marketing, reports):
    app.register_blueprint(part.pages)


@app.before_request
def staff_only() -> object:
    """Let nobody past the log-in form who is not signed in."""
    if request.endpoint in ("login", "logout", "static"):
        return None
    return login_required(lambda: None)()


@app.get("/")
def home() -> Response:
    """Send the visitor to the dashboard."""
    return redirect("/admin/dashboard")


@app.get("/admin/dashboard")
def dashboard() -> str:
    """Show lifetime sales, the last months, the last orders, this month's best sellers and the top search terms."""
    month = TODAY.isoformat()[:7]
    return render_template(
        "dashboard.html",
        totals=one("SELECT sum(total) AS sales, avg(total) AS average FROM shop_order WHERE status != 'Canceled'"),
        months=query(
            "SELECT sum(total) AS total FROM shop_order WHERE status != 'Canceled'"
            " GROUP BY substr(created_at, 1, 7) ORDER BY substr(created_at, 1, 7) DESC LIMIT 12"
        )[::-1],
        orders=query(
            "SELECT o.id, o.total, c.first || ' ' || c.last AS customer FROM shop_order AS o"
            " JOIN shop_customer AS c ON c.id = o.customer_id ORDER BY o.created_at DESC, o.id DESC LIMIT 5"
        ),
        terms=query("SELECT term, uses FROM admin_search_term ORDER BY uses DESC, id LIMIT 5"),
        sellers=query(
            "SELECT i.name, sum(i.quantity) AS sold FROM shop_order_item AS i JOIN shop_order AS o ON o.id = i.order_id"
            " WHERE o.status != 'Canceled' AND substr(o.created_at, 1, 7) = ?"
            " GROUP BY i.product_id ORDER BY sold DESC, i.name LIMIT 5",
            month,
        ),
    )
