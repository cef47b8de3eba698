"""The storefront's traps, asked of its pages without a browser."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.shopping.pages import app
from webrl_lite.envs.embedded.site import COOKIE, DATABASE, READ_ONLY, mint_cookie

MAYA = 1


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worlds") / world.PRISTINE
    world.build(path)
    return path


class Shop:
    """A visitor of one worker's shop, signed in as Maya unless told otherwise."""

    def __init__(self, pristine: Path, folder: Path) -> None:
        self.before = pristine
        self.path = folder / "w0.db"
        shutil.copyfile(pristine, self.path)
        self.client: FlaskClient = app.test_client()
        self.client.environ_base[DATABASE] = str(self.path)
        self.enter()

    def enter(self, *, expired: bool = False) -> None:
        account = self.rows("SELECT id FROM account WHERE username = 'maya.lindqvist@example.com'")[0]["id"]
        self.client.set_cookie(COOKIE, mint_cookie("test", account, expired=expired))

    def leave(self) -> None:
        self.client.set_cookie(COOKIE, mint_cookie("test", None))

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        db = sqlite3.connect(self.path)
        db.row_factory = sqlite3.Row
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def get(self, path: str) -> TestResponse:
        return self.client.get(path, follow_redirects=True)

    def post(self, path: str, *, token: str | None = None, **form: str) -> TestResponse:
        if token is None:
            page = self.get("/customer/account/login/").text
            token = re.search(r'name="form_key" value="(\w+)"', page)[1]
        return self.client.post(path, data={"form_key": token, **form}, follow_redirects=True)

    def changes(self) -> list[tuple[str, str]]:
        return [(change["table"], change["op"]) for change in world.changes(self.before, self.path)]

    def product(self, where: str) -> sqlite3.Row:
        options = "SELECT product_id FROM shop_product_option"
        return self.rows(f"SELECT * FROM shop_product WHERE enabled AND stock > 9 AND {where.format(options=options)}")[
            0
        ]


@pytest.fixture
def shop(pristine: Path, tmp_path: Path) -> Shop:
    app.secret_key = "test"
    return Shop(pristine, tmp_path)


def test_data_are_as_large_as_the_site_promises(shop: Shop) -> None:
    counts = {
        table: shop.rows(f"SELECT COUNT(*) AS n FROM shop_{table}")[0]["n"]
        for table in ("product", "customer", "order", "review")
    }
    assert counts["product"] == 228
    assert counts["customer"] == 64
    assert counts["order"] == 195
    assert counts["review"] > 600


def test_two_products_and_two_customers_share_a_name(shop: Shop) -> None:
    twins = shop.rows("SELECT name FROM shop_product GROUP BY name HAVING COUNT(DISTINCT brand) = 2")
    assert len(twins) == 8
    people = shop.rows("SELECT first, last FROM shop_customer GROUP BY first, last HAVING COUNT(*) = 2")
    assert len(people) == 2


def test_no_two_products_of_a_department_cost_the_same(shop: Shop) -> None:
    sql = (
        "SELECT c.parent_id, COALESCE(p.special_price, p.price) AS cost FROM shop_product p"
        " JOIN shop_category c ON c.id = p.category_id GROUP BY 1, 2 HAVING COUNT(*) > 1"
    )
    assert shop.rows(sql) == []


