"""The shop's admin: log-in, grids, forms, reports, and its tasks."""

import re
import shutil
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import PER_SPLIT, entity_split
from webrl_lite.envs.embedded.shopping_admin.forms import parse_cents, parse_date
from webrl_lite.envs.embedded.shopping_admin.pages import MENU, app
from webrl_lite.envs.embedded.shopping_admin.tasks import FAMILIES
from webrl_lite.envs.embedded.site import DATABASE, READ_ONLY, SESSION_SECONDS

app.secret_key = "test"

GRIDS = [path for _, links in MENU for _, path in links if "report" not in path and path != "/admin/categories"]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worlds") / world.PRISTINE
    world.build(path)
    return path


@pytest.fixture
def database(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(pristine, tmp_path / "w0.db"))


@pytest.fixture
def visitor(database: Path) -> FlaskClient:
    client = app.test_client()
    client.environ_base[DATABASE] = str(database)
    return client


@pytest.fixture
def admin(visitor: FlaskClient) -> FlaskClient:
    sign_in(visitor)
    return visitor


def sign_in(client: FlaskClient, age: float = 0.0) -> None:
    account = rows(client, "SELECT id FROM account WHERE site = 'shopping_admin'")[0]["id"]
    with client.session_transaction() as session:
        session.update(user=account, at=time.time() - age, form_key="key")


def rows(client: FlaskClient, sql: str, *values: object) -> list[sqlite3.Row]:
    """Return rows of the client's database."""
    db = sqlite3.connect(client.environ_base[DATABASE])
    db.row_factory = sqlite3.Row
    try:
        return db.execute(sql, values).fetchall()
    finally:
        db.close()


def put(client: FlaskClient, *statements: str) -> None:
    """Change the client's database behind the site's back."""
    db = sqlite3.connect(client.environ_base[DATABASE])
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def changed(client: FlaskClient, pristine: Path) -> list[tuple[str, str, dict[str, object]]]:
    """Return what differs from the pristine database: table, operation, and the new values of changed columns."""
    found = []
    for change in world.changes(pristine, Path(client.environ_base[DATABASE])):
        before, after = change["before"] or {}, change["after"] or {}
        new = {name: value for name, value in after.items() if before.get(name) != value}
        found.append((change["table"], change["op"], new))
    return found


def post(client: FlaskClient, path: str, **fields: object):
    return client.post(path, data={"form_key": "key", **fields})


def order_of(client: FlaskClient, status: str) -> int:
    return rows(client, "SELECT id FROM shop_order WHERE status = ? ORDER BY id", status)[0]["id"]


# Log-in -------------------------------------------------------------------------------------------------------------


def test_a_visitor_signs_in_and_lands_on_the_page_he_wanted(visitor: FlaskClient):
    sent = visitor.get("/admin/orders?status=Pending")
    assert sent.location == "/admin?next=/admin/orders?status%3DPending"
    form = visitor.get(sent.location)
    assert "Please sign in first." in form.text
    token = re.search(r'name="form_key" value="(\w+)"', form.text)[1]
    fields = {"form_key": token, "username": "admin", "password": "admin-1234"}
    assert visitor.post(sent.location, data=fields).location == "/admin/orders?status=Pending"
    assert "Store Admin" in visitor.get("/admin/orders?status=Pending").text


def test_a_wrong_password_is_refused_and_the_name_stays(visitor: FlaskClient):
    token = re.search(r'name="form_key" value="(\w+)"', visitor.get("/admin").text)[1]
    page = visitor.post("/admin", data={"form_key": token, "username": "admin", "password": "admin"})
    assert "The account sign-in was incorrect." in page.text and 'value="admin"' in page.text


def test_an_old_log_in_has_expired(visitor: FlaskClient):
    sign_in(visitor, age=SESSION_SECONDS + 1)
    assert "Your session has expired." in visitor.get("/admin/orders", follow_redirects=True).text


def test_no_page_but_the_log_in_is_open_to_visitors(visitor: FlaskClient):
    for rule in app.url_map.iter_rules():
        if "GET" in rule.methods and rule.endpoint not in ("login", "static"):
            path = re.sub(r"<.*?>", "1", rule.rule)
            assert visitor.get(path).location.startswith("/admin?next="), path


