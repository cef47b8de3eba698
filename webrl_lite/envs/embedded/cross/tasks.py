"""The families of tasks that need two sites: what one site says is used on the other.

An episode starts with one tab on each site. Instances, graders and solutions are put together from those of the
single sites.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Family, Instance, answer, final_page, state
from webrl_lite.envs.embedded.gitlab import facts
from webrl_lite.envs.embedded.gitlab import oracles as forge
from webrl_lite.envs.embedded.map import instances as places
from webrl_lite.envs.embedded.map import oracles as wayfinder
from webrl_lite.envs.embedded.map import routing
from webrl_lite.envs.embedded.map.data import REMARKS
from webrl_lite.envs.embedded.oracle import Moves, Page, click, read_line, reply
from webrl_lite.envs.embedded.reddit import instances as forum
from webrl_lite.envs.embedded.reddit import oracles as board
from webrl_lite.envs.embedded.shopping import oracles as shop
from webrl_lite.envs.embedded.shopping import questions
from webrl_lite.envs.embedded.shopping_admin import oracles as office
from webrl_lite.envs.embedded.shopping_admin import rows
from webrl_lite.envs.embedded.site import money
from webrl_lite.trajectory import JSON

Values = wayfinder.Values

START = ("/", "/")
"""The home page of either site."""
COUNTED = ("cafe", "hotel", "restaurant")
"""Types of places to count in a user's town."""


# Instances ----------------------------------------------------------------------------------------------------


def order_distance(db: sqlite3.Connection) -> Iterator[Instance]:
    """How far it is from a town to the one that an order was shipped to."""
    graph, towns = routing.load_graph(db), places.all_towns(db)
    stops = {town["name"]: places.town_stop(town) for town in towns}
    for index, order in enumerate(questions.maya_orders(db)):
        for number, town in enumerate(stops):
            if town == order["ship_town"]:
                continue
            way = places.WAYS[(index + number) % 3]
            route = routing.find_route(graph, stops[town], stops[order["ship_town"]], places.MODES[way])
            values = {"order": order["number"], "start": town, "way": way}
            entities = (f"order:{order['number']}", f"town:{town}")
            yield Instance(values, entities, answer(routing.distance_text(route.length_hm)), 3, START)


