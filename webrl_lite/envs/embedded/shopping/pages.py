"""The storefront "One Corner Market": the application and what all its pages show."""

from __future__ import annotations

from webrl_lite.envs.embedded.shopping.account import account
from webrl_lite.envs.embedded.shopping.catalog import catalog
from webrl_lite.envs.embedded.shopping.checkout import checkout
from webrl_lite.envs.embedded.shopping.shop import cart_items, customer
from webrl_lite.envs.embedded.site import make_site, query

app = make_site("shopping", "One Corner Market", login_path="/customer/account/login/", login_label="Email")
app.register_blueprint(catalog)
app.register_blueprint(checkout)
app.register_blueprint(account)


@app.context_processor
def frame() -> dict[str, object]:
    """Return what header and footer show: customer, cart count, categories."""
    menu: dict[int, dict[str, object]] = {}
    for row in query("SELECT * FROM shop_category ORDER BY parent_id IS NOT NULL, id"):
        if row["parent_id"] is None:
            menu[row["id"]] = {"top": row, "children": []}
        else:
            menu[row["parent_id"]]["children"].append(row)
    count = sum(item["quantity"] for item in cart_items())
    return {"customer": customer(), "cart_count": count, "menu": list(menu.values())}