def test_a_form_without_the_token_changes_nothing(admin: FlaskClient, pristine: Path):
    assert admin.post(f"/admin/order/{order_of(admin, 'Pending')}/cancel").status_code == 400
    assert changed(admin, pristine) == []


def test_all_pages_are_served_from_a_read_only_database(pristine: Path):
    client = app.test_client()
    client.environ_base.update({DATABASE: str(pristine), READ_ONLY: True})
    sign_in(client)
    before = pristine.read_bytes()
    pending = order_of(client, "Pending")
    special = {"/admin/order/<int:order_id>/ship": f"/admin/order/{pending}/ship"}
    for rule in app.url_map.iter_rules():
        if "GET" in rule.methods and rule.endpoint not in ("login", "static", "home"):
            path = special.get(rule.rule, re.sub(r"<.*?>", "1", rule.rule))
            assert client.get(path).status_code == 200, path
    assert pristine.read_bytes() == before


def test_an_unknown_address_is_a_page_with_the_menu(admin: FlaskClient):
    page = admin.get("/admin/order/99999")
    assert page.status_code == 404 and "There is no page at this address." in page.text and "Sales" in page.text


# Grids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GRIDS)
def test_a_grid_shows_ten_rows_and_the_number_of_records(admin: FlaskClient, path: str):
    page = admin.get(path).text
    total = int(re.search(r"(\d+) records found", page)[1])
    assert page.count("<tr>") - 1 == min(10, total) > 0


@pytest.mark.parametrize("path", GRIDS)
def test_a_grid_sorts_by_each_of_its_columns(admin: FlaskClient, path: str):
    for link in re.findall(r'<th class="\w+"><a href="([^"]+)"', admin.get(path).text):
        assert "asc" in link
        again = admin.get(link.replace("&amp;", "&")).text
        assert "↑" in again and "dir=desc" in again, link


def test_sorting_by_total_puts_the_dearest_order_first(admin: FlaskClient):
    page = admin.get("/admin/orders?sort=total&dir=desc").text
    dearest = rows(admin, "SELECT number FROM shop_order ORDER BY total DESC")[0]["number"]
    assert re.search(r"\d{9}", page)[0] == dearest


def test_an_unknown_sort_column_is_ignored(admin: FlaskClient):
    assert admin.get("/admin/orders?sort=payment;drop").status_code == 200


def test_empty_filter_fields_leave_the_address(admin: FlaskClient):
    sent = admin.get("/admin/orders?number=&customer=+Kai+&status=Pending&created_at_from=&total_to=")
    assert sent.location == "/admin/orders?customer=Kai&status=Pending"


def test_filters_combine_and_are_named(admin: FlaskClient):
    put(
        admin,
        "UPDATE shop_order SET status = 'Complete' WHERE status = 'Pending'",
        "UPDATE shop_order SET status = 'Pending', total = 4000, created_at = '2025-03-05 23:00:00' WHERE id = 7",
        "UPDATE shop_order SET status = 'Pending', total = 4001, created_at = '2025-03-05 23:00:00' WHERE id = 8",
        "UPDATE shop_order SET status = 'Pending', total = 4000, created_at = '2025-03-06 01:00:00' WHERE id = 9",
    )
    page = admin.get("/admin/orders?status=Pending&created_at_to=03/05/2025&total_to=40").text
    assert "1 records found" in page and "000000107" in page
    assert "Active filters: Status: Pending · Date to: 03/05/2025 · Total to: 40" in page


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("created_at_from=13/01/2025", "Date from must be a date as MM/DD/YYYY."),
        ("created_at_from=2025-01-01", "Date from must be a date as MM/DD/YYYY."),
        ("total_to=cheap", "Total to must be a number"),
        ("status=Lost", "Status must be one of Pending"),
    ],
)
def test_a_wrong_filter_opens_the_form_with_what_was_typed(admin: FlaskClient, query: str, complaint: str):
    page = admin.get(f"/admin/orders?{query}").text
    name, value = query.split("=")
    assert complaint in page and "Apply filters" in page
    assert f'name="{name}" value="{value}"' in page or name == "status"


def test_the_filter_form_is_behind_its_link(admin: FlaskClient):
    assert "Apply filters" not in admin.get("/admin/orders").text
    assert "Apply filters" in admin.get("/admin/orders?filters=1").text