def home_towns(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield each customer of a single name, and the town of the default address."""
    sql = "SELECT town FROM shop_address WHERE customer_id = ? AND is_default"
    for customer in rows.customers(db):
        address = db.execute(sql, (customer["id"],)).fetchone()
        if address:
            yield customer["name"], address["town"]


def customer_population(db: sqlite3.Connection) -> Iterator[Instance]:
    """The population of the town where a customer lives."""
    people = {town["name"]: str(town["population"]) for town in places.all_towns(db)}
    for customer, town in home_towns(db):
        yield Instance({"customer": customer}, (f"customer:{customer}",), answer(people[town]), 2, START)


def customer_route(db: sqlite3.Connection) -> Iterator[Instance]:
    """The page of the route from a town to the one where a customer lives."""
    towns = places.all_towns(db)
    for index, (customer, home) in enumerate(home_towns(db)):
        town, way = towns[index % len(towns)]["name"], places.WAYS[index % 3]
        if town != home:
            ends = urlencode({"from": town, "to": home, "mode": places.MODES[way]})
            values = {"customer": customer, "start": town, "way": way}
            entities = (f"customer:{customer}", f"town:{town}")
            yield Instance(values, entities, final_page(f"__MAP__/directions?{ends}"), 3, START)


def new_post(forum_id: int, title: str, body: str) -> dict[str, JSON]:
    """Return the row that a new submission of the usual account adds."""
    values = {"forum_id": forum_id, "author_id": forum.ME, "title": title, "url": "", "body": body}
    return {"table": "reddit_submission", "op": "insert", "values": values}


def price_post(db: sqlite3.Connection) -> Iterator[Instance]:
    """A submission that tells a product's price."""
    forums = forum.forums(db)
    for index, product in enumerate(questions.plain_products(db)):
        if product["special_price"] is None:
            place, title = forums[index % len(forums)], f"Price of the {product['name']}"
            values = {"product": product["name"], "forum": place["name"], "title": title}
            entities = (f"product:{product['name']}", f"forum:{place['name']}")
            row = new_post(place["id"], title, money(product["price"]))
            yield Instance(values, entities, state(row), 3, START)


def project_post(db: sqlite3.Connection) -> Iterator[Instance]:
    """A submission with a project's description."""
    forums = forum.forums(db)
    sql = "SELECT name, description FROM gitlab_project WHERE id = ?"
    others = [place for place in facts.places(db) if not place.role]
    for index, place in enumerate(others):
        project = db.execute(sql, (place.id,)).fetchone()
        for step in (5, 17):
            target = forums[(index * 3 + step) % len(forums)]
            title = f"Have a look at {project['name']}"
            values = {"project": place.full_name, "forum": target["name"], "title": title}
            row = new_post(target["id"], title, project["description"])
            yield Instance(values, (place.entity, f"forum:{target['name']}"), state(row), 3, START)


def user_towns(db: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """Yield a number, each user of the forum whose biography names a town, and the town."""
    towns = "|".join(town["name"] for town in places.all_towns(db))
    for index, user in enumerate(forum.others(db)):
        match = re.search(rf" from ({towns})\.", user["bio"])
        if match:
            yield index, user["username"], match[1]


def user_note(db: sqlite3.Connection) -> Iterator[Instance]:
    """A note about the train station of a user's town."""
    stations = {place["town"]: place for place in places.all_places(db) if place["kind"] == "station"}
    for index, user, town in user_towns(db):
        author, body = places.author_of(stations[town]), REMARKS[index % len(REMARKS)]
        row = places.new_note(stations[town], author, body)
        values = {"user": user, "author": author, "body": body}
        yield Instance(values, (f"user:{user}",), state(row), 4, START)


def user_count(db: sqlite3.Connection) -> Iterator[Instance]:
    """How many places of a type there are in a user's town."""
    counts = {(town, kind): len(found) for town, kind, found in places.by_kind(db)}
    for index, user, town in user_towns(db):
        kind = COUNTED[index % len(COUNTED)]
        if counts.get((town, kind), 0) > 1:
            values = {"user": user, "kinds": places.kinds(kind)}
            yield Instance(values, (f"user:{user}",), answer(str(counts[town, kind])), 2, START)


# Solutions ----------------------------------------------------------------------------------------------------


def other_tab() -> Moves[Page]:
    """Go to the second tab, which the second site is open in."""
    return (yield reply("Tab Focus", argument="1"))


def solve_order_distance(page: Page, values: Values) -> Moves[str]:
    """Read an order's town, then ask the map for the route."""
    page = yield from shop.open_orders(page, values["order"])
    page = yield from click(page, values["order"], "link")
    page, _ = yield from read_line(page, "Ship to:")
    town = wayfinder.read(page, r"Ship to: .+, (.+) \d{5}")
    page = yield from other_tab()
    return (yield from wayfinder.travel_distance(page, {**values, "goal": town}))


def customer_town(page: Page, values: Values) -> Moves[str]:
    """Read the town in a customer's default address."""
    page = yield from office.open_row(page, "Customers", "All Customers", values["customer"])
    page, _ = yield from read_line(page, "Default address")
    return wayfinder.read(page, r"(?m)^([A-Z][A-Za-z ]+) \d{5}$")


def solve_customer_population(page: Page, values: Values) -> Moves[str]:
    """Read a customer's town, then its population."""
    town = yield from customer_town(page, values)
    page = yield from other_tab()
    page = yield from wayfinder.open_town(page, town)
    return wayfinder.tag(page, "population")


def solve_customer_route(page: Page, values: Values) -> Moves[str]:
    """Read a customer's town, then leave the route to it open."""
    town = yield from customer_town(page, values)
    page = yield from other_tab()
    return (yield from wayfinder.open_directions(page, {**values, "goal": town}))


def solve_price_post(page: Page, values: Values) -> Moves[str]:
    """Read a price, then write it into a submission."""
    price = yield from shop.price(page, values)
    page = yield from other_tab()
    return (yield from board.post_text(page, {**values, "body": price}))


def solve_project_post(page: Page, values: Values) -> Moves[str]:
    """Read a project's description, then write it into a submission."""
    page = yield from forge.open_project(page, values["project"])
    lines = page.lines
    heading = lines.index(f"= {values['project']}")
    description = lines[heading + 1].split(" | ")[0]
    page = yield from other_tab()
    return (yield from board.post_text(page, {**values, "body": description}))


def user_town(page: Page, values: Values) -> Moves[str]:
    """Read in a user's biography which town the user is from."""
    page = yield from board.open_user(page, values["user"])
    page, _ = yield from read_line(page, " from ", "Likes ")
    return wayfinder.read(page, r" from ([A-Z][A-Za-z ]+)\. Likes")


def solve_user_note(page: Page, values: Values) -> Moves[str]:
    """Read a user's town, then write a note about its station."""
    town = yield from user_town(page, values)
    page = yield from other_tab()
    return (yield from wayfinder.add_note(page, {**values, "place": f"{town} Station"}))


def solve_user_count(page: Page, values: Values) -> Moves[str]:
    """Read a user's town, then count its places of a type."""
    town = yield from user_town(page, values)
    page = yield from other_tab()
    return (yield from wayfinder.count(page, {**values, "town": town}))


FAMILIES: list[Family] = [
    Family(
        "cross.order_distance",
        ("shopping", "map"),
        "retrieve",
        (
            "How far is it {way} from {start} to the town that my order {order} was shipped to?",
            "See in the shop which town my order {order} goes to. What is the distance from {start} {way}?",
            "What is the distance {way} from {start} to the ship-to town of my order {order}?",
        ),
        order_distance,
        solve_order_distance,
        wrong="0.1 km",
    ),
    Family(
        "cross.customer_population",
        ("shopping_admin", "map"),
        "retrieve",
        (
            "What is the population of the town where the customer {customer} lives?",
            "Find the home town of the customer {customer} and its population on the map.",
            "How many people live in the town of the customer {customer}?",
        ),
        customer_population,
        solve_customer_population,
        wrong="1000",
    ),
    Family(
        "cross.customer_route",
        ("shopping_admin", "map"),
        "navigate",
        (
            "Show the directions {way} from {start} to the town where the customer {customer} lives.",
            "Open the route {way} from {start} to the home town of the customer {customer}.",
            "A parcel goes from {start} to the town of the customer {customer} {way}. Show its route on the map.",
        ),
        customer_route,
        solve_customer_route,
        held_out=True,
    ),
    Family(
        "cross.price_post",
        ("shopping", "reddit"),
        "change",
        (
            'Look up the price of the {product} and post it in the forum {forum}: title "{title}", body the price.',
            'Post in the forum {forum} with the title "{title}". The body is only the price of the {product}.',
            'Tell the forum {forum} what the {product} costs: title "{title}", and just the price as the body.',
        ),
        price_post,
        solve_price_post,
    ),
    Family(
        "cross.project_post",
        ("gitlab", "reddit"),
        "change",
        (
            'Post the description of the project {project} in the forum {forum}, with the title "{title}".',
            'Post in the forum {forum} with the title "{title}". The body is the description of {project}.',
            'Write a post "{title}" in the forum {forum} whose body is the description of {project}.',
        ),
        project_post,
        solve_project_post,
    ),
    Family(
        "cross.user_note",
        ("reddit", "map"),
        "change",
        (
            'Find the home town of the forum user {user}. Add a note to its train station: "{body}" by {author}.',
            'Add the note "{body}" with the name {author} to the station of the town that {user} is from.',
            'The user {user} says where they are from. Note "{body}" on the station of that town as {author}.',
        ),
        user_note,
        solve_user_note,
    ),
    Family(
        "cross.user_count",
        ("reddit", "map"),
        "retrieve",
        (
            "How many {kinds} are there in the town that the forum user {user} is from?",
            "See in the biography of {user} which town they are from, and count the {kinds} there.",
            "What is the number of {kinds} in the home town of the forum user {user}?",
        ),
        user_count,
        solve_user_count,
        held_out=True,
        wrong="97",
    ),
]
