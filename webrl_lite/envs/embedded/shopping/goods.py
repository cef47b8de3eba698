"""The shop's catalogue: departments, shelves and products with their prices and options.

Called by ``data.fill``, which writes the rest of the shop's rows.
"""

from __future__ import annotations

import random
import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True)
class Shelf:
    """A sub-category and what stands in it."""

    name: str
    nouns: tuple[str, str]
    """The two kinds of product it holds."""
    dollars: tuple[int, int]
    """Lowest and highest price."""
    grams: tuple[int, int]
    """Lowest and highest weight."""
    materials: tuple[str, ...]
    options: tuple[str, ...] = ()
    """Options that its products may ask for."""
    sizes: bool = False
    """Whether one product comes as two, ``… Small`` and ``… Large``."""


DEPARTMENTS: dict[str, tuple[Shelf, ...]] = {
    "Kitchen": (
        Shelf("Kettles", ("Kettle", "Teapot"), (18, 120), (600, 1900), ("steel", "glass", "clay")),
        Shelf("Pans", ("Pan", "Roaster"), (15, 150), (700, 3200), ("steel", "iron"), ("Size",)),
        Shelf("Knives", ("Knife", "Board"), (8, 140), (120, 1800), ("steel", "oak", "bamboo")),
    ),
    "Living": (
        Shelf("Lamps", ("Lamp", "Lantern"), (20, 180), (300, 4200), ("glass", "steel", "oak"), ("Color",)),
        Shelf(
            "Rugs",
            ("Rug", "Mat"),
            (25, 260),
            (900, 9000),
            ("wool", "cotton", "bamboo"),
            ("Size", "Color"),
            sizes=True,
        ),
        Shelf("Chairs", ("Chair", "Stool"), (40, 320), (2500, 9800), ("oak", "steel", "bamboo"), ("Color",)),
    ),
    "Garden": (
        Shelf("Planters", ("Planter", "Trough"), (6, 90), (400, 5200), ("clay", "stone", "oak"), sizes=True),
        Shelf("Tools", ("Spade", "Rake"), (9, 80), (500, 2400), ("steel", "oak")),
        Shelf("Benches", ("Bench", "Table"), (60, 390), (7000, 24000), ("oak", "stone", "steel"), sizes=True),
    ),
    "Outdoor": (
        Shelf("Tents", ("Tent", "Shelter"), (45, 420), (1200, 7600), ("cotton", "nylon"), ("Size",), sizes=True),
        Shelf("Bags", ("Bag", "Pouch"), (12, 160), (150, 1900), ("cotton", "wool", "nylon"), ("Color", "Size")),
        Shelf("Bottles", ("Bottle", "Mug"), (6, 48), (120, 700), ("steel", "glass"), ("Color",)),
    ),
}

LINES = (
    "Kestrel Heron Otter Badger Falcon Linnet Maple Cedar Willow Birch Ember Harbor Summit Meadow Pebble "
    "Comet Anchor Breeze Copper Clover"
).split()
"""First words of product names; every shelf draws from them."""
BRANDS = (
    "Oakline Northby Brightmoor Fernby Stonemill Tidewell Larkfield Ashcombe Millrace Copperlea Windrow "
    "Hollin Redfern Saltby Quillon"
).split()
BRANDS_A_DEPARTMENT = 5
COLORS = "Black Blue Green Red White Grey".split()
SIZES = ("Small", "Medium", "Large")
FIRST_KIND, SECOND_KIND = 11, 7
"""Products of a shelf's first and second noun, before its same-named pair."""

LOOKS = "light strong simple quiet handy solid soft slim".split()
USES = (
    "for everyday use",
    "for small homes",
    "for long trips",
    "for the whole family",
    "for gifts",
    "for people who want few things that last",
)
CARE = (
    "Wipe clean with a damp cloth.",
    "Keep dry when not in use.",
    "Easy to store.",
    "Comes in a paper box.",
)


@dataclass(frozen=True)
class Product:
    """What orders, carts and reviews need to know of a product."""

    id: int
    sku: str
    name: str
    price: int
    """What it costs now, in cents."""
    options: tuple[tuple[str, tuple[str, ...]], ...]