def test_the_keyword_search_takes_signs_of_sql_literally(admin: FlaskClient):
    assert "We couldn&#39;t find any records." in admin.get("/admin/customers?q=%25").text.replace("'", "&#39;")


def test_the_page_size_and_the_filter_stay_on_the_next_page(admin: FlaskClient):
    page = admin.get("/admin/orders?status=Complete&limit=20").text
    assert page.count("<tr>") - 1 == 20 and "/admin/orders?status=Complete&amp;limit=20&amp;p=2" in page
    size = page[page.index('class="foot"') :]
    assert '<input type="hidden" name="status" value="Complete">' in size


def test_mass_actions_take_only_the_orders_that_can(admin: FlaskClient, pristine: Path):
    pending, complete = order_of(admin, "Pending"), order_of(admin, "Complete")
    assert 'aria-label="Select all"' in admin.get("/admin/orders?actions=1").text
    assert post(admin, "/admin/orders/mass", step="Hold", id=[pending, complete]).location == "/admin/orders"
    assert changed(admin, pristine) == [("shop_order", "update", {"status": "On Hold"})]
    assert "1 of 2 selected orders were put on hold." in admin.get("/admin/orders").text


@pytest.mark.parametrize("path", ["/admin/orders", "/admin/products", "/admin/reviews"])
def test_a_mass_action_without_rows_is_refused(admin: FlaskClient, pristine: Path, path: str):
    post(admin, f"{path}/mass", step="Hold")
    assert "Select an action and at least one" in admin.get(path).text
    assert changed(admin, pristine) == []


def test_products_are_disabled_together(admin: FlaskClient, pristine: Path):
    ids = [row["id"] for row in rows(admin, "SELECT id FROM shop_product WHERE enabled LIMIT 2")]
    post(admin, "/admin/products/mass", step="Disable", id=ids)
    assert changed(admin, pristine) == [("shop_product", "update", {"enabled": 0})] * 2


def test_reviews_are_deleted_together(admin: FlaskClient, pristine: Path):
    post(admin, "/admin/reviews/mass", step="Delete", id=[3, 4])
    assert changed(admin, pristine) == [("shop_review", "delete", {})] * 2


# Orders -------------------------------------------------------------------------------------------------------------


def test_a_pending_order_is_canceled_and_a_complete_one_is_not(admin: FlaskClient, pristine: Path):
    pending, complete = order_of(admin, "Pending"), order_of(admin, "Complete")
    assert "Are you sure you want to cancel this order?" in admin.get(f"/admin/order/{pending}").text
    post(admin, f"/admin/order/{pending}/cancel")
    assert "The order was canceled." in admin.get(f"/admin/order/{pending}").text
    post(admin, f"/admin/order/{complete}/cancel")
    assert "The order cannot be canceled." in admin.get(f"/admin/order/{complete}").text
    assert changed(admin, pristine) == [("shop_order", "update", {"status": "Canceled"})]


def test_a_held_order_goes_back_to_what_it_was(admin: FlaskClient, pristine: Path):
    for status in ("Pending", "Processing"):
        order = order_of(admin, status)
        post(admin, f"/admin/order/{order}/hold")
        assert changed(admin, pristine) == [("shop_order", "update", {"status": "On Hold"})]
        post(admin, f"/admin/order/{order}/unhold")
        assert changed(admin, pristine) == []


def test_a_comment_records_whether_the_customer_was_notified(admin: FlaskClient, pristine: Path):
    for fields, notified in (({"notify": "on"}, 1), ({}, 0)):
        post(admin, "/admin/order/5/comment", comment=" On its way. ", **fields)
        [*_, (table, op, new)] = changed(admin, pristine)
        assert (table, op, new["body"], new["notified"], new["order_id"]) == (
            "shop_order_comment",
            "insert",
            "On its way.",
            notified,
            5,
        )


def test_an_empty_comment_is_refused_and_the_tick_stays(admin: FlaskClient, pristine: Path):
    page = post(admin, "/admin/order/5/comment", comment=" ", notify="on").text
    assert "Comment is a required field." in page and 'name="notify" checked' in page
    assert changed(admin, pristine) == []