PATHS = (
    "/",
    "/kitchen.html",
    "/living/rugs.html?price=25-50&product_list_order=price&product_list_dir=desc&product_list_limit=18&p=2",
    "/heron-roaster.html",
    "/heron-roaster.html?tab=reviews",
    "/heron-roaster.html?tab=more",
    "/catalogsearch/result/?q=copper",
    "/catalogsearch/advanced/",
    "/catalogsearch/advanced/result/?name=kettle&price_from=20&price_to=60",
    "/size-guide",
    "/checkout/cart/",
    "/checkout/",
    "/customer/account/",
    "/customer/account/edit/",
    "/newsletter/manage/",
    "/customer/address/",
    "/customer/address/new/",
    "/customer/address/edit/id/1/",
    "/sales/order/history/",
    "/sales/order/view/order_id/195/",
    "/sales/order/print/order_id/195/",
    "/shipping/tracking/order_id/195/",
    "/wishlist/",
    "/contact/",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_get_works_on_a_read_only_database(shop: Shop, path: str) -> None:
    shop.client.environ_base[READ_ONLY] = True
    assert shop.get(path).status_code == 200
    assert shop.changes() == []


def test_an_expired_log_in_is_sent_to_the_form_and_back(shop: Shop) -> None:
    shop.enter(expired=True)
    page = shop.get("/wishlist/")
    assert page.request.path == "/customer/account/login/"
    assert "Your session has expired" in page.text
    token = re.search(r'name="form_key" value="(\w+)"', page.text)[1]
    address = f"{page.request.path}?{page.request.query_string.decode()}"
    page = shop.post(address, token=token, username="maya.lindqvist@example.com", password="harbor-42")
    assert page.request.path == "/wishlist/"
    assert "My Wish List" in page.text


def test_a_wrong_password_keeps_the_email(shop: Shop) -> None:
    shop.leave()
    page = shop.post("/customer/account/login/", username="maya.lindqvist@example.com", password="x")
    assert "sign-in was incorrect" in page.text
    assert 'value="maya.lindqvist@example.com"' in page.text


def test_a_form_without_its_token_changes_nothing(shop: Shop) -> None:
    page = shop.post("/newsletter/manage/", token="stale", subscribed="on")
    assert page.status_code == 400
    assert shop.changes() == []


def names(page: TestResponse) -> list[str]:
    return re.findall(r'<a class="name"[^>]*>([^<]+)</a>', page.text)


def prices(page: TestResponse) -> list[float]:
    found = re.findall(r'class="price">(?:Special Price )?\$([\d,.]+)<', page.text)
    return [float(text.replace(",", "")) for text in found]


def test_filter_and_sorting_stand_in_the_address(shop: Shop) -> None:
    page = shop.get("/kitchen/kettles.html?price=25-50&product_list_order=price&product_list_dir=desc")
    found = prices(page)
    assert len(found) > 3
    assert found == sorted(found, reverse=True)
    assert all(25 <= price < 50 for price in found)


def test_a_default_of_the_list_leaves_the_address(shop: Shop) -> None:
    page = shop.get("/kitchen/kettles.html?product_list_order=price&product_list_dir=desc")
    assert 'value="/kitchen/kettles.html?product_list_dir=desc">Position' in page.text
    assert 'href="/kitchen/kettles.html?product_list_order=price">Set Ascending Direction' in page.text


def test_a_new_filter_starts_on_the_first_page(shop: Shop) -> None:
    page = shop.get("/kitchen.html?p=3")
    assert 'href="/kitchen.html?price=0-25"' in page.text


def test_pages_of_a_list_hold_nine_products_and_do_not_overlap(shop: Shop) -> None:
    first, second = (names(shop.get(f"/garden/tools.html?p={number}")) for number in (1, 2))
    assert len(first) == 9
    assert not set(first) & set(second)


def test_a_brand_filter_keeps_only_that_brand(shop: Shop) -> None:
    page = shop.get("/kitchen/kettles.html?brand=Oakline")
    wanted = shop.rows(
        "SELECT name FROM shop_product WHERE sku LIKE 'KET-%' AND brand = 'Oakline' AND enabled ORDER BY id"
    )
    assert names(page) == [row["name"] for row in wanted]


def test_search_wants_every_word_at_the_start_of_a_word(shop: Shop) -> None:
    assert set(names(shop.get("/catalogsearch/result/?q=HERON+kni"))) <= {"Heron Knife"}
    assert "returned no results" in shop.get("/catalogsearch/result/?q=ettle").text
    assert "returned no results" in shop.get("/catalogsearch/result/?q=%25").text


def test_search_finds_a_sku_only_when_it_is_whole(shop: Shop) -> None:
    product = shop.product("sku = 'KNI-104'")
    assert names(shop.get("/catalogsearch/result/?q=kni-104")) == [product["name"]]
    assert "returned no results" in shop.get("/catalogsearch/result/?q=kni-1").text


def test_empty_fields_leave_the_address_of_the_advanced_search(shop: Shop) -> None:
    page = shop.get("/catalogsearch/advanced/result/?name=kettle&sku=&description=&price_from=&price_to=30")
    assert page.request.full_path == "/catalogsearch/advanced/result/?name=kettle&price_to=30"
    assert all(price <= 30 for price in prices(page))


def test_the_advanced_search_keeps_what_was_typed_beside_its_error(shop: Shop) -> None:
    page = shop.get("/catalogsearch/advanced/result/?name=kettle&price_from=cheap")
    assert "Price from must be a number." in page.text
    assert 'name="name" value="kettle"' in page.text


def test_a_product_with_options_wants_a_choice_and_keeps_the_quantity(shop: Shop) -> None:
    product = shop.product("id IN ({options})")
    page = shop.post(f"/checkout/cart/add/{product['id']}", qty="3")
    assert re.search(r"Please choose a (color|size)\.", page.text)
    assert 'name="qty" value="3"' in page.text
    assert shop.changes() == []


def test_adding_twice_makes_one_row_and_the_header_counts_pieces(shop: Shop) -> None:
    product = shop.product("id NOT IN ({options})")
    shop.post(f"/checkout/cart/add/{product['id']}", qty="2")
    page = shop.post(f"/checkout/cart/add/{product['id']}", qty="1")
    assert shop.changes() == [("shop_cart_item", "insert")]
    assert "Cart (3)" in page.text


def test_more_than_the_stock_cannot_be_added(shop: Shop) -> None:
    product = shop.rows("SELECT * FROM shop_product WHERE enabled AND stock BETWEEN 1 AND 90")[0]
    options = shop.rows("SELECT name, value FROM shop_product_option WHERE product_id = ?", product["id"])
    form = {row["name"]: row["value"] for row in options}
    page = shop.post(f"/checkout/cart/add/{product['id']}", qty=str(product["stock"] + 1), **form)
    assert "is not available" in page.text
    assert shop.changes() == []


def test_checkout_in_three_steps_makes_one_order_and_empties_the_cart(shop: Shop) -> None:
    product = shop.product("id NOT IN ({options}) AND special_price IS NULL")
    shop.post(f"/checkout/cart/add/{product['id']}", qty="2")
    assert shop.get("/checkout/review/").request.path == "/checkout/"
    page = shop.post("/checkout/", address="2")
    assert page.request.path == "/checkout/shipping-method/"
    page = shop.post("/checkout/shipping-method/")
    assert "Please choose a shipping method." in page.text
    page = shop.post("/checkout/shipping-method/", method="Express")
    assert page.request.path == "/checkout/review/"
    page = shop.post("/checkout/review/", payment="Card")
    assert "000000296" in page.text
    assert shop.changes() == [("shop_order", "insert"), ("shop_order_item", "insert")]
    order = shop.rows("SELECT * FROM shop_order WHERE number = '000000296'")[0]
    subtotal = 2 * product["price"]
    assert (order["subtotal"], order["shipping"]) == (subtotal, 1200)
    assert order["total"] == subtotal + 1200 + order["tax"]
    assert (order["ship_street"], order["status"]) == ("3 Station Road", "Pending")


def test_an_empty_cart_has_no_checkout(shop: Shop) -> None:
    page = shop.get("/checkout/")
    assert page.request.path == "/checkout/cart/"
    assert "You have no items in your shopping cart." in page.text


def test_a_review_with_errors_keeps_its_text(shop: Shop) -> None:
    page = shop.post("/review/product/post/10", nickname="Maya", title="", body="Short", rating="")
    for problem in ("Please choose a rating.", "Title is a required field.", "at least 10 characters"):
        assert problem in page.text
    assert ">Short</textarea>" in page.text
    assert shop.changes() == []


def test_a_new_review_waits_for_approval(shop: Shop) -> None:
    page = shop.post("/review/product/post/10", nickname="Maya", title="Fine", body="Does what it should.", rating="4")
    assert "for moderation" in page.text
    review = shop.rows("SELECT * FROM shop_review ORDER BY id DESC")[0]
    assert (review["status"], review["rating"], review["customer_id"]) == ("Pending", 4, MAYA)
    assert "Does what it should." not in shop.get(f"{page.request.path}?tab=reviews").text


def test_an_address_is_checked_and_keeps_what_was_typed(shop: Shop) -> None:
    form = {"name": "Maya Lindqvist", "street": "1 Mill Lane", "town": "Kettleby", "zip": "12", "phone": "x"}
    page = shop.post("/customer/address/edit/id/2/", **form)
    assert "Zip must have five digits." in page.text
    assert "Phone must look like 555-0100." in page.text
    assert 'value="1 Mill Lane"' in page.text
    assert shop.changes() == []


def test_saving_the_default_address_leaves_it_the_default(shop: Shop) -> None:
    form = {
        "name": "Maya Lindqvist",
        "street": "1 Mill Lane",
        "town": "Kettleby",
        "zip": "20260",
        "phone": "555-0104",
    }
    shop.post("/customer/address/edit/id/1/", **form)
    assert shop.rows("SELECT is_default FROM shop_address WHERE id = 1")[0]["is_default"] == 1


def test_a_new_default_address_takes_the_place_of_the_old_one(shop: Shop) -> None:
    form = {
        "name": "Ada Abara",
        "street": "1 Mill Lane",
        "town": "Kettleby",
        "zip": "20260",
        "phone": "555-0301",
    }
    shop.post("/customer/address/new/", is_default="on", **form)
    defaults = shop.rows("SELECT name FROM shop_address WHERE customer_id = 1 AND is_default")
    assert [row["name"] for row in defaults] == ["Ada Abara"]


def test_the_default_address_stays_in_the_book(shop: Shop) -> None:
    assert "cannot be deleted" in shop.post("/customer/address/delete/id/1/").text
    assert shop.changes() == []
    shop.post("/customer/address/delete/id/3/")
    assert shop.changes() == [("shop_address", "delete")]


def test_orders_and_addresses_of_others_are_not_found(shop: Shop) -> None:
    other = shop.rows("SELECT id FROM shop_order WHERE customer_id <> 1")[0]["id"]
    assert shop.get(f"/sales/order/view/order_id/{other}/").status_code == 404
    assert shop.post(f"/sales/order/cancel/order_id/{other}/").status_code == 404
    assert shop.get("/customer/address/edit/id/20/").status_code == 404


def test_only_a_pending_order_can_be_canceled(shop: Shop) -> None:
    pending, complete = (
        shop.rows("SELECT id FROM shop_order WHERE customer_id = 1 AND status = ?", status)[0]["id"]
        for status in ("Pending", "Complete")
    )
    assert "Only a pending order" in shop.post(f"/sales/order/cancel/order_id/{complete}/").text
    assert shop.changes() == []
    page = shop.get(f"/sales/order/view/order_id/{pending}/")
    assert "return confirm(" in page.text
    shop.post(f"/sales/order/cancel/order_id/{pending}/")
    assert shop.rows("SELECT status FROM shop_order WHERE id = ?", pending)[0]["status"] == "Canceled"
    assert shop.changes() == [("shop_order", "update")]


def test_the_orders_of_the_usual_customer_fill_five_pages_and_are_found_by_product(shop: Shop) -> None:
    assert "Page 1 of 5" in shop.get("/sales/order/history/").text
    item = shop.rows(
        "SELECT i.name, o.number FROM shop_order_item i JOIN shop_order o ON o.id = i.order_id"
        " WHERE o.customer_id = 1 ORDER BY o.id LIMIT 1"
    )[0]
    assert item["number"] in shop.get(f"/sales/order/history/?q={item['name'].replace(' ', '+').lower()}").text
    assert "No order fits your search." in shop.get("/sales/order/history/?q=zebra").text


def test_a_reorder_fills_the_cart_with_the_same_items(shop: Shop) -> None:
    several = "SELECT order_id FROM shop_order_item WHERE quantity > 1"
    order = shop.rows(f"SELECT id FROM shop_order WHERE customer_id = 1 AND id IN ({several})")[0]["id"]
    columns = "product_id, option_text, quantity"
    wanted = shop.rows(f"SELECT {columns} FROM shop_order_item WHERE order_id = ? ORDER BY product_id", order)
    shop.post(f"/sales/order/reorder/order_id/{order}/")
    found = shop.rows(f"SELECT {columns} FROM shop_cart_item WHERE customer_id = 1 ORDER BY product_id")
    assert [tuple(row) for row in found] == [tuple(row) for row in wanted]


def test_a_wish_is_written_once(shop: Shop) -> None:
    shop.post("/wishlist/index/add/10")
    shop.post("/wishlist/index/add/10")
    assert shop.changes() == [("shop_wishlist", "insert")]


def test_the_newsletter_is_one_column_of_the_customer(shop: Shop) -> None:
    shop.post("/newsletter/manage/", subscribed="on")
    assert shop.changes() == [("shop_customer", "update")]
    assert shop.rows("SELECT newsletter FROM shop_customer WHERE id = 1")[0]["newsletter"] == 1


def test_a_message_needs_a_topic_and_nine_digits(shop: Shop) -> None:
    form = {"name": "Maya", "email": "maya.lindqvist@example.com", "body": "Where is it?"}
    page = shop.post("/contact/", topic="", order_number="12", **form)
    assert "Please choose a topic." in page.text
    assert "Order Number must have nine digits." in page.text
    assert ">Where is it?</textarea>" in page.text
    shop.post("/contact/", topic="Order", order_number="000000190", **form)
    assert shop.changes() == [("shop_message", "insert")]


def test_some_links_open_a_new_tab(shop: Shop) -> None:
    page = shop.get("/sales/order/view/order_id/195/").text
    assert 'href="/sales/order/print/order_id/195/" target="_blank"' in page
    assert 'href="/size-guide" target="_blank"' in page