def fill_catalogue(db: sqlite3.Connection, rng: random.Random) -> list[Product]:
    """Write categories and products.

    Args:
        db: the database that holds the shop's tables.
        rng: source of every choice.

    Returns:
        All products, as orders, carts and reviews need them.
    """
    tops = {name: insert(db, "shop_category", slug=name.lower(), name=name) for name in DEPARTMENTS}
    shelves = []
    for number, (top, own) in enumerate(DEPARTMENTS.items()):
        for shelf in own:
            slug = f"{top.lower()}/{shelf.name.lower()}"
            category_id = insert(db, "shop_category", slug=slug, name=shelf.name, parent_id=tops[top])
            shelves.append((shelf, category_id, number))
    taken: list[set[int]] = [set() for _ in DEPARTMENTS]
    products = []
    for shelf, category_id, number in shelves:
        brands = [BRANDS[(number * 4 + i) % len(BRANDS)] for i in range(BRANDS_A_DEPARTMENT)]
        for place, (name, brand) in enumerate(_names(rng, shelf, brands)):
            products.append(_product(db, rng, shelf, category_id, place, name, brand, taken[number]))
    return products


def _names(rng: random.Random, shelf: Shelf, brands: list[str]) -> list[tuple[str, str]]:
    """Return names and brands of a shelf, among them two products that are easily taken for each other."""
    first, second = shelf.nouns
    lines = rng.sample(LINES, FIRST_KIND)
    names = [(f"{line} {first}", rng.choice(brands)) for line in lines]
    names += [(f"{line} {second}", rng.choice(brands)) for line in rng.sample(LINES, SECOND_KIND)]
    name, brand = names[0]
    if shelf.sizes:
        names[0] = (f"{name} Small", brand)
        names.append((f"{name} Large", brand))
    else:
        names.append((name, rng.choice([other for other in brands if other != brand])))
    rng.shuffle(names)
    return names


def _price(rng: random.Random, shelf: Shelf, taken: set[int]) -> int:
    """Return a price in cents that no product of the department has yet."""
    low, high = shelf.dollars
    while True:
        dollars = round(low * (high / low) ** rng.random())  # as many cheap as dear ones
        price = dollars * 100 + rng.choice((0, 50, 95))
        if price not in taken:
            taken.add(price)
            return price


def _product(
    db: sqlite3.Connection,
    rng: random.Random,
    shelf: Shelf,
    category_id: int,
    place: int,
    name: str,
    brand: str,
    taken: set[int],
) -> Product:
    price = _price(rng, shelf, taken)
    special = None
    if rng.random() < 0.12:
        special = price * 4 // 5 // 50 * 50
        while special in taken:
            special -= 50
        taken.add(special)
    sku = f"{shelf.name[:3].upper()}-{101 + place}"
    slug = name.lower().replace(" ", "-")
    if db.execute("SELECT 1 FROM shop_product WHERE slug = ?", (slug,)).fetchone():
        slug = f"{slug}-{brand.lower()}"
    options = _options(rng, shelf, name)
    colors = dict(options).get("Color", (rng.choice(COLORS),))
    noun = next(noun for noun in shelf.nouns if noun in name)
    look, material, use = rng.choice(LOOKS), rng.choice(shelf.materials), rng.choice(USES)
    product_id = insert(
        db,
        "shop_product",
        sku=sku,
        name=name,
        slug=slug,
        category_id=category_id,
        brand=brand,
        price=price,
        special_price=special,
        stock=0 if rng.random() < 0.05 else rng.randint(3, 120),
        enabled=int(rng.random() >= 0.02),
        color=colors[0],
        weight_g=rng.randint(shelf.grams[0] // 10, shelf.grams[1] // 10) * 10,
        description=f"A {look} {noun.lower()} of {material} {use}. {rng.choice(CARE)}",
    )
    for option, values in options:
        for value in values:
            insert(db, "shop_product_option", product_id=product_id, name=option, value=value)
    return Product(product_id, sku, name, special or price, options)


def _options(rng: random.Random, shelf: Shelf, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for option in sorted(shelf.options):
        sized = option == "Size" and name.endswith(SIZES)
        if not sized and rng.random() < 0.6:
            values = SIZES if option == "Size" else tuple(rng.sample(COLORS, rng.choice((3, 4))))
            found.append((option, values))
    return tuple(found)


def insert(db: sqlite3.Connection, table: str, **row: object) -> int:
    """Write a row, given by its columns but the id; return the id."""
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
    return db.execute(sql, tuple(row.values())).lastrowid or 0