def test_a_wrong_zip_code_keeps_the_typed_address(admin: FlaskClient, pristine: Path):
    fields = {"name": "Kai Sato", "street": "4 Mill Lane", "town": "Dunmere"}
    page = post(admin, "/admin/order/5/address", zip="2015", **fields).text
    assert "ZIP code must be five digits." in page and 'value="4 Mill Lane"' in page
    assert changed(admin, pristine) == []
    post(admin, "/admin/order/5/address", zip="20155", **fields)
    [(table, op, new)] = changed(admin, pristine)
    assert (table, op, new["ship_street"]) == ("shop_order", "update", "4 Mill Lane")


def test_shipping_needs_a_carrier_and_a_tracking_number(admin: FlaskClient, pristine: Path):
    order = order_of(admin, "Pending")
    page = post(admin, f"/admin/order/{order}/ship", carrier="", tracking="a b").text
    assert "Carrier must be one of" in page and "Tracking number must be 4 to 30" in page and 'value="a b"' in page
    assert changed(admin, pristine) == []


def test_a_pending_order_is_processing_once_shipped_and_complete_once_invoiced(admin: FlaskClient, pristine: Path):
    order = order_of(admin, "Pending")
    post(admin, f"/admin/order/{order}/ship", carrier="Blue Van", tracking="TR1234")
    assert [change[0] for change in changed(admin, pristine)] == ["shop_order", "shop_shipment"]
    assert rows(admin, "SELECT status FROM shop_order WHERE id = ?", order)[0]["status"] == "Processing"
    post(admin, f"/admin/order/{order}/ship", carrier="Blue Van", tracking="TR1235")
    assert "The order cannot be shipped." in admin.get(f"/admin/order/{order}").text
    post(admin, f"/admin/order/{order}/invoice")
    assert rows(admin, "SELECT status FROM shop_order WHERE id = ?", order)[0]["status"] == "Complete"
    bill = rows(admin, "SELECT i.total, o.total AS due FROM shop_invoice i JOIN shop_order o ON o.id = order_id")[-1]
    assert bill["total"] == bill["due"]


def test_an_invoice_is_printed_in_a_tab_of_its_own(admin: FlaskClient):
    assert 'href="/admin/invoice/1/print" target="_blank"' in admin.get("/admin/invoice/1").text


# Other forms --------------------------------------------------------------------------------------------------------

PRODUCT = {
    "name": "Maple Bowl",
    "price": "12.50",
    "special_price": "",
    "stock": "4",
    "enabled": "Yes",
    "description": "Oak.",
}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"price": "twelve"}, "Price must be a number, for example 12.50."),
        ({"price": ""}, "Price is a required field."),
        ({"price": "-3"}, "Price must be a number"),
        ({"special_price": "12.50"}, "Special price must be lower than the price."),
        ({"stock": "2.5"}, "Quantity must be a whole number from 0 to 99999."),
        ({"name": "  "}, "Product name is a required field."),
        ({"enabled": "Perhaps"}, "Enable product must be one of Yes, No."),
    ],
)
def test_a_wrong_product_form_is_refused_and_keeps_what_was_typed(
    admin: FlaskClient, pristine: Path, fields: dict[str, str], complaint: str
):
    page = post(admin, "/admin/product/3", **{**PRODUCT, **fields}).text
    assert complaint in page
    [(name, value)] = fields.items()
    assert f'name="{name}" value="{value.strip()}"' in page or name == "enabled"
    assert changed(admin, pristine) == []


def test_saving_a_product_unchanged_changes_nothing(admin: FlaskClient, pristine: Path):
    page = admin.get("/admin/product/3").text
    fields = dict(re.findall(r'name="(name|price|special_price|stock)" value="([^"]*)"', page))
    description = re.search(r'name="description"[^>]*>([^<]*)<', page)[1]
    enabled = re.search(r"<option selected>(\w+)</option>", page)[1]
    sent = post(admin, "/admin/product/3", **fields, description=description, enabled=enabled)
    assert sent.location == "/admin/product/3" and changed(admin, pristine) == []
    assert "You saved the product." in admin.get("/admin/product/3").text


def test_a_customer_moves_to_another_group(admin: FlaskClient, pristine: Path):
    put(admin, "UPDATE shop_customer SET group_name = 'General' WHERE id = 4")
    shutil.copy(admin.environ_base[DATABASE], pristine.with_name("before.db"))
    row = rows(admin, "SELECT first, last, email, phone FROM shop_customer WHERE id = 4")[0]
    post(admin, "/admin/customer/4", **dict(row), group_name="Wholesale")
    assert changed(admin, pristine.with_name("before.db")) == [("shop_customer", "update", {"group_name": "Wholesale"})]
    page = post(admin, "/admin/customer/4", **{**dict(row), "phone": "none"}, group_name="General").text
    assert "Phone must be a phone number." in page and 'value="none"' in page


def test_a_review_is_approved(admin: FlaskClient, pristine: Path):
    row = rows(admin, "SELECT * FROM shop_review WHERE status = 'Pending'")[0]
    fields = {name: row[name] for name in ("nickname", "title", "body")}
    assert post(admin, f"/admin/review/{row['id']}", **fields, status="Approved").location == "/admin/reviews"
    assert changed(admin, pristine) == [("shop_review", "update", {"status": "Approved"})]


RULE = {
    "name": "Tea Week",
    "status": "Active",
    "percent": "10",
    "coupon": "TEA10",
    "from_date": "07/01/2025",
    "to_date": "7/9/2025",
}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"percent": "0"}, "Percent off must be a whole number from 1 to 90."),
        ({"from_date": "02/30/2025"}, "Starts must be a date as MM/DD/YYYY."),
        ({"to_date": "06/30/2025"}, "Ends must not be before Starts."),
        ({"coupon": "tea"}, "Coupon code must be 3 to 12 capital letters or digits."),
    ],
)
def test_a_wrong_price_rule_is_refused(admin: FlaskClient, pristine: Path, fields: dict[str, str], complaint: str):
    page = post(admin, "/admin/rule/new", **{**RULE, **fields}).text
    assert complaint in page and 'value="Tea Week"' in page
    assert changed(admin, pristine) == []


def test_a_price_rule_is_created_with_iso_dates(admin: FlaskClient, pristine: Path):
    post(admin, "/admin/rule/new", **RULE)
    [(table, op, new)] = changed(admin, pristine)
    assert (table, op, new["from_date"], new["to_date"]) == (
        "admin_price_rule",
        "insert",
        "2025-07-01",
        "2025-07-09",
    )


def test_a_page_of_text_gets_a_new_title(admin: FlaskClient, pristine: Path):
    row = rows(admin, "SELECT * FROM admin_page WHERE id = 2")[0]
    post(admin, "/admin/page/2", title="Who We Are", status=row["status"], content=row["content"])
    assert changed(admin, pristine) == [("admin_page", "update", {"title": "Who We Are"})]


@pytest.mark.parametrize(
    ("typed", "day"),
    [
        ("06/03/2025", "2025-06-03"),
        ("6/3/2025", "2025-06-03"),
        ("02/29/2024", "2024-02-29"),
        ("02/29/2025", None),
        ("03.06.2025", None),
        ("06/03/25", None),
        ("٠٦/03/2025", None),
    ],
)
def test_dates_are_typed_month_first(typed: str, day: str | None):
    assert parse_date(typed) == day


@pytest.mark.parametrize(
    ("typed", "cents"),
    [("12.5", 1250), ("$1,200", 120000), ("0.05", 5), ("12.", None), ("1.234", None), ("1e3", None), ("", None)],
)
def test_amounts_are_typed_in_dollars(typed: str, cents: int | None):
    assert parse_cents(typed) == cents


# Reports ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def three_orders(admin: FlaskClient) -> FlaskClient:
    """An admin whose only orders since 2030 are two of January, one of February, and a canceled one."""
    order = (
        "INSERT INTO shop_order SELECT {id}, '{id}', {customer}, '{status}', '{at}', subtotal, 100, 10, {total},"
        " ship_name, ship_street, ship_town, ship_zip, payment FROM shop_order WHERE id = 1"
    )
    item = (
        "INSERT INTO shop_order_item (order_id, product_id, sku, name, option_text, price, quantity)"
        " VALUES ({order}, {product}, 'S', '{name}', '', 500, {quantity})"
    )
    put(
        admin,
        order.format(id=9001, customer=2, status="Complete", at="2030-01-31 23:59:00", total=2000),
        order.format(id=9002, customer=2, status="Pending", at="2030-01-05 10:00:00", total=3050),
        order.format(id=9003, customer=3, status="Complete", at="2030-02-01 00:00:00", total=500),
        order.format(id=9004, customer=3, status="Canceled", at="2030-02-02 00:00:00", total=90000),
        item.format(order=9001, product=1, name="Lamp", quantity=2),
        item.format(order=9002, product=2, name="Bag", quantity=3),
        item.format(order=9003, product=1, name="Lamp", quantity=2),
        item.format(order=9004, product=2, name="Bag", quantity=50),
    )
    return admin


def table(page: str) -> list[list[str]]:
    """Return the cells of a report's rows, totals last."""
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)][1:]


def test_the_sales_report_adds_up_by_month_without_canceled_orders(three_orders: FlaskClient):
    """January 20.00 + 30.50 = 50.50, February 5.00, together 55.50; shipping 1.00 and tax 0.10 an order."""
    page = three_orders.get("/admin/reports/sales?from=01/01/2030&to=02/28/2030&period=Month").text
    assert table(page) == [
        ["Jan 2030", "2", "$2.00", "$0.20", "$50.50"],
        ["Feb 2030", "1", "$1.00", "$0.10", "$5.00"],
        ["Total", "3", "$3.00", "$0.30", "$55.50"],
    ]


def test_a_report_takes_its_last_day_in(three_orders: FlaskClient):
    page = three_orders.get("/admin/reports/sales?from=01/06/2030&to=01/31/2030&period=Day").text
    assert table(page)[0] == ["Jan 31, 2030", "1", "$1.00", "$0.10", "$20.00"]


def test_best_sellers_are_ranked_by_quantity_in_each_period(three_orders: FlaskClient):
    """In the year: Lamp 2 + 2 = 4 before Bag 3; in January Bag 3 before Lamp 2."""
    year = three_orders.get("/admin/reports/bestsellers?from=01/01/2030&to=12/31/2030&period=Year").text
    assert [(row[1], row[3]) for row in table(year)] == [("Lamp", "4"), ("Bag", "3"), ("", "7")]
    months = three_orders.get("/admin/reports/bestsellers?from=01/01/2030&to=12/31/2030&period=Month").text
    assert [(row[0], row[1]) for row in table(months)[:3]] == [
        ("Jan 2030", "Bag"),
        ("Jan 2030", "Lamp"),
        ("Feb 2030", "Lamp"),
    ]


def test_the_order_count_report_ranks_customers(three_orders: FlaskClient):
    """Customer 2: two orders, 20.00 + 30.50, on average 25.25; customer 3: one of 5.00."""
    page = three_orders.get("/admin/reports/customers?from=01/01/2030&to=12/31/2030&period=Year").text
    assert [row[2:] for row in table(page)] == [["2", "$25.25", "$50.50"], ["1", "$5.00", "$5.00"], ["3", "", "$55.50"]]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("from=01/01/2019&to=12/31/2019&period=Year", "We can't find records for this period."),
        ("from=&to=01/31/2025&period=Day", "From is a required field."),
        ("from=31/01/2025&to=02/01/2025&period=Day", "From must be a date as MM/DD/YYYY."),
        ("from=02/01/2025&to=01/01/2025&period=Day", "To must not be before From."),
        ("from=01/01/2025&to=01/31/2025&period=Week", "Period must be one of Day, Month, Year."),
        ("", "Fill in the dates and press Show Report."),
    ],
)
@pytest.mark.parametrize("report", ["sales", "bestsellers", "customers"])
def test_a_report_says_why_it_is_empty(admin: FlaskClient, report: str, query: str, answer: str):
    page = admin.get(f"/admin/reports/{report}?{query}").text
    assert answer in page and "<tfoot>" not in page


# Tasks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_enough_instances_for_its_splits(pristine: Path, family):
    db = sqlite3.connect(pristine)
    db.row_factory = sqlite3.Row
    counts: Counter[str] = Counter()
    for instance in family.instances(db):
        splits = {entity_split(entity) for entity in instance.entities}
        counts["test_families" if family.held_out else splits.pop() if len(splits) == 1 else "between"] += 1
        assert all(wording.format(**instance.values) for wording in family.wordings)
        assert 1 <= instance.requirements <= 5
    db.close()
    wanted = ("test_families",) if family.held_out else ("train", "test")
    assert all(counts[split] >= PER_SPLIT[split] for split in wanted), counts
    assert len(set(family.wordings)) >= 3
